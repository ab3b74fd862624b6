"""The quality table of a published release: its rows, and what readers are told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.failed_rows import most_failed
from dphist_pipeline.estimates.noisy import Unbiased
from dphist_pipeline.estimates.row_quality import FAILURES, Cut, along, cuts, seen, sentences, shift_of_share
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.sources import EVERY_ROW

FILE = "quality.parquet"
Row = Mapping[str, Any]


def no_quality_table(audit: Row) -> Refused:
    """The release was published without a quality table."""
    return Refused(
        f"release '{audit['release']}', period {audit['period']} has no quality table: `quality` was not in its spec. "
        "Add it there; it pays for the next period, or for a revision",
        code="no_quality_table",
        release=str(audit["release"]),
    )


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The quality table of a published folder; empty where it has none.

    Args:
        folder: of a publication whose files were checked, see `read_audit`.
    """
    path = folder / FILE
    rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist() if path.exists() else []
    return rows


def read_quality(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The audit and the quality table of a published folder.

    Args:
        folder: of a publication; its files are checked here.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
        Refused: the publication was withdrawn.
        Refused: its spec declared none.
    """
    audit, rows = audit_in_force(folder), read_rows(folder)
    if not rows:
        raise no_quality_table(audit)
    return audit, rows


def published_cuts(folder: Path, audit: Row, rows: Sequence[Row]) -> dict[str | None, list[Cut]]:
    """As `cuts`, for a published folder; for that of a family, whose tables agree, by the smallest that has an axis."""
    tables = {folder / "tables" / name: table for name, table in audit.get("tables", {}).items()} or {folder: audit}
    known = sorted(
        ((path, domain_of(table["axes"])) for path, table in tables.items()), key=lambda table: table[1].cells
    )

    def counted(axis: str | None) -> NDArray[np.float64]:
        path, domain = next(table for table in known if axis is None or axis in [one.name for one in table[1].axes])
        counts = pq.ParquetFile(path / "histogram.parquet").read(["estimate", "unbiased_estimate"])
        chosen = counts["estimate" if counts["unbiased_estimate"].null_count else "unbiased_estimate"]
        return along(axis, domain, chosen.to_numpy().reshape(domain.shape))

    return cuts(rows, counted)


def in_other(row: Row) -> bool:
    """Whether a number counts rows that `other` of the counts bounds: see `most_failed`."""
    return row["statistic"] in FAILURES or (row["statistic"], row["category"]) == ("rows", "other")


def published_most(folder: Path, audit: Row, rows: Sequence[Row]) -> dict[str | None, float]:
    """As `most_failed`, for a published folder; for that of a family by the smallest table that has an axis.

    Args:
        folder: of a publication, or of one table of a family, of which the whole family is asked.
        rows: empty without a quality table, where nothing is bounded.
    """
    if rows and folder.parent.name == "tables":
        folder = folder.parents[1]
        audit = json.loads((folder / "audit.json").read_bytes())
        rows = read_rows(folder)
    if not rows:
        return {}
    tables = {folder / "tables" / name: table for name, table in audit.get("tables", {}).items()} or {folder: audit}
    axes = domain_of(audit["axes"]).axes
    has_other = {axis.name: axis.other_cell is not None for axis in axes}
    wanted = {name for name, there in has_other.items() if there}
    told: list[tuple[Domain, Unbiased | None]] = []
    for path, table in sorted(tables.items(), key=lambda one: domain_of(one[1]["axes"]).cells):
        domain = domain_of(table["axes"])
        if names := wanted & {axis.name for axis in domain.axes}:
            facts = audit if path == folder else json.loads((path / "audit.json").read_bytes())
            cells = pq.ParquetFile(path / "histogram.parquet").read(["unbiased_estimate"])["unbiased_estimate"]
            told.append((domain, published_unbiased(facts, cells.to_numpy().reshape(domain.shape))))
            wanted -= names
    bound = None if audit["privacy_unit"] == EVERY_ROW else int(audit["max_rows_per_unit"])
    return most_failed(rows, has_other, told, bound, seen(rows))


def say_of_rows(folder: Path, audit: Row) -> list[str]:
    """As `sentences`, for a published folder; empty without a quality table.

    Args:
        folder: of a publication whose files were checked.
    """
    rows = read_rows(folder)
    return sentences(audit, rows, published_cuts(folder, audit, rows)) if rows else []


def shift_of_shares(folder: Path, audit: Row) -> str:
    """How far the rows that the bound cut may move a share of the counts, or that nothing tells; empty without a bound.

    Args:
        folder: of a publication, or of one table of a family, whose files were checked.
    """
    if audit.get("model") == "local" or audit["privacy_unit"] == EVERY_ROW:
        return ""
    rows = read_rows(folder.parents[1] if folder.parent.name == "tables" else folder)
    found = published_cuts(folder, audit, rows).get(None, [])
    points = found[0].points if found else ""
    return shift_of_share(audit, rows, points) if points else f"Shares of these counts are {notes.CAP_UNKNOWN}."
