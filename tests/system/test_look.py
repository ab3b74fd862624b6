"""`dphist look`: exact numbers reach an operator's terminal, and nothing else."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pty
import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import duckdb
import pytest
from error_codes import coded
from office import Office, Ran
from pseudo_terminal import shown_on

from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.cli import app as cli
from dphist_pipeline.confidential import looking
from dphist_pipeline.confidential.looking import Terminal
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.draws_alike

# 7 rows of 5 people: a unique spelling, an age that is no number, a date that is no date, and a row of nobody.
ODD = "Zyxwv-ward"
DATES = ["2026-03-02", "2026-03-03", "2026-03-03", "2026-03-04", "2026-03-05", "14.03.2026", "2026-03-06"]
RECORDS = {
    "patient": ["ann", "bob", "bob", "bob", "cid", "dan", None],
    "age": [3.0, 30.0, 99.5, 30.0, None, 5.0, 6.0],
    "ward": ["surgery", "medicine", "surgery", "medicine", ODD, "surgery", "surgery"],
    "day": DATES,
}
WEEKLY = {"period": "week", "period_column": "day", "period_format": "iso", "max_rows_per_unit": 1}
TOLD = [
    "rows of the source: 7",
    "day parses from 2026-03-02 to 2026-03-06",
    "day does not parse: 1",
    "in the period 2026-03-02: 6",
    "of these without a privacy unit: 1",
    "rows in the period, of a known unit: 5",
    "axis age: declared 4, undeclared 0, not parsed 1",
    "axis ward: declared 4, undeclared 1, not parsed 0",
    f"undeclared: '{ODD}' 1",
    "units with 1 rows in declared cells: 2",
    "units with 3 rows in declared cells: 1",
    "rows that the bound of 1 cuts: 2",
    "empty cells: 18 of 21",
]


@pytest.fixture
def week(office: Office) -> Office:
    office.opened().write_records(RECORDS)
    office.write_spec(**WEEKLY)
    return office


def look(office: Office, *more: str) -> tuple[Ran, str]:
    """Runs `dphist look` with a pseudo-terminal as its standard output; gives what the terminal showed, too."""
    ours, theirs = pty.openpty()
    err, words = io.StringIO(), ["dphist", "look", str(office.folder / "spec.yaml"), "--period", "2026-03-02", *more]
    code = 0
    with office.witnessed(), mock.patch.object(sys, "argv", words), contextlib.redirect_stderr(err):
        try:
            with open(theirs, "w") as terminal, contextlib.redirect_stdout(terminal):  # noqa: PTH123
                cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Ran(code, "", err.getvalue()), shown_on(ours)


def looks(office: Office) -> list[str]:
    with office.witnessed():
        return [look.reason for look in Store.open(office.store).ledger().looks("health")]


def files(office: Office) -> set[Path]:
    return {file.relative_to(office.folder) for file in office.folder.rglob("*") if file.is_file()}


def test_a_terminal_shows_what_a_release_would_read_exactly(week: Office) -> None:
    ran, shown = look(week)
    assert (ran.code, ran.err) == (0, "")
    assert [line for line in TOLD if line not in shown] == []
    assert looks(week) == [""]


@pytest.mark.slow
def test_bytes_of_another_encoding_are_counted_and_their_cause_is_named(office: Office) -> None:
    office.opened()
    lines = b"ann,3,s\xfcrgery,2026-03-02\nb\xf6b,30,medicine,2026-03-03\ncid,5,medicine,2026-03-03\n"
    (office.folder / "data").mkdir(exist_ok=True)
    (office.folder / "data/a.csv").write_bytes(b"patient,age,ward,day\n" + lines)
    office.write_spec(**WEEKLY, source="data/*.csv")
    assert office.run("ledger", "allow", "health", "--source", "data/*.csv").code == 0
    ran, shown = look(office)
    assert (ran.code, ran.err) == (0, "")
    told = ["rows of the source: 3", "of these without a privacy unit: 1", "undeclared: 's\ufffdrgery' 1"]
    told += ["rows with bytes that are no text in utf-8: 2", "`csv_encoding: windows-1252`"]
    assert [line for line in told if line not in shown] == []


def test_nothing_but_a_terminal_is_shown_exact_numbers(week: Office, tmp_path: Path) -> None:
    ran = week.run("look", week.folder / "spec.yaml", "--period", "2026-03-02")
    assert (ran.code, looks(week)) == (1, []) and "on a terminal only" in ran.err and not ran.out
    with (tmp_path / "out").open("w") as file, pytest.raises(Refused, check=coded("no_terminal")):
        Terminal(file.fileno())
    reading, writing = os.pipe()
    with pytest.raises(Refused, check=coded("no_terminal")):
        Terminal(writing)
    os.close(reading), os.close(writing)


def test_it_has_no_output_for_scripts(week: Office) -> None:
    assert look(week, "--json")[0].code == 2
    assert looks(week) == []


def test_whoever_has_no_operators_key_sees_nothing(
    week: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(tmp_path / "none"))
    ran, shown = look(week)
    assert (ran.code, shown) == (1, "")
    assert looks(week) == []


@pytest.mark.slow
def test_after_a_first_charge_a_look_says_why(week: Office) -> None:
    week.released("--period", "2026-03-02")
    ran, shown = look(week)
    assert (ran.code, shown, looks(week)) == (1, "", []) and "reason" in ran.err
    assert look(week, "--reason", "dates of another form")[0].code == 0
    assert looks(week) == ["dates of another form"]


@pytest.mark.slow
def test_audit_card_and_report_of_a_later_release_repeat_it(week: Office) -> None:
    look(week)
    week.released("--period", "2026-03-02")
    (folder,) = week.store.glob("public/wards/period=*/revision=*")
    audit, card = ((folder / name).read_text() for name in ("audit.json", "card.html"))
    assert '"looked"' in audit and "Somebody looked before this release was charged" in card
    assert "looked at exact numbers" in week.run("ledger", "report", "--json").out
    assert week.run("ledger", "verify").code == 0


@pytest.mark.slow
def test_a_release_without_a_look_says_nothing_of_one(week: Office) -> None:
    week.released("--period", "2026-03-02")
    (folder,) = week.store.glob("public/wards/period=*/revision=*")
    assert "ooked" not in (folder / "audit.json").read_text()
    assert "Somebody looked" not in (folder / "card.html").read_text()


def test_no_file_log_entry_or_error_holds_what_was_seen(
    week: Office, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = {name: values * 111_731 for name, values in RECORDS.items()}
    week.write_records(records)
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HOME", str(week.folder / "home"))
    before = files(week)
    ran, shown = look(week)
    assert ran.code == 0 and "782,117" in shown and ODD in shown, ran.err
    kept = [week.folder / file for file in files(week) if file.suffix != ".parquet"]
    texts = [file.read_bytes() for file in [*kept, week.witness]]
    said = [ran.err.encode(), *(record.getMessage().encode() for record in caplog.records)]
    # Digits within an identifier, a digest or the parts of a second are not the number of rows.
    seen = re.compile(rb"(?<![\w.+/-])782,?117(?![\w+/-])|" + ODD.encode())
    assert [match for text in [*texts, *said] for match in seen.findall(text)] == []
    assert files(week) - before <= {file for file in files(week) if file.parts[0] in ("home", "store")}
    assert not [*week.store.glob("confidential/runs/**/*.parquet"), *week.store.glob("confidential/runs/**/*.np?")]


def test_an_error_after_counting_holds_nothing_of_the_records(week: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise duckdb.InvalidInputException(f"could not convert {ODD}")

    monkeypatch.setattr(looking, "_lines", failing)
    ran, shown = look(week)
    assert ran.code == 1 and ODD not in ran.err + shown
    assert looks(week) == [""]  # noted first


def test_spellings_cannot_steer_the_terminal(week: Office) -> None:
    week.write_records({**RECORDS, "ward": [*RECORDS["ward"][:4], "\x1b[2Jx\u202e", *RECORDS["ward"][5:]]})
    shown = look(week)[1]
    assert "\x1b" not in shown and "\u202e" not in shown and "[2Jx" in shown


def test_rows_in_a_file_of_another_period_are_counted_for_the_operator(office: Office) -> None:
    office.opened().write_spec(**WEEKLY, source="data/{period}.parquet")
    dates = ["2026-02-27", "2026-03-02", "2026-03-03", "2026-03-09", "2026-03-05", "14.03.2026", "2026-03-06"]
    office.write_records({**RECORDS, "day": dates}, "data/2026-03-02.parquet")
    ran, shown = look(office)
    assert (ran.code, ran.err) == (0, "") and "outside the period, in files that were read for it: 2\r\n" in shown
    office.write_spec(**WEEKLY)
    assert "outside the period" not in look(office)[1]


def test_no_rows_at_all_are_shown_as_none(week: Office) -> None:
    week.write_records({name: values[:1] for name, values in RECORDS.items()})
    ran, shown = look(week, "--period", "2026-02-02")
    assert ran.code == 0 and "in the period 2026-02-02: 0" in shown and "empty cells: 21 of 21" in shown


def test_no_line_can_steer_the_terminal_whatever_it_holds() -> None:
    ours, theirs = pty.openpty()
    Terminal(theirs).write(iter(["a\x1b[2Jb\u202ec"]))
    os.close(theirs)
    shown = os.read(ours, 100).decode()
    os.close(ours)
    assert shown.split() == ["a\\x1b[2Jb\\u202ec"]


def test_bins_without_an_end_are_told_in_words() -> None:
    ages = BinnedAxis("age", "age", (18.0, 65.0), below=True, above=True)
    assert [looking._label(ages, place) for place in range(3)] == ["below 18", "18 to 65", "65 or more"]
    right = replace(ages, closed="right")
    assert [looking._label(right, place) for place in range(3)] == ["18 or less", "18 to 65", "above 65"]
