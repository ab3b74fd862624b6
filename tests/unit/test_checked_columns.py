"""`dphist check` compares the columns of a spec with those of a source that the ledger allows, and shows no record."""

from __future__ import annotations

import pytest
from office import Office

HEADER = "patient,age,ward\n"
AGE = {"column": "age", "start": 0, "stop": 100, "width": 25}


@pytest.fixture(autouse=True)
def opened(office: Office) -> Office:
    return office.opened()


def with_csv(office: Office, text: str, **fields: object) -> None:
    (office.folder / "data/admissions.csv").write_text(text)
    office.write_spec(source="data/admissions.csv", **fields)
    office.allow()


def test_columns_that_are_there_are_said_to_be_found(office: Office) -> None:
    assert "found in the source" in office.run("check", "spec.yaml").out
    assert office.run("check", "spec.yaml", "--json").json["source_columns"] == "found in the source"


def test_a_misspelled_column_is_refused_with_the_nearest_name(office: Office) -> None:
    office.write_spec(axes=[{**AGE, "column": "agee"}])
    office.allow()
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "column 'agee' is not in the source. Did you mean 'age'?" in ran.err


def test_a_column_of_a_type_that_cannot_serve_is_refused(office: Office) -> None:
    office.write_records({"patient": ["ann"], "age": ["3"], "ward": [1.5], "day": [True]})
    office.write_spec(axes=[{**AGE, "column": "day"}])
    office.allow()
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "column 'day' has type BOOLEAN" in ran.err


def test_before_an_account_is_open_its_opening_is_advised_and_no_permission(office: Office) -> None:
    office.write_attributes_alone(account="library")
    said = office.run("check", "spec.yaml").out
    assert "account library is not open yet: dphist ledger open --for SPEC --total EPSILON" in " ".join(said.split())
    assert "ledger allow" not in said


def test_names_of_a_csv_header_are_never_shown(office: Office) -> None:
    with_csv(office, HEADER + "ann,3,surgery\n", axes=[{**AGE, "column": "agee"}])
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "column 'agee' is not in the source. Check the header line." in ran.err
    assert "ward" not in ran.err


@pytest.mark.parametrize("guess", ["secret", "guess"])
def test_a_csv_without_a_header_cannot_be_probed_for_the_first_record(office: Office, guess: str) -> None:
    with_csv(office, "eve,30,secret\nann,3,surgery\n", axes=[{"column": guess, "name": "g", "values": ["x"]}])
    ran = office.run("check", "spec.yaml")
    assert "column 'patient' is not in the source" in ran.err and guess not in ran.err


@pytest.mark.parametrize("guess", ["secret", "guess"])
def test_a_csv_whose_rows_are_units_is_not_compared(office: Office, guess: str) -> None:
    told = {"privacy_unit": "row", "max_rows_per_unit": 1, "account": "visits"}
    office.run("ledger", "open", "visits", "--privacy-unit", "row", "--neighbours", "add_remove", "--total", "1")
    axes = [{"column": guess, "name": "g", "values": ["x"]}]
    with_csv(office, "eve,30,secret\nann,3,surgery\n", axes=axes, **told)
    ran = office.run("check", "spec.yaml")
    assert ran.code == 0 and "a CSV file that names no unit" in ran.out


def test_a_source_that_was_not_allowed_is_not_opened(office: Office) -> None:
    office.write_records(name="data/others.parquet")
    office.write_attributes_alone(source="data/others.parquet", axes=[{**AGE, "column": "agee"}])
    ran = office.run("check", "spec.yaml")
    assert ran.code == 0 and "not compared with the source" in ran.out and "dphist ledger allow" in ran.out


def test_a_source_without_files_yet_is_no_mistake(office: Office) -> None:
    (office.folder / "data/admissions.parquet").unlink()
    ran = office.run("check", "spec.yaml")
    assert ran.code == 0 and "not compared with the source" in ran.out
