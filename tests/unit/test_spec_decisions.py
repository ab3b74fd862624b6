"""`dphist ledger open --for SPEC` and `allow --for SPEC`: decisions taken from a spec, shown and signed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from office import Office, Ran
from refusing import check_changes_nothing

from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision
from dphist_pipeline.ledger.entries import Account
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.draws_alike

OPEN = ["ledger", "open", "--for", "spec.yaml", "--total", "12"]
ALLOW = ["ledger", "allow", "--for", "spec.yaml"]
KIND = {"column": "kind", "values_from": "codes/kinds.csv", "values_column": "code", "other": True}
LOANS: dict[str, Any] = {"source": "data/loans.csv", "csv_delimiter": ";", "csv_quote": '"', "decimal_comma": True}
LOANS |= {"privacy_unit": "card", "account": "library", "axes": [KIND], "unit_normalise": ["trim", "lower"]}


@pytest.fixture(autouse=True)
def library(office: Office) -> Office:
    """A store in which nothing is decided, loans as a spreadsheet writes them, and a spec."""
    for folder, text in (("data/loans.csv", "card;kind\nann;Novel\n"), ("codes/kinds.csv", "code\nNovel\nFilm\n")):
        Path(folder).parent.mkdir(exist_ok=True)
        Path(folder).write_text(text, encoding="utf-8")
    office.undecided().write_attributes_alone(**LOANS)
    return office


def digest(office: Office, *words: str) -> str:
    shown = office.run(*words, "--json")
    assert shown.code == 1 and shown.json["signed"] is False
    found: str = shown.json["digest"]
    return found


def signed(office: Office, *words: str) -> Ran:
    ran = office.run(*words, "--yes", digest(office, *words))
    assert ran.code == 0, ran.err
    return ran


def decided(office: Office) -> tuple[list[Account], list[Decision]]:
    with office.witnessed():
        ledger = Store.open(office.store).ledger()
        return ledger.accounts(), [*ledger.decisions("library"), *ledger.decisions(EVERYWHERE)]


def test_what_is_signed_is_what_the_options_would_have_signed(office: Office) -> None:
    signed(office, *OPEN)
    accounts, made = decided(office)
    other = Office(office.folder.parent / "other")
    with other.witnessed():
        store = ["--store", str(other.store)]
        other.run("init", *store)
        terms = ["library", "--privacy-unit", "card", "--neighbours", "add_remove", "--total", "12"]
        read = ["--source", "data/loans.csv", "--csv-delimiter", ";", "--csv-quote", '"', "--decimal-comma"]
        forms = ["--unit-normalise", "trim,lower"]
        assert other.run("ledger", "open", *terms, *read, *forms, *store).code == 0
        assert other.run("ledger", "allow", "--code-lists", str(office.folder / "codes"), *store).code == 0
    (theirs,), expected = decided(other)
    assert [vars(one) | {"store_id": ""} for one in accounts] == [vars(theirs) | {"store_id": ""}]
    mine = [(one.account, one.kind, one.name, one.reading, one.folder, one.also_of) for one in made]
    assert mine == [(one.account, one.kind, one.name, one.reading, one.folder, one.also_of) for one in expected]
    assert made[0].reading is not None and made[0].reading.unit_kinds == ("text",)
    assert office.run("check", "spec.yaml").code == 0 and office.release().code == 0


def test_it_is_shown_in_words_and_nothing_is_decided_before_somebody_signs(office: Office) -> None:
    before, shown = office.state(), office.run(*OPEN)
    assert shown.code == 1 and "nothing was decided yet. To sign exactly this" in shown.err
    assert office.state() == before
    for told in ("card (add_remove)", "epsilon 12 in all", "CSV with ; between fields", "numbers written 3,5"):
        assert told in shown.out
    assert f"{office.folder}/codes: public" in shown.out and f"--yes {digest(office, *OPEN)}" in shown.err
    assert decided(office) == ([], [])


def test_who_signs_reads_that_rows_tell_of_their_own_unit_alone(office: Office) -> None:
    shown = office.run(*OPEN)
    assert "that a row tells of its own card alone: no axis is made of other people's rows" in shown.out
    assert "the name speaks" not in shown.out
    office.write_attributes_alone(**{**LOANS, "axes": [{"column": "household_size", "values": ["1", "2"]}]})
    assert (
        "household_size: the name speaks of what is computed from the rows of several people" in office.run(*OPEN).out
    )


def test_a_folder_of_accepted_spellings_is_shown_as_one_of_code_lists(office: Office) -> None:
    Path("spellings").mkdir()
    Path("spellings/kinds.csv").write_text("spelling,value\nRoman,Novel\n", encoding="utf-8")
    office.write_attributes_alone(**{**LOANS, "axes": [{**KIND, "spellings": "spellings/kinds.csv"}]})
    shown = office.run(*OPEN).out
    assert f"{office.folder}/codes, {office.folder}/spellings: public" in " ".join(shown.split())


@pytest.mark.parametrize(
    "change",
    [
        {"privacy_unit": ["card", "kind"]},
        {"axes": [{"column": "kind", "values": ["Novel"]}]},
        {"account": "other"},
    ],
)
def test_a_spec_that_changed_since_it_was_shown_is_not_signed(office: Office, change: dict[str, Any]) -> None:
    before = digest(office, *OPEN)
    office.write_attributes_alone(**{**LOANS, **change})
    check_changes_nothing(office, lambda: office.run(*OPEN, "--yes", before), "was shown for another decision")
    assert digest(office, *OPEN) != before


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--total", "13"], ["--renews", "yearly"], ["--signatures", "2"]])
def test_other_terms_are_another_decision(office: Office, more: list[str]) -> None:
    asked = [*OPEN, *more]
    check_changes_nothing(office, lambda: office.run(*asked, "--yes", digest(office, *OPEN)), "another decision")


def test_words_for_people_are_no_part_of_the_decision(office: Office) -> None:
    before = digest(office, *OPEN)
    office.write_attributes_alone(**LOANS, title="Loans", epsilon="1/4")
    assert digest(office, *OPEN) == before


@pytest.mark.parametrize(("answer", "accounts"), [(True, 1), (False, 0)])
def test_a_terminal_is_asked_and_only_yes_signs(
    office: Office, monkeypatch: pytest.MonkeyPatch, answer: bool, accounts: int
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("dphist_pipeline.cli.operate.ledger.at_a_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda what, default: asked.append(what) or (answer and not default))
    assert office.run(*OPEN).code == (0 if answer else 1) and asked == ["Sign this?"]
    assert len(decided(office)[0]) == accounts


def test_without_a_terminal_nobody_is_asked(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: pytest.fail("asked"))
    assert not sys.stdout.isatty() and office.run(*OPEN).code == 1


@pytest.mark.slow
def test_allow_takes_what_is_missing_from_the_spec_and_no_more(office: Office) -> None:
    opened = ["library", "--privacy-unit", "card", "--neighbours", "add_remove", "--total", "12"]
    assert office.run("ledger", "open", *opened).code == 0
    signed(office, *ALLOW)
    assert [one.kind for one in decided(office)[1]] == ["source", "code_lists"]
    assert "decided before; nothing was entered" in office.run(*ALLOW).out
    assert len(decided(office)[1]) == 2 and office.release().code == 0
    office.write_attributes_alone(**{**LOANS, "csv_quote": ""})
    signed(office, *ALLOW, "library")
    assert [one.kind for one in decided(office)[1]] == ["source", "source", "code_lists"]


@pytest.mark.parametrize("change", [{"privacy_unit": "kind", "unit_normalise": []}, {"neighbours": "substitute"}])
def test_a_spec_that_protects_others_than_the_account_is_not_allowed(office: Office, change: dict[str, Any]) -> None:
    signed(office, *OPEN)
    office.write_attributes_alone(**{**LOANS, **change})
    check_changes_nothing(office, lambda: office.run(*ALLOW), "account library: protects card (add_remove)")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ledger", "open", "health", *OPEN[2:]], "the spec charges library; name that, or none"),
        ([*OPEN, "--neighbours", "add_remove"], "says these already; leave out --neighbours"),
        ([*OPEN, "--csv-quote", "'", "--hive"], "says these already; leave out --csv-quote, --hive"),
        ([*ALLOW, "--code-lists", "codes"], "says these already; leave out --code-lists"),
        ([*ALLOW], "holds no account 'library'"),
        (["ledger", "open", "x", "--total", "1", "--yes", "a"], "goes together with --for SPEC only"),
        (["ledger", "open", "x", "--total", "1", "--privacy-unit", "p"], "--neighbours: must be given, or --for SPEC"),
        (["ledger", "open", "--for", "none.yaml", "--total", "1"], "none.yaml"),
    ],
)
def test_what_does_not_go_together_is_refused(office: Office, words: list[str], says: str) -> None:
    check_changes_nothing(office, lambda: office.run(*words), says)


def test_an_open_account_is_not_opened_again(office: Office) -> None:
    signed(office, *OPEN)
    check_changes_nothing(office, lambda: office.run(*OPEN), "is open already; for what this spec may read")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("data/kinds.csv", "data: holds files of the spec's source"),
        ("kinds.csv", "holds files of the spec's source"),
        ("../elsewhere/kinds.csv", "is no file below a folder that the ledger declares public"),
        ("store/kinds.csv", "is no file below a folder that the ledger declares public"),
    ],
)
def test_a_list_among_records_in_the_store_or_elsewhere_is_no_list(office: Office, file: str, says: str) -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("code\nNovel\n", encoding="utf-8")
    office.write_attributes_alone(**{**LOANS, "axes": [{**KIND, "values_from": file}]})
    check_changes_nothing(office, lambda: office.run(*OPEN), says)


def test_records_named_as_a_code_list_are_refused_without_a_word_of_them(office: Office) -> None:
    Path("codes/loans.csv").write_text("card;code\ncanary;canary\n", encoding="utf-8")
    listed = {**KIND, "values_from": "codes/loans.csv", "values_column": "code"}
    office.write_attributes_alone(**{**LOANS, "source": "codes/loans.csv", "axes": [listed]})
    ran = office.run(*OPEN)
    assert ran.code == 1 and "canary" not in ran.out + ran.err and decided(office) == ([], [])


def test_what_needs_a_reason_is_told_and_not_decided(office: Office) -> None:
    Path("rows.sql").write_text("SELECT a.card, a.kind FROM source AS a JOIN source AS b ON a.card = b.card\n")
    office.write_attributes_alone(**LOANS, source_sql="rows.sql")
    ran = signed(office, *OPEN)
    assert "dphist ledger allow library --query rows.sql --reason TEXT" in ran.out
    assert [one.kind for one in decided(office)[1]] == ["source", "code_lists"]


def test_a_source_of_another_account_is_refused_before_it_is_shown(office: Office) -> None:
    signed(office, *OPEN)
    office.write_attributes_alone(**{**LOANS, "account": "other"})
    check_changes_nothing(office, lambda: office.run(*OPEN), "library")
    assert signed(office, *OPEN, "--also-of", "library").code == 0


@pytest.mark.slow
def test_a_first_release_says_what_changed_in_the_spec_since_it_was_signed(office: Office) -> None:
    """Before the charge, and not after a first one: a revision asks for a reason then."""
    changed = 'changed since an operator signed for it: `axes[0].tidy` was its default and is ["trim"]'
    signed(office, *OPEN)
    office.write_attributes_alone(**{**LOANS, "axes": [{**KIND, "tidy": ["trim"]}]})
    assert [one for one in office.run("check", "spec.yaml", "--json").json["warnings"] if changed in one]
    assert changed in office.run("check", "spec.yaml", "--explain").out
    held = office.release("--period", "2026-03-02")  # it has no periods, so nothing is charged
    assert held.code != 0 and changed in held.err
    assert "nothing was entered" in office.run(*ALLOW).out
    held = office.release("--period", "2026-03-02")
    assert changed in held.err, "what nobody signed is no spec that an operator signed for"
    told = office.release("--json").json
    assert told["warnings"] and 'is ["trim"]' in told["warnings"][0]
    office.write_attributes_alone(**{**LOANS, "axes": [{**KIND, "tidy": ["trim", "lower"]}]})
    assert "changed since an operator" not in office.release().err + office.run("check", "spec.yaml").out


@pytest.mark.slow
def test_a_later_signature_takes_the_place_of_an_earlier_one(office: Office) -> None:
    signed(office, *OPEN)
    office.write_attributes_alone(**{**LOANS, "epsilon": "1/4", "csv_quote": ""})
    signed(office, *ALLOW)
    office.write_attributes_alone(**{**LOANS, "epsilon": "1/8", "csv_quote": ""})
    held = office.release("--period", "2026-03-02").err
    assert "signed for it: `epsilon` was 1/4 and is 1/8." in held
    office.write_attributes_alone(**{**LOANS, "epsilon": "1/8", "axes": [{**KIND, "tidy": ["trim"]}], "csv_quote": "'"})
    held = office.release("--period", "2026-03-02").err
    places = [held.index(name) for name in ("`epsilon` was", "`csv_quote` was", "`axes[0].tidy` was")]
    assert places == sorted(places)
    assert "dphist check --explain SPEC" in " ".join(held.split()) and "dphist ledger allow --for SPEC" in " ".join(
        held.split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize("damage", ["gone", "a file", "a folder in its place"])
def test_a_decision_stands_where_the_store_is_not_the_operators(
    office: Office, damage: str, as_json: list[str]
) -> None:
    """Neither is a folder made in it, which would be the operator's and stop the user who releases."""
    specs, shown = office.store / "specs", digest(office, *OPEN)
    if damage == "a folder in its place":
        (specs / "signed" / "wards.json").mkdir()
    else:
        shutil.rmtree(specs)
    if damage == "a file":
        specs.touch()
    ran = office.run(*OPEN, "--yes", shown, *as_json)
    assert ran.code == 0 and [one.name for one in decided(office)[0]] == ["library"]
    assert not as_json or ran.json["signed"] is True
    assert ran.err.count("\n") == 1 and "its first release will not be able to say what changed since" in ran.err
    assert specs.exists() == (damage != "gone")
    again = office.run(*ALLOW, *as_json)
    assert (again.code, again.err) == (0, "")
    if damage == "gone":
        assert office.release().code == 0 and (specs / "signed").is_dir()


def test_whoever_releases_can_read_what_an_operator_signed(office: Office) -> None:
    made = [(office.store / "specs" / part).stat().st_mode & 0o777 for part in ("", "signed")]
    assert made == [0o700, 0o700], "made with the store, whose owner they have"
    signed(office, *OPEN)
    assert (office.store / "specs" / "signed" / "wards.json").stat().st_mode & 0o777 == 0o644
