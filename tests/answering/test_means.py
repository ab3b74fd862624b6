"""Means and sums over a binned axis: the same in SQL and Python, and held as often as promised."""

from __future__ import annotations

from pathlib import Path

import by_hand
import duckdb
import numpy as np
import pytest
from answering_scenario import PERIODS, TOLD, Asked, Box, as_json, assert_told, attached, published_once, rows_of
from moment_oracle import Moments

from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.notes import NO_MEAN
from examples import mostly_soaked

pytestmark = pytest.mark.slow

ENDS = (-5.0, 120.0)
QUESTIONS: list[tuple[str, Box]] = [
    ("age", {}),
    ("age", {"age": (0, 65), "state": "A"}),
    ("age", {"age": (18, 65)}),
    ("age", {"region": ["S", None], "day": ("2026-01-12", "2026-02-09"), "age": (None, 65)}),
    ("day", {"county": {"not": "01"}}),
]


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


@pytest.mark.parametrize(("axis", "box"), mostly_soaked(QUESTIONS, [1, 4]), ids=str)
def test_means_and_sums_are_those_of_the_cells_in_sql_and_python(store: Asked, axis: str, box: Box) -> None:
    macros = ("mean", "sum") if axis == "age" else ("mean",)
    ends = ENDS if axis == "age" else (None, None)
    for macro in macros:
        with attached(store.catalogue) as connection:
            rows = rows_of(connection, f"FROM r.dph_{macro}('r.weekly', ?, ?, ?, ?)", axis, *ends, as_json(box))
        assert [row["period"] for row in rows] == list(PERIODS)
        for row in rows:
            expected = getattr(Moments.of(store.oracles[row["period"]], axis, ENDS, box), macro)()
            release = store.releases[row["period"]]
            told = getattr(release, macro)(axis, *ends, box) if row["period"] in TOLD else None
            assert_told(row, expected, told)


REFUSED = {
    "dph_mean('r.weekly', 'age')": "age has an open bin; say where its values end, for example low := -10, high := 75",
    "dph_sum('r.weekly', 'age', low := -1)": "age has an open bin; say where its values end, for example high := 75,",
    "dph_mean('r.weekly', 'age', 1, 100)": "axis age: low must lie below 0, the last edge on that side",
    "dph_mean('r.weekly', 'age', 0, 90)": "axis age: low must lie below 0, the last edge on that side",
    "dph_mean('r.weekly', 'age', -1, 64)": "axis age: high must lie above 65, the last edge on that side",
    "dph_mean('r.weekly', 'county')": "there is no binned axis county in period 2026-03-02; those are age, day",
    "dph_sum('r.weekly', 'day')": "axis day holds days, which have no sum; dph_mean takes it",
    "dph_sum('r.weekly', 'age', box := {'age': [3, 18]})": "3 is not an edge",
}


@pytest.mark.parametrize(("question", "message"), REFUSED.items())
def test_a_mean_without_ends_or_bins_is_refused(store: Asked, question: str, message: str) -> None:
    with attached(store.catalogue) as connection, pytest.raises(duckdb.Error, match=message):
        connection.execute(f"FROM r.{question}").fetchall()


def test_python_refuses_open_bins(store: Asked) -> None:
    with pytest.raises(QuestionRefused, match="axis age has an open bin"):
        store.releases["2026-03-02"].mean("age")


@pytest.mark.parametrize("whole", [True, False])
def test_declared_ends_of_open_bins_answer_as_asked_ones_do(tmp_path: Path, whole: bool) -> None:
    axis = {"column": "size", "start": 1, "stop": 4, "width": 1, "below": True, "above": True, "whole": whole}
    made = by_hand.estimate([axis], np.array([20.0, 200.0, 100.0, 80.0, 10.0]), off=0)
    asked = by_hand.publish(tmp_path / "asked", made, [axis])
    declared = by_hand.publish(tmp_path / "declared", made, [{**axis, "lowest": -2, "highest": 14}])
    for macro in ("mean", "sum"):
        told = getattr(declared, macro)("size")
        assert told == getattr(asked, macro)("size", -2, 14) and told.ci_upper > told.estimate
    with pytest.raises(QuestionRefused, match="low := -9, high := 14"):
        asked.mean("size")


def test_a_wide_bin_moves_a_mean_by_its_rows_alone(tmp_path: Path) -> None:
    axes = [{"column": "los", "edges": [0, 2, 60]}]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes, np.array([990.0, 10.0]), off=0), axes)
    mean, total = release.mean("los"), release.sum("los")
    assert "by at most about 1.28, which" in mean.note and "by at most about 1,280, which" in total.note
    assert mean.ci_lower < mean.estimate - 1.28 and mean.estimate + 1.28 < mean.ci_upper


def test_a_mean_and_a_sum_say_how_far_rows_outside_the_middles_move_them(tmp_path: Path) -> None:
    axes = [{"column": "age", "edges": [0, 10, 40]}]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes, np.array([200.0, 100.0]), off=0), axes)
    said = "the estimate puts each row in the middle of its bin; rows elsewhere in their bins move the "
    assert release.mean("age").note == said + "mean by at most about 8.33, which the interval covers"
    assert release.sum("age").note == said + "sum by at most about 2,500, which the interval covers"


@pytest.mark.parametrize(("closed", "first"), [("left", 0), ("right", 1)])
def test_a_bin_of_whole_numbers_reaches_from_its_first_to_its_last(tmp_path: Path, closed: str, first: int) -> None:
    """The bin of one number has it as its mean and both its ends, that of two numbers lies half of one around them."""
    axes = [{"column": "los", "edges": [0, 1, 3], "above": True, "whole": True, "closed": closed}]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes, np.array([200.0, 100.0, 100.0]), off=0), axes)
    one = release.mean("los", box={"los": (0, 1)})
    two = release.sum("los", box={"los": (1, 3)})
    assert (one.estimate, one.ci_lower, one.ci_upper) == (first, first, first)
    assert one.note.endswith("move the mean by at most about 0, which the interval covers")
    assert two.estimate == 100 * (first + 1.5)
    assert two.note.endswith("move the sum by at most about 50, which the interval covers")
    assert release.mean("los", None, 4 + first, {"los": (3, None)}).estimate == 3.5 + first
    open_bin = release.mean("los", None, 3 + first, {"los": (3, None)})  # one whole number
    assert (open_bin.estimate, open_bin.ci_lower, open_bin.ci_upper) == (3 + first, 3 + first, 3 + first)
    said = f"high must be at least {3 + first}, the first number of the open bin"
    with pytest.raises(QuestionRefused, match=said):
        release.mean("los", None, 2 + first, {"los": (3, None)})
    quantile = release.quantile("los", 0.6)
    assert (quantile.estimate, quantile.bin) == (pytest.approx(first + 1.4), f"{first + 1} to {first + 2}")
    assert (quantile.bin_lower, quantile.bin_upper) == (first + 1, first + 2)
    assert (quantile.ci_lower, quantile.ci_upper, quantile.ci_bins) == (first + 1, first + 2, quantile.bin)
    least, most = (release.quantile("los", share) for share in (0.2, 0.9))
    assert (least.ci_lower, least.ci_upper, least.ci_bins) == (first, first, str(first))
    assert (most.ci_lower, most.ci_upper) == (first + 3, np.inf)


def test_an_empty_box_has_no_mean_and_one_bin_has_its_ends(tmp_path: Path) -> None:
    axes = [{"column": "age", "edges": [0, 10, 20]}]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes, np.array([-4.0, 3.0]), off=0), axes)
    nothing, one = release.mean("age"), release.mean("age", box={"age": (10, 20)})
    assert np.isnan(nothing.estimate) and nothing.note == NO_MEAN
    assert (nothing.ci_lower, nothing.ci_upper) == (0, 20)
    assert (one.estimate, one.ci_lower, one.ci_upper) == (15, 10, 20)
