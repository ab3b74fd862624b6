"""Roll-ups along a hierarchy and ranges of days: the same from an estimate, from published files and in SQL."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise

import by_hand
import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from answering_scenario import attached
from by_hand import WARD
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.grammar import parse_where
from dphist_pipeline.answering.plot import release_svg
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from examples import mostly_soaked

COUNTY = {
    "column": "county",
    "values": ["01", "02", "03", "04"],
    "levels": {"state": ["A", "B", "A", "C"], "region": ["S", "S", "S", "N"]},
    "labels": ["Autauga", "", "Mobile", "Kodiak"],
    "other": True,
}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02", "other": True}
AXES = [COUNTY, DAY, WARD]
# A box, and the same box cell by cell: positions along county and along day.
BOXES = [
    ({"state": "A"}, [0, 2], range(5)),
    ({"state": ["A", "C"]}, [0, 2, 3], range(5)),
    ({"region": "S", "county": ["02", "03", "04"]}, [1, 2], range(5)),
    ({"region": "S", "state": "B"}, [1], range(5)),
    ({"state": None}, [4], range(5)),
    ({"state": {"not": "A"}}, [1, 3, 4], range(5)),
    ({"state": {"not": ["A", None]}, "county": {"not": ["04"]}}, [1], range(5)),
    ({"county": "Mobile"}, [2], range(5)),
    ({"county": {"not": ["Autauga", "02"]}}, [2, 3, 4], range(5)),
    ({"day": ("2026-01-12", "2026-01-26")}, range(5), [1, 2]),
    ({"day": (None, "2026-01-12"), "state": "C"}, [3], [0]),
    ({"day": ("2026-01-26", None)}, range(5), [3]),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    public = tmp_path_factory.mktemp("public")
    made = by_hand.estimate(AXES)
    return made, by_hand.publish(public, made, AXES), build_catalogue(public, tmp_path_factory.mktemp("scratch"))


def asked(catalogue, box, question="dph_box('r.weekly', $box)"):
    as_json = json.dumps({axis: list(wanted) if isinstance(wanted, tuple) else wanted for axis, wanted in box.items()})
    with attached(catalogue) as connection:
        return connection.execute(f"FROM r.{question}", {"box": as_json}).fetchone()


@pytest.mark.parametrize(("box", "counties", "weeks"), mostly_soaked(BOXES, range(1, len(BOXES), 2)), ids=str)
def test_all_three_ways_sum_the_same_cells(published, box, counties, weeks):
    made, release, catalogue = published
    inside = made.values[np.ix_(list(counties), list(weeks), range(3))]
    answer = made.box(**box)
    assert answer.estimate == pytest.approx(inside.sum())
    assert answer.cells == inside.size
    assert release.answer(**box) == answer
    _, _, estimate, _, _, lower, upper, basis, cells, *_ = asked(catalogue, box)
    assert (estimate, cells, basis) == (answer.estimate, inside.size, "unbiased")
    assert (lower, upper) == (answer.ci_lower, answer.ci_upper)


@pytest.mark.slow
def test_a_label_is_taken_where_it_is_unique_and_no_code(tmp_path):
    drug = {"column": "drug", "values": ["A", "B", "C", "D"], "labels": ["B", "same", "same", "only"], "other": True}
    made = by_hand.estimate([drug])
    release = by_hand.publish(tmp_path, made, [drug])
    (tmp_path / "scratch").mkdir()
    catalogue = build_catalogue(tmp_path, tmp_path / "scratch")
    for asked_for, position in (("B", 1), ("only", 3), (None, 4)):
        assert (
            release.answer(drug=asked_for).unbiased
            == made.unbiased.values[position]
            == made.box(drug=asked_for).unbiased
        )
        assert asked(catalogue, {"drug": asked_for})[3] == made.unbiased.values[position]
    for ask in (made.box, release.answer, lambda **box: asked(catalogue, box)):
        with pytest.raises((QuestionRefused, duckdb.Error), match=r"the label '?same'?; use their codes"):
            ask(drug="same")


def test_days_may_be_dates(published):
    made, _, _ = published
    assert made.box(day=(date(2026, 1, 12), None)) == made.box(day=("2026-01-12", None))


@pytest.mark.parametrize(
    ("box", "says"),
    [
        ({"day": (3, 9)}, "days"),
        ({"day": ("2026-02-31", None)}, "2026-0"),
        ({"state": "Z"}, "state"),
        ({"district": "A"}, "district"),
        ({"region": "N", "state": "A"}, "county"),
        ({"state": {"not": ["A", "B", "C", None]}}, "county"),
        ({"state": {"not": []}}, "takes"),
        ({"state": {"except": "A"}}, "all but some as"),
        ({"day": {"not": "2026-01-12"}}, "range"),
        ({"state": "Mobile"}, "no category"),
        ({"county": {"not": "mobile"}}, "no category"),
    ],
    ids=str,
)
def test_a_question_that_the_grid_cannot_answer_is_refused_both_ways(published, box, says):
    made, _, catalogue = published
    with pytest.raises(QuestionRefused, match=says):
        made.box(**box)
    with pytest.raises(duckdb.Error, match=says):
        asked(catalogue, box)


@pytest.mark.slow
def test_an_end_within_a_week_is_answered_all_three_ways(published):
    made, release, catalogue = published
    answer, row = made.box(day=("2026-01-13", None)), asked(catalogue, {"day": ("2026-01-13", None)})
    assert answer.note.startswith("ends cut bins of day") and release.answer(day=("2026-01-13", None)) == answer
    assert (row[2], *row[5:7], row[9]) == (answer.estimate, answer.ci_lower, answer.ci_upper, answer.note)
    with pytest.raises(duckdb.Error, match="2026-01-13 is not an edge; the nearest are 2026-01-12 and 2026-01-19"):
        asked(catalogue, {"day": ("2026-01-13", None)}, "dph_band('r.weekly', box := $box)")


def test_an_unknown_axis_is_told_the_levels_too(published):
    _, _, catalogue = published
    with pytest.raises(duckdb.Error, match="the axes are county, region, state, day, ward"):
        asked(catalogue, {"town": "A"})


def test_days_and_levels_are_asked_on_the_command_line():
    assert parse_where("day in [2026-01-12, 2026-01-26) and state = 'A'") == {
        "day": ("2026-01-12", "2026-01-26"),
        "state": "A",
    }
    assert parse_where("day >= 2026-01-12") == {"day": ("2026-01-12", None)}


def test_the_published_table_has_a_column_for_each_level_and_for_labels(published):
    _, release, _ = published
    rows = pq.read_table(release.path / "histogram.parquet").to_pylist()[:: 5 * 3]
    seen = [tuple(row[name] for name in ("county", "county_label", "state", "region")) for row in rows]
    assert seen == [
        ("01", "Autauga", "A", "S"),
        ("02", None, "B", "S"),
        ("03", "Mobile", "A", "S"),
        ("04", "Kodiak", "C", "N"),
        (None, None, None, None),
    ]


def test_days_are_published_as_text(published):
    _, release, _ = published
    rows = pq.read_table(release.path / "histogram.parquet").to_pylist()[: 5 * 3 : 3]
    ends = ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26", "2026-02-02"]
    assert [(row["day_lower"], row["day_upper"]) for row in rows] == [
        *pairwise(ends),
        (None, None),
    ]


def test_a_catalogue_can_be_grouped_by_a_level(published):
    made, _, catalogue = published
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        rows = connection.execute("SELECT state, sum(estimate) FROM weekly GROUP BY state ORDER BY state").fetchall()
    by_state = {"A": made.values[[0, 2]].sum(), "B": made.values[1].sum(), "C": made.values[3].sum()}
    assert dict(rows) == {**by_state, None: pytest.approx(made.values[4].sum())}


def test_a_picture_of_weeks_names_their_days(tmp_path):
    made = by_hand.estimate([DAY])
    release = by_hand.publish(tmp_path, made, [DAY])
    assert "2026-01-12" in release_svg(release.path)
