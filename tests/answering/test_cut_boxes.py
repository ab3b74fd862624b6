"""Boxes whose ends cut bins: an even spread for the estimate, the bins within and around for the interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest

from dphist_pipeline.answering.catalogue import Catalogue, create_tables
from dphist_pipeline.answering.published import NotPublished
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

AGE: dict[str, Any] = {"column": "age", "edges": [0, 20, 40, 60], "above": True, "other": True}
DOSE: dict[str, Any] = {"column": "dose", "edges": [0, 1, 3], "below": True}
WARD: dict[str, Any] = {"column": "ward", "values": ["surgery", "medicine"]}
ONE = by_hand.estimate([AGE], np.array([100.0, 200, 400, 800, 7]), off=1)
CUBE = by_hand.estimate([AGE, DOSE, WARD])


def test_rows_of_a_cut_bin_are_spread_evenly() -> None:
    assert ONE.box(age=(10, 45)).estimate == pytest.approx(101 / 2 + 201 + 401 / 4)
    assert ONE.box(age=(25, 30)).estimate == pytest.approx(201 / 4)
    assert ONE.box(age=(10, None)).estimate == pytest.approx(101 / 2 + 201 + 401 + 801)


def test_the_interval_runs_from_the_bins_within_to_the_bins_around() -> None:
    found, inner, outer = ONE.box(age=(10, 45)), ONE.box(age=(20, 40)), ONE.box(age=(0, 60))
    assert (found.ci_lower, found.ci_upper) == (inner.ci_lower, outer.ci_upper)
    assert (found.cells, found.noise_error, found.basis) == (3, outer.noise_error, "unbiased")
    assert (
        found.note
        == "ends cut bins of age: the estimate spreads their rows evenly, the interval holds however they lie"
    )


@pytest.mark.slow
def test_a_count_is_no_more_reliable_than_its_interval(tmp_path: Path) -> None:
    """Noise is 1 % of the count, but of 100 to 500 rows nobody knows on which side of the ends they lie."""
    by_hand.publish(tmp_path, ONE, [AGE])
    found = [ONE.box(age=ends).reliability for ends in ((20, 40), (10, 45), (25, 30), (30, 60))]
    assert found == ["good", "poor", "poor", "fair"]
    with duckdb.connect() as connection:
        create_tables(connection, Catalogue(tmp_path).publications(), macros=["dph_box"], described=False)
        asked = [
            connection.execute(f"SELECT reliability FROM dph_box('weekly', {{'age': [{ends}]}})").fetchall()
            for ends in ("20, 40", "10, 45", "25, 30", "30, 60")
        ]
    assert asked == [[(word,)] for word in found]


def test_within_one_bin_there_may_be_nothing() -> None:
    found = ONE.box(age=(25, 30))
    assert (found.ci_lower, found.ci_upper) == (0, ONE.box(age=(20, 40)).ci_upper)


@pytest.mark.slow
def test_several_axes_may_be_cut_at_once(tmp_path: Path) -> None:
    found = CUBE.box(age=(5, 40), dose=(None, 2), ward="medicine")
    assert (
        by_hand.publish(tmp_path, CUBE, [AGE, DOSE, WARD]).answer(age=(5, 40), dose=(None, 2), ward="medicine") == found
    )
    values = CUBE.values[:2, :, 1]
    assert found.estimate == pytest.approx(np.array([0.75, 1]) @ values @ np.array([1, 1, 0.5]))
    assert found.ci_lower == CUBE.box(age=(20, 40), dose=(None, 1), ward="medicine").ci_lower
    assert found.ci_upper == CUBE.box(age=(0, 40), dose=(None, 3), ward="medicine").ci_upper
    assert "age, dose" in found.note


@pytest.mark.parametrize("ends", [(10, 61), (-1, 30), (30, 10), (70, None), (float("nan"), 30), (0.5, "1")])
def test_ends_beyond_the_edges_are_still_refused(ends: tuple[Any, Any]) -> None:
    with pytest.raises(QuestionRefused, match="axis 'age'"):
        ONE.box(age=ends)


@pytest.mark.slow
def test_a_published_release_and_its_ranges_say_the_same(tmp_path: Path) -> None:
    release = by_hand.publish(tmp_path, ONE, [AGE])
    found, both = release.answer(age=(10, 45)), release.range("age", 10, 45)
    assert found == ONE.box(age=(10, 45))
    assert (found.ci_lower, found.ci_upper, both.covers) == (both.ci_lower, both.ci_upper, "partly")


@pytest.mark.slow
def test_a_range_is_taken_within_a_box_of_its_own_axis(tmp_path: Path) -> None:
    release = by_hand.publish(tmp_path, CUBE, [AGE, DOSE, WARD])
    found = release.range("age", 10, 60, {"age": (20, None), "dose": (0, 1)})
    assert (found.inner, found.covers) == (CUBE.box(age=(20, 60), dose=(0, 1)), "exactly")
    cut = release.range("age", 30, 60, {"age": (0, 40), "dose": (0, 1)})
    assert (cut.outer, cut.inner.cells, cut.covers) == (CUBE.box(age=(20, 40), dose=(0, 1)), 0, "partly")


@pytest.mark.slow
def test_ends_beyond_the_bins_are_told_where_those_end(tmp_path: Path) -> None:
    release = by_hand.publish(tmp_path, CUBE, [AGE, DOSE, WARD])
    with pytest.raises(QuestionRefused, match=r"dose has bins from -inf to 3\.0 only; leave an end open"):
        release.range("dose", 0.5, 4)


def test_a_range_without_cells_is_refused() -> None:
    release = by_hand.estimate([DOSE])
    with pytest.raises(QuestionRefused, match="has no cells in"):
        release.box(dose=(3, None))


@pytest.mark.slow
def test_a_published_release_is_opened_by_its_name(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    for period in ("2026-03-02", "2026-03-09"):
        by_hand.publish(store.public, ONE, [AGE], period=period)
    assert Release.published(store, "weekly").path.parent.name == "period=2026-03-09"
    assert Release.published(store, "weekly", "2026-03-02").answer(age=(0, 20)) == ONE.box(age=(0, 20))
    with pytest.raises(NotPublished, match="weekly"):
        Release.published(store, "weakly")


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(30, 30), (40, 40), (35, 30)])
def test_a_range_whose_ends_do_not_rise_is_told_so(tmp_path: Path, ends: tuple[int, int]) -> None:
    with pytest.raises(QuestionRefused, match="two ends, low below high"):
        by_hand.publish(tmp_path, ONE, [AGE]).range("age", *ends)


WHOLE = [
    {"column": "age", "edges": [0, 20, 60, 80], "above": True, "whole": True},
    {"column": "size", "edges": [0, 10, 20], "closed": "right", "whole": True},
    {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-01-26"},
    DOSE,
]
MEANT = {
    "{'age': [60, 79]}": "[60, 80]",
    "{'age': [NULL, 19]}": "[NULL, 20]",
    "{'size': [1, 10]}": "[0, 10]",
    "{'day': ['2026-01-05', '2026-01-11']}": "[2026-01-05, 2026-01-12]",
    "{'age': [0, 59], 'day': ['2026-01-05', '2026-01-11']}": "[0, 60] and [2026-01-05, 2026-01-12]",
    "{'age': [60, 78]}": None,
    "{'dose': [1, 2]}": None,
    "{'age': [60, 80]}": None,
}


@pytest.mark.slow
def test_the_last_number_of_a_bin_is_answered_with_its_edge(tmp_path: Path) -> None:
    """As the bin is labelled: 60 to 79."""
    by_hand.publish(tmp_path, by_hand.estimate(WHOLE), WHOLE)
    with duckdb.connect() as connection:
        create_tables(
            connection, Catalogue(tmp_path).publications(), macros=["dph_box", "dph_marginal"], described=False
        )
        for box, meant in MEANT.items():
            ((note,),) = connection.execute(f"SELECT note FROM dph_box('weekly', {box})").fetchall()
            assert str(note).partition("did you mean ")[2] == (f"{meant}?" if meant else ""), box
        with pytest.raises(duckdb.Error, match=r"79 is not an edge; .*; did you mean \[60, 80\]\?$"):
            connection.execute("FROM dph_marginal('weekly', ['size'], {'age': [60, 79]})")
