"""`new`, `check` and `release` say how columns are read, by declared facts, header and types alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from office import Office

from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.workbench.planning.column_readings import dates_in_words, example_of

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="what is said of columns that are read")
LOANS = 'card,Datum,age,kind\nann,14.09.2026,"30,5",Novel\n'
AGE = {"column": "age", "start": 0, "stop": 100, "width": 25}
KIND = {"column": "kind", "values": ["Novel", "Film"], "other": True}
UNSAID = "column 'Datum' is text, and the spec does not say how its dates are written"


def with_loans(office: Office, text: str = LOANS, **fields: Any) -> None:
    """An opened office whose spec reads these loans."""
    office.opened()
    (office.folder / "data/loans.csv").write_text(text, encoding="utf-8")
    opened = ["open", "library", "--privacy-unit", "card", "--neighbours", "add_remove", "--total", "10"]
    assert office.run("ledger", *opened).code == 0
    write_loans(office, **fields)


def write_loans(office: Office, **fields: Any) -> None:
    told = {"source": "data/loans.csv", "csv_quote": '"', "privacy_unit": "card", "account": "library"}
    told |= {"axes": [AGE, KIND], "period": "week", "period_column": "Datum"}
    office.write_spec(**{**told, **fields})


def with_parquet(office: Office, kind: pa.DataType, **fields: Any) -> None:
    office.opened()
    office.write_records({"patient": ["ann"], "age": [3.0], "ward": ["surgery"], "day": pa.array([None], kind)})
    office.write_spec(period="week", period_column="day", **fields)


def test_dates_in_text_of_no_declared_form_are_refused_before_a_charge(office: Office) -> None:
    with_loans(office)
    for command in (["check"], ["check", "--explain"], ["release", "--period", "2026-09-14"]):
        refused = office.run(*command, "spec.yaml")
        assert refused.code == 1 and UNSAID in " ".join(refused.err.split()) and "`period_format: iso`" in refused.err
    error = office.release("--period", "2026-09-14", "--json").json["error"]
    assert error["code"] == "column_refused" and error["charged"] is False


def test_a_replay_and_a_charge_from_before_need_no_declared_form(office: Office) -> None:
    with_loans(office, period_format="iso")
    office.released("--period", "2026-09-14")
    digest = load_spec("spec.yaml").digest
    write_loans(office)
    assert load_spec("spec.yaml").digest == digest
    assert office.release("--period", "2026-09-14", "--json").json["replayed"]
    revised = office.release("--period", "2026-09-14", "--revise", "--reason", "more loans")
    assert revised.code == 1 and UNSAID in " ".join(revised.err.split())


def test_days_of_a_calendar_axis_in_text_need_their_form_too(office: Office) -> None:
    days = {"column": "Datum", "name": "day", "calendar": "day", "start": "2026-09-14", "stop": "2026-09-21"}
    with_loans(office, axes=[days], period="none", period_column=...)
    refused = office.release()
    assert refused.code == 1 and "Write `format: iso` beside `calendar`" in " ".join(refused.err.split())
    before = load_spec("spec.yaml").digest
    write_loans(office, axes=[{**days, "format": "iso"}], period="none", period_column=...)
    spec = load_spec("spec.yaml")
    assert spec.digest == before and spec.as_json()["axes"][0].get("format") is None
    assert office.run("check", "spec.yaml").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("written", ["%d.%m.%Y", "iso"])
def test_a_declared_format_brings_no_warning(office: Office, written: str) -> None:
    with_loans(office, period_format=written)
    assert "warnings" not in office.run("check", "spec.yaml", "--json").json
    assert office.release("--period", "2026-09-14").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "refused"), [(pa.string(), 1), (pa.date32(), 0)])
def test_of_other_files_the_type_of_the_column_decides(office: Office, kind: pa.DataType, refused: int) -> None:
    with_parquet(office, kind)
    assert office.run("check", "spec.yaml").code == refused
    assert office.release("--period", "2026-09-14").code == refused


def test_iso_is_the_default_said_aloud_for_dates_too_and_changes_no_digest(office: Office) -> None:
    with_parquet(office, pa.date32())
    before = load_spec("spec.yaml").digest
    office.released("--period", "2026-09-14")
    office.write_spec(period="week", period_column="day", period_format="iso")
    assert load_spec("spec.yaml").digest == before and load_spec("spec.yaml").text_format is None
    assert office.release("--period", "2026-09-14", "--json").json["replayed"]
    office.write_spec(period="week", period_column="day", period_format="%Y")
    assert load_spec("spec.yaml").digest != before


def test_check_says_of_each_column_how_it_is_read(office: Office) -> None:
    with_loans(office, period_format="iso")
    read = {one["column"]: one["read"] for one in office.run("check", "spec.yaml", "--json").json["columns_read"]}
    assert list(read) == ["card", "Datum", "age", "kind"]
    assert read["Datum"] == "ISO dates, as 2026-09-14; what does not parse falls into no period"
    assert "numbers written 3.5 (for 3,5 set `decimal_comma: true`)" in read["age"]
    assert "1.250 is 1.25" in read["age"] and '`thousands: "."`' in read["age"]
    assert read["age"].endswith("does not parse is dropped") and read["kind"].endswith("than declared goes to `other`")
    assert "`Datum` (period) is text: ISO dates" in office.run("check", "spec.yaml").out


def test_a_format_is_shown_by_a_date_that_it_writes() -> None:
    assert dates_in_words("%d.%m.%Y") == 'dates by "%d.%m.%Y", as 14.09.2026'
    assert dates_in_words("iso") == dates_in_words(None) == "ISO dates, as 2026-09-14"
    assert example_of("%Y-%m-%d %H:%M") == "2026-09-14 08:30" and example_of("%Y %g %n") == example_of("%Y %") == ""


def test_what_records_hold_changes_nothing_that_check_and_new_say(office: Office) -> None:
    """Check tells the header line of a CSV file, and the types of columns of others."""
    with_loans(office, period_format="iso")
    said = [office.run("check", "spec.yaml", *more).out for more in ([], ["--json"], ["--explain"])]
    drafted = office.run("new", "loans", "--from", "data/loans.csv").out
    secret = LOANS.splitlines()[0] + "\ncanary,2026-09-14,99,canary\n" * 50
    (office.folder / "data/loans.csv").write_text(secret, encoding="utf-8")
    Path("loans.yaml").unlink()
    assert said == [office.run("check", "spec.yaml", *more).out for more in ([], ["--json"], ["--explain"])]
    assert drafted == office.run("new", "loans", "--from", "data/loans.csv").out
    assert "canary" not in "".join([*said, drafted, Path("loans.yaml").read_text(encoding="utf-8")])


def test_a_csv_that_is_not_allowed_yet_is_told_by_what_the_spec_declares(office: Office) -> None:
    with_loans(office)
    (office.folder / "data/loans.csv").write_text("no,such,header\n", encoding="utf-8")
    told = {"source": "data/other.csv", "privacy_unit": "card", "axes": [KIND], "period": "week"}
    office.write_attributes_alone(**told, period_column="Datum")
    assert UNSAID in " ".join(office.run("check", "spec.yaml").err.split())
    office.write_attributes_alone(**told, period_column="Datum", period_format="iso")
    told = office.run("check", "spec.yaml", "--json").json
    assert told["source_columns"].startswith("not compared")
    assert [one["column"] for one in told["columns_read"]] == ["card", "Datum", "kind"]


def test_a_query_gives_columns_types_of_their_own(office: Office) -> None:
    with_loans(office)
    (office.folder / "rows.sql").write_text("SELECT card, kind, try_strptime(Datum, '%d.%m.%Y') AS Datum FROM source\n")
    told = {"source": "data/loans.csv", "csv_quote": '"', "privacy_unit": "card", "account": "library"}
    told |= {"axes": [KIND], "period": "week", "period_column": "Datum", "source_sql": "rows.sql"}
    office.write_spec(**told)
    facts = office.run("check", "spec.yaml", "--json").json
    read = {one["column"]: one for one in facts["columns_read"]}
    assert read["Datum"]["type"] == "TIMESTAMP" and "warnings" not in facts


def test_a_draft_always_asks_how_dates_in_text_are_written(office: Office) -> None:
    (office.folder / "data/loans.csv").write_text(LOANS, encoding="utf-8")
    drafted = office.run("new", "loans", "--from", "data/loans.csv", "--json").json
    assert "period_format" in drafted["to_decide"] and "period_column: Datum" in Path("loans.yaml").read_text()
    assert "must say how a date is written" in office.run("check", "loans.yaml").err
    office.write_records({"day": pa.array([], pa.date32()), "n": pa.array([], pa.int64())}, "data/day.parquet")
    drafted = office.run("new", "days", "--from", "data/day.parquet")
    assert "period_format: iso" in Path("days.yaml").read_text() and "day is of type 'date32[day]'" in drafted.out


MADE = [
    {"column": "noted", "first_of": [{"column": "Datum", "format": "%d.%m.%Y"}, {"column": "seen"}]},
    {"column": "stay", "days_between": ["noted", "left on"]},
    {"column": "letter", "first_letters": 1, "of": "kind"},
]


def test_check_says_how_dates_are_read_that_columns_are_made_of(office: Office) -> None:
    """Each by its type alone, and how to declare another form where none is declared."""
    stay = {"column": "stay", "start": 0, "stop": 100, "width": 25}
    text = LOANS.replace("age,kind", "seen,left on,kind").replace('"30,5"', "2026-09-14,2026-09-15")
    with_loans(office, text, derive=MADE, axes=[stay], period="none", period_column=None)
    readings = {one["column"]: one for one in office.run("check", "spec.yaml", "--json").json["columns_read"]}
    assert readings["Datum"]["read"] == 'dates by "%d.%m.%Y", as 14.09.2026; what does not parse is null'
    assert '(for dates written otherwise, write `{column: seen, format: "%d.%m.%Y"}`)' in readings["seen"]["read"]
    otherwise = 'derive `{column: day, first_of: [{column: "left on", format: "%d.%m.%Y"}]}` before, and use that'
    assert readings["left on"]["read"].startswith("ISO dates") and otherwise in readings["left on"]["read"]
    assert readings["left on"]["use"] == "derives stay"
    assert not {"noted", "kind"} & readings.keys()
    said = " ".join(office.run("check", "spec.yaml").out.split())
    assert "ISO dates, as 2026-09-14, where no `format` says otherwise" in said


@pytest.mark.parametrize(("kind", "read"), [(pa.string(), True), (pa.date32(), False)], ids=["text", "dates"])
def test_of_a_source_the_types_tell_which_dates_are_text(office: Office, kind: pa.DataType, read: bool) -> None:
    weekday = {"column": "weekday", "start": 1, "stop": 8, "width": 1}
    with_parquet(office, kind)
    office.write_spec(derive=[{"column": "weekday", "part": "weekday", "of": "day"}], axes=[weekday])
    told = office.run("check", "spec.yaml", "--json").json["columns_read"]
    assert [one["use"] for one in told if one["column"] == "day"] == ["derives weekday"] * read
    assert "their dates in text: ISO dates, as 2026-09-14 " in " ".join(office.run("check", "spec.yaml").out.split())
