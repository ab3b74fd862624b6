"""Forecasts of a family of tables, and what `check` says of it: the errors that then happen, of every table."""

from __future__ import annotations

from fractions import Fraction

import pytest
from office import Office
from system.test_families import FAMILY, NAMES, records


@pytest.fixture
def family(office: Office) -> Office:
    """An office with the records and the spec of a family, which is not released yet."""
    office.opened().write_records(records())
    office.write_spec(**FAMILY)
    return office


def test_a_forecast_finds_the_epsilon_that_reaches_targets(family: Office) -> None:
    spec, target = family.folder / "spec.yaml", ("--target", "age_sex=20", "--target", "state=5", "--json")
    found = family.run("forecast", spec, *target).json
    epsilon = Fraction(found["enough"]["epsilon"])
    tables = {**FAMILY["tables"], "weights": found["enough"]["weights"]}
    for share, reached in ((Fraction(1), True), (Fraction(9, 10), False)):
        family.write_spec(**{**FAMILY, "tables": tables})
        told = family.run("forecast", spec, "--epsilon", str(epsilon * share), "--json").json["errors"][0]["by_table"]
        assert (told["age_sex"] <= 20 and told["state"] <= 5) == reached


@pytest.mark.slow
def test_proposed_weights_are_such_as_a_person_would_write(family: Office) -> None:
    for target in ("age_sex=20", "state=0.5"):
        enough = family.run("forecast", family.folder / "spec.yaml", "--target", target, "--json").json["enough"]
        assert all(0.01 <= weight <= 1 and weight == float(f"{weight:.2g}") for weight in enough["weights"].values())


def test_targets_in_the_spec_are_those_of_a_forecast(family: Office) -> None:
    spec = family.folder / "spec.yaml"
    asked = family.run("forecast", spec, "--target", "age_sex=20", "--target", "state=5", "--json").json
    family.write_spec(**{**FAMILY, "tables": {**FAMILY["tables"], "targets": {"age_sex": 20, "state": 9}}})
    assert family.run("forecast", spec, "--target", "state=5", "--json").json["enough"] == asked["enough"]
    assert family.run("forecast", spec, "--json").json["targets"] == {"age_sex": 20, "state": 9}


@pytest.mark.slow
def test_a_forecast_leaves_the_quality_tables_share_out_of_a_familys_noise(family: Office) -> None:
    """Half of epsilon for the quality table: errors and targets are those of the other half."""
    spec, target = family.folder / "spec.yaml", ("--epsilon", "2", "--target", "age_sex=20", "--json")
    plain = family.run("forecast", spec, *target).json
    family.write_spec(**FAMILY, quality={"share": "1/2"})
    told = family.run("forecast", spec, *target).json
    for name, error in plain["errors"][0]["by_table"].items():
        assert told["errors"][0]["by_table"][name] == pytest.approx(2 * error, rel=0.03)
    assert Fraction(told["enough"]["epsilon"]) == pytest.approx(2 * Fraction(plain["enough"]["epsilon"]), rel=0.01)
    family.released()
    cell = ("--where", "sex = 'f' and age in [0, 25)", "--json")
    published = family.run("answer", "family_age_sex", *cell).json["noise_error"]
    assert family.run("forecast", spec, "--json").json["errors"][1]["by_table"]["age_sex"] == pytest.approx(published)


@pytest.mark.slow
def test_a_forecast_shows_the_error_of_every_table_where_targets_are_reached(family: Office) -> None:
    spec, asked = family.folder / "spec.yaml", ("--target", "age_sex=20")
    enough = family.run("forecast", spec, *asked, "--json").json["enough"]
    family.write_spec(**{**FAMILY, "tables": {**FAMILY["tables"], "weights": enough["weights"]}})
    there = family.run("forecast", spec, "--epsilon", enough["epsilon"], "--json").json["errors"][0]["by_table"]
    assert enough["by_table"].keys() == NAMES and enough["by_table"] == pytest.approx(there)
    family.write_spec(**FAMILY)
    words = family.run("forecast", spec, *asked).out
    worst = max(NAMES - {"age_sex"}, key=enough["by_table"].__getitem__)
    assert "5 tables have no target" in words and f"({worst})" in words and "--target-error" in words
    assert "no target" not in family.run("forecast", spec, *asked, "--target-error", "100").out


def test_check_tells_the_worst_table_and_the_mean_of_all(family: Office) -> None:
    """The mean counts every table alike, whatever its weight."""
    spec = family.folder / "spec.yaml"
    family.write_spec(**{**FAMILY, "tables": {**FAMILY["tables"], "weights": {"sex": 1000}}})
    errors = family.run("forecast", spec, "--json").json["errors"][1]["by_table"]
    told = family.run("check", spec, "--json").json
    assert told["errors_of_cells"] == pytest.approx(errors, abs=0.001)
    worst = max(errors, key=errors.__getitem__)
    words = " ".join(family.run("check", spec).out.split())
    assert f"in the worst table, {worst}, {errors[worst]:,.1f} rows" in words
    assert f"in the mean of all tables {sum(errors.values()) / len(errors):,.1f}" in words


def test_which_tables_are_poor_is_told_for_a_number_of_records_that_somebody_said(family: Office) -> None:
    spec = family.folder / "spec.yaml"
    assert [one["poor_tables"] for one in family.run("forecast", spec, "--json").json["errors"]] == [None] * 3
    assert "--records N tells" in " ".join(family.run("forecast", spec).out.split())
    told = family.run("forecast", spec, "--records", "10", "--epsilon", "1/10", "--json").json["errors"]
    assert set(told[0]["poor_tables"]) == NAMES


@pytest.mark.parametrize("target", ["nothing=3", "age=", "age=-1", "age"])
def test_a_wrong_target_is_refused(family: Office, target: str) -> None:
    refused = family.run("forecast", family.folder / "spec.yaml", "--target", target)
    assert refused.code in (1, 2) and refused.err.count("rror") <= 2
