"""Rates on a public population, and standardised rates: the counts of the release, divided and weighted."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import polars as pl
import pytest
from answering_scenario import PERIODS, TOLD, Asked, attached, published_once, rows_of
from moment_oracle import deviations

from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells
from examples import mostly_soaked


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


PEOPLE = pl.DataFrame({"state": ["C", "B", "A", None], "population": [500, 2000, 1000, 7]})
AGES = pl.DataFrame(
    {
        "age_lower": [None, 0, 18, 65],
        "age_upper": ["0", "18", "65", None],
        "population": [10.5, 20.0, 30.0, 40.0],
        "note": ["x"] * 4,
    }
)


@pytest.mark.parametrize(("by", "people"), mostly_soaked([("state", PEOPLE), ("age", AGES)], [1]), ids=["state", "age"])
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
            "CREATE TEMP TABLE people AS SELECT state, period, 110 + day(CAST(period AS DATE)) AS population "
            f"FROM {states}, (SELECT DISTINCT period FROM r.weekly)"
        )
        rows = rows_of(connection, "FROM r.dph_rate('r.weekly', ['state'], 'people')")
        assert {row["population"] for row in rows if row["period"] == "2026-03-02"} == {112}
        assert {row["population"] for row in rows if row["period"] == "2026-03-30"} == {140}
        assert len(rows) == 3 * len(PERIODS)


@pytest.mark.parametrize("name", ["people", "answered", "no_such_table"])
def test_a_population_that_is_not_there_is_named(store: Asked, name: str) -> None:
    calls = (f"dph_rate('r.weekly', ['state'], '{name}')", f"dph_standardised('r.weekly', [], 'state', '{name}')")
    with attached(store.catalogue) as connection:
        for call in calls:
            with pytest.raises(duckdb.CatalogException, match=f"Table with name {name} does not exist"):
                connection.execute(f"FROM r.{call}")


@pytest.mark.slow
def test_a_rate_without_axes_is_that_of_all_people(store: Asked) -> None:
    release = store.releases["2026-03-02"]
    everybody = pl.DataFrame({"population": [4000]})
    (rate,) = release.rate([], everybody, 1000, {"region": "S"}).to_dicts()
    assert rate["estimate"] == pytest.approx(release.answer(region="S").estimate / 4)
    with pytest.raises(QuestionRefused, match="the population repeats a row for all cells"):
        release.rate([], pl.concat([everybody, everybody]))


@pytest.mark.parametrize(
    ("people", "reason"),
    [
        ({"state": ["A", "B"], "population": [1000, 0]}, {"B": "is 0 for B", "C": "has no row for C"}),
        (
            {"state": ["A", "B", "C "], "population": ["1000", "1 000", "5"]},
            {"B": "is no number", "C": "has no row for C"},
        ),
        (
            {"state": ["A", "B", "C"], "population": [1000.0, -5.0, math.inf]},
            {"B": "is no number", "C": "is no number"},
        ),
    ],
)
def test_a_group_without_people_has_no_rate_and_the_others_have(
    store: Asked, people: dict[str, list[Any]], reason: dict[str, str]
) -> None:
    release = store.releases["2026-03-02"]
    rates = {row["state"]: row for row in release.rate(["state"], pl.DataFrame(people), 1000).to_dicts()}
    expected = {row["state"]: row for row in release.marginal(["state"]).to_dicts()}
    assert rates["A"]["unbiased"] == pytest.approx(expected["A"]["unbiased"])
    for state, said in reason.items():
        assert [rates[state][name] for name in ("estimate", "unbiased", "ci_lower", "ci_upper")] == [None] * 4
        assert said in rates[state]["note"]


def test_finer_rows_of_a_population_are_added_up(store: Asked) -> None:
    release, box = store.releases["2026-03-02"], {"age": (0, None)}
    bins = {(0, 18): range(18), (18, 65): range(18, 65), (65, None): range(65, 101)}
    lines = [(state, age, sex, 10 + age) for state in "ABC" for age in range(101) for sex in ("f", "m")]
    fine = pl.DataFrame(lines, schema=["state", "age", "sex", "population"], orient="row")
    ends = fine.with_columns(age_lower="age", age_upper=pl.col("age") + 1).drop("age")
    coarse = pl.DataFrame(
        [(state, *ends, 2 * sum(10 + age for age in ages)) for state in "ABC" for ends, ages in bins.items()],
        schema=["state", "age_lower", "age_upper", "population"],
        orient="row",
    )
    wanted = release.rate(["age", "state"], coarse, 1000, box).to_dicts()
    assert [row["population"] for row in wanted[:1]] == [2 * sum(10 + age for age in range(18))]
    for people in (fine, ends):
        rates = release.rate(["age", "state"], people, 1000, box).to_dicts()
        assert [{**row, "note": None} for row in rates] == [{**row, "note": None} for row in wanted]
        assert all("people are added up over age" in row["note"] and "sex" in row["note"] for row in rates)


def test_the_categories_of_a_level_are_added_up(store: Asked) -> None:
    release = store.releases["2026-03-02"]
    counties = release.table.select("county", "state").unique().drop_nulls().sort("county").to_dicts()
    people = pl.DataFrame([{"county": one["county"], "population": 100} for one in counties])
    rates = {row["state"]: row["population"] for row in release.rate(["state"], people).to_dicts()}
    assert rates == {state: 100 * sum(one["state"] == state for one in counties) for state in "ABC"}


STANDARD = pl.DataFrame(
    [
        {
            "state": state,
            "age_lower": low,
            "population": 1000.0 * (1 + place) + 10 * len(state) * row,
            "standard": weight,
        }
        for place, state in enumerate("ABC")
        for row, (low, weight) in enumerate([(None, 10), (0, 30), (18, 50), (65, 10)])
    ]
).with_columns(age_upper=pl.col("age_lower").replace_strict({None: 0, 0: 18, 18: 65, 65: None}))


@pytest.mark.slow
@pytest.mark.parametrize("by", mostly_soaked([["state"], []], [0]), ids=str)
def test_standardised_rates_weight_the_rates_of_each_stratum(store: Asked, by: list[str]) -> None:
    people = STANDARD if by else STANDARD.filter(state="A")
    for period in TOLD:
        release, oracle = store.releases[period], store.oracles[period]
        found = release.standardised(by, "age", people, 1000, {"day": ("2026-01-12", None)}).to_dicts()
        counts = release.marginal([*by, "age"], {"day": ("2026-01-12", None)}).to_dicts()
        for row in found:
            mine = [one for one in counts if all(one[name] == row[name] for name in by)]
            strata = [
                (one, _stratum(people, one)) for one in mine if (one["age_lower"], one["age_upper"]) != (None, None)
            ]
            assert len(strata) == 4
            weights = [1000 * told["standard"] / 100 / told["population"] for _, told in strata]
            for name in ("estimate", "unbiased"):
                expected = [one[name] for one, _ in strata]
                total = None if None in expected else sum(map(math.prod, zip(weights, expected, strict=True)))
                assert row[name] == (None if total is None else pytest.approx(total))
            assert row["cells"] == sum(one["cells"] for one, _ in strata)
            if oracle.unbiased is None:
                assert (row["ci_lower"], row["basis"], row["note"]) == (None, "noise_only", notes.NO_INTERVAL)
                continue
            errors = [weight * one["noise_error"] for weight, (one, _) in zip(weights, strata, strict=True)]
            nested = isinstance(oracle.unbiased, NestedCells)
            error = sum(errors) if nested else math.hypot(*errors)
            one_draw = noise_law(oracle.unbiased.scale).variance
            reach = error * deviations(oracle.unbiased, one_draw if nested else (error / max(weights)) ** 2)
            assert row["noise_error"] == pytest.approx(error)
            assert (row["ci_lower"], row["ci_upper"]) == pytest.approx(
                (row["unbiased"] - reach, row["unbiased"] + reach)
            )
        assert [row[name] for name in by for row in found] == (["A", "B", "C"] if by else [])


def _stratum(people: pl.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    for name in ("state", "age_lower", "age_upper"):
        if name in row:
            people = people.filter(pl.col(name).eq_missing(row[name]))
    return people.row(0, named=True)


def test_a_standardised_rate_lacks_people_of_one_group_alone(store: Asked) -> None:
    people = STANDARD.with_columns(population=pl.when(state="B", age_lower=18).then(0).otherwise(pl.col("population")))
    a, b, c = store.releases["2026-03-02"].standardised(["state"], "age", people, 1000).to_dicts()
    assert (b["estimate"], b["unbiased"], b["ci_lower"]) == (None, None, None)
    assert b["note"].startswith("the population is 0 for B, 18 to")
    assert a["unbiased"] is not None and c["unbiased"] is not None
