"""Opening judges only what changed since this user judged it: what that is, and what no note can hide."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import coded, ledger_refuses
from fork_server import PROCESSES
from ledger_scenario import HEALTH, WEEKLY, ledger, path, raw, set_clock, url, url_of, week

from dphist_pipeline.base import reading
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger import _checkpoint as checkpoint
from dphist_pipeline.ledger import _replay as judging
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Entry
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.opened import OpenedLedger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import Witness, WitnessedCharge
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.due import unpublished_charges

__all__ = ["ledger", "path", "url"]

ANN, BEN = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben"))
ADMISSIONS = Reading("data/*.csv", "/office/data", "csv", unit=("patient_id",))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notes are written from the third entry on, into a folder of the test's own; gives that folder."""
    monkeypatch.setattr(checkpoint, "FEWEST", 3)
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state / "dphist" / "judged"


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the entries that were judged, as it happens."""
    numbers: list[int] = []
    judge = judging._refuse_broken_rule

    def noting(books: object, entry: Entry, facts: object) -> None:
        numbers.append(entry.number)
        judge(books, entry, facts)  # type: ignore[arg-type]

    monkeypatch.setattr(judging, "_refuse_broken_rule", noting)
    return numbers


def used(made: Ledger, weeks: int = 4) -> Ledger:
    """Entries: 1 created, 2 opened, then a charge and its publication for each week; noted by this user."""
    for number in range(weeks):
        charge = made.charge(week(1 + number))
        made.record_published(charge, f"values-{number}")
    return Ledger.open(made.url, made.id)


def test_an_opening_judges_only_the_entries_after_those_that_are_noted(ledger: Ledger, judged: list[int]) -> None:
    used(ledger)
    judged.clear()
    again = Ledger.open(ledger.url, ledger.id)
    assert judged == []
    again.charge(week(20))
    Ledger.open(ledger.url, ledger.id)
    assert judged == [11]
    judged.clear()
    assert again.verify() == 11
    assert {*judged} == {*range(1, 12)}


def test_few_entries_leave_no_note(path: Path, short: Path) -> None:
    made = Ledger.create(url_of(path))
    made.open_account(HEALTH)
    Ledger.open(url_of(path), made.id).verify()
    assert not short.exists()


def test_sums_and_states_are_those_of_a_ledger_that_was_judged_whole(ledger: Ledger) -> None:
    used(ledger)
    request = week(1, revision=2, reason="late")
    for _ in range(2):
        again = Ledger.open(ledger.url, ledger.id)
        with ledger_refuses("overspend", match="period 2026-03-04"):
            again.check(week(30, epsilon=HEALTH.total))
        assert Statement.of(again, "health") == Statement.of(ledger, "health")
        assert again.charge(week(2)) == ledger.charge(week(2))
        with ledger_refuses("published_differs"):
            again.record_published(again.charge(week(2)), "others")
        assert again.charge(request).number == 11
    assert Ledger.open(ledger.url, ledger.id).verify() == 11


def test_charges_dated_ahead_of_an_adoption_count_in_both_years_when_resumed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(2), renews="yearly"))
    ledger.allow("yearly", {"source": ADMISSIONS.facts()}, ANN)
    asked = replace(WEEKLY, account="yearly", source=ADMISSIONS)
    lost = WitnessedCharge(90, "lost", "yearly", "weekly", "lost", 1, Fraction(1, 5), 2033)
    set_clock(monkeypatch, 2032)
    ledger.charge(replace(asked, period="ahead"))
    set_clock(monkeypatch, 2031)
    ledger.adopt("the clock was wrong", [lost], {"yearly": Fraction(1, 7)}, ANN)
    ledger.charge(replace(asked, period="after", epsilon=Fraction(1, 3)))
    set_clock(monkeypatch, 2032)
    ledger.charge(replace(asked, period="later", epsilon=Fraction(1, 11)))
    expected = {
        2031: Fraction(1, 2) + Fraction(1, 5) + Fraction(1, 7) + Fraction(1, 3),
        2032: Fraction(1, 2) + Fraction(1, 11),
        2033: Fraction(1, 5),
        None: Fraction(1, 2) + Fraction(1, 5) + Fraction(1, 7) + Fraction(1, 3) + Fraction(1, 11),
    }
    for judged in (ledger, Ledger.open(ledger.url, ledger.id), Ledger.open(ledger.url, ledger.id)):
        assert {year: judged.books().spent("yearly", year) for year in expected} == expected
        assert judged.books().charged_last == "2032-06-30T12:00:00Z"
    with ledger_refuses("overspend", match=r"period later.*period ahead"):
        ledger.check(replace(asked, period="more", epsilon=Fraction(2)))


EDITS = {
    "epsilon": "UPDATE ledger_entry SET body = replace(body, '1/2', '1/9') WHERE number = 3",
    "hash": f"UPDATE ledger_entry SET hash = '{'0' * 64}' WHERE number = 10",
    "time": "UPDATE ledger_entry SET made_at = '2020-01-01T00:00:00Z' WHERE number = 3",
    "period": "UPDATE ledger_entry SET period = '2026-01-01' WHERE number = 4",
    "number": "UPDATE ledger_entry SET number = 50 WHERE number = 9",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_behind_the_note_is_found_at_the_next_opening(ledger: Ledger, edit: str) -> None:
    used(ledger)
    raw(ledger.url, EDITS[edit])
    with ledger_refuses("ledger_altered"):
        Ledger.open(ledger.url, ledger.id)


def test_an_edit_while_a_program_runs_misleads_nobody(ledger: Ledger) -> None:
    used(ledger)
    again = Ledger.open(ledger.url, ledger.id)
    left = Statement.of(again, "health").left
    raw(ledger.url, EDITS["epsilon"], "UPDATE ledger_entry SET body = replace(body, '1/2', '1/9') WHERE number = 5")
    with ledger_refuses("overspend"):
        again.charge(week(20, epsilon=left + Fraction(1, 9)))
    assert again.charge(week(1)).epsilon == Fraction(1, 2)
    with ledger_refuses("ledger_altered"):
        again.verify()


def test_who_can_write_the_note_too_is_found_out_by_verify(ledger: Ledger, short: Path) -> None:
    used(ledger)
    raw(ledger.url, EDITS["epsilon"])
    with ledger._file.transaction("read") as connection:
        rows = checkpoint._Rows(connection)
        taken = len([*rows])
    (note,) = short.iterdir()
    note.write_text(f"{taken} {rows.digest}\n")
    again = Ledger.open(ledger.url, ledger.id)
    assert Statement.of(again, "health").spent == Fraction(1, 2) * 3 + Fraction(1, 9)
    with ledger_refuses("ledger_altered", match="entry 3"):
        again.verify()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda note: note.write_bytes(b""),
    "cut off": lambda note: note.write_bytes(note.read_bytes()[:-9]),
    "longer": lambda note: note.write_bytes(note.read_bytes() + b"1"),
    "garbled": lambda note: note.write_bytes(b"\xff" * 1000),
    "another digest": lambda note: note.write_bytes(b"10 " + b"0" * 64 + b"\n"),
    "fewer entries": lambda note: note.write_bytes(b"9" + note.read_bytes()[2:]),
    "far too many entries": lambda note: note.write_bytes(b"999999999" + note.read_bytes()[2:]),
    "others may write": lambda note: note.chmod(0o622),
    "a link": lambda note: note.symlink_to(note.rename(note.with_name("moved"))),
    "a pipe": lambda note: [note.unlink(), os.mkfifo(note, 0o600)],  # type: ignore[func-returns-value]
    "a folder": lambda note: [note.unlink(), note.mkdir()],  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_with_a_note_that_cannot_be_trusted_every_entry_is_judged(
    path: Path, ledger: Ledger, judged: list[int], short: Path, damage: str
) -> None:
    used(ledger)
    (note,) = short.iterdir()
    judged.clear()
    DAMAGES[damage](note)
    again = Ledger.open(ledger.url, ledger.id)
    assert judged == [*range(1, 11)]
    assert Statement.of(again, "health") == Statement.of(ledger, "health")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_note_of_another_user_is_none(path: Path, ledger: Ledger, judged: list[int], short: Path) -> None:
    used(ledger)
    (note,) = short.iterdir()
    judged.clear()
    os.chown(note, 65534, 65534)
    Ledger.open(ledger.url, ledger.id)
    assert judged == [*range(1, 11)]


def test_the_note_of_another_ledger_vouches_for_nothing(path: Path, judged: list[int], short: Path) -> None:
    ones = used(accounted(path))
    (note,) = short.iterdir()
    others = used(accounted(path.with_name("other.sqlite")))
    (other,) = {*short.iterdir()} - {note}
    shutil.copyfile(note, other)
    judged.clear()
    assert Ledger.open(others.url, others.id).id != ones.id
    assert judged == [*range(1, 11)]


def accounted(path: Path) -> Ledger:
    """A new ledger with an account."""
    made = Ledger.create(url_of(path))
    made.open_account(HEALTH)
    return made


def test_other_code_judges_again_what_this_code_judged(
    path: Path, ledger: Ledger, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    used(ledger)
    judged.clear()
    monkeypatch.setattr(checkpoint, "_judging_code", lambda: b"a rule more")
    Ledger.open(ledger.url, ledger.id)
    assert judged == [*range(1, 11)]


@pytest.mark.parametrize("state", ["a file", "no home"])
def test_where_nothing_can_be_noted_every_entry_is_judged(
    path: Path, judged: list[int], monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    made = accounted(path)
    monkeypatch.setenv("XDG_STATE_HOME", str(path) if state == "a file" else "not absolute")
    monkeypatch.setenv("HOME", "not absolute")
    used(made)
    judged.clear()
    Ledger.open(made.url, made.id)
    assert judged == [*range(1, 11)]


def test_an_older_ledger_than_the_note_is_judged_whole_and_the_witness_refuses_it(
    path: Path, tmp_path: Path, judged: list[int]
) -> None:
    made = used(accounted(path), weeks=2)
    witness = Witness.at(tmp_path / "witness.sqlite")
    witness.enrol("store-1", made.standing().started_by)
    backup = shutil.copyfile(path, tmp_path / "backup")
    later = used(made)
    witness.vouch("store-1", later.standing)
    shutil.copyfile(backup, path)
    judged.clear()
    restored = Ledger.open(made.url, made.id)
    assert judged == [*range(1, 7)]
    with ledger_refuses("ledger_behind_witness"):
        witness.check("store-1", restored.standing)


def test_several_processes_open_and_charge_at_once(path: Path, judged: list[int]) -> None:
    made = accounted(path)
    with ProcessPoolExecutor(4, mp_context=PROCESSES) as pool:
        numbers = [*pool.map(charge_a_day, [str(made.url)] * 12, [made.id] * 12, range(1, 13))]
    assert sorted(numbers) == [*range(3, 15)]
    assert Ledger.open(made.url, made.id).verify() == 14
    judged.clear()
    assert Statement.of(Ledger.open(made.url, made.id), "health").spent == 6
    assert judged == []


def charge_a_day(url: str, ledger_id: str, day: int) -> int:
    """Opens, charges and opens again, in a process of its own that notes every entry."""
    checkpoint.FEWEST = 1
    number = Ledger.open(url, ledger_id).charge(week(day)).number
    Ledger.open(url, ledger_id)
    return number


def test_decisions_adoptions_and_lost_charges_stand_as_in_a_whole_ledger(path: Path) -> None:
    made = Ledger.create(url_of(path), ANN)
    made.open_account(HEALTH, ANN, ADMISSIONS)
    made.open_account(replace(HEALTH, name="both", signatures=2), ANN)
    made.add_key("ben", BEN.public, ANN)
    asked = replace(WEEKLY, source=ADMISSIONS)
    first = made.charge(asked)
    lapsed = made.adopt("too early", [], {}, ANN, denies=True).number
    made.charge(replace(asked, period="2026-03-09", held=True))
    made.note(first, "approved", "Ada")
    # The witness holds another charge of the first period, and one of a period that this ledger knows nothing of.
    seen = [
        WitnessedCharge(40 + day, f"{day:064x}", "health", "weekly", f"2026-03-{day:02}", 1, Fraction(1, 3), 2026)
        for day in (2, 23)
    ]
    made.countersign(made.adopt("the disk failed", seen, {"both": Fraction(2)}, ANN).number, BEN)
    made.charge(replace(asked, revision=2, reason="late"))
    made.raise_total("both", Fraction(40), "more", ANN)
    made.allow("health", {"query": {"sha256": "ab" * 32, "name": "joined.sql"}}, ANN, "joins wards")
    Ledger.open(made.url, made.id)
    resumed, whole = Ledger.open(made.url, made.id), reread_whole(made)
    assert resumed._known is not None
    assert resumed._known.unposted
    told: list[Callable[[OpenedLedger], object]] = [
        lambda of: of.head(),
        lambda of: of.charges("weekly", "2026-03-02"),
        lambda of: of.standing(),
        lambda of: [Statement.of(of, name) for name in ("health", "both")],
        lambda of: of.decisions("health"),
        lambda of: (
            of.operators(),
            of.books().permissions.waiting_of(EVERYWHERE),
            of.books().permissions.lapsed == {lapsed},
            of.adopted_at(),
            of.accounts(),
        ),
        lambda of: unpublished_charges(of, "weekly"),
        lambda of: Statement.charges_with_note(of, "approved"),
    ]
    for tell in told:
        assert tell(resumed) == tell(whole)
    again = Ledger.open(made.url, made.id)
    with ledger_refuses("charge_lost"):
        again.charge(replace(asked, period="2026-03-23", epsilon=Fraction(1, 3)))
    assert again.standing() == whole.standing()


def reread_whole(made: Ledger) -> OpenedLedger:
    """The ledger by books that were judged from the first entry on."""
    with made._file.transaction("read") as connection:
        return OpenedLedger(made._file, checkpoint.judged_books(made._file.where, connection, whole=True))


def test_how_a_source_is_read_is_part_of_what_judges_entries() -> None:
    assert Path(reading.__file__).read_bytes() in checkpoint._judging_code()
