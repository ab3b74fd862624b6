"""Workloads against sums written out, and what people may write for them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation.workloads import all_ranges, parse_workloads, prefixes, random_boxes, windows


@pytest.mark.parametrize("shape", [(1,), (7,), (4, 5), (3, 1, 4), (2, 3, 2, 2, 3)])
@pytest.mark.parametrize("kind", [int, float])
def test_sums_of_boxes_are_those_of_their_cells(shape, kind):
    values = np.random.default_rng(2).integers(-50, 50, size=shape).astype(kind)
    boxes = random_boxes(shape, 200)
    written_out = [values[tuple(map(slice, low, high))].sum() for low, high in zip(boxes.low, boxes.high, strict=True)]
    assert boxes.sums(values).tolist() == written_out
    cells = [values[tuple(map(slice, low, high))].size for low, high in zip(boxes.low, boxes.high, strict=True)]
    assert boxes.cells.tolist() == cells


def test_whole_numbers_are_summed_exactly():
    assert all_ranges(3, 2).sums(np.array([2**53, 1, 2])).tolist() == [2**53 + 1, 3]


def test_random_boxes_are_the_same_every_time_and_have_cells_within_the_cube():
    first, again, other = random_boxes((9, 4), 1000), random_boxes((9, 4), 1000), random_boxes((9, 4), 1000, seed=7)
    assert np.array_equal(first.low, again.low) and np.array_equal(first.high, again.high)
    assert not np.array_equal(first.low, other.low)
    assert (first.low >= 0).all() and (first.high <= (9, 4)).all() and (first.low < first.high).all()
    assert first.low.min(axis=0).tolist() == [0, 0] and first.high.max(axis=0).tolist() == [9, 4]


def test_all_ranges_of_a_length_are_there_once():
    ranges = all_ranges(10, 4)
    assert ranges.low[:, 0].tolist() == list(range(7)) and (ranges.cells == 4).all()
    assert all_ranges(10, 10).sums(np.ones(10)).tolist() == [10]


def test_without_words_one_axis_is_asked_ranges_and_several_boxes():
    (ranges,), (boxes,) = parse_workloads([], (120,)), parse_workloads([], (12, 10))
    assert (ranges.name, [at for at, _ in ranges.parts]) == ("range", ["1", "50", "100"])
    assert (boxes.name, len(boxes.parts[0][1].low)) == ("box", 100_000)
    both = parse_workloads(["ranges:3,2", "boxes:50"], (120,))
    assert [workload.about for workload in both] == ["all ranges of 2, 3 cells", "50 random boxes"]


def test_errors_of_a_workload_are_those_of_its_answers():
    (ranges,) = parse_workloads(["ranges:1,2"], (3,))
    exact, estimate = np.array([0, 1, 4]), np.array([1.0, 1.0, 2.0])
    found = ranges.errors(ranges.answers(exact), estimate)
    assert (found["range_mse", "1"], found["range_mse", "2"]) == (5 / 3, (1 + 4) / 2)
    assert found["range_mre", "2"] == (1 / 1 + 2 / 5) / 2 and found["range_mae", "2"] == 1.5
    assert found["range_max", ""] == 2
    assert found["range_mse", ""] == (5 / 3 + 5 / 2) / 2
    single = parse_workloads(["boxes:10"], (3,))[0]
    assert set(single.errors(single.answers(exact), estimate)) == {
        (f"box_{kind}", "") for kind in ("mse", "mre", "mae", "max")
    }


@pytest.mark.parametrize(
    "written",
    [
        "",
        "range",
        "ranges:0",
        "ranges:-1",
        "ranges:a",
        "ranges:1,,2",
        "ranges:121",
        "ranges:1e2",
        "windows",
        "windows:0",
        "windows:1,2",
        "prefixes:3",
    ],
)
def test_a_workload_that_is_none_is_refused(written):
    with pytest.raises(Refused, check=coded("workload_refused"), match="workload"):
        parse_workloads([written], (120,))


@pytest.mark.parametrize("written", [["boxes:1,2"], ["boxes:99999999999"], ["boxes:20000000"], ["boxes:5", "boxes:6"]])
def test_boxes_that_cannot_be_drawn_are_refused(written):
    with pytest.raises(Refused, check=coded("workload_refused")):
        parse_workloads(written, (12, 10))


def test_ranges_of_a_cube_are_refused():
    with pytest.raises(Refused, check=coded("workload_refused"), match="use `boxes`"):
        parse_workloads(["ranges"], (12, 10))


def test_a_longer_range_of_equal_errors_has_a_larger_error():
    (ranges,) = parse_workloads(["ranges:1,10,100"], (200,))
    found = ranges.errors(ranges.answers(np.zeros(200, dtype=int)), np.ones(200))
    errors = [found["range_mse", at] for at in ("1", "10", "100")]
    assert errors == [1, 100, 10_000] and all(before < after for before, after in pairwise(errors))


def test_prefixes_and_windows_are_all_there_are_each_once():
    (asked, seven) = parse_workloads(["prefixes", "windows:7"], (9,))
    assert (asked.about, seven.about) == ("all prefixes", "all windows of 7 cells")
    assert asked.parts[0][1].low.tolist() == [[0]] * 9
    assert asked.parts[0][1].high.ravel().tolist() == list(range(1, 10))
    assert [ends.ravel().tolist() for ends in (seven.parts[0][1].low, seven.parts[0][1].high)] == [[0, 1, 2], [7, 8, 9]]
    found = windows((3, 4), 3)
    assert sorted(zip(found.low.tolist(), found.high.tolist(), strict=True)) == [([0, 0], [3, 3]), ([0, 1], [3, 4])]
    corners = {tuple(high) for high in prefixes((3, 4)).high.tolist()}
    assert corners == {(one, two) for one in range(1, 4) for two in range(1, 5)}


def test_of_many_prefixes_some_are_drawn_the_same_ones_every_time():
    few = prefixes((1000, 1000), most=50)
    assert len(few.low) == 50 and few.high.min() >= 1 and few.high.max() <= 1000
    assert np.array_equal(few.high, prefixes((1000, 1000), most=50).high)
