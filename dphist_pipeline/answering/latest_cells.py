"""`latest/` of every release: all cells of all periods, the latest revisions alone, as `dphist export` writes them.

`cells.csv` for spreadsheets, `cells.xlsx` where the extra `export` is installed, and `cells.parquet` for programs, who
would count a period twice in `**/histogram.parquet`. Made by `current.json` after the catalogue, at every publication
and withdrawal; what a killed run left is mended by the next one. Rows of publications that stand in the files already
are taken over. A family has a folder for each table. Above `MOST_ROWS` rows there is a folder for each period.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.catalogue_tables import version
from dphist_pipeline.answering.exports import csv, xlsx
from dphist_pipeline.answering.exports.rows import LATEST, Exported, near_zero
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.files import read_regular, replace_public, sync_folder
from dphist_pipeline.estimates.cells_near_zero import has_whole_first
from dphist_pipeline.publishing.growing_tables import GrowingTable, Key, Part
from dphist_pipeline.publishing.public_names import CURRENT
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, digest_of, read_sealed_audit

CELLS, XLSX = "cells", "cells.xlsx"
MOST_ROWS = 10**6
MOST_IN_SHEET = 2_000  # a workbook is written as a whole: of more rows it takes a tenth of a publication, or more
FORM = 5
_HISTOGRAM = re.compile(r"(?:.*/tables/(?P<table>[a-z0-9_]+)|.*)/histogram\.parquet")


@dataclass(frozen=True)
class _CellsSource:
    """One published table of one period: its entry in `current.json`, its file there and that file's digest."""

    entry: Mapping[str, Any]
    table: str
    file: Path
    sha256: str

    @property
    def key(self) -> Key:
        return self.entry["period"], self.entry["revision"], self.sha256

    def rows(self) -> int:
        """The number of its rows, as in every publication of its grid."""
        with suppress(OSError, pa.ArrowInvalid):
            return int(pq.read_metadata(self.file).num_rows)
        raise PublishedFilesDamaged(self.file.parent, f"{self.file.name} is missing or damaged")

    def check(self) -> None:
        """Refuses a file that is not the one that `current.json` lists."""
        if digest_of(self.file) != self.sha256:
            raise PublishedFilesDamaged(self.file.parent, f"{self.file.name} is not what was published")

    def publication(self) -> Publication:
        """The publication; its file is checked."""
        return Publication(self.file.parent, read_sealed_audit(self.file.parent))


def write_latest_cells(public: Path, scratch: Path, anew: bool = False) -> None:
    """Writes the files of every release that differ from its `current.json`.

    Files of which nothing stands any more keep their columns and have no row, so that copies elsewhere lose theirs.
    `anew` makes all rows again, whatever is there.
    """
    about = About.of(public)
    for current in sorted(public.glob(f"*/{CURRENT}")):
        folder, wanted = current.parent / LATEST, set[Path]()
        for place, rows, sources in _places(current):
            wanted.add(folder / place)
            _write(folder / place, sources, rows, about, anew, scratch)
        for file in folder.rglob(f"{CELLS}.parquet"):
            if file.parent not in wanted and pq.read_metadata(file).num_rows:
                _empty(file, scratch)


def _places(current: Path) -> Iterator[tuple[str, int, list[_CellsSource]]]:
    """The folders below `latest`, and the rows and published tables that each holds."""
    tables: dict[str, list[_CellsSource]] = {}
    for entry in json.loads(read_regular(current))["periods"]:
        for file in entry["files"]:
            if match := _HISTOGRAM.fullmatch(file["path"]):
                table = match["table"] or ""
                source = _CellsSource(entry, table, current.parent / file["path"], file["sha256"])
                tables.setdefault(table, []).append(source)
    for table, sources in tables.items():
        by_grid = {source.entry["grid"]: source for source in sources}
        cells = {grid: source.rows() for grid, source in by_grid.items()}
        rows = [cells[source.entry["grid"]] for source in sources]
        if sum(rows) <= MOST_ROWS:
            yield table, sum(rows), sources
        else:
            for number, source in zip(rows, sources, strict=True):
                yield "/".join(filter(None, [table, f"period={source.entry['period']}"])), number, [source]


def _write(target: Path, sources: Sequence[_CellsSource], rows: int, about: About, anew: bool, scratch: Path) -> None:
    """Writes the files of a folder if they were made from something else; the one with the mark last."""
    standing = {source.entry["period"] for source in sources}
    release = next(folder.parent for folder in (target, *target.parents) if folder.name == LATEST)
    is_part = target.name.startswith("period=")
    periods = () if is_part else sorted(folder.name.removeprefix("period=") for folder in release.glob("period=*"))
    withdrawn = tuple(period for period in periods if period not in standing)
    has_sheet = find_spec("xlsxwriter") is not None and rows <= MOST_IN_SHEET
    told = [about.publisher, about.contact, about.license, withdrawn, has_sheet]
    mark = hashlib.sha256(json.dumps([FORM, [source.key for source in sources], told]).encode()).hexdigest()
    cells = GrowingTable(target, CELLS)
    there = cells.csv.is_file() and (target / XLSX).is_file() >= has_sheet
    if there and not anew and cells.metadata().get("made_from") == mark:
        return
    for source in sources:
        source.check()
    # Columns follow from grids in their order, so any publication of a stretch with one grid tells the columns.
    stretches = [[*stretch] for _, stretch in groupby(sources, lambda source: source.entry["grid"])]
    first = sources[0].publication()
    is_first = has_whole_first(first.audit, near_zero(first))  # as `Exported.read` has it
    kind = json.dumps([FORM, version(), [stretch[0].entry["grid"] for stretch in stretches], is_first])
    # A workbook has numbers where a column is a number in one publication and text in another, and Parquet has text.
    held = {} if anew or (has_sheet and len(stretches) > 1) else cells.parts_in_files(kind)
    missing = [[source for source in stretch if source.key not in held] or stretch[-1:] for stretch in stretches]
    needed = [source for stretch in missing for source in stretch]
    publications = tuple(source.publication() for source in needed)
    exported = Exported(publications, None, about, withdrawn, is_part, has_whole_first=is_first)
    parts = dict(held)
    if any(source.key not in held for source in needed):
        for source, one, table in zip(needed, exported.publications, exported.tables(), strict=True):
            parts[source.key] = Part(table, csv.lines(exported, one, table))
    parts = {source.key: parts[source.key] for source in sources}
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    if has_sheet:
        publications = tuple(source.publication() for source in sources)
        tables, draft = tuple(part.rows for part in parts.values()), scratch / XLSX
        xlsx.write(replace(exported, publications=publications, held=tables), draft)
        replace_public(target / XLSX, draft.read_bytes(), scratch)
    else:
        _empty_sheet(target, scratch)
    facts = {"release": str(exported.audit["release"]), "made_from": mark}
    facts |= {f"{name}s": ", ".join(str(source.entry[name]) for source in sources) for name in ("period", "revision")}
    cells.write(parts, kind, csv.header(exported), exported.columns, facts, scratch)
    sync_folder(target.parent)


def _empty(file: Path, scratch: Path) -> None:
    """Takes all rows out of the files beside a Parquet file, and then of that one, which has the mark."""
    schema = pq.read_schema(file).remove_metadata()
    replace_public(file.with_suffix(".csv"), ",".join(schema.names) + "\n", scratch)
    _empty_sheet(file.parent, scratch)
    whole = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), whole, compression="zstd", version="2.6")
    replace_public(file, whole.getvalue().to_pybytes(), scratch)


def _empty_sheet(target: Path, scratch: Path) -> None:
    """Empties a workbook that no longer matches the other files, so that copies elsewhere lose its rows, too."""
    if (target / XLSX).is_file() and (target / XLSX).stat().st_size:
        replace_public(target / XLSX, "", scratch)
