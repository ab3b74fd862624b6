"""Blocks for record linkage: boxes that hold every cell once, the same in SQL, with fewer pairs at every cut."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from by_hand import AGE
from error_codes import coded
from office import ran

from dphist_pipeline.applications.blocking import (
    MOST_BLOCKS,
    Blocking,
    blocking,
    blocks,
    pairs_completeness,
    reduction_ratio,
)
from dphist_pipeline.applications.coded_records import places_of
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

HEIGHT: dict[str, Any] = {"column": "height", "start": 0, "stop": 4, "width": "0.5", "closed": "right"}
HEIGHT |= {"below": True, "above": True, "other": True}
TOWN: dict[str, Any] = {"column": "town", "values": ["O'Hare", "d'Or", "c", "d", "é"], "other": True}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-03-02", "other": True}
AXES = [AGE, HEIGHT, TOWN, DAY]
NAMES = [str(axis["column"]) for axis in AXES]


def owner(public: Path, seed: int, axes: list[dict[str, Any]] = AXES, **more: Any) -> Release:
    shape = by_hand.estimate(axes).domain.shape
    values = np.random.default_rng(seed).poisson(3.0, shape).astype(float) * 10
    return by_hand.publish(public, by_hand.estimate(axes, values), axes, **more)


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> tuple[WholeRelease, WholeRelease]:
    folders = [tmp_path_factory.mktemp("public") for _ in range(2)]
    one, other = (WholeRelease.read(owner(public, seed).path) for seed, public in enumerate(folders))
    return one, other


def records_of_every_cell(whole: WholeRelease) -> pa.Table:
    """One record in every cell of the grid, in declared order, with ends and odd values."""
    ages, heights = [-3.0, 0.0, 64.9, 65.0, None], [0.0, 0.5, 1.0, 1.2, 2.0, 2.1, 3.0, 3.5, 4.0, 4.01, None]
    days = ["2026-01-05", "2026-01-18", "2026-01-19", "2026-01-26", "2026-02-02", "2026-02-15", "2026-02-16"]
    columns = [ages, heights, [*TOWN["values"], "elsewhere"], [*days, "2026-03-01", None]]
    columns[1] = [-1.0, *heights[1:-1], None] if len(heights) < whole.domain.shape[1] else heights
    grid = np.meshgrid(*(np.arange(len(column)) for column in columns), indexing="ij")
    return pa.table({name: [c[i] for i in along.ravel()] for name, c, along in zip(NAMES, columns, grid, strict=True)})


@pytest.mark.slow
def test_sql_puts_every_record_into_the_block_of_its_cell(owners: tuple[WholeRelease, WholeRelease]) -> None:
    made = blocks(*owners, NAMES, pairs=200_000)
    assert made.number > 50
    records = records_of_every_cell(owners[0])
    places = places_of(made.axes, records)
    assert [np.unique(along).size for along in places] == list(made.of_cells.shape)
    expected = made.of_cells[tuple(places)]
    with duckdb.connect() as connection:
        connection.register("register", records)
        rows = connection.sql(Blocking({"block_1": made}, ("", ""), Fraction(1)).register_sql("register"))
        assert rows.columns == [*NAMES, "block_1"]
        np.testing.assert_array_equal(rows.fetchnumpy()["block_1"], expected)


@pytest.mark.slow
def test_texts_of_numbers_and_days_are_read_as_such(owners: tuple[WholeRelease, WholeRelease]) -> None:
    made = blocks(*owners, ["age", "day"], pairs=1_000)
    register = "(VALUES ('12', '2026-02-01'), ('old', 'soon'), (NULL, NULL)) AS t(age, day)"
    query = Blocking({"block": made}, ("", ""), Fraction(1)).register_sql(register)
    first, second, third = (row[2] for row in duckdb.sql(query).fetchall())
    assert second == third != first
    assert first == made.of_cells[1, 3] and third == made.of_cells[-1, -1]


BANDS: dict[str, Any] = {"column": "band", "name": "age", "other": True, "tidy": ["trim", "lower"]}
BANDS |= {"bands": {"[60-70)": 60, "60-69": 60, "under 60": 0, "[70-80)": 70, "80+": 80, "d'Or": 80}}
NAMED = ["age", "ward"]
SPELT: dict[str, Any] = {"column": "ward", "values": ["a", "b"], "spellings": {"Bee": "b"}, "other": True}


def test_bands_and_spellings_are_read_as_texts_of_the_source(tmp_path: Path) -> None:
    axes = [BANDS, SPELT]
    made = blocks(
        *(WholeRelease.read(owner(tmp_path / n, 1, axes).path) for n in "ab"), ["age", "ward"], pairs=0, least=0
    )
    assert made.number == made.of_cells.size
    ages = ["[60-70)", " 60-69", "UNDER 60", "[70-80)", "D'or", "80+", "65", "-1", "elsewhere", None]
    wards = ["a", "b", "Bee", "bee", None, "a", "b", "Bee", "a", "b"]
    query = Blocking({"block": made}, ("", ""), Fraction(1)).register_sql("register")
    with duckdb.connect() as connection:
        connection.register("register", pa.table({"age": ages, "ward": wards}))
        found = connection.sql(query).fetchnumpy()["block"]
    places = [1, 1, 0, 2, 3, 3, 1, 0, 4, 4], [0, 1, 1, 2, 2, 0, 1, 1, 0, 1]
    np.testing.assert_array_equal(found, made.of_cells[places])


def test_owners_whose_axes_read_other_texts_are_refused(tmp_path: Path) -> None:
    others = {**BANDS, "bands": {**BANDS["bands"], "sixties": 60}}
    one, other = (owner(tmp_path / n, 1, [axis]) for n, axis in (("a", BANDS), ("b", others)))
    with pytest.raises(Refused, check=coded("application_refused"), match=r"counts other texts in .* the same `bands`"):
        one.block(other, [["age"]])


@pytest.mark.parametrize(("pairs", "least"), [(10**12, 0), (60_000_000, 0), (60_000_000, 3_000), (0, 2_000), (0, 0)])
def test_blocks_are_boxes_cut_until_few_pairs_are_left(
    owners: tuple[WholeRelease, WholeRelease], pairs: int, least: int
) -> None:
    made = blocks(*owners, ["town", "height", "age"], pairs=pairs, least=least)
    tables = [np.transpose(whole.counts.sum(axis=3), [2, 1, 0]) for whole in owners]
    for number in range(made.number):
        inside = np.argwhere(made.of_cells == number)
        assert len(inside) == np.prod(np.ptp(inside, axis=0) + 1), "not a box"
    for side, table in enumerate(tables):
        np.testing.assert_array_equal(np.bincount(made.of_cells.ravel(), weights=table.ravel()), made.counts[side])
    assert made.expected_pairs == (made.counts[0].astype(float) * made.counts[1]).sum()
    if made.number > 1:
        assert made.counts.sum(axis=0).min() >= least
    if pairs == 10**12:
        assert made.number == 1 and made.block_sql([]) == "0"
    elif least == 0 and pairs:
        assert pairs / 2 < made.expected_pairs <= pairs
    elif least == 0:
        cells = (tables[0] * tables[1]).astype(float)
        assert made.expected_pairs == cells.sum() and made.number <= made.of_cells.size


@pytest.mark.slow
def test_more_blocks_save_more_pairs(owners: tuple[WholeRelease, WholeRelease]) -> None:
    saved = [blocks(*owners, NAMES, pairs=pairs).expected_reduction for pairs in (10**7, 10**6, 10**5)]
    assert saved == sorted(saved) and 0.9 < saved[0] < saved[2] < 1
    assert blocks(*owners, NAMES, pairs=0, least=0).number <= MOST_BLOCKS


def test_a_reduction_ratio_is_that_of_equation_36() -> None:
    assert reduction_ratio(np.array([2, 3]), np.array([4, 1])) == pytest.approx(1 - (8 + 3) / (5 * 5))
    assert reduction_ratio(np.array([5]), np.array([7])) == 0.0
    assert reduction_ratio(np.zeros(2), np.ones(2)) == 0.0
    assert pairs_completeness(np.array([1, 2, 3, 4]), np.array([1, 2, 0, 4])) == 0.75
    assert np.isnan(pairs_completeness(np.zeros(0, np.int64), np.zeros(0, np.int64)))


@pytest.mark.slow
def test_a_blocking_has_a_column_and_a_rule_for_each_partition(tmp_path: Path) -> None:
    one, other = owner(tmp_path / "a", 1), owner(tmp_path / "b", 2, release="clinic", mechanism="dpcube")
    made = one.block(other, [["age", "town"], ["height"]], pairs=10**6)
    assert made.rules == ['l."block_1" = r."block_1"', 'l."block_2" = r."block_2"']
    spent = [Fraction(json.loads((release.path / "audit.json").read_bytes())["epsilon"]) for release in (one, other)]
    assert made.epsilon == sum(spent) and "blocks save" in repr(made)
    facts = made.facts()
    assert facts["releases"] == ["release 'weekly', period 2026-03-02", "release 'clinic', period 2026-03-02"]
    assert "confidential" in facts["note"] and len(facts["partitions"]) == 2
    rows = duckdb.sql(made.register_sql("(SELECT 3 AS age, 'c' AS town, NULL AS height)")).fetchall()
    assert len(rows) == 1 and len(rows[0]) == 5


@pytest.mark.parametrize(
    ("by", "more", "says"),
    [
        ([], {}, "a list of lists of axes"),
        ("age", {}, "a list of lists of axes"),
        ([[]], {}, "a list of axes, each once"),
        (["age"], {}, "a list of axes, each once"),
        ([["age", "age"]], {}, "a list of axes, each once"),
        ([["aeg"]], {}, "has no axis 'aeg'. Did you mean 'age'"),
        ([["age"]], {"pairs": -1}, "pairs: takes a whole number from 0"),
        ([["age"]], {"least": 0.5}, "least: takes a whole number from 0"),
    ],
)
def test_wrong_questions_are_refused(
    owners: tuple[WholeRelease, WholeRelease], by: Any, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(Refused, check=coded("application_refused"), match=says):
        blocking(*owners, by, **more)


def test_owners_with_other_bins_are_refused_and_names_of_columns_may_differ(tmp_path: Path) -> None:
    other_bins, other_name = {**AGE, "edges": [0, 20, 65]}, {**AGE, "column": "years", "name": "age"}
    one = owner(tmp_path / "a", 1, [AGE])
    with pytest.raises(
        Refused, check=coded("application_refused"), match="axis 'age' has other bins or categories in release 'weekly'"
    ):
        one.block(owner(tmp_path / "b", 1, [other_bins]), [["age"]])
    whole = WholeRelease.read(one.path)
    renamed = replace(whole, domain=replace(whole.domain, axes=(replace(whole.domain.axes[0], column="years"),)))
    assert blocks(whole, renamed, ["age"]).number > 1 and other_name["name"] == "age"


@pytest.mark.slow
def test_the_command_writes_rules_for_both_owners(tmp_path: Path) -> None:
    stores = [Store.create(tmp_path / name / "store") for name in ("a", "b")]
    for seed, store in enumerate(stores):
        owner(store.public, seed, release=f"register_{seed}")
    words = ["block", "register_0", "register_1", "--store", stores[0].root, "--other-store", stores[1].root]
    file = tmp_path / "rules.json"
    done = ran(*words, "--by", "age,town", "--by", "height", "--pairs", "1000000", "--output", file)
    assert done.code == 0, done.err
    assert "block_2" in done.out and "has spent epsilon 1/3" in done.out
    facts = json.loads(file.read_text(encoding="utf-8"))
    assert "block_2" in facts["register_sql"] and len(facts["splink_blocking_rules"]) == 2
    for more, says in (
        (["--by", "agee"], "Did you mean 'age'"),
        (["--by", "age", "--output", file], "rules.json is there already; name another file, or add --overwrite"),
        (["--by", "age", "--output", tmp_path / "no" / "x.json"], "cannot be written"),
        (["--by", "age", "--other-period", "1999-01-04"], "no period of 'register_1'"),
    ):
        done = ran(*words, "--output", tmp_path / "x.json", *more)
        assert done.code == 1 and says in " ".join(done.err.split()), done.err
    assert ran(*words, "--by", "age", "--output", file, "--overwrite").code == 0
