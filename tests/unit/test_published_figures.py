"""Figures in a spec: what they may be of, and that they are in no digest."""

from __future__ import annotations

from typing import Any

import pytest
from spec_scenario import AGE, WARD, refusal, spec

STAY: dict[str, Any] = {"column": "stay", "start": 0, "stop": 30, "width": 10}
COUNTY: dict[str, Any] = {"column": "county", "values": ["a", "b"], "levels": {"state": ["x", "x"]}}
AXES = [AGE, WARD, STAY, COUNTY]
RATE: dict[str, Any] = {"name": "rate", "rate": {"population": "codes/people.csv"}, "by": ["state"]}
FIGURES = [
    RATE,
    {"name": "surgery", "share": {"ward": "surgery"}, "by": ["age"]},
    {"name": "old", "share": {"age": [65, None], "ward": ["surgery", "medicine"]}, "by": ["county"]},
    {"name": "mean_stay", "mean": "stay"},
    {"name": "mean_age", "mean": {"axis": "age", "high": 110}, "by": ["ward", "county"]},
]


def test_figures_are_in_no_digest() -> None:
    told = spec(axes=AXES, figures=FIGURES)
    assert told.digest == spec(axes=AXES).digest
    assert [figure.kind for figure in told.figures] == ["rate", "share", "share", "mean", "mean"]
    assert told.as_json()["figures"] == [figure.as_json() for figure in told.figures]


def test_a_spec_with_figures_opens_no_population() -> None:
    assert spec(axes=AXES, figures=[RATE]).figures[0].rate is not None


@pytest.mark.parametrize(
    ("figure", "place", "problem"),
    [
        ({"name": "x"}, "", "needs one of `rate`, `share` and `mean`"),
        ({"name": "x", "mean": "stay", "share": {"ward": "surgery"}}, "", "needs one of"),
        ({**RATE, "by": ["county", "wrad"]}, ".by[1]", "'wrad' is no axis of the release and no level of one. Did you"),
        ({**RATE, "by": ["county", "county"]}, ".by", "names an axis twice"),
        ({**RATE, "rate": {"population": "people.xlsx"}}, ".rate.population", "must be the path of a .csv or .parquet"),
        ({**RATE, "rate": {"population": "p.csv", "per": 0}}, ".rate.per", ""),
        ({**RATE, "rate": {"people": "p.csv"}}, ".rate.people", "unknown field"),
        ({"name": "x", "share": {"ward": "surgeri"}}, ".share.ward", "has no category 'surgeri'"),
        ({"name": "x", "share": {"ward": True}}, ".share.ward", "a word such as yes, quote it"),
        ({"name": "x", "share": {"age": [3, 20]}}, ".share.age", "3 cuts the bin"),
        ({"name": "x", "share": {"ward": "surgery"}, "by": ["ward"]}, ".by[0]", "is the axis that the share is of"),
        ({"name": "x", "mean": "ward"}, ".mean", "'ward' has no bins of numbers"),
        ({"name": "x", "mean": "age"}, ".mean", "needs `high` for its open bin"),
        ({"name": "x", "mean": "stay", "by": ["stay"]}, ".by[0]", "is the axis that the mean is of"),
        ({"name": "Rate of all", "mean": "stay"}, ".name", "must be a name of lower-case letters"),
    ],
)
def test_a_figure_that_no_table_tells_is_refused(figure: dict[str, Any], place: str, problem: str) -> None:
    found = refusal(axes=AXES, figures=[figure])
    assert problem in found[f"figures[0]{place}"]


def test_two_figures_have_two_names() -> None:
    assert "choose a new name" in refusal(axes=AXES, figures=[RATE, RATE])["figures[1].name"]


def test_a_figure_of_a_family_needs_one_table_with_its_axes() -> None:
    family = {"mechanism": "tables", "tables": {"list": [["age", "ward"], ["state"]]}, "axes": AXES}
    assert spec(**family, figures=[{"name": "surgery", "share": {"ward": "surgery"}, "by": ["age"]}, RATE]).figures
    found = refusal(**family, figures=[{**RATE, "by": ["state", "ward"]}])
    assert found["figures[0]"] == "no table of the release has state, ward together"


def test_an_amount_tells_its_own_figures() -> None:
    cost = {"column": "cost", "amount": [0, 20000]}
    of_ward = {"mean": "cost", "by": ["ward"]}
    assert spec(
        axes=[WARD, cost], figures=[{"name": "surgery", "share": {"ward": "surgery"}}, {"name": "m", **of_ward}]
    )
    figures = [{"name": "sum_cost", **of_ward}, {"name": "m", "share": {"cost": 0}}]
    figures += [
        {"name": "n", "share": {"ward": "surgery"}, "by": ["cost"]},
        {"name": "o", "mean": {"axis": "cost", "low": 0}},
    ]
    found = refusal(axes=[WARD, cost], figures=figures)
    assert "without declaring it" in found["figures[0].name"]
    assert "is an amount" in found["figures[1].share.cost"] and "is an amount" in found["figures[2].by[0]"]
    assert "whose ends are declared" in found["figures[3].mean.low"]
