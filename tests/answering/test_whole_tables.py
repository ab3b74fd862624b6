"""Whole tables: never negative, near the unbiased sums, and not too large where most cells are empty."""

from __future__ import annotations

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.whole_tables import Way, WholeTable, groupings

WARDS = CategoricalAxis("ward", "ward", tuple("abcdef"), other=True, levels={"house": tuple("xxyyzz")})
AGE = BinnedAxis("age", "age", tuple(map(float, range(101))))


def released(exact: np.ndarray, mechanism: str, epsilon: str = "1") -> Estimate:
    return dph.sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1)


def sparse(*shape: int) -> np.ndarray:
    draws = np.random.Generator(np.random.PCG64(7))
    exact = np.zeros(shape, dtype=np.int64)
    exact[tuple(draws.integers(0, side, 40) for side in shape)] = draws.integers(1, 400, 40)
    return exact


def of(made: Estimate) -> np.ndarray:
    return WholeTable.fit(made.domain, made.values, made.unbiased, made.sums).counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        *(("geometric", (300,)), ("boost", (300,)), ("ahp", (300,)), ("dpcube", (30, 40))),
        *(("kd_hierarchy", (6, 7, 8)), ("geometric", (6, 7, 8))),
    ],
)
@pytest.mark.parametrize("way", list(Way))
def test_counts_are_whole_and_not_negative_for_every_kind_of_noise(
    mechanism: str, shape: tuple[int, ...], way: int
) -> None:
    made = released(sparse(*shape), mechanism)
    counts = WholeTable.fit(made.domain, made.values, made.unbiased, made.sums, way).counts
    assert counts.shape == shape and counts.dtype == np.int64 and counts.min() >= 0


def test_sums_of_a_sparse_table_do_not_grow_with_its_empty_cells() -> None:
    exact = sparse(60, 80)
    made = released(exact, "geometric", "0.2")
    counts, unbiased = of(made), made.unbiased
    assert unbiased is not None
    clipped = np.maximum(made.values, 0)
    # 4,800 cells of noise with a standard deviation of 7: clipping adds 2.4 for each, some 12,000 records.
    assert clipped.sum() - unbiased.values.sum() > 8_000 and abs(counts.sum() - unbiased.values.sum()) < 5
    for axis in (0, 1):
        away = counts.sum(axis=axis) - exact.sum(axis=axis)
        alone = unbiased.values.sum(axis=axis) - exact.sum(axis=axis)
        assert (away**2).mean() < 1.1 * (alone**2).mean()
    assert ((counts - exact) ** 2).mean() < 0.7 * ((made.values - exact) ** 2).mean()


@pytest.mark.slow
def test_ranges_of_a_long_line_stay_near_the_unbiased_ones() -> None:
    """One release in thirty goes the other way; the mean of fifty is near 0.77, with a standard error of 0.04."""
    exact = sparse(4096)
    ours = alone = 0.0
    for made in (released(exact, "boost", "0.2") for _ in range(50)):
        ours += float((np.cumsum(of(made) - exact) ** 2).mean())
        alone += float((np.cumsum(made.values - exact) ** 2).mean())
    assert ours < alone


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1500,), (40, 40), (12, 12, 12)])
def test_large_cells_keep_their_mean_and_whole_cells_are_nearer_than_estimates(shape: tuple[int, ...]) -> None:
    """Forty cells of 14 deviations and more, the others empty: by shifts they lose two deviations and more."""
    draws = np.random.Generator(np.random.PCG64(7))
    exact = np.zeros(shape, dtype=np.int64)
    exact[tuple(draws.integers(0, side, 40) for side in shape)] = draws.integers(200, 1000, 40)
    large, off = exact > 0, {Way.SHIFTS: [], Way.SURE_CELLS: []}  # type: ignore[var-annotated]
    squares = {"estimate": 0.0, "whole": 0.0}
    for _ in range(25):
        made = released(exact, "geometric", "0.1")
        for way, found in off.items():
            counts = WholeTable.fit(made.domain, made.values, made.unbiased, way=way).counts
            found.append((counts - made.values)[large].mean())
        squares["estimate"] += float(((made.values - exact) ** 2).mean())
        squares["whole"] += float(((counts - exact) ** 2).mean())
    moved, before = np.mean(off[Way.SURE_CELLS]), np.mean(off[Way.SHIFTS])
    # In deviations of a cell, 14 records; the noise of the cells themselves is in neither.
    assert abs(moved) < 0.1 and before < -14.1 and squares["whole"] < 0.5 * squares["estimate"], (moved, before)


def test_own_sums_are_those_of_estimates_and_without_a_law_all_ways_are_one() -> None:
    made = released(np.full((60, 80), 40), "geometric", "0.2")  # noise has a deviation of 7
    moved = made.values + np.repeat([[3.0], [-3.0]], 30, axis=0)  # inside the band around the unbiased cells
    found = {
        way: WholeTable.fit(made.domain, moved, made.unbiased, way=way).counts for way in (Way.SURE_CELLS, Way.OWN_SUMS)
    }
    above = {way: float((counts - moved).sum(axis=1)[:30].mean()) for way, counts in found.items()}
    # A row of 80 cells has 240 records more than its unbiased sum.
    assert abs(above[Way.OWN_SUMS]) < 60 and above[Way.SURE_CELLS] < -120
    lawless = [WholeTable.fit(made.domain, made.values, None, way=way).counts for way in Way]
    assert all((counts == lawless[0]).all() for counts in lawless)


@pytest.mark.parametrize("shape", [(1600,), (40, 40)])
def test_fractions_of_boxes_are_rounded_towards_the_cells_own_noisy_counts(shape: tuple[int, ...]) -> None:
    """Boxes of 40 cells are told alike. By place, rounding adds f · (1 - f) to a squared error, here 0.17."""
    draws = np.random.Generator(np.random.PCG64(7))
    even = np.repeat(draws.uniform(0, 4, 40), 40).reshape(shape)
    exact = draws.poisson(even)
    noisy = dph.sanitize(exact, mechanism="geometric", epsilon="1", sensitivity=1)
    fractions = (even % 1) * (1 - even % 1)
    away = {}
    for way in (Way.OWN_SUMS, Way.LED_BY_CELLS):
        counts = WholeTable.fit(noisy.domain, even, noisy.unbiased, way=way).counts
        away[way] = float(((counts - exact) ** 2).mean() - ((even - exact) ** 2).mean())
        assert abs((counts - even).sum()) < 1
    assert away[Way.OWN_SUMS] == pytest.approx(fractions.mean(), abs=0.12)
    assert away[Way.LED_BY_CELLS] < away[Way.OWN_SUMS] - 0.3, away


def test_a_mechanism_names_a_way_and_those_with_nearer_sums_keep_them() -> None:
    ways = {name: Way(mechanisms.build(name, {}).whole_way) for name in mechanisms.names()}
    assert {name: way for name, way in ways.items() if way != Way.SURE_CELLS} == {
        "dpcube": Way.LED_BY_CELLS,
        "multiscale": Way.OWN_SUMS,
    }


def test_a_total_beyond_its_own_interval_is_brought_back() -> None:
    """A mechanism that smooths may publish a total that its own unbiased cells exclude."""
    made = released(np.zeros(500, dtype=np.int64), "geometric")
    smoothed = made.values + 5.0
    found = WholeTable.fit(made.domain, smoothed, made.unbiased)
    assert made.unbiased is not None
    (total, *_, cells) = found.distances
    assert abs(found.counts.sum() - max(0, made.unbiased.values.sum())) <= total.half_width + 1 and total.outside == 0
    assert (total.table, total.sums, cells.table, cells.sums) == ("total", 1, "age", 500) or cells.table == "cells"


def test_without_unbiased_cells_the_published_sums_are_kept() -> None:
    made = released(sparse(200), "p_hpartition")
    found = WholeTable.fit(made.domain, made.values, None)
    assert found.distances == () and abs(found.counts.sum() - max(0, made.values.sum())) <= 1


def test_levels_that_nest_are_groups_and_other_stands_alone() -> None:
    (houses,) = groupings(WARDS)
    assert [houses.tolist().index(label) for label in houses] == [0, 0, 2, 2, 4, 4, 6]
    across = CategoricalAxis("w", "w", tuple("abcd"), levels={"fine": tuple("xyxy"), "coarse": tuple("ppqq")})
    assert len(groupings(across)) == 1
    assert [labels.max() + 1 for labels in groupings(AGE)] == [13]


def test_sums_by_house_are_near_their_unbiased_sums() -> None:
    domain = Domain((WARDS, AGE))
    exact = np.zeros(domain.shape, dtype=np.int64)
    exact[0, :] = 30
    (houses,) = groupings(WARDS)
    away = []
    for _ in range(40):
        counts = PrivateCounts(domain, 1, lambda: exact.ravel())
        made = dph.sanitize(counts, mechanism="geometric", epsilon="0.1")
        assert made.unbiased is not None
        found = WholeTable.fit(domain, made.values, made.unbiased)
        total, ward = found.distances[0], found.distances[1]
        assert (total.table, ward.table, ward.sums) == ("total", "ward", 7)
        by_house = np.bincount(houses, weights=found.counts.sum(axis=1))
        unbiased = np.bincount(houses, weights=made.unbiased.values.sum(axis=1))
        away.append(np.abs(by_house - np.maximum(unbiased, 0)).max())
    # A house has 200 cells: a standard deviation of 200 records. Houses at 0 give their share to the others. Measured:
    # a mean of 355 with a standard deviation of 180 for one release; cells that are cut off at 0 alone give 1,000.
    assert np.mean(away) < 600
