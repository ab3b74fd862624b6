"""Means and sums of bin middles from reports: their errors and intervals; no error is 0 where it is unknown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
import reported
from answering_scenario import attached, rows_of
from oracle import Oracle
from quick_catalogue import build_catalogue
from report_moments import ReportMoments

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.cli.ask._answer_rows import bins_in_words
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.releasing.releases import Release
from examples import SOAKING, mostly_soaked

PERIODS: dict[str, tuple[Any, ...]] = {
    "2026-03-02": ("symmetric", 2.0, 2500),
    "2026-03-09": ("optimized", 1.5, 2500, 0.3),
    "2026-03-16": ("grr", 3.0, 2500, 1, 9.0),
    "2026-03-23": ("grr", 8.0, 2500, 0.2),
    "2026-03-30": ("symmetric", 0.2, 40, 1),
}
MIDDLES = {"age": [3.0, 12, 24, 37.5, 52.5, 67.5, 82.5], "day": [20461.5 + 7 * week for week in range(12)]}
# A question of each macro that tells an error, about a release of one axis of ages.
QUESTIONS = [
    *["dph_total('r.{0}')", "dph_box('r.{0}', {{'age': [6, 40]}})", "dph_range('r.{0}', 'age', 6, 45)"],
    *["dph_marginal('r.{0}', ['age'])", "dph_share('r.{0}', {{'age': [6, 45]}})", "dph_sum('r.{0}', 'age')"],
    *["dph_mean('r.{0}', 'age')", "dph_mean('r.{0}', 'age', box := {{'age': [6, 30]}})", "dph_ranks('r.{0}', 'age')"],
    "dph_difference('r.{0}', {{'age': [6, 45]}}, {{'age': [45, 90]}})",
    "dph_ratio('r.{0}', {{'age': [6, 45]}}, {{'age': [45, 90]}})",
    *["dph_changes('r.{0}')", "dph_compare('r.{0}', '2026-03-02', '2026-03-09')", "dph_over('r.{0}')"],
    "dph_band('r.{0}')",
]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], Release]]:
    """Estimates from reports of ages and days; ages from reports with an open bin; and ages without noisy cells."""
    public, made = tmp_path_factory.mktemp("public"), {}
    for axis, axes in (("age", [reported.AGE]), ("day", [reported.DAY])):
        for period, how in PERIODS.items():
            one = reported.estimate(axes, *how)
            made[axis, period] = reported.publish(public, one, axes, f"town_{axis}", period)
    opened = [{**reported.AGE, "above": True}]
    reported.publish(public, reported.estimate(opened), opened, "open_age")
    for period in list(PERIODS)[:2]:
        plain = by_hand.estimate([reported.AGE], scale=None)
        by_hand.publish(public, plain, [reported.AGE], "plain", period)
    return build_catalogue(public, tmp_path_factory.mktemp("scratch")), made


def ask(catalogue: Path, question: str) -> list[dict[str, Any]]:
    with attached(catalogue) as connection:
        return rows_of(connection, f"FROM r.{question}")


def said_at_most(note: str) -> float:
    """How far rows elsewhere in their bins move the answer, by its note."""
    return float(note.split("by at most about ")[1].split(", which")[0])


def moments(release: Release, axis: str, chosen: slice = slice(None)) -> ReportMoments:
    cells = Oracle.of(release).unbiased
    assert isinstance(cells, ReportedCells)
    picked = ReportedCells(cells.values.ravel()[chosen], cells.atoms.ravel()[chosen], cells.law)
    return ReportMoments(picked, np.array(MIDDLES[axis][chosen]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axis", "box", "chosen", "half", "first", "last"),
    [("age", "{'age': [6, 60]}", slice(1, 5), 7.5, 6, 60), ("day", "{}", slice(None), 3.5, 20458, 20458 + 84)],
)
def test_a_mean_from_reports_has_the_interval_of_its_covariances_and_of_its_bins(
    catalogue: tuple[Path, dict[tuple[str, str], Release]],
    axis: str,
    box: str,
    chosen: slice,
    half: float,
    first: float,
    last: float,
) -> None:
    """The mean of the middles lies at most half of the widest bin from that of the rows."""
    rows = ask(catalogue[0], f"dph_mean('r.town_{axis}', '{axis}', box := {box})")
    assert [row["period"] for row in rows] == list(PERIODS)
    for row in rows:
        expected = moments(catalogue[1][axis, row["period"]], axis, chosen)
        assert row["unbiased"] == pytest.approx(expected.mean)
        assert row["noise_error"] == pytest.approx(expected.mean_error)
        low, high = expected.mean_interval()
        ends = (max(low - half, first), min(high + half, last))
        assert (row["ci_lower"], row["ci_upper"]) == pytest.approx(ends, abs=1e-6)
        assert row["basis"] == "linear" and said_at_most(row["note"]) <= half
        if row["period"] not in list(PERIODS)[: None if SOAKING else 3]:
            continue
        told = catalogue[1][axis, row["period"]].mean(axis, box={axis: (6, 60)} if axis == "age" else {})
        assert (told.ci_lower, told.noise_error) == (row["ci_lower"], row["noise_error"])


@pytest.mark.slow
def test_a_sum_from_reports_has_the_interval_of_its_covariances_and_of_its_bins(
    catalogue: tuple[Path, dict[tuple[str, str], Release]],
) -> None:
    for row in ask(catalogue[0], "dph_sum('r.town_age', 'age')"):
        expected = moments(catalogue[1]["age", row["period"]], "age")
        assert row["noise_error"] == pytest.approx(expected.sum_error)
        assert (row["ci_lower"], row["ci_upper"]) == pytest.approx(expected.sum_interval(7.5))
        assert row["ci_upper"] - row["ci_lower"] > 15 * expected.rows > 0
        assert row["basis"] == "linear" and "middle of its bin" in row["note"]


@pytest.mark.slow
def test_words_tell_how_far_rows_elsewhere_in_their_bins_move_a_mean_or_sum(
    catalogue: tuple[Path, dict[tuple[str, str], Release]],
) -> None:
    (row, *_) = ask(catalogue[0], "dph_mean('r.town_age', 'age', box := {'age': [6, 45]})")
    assert "rows elsewhere in their bins move the mean by at most about " in row["note"]
    counts = np.array(
        [
            ask(catalogue[0], f"dph_box('r.town_age', {{'age': [{low}, {high}]}})")[0]["unbiased"]
            for low, high in ((6, 18), (18, 30), (30, 45))
        ]
    )
    moved = float(np.maximum(0, counts) @ [6, 6, 7.5] / counts.sum())
    assert said_at_most(row["note"]) == pytest.approx(moved, rel=0.005)
    (row, *_) = ask(catalogue[0], "dph_sum('r.town_age', 'age', box := {'age': [6, 18]})")
    (total, *_) = ask(catalogue[0], "dph_box('r.town_age', {'age': [6, 18]})")
    assert row["note"].endswith(f"by at most about {round(6 * total['unbiased']):,}, which the interval covers")


@pytest.mark.slow
@pytest.mark.parametrize("macro", ["dph_mean", "dph_sum"])
def test_a_bin_of_reports_that_is_open_has_no_middle_and_no_interval(
    catalogue: tuple[Path, dict[tuple[str, str], Release]], macro: str
) -> None:
    (row,) = ask(catalogue[0], f"{macro}('r.open_age', 'age', high := 120)")
    assert (row["ci_lower"], row["ci_upper"], row["basis"]) == (None, None, "noise_only")
    assert row["noise_error"] is None and row["note"] == notes.OPEN_MIDDLE
    (row,) = ask(catalogue[0], f"{macro}('r.open_age', 'age', box := {{'age': [0, 90]}})")
    assert row["ci_lower"] < row["unbiased"] < row["ci_upper"]


@pytest.mark.parametrize("release", ["town_age", "plain"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_error_that_is_not_known_is_null_and_never_0(
    catalogue: tuple[Path, dict[tuple[str, str], Release]], question: str, release: str
) -> None:
    for row in ask(catalogue[0], question.format(release)):
        error = row["noise_error"]
        assert (error is None or error > 0) and not (error is not None and math.isnan(error)), row
        if release == "plain":
            assert error is None and row["ci_lower"] is None


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Estimates from reports of whole numbers."""
    axes = [{**reported.AGE, "whole": True}]
    return reported.publish(tmp_path_factory.mktemp("public"), reported.estimate(axes), axes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bin_", "first", "last"),
    mostly_soaked([((0, 6), 0, 5), ((6, 18), 6, 17), ((60, 75), 60, 74), ((75, 90), 75, 90)], [0, 3]),
)
def test_a_bin_of_whole_numbers_from_reports_reaches_from_its_first_to_its_last(
    town: Release, bin_: tuple[int, int], first: int, last: int
) -> None:
    """The last bin of a collection holds its upper end, too."""
    box, half = {"age": bin_}, (last - first) / 2
    mean, total, count = town.mean("age", box=box), town.sum("age", box=box), town.answer(**box).estimate
    assert (mean.estimate, mean.ci_lower, mean.ci_upper) == (first + half, first, last)
    assert total.estimate == pytest.approx(count * (first + half))
    assert f"move the mean by at most about {half:g}, which" in mean.note
    assert total.ci_lower <= count * first <= count * last < total.ci_upper
    one = town.quantile("age", 0.5, box)
    words = f"{first} to {last}"
    assert (one.bin, one.ci_bins, one.ci_lower, one.ci_upper) == (words, words, first, last)
    assert first < one.estimate < last
    table = town.marginal(["age"], box)
    shown = bins_in_words(Publication(town.path, town.audit), table.to_dicts())
    assert [row["age"] for row in shown] == [words]


@pytest.mark.slow
def test_all_bins_of_whole_numbers_from_reports_have_the_mean_of_their_middles(town: Release) -> None:
    counts = town.marginal(["age"])["unbiased"].to_numpy()
    middles, halves = np.array([2.5, 11.5, 23.5, 37, 52, 67, 82.5]), np.array([2.5, 5.5, 5.5, 7, 7, 7, 7.5])
    mean, total = town.mean("age"), town.sum("age")
    assert mean.unbiased == pytest.approx(counts @ middles / counts.sum())
    assert total.unbiased == pytest.approx(counts @ middles)
    moved = counts.clip(0) @ halves
    assert f"by at most about {moved / counts.sum():.3g}, which" in mean.note
    assert f"by at most about {moved:,.0f}, which" in total.note
    assert mean.ci_lower < mean.unbiased - moved / counts.sum() and mean.unbiased + moved / counts.sum() < mean.ci_upper
    assert total.ci_lower < total.unbiased - moved and total.unbiased + moved < total.ci_upper
