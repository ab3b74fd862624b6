"""The witness: one answer, one charge and one adoption, whatever races or dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fork_server import PROCESSES
from ledger_scenario import HEALTH, url_of, week
from witness_scenario import STORE, address, charge, charges, hashed, held, of, witness, witness_url

from dphist_pipeline.ledger.errors import AnswerDrawnElsewhere, LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import Witness, WitnessedCharge
from examples import SOAKING

RACERS = 20 if SOAKING else 5


# Races


def at_once(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def ask_at_once(ask: Callable[..., Any], *arguments: Any) -> str:
    _barrier.wait(300)
    try:
        ask(*arguments)
    except LedgerError as refusal:
        return refusal.code
    return "done"


def race(ask: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[str]:
    """What became of each of the calls, made at the same moment by a process each."""
    pool = PROCESSES.Pool(len(arguments), at_once, (PROCESSES.Barrier(len(arguments)),))
    made: list[str] = pool.starmap_async(ask_at_once, [(ask, *each) for each in arguments], chunksize=1).get(
        timeout=300
    )
    pool.close()  # not `terminate`, which may wait for ever for a process that the pool just began
    pool.join()
    return made


def enrolled(where: str, store: str) -> None:
    Witness.at(where).enrol(store, "entry-1")


def vouched(where: str, known: list[WitnessedCharge]) -> None:
    Witness.at(where).vouch(STORE, of(1, lambda: known))


def charged_and_vouched(where: str, ledger_path: Path, ledger_id: str, day: int) -> None:
    ledger = Ledger.open(url_of(ledger_path), ledger_id)
    ledger.charge(week(day))
    Witness.at(where).vouch(STORE, of(1, lambda: ledger.standing().charges))


def answered(where: str, digest: str) -> None:
    Witness.at(where).vouch_answer(STORE, hashed(3), "counts", digest)


def adopted(where: str, hash_: str) -> None:
    Witness.at(where).begin_generation(STORE, of(2, charges(3), hash_))


def test_many_stores_are_enrolled_at_once_in_a_witness_that_is_not_there_yet(tmp_path: Path) -> None:
    where = str(tmp_path / "new" / "w.sqlite")
    assert race(enrolled, *((where, f"store-{number}") for number in range(RACERS))) == ["done"] * RACERS
    assert all(Witness.at(where).standing(f"store-{number}") for number in range(RACERS))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["w.sqlite"]


def test_many_processes_vouch_for_the_same_charges(witness: Witness) -> None:
    known = [charge(3), charge(4), charge(5)]
    assert race(vouched, *((address(witness), known),) * RACERS) == ["done"] * RACERS
    assert held(witness) == [3, 4, 5]


def test_many_processes_with_a_charge_each_are_all_vouched_for(witness: Witness, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger.create(url_of(path))
    ledger.open_account(HEALTH)
    days = range(1, RACERS + 1)
    assert race(charged_and_vouched, *((address(witness), path, ledger.id, day) for day in days)) == ["done"] * RACERS
    standing = witness.standing(STORE)
    assert standing is not None and standing.charges == tuple(ledger.standing().charges)
    assert len(standing.charges) == RACERS


def test_of_many_copies_at_once_one_is_vouched_for(witness: Witness) -> None:
    found = race(vouched, *((address(witness), [charge(3, hash=hashed(f"copy-{number}"))]) for number in range(RACERS)))
    assert sorted(found) == ["done"] + ["ledger_behind_witness"] * (RACERS - 1)
    assert held(witness) == [3]


def test_of_many_answers_at_once_one_is_vouched_for(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3)))
    found = race(answered, *((address(witness), hashed(f"digest-{number}")) for number in range(RACERS)))
    assert sorted(found) == ["answer_drawn_elsewhere"] * (RACERS - 1) + ["done"]


def test_of_many_adoptions_at_once_one_stands(witness: Witness) -> None:
    found = race(adopted, *((address(witness), f"entry-{number}") for number in range(RACERS)))
    assert sorted(found) == ["done"] + ["store_superseded"] * (RACERS - 1)
    assert held(witness) == [3]


def test_a_witness_may_cross_a_fork(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3)))
    child = os.fork()
    if child == 0:
        try:
            witness.vouch(STORE, of(1, charges(3, 4)))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    witness.vouch(STORE, of(1, charges(3, 4, 5)))
    assert held(witness) == [3, 4, 5]


# Kills


def kill_at(moment: int) -> None:
    """Makes this process kill itself right before its statement, commit or file operation of that number."""
    moments = iter(range(moment + 1))

    def mortal(*_: Any, **__: Any) -> None:
        if next(moments, moment) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    for event in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sa.event.listen(sa.Engine, event, mortal)
    for name in ("link", "mkdir", "fsync", "unlink"):
        real = getattr(os, name)
        setattr(os, name, lambda *args, real=real, **options: (mortal(), real(*args, **options))[1])


def whole_life(witness: Witness) -> None:
    if witness.standing(STORE) is None:
        witness.enrol(STORE, "entry-1")
    witness.vouch(STORE, of(1, charges(3, 4)))
    witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))


@pytest.mark.slow
@pytest.mark.many_examples
def test_a_kill_anywhere_leaves_a_witness_that_the_same_calls_complete(tmp_path: Path) -> None:
    states: list[tuple[int, ...] | None] = []
    status, step = -1, 1 if SOAKING else 5
    while status != 0:
        boundary = step * len(states)
        witness = Witness.at(tmp_path / str(boundary) / "w.sqlite")
        child = os.fork()
        if child == 0:
            try:
                kill_at(boundary)
                whole_life(witness)
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        standing = witness.standing(STORE)
        states.append(None if standing is None else tuple(charge.number for charge in standing.charges))
        whole_life(witness)
        assert held(witness) == [3, 4]
        with pytest.raises(AnswerDrawnElsewhere):
            witness.vouch_answer(STORE, hashed(3), "counts", hashed("b"))
    assert set(states) == {None, (), (3, 4)} and boundary > 50
