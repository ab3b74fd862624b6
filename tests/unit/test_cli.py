"""The command line: help for newcomers, JSON for scripts, one message a failure, exit codes that mean something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from typing import Any

import pytest
from office import OPEN_HEALTH, RECORDS, Office

from dphist_pipeline import mechanisms
from dphist_pipeline.cli import app
from dphist_pipeline.cli.commands import HOMES, load
from dphist_pipeline.releasing import publisher

pytestmark = pytest.mark.draws_alike

STATEMENT = {"account", "privacy_unit", "neighbours", "renews", "total", "spent", "spent_ever", "left", "charges"} | {
    *("signatures", "decisions", "to_be_signed", "shared_with")
}
CHARGE = {"release", "period", "revision", "epsilon", "charged_at", "state", "reason", "notes", "folder", "host"}
CHECKED = {
    "release",
    "mechanism",
    "axes",
    "cells",
    "privacy_unit",
    "neighbours",
    "sensitivity",
    "epsilon",
    "reliability",
} | {*("account", "period", "digest", "source_columns", "columns_read", "remarks")}
LONG_NAME = "wards_" + "x" * 57
USAGE = 2


def test_check_tells_the_sensitivity_of_one_unit_in_the_place_of_another(office: Office) -> None:
    office.opened().write_attributes_alone(neighbours="substitute")
    ran = office.run("check", "spec.yaml", "--json")
    assert ran.code == 0 and ran.json["sensitivity"] == 4


def test_a_message_with_a_name_from_a_file_does_not_steer_the_terminal(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_run", lambda: ("there is no 'a\x1b[2Jb'", 1, {}))
    ran = office.run("check", "spec.yaml", "--json")
    assert ran.code == 1 and "\x1b" not in ran.err and r"a\x1b[2Jb" in ran.err
    assert ran.json["error"]["message"] == r"there is no 'a\x1b[2Jb'"


@pytest.mark.parametrize("command", [[], ["release"], ["ledger", "allow"]], ids=str)
def test_help_fits_eighty_columns(office: Office, command: list[str]) -> None:
    ran = office.run(*command, "--help")
    assert (ran.code, ran.err) == (0, "") and max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("group", [[], ["ledger"]])
def test_a_bare_command_shows_its_help(office: Office, group: list[str]) -> None:
    bare, asked = office.run(*group), office.run(*group, "--help")
    assert (bare.code, bare.out.strip(), bare.err) == (USAGE, asked.out.strip(), "")


@pytest.mark.slow
def test_json_is_what_scripts_rely_on(office: Office) -> None:
    made = office.run("init", "--json").json
    assert set(made) == {"store", "id", "ledger"} and made["store"] == str(office.store)
    opened = office.run("ledger", *OPEN_HEALTH, "--json").json
    assert set(opened) == STATEMENT and (opened["total"], opened["left"], opened["charges"]) == ("10", "10", [])
    office.write_spec()
    office.write_records()
    checked = office.run("check", "spec.yaml", "--json").json
    assert set(checked) == CHECKED
    assert (checked["cells"], checked["axes"], checked["sensitivity"]) == (21, {"age": 7, "ward": 3}, 2)
    for replayed in (False, True):
        released = office.released("--json").json
        always = {"release", "period", "revision", "replayed", "path", "epsilon", "account"}
        assert set(released) - {"total_holds_zero", "compared", "warnings"} == always
        assert (released["replayed"], released["path"]) == (replayed, str(office.published()))
        assert set(released["account"]) == STATEMENT
    revised = office.released("--revise", "--reason", "late records", "--json").json
    assert (revised["revision"], revised["replayed"], revised["account"]["spent"]) == (2, False, "1")
    raised = office.run("ledger", "raise", "health", "--total", "31/3", "--reason", "more weeks", "--json").json
    assert (raised["total"], raised["left"]) == ("31/3", "28/3")
    (shown,) = office.run("ledger", "show", "--json").json
    assert shown == raised == office.run("ledger", "show", "health", "--json").json[0]
    assert [set(charge) for charge in shown["charges"]] == [CHARGE] * 2
    verified = office.run("ledger", "verify", "--json").json
    counted = {"entries": len(office.entries()), "publications": 2, "missing": [], "witnessed": True}
    assert verified == {**counted, "ledger": made["ledger"]}
    cards = {name: told["card"] for name, told in office.run("mechanisms", "--json").json.items()}
    assert cards == mechanisms()
    alone = {"card": mechanisms.card("geometric"), "settings": []}
    assert office.run("mechanisms", "geometric", "--json").json == {"geometric": alone}


@pytest.mark.slow
def test_with_json_nothing_else_is_said(office: Office) -> None:
    released = office.opened().released("--json")
    assert (released.err, released.json["release"]) == ("", "wards")


@pytest.mark.slow
def test_progress_goes_to_standard_error_and_the_outcome_to_standard_output(office: Office) -> None:
    first, again = office.opened().released(), office.released()
    steps = ["reading", "bounding", "charging", "releasing", "publishing", "updating"]
    assert re.findall(r"· (\w+)", first.err) == steps
    assert "Published: wards, revision 1" in first.out and "epsilon 0.5; account health has 9.5 left of 10" in first.out
    assert (again.err, "Already published" in again.out, "nothing now" in again.out) == ("", True, True)


@pytest.mark.slow
def test_what_was_published_can_be_asked_as_it_says(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened()
    monkeypatch.chdir(office.folder)
    programs = office.folder / "programs"
    monkeypatch.setenv("PATH", str(programs))
    asked, cells = office.released().out.splitlines()[-2:]
    assert cells == "Every cell:   dphist export wards --to csv"  # no program `duckdb` is here
    assert office.run(*cells.split()[3:]).code == 0
    programs.mkdir()
    (programs / "duckdb").touch(mode=0o755)
    asked, query = office.released().out.splitlines()[-2:]
    assert asked == "Ask it:       dphist answer wards"
    assert query == "With DuckDB:  duckdb -readonly store/public/catalog.duckdb -c 'FROM wards'"
    monkeypatch.chdir("/")
    asked = office.released("--store", str(office.store)).out.splitlines()[-2]
    assert asked == f"Ask it:       dphist answer wards --store {office.store.relative_to('/')}"
    assert office.run(*asked.split()[3:]).code == 0


@pytest.mark.slow
def test_an_answer_counts_in_the_words_of_the_publication(office: Office) -> None:
    office.opened().write_spec(counted="call-outs [red]")
    office.released()
    assert " call-outs [red], estimated over " in office.run("answer", "wards").out


@pytest.mark.slow
def test_the_period_that_was_published_is_the_one_to_ask(office: Office) -> None:
    office.opened().write_records({**RECORDS, "day": ["2026-01-05"] * 4})
    office.write_spec(period="week", period_column="day", period_format="iso")
    asked = office.released("--period", "2026-01-05").out.splitlines()[-2]
    assert "dphist answer wards --period 2026-01-05" in asked


@pytest.mark.slow
def test_paths_and_names_are_never_cut_or_wrapped(office: Office) -> None:
    office.opened().write_spec(release=LONG_NAME)
    path = office.published(LONG_NAME)
    assert f"  files  {path}\n" in office.released().out and len(str(path)) > 80
    assert re.search(rf"release +{LONG_NAME}\n", office.run("check", "spec.yaml").out)
    shown = office.run("ledger", "show").out
    assert "…" not in shown and "wards_" in shown and shown.count("x") >= LONG_NAME.count("x")


@pytest.mark.slow
def test_a_reason_is_printed_as_it_was_written(office: Office) -> None:
    office.with_release()
    office.released("--revise", "--reason", "[red]late[/] [bold")
    assert "[red]late[/] [bold" in re.sub(r"\s+", " ", office.run("ledger", "show").out)


def test_the_card_of_a_mechanism_is_printed_as_it_is(office: Office) -> None:
    ran = office.run("mechanisms", "geometric")
    assert (ran.code, ran.out) == (0, mechanisms.card("geometric") + "\n")
    assert re.search("^geometric +add discrete Laplace noise to every cell", office.run("mechanisms").out, re.MULTILINE)


def test_a_misspelled_mechanism_is_suggested(office: Office) -> None:
    ran = office.run("mechanisms", "geometrc")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: there is no mechanism 'geometrc'. Did you mean 'geometric'?\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["release", "spec.yaml", "--revise"], "--reason TEXT together. See `dphist release --help`."),
        (["release", "spec.yaml", "--reason", "late"], "give --revise and --reason TEXT together"),
        (["release", "spec.yaml", "--revise", "--reason", " "], "give --revise and --reason TEXT together"),
        (["relese"], "no such command 'relese'. Did you mean 'release', 'rehearse'?"),
        (["release"], "missing argument 'SPEC'. See `dphist release --help`."),
        (["release", "spec.yaml", "--bogus"], "--bogus"),
        (["ledger", "open", "x", "--total", "3"], "--privacy-unit, --neighbours: must be given, or --for SPEC"),
        (["ledger", *OPEN_HEALTH[:-1], "lots"], "--total: must be a number such as 0.5"),
        (["ledger", *OPEN_HEALTH[:-3], "cousins", "--total", "1"], "--neighbours: must be add_remove or substitute"),
        (["ledger", *OPEN_HEALTH, "--renews", "monthly"], "--renews: an account renews `yearly` or not at all"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2(office: Office, words: list[str], says: str) -> None:
    office.opened()
    before = office.state()
    ran = office.run(*words)
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.startswith("error: ") and ran.err.count("\n") == 1 and says in ran.err
    assert office.state() == before


def raises(error: BaseException) -> Any:
    def instead(*_: object, **__: object) -> None:
        raise error

    return instead


@pytest.mark.slow
def test_an_interrupt_is_calm_and_exits_130(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "write_release", raises(KeyboardInterrupt()))
    ran = office.opened().release()
    assert ran.code == 130
    assert ran.err.splitlines()[-1].startswith("error: interrupted. Nothing is lost: run the same command again")
    monkeypatch.undo()
    monkeypatch.chdir(office.folder)
    assert office.released("--json").json["account"]["spent"] == "1/2"


def test_an_unexpected_failure_shows_its_kind_and_not_its_words(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "write_release", raises(ZeroDivisionError("patient 4711")))
    ran = office.opened().release()
    assert ran.code == 1 and "4711" not in ran.out + ran.err
    assert "something unexpected failed (ZeroDivisionError; its message is withheld" in ran.err
    monkeypatch.setattr(publisher, "write_release", raises(OSError(28, "patient 4711", "4711")))
    ran = office.release()
    assert ran.code == 1 and "4711" not in ran.out + ran.err
    assert "(OSError, No space left on device; its message is withheld" in ran.err


def test_where_records_may_be_seen_the_whole_failure_can_be_too(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "write_release", raises(ZeroDivisionError("patient 4711")))
    monkeypatch.setenv("DPHIST_DEBUG", "1")
    with pytest.raises(ZeroDivisionError, match="patient 4711"):
        office.opened().release()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["mechanisms"], ["check", "spec.yaml"]])
def test_a_terminal_without_unicode_is_served_too(office: Office, words: list[str]) -> None:
    office.write_spec()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", "from dphist_pipeline.cli.app import main; main()", *words]
    done = subprocess.run(command, cwd=office.folder, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_help_does_not_wait_for_engines() -> None:
    slow = ["duckdb", "polars", "numba", "dagster", "sqlalchemy", "pydantic", "numpy", "pyarrow"]
    script = (
        "import sys\nfrom dphist_pipeline.cli.app import app\napp(['--help'], standalone_mode=False)\n"
        f"print([name for name in {slow} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.endswith(b"[]\n")


@pytest.mark.parametrize("name", HOMES)
def test_the_help_of_all_commands_says_what_that_of_each_says(name: str) -> None:
    told = load(name).help
    assert " ".join(told.split("\n\n")[0].split()) == HOMES[name].summary


@pytest.mark.slow
def test_the_store_may_stand_before_the_command_and_the_version_is_told(office: Office) -> None:
    office.with_release()
    before = office.run("--store", office.store, "ledger", "show", "--json")
    after = office.run("ledger", "show", "--json", "--store", office.store)
    assert before.code == 0 and before.json == after.json
    assert office.run("ledger", "show", "--store", office.folder / "nowhere").code == 1, "the last one named counts"
    told = office.run("--version")
    assert told.code == 0 and told.out.strip() == f"dphist {version('dphist-pipeline')}"


def test_check_looks_at_the_files_of_the_period_that_is_named(office: Office) -> None:
    office.opened()
    monthly = {
        "period": "month",
        "period_column": "admitted_on",
        "period_format": "iso",
        "source": "data/{year}-{month}.parquet",
    }
    office.write_spec(**monthly)
    office.write_records({**RECORDS, "admitted_on": [date(2026, 3, 5)] * 4}, "data/2026-03.parquet")
    check = ("check", office.folder / "spec.yaml", "--json", "--store", office.store)
    found = [office.run(*check, "--period", month).json["source_columns"] for month in ("2026-03-01", "2026-04-01")]
    assert found[0] == "found in the source" and "2026-04.parquet" in found[1]
    assert office.run(*check, "--period", "2026-03-02").code == 1
