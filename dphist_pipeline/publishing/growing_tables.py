"""A table of all periods as Parquet and CSV, to which periods are added: what stands in both files is not made again.

Both files are replaced, each in one step, and have the same bytes whether periods came one by one or all at once. The
metadata of the Parquet file say which of its rows, and which bytes of the CSV file, belong to which publication. They
are taken over only where nothing was written to either file by accident: Parquet has a checksum for each page, and the
metadata hold the digest of the CSV file. Whoever may write here can forge both, as any file that no audit seals.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.base.files import open_below, replace_public

FORM = 1  # of what the metadata say
Key = tuple[str, int, str]  # period, revision, and a digest of what the rows are made from


@dataclass(frozen=True)
class Part:
    """The rows of one publication, and the same as lines of CSV without a header."""

    rows: pa.Table
    lines: bytes


@dataclass(frozen=True)
class GrowingTable:
    """The files `NAME.parquet` and `NAME.csv` of a folder."""

    folder: Path
    name: str

    @property
    def parquet(self) -> Path:
        """The file that has the metadata; it is written last."""
        return self.folder / f"{self.name}.parquet"

    @property
    def csv(self) -> Path:
        """The file for spreadsheets."""
        return self.folder / f"{self.name}.csv"

    def metadata(self) -> dict[str, str]:
        """What the Parquet file says of itself; empty without one."""
        with suppress(OSError, ValueError), open_below(self.folder, self.parquet.name) as file:
            found: Mapping[bytes, bytes] = pq.read_schema(file).metadata or {}
            return {name.decode(): text.decode() for name, text in found.items()}
        return {}

    def parts_in_files(self, kind: str) -> dict[Key, Part]:
        """The parts in both files, by what they were made from; none where the files are damaged or of another kind.

        `kind` is compared with that of `write`: it changes with whatever all rows depend on.
        """
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            told = json.loads(self.metadata()["parts"])
            if (told["form"], told["kind"]) != (FORM, kind):
                return {}
            with open_below(self.folder, self.csv.name) as file:
                text = file.read()
            if hashlib.sha256(text).hexdigest() != told["csv"]:
                return {}
            with open_below(self.folder, self.parquet.name) as file:
                # `read_table` would load PyArrow's engine for queries.
                rows = pq.ParquetFile(file, page_checksum_verification=True).read().replace_schema_metadata()
            sizes = told["parts"]
            firsts = pairwise(accumulate((number for *_, number, _ in sizes), initial=0))
            begin = len(text) - sum(size for *_, size in sizes)
            places = pairwise(accumulate((size for *_, size in sizes), initial=begin))
            return {
                (period, revision, digest): Part(rows.slice(first, after - first), text[start:end])
                for (period, revision, digest, *_), (first, after), (start, end) in zip(
                    sizes, firsts, places, strict=True
                )
            }
        return {}

    def write(
        self,
        parts: Mapping[Key, Part],
        kind: str,
        header: bytes,
        columns: Mapping[str, str],
        facts: Mapping[str, str],
        scratch: Path,
    ) -> None:
        """Replaces both files.

        Args:
            parts: in their order, by what they were made from.
            header: the first line of the CSV file.
            columns: what each column means.
            facts: other metadata of the Parquet file.
        """
        text = header + b"".join(part.lines for part in parts.values())
        replace_public(self.csv, text, scratch)
        table = joined_tables([part.rows for part in parts.values()])
        sizes = [[*key, part.rows.num_rows, len(part.lines)] for key, part in parts.items()]
        told = {"form": FORM, "kind": kind, "csv": hashlib.sha256(text).hexdigest(), "parts": sizes}
        content = pa.BufferOutputStream()
        write_table(table, columns, {**facts, "parts": json.dumps(told)}, content)
        replace_public(self.parquet, content.getvalue().to_pybytes(), scratch)


def write_table(table: pa.Table, columns: Mapping[str, str], facts: Mapping[str, str], file: Any) -> None:
    """Writes a table as Parquet, whose metadata say what each column means; equal rows give equal bytes."""
    fields = [field.with_metadata({"comment": columns[field.name]}) for field in table.schema]
    schema = pa.schema(fields, metadata={"columns": json.dumps(dict(columns)), **facts})
    # Pages end where parts of a table end in memory.
    whole = pa.Table.from_arrays(table.columns, schema=schema).combine_chunks()
    pq.write_table(whole, file, compression="zstd", version="2.6", write_page_checksum=True)


def joined_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; columns that differ in type, because a revision has other axes, become text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for schema in dict.fromkeys(table.schema for table in tables) for field in schema):
        if field.type != pa.null():
            kinds.setdefault(field.name, set()).add(field.type)
    types = {name: types.pop() if len(types) == 1 else pa.string() for name, types in kinds.items()}
    whole = {
        schema: pa.schema([field.with_type(types.get(field.name, pa.string())) for field in schema])
        for schema in dict.fromkeys(table.schema for table in tables)
    }
    return pa.concat_tables(
        table if whole[table.schema] == table.schema else table.cast(whole[table.schema]) for table in tables
    )
