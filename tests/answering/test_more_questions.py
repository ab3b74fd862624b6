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
import polars as pl
import pytest
from answering_scenario import (
    PERIODS,
    TOLD,
    Asked,
    Box,
    as_json,
    assert_rows_told,
    assert_told,
    attached,
    published,
    rows_of,
)
from moment_oracle import deviations, first_not
from oracle import Oracle

from dphist_pipeline.answering import notes
from dphist_pipeline.answering.answers import Answer
from dphist_pipeline.answering.bands import chernoff_reach
from dphist_pipeline.answering.chosen_cells import QuestionRefused
from dphist_pipeline.answering.intervals import half_width_of_linear, half_width_of_sum
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells

PAIRS: list[tuple[Box, Box]] = [
    ({"state": "A"}, {"state": "B"}),
    ({"state": ["A", "B"], "age": (18, None)}, {"state": ["B", "C"], "day": ("2026-01-12", "2026-02-09")}),
    ({"age": (0, 18)}, {}),
]
REACHED = 1e-9


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return published(tmp_path_factory.mktemp("public"), tmp_path_factory.mktemp("scratch"))


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
        reach: float = half_width_of_sum(oracle.unbiased.scale, int(np.abs(weights).sum()))
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


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
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
        reach: float = half_width_of_sum(laws[0].scale, int(cells))
    elif is_one and kinds == {NestedCells}:
        reach = half_width_of_linear(laws[0].scale, variance)
    else:
        reach = deviations(max(laws, key=lambda law: law.scale), variance) * math.sqrt(variance)
    centre = sum(one.answer(**box).unbiased for one in oracles)
    note = notes.SMOOTHED if abs(estimate - centre) > reach + 1e-6 else ""
    basis = "unbiased" if is_one and kinds == {NoisyCells} and len(periods) <= 2 else "linear"
    return Answer(estimate, centre, centre - reach, centre + reach, basis, int(cells), math.sqrt(variance), note)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        *[("2026-03-02", "2026-03-09"), ("2026-03-23", "2026-03-30"), ("2026-03-04", "2026-03-20")],
        *[(None, "2026-04-06"), ("2026-03-16", "2026-03-16"), (None, None)],
    ],
)
def test_totals_over_periods_are_those_of_the_cells(store: Asked, first: str | None, last: str | None) -> None:
    box: Box = {"age": (0, 65), "region": "S"}
    (row,) = ask(store, "dph_over('r.weekly', ?, ?, ?)", first, last, as_json(box))
    taken = [period for period in PERIODS if (first or "") <= period <= (last or "9")]
    assert (row["first_period"], row["last_period"], row["periods"]) == (taken[0], taken[-1], len(taken))
    assert_told(row, over(store, taken, box), store.releases["2026-03-09"].over(first, last, box))


@pytest.mark.parametrize("axis", ["county", "state", "age"])
@pytest.mark.parametrize("box", [{}, {"day": ("2026-01-12", "2026-01-19")}], ids=str)
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
            reach = float(chernoff_reach(scale, np.array([one.noise_error**2]), missed)[0])
            if one.cells == 1 and isinstance(oracle.unbiased, NoisyCells):
                reach = noise_law.half_width(scale, 1 - Fraction(missed))
        note = notes.NO_INTERVAL if oracle.unbiased is None else ""
        ends = one.unbiased - reach, one.unbiased + reach
        row["answer"] = Answer(one.estimate, one.unbiased, *ends, one.basis, one.cells, one.noise_error, note)
    for row in rows:
        one, others = row["answer"], [other["answer"] for other in rows]
        rank = 1 + sum(other.estimate > one.estimate for other in others)
        larger = 1 + sum(other.ci_lower > one.ci_upper for other in others)
        smaller = len(rows) - sum(other.ci_upper < one.ci_lower for other in others)
        row["rank"] = (rank, larger, smaller) if oracle.unbiased else (rank, None, None)
    return sorted(rows, key=lambda row: (row["rank"][0], row["first"]))


PEOPLE = pl.DataFrame({"state": ["C", "B", "A", None], "population": [500, 2000, 1000, 7]})
AGES = pl.DataFrame(
    {
        "age_lower": [None, 0, 18, 65],
        "age_upper": ["0", "18", "65", None],
        "population": [10.5, 20.0, 30.0, 40.0],
        "note": ["x"] * 4,
    }
)


@pytest.mark.parametrize(("by", "people"), [("state", PEOPLE), ("age", AGES)], ids=["state", "age"])
def test_rates_divide_counts_and_their_ends(store: Asked, by: str, people: pl.DataFrame) -> None:
    for period in TOLD:
        release = store.releases[period]
        counts = release.marginal([by], {"region": ["S", "N"]}).to_dicts()
        counted = [row for row in counts if any(row[name] is not None for name in row if name.startswith(by))]
        rates = release.rate([by], people, 1000, {"region": ["S", "N"]}).to_dicts()
        populations = (
            {"C": 500, "B": 2000, "A": 1000} if by == "state" else dict(AGES.select("age_lower", "population").rows())
        )
        assert len(rates) == len(counted) == len(populations)
        for rate, count in zip(rates, counted, strict=True):
            people_there = populations[count["state" if by == "state" else "age_lower"]]
            assert rate["population"] == people_there
            for name in ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper"):
                assert rate[name] == (None if count[name] is None else pytest.approx(count[name] * 1000 / people_there))
            assert (rate["cells"], rate["basis"], rate["note"]) == (count["cells"], count["basis"], count["note"])


def test_a_population_may_differ_by_period(store: Asked) -> None:
    with attached(store.catalogue) as connection:
        states = "(VALUES ('A'), ('B'), ('C')) AS s(state)"
        connection.execute(
            "CREATE TABLE people AS SELECT state, period, 110 + day(CAST(period AS DATE)) AS population "
            f"FROM {states}, (SELECT DISTINCT period FROM r.weekly)"
        )
        rows = rows_of(connection, "FROM r.dph_rate('r.weekly', ['state'], 'people')")
        assert {row["population"] for row in rows if row["period"] == "2026-03-02"} == {112}
        assert {row["population"] for row in rows if row["period"] == "2026-03-30"} == {140}
        assert len(rows) == 3 * len(PERIODS)


REFUSED = {
    "dph_difference('r.weekly', {'state': 'Z'}, {})": "axis state has no category Z",
    "dph_ratio('r.weekly', {}, {'age': [3, 18]})": "3 is not an edge",
    "dph_changes('r.weekly', period := '2026-03-02')": "there is no earlier period than 2026-03-02",
    "dph_changes('r.weekly', period := 'x')": "there is no period x; it has 2026-03-02 to 2026-04-13",
    "dph_over('r.weekly', '2027-01-01')": "no period lies from 2027-01-01 to the last one; it has 2026-03-02 to",
    "dph_ranks('r.weekly', 'wrad')": "there is no axis wrad in period 2026-03-02; the axes are age, county",
    "dph_rate('r.weekly', ['wrad'], 'people')": "there is no axis wrad",
    "dph_rate('r.weekly', ['age'], 'people')": "the population needs the columns population, age_lower, age_upper",
    "dph_rate('r.weekly', ['region'], 'people')": "there is no row of the population for N",
    "dph_rate('r.weekly', ['state'], 'people')": "the population must be above 0 for B",
    "dph_rate('r.weekly', ['state'], 'people', box := {'state': 'A'})": "several rows of the population for A; add",
    "dph_rate('r.weekly', ['state'], 'people', 0, {'state': 'C'})": "`per` is a number above 0",
}


@pytest.mark.parametrize(("question", "message"), REFUSED.items())
def test_a_question_without_an_answer_says_why(store: Asked, question: str, message: str) -> None:
    name = question.partition("(")[0]
    with attached(store.catalogue) as connection:
        connection.execute(
            "CREATE TABLE people AS FROM (VALUES ('A', 'S', 1), ('A', NULL, 2), ('B', NULL, 0), ('C', NULL, 5)) "
            "AS t(state, region, population)"
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
