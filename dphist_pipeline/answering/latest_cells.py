"""`latest/` of every release: all cells of all periods, the latest revisions alone, as `dphist export` writes them.

`cells.csv` for spreadsheets, `cells.xlsx` where the extra `export` is installed, and `cells.parquet` for programs, who
would count a period twice in `**/histogram.parquet`; of an amount also `figures.csv` and `figures.parquet`, with rows,
sums and means. Made by `current.json` after the catalogue, at every publication and withdrawal; what a killed run left
is mended by the next one. A family has a folder for each table. Above `MOST_ROWS` rows there is a folder for each
period: a long history is not written again every week.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.amount_tables import figures_table
from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exports import csv, parquet, xlsx
from dphist_pipeline.answering.exports.rows import LATEST, Exported
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.files import read_regular, replace_public, sync_folder
from dphist_pipeline.publishing.public_names import CURRENT
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, digest_of, read_sealed_audit

PARQUET, CSV, XLSX = "cells.parquet", "cells.csv", "cells.xlsx"
FIGURES, FIGURES_CSV = "figures.parquet", "figures.csv"  # of a release with an amount
MOST_ROWS = 10**6
MOST_IN_SHEET = 10_000  # of more rows it takes longer to write than the rest of a publication
FORM = 3
_HISTOGRAM = re.compile(r"(?:.*/tables/(?P<table>[a-z0-9_]+)|.*)/histogram\.parquet")


@dataclass(frozen=True)
class _Part:
    """One published table of one period: its entry in `current.json`, its file there and that file's digest."""

    entry: Mapping[str, Any]
    file: Path
    sha256: str

    @property
    def rows(self) -> int:
        with suppress(OSError, pa.ArrowInvalid):
            return int(pq.read_metadata(self.file).num_rows)
        raise PublishedFilesDamaged(self.file.parent, f"{self.file.name} is missing or damaged")

    def publication(self) -> Publication:
        """The publication, whose file is the one that `current.json` lists."""
        audit = read_sealed_audit(self.file.parent)
        if digest_of(self.file) != self.sha256:
            raise PublishedFilesDamaged(self.file.parent, f"{self.file.name} is not what was published")
        return Publication(self.file.parent, audit)


def write_latest_cells(public: Path, scratch: Path) -> None:
    """Writes the files of every release that differ from its `current.json`.

    Files of which nothing stands any more keep their columns and have no row, so that copies elsewhere lose theirs.
    """
    about = About.of(public)
    for current in sorted(public.glob(f"*/{CURRENT}")):
        folder, wanted = current.parent / LATEST, set[Path]()
        for place, parts in _places(current):
            wanted.add(folder / place)
            _write(folder / place, parts, about, scratch)
        for file in folder.rglob(PARQUET):
            if file.parent not in wanted and pq.read_metadata(file).num_rows:
                _empty(file, scratch)


def _places(current: Path) -> Iterator[tuple[str, list[_Part]]]:
    """The folders below `latest`, and the published tables that each holds."""
    tables: dict[str, list[_Part]] = {}
    for entry in json.loads(read_regular(current))["periods"]:
        for file in entry["files"]:
            if match := _HISTOGRAM.fullmatch(file["path"]):
                part = _Part(entry, current.parent / file["path"], file["sha256"])
                tables.setdefault(match["table"] or "", []).append(part)
    for table, parts in tables.items():
        if sum(part.rows for part in parts) <= MOST_ROWS:
            yield table, parts
        else:
            yield from (("/".join(filter(None, [table, f"period={p.entry['period']}"])), [p]) for p in parts)


def _write(target: Path, parts: Sequence[_Part], about: About, scratch: Path) -> None:
    """Writes the files of a folder if they were made from something else; the one with the mark last."""
    standing = {part.entry["period"] for part in parts}
    release = next(folder.parent for folder in (target, *target.parents) if folder.name == LATEST)
    is_part = target.name.startswith("period=")
    periods = () if is_part else sorted(folder.name.removeprefix("period=") for folder in release.glob("period=*"))
    withdrawn = tuple(period for period in periods if period not in standing)
    has_sheet = find_spec("xlsxwriter") is not None and sum(part.rows for part in parts) <= MOST_IN_SHEET
    sources = [[part.entry["period"], part.entry["revision"], part.sha256] for part in parts]
    told = [about.publisher, about.contact, about.license, withdrawn, has_sheet]
    mark = hashlib.sha256(json.dumps([FORM, sources, told]).encode()).hexdigest()
    names = (CSV, XLSX) if has_sheet else (CSV,)
    if _marked(target / PARQUET) == mark and all((target / name).is_file() for name in names):
        return
    exported = Exported(tuple(part.publication() for part in parts), None, about, withdrawn, is_part).with_rows()
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = scratch / "drafted"
    try:
        for name, write in ((CSV, csv.write), (XLSX, xlsx.write))[: len(names)]:
            write(exported, draft)
            replace_public(target / name, draft.read_bytes(), scratch)
        if not has_sheet:
            _empty_sheet(target, scratch)
        _write_figures(target, [one for one in exported.publications if "amount" in one.audit], draft, scratch)
        parquet.write(exported, draft, {"made_from": mark})
        replace_public(target / PARQUET, draft.read_bytes(), scratch)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)


def _write_figures(target: Path, publications: Sequence[Publication], draft: Path, scratch: Path) -> None:
    """Writes rows, sums and means of an amount; of what was there before and stands no more, no line stays."""
    if not publications and not (target / FIGURES).is_file():
        return
    table = figures_table(publications) if publications else pq.read_schema(target / FIGURES).empty_table()
    pq.write_table(table, draft, compression="zstd", version="2.6")
    replace_public(target / FIGURES, draft.read_bytes(), scratch)
    csv.write_table(table, draft)
    replace_public(target / FIGURES_CSV, draft.read_bytes(), scratch)


def _marked(file: Path) -> str | None:
    with suppress(OSError, pa.ArrowInvalid):
        metadata: Mapping[bytes, bytes] = pq.read_schema(file).metadata or {}
        return metadata.get(b"made_from", b"").decode()
    return None


def _empty(file: Path, scratch: Path) -> None:
    """Takes all rows out of the files beside a Parquet file, and then of that one, which has the mark."""
    schema = pq.read_schema(file).remove_metadata()
    replace_public(file.with_name(CSV), ",".join(schema.names) + "\n", scratch)
    _write_figures(file.parent, [], scratch / "drafted", scratch)
    _empty_sheet(file.parent, scratch)
    whole = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), whole, compression="zstd", version="2.6")
    replace_public(file, whole.getvalue().to_pybytes(), scratch)


def _empty_sheet(target: Path, scratch: Path) -> None:
    """Empties a workbook that no longer matches the other files, so that copies elsewhere lose its rows, too."""
    if (target / XLSX).is_file() and (target / XLSX).stat().st_size:
        replace_public(target / XLSX, "", scratch)
