"""Sources that an attacker would name, or name otherwise, or have read otherwise, with nothing but a spec and files.

Each is refused by the command line and by Dagster, from one and the same `defs.yaml`, before anything is opened.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attempts import Attempt, check_nobody_reads, nothing_opened
from office import OPEN_HEALTH, RECORDS, Office

pytestmark = pytest.mark.draws_alike

CANARY = "c4n4ry"
NOT_ALLOWED = "is not allowed for account 'health'"
STAFF: dict[str, list[Any]] = {name: [f"{CANARY}{value}" for value in values] for name, values in RECORDS.items()}
Case = Callable[[Office], None]


@pytest.fixture
def attempt(office: Office) -> Attempt:
    """An office that may read `data/admissions.parquet`; other records lie in `private/` and belong to nobody yet."""
    office.opened()
    (office.folder / "private").mkdir()
    office.write_records(STAFF, "private/staff.parquet")
    return Attempt(office)


def done(office: Office, *words: str | Path) -> None:
    ran = office.run(*words)
    assert ran.code == 0, ran.err


# The same records under another name


def link_to_folder(office: Office) -> None:
    (office.folder / "link").symlink_to("data")


def link_to_file(office: Office) -> None:
    (office.folder / "data" / "link.parquet").symlink_to("admissions.parquet")


def hard_link(office: Office) -> None:
    os.link(office.folder / "data" / "admissions.parquet", office.folder / "data" / "hard.parquet")


def nothing(office: Office) -> None:
    pass


SPELLINGS: dict[str, Case] = {
    "./data/admissions.parquet": nothing,
    "data//admissions.parquet": nothing,
    "data/../data/admissions.parquet": nothing,
    "data/*.parquet": nothing,
    "data/admission[s].parquet": nothing,
    "**/admissions.parquet": nothing,
    "link/admissions.parquet": link_to_folder,
    "data/link.parquet": link_to_file,
    "data/hard.parquet": hard_link,
    "ABSOLUTE": nothing,
    "{{ env.PLACE }}/admissions.parquet": nothing,
    "data/{{ env.FILE }}.parquet": nothing,
}


@pytest.mark.slow
def test_another_spelling_of_an_allowed_source_is_not_allowed(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = attempt.office.folder / "data"
    monkeypatch.setenv("PLACE", str(folder))
    monkeypatch.setenv("FILE", "admissions")
    for spelling, prepare in SPELLINGS.items():
        prepare(attempt.office)
        attempt.write(source=str(folder / "admissions.parquet") if spelling == "ABSOLUTE" else spelling)
        hides = (str(folder),) if "env" in spelling else ()
        says = (NOT_ALLOWED, "dphist ledger allow health --source")
        check_nobody_reads(attempt, *says, hides=hides, dagster=spelling == "ABSOLUTE" or "PLACE" in spelling)
    attempt.write(source="data/admissions.parquet ")
    check_nobody_reads(attempt, "attributes.source", dagster=False)


# Other records


@pytest.mark.slow
def test_records_that_nobody_decided_on_are_not_read(attempt: Attempt) -> None:
    for source in ("private/staff.parquet", str(attempt.office.folder / "private" / "*.parquet")):
        check_nobody_reads(attempt.write(source=source), NOT_ALLOWED, "dphist ledger allow health", hides=(CANARY,))


@pytest.mark.slow
def test_the_store_is_no_source(attempt: Attempt) -> None:
    attempt.office.released()
    for source in ("store/public/**/*.parquet", "store/confidential/**/*.parquet"):
        check_nobody_reads(attempt.write(release="own", source=source), NOT_ALLOWED, dagster=False)


@pytest.mark.slow
def test_a_source_of_another_account_is_neither_read_nor_allowed_in_passing(attempt: Attempt) -> None:
    office = attempt.office
    words = ["staff" if word == "health" else word for word in OPEN_HEALTH]
    done(office, "ledger", *words, "--source", "private/staff.parquet")
    check_nobody_reads(attempt.write(source="private/staff.parquet"), NOT_ALLOWED, hides=(CANARY,))
    check_nobody_reads(attempt.write(account="staff"), "is not allowed for account 'staff'")
    # The command that the refusal names tells whose source it is.
    ran = office.run("ledger", "allow", "health", "--source", "private/*.parquet")
    assert ran.code == 1 and "belongs to account 'staff'" in ran.err and "--also-of staff" in ran.err


def swap_folder(office: Office) -> None:
    (office.folder / "data").rename(office.folder / "moved")
    (office.folder / "data").symlink_to("private")


def swap_folder_above(office: Office) -> None:
    (office.folder / "data").rename(office.folder / "moved")
    (office.folder / "data").symlink_to("moved")


@pytest.mark.parametrize("swap", [swap_folder, swap_folder_above])
def test_a_folder_that_became_a_link_since_it_was_allowed_is_not_followed(
    attempt: Attempt, swap: Callable[[Office], None]
) -> None:
    attempt.office.write_records(STAFF, "private/admissions.parquet")
    swap(attempt.office)
    says = ("in another folder", "dphist ledger allow health --source")
    check_nobody_reads(attempt.write(), *says, hides=(CANARY, "private", "moved"))


@pytest.mark.slow
def test_a_file_that_became_a_link_out_of_its_folder_is_not_followed(attempt: Attempt) -> None:
    done(attempt.office, "ledger", "allow", "health", "--source", "data/*.parquet")
    (attempt.office.folder / "data" / "more.parquet").symlink_to("../private/staff.parquet")
    attempt.write(source="data/*.parquet")
    check_nobody_reads(attempt, "is a link out of the folder that was allowed", hides=(CANARY, "staff"))
    (attempt.office.folder / "data" / "more.parquet").unlink()
    (attempt.office.folder / "data" / "admissions.parquet").unlink()
    (attempt.office.folder / "data" / "admissions.parquet").symlink_to("../private/staff.parquet")
    for source in ("data/*.parquet", "data/admissions.parquet"):
        check_nobody_reads(attempt.write(source=source), "is a link out of the folder", hides=(CANARY,), dagster=False)


@pytest.mark.slow
def test_a_charge_that_stands_lets_nobody_read_what_was_swapped_or_disallowed_since(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("dphist_pipeline.releasing.run.Run._vouch", killed)
        assert attempt.write().by_command().code != 0
    check = [number for number, kind, *_ in attempt.office.entries() if kind == "allowed"]
    attempt.office.write_records(STAFF, "private/admissions.parquet")
    swap_folder(attempt.office)
    check_nobody_reads(attempt, "in another folder", hides=(CANARY,))
    (attempt.office.folder / "data").unlink()
    (attempt.office.folder / "moved").rename(attempt.office.folder / "data")
    done(attempt.office, "ledger", "disallow", str(check[0]), "--reason", "wrong folder")
    check_nobody_reads(attempt, "nothing is allowed yet")


# The same records, read otherwise

GRAVENHAGE = ["patient,age,ward"] + [f"p{number},{number % 90},surgery" for number in range(1000)]
GRAVENHAGE[400] = "'s-Gravenhage,3,surgery"
READINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "'s-Gravenhage": ("data/a.csv", {"csv_quote": "'"}, "csv_quote is rfc there, ' here"),
    "quotes": ("data/a.csv", {"csv_quote": "none"}, "csv_quote is rfc there, none here"),
    "semicolons": ("data/a.csv", {"csv_delimiter": ";"}, "csv_delimiter is ',' there, ';' here"),
    "folders": ("data/a.csv", {"hive": True}, "hive is false there, true here"),
    "commas": ("data/admissions.parquet", {"decimal_comma": True}, "decimal_comma is false there, true here"),
    "thousands": ("data/admissions.parquet", {"thousands": ","}, "thousands is nothing there, ',' here"),
    "lower": ("data/a.csv", {"unit_normalise": ["lower"]}, "unit_normalise is nothing there, lower here"),
    "trim": ("data/admissions.parquet", {"unit_normalise": ["trim"]}, "unit_normalise is nothing there, trim here"),
}


@pytest.mark.slow
def test_records_that_are_read_otherwise_than_decided_are_not_read(attempt: Attempt) -> None:
    (attempt.office.folder / "data" / "a.csv").write_text("\n".join(GRAVENHAGE) + "\n")
    done(attempt.office, "ledger", "allow", "health", "--source", "data/a.csv")
    for way, (source, changes, says) in READINGS.items():
        attempt.write(source=source, **changes)
        command = f"dphist ledger allow health --source {source}"
        check_nobody_reads(attempt, says, command, hides=("Gravenhage",), dagster=way == "'s-Gravenhage")


@pytest.mark.slow
def test_one_patients_name_changes_no_count_of_others_by_quotes(attempt: Attempt) -> None:
    (attempt.office.folder / "data" / "a.csv").write_text("\n".join(GRAVENHAGE) + "\n")
    done(attempt.office, "ledger", "allow", "health", "--source", "data/a.csv")
    ran = attempt.write(source="data/a.csv", epsilon=5).by_command("--json")
    assert ran.code == 0, ran.err
    answer = attempt.office.run("answer", "wards", "--json")
    assert abs(answer.json["estimate"] - 1000) < 60, answer.out


@pytest.mark.slow
def test_a_command_that_was_named_by_a_refusal_allows_what_was_refused(attempt: Attempt) -> None:
    (attempt.office.folder / "data" / "it's.csv").write_text("patient;age;ward\nann;3;surgery\n")
    more = {"csv_delimiter": ";", "csv_quote": "'", "decimal_comma": True, "unit_normalise": ["trim", "lower"]}
    said = attempt.write(source="data/it's.csv", **more).by_command().err
    done(attempt.office, *shlex.split(said.partition("can allow it: dphist ")[2]))
    assert attempt.by_command().code == 0


# Other people of the same records

UNITS = ["row", "ward", ["patient", "ward"], "Patient"]


@pytest.mark.slow
def test_an_account_for_patients_pays_for_no_other_unit(attempt: Attempt) -> None:
    for unit in UNITS:
        attempt.write(privacy_unit=unit, max_rows_per_unit=1)
        check_nobody_reads(attempt, "privacy_unit is 'patient' there but", dagster=unit == "row")


RENAMED = "SELECT ward AS patient, age, ward FROM source"


@pytest.mark.parametrize("trusted", [{}, {"trusted_sql": True}], ids=["plain", "trusted"])
def test_a_query_that_makes_every_visit_a_patient_needs_a_decision(attempt: Attempt, trusted: dict[str, Any]) -> None:
    query = attempt.office.folder / "units.sql"
    query.write_text(RENAMED)
    attempt.write(source_sql="units.sql", **trusted)
    says = ("needs a decision for account 'health'", "dphist ledger allow health --query units.sql --reason TEXT")
    check_nobody_reads(attempt, *says)


@pytest.mark.slow
def test_a_query_is_allowed_as_it_stood_and_not_as_it_stands(attempt: Attempt) -> None:
    office = attempt.office
    (office.folder / "units.sql").write_text(RENAMED)
    done(office, "ledger", "allow", "health", "--query", "units.sql", "--reason", "a ward is a unit here")
    for text in (RENAMED + " ", RENAMED + "\n-- of the ward", RENAMED.replace("ward AS", "age AS")):
        (office.folder / "units.sql").write_text(text)
        check_nobody_reads(attempt.write(source_sql="units.sql"), "needs a decision", dagster=False)
    # Of another account, the same query is not allowed.
    words = ["staff" if word == "health" else word for word in OPEN_HEALTH]
    done(office, "ledger", *words, "--source", "private/staff.parquet")
    (office.folder / "units.sql").write_text(RENAMED)
    attempt.write(source_sql="units.sql", source="private/staff.parquet", account="staff")
    check_nobody_reads(attempt, "needs a decision for account 'staff'", hides=(CANARY,), dagster=False)


# A ledger of one's own


@pytest.mark.slow
def test_a_spec_beside_its_own_store_is_judged_by_the_working_folders_ledger(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    office = attempt.office
    evil = Office(office.folder / "evil")
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(tmp_path / "evil.key"))
    evil.opened()
    evil.write_spec(source=str(office.folder / "private" / "staff.parquet"))
    monkeypatch.delenv("DPHIST_OPERATOR_KEY")
    before = office.state()
    with nothing_opened():
        ran = office.run("release", evil.folder / "spec.yaml")
        own = office.run("release", "evil/spec.yaml")
    assert (ran.code, own.code) == (1, 1) and NOT_ALLOWED in ran.err and CANARY not in ran.err + own.err
    assert office.state() == before and not list((evil.store / "public").rglob("*.parquet"))


def test_a_project_below_the_project_is_another_folder_of_records(attempt: Attempt) -> None:
    (attempt.folder / "pyproject.toml").touch()
    (attempt.folder / "data").mkdir()
    attempt.office.write_records(STAFF, str(attempt.folder / "data" / "admissions.parquet"))
    check_nobody_reads(attempt.write(), "in another folder", hides=(CANARY,))


def test_no_field_of_a_spec_names_a_store_a_witness_or_a_key(attempt: Attempt) -> None:
    for field in ("store", "ledger", "witness", "operator_key", "allow", "DPHIST_STORE", "DPHIST_WITNESS"):
        attempt.write(**{field: str(attempt.office.folder / "evil")})
        check_nobody_reads(attempt, f"attributes.{field}: unknown field", dagster=field == "DPHIST_STORE")


# Code lists


def codes_linked(office: Office, name: str, real: str, link: Callable[[Path, Path], None]) -> str:
    link(office.folder / real, office.folder / "codes" / name)
    return f"codes/{name}"


LISTS: dict[str, Callable[[Office], str]] = {
    "this release's records": lambda office: "data/admissions.parquet",
    "records of nobody": lambda office: "private/staff.parquet",
    "records of another account": lambda office: "wages/wages.parquet",
    "by an absolute path": lambda office: str(office.folder / "wages" / "wages.parquet"),
    "out of the folder": lambda office: "codes/../wages/wages.parquet",
    "by a link": lambda office: codes_linked(
        office, "link.parquet", "wages/wages.parquet", lambda real, link: link.symlink_to(real)
    ),
    "by a hard link": lambda office: codes_linked(office, "hard.parquet", "wages/wages.parquet", os.link),
    "by a hard link to this release's records": lambda office: codes_linked(
        office, "ours.parquet", "data/admissions.parquet", os.link
    ),
    "by a link to the folder": lambda office: (
        codes_linked(office, "wages", "wages", lambda real, link: link.symlink_to(real)) + "/wages.parquet"
    ),
    "a publication": lambda office: "store/public/wards/period=all/revision=1/histogram.parquet",
    "a link to the store": lambda office: (
        codes_linked(office, "store", "store", lambda real, link: link.symlink_to(real))
        + "/public/wards/period=all/revision=1/histogram.parquet"
    ),
}


@pytest.mark.slow
def test_no_records_are_published_as_the_codes_of_a_list(attempt: Attempt) -> None:
    office = attempt.office
    for folder in ("codes", "wages"):
        (office.folder / folder).mkdir()
    office.write_records(STAFF, "wages/wages.parquet")
    words = ["staff" if word == "health" else word for word in OPEN_HEALTH]
    done(office, "ledger", *words, "--source", "wages/*.parquet")
    done(office, "ledger", "allow", "--code-lists", "codes")
    office.released()
    for which, made in LISTS.items():
        axis = {"column": "ward", "values_from": made(office), "values_column": "ward", "label_column": "patient"}
        attempt.write(release="leaked", axes=[axis], epsilon="0.000001")
        says = ("is no file below a folder", "dphist ledger allow --code-lists FOLDER")
        check_nobody_reads(attempt, *says, hides=(CANARY, "ann"), dagster=which in ("by a hard link", "by a link"))
        ran = office.run("check", attempt.spec, "--explain")
        assert ran.code == 1 and CANARY not in ran.out + ran.err


def test_without_any_decision_the_commands_of_a_spec_writer_read_nothing(attempt: Attempt) -> None:
    attempt.write(source="private/staff.parquet")
    with nothing_opened():
        assert CANARY not in str(attempt.office.run("check", attempt.spec, "--explain"))
    assert CANARY not in str(attempt.office.run("rehearse", attempt.spec))


@pytest.mark.slow
def test_no_message_shows_what_the_environment_gave_of_an_address(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", CANARY)
    file = attempt.office.folder / CANARY / "a.parquet"
    file.parent.mkdir()
    file.write_bytes(b"no Parquet")
    done(attempt.office, "ledger", "allow", "health", "--source", "{{ env.PLACE }}/a.parquet")
    attempt.write(source="{{ env.PLACE }}/a.parquet")
    for says in ("is not a readable Parquet file", "is not a file", "no such file"):
        ran = attempt.by_command()
        success, told = attempt.by_dagster()
        assert ran.code == 1 and not success and says in ran.err and says in told
        assert "{{ env.PLACE }}/a.parquet" in ran.err and CANARY not in ran.err + told
        if file.is_file():
            file.unlink()
            file.mkdir()
        elif file.is_dir():
            file.rmdir()
    for words in (("ledger", "show", "health"), ("ledger", "report", "--json"), ("check", attempt.spec, "--explain")):
        assert CANARY not in str(attempt.office.run(*words))
