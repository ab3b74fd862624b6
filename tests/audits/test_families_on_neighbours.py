"""Families of tables: the same on neighbours with frozen answers, nothing beyond its share, planted faults noticed.

The counts of every measured marginal come from one grid of rows, whose neighbour has one unit's rows more, less or
elsewhere. Tables are plain, or at several levels of one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from black_box import Bound, lower_bound, pooled
from grey_box import Counts, Log, LoggedCounts, losses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain, Family
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import FamilyEstimate
from dphist_pipeline.mechanisms import tables as mechanism
from dphist_pipeline.mechanisms.tables import Tables, shares_for
from dphist_pipeline.solvers.tables.marginal_shares import Shares
from examples import mostly_audited

COUNTY = CategoricalAxis("county", "county", tuple("abcde"), False, {"state": tuple("xyxxy")})
STATE = CategoricalAxis("state", "county", tuple("xy"))
AGE, SEX = (BinnedAxis(name, name, (0.0, 1.0, 2.0)) for name in ("age", "sex"))


def family(axes: tuple[Any, ...], sources: tuple[int, ...], *tables: tuple[int, ...]) -> Family:
    names = tuple("_".join(axes[axis].name for axis in table) for table in tables)
    return Family(Domain(axes), sources, names, tables, (1.0,) * len(tables), 16)


# Rows lie in a grid of county × age × sex; a marginal of it is a sum over axes, and of counties over states.
PLAIN = family((COUNTY, AGE, SEX), (0, 1, 2), (0, 1), (1, 2), (2,))
LEVELS = family((COUNTY, STATE, AGE, SEX), (0, 0, 1, 2), (1,), (0,), (0, 2), (1, 2, 3))
GRID = (5, 2, 2)
EPSILONS = [Fraction(1, 3), Fraction(1), Fraction(5)]


def marginal(of: Family, exact: Counts, axes: frozenset[int]) -> Counts:
    """The counts of a marginal, axes in ascending order."""
    letters, groups = "cas", [of.domain.axes[axis].name for axis in sorted(axes)]
    if "state" in groups:
        state = np.array([[value == group for value in COUNTY.levels["state"]] for group in STATE.values])
        exact = np.tensordot(state.astype(np.int64), exact, (1, 0))
    kept = "".join({"county": "c", "state": "c", "age": "a", "sex": "s"}[name] for name in groups)
    return np.array(np.einsum(f"{letters}->{kept}", exact), dtype=np.int64).ravel()


@dataclass(frozen=True)
class Planted:
    """A family with something wrong, or nothing."""

    of: Family
    measurements: type[LoggedCounts] = LoggedCounts
    counted: Callable[[Family, Counts, frozenset[int]], Counts] = marginal
    within: Callable[[Counts], AbstractContextManager[Any]] = lambda exact: nullcontext()

    def run(self, exact: Counts, log: Log | None, sensitivity: int, epsilon: Fraction) -> FamilyEstimate:
        """One release, all of whose measurements write into one log."""
        with self.within(exact):
            counts = [
                self.measurements(
                    self.of.grid(axes), sensitivity, lambda axes=axes: self.counted(self.of, exact, axes), log
                )
                for axes in mechanism.shares_for(self.of).marginals
            ]
            return Tables().release_family(self.of, counts, Budget(epsilon))

    def findings(self, here: Counts, there: Counts, sensitivity: int, epsilon: Fraction) -> list[str]:
        """What is wrong between two neighbours; nothing, for a private release."""
        first, second = Log(), Log()
        with first.listening():
            made = self.run(here, first, sensitivity, epsilon)
        second.answers.update(first.answers)
        with second.listening():
            again = self.run(there, second, sensitivity, epsilon)
        if [asked.shape() for asked in first.asked] != [asked.shape() for asked in second.asked]:
            return ["asks its measurements something else on a neighbour"]
        found = [f"{kind} noise outside a measurement" for kind in {*first.stray, *second.stray}]
        if gave(made) != gave(again):
            found.append("the estimate depends on more than the answers")
        if [(asked.step, asked.epsilon) for asked in first.asked] != list(made.charges):
            found.append("what measurements took is not what was charged")
        if made.epsilon != epsilon:
            found.append("charges do not sum to the declared epsilon")
        return found + losses(first.asked, second.asked, there - here, sensitivity, epsilon).findings


def gave(made: FamilyEstimate) -> Any:
    """All of the tables, comparable."""
    return [(name, table.values.tobytes(), table.unbiased.shared) for name, table in made.tables.items()]  # type: ignore[union-attr]


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Counts, Counts, int]:
    """Two grids that one unit tells apart, and how far it may move counts."""
    rows, substitute = draw(st.integers(1, 3)), draw(st.booleans())
    cells = int(np.prod(GRID))
    places = st.lists(st.integers(0, cells - 1), min_size=1, max_size=rows)
    here = np.array(draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)), dtype=np.int64)
    more = np.bincount(draw(places), minlength=cells)
    there = here + more - (np.bincount(draw(places), minlength=cells) if substitute else 0)
    return here.reshape(GRID), there.reshape(GRID), rows * (1 + substitute)


@pytest.mark.parametrize("of", [PLAIN, LEVELS], ids=["plain", "levels"])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(neighbours(), st.sampled_from(EPSILONS))
def test_a_family_does_the_same_on_neighbours(of: Family, pair: tuple[Counts, Counts, int], epsilon: Fraction) -> None:
    assert Planted(of).findings(*pair, epsilon) == []


class SpentTwice(LoggedCounts):
    """A share of epsilon that pays for two questions."""

    def noisy_cells(self, budget: Budget) -> Any:
        super().noisy_cells(Budget(budget.epsilon, f"{budget.step}_again"))
        return super().noisy_cells(budget)


def of_other_rows(of: Family, exact: Counts, axes: frozenset[int]) -> Counts:
    """Each marginal counts rows of its own choice: what one unit brings counts once more in the first cell."""
    found = marginal(of, exact, axes)
    found[0] += exact.sum()
    return found


@contextmanager
def chosen_from_data(exact: Counts) -> Iterator[None]:
    """A strategy that looks at the counts: equal shares where there are few rows."""
    found = shares_for(LEVELS)
    many = len(found.marginals)
    equal = Shares(found.marginals, (Fraction(1, many),) * many, 1.0, None)
    with patch.object(mechanism, "shares_for", lambda of: equal if exact.sum() < 4 else found):
        yield


FAULTS = {
    "a share spent twice": (Planted(LEVELS, SpentTwice), "not what was charged"),
    "tables that count different rows": (Planted(LEVELS, counted=of_other_rows), "moved by 2, and may by 1"),
    "a strategy chosen from data": (Planted(LEVELS, within=chosen_from_data), "asks its measurements something else"),
}


def few(rows: int) -> Counts:
    """Rows of the first county, age and sex."""
    found = np.zeros(GRID, dtype=np.int64)
    found[0, 0, 0] = rows
    return found


@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_the_replay_finds_a_fault_that_is_planted_in_a_family(name: str) -> None:
    planted, said = FAULTS[name]
    assert any(said in found for found in planted.findings(few(3), few(4), 1, Fraction(1)))


def shown(planted: Planted, trials: int) -> Bound:
    """What so many releases of two neighbours show of epsilon 1."""
    rows = []
    with pooled():
        for exact in (few(0), few(1)):
            made = [planted.run(exact, None, 1, Fraction(1)) for _ in range(trials // 2)]
            rows.append(np.array([np.concatenate([t.values.ravel() for t in one.tables.values()]) for one in made]))
    return lower_bound(*rows)


@pytest.mark.slow
def test_the_black_box_shows_no_more_than_the_epsilon_of_a_family() -> None:
    assert shown(Planted(LEVELS), 600).sure <= 1


class WithoutShares(LoggedCounts):
    """Noise that does not know of shares, nor of epsilon."""

    def _scale(self, question: Any, budget: Budget) -> Fraction:
        return Fraction(self.sensitivity, 4)


@pytest.mark.slow
def test_the_black_box_finds_shares_that_are_not_shared() -> None:
    assert shown(Planted(LEVELS, WithoutShares), 600).sure > 1


def test_the_noise_of_a_family_is_drawn_at_the_scales_of_its_shares() -> None:
    log = Log()
    with log.listening():
        Planted(LEVELS).run(few(1), log, 2, Fraction(3))
    drawn = {asked.step: asked.draws[0][1] for asked in log.asked}
    assert sorted(drawn.values()) == sorted(2 / (3 * part) for part in shares_for(LEVELS).parts)
