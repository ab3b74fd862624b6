"""`dphist check` compares the columns of a spec with those of a source that the ledger allows, and shows no record."""

from __future__ import annotations

import pytest
from office import WARD, Office

HEADER = "patient,age,ward\n"
AGE = {"column": "age", "start": 0, "stop": 100, "width": 25}


@pytest.fixture(autouse=True)
def opened(office: Office) -> Office:
    return office.opened()


def with_csv(office: Office, text: str | dict[str, str], **fields: object) -> None:
    files = text if isinstance(text, dict) else {"admissions.csv": text}
    for name, content in files.items():
        (office.folder / "data" / name).write_text(content)
    office.write_spec(source="data/admissions.csv" if isinstance(text, str) else "data/*.csv", **fields)
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
    said, refused = office.run("check", "spec.yaml").out, office.release()
    assert refused.code == 1 and "dphist ledger open library --for SPEC --total EPSILON" in refused.err
    assert refused.err.partition("error: ")[2].partition(" Nothing was")[0] in " ".join(said.split())
    assert "ledger allow" not in said


def test_of_a_csv_header_that_names_the_unit_the_nearest_name_alone_is_shown(office: Office) -> None:
    with_csv(office, HEADER + "ann,3,surgery\n", axes=[{**AGE, "column": "agee"}])
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "column 'agee' is not in the source. Did you mean 'age'?" in ran.err
    assert "ward" not in ran.err and "ann" not in ran.err
    office.write_spec(source="data/admissions.csv", axes=[{**AGE, "column": "height"}])
    assert "column 'height' is not in the source. Check the header line." in office.run("check", "spec.yaml").err


def test_several_missing_columns_are_said_at_once_each_with_its_nearest_name(office: Office) -> None:
    axes = [{**AGE, "column": "agee"}, {**WARD, "column": "wards"}, {**WARD, "name": "of", "column": "height"}]
    said = "column 'agee' is not in the source. Did you mean 'age'? Nor is column 'wards'. Did you mean 'ward'?"
    office.write_spec(axes=axes)
    office.allow()
    assert f"{said} Nor is column 'height'." in office.run("check", "spec.yaml").err
    with_csv(office, HEADER + "ann,3,surgery\n", axes=axes)
    assert f"{said} Nor is column 'height'. Check the header line." in office.run("check", "spec.yaml").err


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ("patient;age;ward", 'the header has one column: is `;` the delimiter? `csv_delimiter: ";"`'),
        ("patient\tage\tward", 'is `\\t` the delimiter? `csv_delimiter: "\\t"`'),
        ('"patient","age","ward"', "it has quotes: declare `csv_quote: rfc`"),
        ("Patient,age,ward", "Did you mean 'Patient'? Case, blanks and quotes count."),
        (" patient,age,ward", "Did you mean ' patient'? Case, blanks and quotes count."),
        ("pateint,ages,ward", "column 'patient' is not in the source. Check the header line."),
        ("Patient,ages,ward", "Case, blanks and quotes count. Nor is column 'age'. Did you mean 'ages'?"),
        ("patient_17,ages,ward", "column 'patient' is not in the source. Check the header line."),
        ("patiemt,3,surgery", "column 'patient' is not in the source. Check the header line."),
        ("pat,ages,ward", "column 'patient' is not in the source. Check the header line."),
        ("Zacharias 2026\npatient,age,ward", "names one column: if it is a title, remove the lines above the header"),
        ("Zacharias 2026,,\npatient,age,ward", "if its first line is a title, remove the lines above the header line"),
        ("sep=;\npatient;age;ward", 'is `sep=`, for spreadsheets: remove that line, and declare `csv_delimiter: ";"`'),
        ("sep=,\npatient,age,ward", 'is `sep=`, for spreadsheets. Remove that line, and declare `csv_delimiter: ","`'),
        ("", "its first line is empty"),
    ],
)
def test_a_first_line_that_is_no_header_is_called_what_it_is(office: Office, first: str, says: str) -> None:
    """And the remedy works: see the next test."""
    with_csv(office, first + "\nann,3,surgery\n", csv_quote="none")
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and says in ran.err
    assert "data/admissions.csv: " in ran.err or "column 'patient' is not in the source" in ran.err
    assert not any(word in ran.err for word in ("surgery", "Zacharias"))


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("patient;age;ward\nann;3;surgery\n", {"csv_delimiter": ";"}),
        ("patient\tage\tward\nann\t3\tsurgery\n", {"csv_delimiter": "\t"}),
        ('"patient","age","ward"\n"ann","3","surgery"\n', {"csv_quote": "rfc"}),
    ],
)
def test_what_a_doubt_of_the_header_says_to_declare_mends_it(office: Office, text: str, mend: dict[str, str]) -> None:
    with_csv(office, text, **mend)
    assert office.run("check", "spec.yaml").code == 0


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no such file"),
        ({"a.csv": ""}, "data/a.csv: cannot be read, or has no usable header line: its first line is empty"),
        ({"a.csv": HEADER, "b.csv": "patient,age\n"}, "column 'ward' is not in {}data/b.csv, and other files"),
        ({"a.csv": HEADER, "b.csv": "ann,age,ward\n"}, "column 'patient' is not in {}data/b.csv, and other files"),
        ({"a.csv": HEADER, "b.csv": "patient,age,Ward\n"}, "data/b.csv: names a column in other letters"),
    ],
)
def test_check_fails_where_a_file_is_missing_empty_or_lacks_a_column(
    office: Office, files: dict[str, str], says: str
) -> None:
    with_csv(office, files)
    said = says.format(f"{office.folder}/")
    for more in ([], ["--explain"], ["--json"]):
        ran = office.run("check", "spec.yaml", *more)
        assert ran.code == 1 and said in ran.err + ran.out.replace("\\", "")
    assert office.release().code == 1


def test_a_column_of_a_csv_that_no_spec_uses_may_be_missing_or_differ(office: Office) -> None:
    months = ("patient,age,ward,ventilated\nann,3,surgery,x\n", "patient,ward,invasive,age\nbob,surgery,x,30\n")
    with_csv(office, dict(zip(("2026-01.csv", "2026-02.csv"), months, strict=True)), epsilon="9")
    assert office.run("check", "spec.yaml").code == 0
    office.released()


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


def test_a_source_without_files_yet_is_no_mistake_of_the_spec_and_makes_check_fail(office: Office) -> None:
    (office.folder / "data/admissions.parquet").unlink()
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "not compared with the source" in ran.out and "spec.yaml is a valid spec" in ran.out
    assert "error: the spec is valid, and its source cannot be read: " in ran.err and "no such file" in ran.err
