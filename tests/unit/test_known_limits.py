"""What public figures leave of a count, against brute force."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.base.domain import Axis, CategoricalAxis, Domain, Figures, finest, texts_at
from dphist_pipeline.estimates.known_figures import KnownFigures, figures_as_facts, figures_in
from dphist_pipeline.spec._family_tables import _with_levels
from dphist_pipeline.spec.axes import domain_of

SEX: dict[str, Any] = {"column": "sex", "values": ["f", "m"]}
STATES = ["b", "a", "b", "c", "a"]
COUNTY: dict[str, Any] = {
    "column": "county",
    "values": [f"c{number}" for number in range(len(STATES))],
    "other": True,
    "levels": {"state": STATES, "region": ["N" if state in "ab" else "S" for state in STATES]},
}
FIGURES = {"b": 801, "a": 655, "c": 350, "other": 303}


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_limits_are_those_of_all_tables_that_meet_the_figures(data: st.DataObject) -> None:
    """By brute force: the least and the most that any table with these figures has in a box."""
    texts = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
    axis = CategoricalAxis("place", "place", tuple(f"p{n}" for n in range(len(texts))), False, {"area": tuple(texts)})
    rows = {text: data.draw(st.integers(0, 2)) for text in dict.fromkeys(texts)}
    sex = domain_of([SEX]).axes[0]
    domain = Domain((axis, sex))
    known = KnownFigures.of(figures_in({"level": "area", "figures": rows}), domain, domain)
    places = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, unique=True))
    sexes = data.draw(st.lists(st.integers(0, 1), min_size=1, unique=True))
    box = [np.array(sorted(places)), np.array(sorted(sexes))]
    # The rows of an area may lie in any of its cells; areas are free of each other.
    least, most = 0, 0
    for text, figure in rows.items():
        cells = [(place, one) for place in range(len(texts)) if texts[place] == text for one in range(2)]
        inside = [place in places and one in sexes for place, one in cells]
        held = [sum(way) for way in product(*([inside] * figure))]
        least, most = least + min(held), most + max(held)
    assert known.limits(box) == (least, most)
    values = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=domain.cells, max_size=domain.cells)), float)
    met = known.met(values.reshape(domain.shape))
    for text, figure in rows.items():
        assert math.isclose(met[np.array(texts) == text].sum(), figure, abs_tol=1e-9)


def test_coarser_finer_and_crossing_axes_have_the_figures_that_follow() -> None:
    whole = domain_of([SEX, COUNTY])
    county = whole.axes[1]
    assert isinstance(county, CategoricalAxis)
    state = CategoricalAxis("state", "county", ("b", "a", "c"), True, {})
    region = CategoricalAxis("region", "county", ("N", "S"), True, {})
    figures = figures_in({"level": "state", "figures": FIGURES})
    sexes = whole.axes[0]
    for axes, expected in [
        ((sexes, state), [[801, 655, 350, 303]]),
        ((region, sexes), [[1456], [350], [303]]),
        ((sexes,), [2109]),
        ((county,), [801, 655, 350, 303]),
    ]:
        known = KnownFigures.of(figures, Domain(axes), finest([whole]))
        assert known.figures.tolist() == expected
        assert known.sizes.sum() == Domain(axes).cells


WARD = {"column": "ward", "values": ["x", "y", "z"], "levels": {"house": ["e", "e", "w"]}}
WHOLE = domain_of([{"column": "age", "edges": [0, 18, 65], "below": True}, SEX, COUNTY, WARD])
RECORDS = np.random.Generator(np.random.PCG64(3)).integers(0, 50, WHOLE.shape)
AXES: dict[str, Axis] = {name: axis for one in WHOLE.axes for name, axis in _with_levels(one).items()}
AXIS_OF = {name: number for number, axis in enumerate(WHOLE.axes) for name in (axis.name, *axis.levels)}


def counted(names: tuple[str, ...]) -> np.ndarray:
    """The records by axes, or levels of axes, shape of these."""
    sums, order = RECORDS, [AXIS_OF[name] for name in names]
    for number, axis in enumerate(WHOLE.axes):
        texts = [texts_at(axis, name) for name in names if AXIS_OF[name] == number]
        if number not in order:
            sums = sums.sum(axis=number, keepdims=True)
        elif texts[0]:
            parts = [np.array(texts[0]) == text for text in dict.fromkeys(texts[0])]
            sums = np.stack([sums.compress(part, axis=number).sum(axis=number) for part in parts], axis=number)
    return sums.transpose(order + [number for number in range(sums.ndim) if number not in order]).reshape(
        [AXES[name].size for name in names]
    )


@pytest.mark.parametrize("by", [("sex", "county"), ("house", "state"), ("region", "sex", "ward")])
def test_groups_of_every_table_have_the_rows_that_figures_over_several_axes_tell(by: tuple[str, ...]) -> None:
    values = tuple(tuple(texts_at(AXES[level], level)) for level in by)
    figures = figures_in(figures_as_facts(Figures(by, values, counted(by)), "persons"))
    assert figures.levels == by and (figures.rows == counted(by)).all()
    for names in (("age",), ("sex", "county"), ("age", "sex", "state"), ("region", "ward"), ("sex", "county", "house")):
        table, exact = Domain(tuple(AXES[name] for name in names)), counted(names)
        known = KnownFigures.of(figures, table, WHOLE)
        assert (np.bincount(known.groups.ravel(), exact.ravel()) == known.figures.ravel()).all()
        told = {AXIS_OF[level] for level in by}
        assert [labels.max() > 0 for labels in known.labels] == [AXIS_OF[name] in told for name in names]
        met = known.met(exact + np.arange(exact.size).reshape(exact.shape) % 3.0)
        assert np.allclose(np.bincount(known.groups.ravel(), met.ravel()), known.figures.ravel())
