"""Mechanisms that try to run code of their own on exact counts: none of it is ever called with one.

Python cannot stop code in one process that reads private attributes or replaces a module's functions;
`architecture/test_boundary.py` looks for that in the files of mechanisms. Here is what the public methods of
measurements let through.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import scores
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.confidential.scores import CutByBalance, CutByDeviations, NextByNearness, Score
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism

CELLS, CANARY = 6, 918_273_645
LINE = [np.arange(CELLS)]
SEEN: list[Any] = []


class Spied:
    """Exact counts, and how often they were loaded."""

    def __init__(self) -> None:
        self.loads = 0

    def private_counts(self) -> PrivateCounts:
        return PrivateCounts(Domain.from_shape((CELLS,)), 1, self.load)

    def load(self) -> np.ndarray:
        self.loads += 1
        return np.full(CELLS, CANARY)


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


@pytest.fixture
def spied() -> Spied:
    return Spied()


def keep(exact: Any) -> Any:
    """What every attack wants to be called with."""
    SEEN.append(exact)
    return exact


# Scores


@dataclass(frozen=True)
class OwnScore(Score):
    """A class of the mechanism's own."""

    constant = 1

    def candidates(self, size: int) -> int:
        return size

    def scores(self, exact: np.ndarray) -> np.ndarray:
        return keep(exact)  # type: ignore[no-any-return]


class Subclassed(CutByBalance):
    """A class of the closed set, with one method of the mechanism's."""

    def scores(self, exact: np.ndarray) -> np.ndarray:
        return keep(exact)  # type: ignore[no-any-return]


class Disguised:
    """Says of itself that it is a class of the closed set."""

    constant = 1
    __class__ = CutByBalance  # type: ignore[assignment]

    def candidates(self, size: int) -> int:
        return size

    def sensitivity(self, delta: int) -> int:
        return 2 * delta

    def scores(self, exact: np.ndarray) -> np.ndarray:
        return keep(exact)  # type: ignore[no-any-return]


class EqualToAll(type(Score)):  # type: ignore[misc]
    """Classes that say they equal every other class."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(CutByBalance)


class Equal(OwnScore, metaclass=EqualToAll):
    pass


ATTACKING_SCORES = {
    "a closure": keep,
    "a class of its own": OwnScore(),
    "the class itself": CutByBalance,
    "a subclass": Subclassed(),
    "a duck": Disguised(),
    "a class that equals all": Equal(),
    "nothing": None,
}


@pytest.mark.parametrize("name", ATTACKING_SCORES)
def test_a_score_from_outside_the_closed_set_is_refused_before_anything_is_spent(spied: Spied, name: str) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(MeasurementMisuse, match="must be an instance of a class in"):
        spied.private_counts().choose(LINE, ATTACKING_SCORES[name], budget)  # type: ignore[arg-type]
    assert (spied.loads, SEEN, budget.charges) == (0, [], ())


@dataclass(frozen=True)
class ThreeLines(Mechanism):
    """The mechanism that could once publish exact counts by itself."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        exact: list[float] = []
        counts.choose(LINE, lambda cells: exact.extend(cells) or cells, budget)  # type: ignore[arg-type, func-returns-value]
        return Estimate(counts.domain, np.array(exact), budget.charges)


def test_a_mechanism_of_three_lines_no_longer_keeps_exact_counts(spied: Spied) -> None:
    with pytest.raises(MeasurementMisuse):
        ThreeLines().release(spied.private_counts(), Budget(Fraction(1)))
    assert spied.loads == 0


def test_a_choice_takes_no_constant_and_no_candidates_from_a_mechanism(spied: Spied) -> None:
    with pytest.raises(TypeError):
        spied.private_counts().choose(LINE, keep, [CELLS], 1, Budget(Fraction(1)))  # type: ignore[call-arg, arg-type]
    assert spied.loads == 0


@pytest.mark.parametrize("kind", scores.SCORES, ids=lambda kind: kind.__name__)
def test_no_instance_of_a_score_has_room_for_a_method_of_its_own(kind: type[Score]) -> None:
    made = object.__new__(kind)
    assert not hasattr(made, "__dict__")
    with pytest.raises(AttributeError):
        object.__setattr__(made, "scores", keep)


class Number(int):
    """A whole number that looks at what it is added to."""

    def __radd__(self, other: Any) -> Any:
        return keep(other)

    __add__ = __rsub__ = __sub__ = __array_ufunc__ = __radd__


class Text(str):
    def __eq__(self, other: object) -> bool:
        return bool(keep(True))

    def __hash__(self) -> int:
        return hash("mean")


@pytest.mark.parametrize("fields", [("mean", Number(3), True), (Text("mean"), 0, True), ("mean", 0, Number(1))])
def test_a_score_takes_no_parameter_that_has_methods_of_its_own(fields: tuple[Any, ...]) -> None:
    with pytest.raises(MeasurementMisuse):
        CutByDeviations(*fields)


def test_a_parameter_forced_into_a_score_is_checked_before_counts_are_loaded(spied: Spied) -> None:
    forced = CutByDeviations("median", 0, True)
    object.__setattr__(forced, "price", Number(3))
    empty = object.__new__(CutByDeviations)  # never checked
    for score, refusal in ((forced, MeasurementMisuse), (empty, AttributeError)):
        with pytest.raises(refusal):
            spied.private_counts().choose(LINE, score, Budget(Fraction(1)))
    assert (spied.loads, SEEN) == (0, [])


def test_a_score_that_changes_while_counts_are_loaded_changes_nothing() -> None:
    score = CutByDeviations("median", 1 << 40, True)

    def load() -> np.ndarray:
        object.__setattr__(score, "price", 0)
        return np.array([0, 0, 0, 9, 9, 9])

    counts = PrivateCounts(Domain.from_shape((CELLS,)), 1, load)
    assert counts.choose(LINE, score, Budget(Fraction(50))).tolist() == [0]  # a cut costs 2^40 more


# Groups


class Hooked(np.ndarray):
    """An array that keeps all that NumPy does with it."""

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        SEEN.append(("function", args))
        return super().__array_function__(function, types, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        SEEN.append(("ufunc", inputs))
        plain = [np.asarray(one) for one in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_finalize__(self, parent: Any) -> None:
        SEEN.append(("made from", parent))

    def __getitem__(self, key: Any) -> Any:
        SEEN.append(("item", key))
        return super().__getitem__(key)

    def __array_wrap__(self, made: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return keep(made)


def hooked(numbers: list[int]) -> Hooked:
    made = np.array(numbers).view(Hooked)
    SEEN.clear()
    return made


def canaries() -> list[Any]:
    """What was seen of the counts."""
    return [seen for seen in SEEN if str(CANARY) in repr(seen)]


def test_hooks_of_an_array_are_not_called_on_the_groups_of_a_choice(spied: Spied) -> None:
    spied.private_counts().choose([hooked(list(range(CELLS)))], CutByBalance(), Budget(Fraction(1)))
    assert spied.loads == 1 and SEEN == []


def test_hooks_of_an_array_are_not_called_on_the_groups_of_sums_and_trees(spied: Spied) -> None:
    groups = hooked([0, 0, 1, 1, 2, 2])
    spied.private_counts().noisy_sums(groups, Budget(Fraction(1)))
    spied.private_counts().noisy_tree([groups], Budget(Fraction(1)))
    assert spied.loads == 2 and SEEN == []


def test_hooks_of_an_array_are_not_called_on_the_steps_of_a_score(spied: Spied) -> None:
    score = NextByNearness(hooked([1] * (CELLS - 1)))
    assert type(score.steps) is np.ndarray
    spied.private_counts().choose(LINE, score, Budget(Fraction(1)))
    object.__setattr__(score, "steps", hooked([1] * (CELLS - 1)))
    spied.private_counts().choose(LINE, score, Budget(Fraction(1)))
    assert spied.loads == 2 and SEEN == []


class Convertible:
    """Not an array, but NumPy would make one of it, by its method."""

    shape, dtype = (CELLS,), np.dtype(np.int64)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        keep("asked")
        return np.zeros(CELLS, dtype=np.int64)


class ArrayInName(Convertible):
    __class__ = np.ndarray  # type: ignore[assignment]


class Groups(list):  # type: ignore[type-arg]
    """A list with hooks."""

    def __iter__(self) -> Any:
        keep("asked")
        return super().__iter__()


class Whole(int):
    def __index__(self) -> int:
        return int(bool(keep("asked")))


OBJECTS = np.array([Whole(cell) for cell in range(CELLS)], dtype=object)
ATTACKING_GROUPS = {
    "callable": lambda: LINE,
    "a list subclass": Groups(LINE),
    "a generator": (group for group in LINE),
    "an array of rows": np.arange(CELLS).reshape(2, 3),
    "a convertible object": [Convertible()],
    "an object that says it is an array": [ArrayInName()],
    "an array of objects": [OBJECTS],
    "a callable group": [lambda: np.arange(CELLS)],
}


@pytest.mark.parametrize("name", ATTACKING_GROUPS)
def test_groups_with_methods_of_their_own_are_refused_before_anything_is_loaded(spied: Spied, name: str) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(MeasurementMisuse, match="group"):
        spied.private_counts().choose(ATTACKING_GROUPS[name], CutByBalance(), budget)  # type: ignore[arg-type]
    assert (spied.loads, SEEN, budget.charges) == (0, [], ())


@pytest.mark.parametrize("groups", [Convertible(), ArrayInName(), OBJECTS, lambda: LINE[0], [0] * CELLS])
def test_sums_take_nothing_but_arrays_of_whole_numbers(spied: Spied, groups: Any) -> None:
    with pytest.raises(MeasurementMisuse, match="groups"):
        spied.private_counts().noisy_sums(groups, Budget(Fraction(1)))
    assert (spied.loads, SEEN) == (0, [])


# Budgets


class Generous(Budget):
    """Says that it was spent, and asks for hardly any noise."""

    def spend(self) -> Fraction:
        return Fraction(keep(1))


class Lying(Fraction):
    """An epsilon that makes every scale of noise small."""

    def __rtruediv__(self, other: Any) -> Fraction:  # type: ignore[override]
        return Fraction(keep(1), 10**6)


def with_epsilon(epsilon: Any) -> Budget:
    changed = Budget(Fraction(1))
    changed.epsilon = epsilon
    return changed


LEVELS = (1,) * (CELLS - 1).bit_length()
MEASUREMENTS = {
    "noisy_cells": lambda counts, budget: counts.noisy_cells(budget),
    "noisy_sums": lambda counts, budget: counts.noisy_sums(np.arange(CELLS), budget),
    "noisy_tree": lambda counts, budget: counts.noisy_tree([np.arange(CELLS)], budget),
    "noisy_contrasts": lambda counts, budget: counts.noisy_contrasts(budget),
    "noisy_weighted_sums": lambda counts, budget: counts.noisy_weighted_sums([np.ones((1, CELLS), int)], budget),
    "choose": lambda counts, budget: counts.choose(LINE, CutByBalance(), budget),
    "choose_buckets": lambda counts, budget: counts.choose_buckets(np.arange(CELLS), LEVELS, budget),
}


@pytest.mark.parametrize("measurement", MEASUREMENTS)
@pytest.mark.parametrize(
    "budget",
    [Generous(Fraction(1)), with_epsilon(Lying(1)), with_epsilon(Fraction(10**9)), with_epsilon(50.0), Fraction(1)],
    ids=["a subclass", "an epsilon that lies", "an epsilon made larger", "a float", "a number"],
)
def test_no_measurement_takes_a_budget_with_methods_of_its_own(spied: Spied, measurement: str, budget: Any) -> None:
    with pytest.raises(MeasurementMisuse, match="Budget"):
        MEASUREMENTS[measurement](spied.private_counts(), budget)
    assert (spied.loads, SEEN) == (0, [])


def test_the_spy_would_see_a_planted_score(spied: Spied, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before these tests are trusted: a class that somebody adds to the closed set does see the counts."""
    monkeypatch.setattr(scores, "SCORES", (*scores.SCORES, OwnScore))
    spied.private_counts().choose(LINE, OwnScore(), Budget(Fraction(1)))
    assert spied.loads == 1 and len(canaries()) == 1
