"""`latest/cells.parquet` and `cells.csv` of every release: all periods, the latest revisions alone, with labels.

For readers of plain files, who would count a period twice in `**/histogram.parquet`. Made from `current.json` after
every publication and withdrawal; what a killed run left is mended by the next one. A family has a folder a table.
Above `MOST_ROWS` rows there is a folder for each period: a long history is not written again every week.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from dphist_pipeline.domain import Domain
from dphist_pipeline.files import replace_public, sync_folder
from dphist_pipeline.published_columns import KINDS_OF_VALUES, VALUE_COLUMNS
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.formatting import FORMULA, NO_FORMULA
from dphist_pipeline.publishing.public_names import CURRENT
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from dphist_pipeline.shown_below import limit_of, masks, words_for
from dphist_pipeline.spec.axes import domain_of

FOLDER, PARQUET, CSV = "latest", "cells.parquet", "cells.csv"
MOST_ROWS = 10**6
FORM = 2
_HISTOGRAM = re.compile(r"(?:.*/tables/(?P<table>[a-z0-9_]+)|.*)/histogram\.parquet")
ABOUT = {
    "release": "name of the release",
    "period": "first day of the period as text; `all` for a release without periods",
    "period_start": "first day of the period; null without periods",
    "period_end": "day after the last day of the period; null without periods",
    "revision": "the latest of the period",
    **{column.name: column.in_latest for column in VALUE_COLUMNS},
}


@dataclass(frozen=True)
class _Part:
    """One published table of one period: its entry in `current.json`, its file there and that file's digest."""

    entry: Mapping[str, Any]
    file: Path
    sha256: str


def write_latest_cells(public: Path, scratch: Path) -> None:
    """Writes the files of every release that differ from its `current.json`.

    Files of which nothing stands any more keep their columns and have no row, so that copies elsewhere lose theirs.
    """
    for current in sorted(public.glob(f"*/{CURRENT}")):
        folder, files = current.parent / FOLDER, set[Path]()
        for place, parts in _places(current):
            target = folder / place
            files |= {target / PARQUET, target / CSV}
            sources = [[part.entry["period"], part.entry["revision"], part.sha256] for part in parts]
            mark = hashlib.sha256(json.dumps([FORM, sources]).encode()).hexdigest()
            if not (_marked(target / PARQUET) == mark and (target / CSV).is_file()):
                _write(current.parent.name, parts, mark, target, scratch)
        for file in folder.rglob(PARQUET):
            if file not in files and pq.read_metadata(file).num_rows:
                _write_both(pq.read_table(file).slice(0, 0).replace_schema_metadata(None), file.parent, scratch)


def _places(current: Path) -> Iterator[tuple[str, list[_Part]]]:
    """The folders below `latest`, and the published tables that each holds."""
    tables: dict[str, list[_Part]] = {}
    for entry in json.loads(current.read_bytes())["periods"]:
        for file in entry["files"]:
            if match := _HISTOGRAM.fullmatch(file["path"]):
                part = _Part(entry, current.parent / file["path"], file["sha256"])
                tables.setdefault(match["table"] or "", []).append(part)
    for table, parts in tables.items():
        if sum(_rows(part) for part in parts) <= MOST_ROWS:
            yield table, parts
        else:
            yield from (("/".join(filter(None, [table, f"period={p.entry['period']}"])), [p]) for p in parts)


def _rows(part: _Part) -> int:
    with suppress(OSError, pa.ArrowInvalid):
        return int(pq.read_metadata(part.file).num_rows)
    raise PublishedFilesDamaged(part.file.parent, f"{part.file.name} is missing or damaged")


def _marked(file: Path) -> str | None:
    with suppress(OSError, pa.ArrowInvalid):
        metadata: Mapping[bytes, bytes] = pq.read_schema(file).metadata or {}
        return metadata.get(b"made_from", b"").decode()
    return None


def _write(release: str, parts: Sequence[_Part], mark: str, target: Path, scratch: Path) -> None:
    tables, about, limits = [], dict(ABOUT), list[int | None]()
    for part in parts:
        audit = json.loads((part.file.parent / "audit.json").read_bytes())
        domain = domain_of(audit["axes"])
        tables.append(_table(release, part, domain, closed=audit.get("model") == "local"))
        limits.append(limit_of(audit))
        about |= {name: text for axis in domain.axes for name, (_, text) in ReaderAxis(axis).columns.items()}
    cells = _concatenated(tables)
    fields = [field.with_metadata({"comment": about.get(field.name, "")}) for field in cells.schema]
    metadata = {
        "made_from": mark,
        "release": release,
        "columns": json.dumps({field.name: about.get(field.name, "") for field in fields}),
    }
    metadata |= {f"{name}s": ", ".join(str(part.entry[name]) for part in parts) for name in ("period", "revision")}
    readable = _cells_in_words(cells, [table.num_rows for table in tables], limits) if any(limits) else cells
    _write_both(cells.cast(pa.schema(fields, metadata=metadata)), target, scratch, readable)


def _cells_in_words(cells: pa.Table, rows: Sequence[int], limits: Sequence[int | None]) -> pa.Table:
    """The cells with words in place of figures below the limit of their publication, as text.

    `rows`: how many of the cells each publication has, in order; its limit is None where all figures are shown.
    """
    below = np.repeat([math.nan if limit is None else limit for limit in limits], rows)
    words = np.repeat([words_for(limit or 0) for limit in limits], rows)
    figures = [cells[name].fill_null(math.nan).to_numpy() for name in ("estimate", "unbiased_estimate")]
    hidden = masks(below, *figures)
    for name in ("estimate", "unbiased_estimate", "ci_lower", "ci_upper"):
        low, left_out = (pa.array(mask) for mask in hidden.of(name))
        finite = pc.if_else(pc.is_finite(cells[name]), cells[name], pa.scalar(None, pa.float64())).cast(pa.string())
        shown_texts = pc.if_else(low, pa.array(words), pc.if_else(left_out, pa.scalar(None, pa.string()), finite))
        cells = cells.set_column(cells.column_names.index(name), name, shown_texts)
    return cells


def _write_both(cells: pa.Table, target: Path, scratch: Path, readable: pa.Table | None = None) -> None:
    """Writes both files, the one with the mark last, so that a killed run is noticed.

    `readable`: the cells as the file for people has them, if they are other ones there.
    """
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    lines = io.BytesIO()
    csv.write_csv(_for_spreadsheets(cells if readable is None else readable), lines)
    replace_public(target / CSV, lines.getvalue(), scratch)
    whole = io.BytesIO()
    pq.write_table(cells, whole, compression="zstd", version="2.6")
    replace_public(target / PARQUET, whole.getvalue(), scratch)
    sync_folder(target.parent)


def _table(release: str, part: _Part, domain: Domain, closed: bool) -> pa.Table:
    """The published cells of a period with what readers need beside them."""
    content = part.file.read_bytes()
    if hashlib.sha256(content).hexdigest() != part.sha256:
        raise PublishedFilesDamaged(part.file.parent, f"{part.file.name} is not what was published")
    published = pq.read_table(io.BytesIO(content))
    rows = published.num_rows
    # The local day of a moment such as 2026-01-05T00:00:00+01:00.
    moments = [part.entry[name] for name in ("period_start", "period_end")]
    days = [None if moment is None else date.fromisoformat(moment[:10]) for moment in moments]
    columns: dict[str, Any] = {
        "release": pa.repeat(release, rows),
        "period": pa.repeat(str(part.entry["period"]), rows),
        **{
            name: pa.array([day] * rows, pa.date32())
            for name, day in zip(("period_start", "period_end"), days, strict=True)
        },
        "revision": pa.repeat(pa.scalar(int(part.entry["revision"]), pa.int32()), rows),
        **dict(zip(published.column_names, published.columns, strict=True)),
    }
    places = np.unravel_index(np.arange(rows), domain.shape)
    for axis, place in zip(domain.axes, places, strict=True):
        labels = ReaderAxis(axis, closed).values(place)
        columns |= {name: labels[name] for name in ReaderAxis(axis).columns_beside(domain.axes)}
    return pa.table(columns)


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; columns that differ in type, because a revision has other axes, become text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for table in tables for field in table.schema):
        kinds.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, types in kinds.items() if len(types) > 1}
    fields = [
        [field.with_type(pa.string()) if field.name in mixed else field for field in table.schema] for table in tables
    ]
    tables_of_one_type = [table.cast(pa.schema(columns)) for table, columns in zip(tables, fields, strict=True)]
    return pa.concat_tables(tables_of_one_type, promote_options="default")


def _for_spreadsheets(cells: pa.Table) -> pa.Table:
    """Rows for readers of CSV: open ends are empty, since spreadsheets take `-inf` for text, as the label tells.

    Texts that a spreadsheet would take for formulas get an apostrophe before them, which spreadsheets hide.
    """
    formula = f"^([{re.escape(''.join(FORMULA))}])"
    for place, field in enumerate(cells.schema):
        if field.type == pa.string() and field.name not in KINDS_OF_VALUES:
            texts = cells[field.name]
            quoted = pc.replace_substring_regex(texts, formula, r"'\1")
            escaped = pc.if_else(pc.match_substring_regex(texts, f"^({NO_FORMULA})$"), texts, quoted)
            cells = cells.set_column(place, field.name, escaped)
        elif pa.types.is_floating(field.type):
            finite = pc.if_else(pc.is_finite(cells[field.name]), cells[field.name], pa.scalar(None, field.type))
            cells = cells.set_column(place, field.name, finite)
    return cells
