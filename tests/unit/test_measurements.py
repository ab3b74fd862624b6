"""The measurements: exact counts plus noise, for a budget, and nothing else."""

from __future__ import annotations

import copy
import hashlib
import inspect
import pickle
import traceback
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from recorded_words import RecordedWords

from dphist_pipeline.base import random_words
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.confidential.scores import CutByBalance
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse

GRID = Domain.from_shape((2, 3))
EXACT = np.array([4, 0, 7, 1_000_003, -2, 90], dtype=np.int64)
GROUPS = np.array([[0, 1, 1], [2, 0, 1]])
LARGEST = 1 << 52
CANARY = 918_273_645
# P(noise != 0) < 10^-21 at the smallest scale, 1/50: what is in the counts comes out.
NO_NOISE = Fraction(50)


def private_counts(exact: NDArray[np.int64] = EXACT, domain: Domain = GRID, sensitivity: int = 1) -> PrivateCounts:
    return PrivateCounts(domain, sensitivity, lambda: exact)


def line_of(values: object) -> PrivateCounts:
    exact = np.array(values, dtype=np.int64)
    return private_counts(exact, Domain.from_shape(exact.shape))


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> RecordedWords:
    recorded = RecordedWords()
    monkeypatch.setattr(noise, "random_words", recorded)
    return recorded


# What comes out


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, "1/2"), (3, "1/10"), (2, "1/3"), (6, "1/5000")])
def test_noisy_cells_are_the_counts_plus_noise_of_sensitivity_over_epsilon(
    words: RecordedWords, sensitivity: int, epsilon: str
) -> None:
    added = noise.discrete_laplace(sensitivity / Fraction(epsilon), 6)
    words.rewind()
    cells = private_counts(sensitivity=sensitivity).noisy_cells(Budget(Fraction(epsilon)))
    assert cells.scale == sensitivity / Fraction(epsilon)
    assert cells.values.shape == (2, 3) and cells.values.dtype == np.float64
    assert added.any() and np.array_equal(cells.values.ravel(), EXACT + added)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, "1/2"), (3, "1/10"), (6, "1/5000")])
def test_noisy_sums_are_the_sums_plus_one_draw_for_each_group(
    words: RecordedWords, sensitivity: int, epsilon: str
) -> None:
    added = noise.discrete_laplace(sensitivity / Fraction(epsilon), 3)
    drawn = words.given
    words.rewind()
    sums = private_counts(sensitivity=sensitivity).noisy_sums(GROUPS, Budget(Fraction(epsilon)))
    assert words.given == drawn
    assert sums.scale == sensitivity / Fraction(epsilon)
    assert sums.sizes.tolist() == [2, 3, 1]
    assert np.array_equal(sums.values, np.array([4 - 2, 0 + 7 + 90, 1_000_003]) + added)


def test_every_cell_and_every_group_pays_for_one_draw(words: RecordedWords) -> None:
    private_counts().noisy_cells(Budget(Fraction(1)))
    assert words.given == 6
    words.rewind()
    private_counts().noisy_sums(np.zeros((2, 3), dtype=np.int64), Budget(Fraction(1)))
    assert words.given == 1


def clipped(values: list[int]) -> int:
    return max(-LARGEST, min(LARGEST, sum(max(-LARGEST, min(LARGEST, value)) for value in values)))


COUNTS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-1000, 1000)
    | st.sampled_from([0, LARGEST, -LARGEST, LARGEST - 1, 2**26, 2**26 - 1, -(2**26), -(2**26) - 1, 2**63 - 1])
)


@settings(deadline=None)
@given(st.lists(st.tuples(COUNTS, st.integers(0, 4)), min_size=1, max_size=60))
def test_sums_are_exact_and_saturate_at_two_to_the_fifty_second(cells: list[tuple[int, int]]) -> None:
    _, numbers = np.unique([group for _, group in cells], return_inverse=True)
    counts = line_of([count for count, _ in cells])
    sums = counts.noisy_sums(numbers, Budget(NO_NOISE)).values
    expected = [
        clipped([count for (count, _), number in zip(cells, numbers, strict=True) if number == group])
        for group in range(numbers.max() + 1)
    ]
    assert [int(value) for value in sums] == expected


@given(hnp.arrays(np.int64, st.integers(1, 30), elements=COUNTS))
def test_cells_saturate_at_two_to_the_fifty_second(exact: NDArray[np.int64]) -> None:
    cells = line_of(exact).noisy_cells(Budget(NO_NOISE)).values
    assert [int(value) for value in cells] == [clipped([int(value)]) for value in exact]


@pytest.mark.slow
@pytest.mark.parametrize("count", [10**12, -(10**12), 450_359_962, -450_359_963, -1])
def test_ten_million_huge_counts_sum_exactly_or_saturate(count: int) -> None:
    domain = Domain.from_shape((2500, 4000))
    counts = private_counts(np.full(domain.cells, count), domain)
    sums = counts.noisy_sums(np.zeros(domain.shape, dtype=np.int64), Budget(NO_NOISE))
    assert int(sums.values[0]) == max(-LARGEST, min(LARGEST, count * domain.cells))


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=12), st.data())
def test_sums_of_neighbours_lie_within_the_sensitivity(exact: list[int], data: st.DataObject) -> None:
    moves = data.draw(st.lists(st.integers(-2, 2), min_size=len(exact), max_size=len(exact)))
    chosen = data.draw(st.lists(st.integers(0, 3), min_size=len(exact), max_size=len(exact)))
    _, groups = np.unique(chosen, return_inverse=True)
    large = np.array(exact) * 2**46
    here, there = (line_of(counts).noisy_sums(groups, Budget(NO_NOISE)).values for counts in (large, large + moves))
    assert np.abs(here - there).sum() <= np.abs(moves).sum()


def test_an_answer_is_asked_for_under_the_step_with_its_whole_question() -> None:
    asked = []

    class Answers:
        def answer(
            self, step: str, question: Mapping[str, str], draw: Callable[[], NDArray[np.int64]]
        ) -> NDArray[np.int64]:
            asked.append((step, question))
            return np.arange({"noisy_cells": 6, "noisy_sums": 3, "noisy_contrasts": 8}[question["door"]])

    def never() -> NDArray[np.int64]:
        raise AssertionError("exact counts were loaded although the answer was there")

    counts = PrivateCounts(GRID, 3, never, Answers())
    cells, groups, halves = Budget(Fraction(2)).split(cells="1/8", groups="3/8", halves="1/2")
    assert counts.noisy_cells(cells).values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert counts.noisy_sums(GROUPS, groups).values.tolist() == [0, 1, 2]
    wavelet = counts.noisy_contrasts(halves)
    assert (wavelet.total, [level.tolist() for level in wavelet.contrasts]) == (0, [[1], [2, 3]])
    assert (wavelet.sizes, wavelet.values.tolist()) == ((2, 4), [0, 1, 2, 3, 4, 5, 6, 7])
    partition = hashlib.sha256(np.array([0, 1, 1, 2, 0, 1], dtype=np.int64).tobytes()).hexdigest()
    assert asked == [
        ("cells", {"door": "noisy_cells", "epsilon": "1/4", "scale": "12", "partition": ""}),
        ("groups", {"door": "noisy_sums", "epsilon": "3/4", "scale": "4", "partition": partition}),
        ("halves", {"door": "noisy_contrasts", "epsilon": "1", "scale": "18", "partition": ""}),
    ]
    assert counts.scales == {"cells": 12, "groups": 4, "halves": 18}


def test_groups_that_change_while_counts_are_loaded_change_nothing() -> None:
    groups = GROUPS.copy()

    def load() -> NDArray[np.int64]:
        groups.fill(0)
        return EXACT

    sums = PrivateCounts(GRID, 1, load).noisy_sums(groups, Budget(NO_NOISE))
    assert sums.values.tolist() == [2, 97, 1_000_003]


# What is refused


@pytest.mark.parametrize(
    "groups",
    [
        np.array([[0, 1, 1], [2, 0, -1]]),
        np.array([[0, 1, 1], [3, 0, 1]]),
        np.array([[1, 1, 1], [2, 2, 1]]),
        np.array([[0, 1, 2], [3, 4, 6]]),
        np.array([[0, 0, 0], [0, 0, 10**15]]),
        np.array([[0, 0, 0], [0, 0, 2**64 - 1]], dtype=np.uint64),
        np.array([[0, 0, 0], [0, 0, 2**63]], dtype=np.uint64),
        GROUPS.T,
        GROUPS.ravel(),
        GROUPS[:1],
        GROUPS[None],
        np.zeros((2, 4), dtype=np.int64),
        np.array(0),
        np.array([], dtype=np.int64),
        GROUPS.astype(float),
        GROUPS.astype(bool),
    ],
    ids=lambda groups: f"{groups.dtype}{groups.tolist()}",
)
def test_groups_that_are_no_partition_of_the_cells_are_refused_unspent(
    groups: NDArray[np.int64],
) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(MeasurementMisuse, match="group"):
        private_counts().noisy_sums(groups, budget)
    assert budget.charges == ()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i8"])
def test_groups_may_be_integers_of_any_size_and_order(dtype: str) -> None:
    for groups in (GROUPS.astype(dtype), np.asfortranarray(GROUPS.astype(dtype))):
        sums = private_counts().noisy_sums(groups, Budget(NO_NOISE))
        assert sums.values.tolist() == [2, 97, 1_000_003]


USES: dict[str, Callable[[Budget], object]] = {
    "split": lambda budget: budget.split(only=1),
    "forfeit": Budget.forfeit,
    "spend": Budget.spend,
}
WEIGHTS = [np.array([[2, 1]]), np.array([[1, 2, 1], [0, 1, 1]])]
MEASUREMENTS: dict[str, Callable[[PrivateCounts, Budget], object]] = {
    "noisy_cells": PrivateCounts.noisy_cells,
    "noisy_sums": lambda counts, budget: counts.noisy_sums(GROUPS, budget),
    "noisy_tree": lambda counts, budget: counts.noisy_tree([GROUPS], budget),
    "noisy_contrasts": PrivateCounts.noisy_contrasts,
    "noisy_weighted_sums": lambda counts, budget: counts.noisy_weighted_sums(WEIGHTS, budget),
    "choose": lambda counts, budget: counts.choose([np.arange(3)], CutByBalance(), budget),
    "choose_buckets": lambda counts, budget: counts.choose_buckets(np.arange(6), (2, 1, 0), budget),
}


def test_every_method_is_a_measurement_that_needs_a_budget() -> None:
    methods = {name: member for name, member in vars(PrivateCounts).items() if inspect.isfunction(member)}
    public = {name: method for name, method in methods.items() if not name.startswith("_")}
    assert set(public) == set(MEASUREMENTS), "name a new measurement in MEASUREMENTS, so that it is tested here"
    for method in public.values():
        assert inspect.signature(method).parameters["budget"].default is inspect.Parameter.empty


@pytest.mark.parametrize("second", MEASUREMENTS)
@pytest.mark.parametrize("first", [*MEASUREMENTS, *USES])
def test_a_used_budget_buys_no_measurement(first: str, second: str) -> None:
    loads = []

    def load() -> NDArray[np.int64]:
        loads.append(1)
        return EXACT

    counts, budget = PrivateCounts(GRID, 1, load), Budget(Fraction(1))
    MEASUREMENTS[first](counts, budget) if first in MEASUREMENTS else USES[first](budget)
    before = len(loads)
    with pytest.raises(BudgetMisuse, match="already"):
        MEASUREMENTS[second](counts, budget)
    assert len(loads) == before


@pytest.mark.parametrize("measurement", MEASUREMENTS)
@pytest.mark.parametrize("fake", [Fraction(1), 1.0, None, SimpleNamespace(epsilon=1.0, step="x", spend=lambda: 1)])
def test_nothing_but_a_budget_buys_a_measurement(measurement: str, fake: object) -> None:
    with pytest.raises(MeasurementMisuse, match="Budget"):
        MEASUREMENTS[measurement](private_counts(), fake)  # type: ignore[arg-type]


@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_a_measurement_charges_its_step(measurement: str) -> None:
    budget = Budget(Fraction(1))
    first, rest = budget.split(first="1/3", rest="2/3")
    MEASUREMENTS[measurement](private_counts(), first)
    rest.forfeit()
    spent = "first_level_1" if measurement == "noisy_tree" else "first"
    assert budget.charges == ((spent, Fraction(1, 3)), ("rest (forfeited)", Fraction(2, 3)))


@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_a_scale_beyond_ten_million_is_refused_before_anything_is_spent(measurement: str) -> None:
    # Axes of 2 and 3 cells: (1 + 1)·(1 + 2), and weights of 2 and 3; choices compare two scores, or splits.
    reach = {"noisy_contrasts": 6, "noisy_weighted_sums": 6, "choose": 2, "choose_buckets": 2}
    least = Fraction(reach.get(measurement, 1), 10**6)
    budget = Budget(least)
    MEASUREMENTS[measurement](private_counts(sensitivity=10), Budget(least))
    with pytest.raises(MeasurementMisuse, match="10\\^7"):
        MEASUREMENTS[measurement](private_counts(sensitivity=11), budget)
    assert budget.charges == ()


@pytest.mark.parametrize("sensitivity", [0, -1])
def test_a_sensitivity_below_one_is_refused(sensitivity: int) -> None:
    with pytest.raises(MeasurementMisuse, match="sensitivity"):
        private_counts(sensitivity=sensitivity)


@pytest.mark.parametrize("sensitivity", [1.5, "2", None, Fraction(3, 2), np.float64(2)])
def test_a_sensitivity_is_a_whole_number(sensitivity: object) -> None:
    with pytest.raises(TypeError):
        private_counts(sensitivity=sensitivity)  # type: ignore[arg-type]


def test_a_numpy_sensitivity_becomes_a_python_integer_which_never_wraps_around() -> None:
    assert type(private_counts(sensitivity=np.int64(3)).sensitivity) is int  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "exact", [EXACT[:5], np.append(EXACT, 1), EXACT.reshape(2, 3), EXACT.astype(float), EXACT.astype(np.int32)]
)
@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_counts_of_another_shape_or_type_are_refused(measurement: str, exact: NDArray[np.int64]) -> None:
    with pytest.raises(MeasurementMisuse, match="int64"):
        MEASUREMENTS[measurement](private_counts(exact), Budget(Fraction(1)))


# What must not be seen


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{!r}".format, dir])
def test_nothing_that_prints_shows_a_count(show: Callable[[object], object]) -> None:
    assert str(CANARY) not in str(show(private_counts(np.full(6, CANARY))))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_counts_are_not_copied_or_pickled(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(MeasurementMisuse, match="not pickled or copied"):
        duplicate(private_counts(np.full(6, CANARY)))


def test_no_error_of_a_measurement_shows_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = private_counts(np.full(6, CANARY))

    def broken(scale: Fraction, size: int) -> NDArray[np.int64]:
        raise random_words.NoiseSelfTestFailed("broken for a test")

    monkeypatch.setattr(noise, "discrete_laplace", broken)
    monkeypatch.setattr(noise, "geometric", broken)
    for measurement in MEASUREMENTS.values():
        with pytest.raises(random_words.NoiseSelfTestFailed) as caught:
            measurement(counts, Budget(Fraction(1)))
        assert str(CANARY) not in "".join(traceback.format_exception(caught.value))


def test_domain_and_sensitivity_cannot_be_changed_behind_a_mechanisms_back() -> None:
    counts = private_counts(sensitivity=2)
    for name, value in (("sensitivity", 1), ("domain", Domain.from_shape((6,))), ("exact", EXACT)):
        with pytest.raises(AttributeError):
            setattr(counts, name, value)
    assert (counts.sensitivity, counts.domain) == (2, GRID)


@pytest.mark.parametrize("exact", [EXACT, np.array([2**60, -(2**60), 5, 6, 7, 8])], ids=["small", "cut off"])
@pytest.mark.parametrize("measurement", MEASUREMENTS)
def test_the_exact_counts_themselves_are_never_changed(measurement: str, exact: NDArray[np.int64]) -> None:
    before = exact.copy()
    MEASUREMENTS[measurement](private_counts(exact), Budget(Fraction(1)))
    assert np.array_equal(exact, before)
