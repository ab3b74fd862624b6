"""Families of tables: counted from the same kept rows, released under one charge, asked as any release."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from office import Office
from one_engine import one_engine
from system.orchestrated import defined, events

from dphist_pipeline.applications._group_rates import GroupRates
from dphist_pipeline.applications.synthetic_report import CountsOf, FamilyReport, report_on
from dphist_pipeline.applications.whole_family import WholeFamily
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import _table_counts as table_counts
from dphist_pipeline.confidential._bounding import KEY_BYTES, kept_words
from dphist_pipeline.confidential._row_words import words_of
from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.releasing import _plans as plans
from dphist_pipeline.releasing._plans import mechanism_run_of, plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.periods import PeriodRule
from examples import examples

pytestmark = pytest.mark.stand_in(
    "pictures", why="which tables a unit moves; cards of families are tried in publishing/"
)

COUNTIES = [f"c{number}" for number in range(7)]
STATES = ["north", "north", "south", "north", "south", "south", "south"]
AGE = {"column": "age", "start": 0, "stop": 100, "width": 25}
SEX = {"column": "sex", "values": ["f", "m"]}
WARD = {"column": "ward", "values": ["a", "b"], "other": True}
COUNTY = {"column": "county", "values": COUNTIES, "levels": {"state": STATES}}
CROSSING = {"tables": {"list": [["state"], ["half"]]}}
FAMILY: dict[str, Any] = {
    "release": "family",
    "mechanism": "tables",
    "epsilon": 5,
    "tables": {"list": [["age", "sex"], ["state", "ward"]], "all": 1},
    "axes": [AGE, SEX, WARD, COUNTY],
}
NAMES = {"age", "sex", "ward", "state", "age_sex", "state_ward"}


def records(rows: int = 3000, people: int = 1000) -> dict[str, list[Any]]:
    draws = np.random.Generator(np.random.PCG64(5))
    return {
        "patient": draws.integers(0, people, rows).astype(str).tolist(),
        "age": draws.integers(0, 120, rows).astype(float).tolist(),
        "sex": draws.choice(["f", "m", "x"], rows).tolist(),
        "ward": draws.choice(["a", "b", "c"], rows).tolist(),
        "county": draws.choice(COUNTIES, rows).tolist(),
    }


def spec_of(folder: Path, **changes: Any) -> ReleaseSpec:
    fields = {"source": "rows.parquet", "privacy_unit": "patient", "max_rows_per_unit": 2, "neighbours": "add_remove"}
    return ReleaseSpec.from_attributes({**fields, "account": "health", **FAMILY, **changes}, folder)


def counted(folder: Path, frame: pl.DataFrame, **changes: Any) -> dict[tuple[int, ...], np.ndarray]:
    """Exact counts of what is measured, by the axes of each marginal."""
    frame.write_parquet(folder / "rows.parquet")
    plan = plan_of(spec_of(folder, **changes), PeriodRule("none", "monday", "UTC", 0).period_of("all"))
    ends = np.cumsum([marginal.cells for marginal in plan.marginals])
    with one_engine():
        parts = np.split(read_and_count(plan, folder), ends[:-1])
    return {m.axes: part.reshape(m.shape) for m, part in zip(plan.marginals, parts, strict=True)}


def test_the_plan_of_a_release_measures_what_its_frozen_run_does(tmp_path: Path, monkeypatch: Any) -> None:
    """What serves a family best is found once, when a release begins; no later step asks again."""
    spec, period = spec_of(tmp_path), PeriodRule("none", "monday", "UTC", 0).period_of("all")
    (tmp_path / "rows.parquet").touch()
    run, derived = mechanism_run_of(spec), plan_of(spec, period)
    monkeypatch.setattr(plans, "shares_for", None)
    assert plan_of(spec, period, run=run) == derived
    assert [marginal.axes for marginal in derived.marginals] == [tuple(sorted(axes)) for axes in run.measured]


def in_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that no axis leaves out, with their positions."""
    frame = frame.filter(pl.col("age") < 100, pl.col("sex") != "x")
    states = dict(zip(COUNTIES, [int(state == "south") for state in STATES], strict=True))
    return frame.select(
        "patient",
        pl.col("age").floordiv(25).cast(pl.Int64),
        pl.col("sex").replace_strict({"f": 0, "m": 1}),
        pl.col("ward").replace_strict({"a": 0, "b": 1, "c": 2}),
        pl.col("county").replace_strict(states),
    )


@pytest.mark.parametrize("bound", [{"max_rows_per_unit": 10**4}, {"privacy_unit": "row", "max_rows_per_unit": 1}])
def test_without_units_over_the_bound_marginals_are_plain_counts(
    tmp_path: Path, bound: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_counts, "CHUNK_ROWS", 100)
    frame = pl.DataFrame(records())
    rows, columns = in_cells(frame), ["age", "sex", "ward", "county"]
    for axes, found in counted(tmp_path, frame, **bound).items():
        expected = np.zeros(found.shape, dtype=np.int64)
        np.add.at(expected, tuple(rows[columns[axis]].to_numpy() for axis in axes), 1)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("axes", [4, 70])
def test_all_marginals_count_the_same_rows_at_most_r_of_a_unit(tmp_path: Path, axes: int) -> None:
    """With 70 axes of two categories, a row takes two words."""
    draws = np.random.Generator(np.random.PCG64(1))
    columns = {f"a{number}": draws.choice(["x", "y"], 400) for number in range(axes)}
    frame = pl.DataFrame({"patient": np.repeat(np.arange(40), 10).astype(str), **columns})
    declared = [{"column": name, "values": ["x", "y"]} for name in columns]
    tables = {"list": [["a0", "a1"], ["a1", "a2"], [f"a{axes - 1}", "a0"]]}
    if axes > 50:
        declared, tables = declared[:50], {"list": [["a0", "a1"], ["a1", "a2"], ["a49", "a0"]]}
        frame = frame.select("patient", *(f"a{number}" for number in range(50)))
        declared = [{**axis, "values": ["x", "y", *(f"v{n}" for n in range(6))]} for axis in declared]
        shape = (8,) * 50
        assert len(words_of(Domain.from_shape(shape))) == 3
    found = counted(tmp_path, frame, axes=declared, tables=tables, max_rows_per_unit=3)
    assert {int(part.sum()) for part in found.values()} == {40 * 3}
    for (one, first), (two, second) in itertools.combinations(found.items(), 2):
        shared = set(one) & set(two)
        sums = [
            part.sum(axis=tuple(n for n, axis in enumerate(named) if axis not in shared))
            for named, part in ((one, first), (two, second))
        ]
        order = [sorted(shared, key=named.index) for named in (one, two)]
        assert np.array_equal(sums[0], sums[1] if order[0] == order[1] else sums[1].T)


def test_every_copy_of_a_rows_words_has_the_same_chance_to_be_kept(tmp_path: Path) -> None:
    four = pl.DataFrame({"w0": [0, 0, 1, 1], "w1": [0, 1, 0, 1]})
    pl.DataFrame({"unit": range(4000)}).join(four, how="cross").write_parquet(tmp_path / "rows.parquet")
    seen = np.zeros((2, 2))
    for words, kept in kept_words(tmp_path / "rows.parquet", ["w0", "w1"], 1, bytes(KEY_BYTES)):
        np.add.at(seen, tuple(words), kept)
    # Binomial(4000, 1/4): six standard deviations are 164.
    assert np.abs(seen - 1000).max() < 164


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_marginal_moves_by_at_most_r_rows_of_a_unit(tmp_path: Path, seed: int, bound: int, alone: bool) -> None:
    """One unit comes; under the same key no other unit's rows change."""
    draws = np.random.Generator(np.random.PCG64(seed))
    rows = pl.DataFrame(records(60, 8)).with_columns(sex=pl.Series(draws.choice(["f", "m"], 60)))
    unit = pl.DataFrame({**records(12, 1), "patient": ["new" if alone else "0"] * 12})
    with patch("secrets.token_bytes", lambda size: seed.to_bytes(size, "little")):
        before = counted(tmp_path, rows.filter(pl.col("patient") != unit["patient"][0]), max_rows_per_unit=bound)
        after = counted(tmp_path, pl.concat([rows, unit], how="vertical_relaxed"), max_rows_per_unit=bound)
    moved = {axes: np.abs(part - before[axes]).sum() for axes, part in after.items()}
    assert max(moved.values()) <= bound
    assert len({int((part - before[axes]).sum()) for axes, part in after.items()}) == 1


def test_a_key_for_each_table_would_be_noticed(tmp_path: Path) -> None:
    """A planted fault: tables that count different rows do not agree."""
    frame = pl.DataFrame({**records(400, 5), "age": [10.0] * 400, "sex": ["f"] * 400})
    whole = table_counts.count_marginals

    def apart(plan: CountingPlan, staged: Path, key: bytes) -> np.ndarray:
        parts = [replace(plan, marginals=(one,)) for one in plan.marginals]
        return np.concatenate([whole(part, staged, bytes([n] * KEY_BYTES)) for n, part in enumerate(parts)])

    tables = {"tables": {"list": [["ward", "state"], ["ward", "sex"]]}, "max_cells": 6}
    with patch.object(table_counts, "count_marginals", apart):
        by_ward = [
            part.sum(axis=tuple(n for n, axis in enumerate(axes) if axis != 2))
            for axes, part in counted(tmp_path, frame, **tables).items()
        ]
    assert not all(np.array_equal(by_ward[0], other) for other in by_ward)


def released(folder: Path, spec: Mapping[str, Any]) -> Office:
    """An office that has released a family."""
    made = Office(folder / "office")
    with made.witnessed(), chdir(made.folder):
        made.opened()
        made.write_records(records())
        made.write_spec(**spec)
        made.released()
    return made


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return released(tmp_path_factory.mktemp("made"), FAMILY)


@pytest.fixture
def family(original: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office that has released the family."""
    copy = original.copied_to(tmp_path / "office")
    monkeypatch.chdir(copy.folder)
    monkeypatch.setenv("DPHIST_WITNESS", str(copy.witness))
    return copy


def test_a_family_is_one_charge_and_its_tables_agree_and_answer(family: Office) -> None:
    made = Release.published(Store.open(family.store), "family")
    assert set(made.audit["tables"]) == NAMES and made.audit["epsilon"] == "5"
    assert [kind for _, kind, *_ in family.entries()].count("charged") == 1
    told = {name: Release.published(Store.open(family.store), f"family_{name}").table for name in NAMES}
    by_state = told["state_ward"].group_by("state").agg(pl.col("estimate").sum()).sort("state")
    assert np.allclose(by_state["estimate"], told["state"].sort("state")["estimate"], rtol=1e-9)
    totals = [table["estimate"].sum() for table in told.values()]
    assert np.allclose(totals, totals[0], rtol=1e-9)
    exact = in_cells(pl.DataFrame(records())).height
    assert 0.5 * exact < totals[0] <= exact + 50
    answer = family.run("answer", "family_age_sex", "--where", "sex = 'f'", "--json").json
    assert answer["ci_lower"] < answer["unbiased"] < answer["ci_upper"]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{family.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        (rows,) = connection.execute("SELECT count(*) FROM r.family_state_ward").fetchall()[0]
        (asked,) = connection.execute("SELECT estimate FROM r.dph_total('r.family_age')").fetchall()[0]
    assert rows == 6 and asked == pytest.approx(totals[0])


def test_whole_counts_of_all_tables_of_a_family_come_from_the_same_records(family: Office) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{family.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        sums = "SELECT {0}, sum(whole_count)::BIGINT FROM {1} GROUP BY ALL ORDER BY ALL"
        by_state = [
            connection.execute(sums.format("state", f"r.{name}")).fetchall()
            for name in ("family_state", "family_state_ward")
        ]
        by_macro = connection.execute(sums.format("state", "r.dph_whole('r.family_state_ward')")).fetchall()
        by_sex = [connection.execute(sums.format("sex", f"r.family_{name}")).fetchall() for name in ("sex", "age_sex")]
    assert by_state[0] == by_state[1] == by_macro and by_sex[0] == by_sex[1]
    assert sum(count for _, count in by_state[0]) == sum(count for _, count in by_sex[0]) > 0


def test_synthetic_records_of_a_family_have_all_axes_and_its_whole_counts(family: Office) -> None:
    told = family.run("synthesize", "family", "--output", "all.parquet", "--json").json
    drawn = pl.read_parquet("all.parquet")
    assert told["release"] == "family" and drawn.height == told["rows"]
    # A level is a column of its own where the axis below it is in no table.
    assert set(drawn.columns) == {"age", "sex", "ward", "state"}
    whole = Release.published(Store.open(family.store), "family_state_ward").whole()
    found = drawn.group_by("state", "ward").len().sort("state", "ward")
    expected = whole.filter(pl.col("whole_count") > 0).sort("state", "ward")
    assert found["len"].to_list() == expected["whole_count"].to_list()
    again = Release.published(Store.open(family.store), "family").synthesize(seed=told["seed"])
    assert pl.DataFrame(again).equals(drawn)
    words = ("--output", "more.parquet", "--test-on", "all.parquet", "--target", "sex")
    refused = family.run("synthesize", "family", *words)
    assert refused.code == 1 and "table of the family" in refused.err


def test_a_report_on_a_familys_records_compares_them_with_every_table(family: Office) -> None:
    words = ("synthesize", "family", "--report", "--json", "--output")
    tables = {one["table"]: one for one in family.run(*words, "all.parquet").json["tables"]}
    assert set(tables) == set(NAMES) and {one["apart"] for one in tables.values()} == {0.0}
    for name, told in tables.items():
        table = Release.published(Store.open(family.store), f"family_{name}")
        away = (table.whole()["whole_count"] - table.table["unbiased_estimate"]).abs()
        assert (told["cells"], told["farthest"]) == (len(away), pytest.approx(away.max()))
    # A sample of few rows differs by what drawing does, and no cell is blamed for it.
    facts = family.run(*words, "few.parquet", "--rows", "3", "--seed", "7").json
    few = {one["table"]: one for one in facts["tables"]}
    assert few["age_sex"]["apart"] > 0.1 and few["age_sex"]["outside"] == 0
    assert {one["outside"] for one in facts["rates"]} == {0}


PARTS = {"age": "[25, 50]", "sex": "'m'", "state": "'south'", "ward": "'a'"}
PLACES = {"age": 1, "sex": 1, "state": 1, "ward": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "of", "by"),
    [
        ("age_sex", "age", "sex"),
        ("age_sex", "sex", "age"),
        ("state_ward", "state", "ward"),
        ("state_ward", "ward", "state"),
    ],
)
def test_intervals_of_rates_in_a_report_are_those_of_the_macro(family: Office, table: str, of: str, by: str) -> None:
    whole = WholeFamily.read(Release.published(Store.open(family.store), "family").path)
    _, domain, unbiased = whole.table(table)
    assert isinstance(unbiased, NestedCells)
    number = [axis.name for axis in domain.axes].index(of)
    rates = GroupRates.of(np.maximum(unbiased.values, 0.0), unbiased, number)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{family.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        asked = f"r.dph_share('r.family_{table}', part := {{'{of}': {PARTS[of]}}}, by := ['{by}'])"
        told = connection.execute(f"SELECT ci_lower, ci_upper FROM {asked}").fetchall()
    ends = [end.take(PLACES[of], axis=number) for end in (rates.lower, rates.upper)]
    np.testing.assert_allclose(np.array(ends).T, told, atol=1e-9)


def report_on_men_alone(family: Office) -> FamilyReport:
    """The report on synthetic records of the family whose sex was altered."""
    family.run("synthesize", "family", "--output", "all.parquet")
    altered = pl.read_parquet("all.parquet").with_columns(sex=pl.lit("m"))
    altered.write_parquet("altered.parquet")
    whole = WholeFamily.read(Release.published(Store.open(family.store), "family").path)
    report = report_on(whole, Path("altered.parquet"))
    assert isinstance(report, FamilyReport)
    return report


@pytest.mark.slow
def test_a_report_names_rates_that_the_published_table_rules_out(family: Office) -> None:
    report = report_on_men_alone(family)
    told = {(one.table, one.rates_of): one for one in report.rates}
    assert set(told) == {("age_sex", "age"), ("age_sex", "sex"), ("state_ward", "state"), ("state_ward", "ward")}
    by_age = told["age_sex", "sex"]
    assert (by_age.groups, by_age.outside, by_age.unknown) == (4, 8, 0)
    assert re.fullmatch(
        r"age \d+ to under \d+, sex [fm]: (0|100)\.0 % of \d+, published \d+\.\d % to \d+\.\d %", by_age.marked[0]
    )
    assert told["state_ward", "ward"].outside == 0


def test_a_report_names_cells_whose_counts_are_not_those_of_the_family(family: Office) -> None:
    report = report_on_men_alone(family)
    (told,) = [one for one in report.counts if one.table == "age_sex"]
    assert told.apart > 0.1 and told.outside == len(told.marked) > 0
    assert told.marked[0].startswith("age ") and ", sex " in told.marked[0] and ", published " in told.marked[0]
    # All cells are named, and first those that are farthest off by their interval's width, not by records.
    numbers = [[float(one.replace(",", "")) for one in re.findall(r"-?[\d,]*\d", text)][-3:] for text in told.marked]
    away = [max(low - found, found - max(high, 0.0)) / max(high - low, 1.0) for found, low, high in numbers]
    assert all(later <= first + 0.2 for first, later in itertools.pairwise(away))
    assert max(away) == pytest.approx(away[0], abs=0.1)


def test_a_terminal_names_ten_marked_cells_of_a_table_and_counts_the_rest() -> None:
    texts = tuple(f"cell {number}" for number in range(13))
    *_, (_, _, rows) = FamilyReport((CountsOf("pairs", 40, 1.0, 2.0, 0.1, 13, texts),), ()).tables()
    assert [text for _, text in rows] == [*texts[:10], "and 3 more, which --json names"]


@pytest.mark.slow
def test_a_family_that_is_named_is_answered_from_a_table_with_the_axes_asked(family: Office) -> None:
    for words in (
        ["--where", "sex = 'f' and age in [0, 50)"],
        ["--by", "age,sex"],
        ["--quantile", "age=0.5", "--where", "sex = 'f'"],
    ):
        named, whole = (family.run("answer", name, *words, "--json").json for name in ("family_age_sex", "family"))
        assert {**named, "release": "family"} == whole
    total = family.run("answer", "family", "--json").json["estimate"]
    assert total == pytest.approx(family.run("answer", "family_age", "--json").json["estimate"])
    for words in (["--by", "age,ward"], ["--by", "nothing"]):
        refused = family.run("answer", "family", *words)
        assert refused.code == 1 and "family_age_sex" in refused.err
    assert family.run("answer", "family_nothing").code == 1


@pytest.mark.slow
def test_a_family_is_exported_as_a_file_for_each_table(family: Office) -> None:
    assert family.run("export", "family", "--to", "csv").code == 0
    names = sorted(file.name for file in Path().glob("family_*.csv"))
    tables = json.loads((family.published("family") / "audit.json").read_text())["tables"]
    assert names == sorted(f"family_{name}_published.csv" for name in tables)
    refused = family.run("export", "family", "--to", "csv", "--output", "one.csv")
    assert refused.code == 1 and "name one of them: family_" in refused.err and not Path("one.csv").exists()


def test_a_second_call_replays_a_family_and_spends_nothing(family: Office) -> None:
    before = (family.published("family") / "audit.json").read_bytes(), family.entries()
    assert "Already published" in family.released().out
    assert ((family.published("family") / "audit.json").read_bytes(), family.entries()) == before


def test_a_family_is_made_anew_from_its_journal(family: Office) -> None:
    before = json.loads((family.published("family") / "audit.json").read_bytes())["values_digest"]
    family.published("family").rename(family.folder / "moved")
    (family.folder / "data/admissions.parquet").unlink()
    family.released()
    assert json.loads((family.published("family") / "audit.json").read_bytes())["values_digest"] == before


def test_an_altered_table_of_a_family_is_noticed(family: Office) -> None:
    (family.published("family") / "tables" / "age" / "histogram.parquet").write_bytes(b"")
    refused = family.release()
    assert refused.code == 1 and "altered" in refused.err


@pytest.mark.slow
def test_a_withdrawn_family_leaves_the_catalogue_with_all_its_tables(family: Office) -> None:
    assert family.run("withdraw", "family", "all", "--reason", "wrong wards").code == 0
    assert family.run("answer", "family_age").code == 1
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{family.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        assert connection.execute("SELECT count(*) FROM r.dph_releases").fetchall() == [(0,)]


def test_the_ledger_and_all_files_of_a_family_verify(family: Office) -> None:
    verified = family.run("ledger", "verify", "--json").json
    assert (verified["publications"], verified["missing"]) == (1, [])
    for name in sorted(NAMES):
        file = family.published("family") / "tables" / name / "histogram.parquet"
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        damaged = family.run("ledger", "verify")
        assert damaged.code == 1 and f"tables/{name} has a missing or altered" in damaged.err
        file.write_bytes(content)


def test_the_card_of_a_family_names_its_tables(family: Office) -> None:
    card = (family.published("family") / "card.html").read_text()
    assert "state_ward" in card and "6 tables" in card


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tables": {}}, "asks for no table"),
        ({"tables": {"list": [["agee"]]}}, "Did you mean 'age'"),
        ({"tables": {"list": [["county", "state"]]}}, "levels of one axis"),
        ({"axes": [{**COUNTY, "levels": {"state": STATES, "half": [*"aabbbab"]}}, AGE], **CROSSING}, "cut across"),
        ({"tables": {"all": 9}}, "tables.all"),
        ({"tables": {"list": [["age"]], "weights": {"sex": 2}}}, "is no table of this release"),
        ({"tables": {"list": [["age"]], "weights": {"age": -1}}}, "weights"),
        ({"tables": [["age"]]}, "must be a mapping"),
        ({"mechanism": "geometric"}, "needs `mechanism: tables`"),
        ({"axes": [{**AGE, "name": "cube"}], "tables": {"all": 1}}, "rename the axis"),
        ({"max_cells": 5}, "more than the 5 of `max_cells`"),
        ({"epsilon": "1/1000000"}, "raise epsilon"),
        ({"quality": {"by": ["county"]}}, "is an axis that no table has"),
    ],
)
def test_a_spec_with_wrong_tables_is_refused_with_one_message(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    (tmp_path / "rows.parquet").touch()
    with pytest.raises((SpecError, DphistError)) as caught:
        spec_of(tmp_path, **changes)
    assert says in str(caught.value)


def test_the_same_tables_have_the_same_digest_and_other_tables_another(tmp_path: Path) -> None:
    one, same, other = (
        spec_of(tmp_path, tables=tables).digest for tables in ({"all": 2}, {"all": 2, "list": []}, {"all": 1})
    )
    assert one == same != other


@pytest.mark.slow
def test_dagster_makes_an_asset_of_each_table(family: Office) -> None:
    with dg.instance_for_test() as instance:
        run = dg.materialize(list(defined(family, **FAMILY).assets or []), instance=instance)
    assert run.success
    made = {event.asset_key.path[-1]: event for event in events(run)}
    assert made.keys() >= {"records", "cube", "sanitized", "published", *NAMES}
    rows = {name: made[name].metadata["dagster/row_count"].value for name in NAMES}
    assert rows["age_sex"] == 8
    whole = made["published"].metadata  # of several tables: none of them is its columns, rows or address
    assert not {"dagster/row_count", "dagster/uri", "dagster/column_schema", "dagster/table_name"} & whole.keys()
    assert set(whole["tables"].value.split(", ")) == set(NAMES)
    totals = {made[name].metadata["total"].value for name in NAMES}
    assert max(totals) == pytest.approx(min(totals))


@pytest.mark.slow
def test_names_of_tables_and_of_other_releases_do_not_meet(family: Office) -> None:
    family.write_spec(release="family_age")
    refused = family.release()
    assert refused.code == 1 and "belongs to 'family'" in refused.err
    family.write_spec(release="one_sex")
    family.released()
    family.write_spec(**{**FAMILY, "release": "one", "epsilon": 1})
    refused = family.release()
    assert refused.code == 1 and "belongs to 'one_sex'" in refused.err
