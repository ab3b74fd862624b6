"""A release to an individual account may be killed anywhere, and its files and the clock may be wrong afterwards.

Children draw no noise here: so what is published is what was counted, and tells what a patient has lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from system.small_release import ACCOUNT, NAME, WEEKS, Outcome, Project, start
from unit.ledger_scenario import time_passes

from dphist_pipeline.confidential import noise
from dphist_pipeline.ledger import clock, opened
from dphist_pipeline.releasing.store_decisions import StoreDecisions

INDIVIDUAL = {"accounting": "individual", "renews": "yearly", "left_out": Fraction(1, 20)}
TOTAL, EPSILON, MOST = Fraction(4, 3), Fraction(1, 2), 2  # 19/20 of the total pay five rows of 1/4 each
DECEMBER, JANUARY = f"{clock.BUILT}-12-30T06:00:00Z", f"{clock.BUILT + 1}-01-02T06:00:00Z"
PERIODS = WEEKS[:4]  # two of them count two rows each, the third one row, and the last none
ROWS = {
    "patient_id": [patient for _ in PERIODS for patient in ("often", "often", "often")] + ["once"],
    "age": [5] * 3 * len(PERIODS) + [45],
    "ward": ["surgery"] * (3 * len(PERIODS) + 1),
    "admitted_on": [date.fromisoformat(week) for week in PERIODS for _ in range(3)] + [date.fromisoformat(WEEKS[0])],
}


def without_noise(now: str) -> None:
    """Sets a child's clock, and has its measurements answer with exact counts."""
    opened.utc_now = lambda: now
    clock.machine_time = lambda: now
    noise.discrete_laplace = lambda scale, size: np.zeros(size, dtype=np.int64)


@dataclass
class Year:
    """A project whose first week was released, a copy of it at that time, and what was published since.

    `rows`: of the patient with three rows in each week, by week and revision; `left_out`: the numbers that were bought.
    """

    project: Project
    backup: Path
    now: str = DECEMBER
    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    left_out: dict[tuple[str, int], int] = field(default_factory=dict)

    def begin(self, now: str) -> None:
        """Puts everything back to where it was after the first week."""
        shutil.rmtree(self.project.folder)
        shutil.copytree(self.backup, self.project.folder)
        self.now = now
        self.rows.clear()
        self.left_out.clear()

    def release(self, week: int, reason: str = "", kill_at: int = 0) -> Outcome:
        outcome = start(self.project, WEEKS[week], reason, kill_at=kill_at, prepare=partial(without_noise, self.now))
        for published in (self.project.root / "public" / NAME).glob("period=*/revision=*"):
            key = published.parent.name.removeprefix("period="), int(published.name.removeprefix("revision="))
            counted = {
                (row["age_lower"], row["ward"]): row
                for row in pq.read_table(published / "histogram.parquet").to_pylist()
            }
            assert self.rows.setdefault(key, rows := round(counted[0.0, "surgery"]["unbiased_estimate"])) == rows
            if (published / "quality.parquet").exists():
                (row,) = pq.read_table(published / "quality.parquet").to_pylist()
                assert self.left_out.setdefault(key, left := round(row["estimate"])) == left
        return outcome

    def states(self) -> list[Path]:
        """Files of states, the newest first."""
        files = (self.project.root / "confidential" / "years" / ACCOUNT).glob("*.parquet")
        return sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)

    def years(self) -> Iterable[list[tuple[str, int]]]:
        """What was published by the charges of each year, in the order of the ledger."""
        found: dict[int, list[tuple[str, int]]] = {}
        for charge in self.project.ledger().books().every_charge():
            if (charge.period, charge.revision) in self.rows:
                found.setdefault(charge.year, []).append((charge.period, charge.revision))
        assert sum(map(len, found.values())) == len(self.rows), "published without a charge"
        return found.values()


@pytest.fixture
def year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Year:
    # In its own place each time: another folder would be another source.
    time_passes(monkeypatch, DECEMBER)
    project = Project.make(tmp_path / "project", TOTAL, terms=INDIVIDUAL, rows=ROWS, epsilon="1/2")
    made = Year(project, tmp_path / "backup")
    assert not made.release(0).refusal and made.rows == {(WEEKS[0], 1): MOST}
    shutil.copytree(project.folder, made.backup)
    return made


# What happens between the kill and the same call. Each gives the refusals that may follow.


def nothing(year: Year) -> set[str]:
    return set()


def another_charge(year: Year) -> set[str]:
    """The next week is released first."""
    assert not year.release(2).refusal
    return set()


def lost(year: Year) -> set[str]:
    shutil.rmtree(year.states()[0].parent)
    return {"state_lost", "counts_nobody"}


def cut(year: Year) -> set[str]:
    newest = year.states()[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    return {"state_lost", "counts_nobody"}


def swapped(year: Year) -> set[str]:
    """The two newest states have each other's names; the only one has another name."""
    newest, other = [*year.states(), year.states()[0].with_name(f"{'0' * 32}.parquet")][:2]
    place = newest.with_name("place")
    for path, name in ((newest, place), (other, newest), (place, other)):
        if path.exists():
            path.rename(name)
    return {"state_lost", "counts_nobody"}


def states_restored(year: Year) -> set[str]:
    states = year.states()[0].parent
    shutil.rmtree(states)
    shutil.copytree(year.backup / states.relative_to(year.project.folder), states)
    return {"state_lost", "counts_nobody"}


def store_restored(year: Year) -> set[str]:
    """The whole store is as before the killed run, ledger and all; where its witness knows better, it is adopted."""
    shutil.rmtree(year.project.root)
    shutil.copytree(year.backup / "store", year.project.root)
    if year.release(1).refusal:
        with year.project.witnessed():
            StoreDecisions.adopt(year.project.store(), "a disk failed", {})
    return {"charge_lost", "counts_nobody"}


def clock_ahead(year: Year) -> set[str]:
    """The same call comes in the next year."""
    year.now = JANUARY
    return set()


def clock_back(year: Year) -> set[str]:
    """The killed call had a clock that was ahead; now it is right, and later the next year comes."""
    year.now = DECEMBER
    for week in (1, 2):
        assert year.release(week).refusal in ("", "clock_behind")
    year.now = JANUARY
    return set()


DAMAGE = [another_charge, lost, cut, swapped, states_restored, store_restored, clock_ahead, clock_back]
Happens = Callable[[Year], set[str]]


def boundaries(year: Year, happens: Happens) -> list[int]:
    """Numbers of the boundaries of the second release; what is before a `begin` or an fsync is there after it, too."""
    year.begin(JANUARY if happens is clock_back else DECEMBER)
    return [n for n, name in enumerate(year.release(1).boundaries, 1) if name not in ("begin", "os.fsync")]


def kill(year: Year, happens: Happens, number: int) -> None:
    """Kills the second release right before a boundary; when something happened, it is called again, and all weeks."""
    year.begin(JANUARY if happens is clock_back else DECEMBER)
    assert year.release(1, kill_at=number).killed
    try:
        finish(year, happens)
    except AssertionError as error:
        raise AssertionError(f"{happens.__name__} after a kill at boundary {number}: {error}") from error


def finish(year: Year, happens: Happens) -> None:
    drawn = year.project.files("confidential/journal")
    refusals = happens(year)
    for week in (1, 2, 3):
        outcome = year.release(week)
        if outcome.refusal in refusals - {"counts_nobody"}:
            outcome = year.release(week, reason="what it may count was lost")
        assert outcome.refusal in refusals | {""} and not outcome.killed
    if happens is not store_restored:
        assert drawn.items() <= year.project.files("confidential/journal").items(), "drawn twice"
    for published in year.years():
        rows, left_out = (sum(of.get(key, 0) for key in published) for of in (year.rows, year.left_out))
        assert rows * EPSILON / MOST + left_out * TOTAL / 20 <= TOTAL
        if not refusals:  # and nobody pays for anything twice
            assert [year.rows[key] for key in published] == [2, 2, 1, 0][: len(published)]
            assert left_out == (len(published) == 4)


@pytest.mark.parametrize(
    ("happens", "every"),
    [
        pytest.param(nothing, 20, marks=pytest.mark.slow),
        pytest.param(nothing, 1, marks=pytest.mark.soak),
        *(pytest.param(happens, 3, marks=pytest.mark.soak) for happens in DAMAGE),
    ],
    ids=lambda of: getattr(of, "__name__", of),
)
def test_a_patient_loses_at_most_the_total_after_a_kill_at_a_boundary(year: Year, happens: Happens, every: int) -> None:
    # Whatever happens is tried at a third of the boundaries: of eight kinds, at least two are tried at each.
    begin = DAMAGE.index(happens) % every if happens in DAMAGE else 0
    for number in boundaries(year, happens)[begin::every]:
        kill(year, happens, number)


@pytest.mark.slow
def test_a_patient_loses_at_most_the_total_after_a_kill_between_charge_and_draw(year: Year) -> None:
    drawn = year.release(1).boundaries.index("os.link")
    for happens in (lost, swapped, store_restored, clock_back):
        kill(year, happens, drawn + 1)
