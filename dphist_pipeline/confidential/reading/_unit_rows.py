"""Derives what axes and `take` ask of a unit's own rows, from staged rows in the order of `unit_values`.

DuckDB puts the rows in order, and spills what memory does not hold. Here they are read in that order, in batches of at
most `BATCH_ROWS`, whatever one unit has; between batches the unit that goes on carries the rows that its next ones look
back to. Nothing here raises for what a row holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
from pyarrow import parquet

from dphist_pipeline.base.domain import Axis
from dphist_pipeline.confidential._row_words import names_of, words_of
from dphist_pipeline.confidential.plan import CountingPlan, UnitRows
from dphist_pipeline.confidential.reading._positions import MARKS, UNDECLARED, mark_words
from dphist_pipeline.confidential.unit_values import NONE, Block, Numbers, UnitValue

BATCH_ROWS = 1 << 21
A_DAY = 86_400_000_000  # in microseconds


def derive_rows(plan: CountingPlan, ordered: Path, derived: Path) -> None:
    """Writes the rows of a period as `ingest.stage_rows` leaves them.

    Args:
        plan: with `per_unit`.
        ordered: Parquet with `unit`, `moment`, in microseconds of local time, `along_0` … by axis that is read, and the
            columns of `mark_words` where a quality table is asked for; in the order of all these columns.
    """
    with _Writer(derived) as writer:
        for rows in _derived_rows(plan, ordered):
            writer.write(rows)


class _Writer:
    def __init__(self, path: Path) -> None:
        self._path, self._opened = path, list[parquet.ParquetWriter]()

    def __enter__(self) -> _Writer:
        return self

    def write(self, rows: pl.DataFrame) -> None:
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        if not self._opened:
            self._opened.append(parquet.ParquetWriter(self._path, table.schema, compression="none", store_schema=False))
        self._opened[0].write_table(table)

    def __exit__(self, *error: object) -> None:
        for writer in self._opened:
            writer.close()


def _derived_rows(plan: CountingPlan, ordered: Path) -> Iterator[pl.DataFrame]:
    """The derived rows of each batch; at least once, maybe none."""
    staged = pl.scan_parquet(ordered, glob=False)
    total: int = staged.select(pl.len()).collect().item()
    walk = _Walk(plan)
    for start in range(0, max(total, 1), BATCH_ROWS):
        yield walk.step(staged.slice(start, BATCH_ROWS).collect(), start + BATCH_ROWS >= total)


class _Walk:
    """One pass over all rows in their order."""

    def __init__(self, plan: CountingPlan) -> None:
        assert plan.per_unit is not None and plan.period.start is not None, "a spec has periods where units are walked"
        self._plan, self._rows = plan, plan.per_unit
        self._first_day = (plan.period.start.replace(tzinfo=None) - datetime(1970, 1, 1)).days
        self._values = {
            f"value_{number}": (plan.domain.axes[number], value)
            for number, value in enumerate(self._rows.values)
            if isinstance(value, UnitValue)
        }
        self._carry: pl.DataFrame | None = None
        self._counted = 0

    def step(self, batch: pl.DataFrame, last: bool) -> pl.DataFrame:
        """The rows that are known once a batch was read; of the last one, all that are left."""
        carried = 0 if self._carry is None else self._carry.height
        rows = batch.with_columns(pl.lit(NONE, pl.Int64).alias(name) for name in self._values)
        if self._carry is not None:
            rows = pl.concat([self._carry, rows])
        block = self._block(rows, carried)
        known = []
        for name, (axis, value) in self._values.items():
            positions = value.positions(block, axis)
            if not value.looks_ahead:  # of a carried row it was told when all that it looks back to was here
                positions[:carried] = rows[name][:carried].to_numpy()
            known.append(pl.Series(name, positions, pl.Int64))
        rows = rows.with_columns(known)
        complete = block.number_of_units if last else block.number_of_units - 1
        taken = self._counted_rows(block, complete)
        if not last:
            self._keep(rows, block)
        return _rows_to_count(self._plan, self._rows, rows[taken], list(self._values))

    def _block(self, rows: pl.DataFrame, carried: int) -> Block:
        others = (rows["unit"] != rows["unit"].shift(1)).fill_null(False).to_numpy()
        days = rows["moment"].to_numpy().astype(np.int64) // A_DAY
        places = [rows[f"along_{number}"].to_numpy() for number in range(len(self._rows.read))]
        return Block(
            units=np.cumsum(others, dtype=np.int64),
            days=days,
            inside=days >= self._first_day,
            places=np.stack(places).astype(np.int64) if places else np.zeros((0, rows.height), dtype=np.int64),
            first_day=self._first_day,
            carried=carried,
            counted=self._counted if carried else 0,
        )

    def _counted_rows(self, block: Block, complete: int) -> Numbers:
        """The rows that are counted: those of the period, or one of each unit of which all rows are known."""
        if self._rows.take in ("first", "last"):
            edge = block.first_of_period if self._rows.take == "first" else block.last_of_period
            edge = edge[:complete]
            return edge[edge >= 0]
        new = np.flatnonzero(block.inside)
        return new[new >= block.carried]

    def _keep(self, rows: pl.DataFrame, block: Block) -> None:
        """Carries what the rows of the last unit may be asked for."""
        if not rows.height:
            return
        unit = block.number_of_units - 1
        begin = int(np.searchsorted(block.units, unit))
        days, places = block.days[begin:], block.places[:, begin:]
        needed = [value.rows_to_carry(days, places) + begin for _, value in self._values.values()]
        edges = np.array([rows.height - 1, block.first_of_period[unit]])
        kept = np.unique(np.concatenate([*needed, edges[edges >= 0]]))
        self._counted = int(block.rows_of_period[unit])
        self._carry = rows[kept]


def _rows_to_count(plan: CountingPlan, per_unit: UnitRows, rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The rows as counting takes them: unit, code or words, and marks where they are asked for."""
    domain, seen = plan.domain, plan.rows_seen is not None
    positions, outside = [], []
    for number, (axis, value) in enumerate(zip(domain.axes, per_unit.values, strict=True)):
        if isinstance(value, UnitValue):
            position = rows[f"value_{number}"].to_numpy()
        else:
            position = rows[f"along_{value}"].to_numpy().astype(np.int64)
            position = np.where(position < axis.size, position, NONE)
        positions.append(position)
        outside.append(_outside(axis, position))
    in_cell = np.all([position != NONE for position in positions], axis=0)
    words = words_of(domain) if plan.marginals else [list(enumerate(domain.strides))]
    columns = {"unit": rows["unit"]}
    for name, word in zip(names_of(words) if plan.marginals else ["code"], words, strict=True):
        code = np.sum([positions[axis] * stride for axis, stride in word], axis=0, dtype=np.int64)
        kind = pl.Int64 if plan.marginals else pl.Int32
        columns[name] = pl.Series(name, np.where(in_cell, code, 0)).cast(kind).set(pl.Series(~in_cell), None)
    if not seen:
        return pl.DataFrame(columns).filter(pl.Series(in_cell))
    digits = _digits(per_unit, rows, outside)
    for name, within in mark_words(len(domain.axes)).items():
        parts = [digits[axis] * MARKS ** (axis - within[0]) for axis in within]
        columns[name] = pl.Series(name, np.sum(parts, axis=0, dtype=np.int64))
    return pl.DataFrame(columns)


def _outside(axis: Axis, position: Numbers) -> Numbers:
    """The digit of a derived position: undeclared where it lies in no cell, or in `other`."""
    nowhere = position == NONE if axis.other_cell is None else position == axis.other_cell
    return np.where(nowhere, UNDECLARED, 0)


def _digits(per_unit: UnitRows, rows: pl.DataFrame, outside: list[Numbers]) -> list[Numbers]:
    """The digit of each axis; one that is read keeps the digit with which it was staged."""
    read = {
        number: rows[name].to_numpy() // MARKS ** (number - within[0]) % MARKS
        for name, within in mark_words(len(per_unit.read)).items()
        for number in within
    }
    return [
        digit if isinstance(value, UnitValue) else read[value]
        for digit, value in zip(outside, per_unit.values, strict=True)
    ]
