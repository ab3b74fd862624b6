"""Families of tables that use one axis at several levels: one charge, one reading, and sums that agree."""

from __future__ import annotations

from contextlib import chdir
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from office import Office
from system.test_families import AGE, COUNTIES, SEX, STATES, counted, in_cells, records, released, spec_of

from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

COUNTY = {"column": "county", "values": COUNTIES, "levels": {"state": STATES}}
FAMILY: dict[str, Any] = {
    "release": "levels",
    "mechanism": "tables",
    "epsilon": 2,
    "tables": {"list": [["state"], ["county"], ["county", "age"], ["state", "age", "sex"]]},
    "axes": [AGE, SEX, {"column": "ward", "values": ["a", "b"], "other": True}, COUNTY],
}
NAMES = ["state", "county", "county_age", "state_age_sex"]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return released(tmp_path_factory.mktemp("made"), FAMILY)


def tables_of(office: Office) -> dict[str, pl.DataFrame]:
    return {name: Release.published(Store.open(office.store), f"levels_{name}").table for name in NAMES}


@pytest.mark.slow
def test_tables_at_two_levels_add_up_and_are_one_charge(office: Office) -> None:
    told = tables_of(office)
    assert {name: set(table.columns) & {"state", "county"} for name, table in told.items()} == {
        "state": {"state"},
        "county": {"county", "state"},
        "county_age": {"county", "state"},
        "state_age_sex": {"state"},
    }
    by_state = [table.group_by("state").agg(pl.col("estimate").sum()).sort("state") for table in told.values()]
    assert all(np.allclose(one["estimate"], by_state[0]["estimate"], rtol=1e-9, atol=0) for one in by_state[1:])
    ages = [
        told[name].group_by("state", "age_lower").agg(pl.col("estimate").sum()).sort("state", "age_lower")["estimate"]
        for name in ("county_age", "state_age_sex")
    ]
    assert np.allclose(*ages, rtol=1e-9, atol=0)
    made = Release.published(Store.open(office.store), "levels").audit
    assert made["epsilon"] == "2" and sum(Fraction(charge["epsilon"]) for charge in made["charges"]) == 2
    exact = in_cells(pl.DataFrame(records())).height
    assert 0.5 * exact < told["state"]["estimate"].sum() < exact + 100


@pytest.mark.slow
def test_whole_counts_agree_up_and_down_the_levels(office: Office) -> None:
    whole = {name: Release.published(Store.open(office.store), f"levels_{name}").whole() for name in NAMES}
    by_state = [one.group_by("state").agg(pl.col("whole_count").sum()).sort("state") for one in whole.values()]
    assert all(one.equals(by_state[0]) for one in by_state[1:]) and by_state[0]["whole_count"].sum() > 0


@pytest.mark.slow
def test_check_tells_the_measured_marginals_with_their_shares(office: Office) -> None:
    with chdir(office.folder):
        found = office.run("check", "spec.yaml", "--json").json
        said = office.run("check", "spec.yaml").out
    assert sum(Fraction(one["share"]) for one in found["measured"]) == 1
    assert 1 <= found["variance_over_lower_bound"] < 10
    assert all(" × ".join(one["axes"]) in " ".join(said.split()) for one in found["measured"])


@pytest.mark.slow
def test_levels_are_asked_in_sql_and_the_finer_table_answers_the_coarser(office: Office) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        asked = "SELECT state, estimate, ci_upper - ci_lower FROM r.dph_marginal('r.levels_{}', ['state']) ORDER BY 1"
        fine, coarse = (connection.execute(asked.format(name)).fetchall() for name in ("county", "state"))
    for (name, estimate, width), (same, best, least) in zip(fine, coarse, strict=True):
        assert name == same and estimate == pytest.approx(best, rel=1e-9) and width >= least


@pytest.mark.slow
def test_a_question_about_states_is_answered_from_states_whichever_table_is_named(office: Office) -> None:
    made = {name: Release.published(Store.open(office.store), f"levels_{name}") for name in NAMES}
    by_state = [made[name].marginal(["state"]).sort("state") for name in ("state", "county")]
    assert by_state[0].equals(by_state[1])
    boxes = [made[name].answer(state="south") for name in ("state", "county")]
    assert boxes[0] == boxes[1]
    # Counties are asked of counties, with wider intervals than states.
    counties = made["county"].marginal(["county"])
    assert counties.height == len(COUNTIES)
    with chdir(office.folder):
        named, whole = (
            office.run("answer", name, "--by", "state", "--json").json for name in ("levels_county", "levels")
        )
    assert named["rows"] == whole["rows"]


@pytest.mark.slow
def test_the_told_variance_of_a_table_is_at_least_that_of_its_law(office: Office) -> None:
    made = Release.published(Store.open(office.store), "levels_county")
    values = made.table.sort("county")["estimate"].to_numpy()
    unbiased = published_unbiased(made.audit, values)
    assert unbiased is not None
    one, every = (unbiased.variance_of_sum([np.arange(many)]) for many in (1, 7))
    # The total is known better than the sum of seven independent counties.
    assert 0 < every < 7 * one and made.audit["unbiased_tail"]["rate"] > 0


def test_all_adds_every_pair_of_axes_at_each_level_that_is_used(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").touch()
    tables = {"list": [["state"], ["county"]], "all": 2}
    family = spec_of(tmp_path, axes=[AGE, SEX, COUNTY], tables=tables).family
    assert family is not None
    assert set(family.names) == {
        "state", "county", "age_sex", "age_state", "age_county", "sex_state", "sex_county",
    }  # fmt: skip
    (levels,) = family.trees
    assert [family.domain.axes[axis].name for axis in levels.axes] == ["state", "county"]


def test_levels_are_counted_from_the_same_kept_rows(tmp_path: Path) -> None:
    """With a bound that keeps few rows, sums of counties' counts are the states' counts."""
    frame = pl.DataFrame({**records(3000, 100), "sex": ["f"] * 3000})
    tables = {"list": [["state", "ward"], ["county"], ["county", "age"]], "weights": {"state_ward": 9, "county": 9}}
    places = {"age": 0, "sex": 1, "ward": 2, "county": 3}
    found = counted(tmp_path, frame, axes=FAMILY["axes"], tables=tables, max_cells=30)
    sums = []
    for axes, counts in found.items():
        if places["county"] in axes:
            others = tuple(number for number, axis in enumerate(axes) if axis != places["county"])
            along = counts.sum(axis=others)
            south = [number for number, state in enumerate(STATES) if state == "south"]
            sums.append(along if along.size == 2 else np.array([along.sum() - along[south].sum(), along[south].sum()]))
    assert len(sums) >= 2 and all(np.array_equal(one, sums[0]) for one in sums)


TOWN = {"column": "ward", "name": "town", "values": ["a", "b"], "other": True, "levels": {"land": ["x", "x"]}}
CROSSED = {
    **FAMILY,
    "release": "crossed",
    "tables": {"list": [["county"], ["state", "town"], ["town", "age"], ["land"], ["county", "land"]], "all": 1},
    "axes": [AGE, SEX, TOWN, COUNTY],
}


@pytest.mark.slow
def test_two_axes_at_several_levels_agree_on_every_sum(tmp_path: Path) -> None:
    office = released(tmp_path, CROSSED)
    made = Release.published(Store.open(office.store), "crossed")
    told = {name: table.table for name, table in made.tables.items()}
    assert set(told) == {"county", "state", "town", "land", "age", "sex", "state_town", "town_age", "county_land"}
    for by, values in {"state": ["estimate"], "land": ["estimate"]}.items():
        sums = [table.group_by(by).agg(pl.col(values).sum()).sort(by) for table in told.values() if by in table.columns]
        assert len(sums) >= 4
        assert all(np.allclose(one["estimate"], sums[0]["estimate"], rtol=1e-9, atol=0) for one in sums[1:])
    whole = [
        table.whole().group_by("land").agg(pl.col("whole_count").sum()).sort("land")
        for name, table in made.tables.items()
        if "land" in told[name].columns
    ]
    assert all(one.equals(whole[0]) for one in whole[1:]) and whole[0]["whole_count"].sum() > 0
    with chdir(office.folder):
        found = office.run("check", "spec.yaml", "--json").json
        assert found["variance_over_lower_bound"] >= 1
        for words in (["forecast", "spec.yaml"], ["synthesize", "crossed", "--output", "drawn.parquet"]):
            ran = office.run(*words)
            assert ran.code == 0, ran.err
