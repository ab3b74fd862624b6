"""The catalogue: one DuckDB file with every published table and the macros that ask them.

It is built anew from the public files and renamed into place, so it can be read while a period is published, copied
anywhere, and attached read-only in plain DuckDB. Beside a table for each release (all periods and revisions, with the
number of each cell) it holds
    dph_releases     a row a publication: what was promised and the noise in its cells
    dph_bins         a row a position along an axis of a grid: its bin or category
    dph_half_widths  per noise scale, how far the noise in a sum of so many cells reaches (95 %)
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.intervals import half_width_grid
from dphist_pipeline.domain import BinnedAxis, Domain
from dphist_pipeline.privacy import noise
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.sql_files import identifier, statement

NAME = "catalog.duckdb"
MACROS = ("dph_total", "dph_box")


def build_catalogue(public: Path, scratch: Path) -> Path:
    """Writes `catalog.duckdb` beside the releases; whoever reads the old one goes on reading it.

    Args:
        public: the store's public folder.
        scratch: a private folder on the same file system, for the draft.
    """
    began = time.time_ns()
    draft = scratch / NAME
    with duckdb.connect(str(draft)) as connection:
        _fill(connection, published(public))
    os.utime(draft, ns=(began, began))  # so that a release published meanwhile is seen to be newer
    draft.chmod(0o644)
    return draft.replace(public / NAME)


def holds(public: Path, folder: Path) -> bool:
    """Whether the catalogue was begun after a release was published."""
    catalogue = public / NAME
    return catalogue.exists() and catalogue.stat().st_mtime_ns > folder.stat().st_ctime_ns


def published(public: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Every publication with its audit, by release, period and revision."""
    folders = [audit.parent for audit in public.glob("*/period=*/revision=*/audit.json")]
    audits = [(folder, json.loads((folder / "audit.json").read_bytes())) for folder in folders]
    return sorted(audits, key=lambda found: (found[1]["release"], found[1]["period"], found[1]["revision"]))


def _fill(connection: duckdb.DuckDBPyConnection, found: list[tuple[Path, dict[str, Any]]]) -> None:
    by_release: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for folder, audit in found:
        by_release.setdefault(audit["release"], []).append((folder, audit))
    for release, publications in by_release.items():
        _table(connection, release, publications)
    for name, rows in _described(found).items():
        connection.register("described", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM described")
        connection.unregister("described")
    for macro in MACROS:
        connection.execute(statement(f"answering/{macro}"))


def _table(
    connection: duckdb.DuckDBPyConnection, release: str, publications: list[tuple[Path, dict[str, Any]]]
) -> None:
    """One table of all periods and revisions; `cell_number` counts from 0 in declared order."""
    columns = {"period": pa.string(), "revision": pa.int64(), "cell_number": pa.int64()}
    for folder, _ in publications:  # a revision may have other axes
        columns |= {field.name: field.type for field in pq.read_schema(folder / "histogram.parquet")}
    empty = pa.schema(list(columns.items())).empty_table()
    connection.register("publication", empty)
    connection.execute(f"CREATE TABLE {identifier(release)} AS SELECT * FROM publication")
    for folder, audit in publications:
        # The file by itself: the folders' names would be read as columns.
        rows = pq.ParquetFile(folder / "histogram.parquet").read()
        rows = rows.append_column("cell_number", pa.array(np.arange(rows.num_rows)))
        connection.register("publication", rows)
        insert = f"INSERT INTO {identifier(release)} BY NAME SELECT *, $period AS period, $revision AS revision"
        key = {"period": audit["period"], "revision": audit["revision"]}
        connection.execute(f"{insert} FROM publication", key)
    connection.unregister("publication")


def _described(found: list[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    releases: list[dict[str, Any]] = []
    grids: dict[str, Domain] = {}
    most_cells: dict[str, int] = {}
    for _, audit in found:
        grid = hashlib.sha256(json.dumps(audit["axes"], sort_keys=True).encode()).hexdigest()[:16]
        grids.setdefault(grid, domain_of(audit["axes"]))
        scale = audit["unbiased_noise_scale"]
        if scale is not None:
            most_cells[scale] = max(most_cells.get(scale, 1), audit["cells"])
        releases.append(_release_row(audit, grid, scale))
    widths = [
        {"noise_scale": scale, "cells": cells, "half_width": width}
        for scale, most in most_cells.items()
        for cells, width in half_width_grid(Fraction(scale), most)
    ]
    bins = [row for grid, domain in grids.items() for row in _bin_rows(grid, domain)]
    return {
        "dph_releases": pa.Table.from_pylist(releases, _RELEASES),
        "dph_bins": pa.Table.from_pylist(bins, _BINS),
        "dph_half_widths": pa.Table.from_pylist(widths, _HALF_WIDTHS),
    }


def _release_row(audit: dict[str, Any], grid: str, scale: str | None) -> dict[str, Any]:
    row = {name: audit[name] for name in _RELEASES.names if name in audit}
    variance = None if scale is None else noise.variance(Fraction(scale))
    charged_at = audit["ledger"]["charged_at"]
    return {**row, "grid": grid, "noise_scale": scale, "noise_variance": variance, "charged_at": charged_at}


def _bin_rows(grid: str, domain: Domain) -> Iterator[dict[str, Any]]:
    for axis, stride in zip(domain.axes, domain.strides, strict=True):
        fixed = {"grid": grid, "axis": axis.name, "stride": stride, "size": axis.size}
        if isinstance(axis, BinnedAxis):
            for position, (lower, upper) in enumerate(zip(*(ends.tolist() for ends in axis.bounds), strict=True)):
                ends = {} if position == axis.other_cell else {"bin_lower": lower, "bin_upper": upper}
                yield {**fixed, "binned": True, "position": position, **ends}
        else:
            for position, category in enumerate([*axis.values, *[None] * axis.other]):
                yield {**fixed, "binned": False, "position": position, "category": category}


_RELEASES = pa.schema(
    [
        *[(name, pa.string()) for name in ("release", "period")],
        ("revision", pa.int64()),
        *[(name, pa.string()) for name in ("mechanism", "privacy_unit", "neighbours")],
        ("max_rows_per_unit", pa.int64()),
        ("epsilon", pa.string()),
        ("cells", pa.int64()),
        *[(name, pa.string()) for name in ("account", "charged_at", "grid", "noise_scale")],
        ("noise_variance", pa.float64()),
    ]
)
_BINS = pa.schema(
    [
        *[(name, pa.string()) for name in ("grid", "axis")],
        *[(name, pa.int64()) for name in ("stride", "size", "position")],
        ("binned", pa.bool_()),
        *[(name, pa.float64()) for name in ("bin_lower", "bin_upper")],
        ("category", pa.string()),
    ]
)
_HALF_WIDTHS = pa.schema([("noise_scale", pa.string()), ("cells", pa.int64()), ("half_width", pa.int64())])
