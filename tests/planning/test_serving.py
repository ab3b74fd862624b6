"""What shall be answered well names a mechanism, by a public rule of the question and the number of axes."""

from __future__ import annotations

import pytest
from office import Office

from dphist_pipeline.workbench.planning.serving import Serves, mechanism_for


@pytest.mark.parametrize(
    ("serves", "axes", "written"),
    [
        ("cells", 1, "adaptive"),
        ("tables", None, "tables"),
        ("boxes", None, "multiscale:levels=overlapping"),
        ("boxes", 3, "multiscale:levels=overlapping"),
        ("ranges", 2, "multiscale:levels=overlapping"),
        ("ranges", 1, "multiscale"),
        ("boxes", 1, "multiscale"),
        ("prefixes", None, "multiscale:workload=prefixes"),
    ],
)
def test_the_rule_follows_what_was_measured(serves: Serves, axes: int | None, written: str) -> None:
    assert mechanism_for(serves, axes).written == written


def test_a_guess_of_few_records_names_another_for_two_axes() -> None:
    assert mechanism_for("boxes", 2, 0.29).written == mechanism_for("prefixes", 2, 0.29).written == "adaptive_boxes"
    assert "fewer than 3 tenths of the cells, as you guess" in mechanism_for("boxes", 2, 0.29).because
    assert mechanism_for("boxes", 2, 0.3).written == "multiscale:levels=overlapping"
    assert "fewer than 3 tenths of the cells, `adaptive_boxes`" in mechanism_for("boxes", 2, 0.3).because
    assert mechanism_for("boxes", 3, 0.29) == mechanism_for("boxes", 3)
    assert mechanism_for("ranges", 1, 0.29).mechanism == "multiscale"


def test_next_to_nothing_in_cells_names_the_other_mechanism_and_when_it_is_nearer() -> None:
    for axes, known in ((1, None), (1, 0.09), (2, 0.09)):
        serving = mechanism_for("cells", axes, known)
        assert (
            serving.mechanism == "adaptive" and "change gently from cell to cell, `adaptive_boxes`" in serving.because
        )
    assert "adaptive_boxes" not in mechanism_for("cells", 1, 0.1).because


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
    words = ("forecast", "spec.yaml", "--serves", "ranges", "--mechanism", "geometric", "--records", "100000")
    first = office.run(*words).out.splitlines()[0]
    assert first.startswith("To serve ranges: `multiscale` (the spec has `geometric`).")
    assert office.run(*words, "--json").json["serves"]["mechanism"] == "multiscale"
    lines = [{"column": name, "start": 0, "stop": 100, "width": 5} for name in ("age", "weight")]
    office.write_spec(axes=lines, mechanism="geometric", epsilon="0.5", max_rows_per_unit=2)
    words = ("forecast", "spec.yaml", "--serves", "boxes", "--mechanism", "geometric", "--records")
    # 400 cells, sensitivity 2: 480 records times 1/4 are three tenths of them.
    for records, name in (("479", "adaptive_boxes"), ("480", "multiscale:levels=overlapping")):
        assert office.run(*words, records).out.startswith(f"To serve boxes: `{name}` (the spec has `geometric`).")
    refused = office.run("forecast", "spec.yaml", "--serves", "tables")
    assert refused.code == 2 and "no `tables:`" in refused.err
