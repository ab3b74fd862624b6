"""Boxes of cells against plain masks, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, HEIGHT, SCALE, WARD
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.chosen_cells import Condition, QuestionRefused, chosen_cells
from dphist_pipeline.estimates.estimate import Estimate, answer_box
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.notes import NO_INTERVAL
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from examples import examples

AXES = [AGE, WARD, HEIGHT]
MADE = by_hand.estimate(AXES)


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers agree, where no interval agrees with no interval."""
    return repr(one) == repr(other)


@st.composite
def axes(draw: st.DrawFn, name: str) -> Axis:
    other = draw(st.booleans())
    if draw(st.booleans()):
        values = draw(st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True))
        return CategoricalAxis(name, name, tuple(values), other)
    whole = st.integers(-(10**15), 10**15).map(float)
    edges = draw(st.lists(whole | st.floats(-5, 5), min_size=2, max_size=5, unique=True).map(sorted))
    closed = draw(st.sampled_from(["left", "right"]))
    return BinnedAxis(name, name, tuple(edges), closed, draw(st.booleans()), draw(st.booleans()), other)


def mask(axis: Axis, wanted: Condition) -> list[bool]:
    """Which cells along an axis are wanted, cell by cell."""
    if isinstance(axis, CategoricalAxis):
        named = wanted["not"] if isinstance(wanted, dict) else wanted
        listed = named if isinstance(named, list) else [named]
        return [(category in listed) != isinstance(wanted, dict) for category in [*axis.values, *[None] * axis.other]]
    assert isinstance(wanted, tuple)
    low, high = (-math.inf if wanted[0] is None else wanted[0], math.inf if wanted[1] is None else wanted[1])
    cells = [(-math.inf, axis.edges[0])] * axis.below + list(zip(axis.edges, axis.edges[1:], strict=False))
    cells += [(axis.edges[-1], math.inf)] * axis.above
    return [low <= lower and upper <= high for lower, upper in cells] + [False] * axis.other


@st.composite
def questions(draw: st.DrawFn) -> tuple[Domain, dict[str, Condition]]:
    domain = Domain(tuple(draw(axes(name)) for name in ("a", "b", "c")[: draw(st.integers(1, 3))]))
    box: dict[str, Condition] = {}
    for axis in domain.axes:
        if isinstance(axis, CategoricalAxis):
            categories = st.sampled_from([*axis.values, *[None] * axis.other])
            listed = categories | st.lists(categories, min_size=1)
            others = st.fixed_dictionaries({"not": listed}).filter(lambda wanted, axis=axis: any(mask(axis, wanted)))
            wish: Any = listed | others if axis.size > 1 else listed
        else:
            ends = [None, *axis.edges]
            wish = st.sampled_from([pair for pair in product(ends, ends) if any(mask(axis, pair))])
        if draw(st.booleans()):
            box[axis.name] = draw(wish)
    return domain, box


@pytest.mark.slow
@examples(200)
@given(questions(), st.integers(-50, 50))
def test_a_box_is_the_sum_over_its_mask(question: tuple[Domain, dict[str, Condition]], first: int) -> None:
    domain, box = question
    noisy = np.arange(first, first + domain.cells, dtype=np.float64).reshape(domain.shape)
    inside = np.ones(domain.shape, dtype=bool)
    for number, axis in enumerate(domain.axes):
        if axis.name in box:
            along = np.array(mask(axis, box[axis.name])).reshape(
                [-1 if n == number else 1 for n in range(len(domain.axes))]
            )
            inside &= along
    found = answer_box(Estimate(domain, noisy * 3, (), NoisyCells(noisy, SCALE)), box)
    centre, reach = noisy[inside].sum(), noise_law(SCALE).half_width_of_sum(int(inside.sum()))
    assert (found.cells, found.basis) == (inside.sum(), "unbiased")
    assert found.estimate == pytest.approx((noisy * 3)[inside].sum())
    assert (found.unbiased, found.ci_lower, found.ci_upper) == (centre, centre - reach, centre + reach)


def test_open_ends_take_in_below_and_above_but_never_other() -> None:
    sizes = {
        wanted: MADE.box(age=wanted, ward="surgery", height=(0, 0.1)).cells
        for wanted in [(None, 18), (18, None), (None, None), (0, 65)]
    }
    assert sizes == {(None, 18): 2, (18, None): 2, (None, None): 4, (0, 65): 2}
    assert MADE.box().cells == 5 * 3 * 4
    assert MADE.box(age=(-math.inf, math.inf)) == MADE.box(age=(None, None))


def test_ends_are_compared_as_the_doubles_nearest_to_their_digits() -> None:
    assert MADE.box(height=(0.1, 0.3)).cells == 2 * 15
    assert MADE.box(height=(Fraction(1, 10), np.float64(0.3))).cells == 2 * 15
    assert "cut bins of height" in MADE.box(height=(0.1, 0.1 + 0.2)).note


def test_an_interval_around_the_unbiased_estimate_is_not_cut_off_at_zero() -> None:
    def around(count: float) -> Answer:
        return by_hand.estimate([WARD], np.array([count, 0, 0]), off=-1).box(ward="surgery")

    reach = noise_law(SCALE).half_width_of_sum(1)
    for count in (-reach - 5, 3, reach + 1):
        found = around(count)
        assert (found.unbiased, found.ci_lower, found.ci_upper) == (count, count - reach, count + reach)
        assert found.estimate == count - 1


def test_without_noisy_cells_there_is_an_estimate_and_no_interval() -> None:
    found = by_hand.estimate([WARD], np.array([1.0, 2, 4]), scale=None, off=0).box(ward=["surgery", None])
    assert same(found, Answer(5.0, math.nan, math.nan, math.nan, "noise_only", 2, note=NO_INTERVAL))


def test_a_range_is_a_box_of_the_only_axis() -> None:
    made = by_hand.estimate([AGE])
    assert made.range(0, 65) == made.box(age=(0, 65))
    assert made.range(None, 18).cells == 2
    with pytest.raises(TypeError, match="use `box"):
        MADE.range(0, 65)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"wrad": "surgery"}, "axis 'wrad': there is no such axis. Did you mean 'ward'"),
    ({"ward": "surgey"}, "axis 'ward': has no category 'surgey'. Did you mean 'surgery'"),
    ({"ward": ["surgery", "x"]}, "has no category 'x'. Known: medicine, surgery"),
    ({"ward": []}, "not an empty list"),
    ({"ward": 7}, "has no category 7. Known"),
    ({"ward": (0, 18)}, "has no category 0"),
    ({"height": "0.1"}, r"takes a range \(low, high\)"),
    ({"height": (0, 0.1, 0.2)}, r"takes a range \(low, high\)"),
    ({"height": None}, r"takes a range \(low, high\)"),
    ({"age": (18, 66)}, "66 cuts the cells above the last edge; use 65, or leave that end open"),
    ({"age": (-1, 18)}, "-1 cuts the cells below the first edge; use 0, or leave that end open"),
    ({"age": (18, 18)}, r"the range \[18, 18\) is empty"),
    ({"age": (65, 0)}, r"the range \[65, 0\) is empty"),
    ({"age": (math.nan, 18)}, r"the range \[nan, 18\) is empty"),
    ({"age": (18, math.nan)}, r"the range \[18, nan\) is empty"),
    ({"age": (math.inf, None)}, r"the range \[inf, inf\) is empty"),
    ({"age": (18, "65")}, "takes numbers as ends, not '65'"),
    ({"age": (18, 10**400)}, "takes numbers as ends"),
    ({"age": (18, Decimal(65))}, "takes numbers as ends"),
    ({"height": (None, 0)}, r"has no cells in \[-inf, 0\)"),
    ({"height": (0.4, None)}, r"has no cells in \[0.4, inf\)"),
]


@pytest.mark.parametrize(("box", "message"), REFUSED, ids=str)
def test_a_question_that_the_grid_cannot_answer_is_refused(box: dict[str, Any], message: str) -> None:
    with pytest.raises(QuestionRefused, match=message) as refused:
        MADE.box(**box)
    assert refused.value.axis == next(iter(box))


def test_other_is_refused_where_there_is_none() -> None:
    with pytest.raises(QuestionRefused, match=r"has no category None\. Known: a, b"):
        by_hand.estimate([{"column": "ward", "values": ["a", "b"]}]).box(ward=None)


def test_edges_are_named_with_all_their_digits() -> None:
    made = by_hand.estimate([{"column": "income", "edges": [12345678, 12345679, 999999999999999]}])
    with pytest.raises(QuestionRefused, match="the bin from 12345679 to 999999999999999;"):
        chosen_cells(made.domain, {"income": (12345680, None)})


@pytest.mark.slow
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
def test_a_published_release_answers_as_its_estimate_does(tmp_path: Path, scale: Fraction | None) -> None:
    made: Estimate = by_hand.estimate(AXES, scale=scale)
    published = by_hand.publish(tmp_path, made, AXES)
    boxes: list[dict[str, Condition]] = [
        *[{}, {"age": (None, 18)}, {"ward": None}, {"ward": ["medicine", None], "height": (0.1, 0.3)}],
        *[{"age": (18, 65), "ward": "surgery", "height": (None, 0.1)}],
    ]
    for box in boxes:
        assert same(published.answer(**box), made.box(**box))
    with pytest.raises(QuestionRefused, match="Did you mean 'age'"):
        published.answer(agee=(0, 18))


@pytest.mark.slow
def test_altered_files_give_no_answer(tmp_path: Path) -> None:
    published = by_hand.publish(tmp_path, MADE, AXES)
    values: NDArray[np.uint8] = np.fromfile(published.path / "histogram.parquet", dtype=np.uint8)
    values[values.size // 2] ^= 1
    values.tofile(published.path / "histogram.parquet")
    with pytest.raises(PublishedFilesDamaged, match=r"altered histogram\.parquet"):
        published.answer(age=(0, 18))
