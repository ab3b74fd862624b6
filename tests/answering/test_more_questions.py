"""Differences, ratios, changes, totals over periods, ranks and rates: the same in SQL and Python as cell by cell."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest
from answering_scenario import (
    AXES,
    PERIODS,
    TOLD,
    Asked,
    Box,
    as_json,
    assert_rows_told,
    assert_told,
    attached,
    made,
    published_once,
    rows_of,
)
from moment_oracle import deviations, first_not
from oracle import Oracle
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells
from examples import mostly_soaked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]

PAIRS: list[tuple[Box, Box]] = [
    ({"state": "A"}, {"state": "B"}),
    ({"state": ["A", "B"], "age": (18, None)}, {"state": ["B", "C"], "day": ("2026-01-12", "2026-02-09")}),
    ({"age": (0, 18)}, {}),
]
REACHED = 1e-9


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


def ask(store: Asked, question: str, *parameters: object) -> list[dict[str, Any]]:
    with attached(store.catalogue) as connection:
        return rows_of(connection, f"FROM r.{question}", *parameters)


def difference(oracle: Oracle, first: Box, second: Box) -> Answer:
    one, two = oracle.mask(first), oracle.mask(second)
    weights, cells = one.astype(float) - two, int(one.sum() + two.sum())
    estimate = float((weights * oracle.values).sum())
    if oracle.unbiased is None:
        return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", cells, note=notes.NO_INTERVAL)
    variance, centre = oracle.variance(weights), float((weights * oracle.unbiased.values).sum())
    if isinstance(oracle.unbiased, NoisyCells):
        reach: float = noise_law(oracle.unbiased.scale).half_width_of_sum(int(np.abs(weights).sum()))
    else:
        reach = deviations(oracle.unbiased, variance / 4) * math.sqrt(variance)
    note = notes.SMOOTHED if abs(estimate - centre) > reach + 1e-6 else ""
    return Answer(estimate, centre, centre - reach, centre + reach, oracle.basis, cells, math.sqrt(variance), note)


def ratio(oracle: Oracle, first: Box, second: Box) -> Answer:
    one, two = oracle.mask(first) * 1.0, oracle.mask(second) * 1.0
    estimate, cells = float((one * oracle.values).sum() / (two * oracle.values).sum()), int(one.sum() + two.sum())
    if oracle.unbiased is None:
        return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", cells, note=notes.NO_INTERVAL)
    unbiased = float((one * oracle.unbiased.values).sum() / (two * oracle.unbiased.values).sum())
    error = math.sqrt(oracle.variance(one - unbiased * two)) / float((two * oracle.unbiased.values).sum())
    low, high = least_ratio(oracle, one, two), 1 / least_ratio(oracle, two, one)
    note = "" if low - REACHED <= estimate <= high + REACHED else notes.SMOOTHED
    return Answer(estimate, unbiased, low, high, "linear", cells, error, note)


def least_ratio(oracle: Oracle, above: Any, below: Any) -> float:
    """The smallest r at which above - r * below is not above its noise."""
    unbiased = oracle.unbiased
    assert unbiased is not None
    fixed, plus, minus = (oracle.variance(above - r * below) for r in (0.0, 1.0, -1.0))
    parabola = [(plus + minus) / 2 - fixed, (plus - minus) / 2, fixed]
    trials = np.concatenate([np.linspace(-50, 50, 40002), 1 / np.linspace(-0.99, 0.99, 40000)])
    largest = 1 + trials if isinstance(unbiased, NestedCells) else np.maximum(1, np.abs(trials))
    factor = deviations(unbiased, float((np.polyval(parabola, trials) / largest**2).min()))

    def too_far(r: float) -> bool:
        return float(((above - r * below) * unbiased.values).sum()) > factor * math.sqrt(np.polyval(parabola, r))

    return first_not(too_far, np.concatenate([np.linspace(0, 20, 2001), [1e9]]))


@pytest.mark.parametrize(("first", "second"), mostly_soaked(PAIRS, [2]), ids=str)
def test_differences_and_ratios_are_those_of_the_cells(store: Asked, first: Box, second: Box) -> None:
    for name, expected in (("difference", difference), ("ratio", ratio)):
        rows = ask(store, f"dph_{name}('r.weekly', ?, ?)", as_json(first), as_json(second))
        assert [row["period"] for row in rows] == list(PERIODS)
        for row in rows:
            release = store.releases[row["period"]]
            told = getattr(release, name)(first, second) if row["period"] in TOLD else None
            assert_told(row, expected(store.oracles[row["period"]], first, second), told)


def test_a_count_that_may_be_none_leaves_a_ratio_open(tmp_path: Path) -> None:
    axes = [{"column": "ward", "values": ["a", "b", "c"]}]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes, np.array([300.0, 4.0, -9.0]), off=0), axes)
    found = release.ratio({"ward": "a"}, {"ward": "b"})
    assert found.estimate == 75 and 10 < found.ci_lower < 75 and found.ci_upper == math.inf
    none = release.ratio({"ward": "b"}, {"ward": "c"})
    assert math.isnan(none.estimate) and none.note == notes.NO_RATIO and (none.ci_lower, none.ci_upper) == (0, math.inf)
    same = release.difference({"ward": "a"}, {"ward": "a"})
    assert (same.ci_lower, same.ci_upper, same.noise_error) == (0, 0, 0)


@pytest.mark.parametrize("box", [{}, {"age": (18, None), "state": {"not": "A"}}], ids=str)
def test_changes_are_those_of_each_pair_of_neighbouring_periods(store: Asked, box: Box) -> None:
    rows = ask(store, "dph_changes('r.weekly', ?)", as_json(box))
    assert [(row["first_period"], row["second_period"]) for row in rows] == list(pairwise(PERIODS))
    for row in rows:
        earlier, later = (store.oracles[row[name]] for name in ("first_period", "second_period"))
        assert_told({**row, "capped": None}, later.change_since(earlier, box))
    assert repr(store.releases["2026-03-02"].changes(box).rows()) == repr([tuple(row.values()) for row in rows])
    (one,) = ask(store, "dph_changes('r.weekly', ?, '2026-03-16')", as_json(box))
    assert one == rows[1]


def over(store: Asked, periods: list[str], box: Box) -> Answer:
    oracles = [store.oracles[period] for period in periods]
    estimate, cells = sum(one.answer(**box).estimate for one in oracles), sum(one.mask(box).sum() for one in oracles)
    if any(one.unbiased is None for one in oracles):
        return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", int(cells), note=notes.NO_INTERVAL)
    laws = [one.unbiased for one in oracles if isinstance(one.unbiased, NoisyCells | NestedCells)]
    variance = sum(one.variance(one.mask(box)) for one in oracles)
    kinds, scales = {type(law) for law in laws}, {law.scale for law in laws}
    is_one = len(kinds) == len(scales) == 1
    if is_one and kinds == {NoisyCells} and len(periods) <= 2:
        reach: float = noise_law(laws[0].scale).half_width_of_sum(int(cells))
    elif is_one and kinds == {NestedCells}:
        reach = noise_law(laws[0].scale).half_width_of_linear(variance)
    else:
        reach = deviations(max(laws, key=lambda law: law.scale), variance) * math.sqrt(variance)
    centre = sum(one.answer(**box).unbiased for one in oracles)
    note = notes.SMOOTHED if abs(estimate - centre) > reach + 1e-6 else ""
    basis = "unbiased" if is_one and kinds == {NoisyCells} and len(periods) <= 2 else "linear"
    return Answer(estimate, centre, centre - reach, centre + reach, basis, int(cells), math.sqrt(variance), note)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        *[("2026-03-02", "2026-03-09"), ("2026-03-23", "2026-03-30"), ("2026-03-09", "2026-03-22")],
        *[(None, "2026-04-06"), ("2026-03-16", "2026-03-16"), (None, None)],
    ],
)
def test_totals_over_periods_are_those_of_the_cells(store: Asked, first: str | None, last: str | None) -> None:
    box: Box = {"age": (0, 65), "region": "S"}
    (row,) = ask(store, "dph_over('r.weekly', ?, ?, ?)", first, last, as_json(box))
    taken = [period for period in PERIODS if (first or "") <= period <= (last or "9")]
    assert (row["first_period"], row["last_period"], row["periods"]) == (taken[0], taken[-1], len(taken))
    assert_told(row, over(store, taken, box), store.releases["2026-03-09"].over(first, last, box))


@pytest.mark.parametrize(
    ("axis", "box"),
    mostly_soaked(
        list(itertools.product(["county", "state", "age"], [{}, {"day": ("2026-01-12", "2026-01-19")}])), [0, 3, 4]
    ),
    ids=str,
)
def test_ranks_count_the_categories_that_are_surely_larger_or_smaller(store: Asked, axis: str, box: Box) -> None:
    for row_period, rows in itertools.groupby(
        ask(store, "dph_ranks('r.weekly', ?, ?)", axis, as_json(box)), lambda row: row["period"]
    ):
        mine, oracle = list(rows), store.oracles[row_period]
        expected = ranked(oracle, oracle.marginal([axis], box))
        told = store.releases[row_period].ranks(axis, box) if row_period in TOLD else None
        assert [(row["rank"], row["rank_lower"], row["rank_upper"]) for row in mine] == [
            one["rank"] for one in expected
        ]
        assert_rows_told(mine, store.releases[row_period], expected, told)


def ranked(oracle: Oracle, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a marginal by rank, with the band that holds them all."""
    for row in rows:
        one = row["answer"]
        reach = math.nan
        if isinstance(oracle.unbiased, NoisyCells | NestedCells):
            missed, scale = 0.05 / len(rows), oracle.unbiased.scale
            reach = float(noise_law(scale).chernoff_reach(np.array([one.noise_error**2]), missed)[0])
            if one.cells == 1 and isinstance(oracle.unbiased, NoisyCells):
                reach = noise_law(scale).half_width(1 - Fraction(missed))
        note = notes.NO_INTERVAL if oracle.unbiased is None else notes.RANKS_TOGETHER
        ends = one.unbiased - reach, one.unbiased + reach
        row["answer"] = Answer(one.estimate, one.unbiased, *ends, one.basis, one.cells, one.noise_error, note)
    for row in rows:
        one, others = row["answer"], [other["answer"] for other in rows]
        rank = 1 + sum(other.estimate > one.estimate for other in others)
        larger = 1 + sum(other.ci_lower > one.ci_upper for other in others)
        smaller = len(rows) - sum(other.ci_upper < one.ci_lower for other in others)
        row["rank"] = (rank, larger, smaller) if oracle.unbiased else (rank, None, None)
    return sorted(rows, key=lambda row: (row["rank"][0], row["first"]))


REFUSED = {
    "dph_difference('r.weekly', {'state': 'Z'}, {})": "axis state has no category Z",
    "dph_ratio('r.weekly', {}, {'age': [3, 18]})": "3 is not an edge",
    "dph_changes('r.weekly', period := '2026-03-02')": "there is no earlier period than 2026-03-02",
    "dph_changes('r.weekly', period := 'x')": "there is no period x; it has 2026-03-02 to 2026-04-20",
    "dph_over('r.weekly', '2027-01-01')": "no period lies from 2027-01-01 to the last one; it has 2026-03-02 to",
    "dph_over('r.weekly', '02.03.2026', '16.03.2026')": "named by its first day, as in 2026-03-02, not 02.03.2026",
    "dph_over('r.weekly', '2026-03-02', '2026-W12')": "named by its first day, as in 2026-03-02, not 2026-W12",
    "dph_ranks('r.weekly', 'wrad')": "there is no axis wrad in period 2026-03-02; the axes are age, county",
    "dph_rate('r.weekly', ['wrad'], 'people')": "there is no axis wrad",
    "dph_rate('r.weekly', ['age', 'county'], 'people')": (
        "no column age_lower with age_upper, county. Wanted header: age_lower,age_upper,county,population"
    ),
    "dph_rate('r.weekly', ['state'], 'doubled')": "the population repeats a row for A; finer rows are added up",
    "dph_standardised('r.weekly', [], 'state', 'nobody')": "no column state, population, standard. Wanted header: ",
    "dph_standardised('r.weekly', ['state'], 'state', 'people')": "state cannot be one of the axes of the table, too",
    "dph_standardised('r.weekly', 'state', 'age', 'people')": "the axes are a list of names, as",
    "dph_standardised('r.weekly', ['state'], 'ages', 'people')": "there is no axis ages",
    "dph_standardised('r.weekly', [], 'region', 'standards')": "the standard must be at least 0 for N",
    "dph_standardised('r.weekly', ['day'], 'state', 'two')": "the standard has several numbers for A; it is one",
    "dph_rate('r.weekly', ['state'], 'people', 0, {'state': 'C'})": "`per` is a number above 0",
}


@pytest.mark.parametrize(("question", "message"), mostly_soaked(REFUSED.items(), [*range(0, len(REFUSED), 2), 9]))
def test_a_question_without_an_answer_says_why(store: Asked, question: str, message: str) -> None:
    name = question.partition("(")[0]
    with attached(store.catalogue) as connection:
        connection.execute(
            "CREATE TEMP TABLE people AS FROM (VALUES ('A', 'S', 1), ('A', NULL, 2), ('B', NULL, 0), ('C', NULL, 5)) "
            "AS t(state, region, population)"
        )
        connection.execute("CREATE TEMP TABLE doubled AS FROM (VALUES ('A', 1), ('A', 2)) AS t(state, population)")
        connection.execute("CREATE TEMP TABLE nobody AS FROM (VALUES ('A', 1)) AS t(stat, people)")
        connection.execute(
            "CREATE TEMP TABLE standards AS FROM (VALUES ('N', 5, -1), ('S', 5, 1)) AS t(region, population, standard)"
        )
        connection.execute(
            "CREATE TEMP TABLE two AS SELECT *, row_number() OVER () AS standard FROM "
            "(VALUES ('A', 1), ('B', 1), ('C', 1)) AS t(state, population), "
            "(SELECT DISTINCT day_lower, day_upper FROM r.weekly)"
        )
        for columns in ("*", "count(*)"):
            with pytest.raises(duckdb.Error, match=f"{name}: .*{message}"):
                connection.execute(f"SELECT {columns} FROM r.{question}").fetchall()


def test_publications_of_other_people_are_not_compared(tmp_path: Path) -> None:
    axes = [{"column": "ward", "values": ["a", "b"]}]
    made = by_hand.estimate(axes)
    one = by_hand.publish(tmp_path / "a", made, axes)
    for name, facts in (("b", {"account": "trade"}), ("c", {"privacy_unit": "household"})):
        other = by_hand.publish(tmp_path / name, made, axes, **facts)
        with pytest.raises(QuestionRefused, match="they do not count the same people; compare releases of one account"):
            other.change_since(one)


@pytest.fixture(scope="module")
def two_releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases `weekly` and `other` of one account, whose noise differs in one period, and `foreign` of another one."""
    public = tmp_path_factory.mktemp("two")
    for period, kinds in {
        "2026-03-02": ("cells", "cells"),
        "2026-03-09": ("cells", "tree"),
        "2026-03-16": ("none", "cells"),
    }.items():
        for kind, name in zip(kinds, ("weekly", "other"), strict=True):
            by_hand.publish(public, made(kind, 7.0 * len(name)), AXES, period=period, release=name)
    by_hand.publish(public, made("cells", 1.0), AXES, period="2026-03-02", release="foreign", account="elsewhere")
    by_hand.publish(public, made("cells", 1.0), AXES, period="2025-03-03", release="early")
    return build_catalogue(public, tmp_path_factory.mktemp("scratch"))


def test_two_releases_of_an_account_are_compared(two_releases: Path) -> None:
    box = {"state": ["A", "B"]}
    public = two_releases.parent
    with attached(two_releases) as connection:
        rows = rows_of(connection, "FROM r.dph_compare_releases('r.weekly', 'r.other', {'state': ['A', 'B']})")
        assert [row["period"] for row in rows] == ["2026-03-02", "2026-03-09", "2026-03-16"]
        for row in rows:
            one, two = (
                Publication.read(public / name / f"period={row['period']}" / "revision=1")
                for name in ("weekly", "other")
            )
            assert_told(row, two.change_since(one, box))
        found = rows_of(
            connection,
            "FROM r.dph_compare_releases('r.weekly', 'r.other', {'state': 'A'}, '2026-03-02', {'state': 'C'})",
        )
        counts = [
            rows_of(connection, f"FROM r.dph_box('r.{name}', {{'state': '{state}'}}, '2026-03-02')")
            for name, state in (("weekly", "A"), ("other", "C"))
        ]
        assert found[0]["unbiased"] == pytest.approx(counts[1][0]["unbiased"] - counts[0][0]["unbiased"])
        for other, message in {
            "foreign": "weekly is of account 'health' and unit 'patient', foreign of 'elsewhere' and unit 'patient'",
            "weekly": "the two releases are one",
            "early": "no period in common",
        }.items():
            with pytest.raises(duckdb.Error, match=message):
                rows_of(connection, f"FROM r.dph_compare_releases('r.weekly', 'r.{other}')")
        with pytest.raises(duckdb.Error, match="axis state has no category Z"):
            rows_of(connection, "FROM r.dph_compare_releases('r.weekly', 'r.other', second_box := {'state': 'Z'})")


def test_open_bins_of_quantiles_are_told_in_words(store: Asked) -> None:
    rows = ask(store, "dph_quantile('r.weekly', 'age', [0.01, 0.5, 0.99], period := '2026-03-02')")
    assert [row["bin"] for row in rows] == ["below 0", "18 to under 65", "65 or more"]
