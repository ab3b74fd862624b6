"""The ledger: one charge whatever races or dies, and any sequence of steps against a simple model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from error_codes import coded, ledger_refuses
from fork_server import PROCESSES
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from ledger_scenario import HEALTH, WEEKLY, ledger, path, url, url_of, week

from dphist_pipeline.ledger import database
from dphist_pipeline.ledger import ledger as ledger_module
from dphist_pipeline.ledger.database import SqliteFile
from dphist_pipeline.ledger.errors import FileExists, LedgerError
from dphist_pipeline.ledger.ledger import ChargeRequest, Ledger
from dphist_pipeline.publishing.statements import Statement
from examples import examples

# Races


def at_once(barrier: Any, url: str, ledger_id: str) -> None:
    global _barrier, _ledger
    _barrier, _ledger = barrier, Ledger.open(url, ledger_id)


def charge_at_once(request: ChargeRequest) -> Any:
    _barrier.wait(300)
    try:
        charge = _ledger.charge(request)
    except LedgerError as error:
        assert error.code == "overspend"
        return None
    _ledger.record_published(charge, "values-1")
    return charge


def race(url: str, ledger_id: str, requests: list[ChargeRequest]) -> list[Any]:
    barrier = PROCESSES.Barrier(len(requests))
    pool = PROCESSES.Pool(len(requests), at_once, (barrier, url, ledger_id))
    made: list[Any] = pool.map_async(charge_at_once, requests, chunksize=1).get(timeout=300)
    pool.close()  # not `terminate`, which may wait for ever for a process that the pool just began
    pool.join()
    return made


def test_twenty_processes_on_one_key_make_one_charge(ledger: Ledger, url: str) -> None:
    charges = race(url, ledger.id, [WEEKLY] * 20)
    assert len(set(charges)) == 1 and charges[0] is not None
    assert ledger.verify() == 4
    assert Statement.of(ledger, "health").spent == Fraction(1, 2)


def test_twenty_keys_with_room_for_ten_make_exactly_ten_charges(ledger: Ledger, url: str) -> None:
    ledger.open_account(replace(HEALTH, name="ten", total=Fraction(5)))
    charges = race(url, ledger.id, [week(day, account="ten") for day in range(1, 21)])
    assert len({charge for charge in charges if charge}) == 10
    assert charges.count(None) == 10
    assert Statement.of(ledger, "ten").left == 0
    assert ledger.verify() == 23


def test_of_two_that_make_a_ledger_at_once_the_second_replaces_nothing(path: Path) -> None:
    file = SqliteFile(path)
    with pytest.raises(FileExists), file.creation() as draft:
        draft.path.write_bytes(b"the second")
        path.write_bytes(b"the first")
    assert path.read_bytes() == b"the first"
    assert list(path.parent.iterdir()) == [path]


def test_who_may_write_holds_the_lock_from_the_first_read_on(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)

    def read(connection: sa.Connection) -> None:
        assert connection.execute(sa.select(sa.func.count()).select_from(database.ENTRIES)).scalar() == 2

    with SqliteFile(path).transaction("write") as first:
        read(first)
        with SqliteFile(path).transaction("read") as reader:
            read(reader)
        for intent in ("write", "rehearse"):
            with ledger_refuses("file_busy"), SqliteFile(path).transaction(intent) as second:
                read(second)


def test_a_new_ledger_has_a_durable_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    link, fsync = os.link, os.fsync
    monkeypatch.setattr(os, "link", lambda *names: (link(*names), done.append("linked")))
    monkeypatch.setattr(
        os, "fsync", lambda handle: (fsync(handle), done.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    )
    Ledger.create(url_of(path))
    assert done == ["linked", str(path.parent)]


def test_a_ledger_object_may_cross_a_fork(ledger: Ledger) -> None:
    ledger.charge(week(1))
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(week(2))
        except BaseException:
            os._exit(1)
        os._exit(0)
    ledger.charge(week(3))
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.verify() == 5


def test_killed_before_the_commit_nothing_is_charged(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:
        ledger_module.charge_of = lambda *_: os.kill(os.getpid(), 9)
        ledger.charge(WEEKLY)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9
    assert ledger.verify() == 2
    assert ledger.charge(WEEKLY).number == 3


# A model


AMOUNTS = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction("0.1"), Fraction(1), Fraction(2)])
NAMES = st.sampled_from(["a", "b"])
STEPS = st.one_of(
    st.tuples(st.just("open"), NAMES, AMOUNTS),
    st.tuples(st.just("raise"), NAMES, AMOUNTS),
    st.tuples(st.just("charge"), NAMES, AMOUNTS, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["d", "e"])),
)


class Model:
    """The ledger's rules said again, as simply as possible."""

    def __init__(self) -> None:
        self.totals: dict[str, Fraction] = {}
        self.charged: dict[tuple[int, int], tuple[str, Fraction, str]] = {}

    def open(self, name: str, total: Fraction) -> bool:
        return name not in self.totals and self.totals.update({name: total}) is None

    def raised(self, name: str, total: Fraction) -> bool:
        return total > self.totals.get(name, total) and self.totals.update({name: total}) is None

    def charge(self, name: str, epsilon: Fraction, period: int, revision: int, digest: str) -> bool:
        key, what = (period, revision), (name, epsilon, digest)
        if name not in self.totals or key in self.charged:
            return name in self.totals and self.charged[key] == what
        follows = revision == 1 or (period, revision - 1) in self.charged
        if not follows or self.spent(name) + epsilon > self.totals[name]:
            return False
        self.charged[key] = what
        return True

    def spent(self, name: str) -> Fraction:
        return sum((epsilon for of, epsilon, _ in self.charged.values() if of == name), Fraction(0))


def did(step: Callable[[], object]) -> bool:
    try:
        step()
    except LedgerError:
        return False
    return True


def step_in_both(ledger: Ledger, model: Model, step: tuple[Any, ...]) -> None:
    kind, name, amount, *key = step
    if kind == "open":
        account = replace(HEALTH, name=name, total=amount)
        assert did(lambda: ledger.open_account(account)) == model.open(name, amount)
    elif kind == "raise":
        assert did(lambda: ledger.raise_total(name, amount, "r")) == model.raised(name, amount)
    else:
        period, revision, digest = key
        request = replace(
            WEEKLY,
            account=name,
            period=str(period),
            revision=revision,
            epsilon=amount,
            digest=digest,
            reason="r",
        )
        checked = did(lambda: ledger.check(request))
        assert checked == did(lambda: ledger.charge(request)) == model.charge(name, amount, *key)


@pytest.mark.slow
@examples(40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=15))
def test_any_sequence_of_steps_does_what_a_simple_model_says(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger, model = Ledger.create(url_of(Path(folder) / "l.sqlite")), Model()
        for step in steps:
            step_in_both(ledger, model, step)
        assert {account.name: account.total for account in ledger.accounts()} == model.totals
        assert {name: Statement.of(ledger, name).spent for name in model.totals} == {
            name: model.spent(name) for name in model.totals
        }
        ledger.verify()
