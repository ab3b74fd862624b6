"""Stores that an attacker would copy, keep or put back, so that one charge is drawn several times.

Whatever is done, no step of a release, period and revision ever gives two answers; a witness that is put back together
with the store, or a second witness, is outside of what can be noticed (see the threat model).
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from attempts import Attempt
from office import OPEN_HEALTH, Office, Ran
from refusing import check_changes_nothing, check_refused
from unit.ledger_scenario import time_passes

from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.releasing import sanitizing
from dphist_pipeline.releasing.run import Run

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="copies of stores, and what they draw")

ADOPT = ("store", "adopt", "--reason", "put back from a backup")


class Draws:
    """Every answer that a mechanism was given, by release, period, revision and step."""

    def __init__(self) -> None:
        self.given: dict[tuple[str, ...], set[tuple[int, ...]]] = defaultdict(set)
        whole = Journal.answer

        def answer(journal: Journal, step: str, question: Any, draw: Any) -> Any:
            values = whole(journal, step, question, draw)
            self.given[(*journal._folder.parts[-3:], step)].add(tuple(values.tolist()))
            return values

        self.watched = answer

    def of(self, release: str = "wards") -> list[int]:
        """How many different answers each step of a release gave."""
        return [len(values) for key, values in sorted(self.given.items()) if key[0] == release]


@pytest.fixture(autouse=True)
def draws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Draws]:
    """Counts; and nothing is ever given twice."""
    made = Draws()
    monkeypatch.setattr(Journal, "answer", made.watched)
    yield made
    assert all(len(values) == 1 for values in made.given.values()), "drawn twice"


@pytest.fixture
def office(office: Office) -> Office:
    return office.opened()


def kept(office: Office, name: str) -> Path:
    """A copy of the whole store beside the project; the witness is the same."""
    return Path(shutil.copytree(office.store, office.folder.with_name(name)))


def put_back(office: Office, backup: Path) -> None:
    shutil.rmtree(office.store)
    shutil.copytree(backup, office.store)


def at(office: Office, store: Path, *words: str) -> Ran:
    return office.run(*(words or ("release", office.folder / "spec.yaml")), "--store", store)


def refused(ran: Ran, *says: str) -> None:
    """Refused with these words, after the names of steps, and with the way out."""
    steps, _, message = ran.err.rpartition("  · ")
    message = message.partition("\n")[2] if steps else ran.err
    check_refused(Ran(ran.code, ran.out, message), *says)
    assert "dphist store adopt --reason TEXT" in message or not says


def published(store: Path) -> list[str]:
    return [str(path.relative_to(store)) for path in sorted((store / "public").rglob("histogram.parquet"))]


BEHIND = "has seen a charge that this ledger does not hold"


@pytest.mark.slow
def test_copies_that_were_made_before_a_charge_draw_nothing_after_it(office: Office, draws: Draws) -> None:
    copies = [kept(office, f"copy{number}") for number in range(3)]
    office.released()
    for copy in (*copies, *copies):
        refused(at(office, copy), BEHIND, "wards, period all, revision 1")
        assert published(copy) == []
    assert draws.of() == [1]


@pytest.mark.slow
def test_dagster_draws_nothing_from_a_copy(office: Office, monkeypatch: pytest.MonkeyPatch, draws: Draws) -> None:
    attempt, copy = Attempt(office).write(), kept(office, "copy")
    success, _ = attempt.by_dagster()
    assert success
    monkeypatch.setenv("DPHIST_STORE", str(copy))
    success, told = attempt.by_dagster()
    assert not success and BEHIND in told and published(copy) == [] and draws.of() == [1]


@contextmanager
def killed_in(owner: Any, name: str) -> Iterator[None]:
    """The process dies as it calls this."""

    def die(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    with patch.object(owner, name, die):
        yield


KILLS = {
    "before the witness knows of the charge": (Run, "_vouch"),
    "before the first draw": (sanitizing, "PrivateCounts"),
    "as an answer is written": (Journal, "_link"),
}


@pytest.mark.parametrize("moment", KILLS)
def test_of_copies_of_a_killed_run_one_draws(office: Office, moment: str, draws: Draws) -> None:
    with killed_in(*KILLS[moment]):
        assert office.release().code != 0
    assert draws.of() == []
    stores = [kept(office, f"copy{number}") for number in range(2)] + [office.store]
    assert at(office, stores[0]).code == 0
    for store in (*stores[1:], *stores[1:]):
        refused(at(office, store))
        assert published(store) == []
    assert draws.of() == [1] and at(office, stores[0]).code == 0


@pytest.mark.slow
def test_of_copies_that_were_made_after_the_draw_each_publishes_the_same(office: Office, draws: Draws) -> None:
    with killed_in(Witness, "vouch_answer"):
        assert office.release().code != 0
    copies = [kept(office, f"copy{number}") for number in range(3)]
    files = set()
    for store in (office.store, *copies):
        assert at(office, store).code == 0
        files.update((store / place).read_bytes() for place in published(store))
    assert draws.of() == [1] and len(files) == 1


@pytest.mark.slow
def test_dagster_and_the_command_line_do_not_draw_for_copies_of_one_killed_run(
    office: Office, monkeypatch: pytest.MonkeyPatch, draws: Draws
) -> None:
    attempt = Attempt(office).write()
    with killed_in(sanitizing, "PrivateCounts"):
        assert attempt.by_command().code != 0
    copy = kept(office, "copy")
    assert attempt.by_command().code == 0
    monkeypatch.setenv("DPHIST_STORE", str(copy))
    success, told = attempt.by_dagster()
    assert not success and "A copy of this store has drawn the answer" in told
    assert published(copy) == [] and draws.of() == [1]


@pytest.mark.slow
def test_a_store_that_is_put_back_draws_nothing_three_times_in_a_row(office: Office, draws: Draws) -> None:
    backup = kept(office, "backup")
    office.released()
    for _ in range(3):
        put_back(office, backup)
        refused(office.release(), BEHIND)
    assert draws.of() == [1]
    assert at(office, office.store, *ADOPT, "--json").json["carried"] == ["wards, period all, revision 1"]
    check_refused(office.release(), "was charged before this store was adopted", "--revise")
    assert office.release("--revise", "--reason", "the backup lacked it").code == 0
    assert draws.of() == [1, 1]
    (told,) = at(office, office.store, "ledger", "show", "health", "--json").json
    assert told["spent"] == "1"


@pytest.mark.slow
def test_a_store_that_is_put_back_after_a_kill_draws_once_at_most(office: Office, draws: Draws) -> None:
    """Each copy charges the period by itself; the witness takes the first, and the other can be adopted."""
    backup = kept(office, "backup")
    with killed_in(Run, "_vouch"):
        assert office.release().code != 0
    killed = kept(office, "killed")
    put_back(office, backup)
    office.released()
    put_back(office, killed)
    refused(office.release(), "does not hold entry 4 as the witness")
    ran = at(office, office.store, *ADOPT)
    assert ran.code == 0, ran.err
    assert office.release().code == 1 and published(office.store) == [] and draws.of() == [1]
    (told,) = at(office, office.store, "ledger", "show", "health", "--json").json
    assert told["spent"] == "1", "both charges count"


def test_whoever_holds_no_key_cannot_adopt_and_changes_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    office.write_spec(publish="manual")
    old = office.store.with_name("old.sqlite")
    shutil.copy(office.store / "ledger.sqlite", old)
    office.released()
    assert at(office, office.store, "reject", "wards", "all", "--reason", "wrong codes").code == 0
    shutil.copy(old, office.store / "ledger.sqlite")
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(tmp_path / "mine.key"))
    assert office.run("ledger", "key").code == 0
    check_changes_nothing(office, lambda: at(office, office.store, *ADOPT), "is not one of this ledger's")


@pytest.mark.slow
@pytest.mark.parametrize("manual", [True, False], ids=["waiting", "published"])
def test_a_ledger_that_is_put_back_alone_draws_nothing(office: Office, manual: bool, draws: Draws) -> None:
    if manual:
        office.write_spec(publish="manual")
    old = office.store.with_name("old.sqlite")
    shutil.copy(office.store / "ledger.sqlite", old)
    office.released()
    shutil.copy(old, office.store / "ledger.sqlite")
    assert office.release().code == 1
    ran = at(office, office.store, *ADOPT)
    assert ran.code == 0, ran.err
    check_refused(office.release(), "was charged before this store was adopted")
    assert draws.of() == [1]
    office.write_spec(release="others")
    assert office.release().code == 0


@pytest.mark.slow
def test_a_rejection_outlives_a_ledger_that_is_put_back(office: Office, draws: Draws) -> None:
    office.write_spec(publish="manual")
    old = office.store.with_name("old.sqlite")
    shutil.copy(office.store / "ledger.sqlite", old)
    office.released()
    assert at(office, office.store, "reject", "wards", "all", "--reason", "wrong codes").code == 0
    shutil.copy(old, office.store / "ledger.sqlite")
    assert office.release().code == 1
    ran = at(office, office.store, *ADOPT)
    assert ran.code == 0, ran.err
    check_refused(office.release(), "was charged before this store was adopted")
    approve = at(office, office.store, "publish", str(office.folder / "spec.yaml"), "--approved-by", "Ada")
    assert approve.code == 1 and published(office.store) == [] and draws.of() == [1]


@pytest.mark.slow
def test_a_journal_that_is_lost_is_not_drawn_anew(office: Office, draws: Draws) -> None:
    office.write_spec(publish="manual")
    office.released()
    shutil.rmtree(office.store / "confidential" / "journal")
    for _ in range(2):
        check_refused(office.release(), "has drawn the answer to 'counts' already", "journal was lost")
    assert draws.of() == [1]


# A witness that is gone, or another one's


@pytest.mark.slow
def test_without_its_witness_a_store_replays_and_draws_nothing(office: Office, draws: Draws) -> None:
    office.released()
    lost = office.witness.rename(office.witness.with_name("lost"))
    assert office.released("--json").json["replayed"] is True
    office.write_spec(release="others")
    refused(office.release(), "There is no witness")
    check_refused(at(office, office.store, *ADOPT), "its witness is gone", "--spent-elsewhere health=EPSILON")
    check_refused(at(office, office.store, *ADOPT, "--spent-elsewhere", "helth=0"), "--spent-elsewhere health")
    assert not office.witness.exists() and draws.of("others") == []
    assert at(office, office.store, *ADOPT, "--spent-elsewhere", "health=9.25").code == 0
    check_refused(office.release(), "has 0.25 left of 10")
    office.write_spec(release="others", epsilon="1/4")
    assert office.release().code == 0
    # The witness that was lost turns up: it does not know of the adoption, and lets nothing be drawn.
    lost.replace(office.witness)
    office.write_spec(release="more", epsilon="1/8")
    assert office.release().code == 1 and draws.of("more") == []


@pytest.mark.slow
def test_the_witness_of_another_store_vouches_for_nothing(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draws: Draws
) -> None:
    other = Office(tmp_path / "other").of_its_own()
    other.write_records()
    other.write_spec()
    assert at(other, other.store).code == 0 and draws.of() == [1]
    draws.given.clear()
    office.witness = other.witness
    refused(office.release(), "does not know")
    attempt = Attempt(office).write()
    success, told = attempt.by_dagster()
    assert not success and "does not know" in told and draws.of() == []


def test_a_witness_is_not_the_ledger_itself(office: Office, draws: Draws) -> None:
    office.witness = office.store / "ledger.sqlite"
    check_refused(office.release(), "is the ledger")
    assert draws.of() == []


# After an adoption


@pytest.mark.slow
def test_the_copy_that_was_not_adopted_draws_nothing_and_replays(office: Office, draws: Draws) -> None:
    office.released()
    copy = kept(office, "copy")
    assert at(office, copy, *ADOPT).code == 0
    assert office.released("--json").json["replayed"] is True
    office.write_spec(release="others")
    refused(office.release(), "Another copy of store")
    assert draws.of("others") == []
    assert at(office, copy).code == 0 and draws.of("others") == [1]
    # Adopted in its turn, the first takes over what the second drew, and the second draws nothing more.
    ran = at(office, office.store, *ADOPT)
    assert ran.code == 0 and "others, period all, revision 1" in ran.out, ran.err
    check_refused(office.release(), "was charged before this store was adopted")
    office.write_spec(release="more")
    refused(at(office, copy), "Another copy of store")
    assert at(office, office.store).code == 0 and draws.of("more") == [1]


def test_what_was_charged_and_not_drawn_before_an_adoption_is_not_drawn_after_it(office: Office, draws: Draws) -> None:
    with killed_in(sanitizing, "PrivateCounts"):
        assert office.release().code != 0
    copy = kept(office, "copy")
    assert at(office, office.store, *ADOPT).code == 0
    assert office.release().code == 1
    refused(at(office, copy), "Another copy of store")
    assert draws.of() == [] and published(copy) == []


@pytest.mark.slow
def test_a_clock_that_is_set_back_gives_no_year_a_second_total(
    office: Office, monkeypatch: pytest.MonkeyPatch, draws: Draws
) -> None:
    def clock(year: int) -> None:
        time_passes(monkeypatch, f"{year}-06-30T12:00:00Z")

    clock(2030)
    words = ["yearly" if word == "health" else word for word in OPEN_HEALTH]
    words[words.index("10")] = "1/2"
    assert office.run("ledger", *words, "--renews", "yearly", "--store", office.store).code == 0
    reading = ("--source", "data/admissions.parquet", "--also-of", "health")
    assert office.run("ledger", "allow", "yearly", *reading, "--store", office.store).code == 0
    backup = kept(office, "backup")
    clock(2031)
    office.write_spec(release="first", account="yearly")
    office.released()
    clock(2030)
    office.write_spec(release="second", account="yearly")
    check_refused(office.release(), "0 left of 0.5 in 2031")
    put_back(office, backup)
    refused(office.release(), BEHIND)
    assert at(office, office.store, *ADOPT).code == 0
    check_refused(office.release(), "has 0 left of 0.5 in 2030")
    assert draws.of("second") == []
    clock(2031)
    check_refused(office.release(), "has 0 left of 0.5 in 2031")
    clock(2032)
    ran = office.release()
    assert ran.code == 0, ran.err
    assert draws.of("second") == [1]
