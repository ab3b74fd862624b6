"""What public figures leave of a count, against brute force."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.base.domain import CategoricalAxis, Domain, Figures, finest
from dphist_pipeline.estimates.known_figures import KnownFigures
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
    known = KnownFigures.of(Figures("area", rows), domain, domain)
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
    figures = Figures("state", FIGURES)
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
