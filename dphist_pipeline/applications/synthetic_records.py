"""Synthetic records: rows drawn from the whole counts of a publication. No row is a person, and nothing is spent.

Each cell gets its share of the rows, rounded up or down so that every run of cells in declared order has its share
within one row (systematic sampling). As many rows as the whole total give each cell exactly its whole count. Rows are
dealt out to batches in turn, so each batch is such a sample of all cells, and memory stays flat. A file of them
is written whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.applications.values_in_bins import CategoryColumns, NumberColumn, Spread, columns_of
from dphist_pipeline.applications.whole_family import WholeFamily
from dphist_pipeline.applications.whole_release import WholeRelease, application_refused
from dphist_pipeline.errors import Refused


def check_output(file: Path, overwrite: bool) -> None:
    """Refuses a file that cannot be written, before any work.

    Raises:
        Refused: another ending than .parquet, a missing folder, or a file that is there.
    """
    if file.suffix.lower() != ".parquet":
        raise application_refused(f"the output {file} must end in .parquet")
    if file.is_dir() or not file.parent.is_dir():
        raise application_refused(f"the output {file} {'is a folder' if file.is_dir() else 'lies in no folder'}")
    if file.exists() and not overwrite:
        raise _there(file)


def write_synthetic(
    records: SyntheticRecords, file: Path, overwrite: bool = False, step: Callable[[str], None] = lambda name: None
) -> None:
    """Draws the records into a file, whose metadata say that it is synthetic and of which release.

    10⁸ rows of three columns take some 20 s, and the memory of a batch; `step` is called before each batch.

    Raises:
        Refused: see `check_output`; or the disk refuses it.
    """
    check_output(file, overwrite)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with pq.ParquetWriter(draft, records.schema, compression="zstd") as writer:
            for batch in records.draw():
                step(file.name)
                writer.write_batch(batch)
        if not overwrite:
            file.open("xb").close()  # takes the name, or finds that another process has
        draft.replace(file)
    except FileExistsError:
        raise _there(file) from None
    except (OSError, pa.ArrowException) as error:
        problem = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "the disk refused it"
    else:
        return
    finally:
        draft.unlink(missing_ok=True)
    raise application_refused(f"the output {file} cannot be written: {problem}")


def _there(file: Path) -> Refused:
    return application_refused(f"the output {file} is there already; name another file, or add --overwrite")


Whole = WholeRelease | WholeFamily
MOST_ROWS = 10**10
MOST_SEED = 2**63
BATCH_ROWS = 1 << 20
METADATA = b"dphist_synthetic"
STATEMENT = (
    "Synthetic records, drawn from a differentially private release. No row is a person. Estimates from them have the "
    "errors of the release and more; intervals belong to the release."
)
_FACTS = (
    *("release", "title", "period", "revision", "account", "privacy_unit", "max_rows_per_unit", "take", "neighbours"),
    *("epsilon", "mechanism", "spec_digest", "audit_digest"),
)
EVENLY = Spread(MappingProxyType({}), MappingProxyType({}))


@dataclass(frozen=True, repr=False)
class SyntheticRecords:
    """Rows that are yet to be drawn.

    Attributes:
        whole: the counts to draw from: of a release, of a table, or of a whole family.
        seed: of this drawing; the same seed, rows and options give the same records.
    """

    whole: Whole
    rows: int
    seed: int
    spread: Spread

    @classmethod
    def of(
        cls, whole: Whole, rows: int | None = None, seed: int | None = None, spread: Spread = EVENLY
    ) -> SyntheticRecords:
        """Checks everything before any row is drawn.

        Args:
            rows: how many; as many as the release counts by default.
            seed: from 0 to 2^63; a fresh one by default, which the file names.

        Raises:
            Refused: too many rows or none, a table without records, or see `Spread`.
        """
        if whole.total == 0:
            raise application_refused(
                f"the whole table of {whole.called} has a total of 0: the noise hides all of its records, so there is "
                "nothing to draw from; choose a period with more records, or fewer cells and more epsilon"
            )
        rows_wanted = whole.total if rows is None else _whole_number("rows", rows)
        if not 1 <= rows_wanted <= MOST_ROWS:
            raise application_refused(f"rows: takes a number from 1 to {MOST_ROWS:,}, not {rows_wanted:,}")
        start = int.from_bytes(secrets.token_bytes(8)) % MOST_SEED if seed is None else _whole_number("seed", seed)
        if not 0 <= start < MOST_SEED:
            raise application_refused(f"seed: takes a number from 0 to {MOST_SEED - 1:,}")
        spread.check(whole.domain)
        records = cls(whole, rows_wanted, start, spread)
        _ = records._columns  # refuses open bins without ends
        return records

    def __repr__(self) -> str:
        columns = ", ".join(self.schema.names)
        return f"<SyntheticRecords: {self.rows:,} rows of {columns}, from {self.whole.called}, not drawn yet>"

    @property
    def batches(self) -> int:
        """Number of batches that `draw` gives."""
        return math.ceil(self.rows / BATCH_ROWS)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the records, named as the axes, and the facts about them as metadata."""
        fields = [field for column in self._columns for field in column.fields]
        return pa.schema(fields, {METADATA: json.dumps(self.facts(), ensure_ascii=False).encode()})

    def facts(self) -> dict[str, Any]:
        """What a reader of the records must know: JSON values; the essentials of the audit among them."""
        audit = self.whole.audit
        return {
            "synthetic": True,
            "statement": STATEMENT,
            **{name: audit[name] for name in _FACTS if audit.get(name) is not None},
            "rows": self.rows,
            "total_of_release": self.whole.total,
            "seed": self.seed,
            "within_bins": "interpolated" if self.spread.interpolate else "uniform",
            "bands_not_reached": [
                {"sums_by": band.table, "sums": band.sums, "outside": band.outside} for band in self.whole.missed
            ],
        }

    def draw(self) -> Iterator[pa.RecordBatch]:
        """Draws the rows, batch by batch; O(batch · log cells) each, in memory of a batch and of the occupied cells."""
        schema, positions = self.schema, self._occupied[0]
        for number in range(self.batches):
            random = np.random.default_rng([self.seed, number + 1])
            places = positions[:, random.permutation(self._records_of(number))]
            arrays = [
                array
                for column, along in zip(self._columns, places, strict=True)
                for array in column.draw(along, random)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_arrow(self) -> pa.Table:
        """All rows at once, as an Arrow table."""
        return pa.Table.from_batches(self.draw(), self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches for any engine that reads Arrow: `polars.DataFrame(records)`, DuckDB's `FROM records`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.draw()).__arrow_c_stream__(requested_schema)

    def write(self, file: Path | str, overwrite: bool = False) -> Path:
        """Draws the rows into a Parquet file, in flat memory; its metadata say what it is."""
        write_synthetic(self, Path(file), overwrite)
        return Path(file)

    def _records_of(self, number: int) -> NDArray[np.int64]:
        """The occupied cells of the rows of a batch, numbered."""
        ends = self._occupied[1]
        rows = np.arange(number, self.rows, self.batches, dtype=np.float64)
        start = int(np.random.default_rng([self.seed, 0]).integers(1024)) / 1024  # exact sums for up to 2^43 rows
        points = np.minimum((rows + start) * (self.whole.total / self.rows), self.whole.total - 0.5)
        return np.asarray(np.searchsorted(ends, points, side="right"), dtype=np.int64)

    @cached_property
    def _occupied(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of the cells that have records, and the running totals of their counts."""
        positions, counts = self.whole.occupied()
        return positions, np.cumsum(counts)

    @cached_property
    def _columns(self) -> list[NumberColumn | CategoryColumns]:
        axes = self.whole.domain.axes
        return [columns_of(axis, self.spread, self.whole.along(number)) for number, axis in enumerate(axes)]


def facts_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any] | None:
    """The facts in the metadata of a file or table of synthetic records; None for other files."""
    facts: dict[str, Any] | None = json.loads(metadata[METADATA]) if metadata and METADATA in metadata else None
    return facts


def _whole_number(option: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise application_refused(f"{option}: takes a whole number, not {value!r:.60}")
    return int(value)
