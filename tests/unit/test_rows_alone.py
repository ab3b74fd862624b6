"""Where DuckDB fails on what rows hold, each row is what it is alone; nobody sees that, and nothing else changes."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extreme_values import BASE, KINDS, LOWEST, OUTCOMES, PAIRS, SOME_KINDS, Layout, counted, records, spec_of, stored
from one_engine import one_engine

from dphist_pipeline.confidential.reading import _positions as positions
from dphist_pipeline.confidential.reading import _rows_alone as rows_alone
from dphist_pipeline.confidential.reading import _source_files as source_files
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

IN_PERIOD = 20_459 * 86_400_000_000
# A query is no matter of single rows: an operator signs it, and its failure goes on.
WITHOUT_QUERY = tuple(uses for uses in PAIRS if "outcome" not in uses)
YEARS = ("calendar",)  # without the guard, DuckDB fails on a year before the calendar, of one row, too


def times(moments: list[int]) -> pa.Array:
    return pa.array(moments, pa.int64()).view(pa.timestamp("us"))


@contextmanager
def unguarded(most: int = 2000) -> Iterator[list[tuple[int, int]]]:
    """DuckDB meets time stamps before its calendar; gives the batches that were tried, `most` at most."""
    tried, staged = list[tuple[int, int]](), rows_alone._Engine.staged_batch

    def counting(engine: Any, start: int, stop: int) -> Any:
        tried.append((start, stop))
        assert len(tried) < most, "the same rows are tried again and again"
        return staged(engine, start, stop)

    with ExitStack() as stack:
        stack.enter_context(
            patch.object(source_files, "with_possible_times", lambda types, table: f"SELECT * FROM {table}")
        )
        # A cast that DuckDB does not try: it raises on such a time stamp whatever TRY says.
        stack.enter_context(
            patch.object(positions, "wall_clock", lambda column, *given: f"TRY_CAST({column} AS TIMESTAMPTZ)")
        )
        stack.enter_context(patch.object(rows_alone._Engine, "staged_batch", counting))
        yield tried


@contextmanager
def forced() -> Iterator[None]:
    """The statement over all rows always fails."""

    def fail(*given: object) -> None:
        raise duckdb.InternalException("as an engine says")

    with patch.object(ingest, "_stage", fail):
        yield


def staged(kind: str, uses: tuple[str, ...], layout: Layout, **changes: Any) -> list[str] | None:
    """The staged rows, sorted, with their types; None where the columns do not serve."""
    with tempfile.TemporaryDirectory() as made:
        folder, run = Path(made), Path(made, "run")
        run.mkdir()
        (folder / "query.sql").write_text(f"SELECT *, {OUTCOMES[0]} AS made FROM source")
        fields = spec_of(stored(folder, records(KINDS[kind], 3), layout), uses) | changes
        spec = ReleaseSpec.from_attributes(fields, folder)
        plan = plan_of(spec, spec.period_named("2026-01-05" if "period" in uses else "all"))
        try:
            found = pq.read_table(ingest.stage_rows(plan, run))
        except Exception as error:
            assert type(error).__name__ == "ColumnRefused", error
            return None
        assert [path.name for path in run.rglob("*") if path.is_file()] == ["rows.parquet"]
    return [str(found.schema.remove_metadata()), *sorted(map(str, found.to_pylist()))]


def check_same(kind: str, uses: tuple[str, ...], layout: Layout, **changes: Any) -> bool:
    with nullcontext() if layout.path == "duckdb" else one_engine():  # which keeps what a reading attached
        usual = staged(kind, uses, layout, **changes)
    with forced():
        apart = staged(kind, uses, layout, **changes)
    assert apart == usual, (kind, uses, layout)
    return usual is not None


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_forced_on_this_way_stages_the_same_rows(kind: str) -> None:
    first = list(KINDS).index(kind)
    row = {"privacy_unit": "row", "max_rows_per_unit": 1}
    tried = [check_same(kind, uses, Layout()) for uses in WITHOUT_QUERY[first % 5 :: 5]]
    tried.append(check_same(kind, ("numeric", "category"), Layout(), **row))
    tried += [check_same(kind, (use,), Layout(), **row) for use in ("calendar", "category")]
    assert any(tried) or kind in ("nothing", "uuid")  # no declared category is a UUID


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["parquet", "frame", "duckdb", "csv"])
def test_forced_on_this_way_stages_the_same_rows_of_any_source(kind: str, path: str) -> None:
    if (path == "csv") <= (kind == "text") and not (path == "duckdb" and kind in ("bytes", "nothing")):
        for uses in WITHOUT_QUERY:
            check_same(kind, uses, Layout(path))


@pytest.mark.parametrize("unit", ["person", "row"])
def test_no_row_is_lost_between_two_batches(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_alone, "MANY", 7)
    rows = {"privacy_unit": unit, "max_rows_per_unit": 1}
    assert check_same("int64", ("numeric", "category"), Layout(), **rows)


def test_a_damaged_column_that_nobody_reads_hinders_nothing(tmp_path: Path) -> None:
    values = [secrets.token_hex(40) for _ in range(1000)]
    table = pa.table({"person": [f"p{row}" for row in range(1000)], "v": [5] * 1000, "unread": values})
    file = tmp_path / "seen.parquet"
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    chunk = pq.read_metadata(file).row_group(0).column(2)
    whole = file.read_bytes()
    damaged = b"\xff" * chunk.total_compressed_size
    file.write_bytes(whole[: chunk.data_page_offset] + damaged + whole[chunk.data_page_offset + len(damaged) :])
    with pytest.raises(OSError):
        pq.read_table(file, columns=["unread"])
    (tmp_path / "run").mkdir()
    spec = ReleaseSpec.from_attributes(spec_of("seen.parquet", ("numeric", "category")), tmp_path)
    plan = plan_of(spec, spec.period_named("all"))
    usual = pq.read_table(ingest.stage_rows(plan, tmp_path / "run"))
    with forced():
        assert pq.read_table(ingest.stage_rows(plan, tmp_path / "run")).num_rows == usual.num_rows == 1000


def test_a_dictionary_on_which_duckdb_fails_moves_no_row() -> None:
    with unguarded() as tried:
        cube = counted(times([IN_PERIOD] * 20 + [LOWEST]), ("period", "calendar"), Layout())
    assert cube == [0, 60, 0, 0, 0, 0, 0, 0] and tried  # of 2026-01-05, 2026-01-06, …, other


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["person", "row"])
def test_a_row_on_which_duckdb_fails_alone_is_null_in_every_column(unit: str) -> None:
    changes = {"privacy_unit": unit, **({"max_rows_per_unit": 1} if unit == "row" else {})}
    hostile, twin = times([IN_PERIOD] * 20 + [LOWEST + 2]), times([IN_PERIOD] * 20 + [None])
    with patch.dict(BASE, changes):
        expected = counted(twin, YEARS, Layout())
        with unguarded() as tried:
            found = counted(hostile, YEARS, Layout())
    assert len([batch for batch in tried if batch[1] - batch[0] == 1]) >= 3
    if unit == "row":  # `made` is null, too, where the twin says "none": both lie in no day
        assert isinstance(expected, list) and isinstance(found, list)
        assert sum(found) == sum(expected) == 63 and found[-1] == 3 and found[:-5] == expected[:-5]
    else:
        assert isinstance(expected, list) and isinstance(found, list) and sum(found) == 60 == sum(expected) - 3


@pytest.mark.slow
def test_many_rows_that_fail_alone_cost_less_than_two_statements_each() -> None:
    rows = 100
    with unguarded() as tried:
        cube = counted(times(list(range(LOWEST + 2, LOWEST + 2 + rows))), YEARS, Layout(), copies=1)
    assert isinstance(cube, list) and sum(cube) == 0
    assert rows <= len(tried) < 2 * rows


@pytest.mark.slow
def test_one_row_that_fails_among_many_costs_few_statements() -> None:
    with unguarded() as tried:
        cube = counted(times([IN_PERIOD] * 4000 + [LOWEST + 2] + [IN_PERIOD] * 4000), YEARS, Layout(), copies=1)
    assert isinstance(cube, list) and sum(cube) == 8000
    assert len(tried) < 2 * 13 + rows_alone.FEW


@pytest.mark.soak
def test_ten_thousand_rows_that_fail_alone_are_staged() -> None:
    # Some hundredths of a second each, mostly for DuckDB's own trace of its error: a million take hours, and end.
    with unguarded(2 * 10**4) as tried:
        cube = counted(times(list(range(LOWEST + 2, LOWEST + 2 + 10**4))), YEARS, Layout(), copies=1)
    assert isinstance(cube, list) and sum(cube) == 0 and len(tried) < 2 * 10**4


@pytest.mark.parametrize(
    "error", [duckdb.OutOfMemoryException, duckdb.IOException, MemoryError, OSError, duckdb.InterruptException]
)
def test_lack_of_memory_and_interruptions_stay_failures(error: type[Exception]) -> None:
    def fail(*given: object) -> None:
        raise error("no more")

    with (
        patch.object(ingest, "_stage", fail),
        patch.object(ingest, "_stage_apart", lambda *given: pytest.fail("was no matter of a row")),
    ):
        if error is duckdb.InterruptException:
            with pytest.raises(KeyboardInterrupt):
                counted(KINDS["time"], ("period", "calendar"), Layout())
        else:
            said = counted(KINDS["time"], ("period", "calendar"), Layout())
            assert isinstance(said, str) and "could not be read to its end" in said


def test_memory_that_ends_in_a_batch_stays_a_failure() -> None:
    read = pq.read_table
    answers = iter([read])  # the first batch, of no row, is read

    def fail(*given: Any) -> Any:
        for answer in answers:
            return answer(*given)
        raise duckdb.OutOfMemoryException("no more")

    with forced(), patch.object(pq, "read_table", fail):
        said = counted(KINDS["time"], ("period", "calendar"), Layout())
    assert isinstance(said, str) and "could not be read to its end" in said


def test_a_damaged_file_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "seen.parquet"
    pq.write_table(records(KINDS["int64"], 3000), file, compression="none", use_dictionary=False)
    file.write_bytes(b"PAR1" + b"\xff" * 2000 + file.read_bytes()[2004:])
    (tmp_path / "run").mkdir()
    spec = ReleaseSpec.from_attributes(spec_of("seen.parquet", ("category", "numeric")), tmp_path)
    with pytest.raises(SourceRefused, match="could not be read to its end: a damaged file"):
        ingest.stage_rows(plan_of(spec, spec.period_named("all")), tmp_path / "run")


def test_a_column_may_have_a_name_that_the_engine_uses(tmp_path: Path) -> None:
    names = ["rowid", "number_of_row", "column_0", "given", "one", "batch", "undecoded", "rows", "code"]
    table = pa.table({name: [5.0, 7.0] for name in names})
    pq.write_table(table, tmp_path / "seen.parquet")
    (tmp_path / "run").mkdir()
    axes = [
        {"column": name, "start": 0, "stop": 10, "width": 5, "name": f"axis_{place}"}
        for place, name in enumerate(names)
    ]
    spec = ReleaseSpec.from_attributes(
        BASE | {"source": "seen.parquet", "privacy_unit": "row", "max_rows_per_unit": 1, "axes": axes}, tmp_path
    )

    def rows() -> list[str]:
        plan = plan_of(spec, spec.period_named("all"))
        return sorted(map(str, pq.read_table(ingest.stage_rows(plan, tmp_path / "run")).to_pylist()))

    usual = rows()
    with forced():
        assert rows() == usual
