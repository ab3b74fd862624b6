"""A year of charges to an individual account, replayed on two histories that one unit tells apart.

Published answers are the same in both, so specs are, too: each is chosen by what was published before. A measurement of
epsilon e over R rows loses e·|x - x'|/R, and all of a year lose at most the total, on every path.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.individual_scenario import Office
from unit.ledger_scenario import time_passes

from dphist_pipeline.confidential import cube
from dphist_pipeline.errors import DphistError

pytestmark = pytest.mark.slow
TOTAL = Fraction(2)
# By path: rows of the unit in the weeks to come, and twentieths of the total for the number of units left out.
# All that the answers may choose follows from the seed.
PATHS = {"often": (3, 1), "seldom": (1, 0), "always": (10, 1), "later": (5, 0)}


@dataclass
class History:
    """An office, and what each measurement of each charge counted there."""

    office: Office
    measured: list[np.ndarray[Any, Any]] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)

    def charge(
        self,
        week: int,
        patients: dict[str, int],
        finished: dict[str, int] | None = None,
        family: bool = False,
        **terms: Any,
    ) -> None:
        """Charges; with `finished`, a run is killed after half of its measurements, and goes on with that source."""
        request = self.office.request(week, **terms)
        rows = self.office.rows(patients, request.rows, family)
        charge = rows.charge(request)
        self.measured.append(rows.counts(charge))
        again = self.office.rows(patients if finished is None else finished, request.rows, family)
        if charge.granted is not None and charge.granted.left_out:
            self.left_out.append(int((again if finished else rows).left_out(charge).left_out[0]))
        self.measured.append(again.counts(again.charge(request)) if finished is not None else rows.counts(charge))
        self.office.ledger.record_published(charge, f"digest of {charge.hash}")


@pytest.fixture
def same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of bounding are the same in both histories: they do not depend on records."""
    monkeypatch.setattr(cube.secrets, "token_bytes", lambda size: b"k" * size)


def answers(seed: int) -> Iterator[dict[str, Any]]:
    """Sixty charges by what was published, equal in both histories: specs, two releases, revisions, losses, family."""
    chance, done = random.Random(seed), list[tuple[str, int, int]]()
    for week in range(60):
        revises = bool(done) and chance.random() < 0.1
        release, of, revision = chance.choice(done) if revises else (chance.choice(["weekly", "other"]), week, 0)
        revision = 1 + max([number for name, one, number in done if (name, one) == (release, of)], default=0)
        done.append((release, of, revision))
        yield {
            "week": of,
            "terms": {
                "release": release,
                "revision": revision,
                "reason": "the answers were odd" if revision > 1 else "",
                "epsilon": chance.choice([Fraction(1, 2), Fraction(1, 7), Fraction(3, 10), Fraction(475, 1000)]),
                "rows": chance.choice([1, 2, 3, 5, 17]),
            },
            "killed": chance.random() < 0.15,
            "lost": chance.random() < (0.02 if week < 30 else 0.06),
            "family": chance.random() < 0.2,
            "others": {f"other {number}": chance.randrange(4) for number in range(5)},
        }


@pytest.mark.parametrize(
    ("seed", "unit", "left_out"), [(n, *path) for n, path in enumerate(PATHS.values())], ids=[*PATHS]
)
def test_a_unit_loses_at_most_the_total_on_every_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_keys: None, seed: int, unit: int, left_out: int
) -> None:
    time_passes(monkeypatch, "2026-11-24T06:00:00Z")
    share = Fraction(left_out, 20)
    here, there = (History(Office.open(tmp_path / name, left_out=share)) for name in ("with", "without"))
    loss, owed = Fraction(0), Fraction(0)
    for number, step in enumerate(answers(seed)):
        own = {"unit": 0 if unit == 5 and number < 20 else unit}  # `later` comes in the middle of the year
        finished = {**step["others"], "other 9": 3} if step["killed"] else None
        refused = []
        for history, more in ((here, own), (there, {})):
            source = {**step["others"], **more}
            ends = None if finished is None else {**finished, **{name: rows + 2 for name, rows in more.items()}}
            try:
                history.charge(step["week"], source, ends, step["family"], **step["terms"])
            except DphistError as error:  # whether it is refused is the same in both
                refused.append(str(error).partition(" would ")[0])
            if step["lost"]:
                for state in history.office.states.glob("*.parquet"):
                    state.unlink()
        assert len(refused) in (0, 2) and len(set(refused)) < 2
        if refused:
            continue
        # Each of two measurements pays half, and in a family each of two tables half of that.
        paid = step["terms"]["epsilon"] / step["terms"]["rows"] / (4 if step["family"] else 2)
        for one, other in zip(here.measured[-2:], there.measured[-2:], strict=True):
            loss += paid * int(np.abs(one - other).sum())
    everybody = here.office.everybody()[-1]
    assert here.office.everybody() == there.office.everybody() and here.office.bought() == there.office.bought()
    moved = sum(abs(one - other) for one, other in zip(here.left_out, there.left_out, strict=True))
    loss += TOTAL * share * moved
    owed = loss + everybody
    assert loss <= TOTAL and moved <= 1 and moved in (0, left_out)
    if unit >= 3 and everybody == 0:
        assert moved == left_out and owed > TOTAL - Fraction(1, 2)  # nothing is wasted but what no row fits into


def test_a_full_unit_loses_the_total_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_keys: None) -> None:
    time_passes(monkeypatch, "2026-11-24T06:00:00Z")
    here, there = (History(Office.open(tmp_path / name)) for name in ("with", "without"))
    for week in range(6):
        for history, more in ((here, {"unit": 3}), (there, {})):
            history.charge(week, {"other": 2, **more})
    moved = [int(np.abs(one - other).sum()) for one, other in zip(here.measured, there.measured, strict=True)]
    assert sum(moved) * Fraction(1, 2) / 3 / 2 == TOTAL
