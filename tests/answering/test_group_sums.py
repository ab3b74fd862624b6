"""Sums of whole groups: the noise that was drawn for the groups gives their interval, the same in SQL and in Python."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pyarrow.parquet as pq
import pytest
from answering_scenario import attached, rows_of
from quick_catalogue import build_catalogue

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import LEVEL_OF_TWO, noise_law
from dphist_pipeline.estimates.noisy import NestedSums, NoisyCells, NoisySums
from dphist_pipeline.estimates.notes import CUTS_GROUP

AGE: dict[str, Any] = {"column": "age", "start": 0, "stop": 64, "width": 1}
COUNTS = np.concatenate([np.zeros(20), np.full(20, 400), np.arange(24) * 100]).astype(np.int64)
ALONE = ("structure_first", "ihp", "p_hpartition", "kd_hierarchy")
BESIDE = ("ahp", "sreb_gca", "dphr", "grouping_smoothing", "dpcube")


def released(mechanism: str, **settings: Any) -> Estimate:
    made = dph.sanitize(COUNTS, mechanism=mechanism, epsilon="1", sensitivity=1, **settings)
    return Estimate(by_hand.estimate([AGE]).domain, made.values, made.charges, made.unbiased, made.groups, made.sums)


def asked(public: Path, question: str, *parameters: object) -> list[dict[str, Any]]:
    (public / "scratch").mkdir(exist_ok=True)
    with attached(build_catalogue(public, public / "scratch")) as connection:
        return rows_of(connection, f"FROM r.{question}", *parameters)


def answer_of(row: dict[str, Any]) -> Answer:
    empty = {"note": ""}
    named = {name: row[name] for name in asdict(Answer(0, 0, 0, 0, "unbiased", 0)) if name in row}
    return Answer(**{name: empty.get(name, math.nan) if value is None else value for name, value in named.items()})


def ranges(made: Estimate) -> list[tuple[int, int]]:
    """Everything, unions of neighbouring groups, and ranges that cut a group."""
    assert made.groups is not None
    edges = [0, *(np.flatnonzero(np.diff(made.groups)) + 1).tolist(), 64]
    whole = [(edges[0], edges[1]), (edges[1], edges[-1]), (edges[len(edges) // 3], edges[-2])]
    return [pair for pair in [(0, 64), *whole, (1, 63), (5, 6), (17, 50)] if pair[0] < pair[1]]


OF_EACH_KIND = ("ahp", "dpcube")  # scattered groups and boxes


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [name if name in OF_EACH_KIND else pytest.param(name, marks=pytest.mark.soak) for name in (*ALONE, *BESIDE)],
)
def test_sums_of_groups_are_answered_alike_by_estimates_files_and_sql(tmp_path: Path, mechanism: str) -> None:
    made = released(mechanism)
    release = by_hand.publish(tmp_path, made, [AGE])
    for low, high in ranges(made):
        expected = made.range(low, high)
        assert repr(release.answer(age=(low, high))) == repr(expected)
        assert repr(release.range("age", low, high).outer) == repr(expected)
    for low, high in ((0.5, 41.25), (16, 63.5)):
        assert repr(release.answer(age=(low, high))) == repr(made.range(low, high))
    (row,) = asked(tmp_path, "dph_marginal('r.weekly', [])")
    assert answer_of(row) == made.range(0, 64) == answer_of(asked(tmp_path, "dph_total('r.weekly')")[0])
    rows = asked(tmp_path, "dph_marginal('r.weekly', ['age'])")
    assert repr([answer_of(row) for row in rows]) == repr([made.range(cell, cell + 1) for cell in range(64)])


@pytest.mark.parametrize("mechanism", ALONE)
def test_without_noisy_cells_a_union_of_whole_groups_has_the_law_of_its_draws(mechanism: str) -> None:
    made = released(mechanism)
    assert made.groups is not None and made.sums is not None
    for low, high in ranges(made):
        found, inside = made.range(low, high), np.unique(made.groups[low:high])
        whole = np.isin(made.groups, inside).sum() == high - low
        assert found.basis == ("groups" if whole else "noise_only")
        assert (found.note == CUTS_GROUP) == (not whole)
        if not whole:
            assert math.isnan(found.ci_lower)
            continue
        draws = round((found.noise_error / math.sqrt(made.sums.variance)) ** 2)
        assert 1 <= draws <= inside.size
        reach = noise_law(made.sums.scale).half_width_of_sum(draws)
        assert (found.ci_lower, found.ci_upper) == (found.unbiased - reach, found.unbiased + reach)
        if isinstance(made.sums, NoisySums):
            assert (draws, found.unbiased) == (inside.size, made.sums.values[inside].sum())
            assert found.estimate == pytest.approx(found.unbiased)


@pytest.mark.parametrize("settings", [{}, {"estimation": "least_squares"}], ids=str)
def test_beside_noisy_cells_the_total_alone_is_answered_by_both(settings: dict[str, Any]) -> None:
    made = released("dpcube", **settings)
    cells, sums = made.unbiased, made.sums
    assert isinstance(cells, NoisyCells) and isinstance(sums, NoisySums)
    total, other = made.range(None, None), made.range(0, 63)
    assert (total.basis, other.basis) == ("groups", "unbiased")
    one = noise_law(cells.scale).half_width_of_sum(64, LEVEL_OF_TWO)
    two = noise_law(sums.scale).half_width_of_sum(sums.values.size, LEVEL_OF_TWO)
    centres = cells.values.sum(), sums.values.sum()
    ends = [max(centres[0] - one, centres[1] - two), min(centres[0] + one, centres[1] + two)]
    assert (total.ci_lower, total.ci_upper) == tuple(ends)
    assert total.unbiased == sum(ends) / 2


def hierarchy() -> NestedSums:
    """Six groups; the first box is halved, then its left half, then one of the right."""
    levels = [[6], [3, 3], [2, 1, 1, 2], [1, 1, 1, 1, 1, 1]]
    parents = [[0, 0], [0, 0, 1, 1], [0, 0, 1, 2, 3, 3]]
    made = [NoisySums(np.array(one) * 10.0, np.array(one), Fraction(4)) for one in levels]
    return NestedSums.of_levels(made, [np.array(one) for one in parents])


@pytest.mark.parametrize(
    ("groups", "boxes"),
    [
        ([0, 1, 2, 3, 4, 5], [0]),
        ([0, 1, 2], [1]),
        ([0, 1], [3]),
        ([2], [4]),
        ([1, 2, 3], [4, 5, 8]),
        ([0, 1, 2, 4, 5], [1, 6]),
        ([], []),
    ],
    ids=str,
)
def test_a_set_is_made_up_of_the_fewest_boxes_of_a_hierarchy(groups: list[int], boxes: list[int]) -> None:
    inside = np.zeros(6, dtype=np.int64)
    inside[groups] = 1
    found = hierarchy().whole_boxes(inside)
    assert found is not None and found.tolist() == boxes


@pytest.mark.slow
def test_the_fewest_boxes_are_found_in_sql_too(tmp_path: Path) -> None:
    axis = {"column": "age", "start": 0, "stop": 12, "width": 1}
    wide = hierarchy()
    sums = NestedSums(wide.values, 2 * wide.sizes, wide.parents, wide.firsts, wide.lasts, wide.scale)
    values, groups = np.arange(12.0), np.repeat(np.arange(6), 2)
    made = Estimate(by_hand.estimate([axis]).domain, values, (("counts", Fraction(1)),), groups=groups, sums=sums)
    release = by_hand.publish(tmp_path, made, [axis])
    for low in range(12):
        for high in range(low + 1, 13):
            if (low % 2 == high % 2 == 0 and high - low > 2) or (low, high) in ((1, 4), (0, 3), (4, 6)):
                assert repr(release.answer(age=(low, high))) == repr(made.range(low, high))
    assert made.range(2, 8).noise_error == pytest.approx(math.sqrt(3 * noise_law(Fraction(4)).variance))


@pytest.mark.slow
def test_a_sum_is_published_only_where_one_was_drawn(tmp_path: Path) -> None:
    one = by_hand.publish(tmp_path, released("structure_first"), [AGE], "one")
    two = by_hand.publish(tmp_path, released("noise_first"), [AGE], "two")
    assert "sums.parquet" in json.loads((one.path / "audit.json").read_bytes())["files"]
    assert not (two.path / "sums.parquet").exists()
    rows = pq.read_table(one.path / "sums.parquet").to_pylist()
    assert [row["parent"] for row in rows] == [None] * 16
    assert {row["noise_scale"] for row in rows} == {"2"}
    groups = asked(tmp_path, "internals.dph_groups ORDER BY sum_number")
    assert [{name: row[name] for name in rows[0]} for row in groups] == rows
    assert {row["noise_variance"] for row in groups} == {noise_law(Fraction(2)).variance}


def test_groups_hold_their_law_at_their_level() -> None:
    """P(miss) of single groups over draws, and of intervals 30 % narrower."""
    domain, scale = Domain.from_shape((4,)), Fraction(20)
    from dphist_pipeline.confidential import noise

    held = narrow = 0
    for draw in noise.discrete_laplace(scale, 2 * 4000).reshape(4000, 2):
        sums = NoisySums(draw + 100.0, np.array([2, 2]), scale)
        made = Estimate(domain, np.zeros(4), (), groups=np.array([0, 0, 1, 1]), sums=sums)
        found = made.range(None, None)
        reach = (found.ci_upper - found.ci_lower) / 2
        held += abs(found.unbiased - 200) <= reach
        narrow += abs(found.unbiased - 200) <= 0.7 * reach
    assert held >= 0.95 * 4000 - 6 * math.sqrt(4000 * 0.95 * 0.05) > narrow


@pytest.mark.slow
def test_disjoint_intervals_of_a_total_are_told_alike_by_estimates_files_and_sql(tmp_path: Path) -> None:
    """Noise this large is nearly never drawn; then one interval misses, and that of the smaller noise is told."""
    made = released("dpcube")
    assert isinstance(made.sums, NoisySums)
    far = replace(made, sums=replace(made.sums, values=made.sums.values + 1000.0))
    total = far.range(None, None)
    reach = noise_law(made.sums.scale).half_width_of_sum(made.sums.values.size, LEVEL_OF_TWO)
    middle = far.sums.values.sum()  # type: ignore[union-attr]
    assert (total.unbiased, total.ci_lower, total.ci_upper) == (middle, middle - reach, middle + reach)
    assert repr(by_hand.publish(tmp_path, far, [AGE]).answer()) == repr(total)
