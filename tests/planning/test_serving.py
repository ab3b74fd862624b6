"""What shall be answered well names a mechanism, by a public rule of axes, epsilon and expected records."""

from __future__ import annotations

from fractions import Fraction

import pytest
from office import Office

from dphist_pipeline.planning.serving import Serves, mechanism_for

ONE = Fraction(1)


@pytest.mark.parametrize(
    ("serves", "shape", "epsilon", "records", "written"),
    [
        ("cells", (4096,), ONE, 10**6, "adaptive"),
        ("tables", None, None, None, "tables"),
        ("boxes", None, None, None, "multiscale"),
        ("boxes", (256, 256), ONE, 10**9, "multiscale"),
        ("ranges", (256, 256), ONE, 10**9, "multiscale"),
        ("ranges", None, None, None, "multiscale"),
        ("ranges", (1000,), ONE, 10_000, "workload"),
        ("ranges", (1000,), ONE, 9_999, "multiscale"),
        ("ranges", (1000,), ONE / 10, 10_000, "multiscale"),
        ("ranges", (2001,), ONE, 10**9, "multiscale"),
        ("prefixes", (4096,), ONE, 3 * 4096, "workload:workload=prefixes"),
        ("prefixes", (4096,), ONE, 3 * 4096 - 1, "multiscale"),
        ("boxes", (500,), ONE, 10**5, "workload"),
    ],
)
def test_the_rule_follows_what_was_measured(
    serves: Serves, shape: tuple[int, ...] | None, epsilon: Fraction | None, records: int | None, written: str
) -> None:
    assert mechanism_for(serves, shape, epsilon, records).written == written


@pytest.mark.parametrize(("serves", "name"), [("cells", "adaptive"), ("ranges", "multiscale"), ("tables", "tables")])
def test_a_draft_has_the_mechanism_and_the_rule_beside_it(office: Office, serves: str, name: str) -> None:
    assert office.run("new", "drawn", "--serves", serves).code == 0
    text = (office.folder / "drawn.yaml").read_text()
    assert f"# To serve {serves}: `{name}`." in text and f"  mechanism: {name} " in text
    assert ("tables: {all: 2}" in text) == (name == "tables")


def test_a_rule_and_a_name_are_not_asked_together(office: Office) -> None:
    ran = office.run("new", "drawn", "--serves", "cells", "--mechanism", "geometric")
    assert ran.code == 2 and "give one of them" in ran.err
    assert not (office.folder / "drawn.yaml").exists()


def test_a_forecast_says_first_which_mechanism_the_rule_names(office: Office) -> None:
    office.write_spec(axes=[{"column": "age", "start": 0, "stop": 100, "width": 5}], mechanism="geometric")
    words = ("forecast", "spec.yaml", "--serves", "ranges", "--mechanism", "geometric")
    first = office.run(*words, "--records", "100000").out.splitlines()[0]
    assert first.startswith("To serve ranges: `workload` (the spec has `geometric`).")
    assert office.run(*words, "--records", "10", "--json").json["serves"]["mechanism"] == "multiscale"
    refused = office.run("forecast", "spec.yaml", "--serves", "tables")
    assert refused.code == 2 and "no `tables:`" in refused.err
