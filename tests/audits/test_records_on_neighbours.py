"""From records to files: bounding and binning included, a neighbour moves nothing further than noise was bought for.

With the measurements' answers kept, the public files are the same byte for byte; with others, their layout is the same.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from audited_records import KINDS, Bureau, JournalLog, Released, tables
from grey_box import Log
from office import AGE, WARD, Office

from dphist_pipeline import mechanisms
from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential import cube, row_queries, row_tables
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import OpenedSource, SourceRefused
from dphist_pipeline.confidential.unit_values import Block, IsNew
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import model
from examples import mostly_audited

LONG = pytest.mark.audit
YEARS = {**AGE, "width": 5}  # 23 cells, so that every mechanism has something to choose
# Quickly, one for every kind of measurement.
QUICK = {"geometric", "ahp", "privelet", "structure_first", "kd_hierarchy"}
NAMES = [name if name in QUICK else pytest.param(name, marks=LONG) for name in mechanisms.names()]


# One unit fewer is one unit more, from the other side; `make audit` tries it, and rows without a unit.
SOME_KINDS = mostly_audited(KINDS, [KINDS.index(kind) for kind in ("a unit more", "another unit")])


def notion(kind: str) -> str:
    return "substitute" if kind == "another unit" else "add_remove"


@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 40), marks=LONG)], ids=["few", "many"])
def test_one_unit_moves_counts_and_measurements_no_further_than_declared(
    office: Office, kind: str, seeds: range
) -> None:
    bureau = Bureau(office, notion(kind))
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=LONG)], ids=["one", "many"])
def test_with_the_same_answers_neighbours_publish_the_same_bytes(office: Office, name: str, seeds: range) -> None:
    bureau = Bureau(office, mechanism=name, axes=[YEARS])
    assert bureau.all_findings(tables(seed, KINDS[seed % 2]) for seed in seeds) == []


FAMILY = {
    "mechanism": "tables",
    "tables": {"list": [["house"], ["ward"], ["ward", "age"]]},
    "axes": [AGE, {**WARD, "levels": {"house": ["east", "west"]}}],
}


@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=LONG)], ids=["one", "many"])
def test_one_unit_moves_all_tables_of_a_family_by_the_same_rows(office: Office, kind: str, seeds: range) -> None:
    bureau = Bureau(office, notion(kind), **FAMILY)
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


QUALITY = {"share": "1/3", "rows": 4, "by": ["ward", "age"]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 30), marks=LONG)], ids=["few", "many"])
def test_one_unit_moves_what_is_said_of_rows_no_further_than_declared(office: Office, kind: str, seeds: range) -> None:
    bureau = Bureau(office, notion(kind), quality=QUALITY)
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=LONG)], ids=["one", "many"])
def test_what_is_said_of_a_familys_rows_moves_no_further_than_declared(office: Office, kind: str, seeds: range) -> None:
    bureau = Bureau(office, notion(kind), **FAMILY, quality=QUALITY)
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


DECLARED = {
    "derive": [
        {"column": "noted", "first_of": [{"column": "seen", "format": "%d.%m.%Y"}, {"column": "born"}]},
        {"column": "years", "years_between": ["born", "noted"]},
        {"column": "stay", "days_between": ["born", "noted"]},
        {"column": "weekday", "part": "weekday", "of": "noted"},
        {"column": "start", "first_letters": 1, "of": "ward"},
    ],
    "keep": [{"column": "stay", "from": -1000}, {"column": "start", "is": ["s", "m", "x"]}],
    "axes": [
        {**AGE, "column": "years"},
        {"column": "start", "values": ["s", "m"], "other": True},
        {"column": "weekday", "start": 1, "stop": 8, "width": 1, "other": True},
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 30), marks=LONG)], ids=["few", "many"])
def test_one_unit_moves_derived_columns_and_kept_rows_no_further(office: Office, kind: str, seeds: range) -> None:
    bureau = Bureau(office, notion(kind), **DECLARED, quality={**QUALITY, "by": ["start"]})
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


PERSONS = {"take": "one_per_cell", "quality": QUALITY}


@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 30), marks=LONG)], ids=["one", "many"])
def test_one_unit_moves_counts_of_persons_no_further_than_declared(office: Office, kind: str, seeds: range) -> None:
    bureau = Bureau(office, notion(kind), **PERSONS)
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


AMOUNT = {"column": "age", "amount": [-10, 100]}
OF_WARD = {"quality": {**QUALITY, "by": ["ward"]}}
WEEK = {"period": "week", "period_column": "at", "period_format": "iso", **OF_WARD}
NEW = {"name": "new", "of_unit": "is_new", "of": "ward", "within": "5 days"}
GAP = {"name": "gap", "of_unit": "days_since", "within": "7 days", "edges": [0, 1, 8], "other": True}
VISITS = {"name": "visits", "of_unit": "count", "amount": [0, 3]}
# These specs have an amount, or axes that follow from several rows of a unit.
PER_UNIT: dict[str, dict[str, Any]] = {
    "amounts": {"axes": [AMOUNT, WARD], **OF_WARD},
    "derived": {"axes": [WARD, NEW, GAP], **WEEK},
    "amounts of first rows": {"axes": [WARD, GAP, AMOUNT], "take": "first", "max_rows_per_unit": 1, **WEEK},
    "visits": {"axes": [WARD, VISITS], "take": "last", "max_rows_per_unit": 1, **WEEK},
}


@pytest.mark.slow
@pytest.mark.parametrize("what", PER_UNIT)
@pytest.mark.parametrize("kind", SOME_KINDS)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=LONG)], ids=["one", "many"])
def test_one_unit_moves_amounts_and_values_of_units_no_further(
    office: Office, kind: str, what: str, seeds: range
) -> None:
    bureau = Bureau(office, notion(kind), **PER_UNIT[what])
    assert bureau.all_findings(tables(seed, kind) for seed in seeds) == []


def both_ends_whole(plan: Any, axis: int, staged: Path, key: bytes, whole: Any = cube._amount_counts) -> Any:
    rows, counts = whole(plan, axis, staged, key)
    upper = counts.reshape(plan.domain.shape).take(1, axis=axis)
    return rows, np.stack([upper, upper], axis=axis).ravel()


def of_a_stranger(value: IsNew, block: Block, axis: Any, whole: Any = IsNew.positions) -> Any:
    return whole(value, replace(block, units=np.zeros_like(block.units)), axis)


# Both ends with k parts move by 2·M for a row at `high`.
FAULTS_PER_UNIT: dict[str, tuple[str, Callable[[], Any], str]] = {
    "k for both ends": (
        "amounts",
        lambda: patch.object(cube, "_amount_counts", both_ends_whole),
        "declared sensitivity",
    ),
    "M forgotten in Δ": (
        "amounts",
        lambda: patch.object(PrivateCounts, "_scale", lambda self, query, budget: self.sensitivity / budget.epsilon),
        "took epsilon",
    ),
    "a window that sees another unit": (
        "derived",
        lambda: patch.object(IsNew, "positions", of_a_stranger),
        "declared sensitivity",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(FAULTS_PER_UNIT, [0]))
def test_the_replay_of_records_finds_a_fault_of_amounts_or_of_units(office: Office, name: str) -> None:
    what, planted, expected = FAULTS_PER_UNIT[name]
    bureau, found = Bureau(office, **PER_UNIT[what]), list[str]()
    with planted():
        for seed in range(60):
            if found := bureau.findings(tables(seed, "a unit more")):
                break
    assert any(expected in finding for finding in found), found


def layout(content: bytes) -> Any:
    """All of a Parquet file but its values and how long they are."""
    file = pq.ParquetFile(io.BytesIO(content))
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    columns = [
        (part.path_in_schema, part.compression, part.encodings, part.is_stats_set, part.num_values)
        for group in groups
        for part in (group.column(number) for number in range(group.num_columns))
    ]
    schema = [str(file.schema.column(number)) for number in range(len(file.schema))]
    footer = (schema, file.metadata.metadata, file.metadata.created_by, file.metadata.format_version)
    return footer, [group.num_rows for group in groups], columns


def declared_columns(content: bytes) -> Any:
    return pq.read_table(io.BytesIO(content)).select(["age_lower", "age_upper"]).to_pydict()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_with_other_answers_neighbours_differ_in_nothing_but_values(office: Office, name: str) -> None:
    bureau, pair = Bureau(office, mechanism=name, axes=[YEARS]), tables(1, "a unit more")
    first, second = (bureau.release(table, JournalLog()).files for table in (pair.here, pair.there))
    assert list(map(Path, sorted(first))) == list(map(Path, sorted(second)))
    assert first != second
    for path in first:
        if path.endswith(("histogram.parquet", "audit.parquet")):
            assert layout(first[path]) == layout(second[path])
        elif path.endswith("groups.parquet"):
            assert layout(first[path])[0] == layout(second[path])[0]
        if path.endswith("histogram.parquet"):
            assert declared_columns(first[path]) == declared_columns(second[path])
        if path.endswith("audit.json"):
            assert list(json.loads(first[path])) == list(json.loads(second[path]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("runs", [1, pytest.param(20, marks=LONG)])
def test_published_files_hold_the_estimate_and_nothing_else(office: Office, name: str, runs: int) -> None:
    bureau, table = Bureau(office, mechanism=name, axes=[YEARS]), tables(2, "a unit more").here
    mechanism, spec = mechanisms.build(name, {}), ReleaseSpec.load(office.folder / "spec.yaml")
    for _ in range(runs):
        released = bureau.release(table, JournalLog())
        # From the answers alone: these counts cannot be read.
        counts = PrivateCounts(spec.domain, spec.sensitivity, _unread, Log(released.log.answers, silent=True))
        made = mechanism.release(counts, Budget(spec.epsilon))
        assert published(released, "estimate") == made.values.tolist()
        unbiased = [None] * made.values.size if made.unbiased is None else made.unbiased.values.tolist()
        assert published(released, "unbiased_estimate") == unbiased
        groups = [None] * made.values.size if made.groups is None else made.groups.tolist()
        assert published(released, "group_id") == groups


def _unread() -> Any:
    raise AssertionError("nobody reads counts")


def published(released: Released, column: str) -> list[Any]:
    (content,) = (content for path, content in released.files.items() if path.endswith("histogram.parquet"))
    values: list[Any] = pq.read_table(io.BytesIO(content))[column].to_pylist()
    return values


# Planted faults on the way from records to counts.


def by_engine_order(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool) -> np.ndarray:
    kept = pl.read_parquet(staged).group_by("unit", maintain_order=True).head(max_rows)
    return np.bincount(kept["code"], minlength=cells)


def by_row_number(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool) -> np.ndarray:
    numbered = pl.read_parquet(staged).with_row_index("row").with_columns(pl.col("row").hash(seed=1))
    kept = numbered.sort("row").group_by("unit", maintain_order=True).head(max_rows)
    return np.bincount(kept["code"], minlength=cells)


def unbounded(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool) -> np.ndarray:
    return np.bincount(pl.read_parquet(staged)["code"], minlength=cells)


def once_of_all_units(
    staged: Path, words: Any, key: bytes, distinct: bool = False, whole: Any = bounding.slices
) -> Any:
    for part in whole(staged, words, key):
        yield part.unique(subset=list(words)) if distinct else part


def one_unit_of_nulls(columns: Any, forms: Any, source: Any, point: Any, whole: Any = ingest.unit_sql) -> Any:
    made = whole(columns, forms, source, point)
    return replace(made, names={name: f"coalesce({text}, 'nobody')" for name, text in made.names.items()})


def failing_on_the_undeclared(plan: Any, folder: Path, whole: Any = ingest.stage_rows) -> Path:
    wards = pq.read_table(plan.source.pattern)["ward"].to_pylist()
    if 6 * wards.count("x") > len(wards):
        raise SourceRefused(plan.source.written, "holds too many wards that are not declared")
    staged: Path = whole(plan, folder)
    return staged


def add_remove_only(max_rows: int, neighbours: str) -> int:
    return max_rows


FAULTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "bounding by engine order": ("a unit more", lambda: patch.object(cube, "count_bounded", by_engine_order)),
    "bounding by row number": ("a unit more", lambda: patch.object(cube, "count_bounded", by_row_number)),
    "no bounding": ("a unit more", lambda: patch.object(cube, "count_bounded", unbounded)),
    "null units kept as one": ("rows without a unit", lambda: patch.object(ingest, "unit_sql", one_unit_of_nulls)),
    "fails on an undeclared value": (
        "a unit more",
        lambda: patch.object(ingest, "stage_rows", failing_on_the_undeclared),
    ),
    "equal rows of strangers are one row": (
        "a unit more",
        lambda: patch.object(bounding, "slices", once_of_all_units),
    ),
    "Δ of add_remove under substitute": (
        "another unit",
        lambda: patch.object(model, "l1_sensitivity", add_remove_only),
    ),
}


def found_in_records(office: Office, name: str, seeds: int = 40) -> list[str]:
    """What the replay of records finds of a planted fault."""
    kind, planted = FAULTS[name]
    # Of one kept row each, a stranger's equal row moves another one into its place.
    bureau = Bureau(
        office, notion(kind), **({"take": "one_per_cell", "max_rows_per_unit": 1} if "strangers" in name else {})
    )
    with planted():
        for seed in range(seeds):
            if found := bureau.findings(tables(seed, kind)):
                return found
    return []


def rows_beyond(
    staged: Path, words: Any, max_rows: int, key: bytes, *more: bool, whole: Any = bounding.kept_words
) -> Any:
    return whole(staged, words, 10**6, key, *more)


def by_their_rows(plan: Any, staged: Path, seen: int, key: bytes, whole: Any = row_tables._units_by_rows) -> np.ndarray:
    found: np.ndarray = whole(plan, staged, 10**6, key)
    return np.array([*found[: seen - 1], (np.arange(seen, 10**6 + 1) * found[seen - 1 :]).sum()])


def nobody_is_somebody(columns: Any, forms: Any, source: Any, whole: Any = ingest.unit_sql) -> Any:
    made = one_unit_of_nulls(columns, forms, source, whole)
    return replace(made, unit=f"CASE WHEN {made.unit} = 'nobody' THEN CAST(random() AS VARCHAR) ELSE {made.unit} END")


FAULTS_ABOUT_ROWS: dict[str, tuple[str, Callable[[], Any]]] = {
    "failures beyond T rows": ("a unit more", lambda: patch.object(row_tables, "kept_words", rows_beyond)),
    "cut rows beyond T": ("a unit more", lambda: patch.object(row_tables, "count_bounded", unbounded_beyond)),
    "a unit counted by its rows": (
        "a unit more",
        lambda: patch.object(row_tables, "_units_by_rows", by_their_rows),
    ),
    "rows without a unit": ("rows without a unit", lambda: patch.object(ingest, "unit_sql", nobody_is_somebody)),
    "noise for one part under substitute": (
        "another unit",
        lambda: patch.object(row_queries.Limits, "parts", property(lambda limits: 1)),
    ),
}


def unbounded_beyond(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool) -> np.ndarray:
    return np.bincount(pl.read_parquet(staged)["code"].drop_nulls(), minlength=cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(FAULTS_ABOUT_ROWS, [0]))
def test_the_replay_of_records_finds_a_fault_about_rows(office: Office, name: str) -> None:
    kind, planted = FAULTS_ABOUT_ROWS[name]
    bureau, found = Bureau(office, notion(kind), quality={**QUALITY, "by": ["ward"]}), list[str]()
    with planted():
        for seed in range(60):
            found = bureau.findings(tables(seed, kind))
            if found:
                break
    assert found


@pytest.mark.slow
def test_the_replay_of_records_finds_rows_beyond_t_of_a_family(office: Office) -> None:
    bureau, found = Bureau(office, **FAMILY, quality={**QUALITY, "by": ["ward"]}), list[str]()
    counted = row_tables.count_marginals

    def beyond(plan: Any, staged: Path, key: bytes) -> np.ndarray:
        seen = plan.max_rows_per_unit == QUALITY["rows"]
        return counted(replace(plan, max_rows_per_unit=10**6) if seen else plan, staged, key)

    with patch.object(row_tables, "count_marginals", beyond):
        for seed in range(60):
            found = bureau.findings(tables(seed, "a unit more"))
            if found:
                break
    assert found


def of_all_rows(source: OpenedSource, derived: Any, whole: Any = ingest.with_derived_columns) -> OpenedSource:
    made = whole(source, derived)
    years = "min(years) OVER () AS years"
    return replace(made, relation=f"SELECT * REPLACE ({years}) FROM ({made.relation})")


def by_its_share(source: OpenedSource, keep: Any, types: Any, numbers: Any) -> OpenedSource:
    most = "QUALIFY count(*) OVER (PARTITION BY start) * 3 < count(*) OVER ()"
    return replace(source, relation=f"SELECT * FROM ({source.relation}) {most}")


FAULTS_DECLARED: dict[str, Callable[[], Any]] = {
    "a derived column looks at other rows": lambda: patch.object(ingest, "with_derived_columns", of_all_rows),
    "rows are kept by their share": lambda: patch.object(ingest, "kept_rows", by_its_share),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(FAULTS_DECLARED, [0]))
def test_the_replay_of_records_finds_a_fault_of_declared_columns(office: Office, name: str) -> None:
    bureau, found = Bureau(office, **DECLARED), list[str]()
    with FAULTS_DECLARED[name]():
        for seed in range(60):
            found = bureau.findings(tables(seed, "a unit more"))
            if found:
                break
    assert any("declared sensitivity" in finding for finding in found), found


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_the_replay_of_records_finds_a_planted_fault(office: Office, name: str) -> None:
    found = found_in_records(office, name)
    expected = "end otherwise" if name.startswith("fails") else "declared sensitivity"
    assert any(expected in finding for finding in found), found
