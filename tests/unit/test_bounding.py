"""Which rows of a unit are kept: at most R, all with the same chance, by that unit's rows alone."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_engine import one_engine
from scipy import stats

from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential._bounding import KEY_BYTES, count_bounded, count_rows, kept_words
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.reading.source import SourceRefused, engine_settings
from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import examples, mostly_soaked

Unit = int | str
Rows = Sequence[tuple[Unit, int]]

KEY = bytes(range(KEY_BYTES))
CELLS = 6
NEVER = 1e-10  # what a fair variant may fail by chance

whole_units = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1]))
text_units = st.sampled_from(["", "a", "A", "a ", "ä", "\0", "0", "-0.0", "naïve 😀"])
tables = st.sampled_from([whole_units, text_units]).flatmap(
    lambda units: st.lists(st.tuples(units, st.integers(0, CELLS - 1)), max_size=60)
)
bounds = st.integers(1, 5)


def counted(rows: Rows, max_rows: int, key: bytes = KEY, cells: int = CELLS, distinct: bool = False) -> np.ndarray:
    """Kept rows of every cell."""
    unit_type = pl.Int64 if all(isinstance(unit, int) for unit, _ in rows) else pl.String
    frame = pl.DataFrame(list(rows), schema={"unit": unit_type, "code": pl.Int32}, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "rows.parquet"
        frame.write_parquet(staged, row_group_size=7)
        with one_engine():
            return count_bounded(staged, cells, max_rows, key, distinct)


def mixed(word: int) -> int:
    """SplitMix64's finalizer on Python's whole numbers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def place(unit: Unit, code: int, copy: int, key: bytes) -> tuple[int, int, int]:
    """Where one row stands in its unit's order, as any engine must find it."""
    word = int.from_bytes(hashlib.sha256(key + str(unit).encode()).digest()[:8], "big") >> 4
    in_cell = mixed((word + code * 0x9E3779B97F4A7C15) % 2**64)
    return mixed((in_cell + copy * 0xD1B54A32D192ED03) % 2**64), code, copy


def plainly_counted(rows: Rows, max_rows: int) -> np.ndarray:
    """The same as `counted`, row by row."""
    counts = np.zeros(CELLS, dtype=np.int64)
    for unit in {unit for unit, _ in rows}:
        copies = Counter(code for owner, code in rows if owner == unit)
        singles = [(code, copy) for code, number in copies.items() for copy in range(number)]
        for code, _ in sorted(singles, key=lambda row: place(unit, *row, KEY))[:max_rows]:
            counts[code] += 1
    return counts


@pytest.mark.slow
@examples(60)
@given(rows=tables, max_rows=bounds)
def test_keeps_the_rows_that_a_plain_reading_of_the_order_keeps(rows: Rows, max_rows: int):
    assert counted(rows, max_rows).tolist() == plainly_counted(rows, max_rows).tolist()


@pytest.mark.slow
@examples(25)
@given(rows=tables, max_rows=bounds, shuffle=st.randoms(use_true_random=False))
def test_what_is_kept_of_a_unit_depends_on_its_own_rows_alone(rows: Rows, max_rows: int, shuffle: random.Random):
    units = sorted({unit for unit, _ in rows}, key=str)
    alone = [counted([row for row in rows if row[0] == unit], max_rows) for unit in units]
    shuffled = shuffle.sample(rows, len(rows))
    assert counted(shuffled, max_rows).tolist() == sum(alone, np.zeros(CELLS, dtype=np.int64)).tolist()


@examples(25)
@given(rows=tables, max_rows=bounds)
def test_equal_rows_of_a_unit_are_one_row_before_they_are_bounded(rows: Rows, max_rows: int):
    assert counted(rows, max_rows, distinct=True).tolist() == counted(sorted(set(rows), key=str), max_rows).tolist()


def test_rows_of_one_cell_take_no_places_of_another_cell_where_a_unit_counts_once_in_each():
    rows = [("ann", 0)] * 40 + [("ann", 1)]
    assert counted(rows, 2).tolist()[:2] == [2, 0]
    assert counted(rows, 2, distinct=True).tolist()[:2] == [1, 1]


@pytest.mark.slow
@examples(25)
@given(rows=tables, max_rows=bounds)
def test_keeps_exactly_the_smaller_of_a_units_rows_and_the_bound(rows: Rows, max_rows: int):
    own = Counter(unit for unit, _ in rows)
    assert counted(rows, max_rows).sum() == sum(min(number, max_rows) for number in own.values())


@examples(25)
@given(rows=tables, changed=st.lists(st.integers(0, CELLS - 1), max_size=20), max_rows=bounds)
def test_neighbours_differ_by_the_declared_sensitivity_at_most(rows: Rows, changed: list[int], max_rows: int):
    cube = counted(rows, max_rows)
    for unit in {unit for unit, _ in rows}:
        without = [row for row in rows if row[0] != unit]
        assert np.abs(cube - counted(without, max_rows)).sum() <= max_rows
        substituted = [*without, *((unit, code) for code in changed)]
        assert np.abs(cube - counted(substituted, max_rows)).sum() <= 2 * max_rows


def in_small_pieces(patch: pytest.MonkeyPatch, rows_in_slice: int, rows_in_pass: int) -> None:
    """Memory holds no more rows than these."""
    patch.setattr(bounding, "SLICE_BYTES", -(-bounding.memory_limit() // (2 * rows_in_slice)))
    patch.setattr(bounding, "PASS_BYTES", -(-bounding.memory_limit() // rows_in_pass))


@pytest.mark.slow
@pytest.mark.parametrize(
    "units", mostly_soaked([range(100), [f"person {number}" for number in range(100)]], [1]), ids=["whole", "text"]
)
@pytest.mark.parametrize("colliding", [False, True])
def test_slices_passes_parts_and_blocks_keep_the_same_rows(
    units: Sequence[Unit], colliding: bool, monkeypatch: pytest.MonkeyPatch
):
    source = random.Random(2)
    rows = [(source.choice(units), source.randrange(CELLS)) for _ in range(300)]
    rows += [(units[0], source.randrange(2)) for _ in range(200)]
    whole = [plainly_counted(rows, max_rows).tolist() for max_rows in (1, 3, 10)]
    hashes = bounding._hash
    if colliding:  # few hashes, which units share
        monkeypatch.setattr(bounding, "_hash", lambda key: hashes(key) % 20)
    for rows_in_slice, rows_in_pass in ((10**6, 10**6), (50, 10**6), (10**6, 60), (10**6, 7), (100, 30)):
        in_small_pieces(monkeypatch, rows_in_slice, rows_in_pass)
        assert [counted(rows, max_rows).tolist() for max_rows in (1, 3, 10)] == whole


@pytest.mark.parametrize(("units", "cells"), [(200, CELLS), (1, 500), (1, 1)], ids=["many", "one", "one cell"])
def test_no_more_rows_are_held_at_once_than_memory_has_place_for(
    units: int, cells: int, monkeypatch: pytest.MonkeyPatch
):
    """Of 600 rows, 100 of a slice and 40 of a pass; some more where numbers are uneven."""
    held, collect, first_rows = Counter[str](), pl.LazyFrame.collect, bounding._first_rows

    def collected(frame: pl.LazyFrame, **given: object) -> pl.DataFrame:
        found = collect(frame, **given)
        for column in found.columns:
            held[column] = max(held[column], found.height)
        return found

    def first(rows: pl.DataFrame, *given: object) -> pl.DataFrame:
        held["block"] = max(held["block"], rows.height)
        return first_rows(rows, *given)

    in_small_pieces(monkeypatch, 100, 40)
    monkeypatch.setattr(pl.LazyFrame, "collect", collected)
    monkeypatch.setattr(bounding, "_first_rows", first)
    rows = [(row % units, row * 7 % cells) for row in range(600)]
    assert counted(rows, 1, cells=cells).sum() == units
    assert held["hash"] <= 200 and held["value"] <= 100
    most = 45 if units > 1 else 120
    assert max(held["number"], held["unit"]) <= most and held["block"] <= 60


def test_nobody_can_foresee_which_units_share_a_hash():
    units = pl.LazyFrame({"unit": ["ann", "bob"]})
    keys = [bytes(KEY_BYTES), KEY]
    assert len({units.select(bounding._hash(key)).collect().item(row, 0) for key in keys for row in (0, 1)}) == 4


def test_a_word_that_is_no_number_of_a_cell_may_be_large(tmp_path: Path):
    """Packed beside the number of a unit, it would be taken for another unit's."""
    words = [2**61 - 1, 2**33, 3, 2**33, 3]
    pl.DataFrame({"unit": [0, 0, 0, 1, 1], "marks": words}).write_parquet(tmp_path / "rows.parquet")
    kept = Counter[int]()
    for (codes,), added in kept_words(tmp_path / "rows.parquet", ["marks"], 1, KEY):
        for code, number in zip(codes.tolist(), added.tolist(), strict=True):
            kept[code] += number
    assert sum(kept.values()) == 2 and set(+kept) <= set(words) and min(kept.values()) >= 0


@pytest.mark.parametrize("rows_in_pass", [10**6, 20])
def test_cells_of_any_number_of_words_keep_the_same_rows(rows_in_pass: int, monkeypatch: pytest.MonkeyPatch):
    """Two words are grouped where one is sorted with its unit; the order of rows comes from all words."""
    source = random.Random(3)
    rows = [(source.randrange(9), source.randrange(3), source.randrange(2)) for _ in range(200)]
    in_small_pieces(monkeypatch, 10**6, rows_in_pass)
    kept: Counter[tuple[int, ...]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "rows.parquet"
        pl.DataFrame(rows, {"unit": pl.Int64, "w0": pl.Int64, "w1": pl.Int64}, orient="row").write_parquet(staged)
        for codes, added in kept_words(staged, ["w0", "w1"], 4, KEY):
            for code, number in zip(codes.T.tolist(), added.tolist(), strict=True):
                kept[tuple(code)] += number
    expected: Counter[tuple[int, ...]] = Counter()
    for unit in range(9):
        copies = Counter((first, second) for owner, first, second in rows if owner == unit)
        singles = [(codes, copy) for codes, number in copies.items() for copy in range(number)]
        expected.update(code for code, _ in sorted(singles, key=lambda row: place_of(unit, *row))[:4])
    assert +kept == expected and min(kept.values()) >= 0


def place_of(unit: Unit, codes: tuple[int, int], copy: int) -> int:
    """Where a row of two words stands in its unit's order."""
    word = int.from_bytes(hashlib.sha256(KEY + str(unit).encode()).digest()[:8], "big") >> 4
    for code in codes:
        word = mixed((word + code * 0x9E3779B97F4A7C15) % 2**64)
    return mixed((word + copy * 0xD1B54A32D192ED03) % 2**64)


@pytest.mark.slow
def test_another_key_keeps_other_rows():
    rows = [(unit, code) for unit in range(300) for code in range(CELLS)]
    cubes = {tuple(counted(rows, 2, secrets.token_bytes(KEY_BYTES))) for _ in range(5)}
    assert len(cubes) == 5


def test_text_and_whole_numbers_that_read_the_same_keep_the_same_rows():
    rows = [(unit, code) for unit in range(50) for code in range(CELLS)]
    assert counted(rows, 2).tolist() == counted([(str(unit), code) for unit, code in rows], 2).tolist()


@pytest.mark.slow
def test_a_unit_with_a_million_rows_keeps_no_more_than_others():
    rows = pl.DataFrame({"unit": ["hot"] * 10**6 + ["cold"] * 2}).with_columns(
        code=(pl.int_range(pl.len()) % CELLS).cast(pl.Int32)
    )
    with tempfile.TemporaryDirectory() as folder:
        rows.write_parquet(Path(folder) / "rows.parquet")
        cube = count_bounded(Path(folder) / "rows.parquet", CELLS, 3, KEY)
    assert cube.sum() == 5


def test_no_rows_give_zeros_in_every_cell():
    assert counted([], 3).tolist() == [0] * CELLS


def test_units_of_a_row_each_are_all_counted():
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "rows.parquet"
        codes = pl.Series([5, 0, 5, None], dtype=pl.Int32)
        pl.DataFrame({"code": codes, "rows": [2, 1, 1, 7]}).write_parquet(staged)
        assert count_rows(staged, CELLS).tolist() == [1, 0, 0, 0, 0, 3]


OWN = (1, 2, 7)  # rows of a unit in its three cells
UNITS = 20_000
BOUND = 2


def kept_patterns() -> Counter[tuple[int, ...]]:
    """How often each way to keep BOUND of a unit's rows came about, over units with cells of their own."""
    units = np.repeat(np.arange(UNITS), sum(OWN))
    codes = np.tile(np.repeat(np.arange(3), OWN), UNITS) + 3 * units
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "rows.parquet"
        pl.DataFrame({"unit": units, "code": codes.astype(np.int32)}).write_parquet(staged)
        cube = count_bounded(staged, 3 * UNITS, BOUND, secrets.token_bytes(KEY_BYTES))
    return Counter(map(tuple, cube.reshape(UNITS, 3).tolist()))


def chance_of(patterns: Counter[tuple[int, ...]]) -> float:
    """The p-value of kept rows under sampling without replacement, every row alike."""
    possible = [kept for kept in itertools.product(range(BOUND + 1), repeat=3) if sum(kept) == BOUND]
    ways = [math.prod(map(math.comb, OWN, kept)) for kept in possible]
    expected = {kept: UNITS * way / math.comb(sum(OWN), BOUND) for kept, way in zip(possible, ways, strict=True) if way}
    if set(patterns) - set(expected):
        return 0.0
    return float(stats.chisquare([patterns[kept] for kept in expected], list(expected.values())).pvalue)


@pytest.mark.slow
def test_keeps_rows_in_proportion_to_the_units_rows_in_each_cell():
    assert chance_of(kept_patterns()) > NEVER


@pytest.mark.parametrize(
    "order",
    [
        lambda words, codes, copies: words + codes.astype(np.uint64),
        lambda words, codes, copies: codes.astype(np.uint64),
        lambda words, codes, copies: bounding._mix(words + codes.astype(np.uint64)),
        lambda words, codes, copies: bounding._mix(words + codes.astype(np.uint64)) + copies.astype(np.uint64),
        lambda words, codes, copies: bounding._mix(words + copies.astype(np.uint64)),
    ],
    ids=["by cell", "lowest cells", "cell by cell", "cells alike", "copies alike"],
)
def test_an_order_that_favours_cells_is_found_out(order: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounding, "row_order", lambda words, codes, copies: order(words, codes[0], copies))
    assert chance_of(kept_patterns()) < NEVER


@pytest.mark.parametrize("memory", ["2 GB", "lots", "0GB", "2GB'; SELECT 1", "-1GB"])
def test_a_memory_limit_that_cannot_be_read_is_refused_with_what_to_write(memory: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DPHIST_MEMORY", memory)
    with pytest.raises(DphistError, match="as in 2GB"):
        counted([("a", 1)], 1)


@pytest.mark.slow
def test_an_operators_memory_limit_changes_nothing_but_memory(monkeypatch: pytest.MonkeyPatch):
    rows = [(unit % 700, unit % CELLS) for unit in range(3000)]
    whole = counted(rows, 2)
    monkeypatch.setenv("DPHIST_MEMORY", "100MB")
    assert engine_settings(Path("run"))["memory_limit"] == "100MB"
    assert counted(rows, 2).tolist() == whole.tolist()


def test_a_panic_of_polars_is_refused_by_its_type_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    attributes = {
        **{"release": "panic", "source": "records.parquet", "privacy_unit": "person", "max_rows_per_unit": 3},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric"},
        "axes": [{"column": "value", "start": 0, "stop": CELLS, "width": 1}],
    }
    spec = ReleaseSpec.from_attributes(attributes, tmp_path)
    monkeypatch.setattr(cube, "_count", lambda *given: pl.int_range(0, 2**62, eager=True))
    with pytest.raises(SourceRefused, match="could not be counted") as refused:
        cube.write_cube(plan_of(spec, spec.period_named("all")), tmp_path / "rows.parquet", tmp_path)
    assert refused.value.__context__ is None and "capacity" not in str(refused.value)
    os.write(2, b"and after it")
    assert capfd.readouterr().err == "and after it"


@pytest.mark.soak
def test_names_of_10_kb_and_a_unit_of_a_million_rows_keep_what_a_plain_reading_keeps(tmp_path: Path):
    names = ["x" * 10_000 + str(number) for number in range(40)]
    people = [*names * 4, *["much"] * 10**6, *["little"] * 2]
    values = [row * row % CELLS for row in range(len(people))]
    pl.DataFrame({"person": people, "value": values}).write_parquet(tmp_path / "records.parquet")
    attributes = {
        **{"release": "long", "source": "records.parquet", "privacy_unit": "person", "max_rows_per_unit": 3},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric"},
        "axes": [{"column": "value", "start": 0, "stop": CELLS, "width": 1}],
    }
    spec = ReleaseSpec.from_attributes(attributes, tmp_path)
    staged = stage_rows(plan_of(spec, spec.period_named("all")), tmp_path)
    rows = pl.read_parquet(staged)["unit", "code"].rows()
    assert len({unit for unit, _ in rows}) == 42 and max(len(unit) for unit, _ in rows) < 100
    assert count_bounded(staged, CELLS, 3, KEY).tolist() == plainly_counted(rows, 3).tolist()


@pytest.mark.soak
def test_a_unit_of_a_hundred_million_rows_keeps_no_more_than_others(tmp_path: Path):
    codes = f"CAST(i % {CELLS} AS INTEGER) AS code FROM range(100000000) AS rows(i)"
    many = f"SELECT 'much' AS unit, {codes} UNION ALL SELECT 'little', 5"
    duckdb.sql(f"COPY ({many}) TO '{tmp_path}/rows.parquet' (FORMAT parquet)")
    assert count_bounded(tmp_path / "rows.parquet", CELLS, 3, KEY).sum() == 4


@pytest.mark.soak
def test_a_unit_of_a_hundred_million_rows_in_ten_million_cells_keeps_no_more_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DPHIST_MEMORY", "1GB")
    codes = "CAST(i * 7919 % 10000000 AS INTEGER) AS code FROM range(100000000) AS rows(i)"
    many = f"SELECT 'much' AS unit, {codes} UNION ALL SELECT 'little', 5"
    duckdb.sql(f"COPY ({many}) TO '{tmp_path}/rows.parquet' (FORMAT parquet)")
    assert count_bounded(tmp_path / "rows.parquet", 10**7, 3, KEY).sum() == 4
