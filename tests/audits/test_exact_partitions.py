"""What the choice of buckets loses, computed exactly: never more than its share, all of it at worst, more with a fault.

Scale 2 is that of Δ = 1 and ε = 1.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from black_box import pooled
from exact_partitions import bare_cells, cut_at_zero, loss, one_row_apart, one_sided, splits, two_sided, worst

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from examples import mostly_audited

SCALE = 2.0
ROUNDING = 1e-6
# Lines of eight cells on which the choice loses most, of those tried.
EIGHT = [
    ([9, 9, 9, 9, 0, 0, 0, 0], [9, 9, 9, 9, 1, 0, 0, 0]),
    ([0, 0, 0, 5, 5, 5, 5, 5], [1, 0, 0, 5, 5, 5, 5, 5]),
    ([9, 0, 9, 0, 9, 0, 9, 0], [10, 0, 9, 0, 9, 0, 9, 0]),
    ([30] * 8, [31] + [30] * 7),
]
# What one unit of two rows may do, also by moving.
TWO_ROWS = [
    ([3, 3, 0, 0], [3, 3, 1, 1]),
    ([3, 3, 0, 0], [3, 2, 1, 0]),
    ([9, 9, 0, 0], [9, 9, 2, 0]),
    ([0, 5, 5, 5, 5], [1, 5, 5, 5, 6]),
    ([4, 0, 4, 0, 4], [5, 0, 3, 0, 4]),
]


@pytest.mark.parametrize(
    ("cells", "most", "savings"),
    mostly_audited([(2, 4, (2,)), (3, 3, (0, 0)), (3, 3, (2, 1)), (4, 2, (2, 1)), (4, 2, (6, 5))], [0, 2]),
)
def test_no_split_of_few_cells_loses_more_than_its_share(cells: int, most: int, savings: tuple[int, ...]) -> None:
    found, *_ = worst(one_row_apart(cells, most), savings, one_sided(SCALE))
    assert 0.4 < found <= 1 + ROUNDING


@pytest.mark.parametrize("savings", mostly_audited([((0, 0, 0),), ((2, 1, 1),), ((6, 5, 4),)], [1]))
def test_nor_does_one_of_eight_cells(savings: tuple[int, ...]) -> None:
    found, *_ = worst(iter(EIGHT), savings, one_sided(SCALE))
    assert found <= 1 + ROUNDING


def test_the_share_is_all_lost_at_worst_so_a_smaller_scale_would_not_do() -> None:
    found, *_ = worst(iter(EIGHT), (20, 20, 20), one_sided(SCALE))
    assert found == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("pair", mostly_audited([(pair,) for pair in TWO_ROWS], [0, 3]))
def test_two_rows_lose_no_more_than_a_share_that_was_made_for_two(pair: tuple[list[int], list[int]]) -> None:
    here, there = pair
    savings = (4, 3, 2)[: (len(here) - 1).bit_length()]
    assert loss(*(splits(line, savings, one_sided(2 * SCALE)) for line in (here, there))) <= 1 + ROUNDING


FAULTS = {
    "half the scale": (one_sided(SCALE / 2), (20, 20, 20), 2.0),
    "half the scale of Laplace noise, single cells bare": (bare_cells(two_sided(SCALE / 2)), (2, 1, 1), 2.87),
    "single cells bare": (bare_cells(one_sided(SCALE)), (6, 5, 4), 1.06),
    "single cells bare, Laplace noise": (bare_cells(two_sided(SCALE)), (2, 1, 1), 1.5),
    "costs cut at zero": (cut_at_zero(one_sided(SCALE)), (6, 5, 4), 1.06),
    "costs cut at zero, Laplace noise": (cut_at_zero(two_sided(SCALE)), (2, 1, 1), 1.5),
}


@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_the_exact_computation_finds_a_planted_fault(name: str) -> None:
    noise, savings, known = FAULTS[name]
    found, *_ = worst(iter(EIGHT), savings, noise)
    assert found == pytest.approx(known, abs=0.01)


def test_the_door_chooses_with_these_probabilities() -> None:
    line, savings, runs = [0, 4, 4, 5, 0], (3, 2, 1), 5_000
    exact = np.array(line, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape((5,)), 1, lambda: exact)
    seen: Counter[tuple[int, ...]] = Counter()
    with pooled():
        for _ in range(runs):
            starts = counts.choose_buckets(np.arange(5), savings, Budget(Fraction(1)))
            seen[tuple(np.diff(starts, append=5).tolist())] += 1
    assert differing(seen, splits(line, savings, one_sided(SCALE))) < 6
    for wrong in (0.7, 1.3):
        assert differing(seen, splits(line, savings, one_sided(wrong * SCALE))) > 6


def differing(seen: Counter[tuple[int, ...]], chances: dict[tuple[int, ...], float]) -> float:
    """How many standard deviations the frequencies are from the probabilities: of the worst split."""
    runs = seen.total()
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9) and set(seen) <= set(chances)
    return max(
        abs(seen[split] - runs * chance) / (runs * chance * (1 - chance)) ** 0.5
        for split, chance in chances.items()
        if runs * chance > 30
    )
