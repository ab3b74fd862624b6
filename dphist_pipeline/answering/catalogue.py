"""The catalogue: one DuckDB file with every published table and the macros that ask them.

It is built anew from the public files and renamed into place, so it can be read while a period is published, copied
anywhere, and attached read-only in plain DuckDB. Beside a table for each release (all periods and revisions, with the
number of each cell) it holds
    dph_releases       a row a publication: what was promised, and the scale and variance of a draw of its noise; of
                       releases of the local model the law of estimates from reports instead
    dph_bins           a row a position along an axis of a grid: its bin or category; levels of a hierarchy stand beside
                       the axis that they are levels of; `atoms`: how many intervals of a report lie in it
    dph_half_widths    per noise scale, how far the noise in a sum of so many cells reaches (95 %; `_of_two`: 97.5 %, so
                       that two such intervals hold together)
    dph_covariance     of linear estimates: two cells have as their covariance the sum of the coefficients of the levels
                       on which they share a node, which is `width` cells wide along each axis
    dph_version        one row: which macros and tables these are
    dph_linear_widths  per noise scale, how many standard deviations a linear estimate reaches (95 %), by how many draws
                       have its variance together
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.intervals import LEVEL, LEVEL_OF_TWO, half_width_grid, linear_reach_grid
from dphist_pipeline.answering.macros import MACROS, macro
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, Domain
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.publishing.release_files import REPORT_LAW, read_audit
from dphist_pipeline.releasing.store import Key
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.sql_files import identifier, literal

NAME = "catalog.duckdb"
OLDEST_DUCKDB = "v1.4.0"  # that can read the file


def build_catalogue(public: Path, scratch: Path) -> Path:
    """Writes `catalog.duckdb` beside the releases; whoever reads the old one goes on reading it.

    Args:
        public: the store's public folder.
        scratch: a private folder on the same file system, for the draft.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
    """
    draft, catalogue = scratch / NAME, public / NAME
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {literal(str(draft))} AS catalogue (STORAGE_VERSION '{OLDEST_DUCKDB}')")
        connection.execute("USE catalogue")
        fill(connection, published(public))
    draft.chmod(0o644)
    # Left by somebody who opened the old catalogue to write, and was killed: with it, DuckDB would refuse the new one.
    catalogue.with_name(f"{NAME}.wal").unlink(missing_ok=True)
    return draft.replace(catalogue)


def holds(public: Path, folder: Path) -> bool:
    """Whether the catalogue can be read, has today's macros, and has what a folder of the public store holds now."""
    digest = json.loads((folder / "audit.json").read_bytes())["audit_digest"]
    try:
        # Attached, not opened: whoever has an older file of that name open in this process would share it.
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {literal(str(public / NAME))} AS catalogue (READ_ONLY)")
            known = connection.execute("SELECT audit_digest FROM catalogue.dph_releases").fetchall()
            made_by = connection.execute("SELECT version FROM catalogue.dph_version").fetchall()
    except duckdb.Error:  # there is none, it is damaged, or another version made it
        return False
    return (digest,) in known and made_by == [(_version(),)]


def _version() -> str:
    """Changes whenever tables or macros do, so that a catalogue that an older version made is built anew."""
    tables = [str(schema) for schema in (_RELEASES, _BINS, _HALF_WIDTHS, _COVARIANCE, _LINEAR_WIDTHS)]
    macros = [macro(name) for name in MACROS]
    return hashlib.sha256("\n".join([*tables, *macros]).encode()).hexdigest()[:16]


def published(public: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Every publication with its audit, by release, period and revision.

    Folders that were moved away do not count, and publications that were withdrawn do not, either.
    """
    folders = [path.parent for path in public.glob("*/period=*/revision=*/audit.json")]
    found = []
    for folder in folders:
        if folder.name.removeprefix("revision=").isdecimal():
            audit = read_audit(folder)
            key = Key(audit["release"], audit["period"], audit["revision"])
            if folder == public / key.public_place and "withdrawn" not in audit:
                found.append((folder, audit))
    return sorted(found, key=lambda publication: [publication[1][name] for name in ("release", "period", "revision")])


def fill(
    connection: duckdb.DuckDBPyConnection, found: list[tuple[Path, dict[str, Any]]], schema: str | None = None
) -> None:
    """Makes all tables and macros, in a schema that is there and empty or where the connection is."""
    within = "" if schema is None else f"{identifier(schema)}."
    by_release: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for folder, audit in found:
        by_release.setdefault(audit["release"], []).append((folder, audit))
    for release, publications in by_release.items():
        _table(connection, f"{within}{identifier(release)}", publications)
    for name, rows in _described(found).items():
        connection.register("dph_rows", rows)  # a name that no release can have
        connection.execute(f"CREATE TABLE {within}{name} AS SELECT * FROM dph_rows")
        connection.unregister("dph_rows")
    connection.execute(f"CREATE TABLE {within}dph_version AS SELECT $version AS version", {"version": _version()})
    for name in MACROS:
        connection.execute(macro(name, schema))


def _table(connection: duckdb.DuckDBPyConnection, table: str, publications: list[tuple[Path, dict[str, Any]]]) -> None:
    """One table of all periods and revisions of a release; `cell_number` counts from 0 in declared order."""
    columns = {"period": pa.string(), "revision": pa.int64(), "cell_number": pa.int64()}
    for folder, _ in publications:  # a revision may have other axes
        for field in pq.read_schema(folder / "histogram.parquet"):
            if columns.setdefault(field.name, field.type) != field.type:
                columns[field.name] = pa.string()
    empty = pa.schema(list(columns.items())).empty_table()
    connection.register("dph_rows", empty)
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM dph_rows")
    for folder, audit in publications:
        # The file by itself: the folders' names would be read as columns.
        rows = pq.ParquetFile(folder / "histogram.parquet").read()
        rows = rows.append_column("cell_number", pa.array(np.arange(rows.num_rows)))
        connection.register("dph_rows", rows)
        insert = f"INSERT INTO {table} BY NAME SELECT *, $period AS period, $revision AS revision"
        key = {"period": audit["period"], "revision": audit["revision"]}
        connection.execute(f"{insert} FROM dph_rows", key)
    connection.unregister("dph_rows")


def _described(found: list[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    releases: list[dict[str, Any]] = []
    covariance: list[dict[str, Any]] = []
    grids: dict[str, Domain] = {}
    atoms: dict[str, list[int] | None] = {}
    most_cells: dict[bool, dict[str, int]] = {False: {}, True: {}}  # by scale, of noisy cells and of linear estimates
    for _, audit in found:
        grid = _grid(audit)
        atoms[grid] = audit.get("atoms")
        domain = grids.setdefault(grid, domain_of(audit["axes"]))
        scale = audit["unbiased_noise_scale"]
        if scale is not None:
            most = most_cells[audit.get("unbiased_covariance") is not None]
            most[scale] = max(most.get(scale, 1), audit["cells"])
        releases.append(_release_row(audit, grid, scale))
        covariance += _covariance_rows(audit, domain)
    widths = [row for scale, most in most_cells[False].items() for row in _half_width_rows(scale, most)]
    linear_widths = [row for scale, most in most_cells[True].items() for row in _linear_width_rows(scale, most)]
    bins = [
        rows
        for grid, domain in grids.items()
        for axis, stride in zip(domain.axes, domain.strides, strict=True)
        for rows in _bin_rows(grid, axis, stride, atoms[grid])
    ]
    return {
        "dph_releases": pa.Table.from_pylist(releases, _RELEASES),
        "dph_bins": pa.concat_tables([_BINS.empty_table(), *bins]),
        "dph_half_widths": pa.Table.from_pylist(widths, _HALF_WIDTHS),
        "dph_covariance": pa.Table.from_pylist(covariance, _COVARIANCE),
        "dph_linear_widths": pa.Table.from_pylist(linear_widths, _LINEAR_WIDTHS),
    }


def _grid(audit: dict[str, Any]) -> str:
    """Names a grid by its axes and, where cells come from reports, how many of their intervals lie in each."""
    told = audit["axes"] if audit.get("atoms") is None else {"axes": audit["axes"], "atoms": audit["atoms"]}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _half_width_rows(scale: str, most: int) -> list[dict[str, Any]]:
    """The rows of `dph_half_widths` for a scale, up to the cells of two periods together."""
    once, twice = (half_width_grid(Fraction(scale), 2 * most, level) for level in (LEVEL, LEVEL_OF_TWO))
    return [
        {"noise_scale": scale, "cells": cells, "half_width": width, "half_width_of_two": width_of_two}
        for (cells, width), (_, width_of_two) in zip(once, twice, strict=True)
    ]


def _linear_width_rows(scale: str, most: int) -> list[dict[str, Any]]:
    """The rows of `dph_linear_widths` for a scale, up to the variance of so many draws."""
    once, twice = (linear_reach_grid(Fraction(scale), most, level) for level in (LEVEL, LEVEL_OF_TWO))
    return [
        {"noise_scale": scale, "draws": draws, "deviations": reach, "deviations_of_two": reach_of_two}
        for (draws, reach), (_, reach_of_two) in zip(once, twice, strict=True)
    ]


def _covariance_rows(audit: dict[str, Any], domain: Domain) -> list[dict[str, Any]]:
    """The rows of `dph_covariance` for one publication: levels from the top, a row for each axis of a level."""
    key = {name: audit[name] for name in ("release", "period", "revision")}
    return [
        {**key, "level": level, "axis": axis.name, "width": width, "coefficient": part["coefficient"]}
        for level, part in enumerate(audit.get("unbiased_covariance") or (), 1)
        for axis, width in zip(domain.axes, part["widths"], strict=True)
    ]


def _release_row(audit: dict[str, Any], grid: str, scale: str | None) -> dict[str, Any]:
    row = {name: audit[name] for name in _RELEASES.names if name in audit}
    row = {"model": "central", **row, **(audit.get("report_law") or {})}
    variance = None if scale is None else noise_law.variance(Fraction(scale))
    charged_at = audit["ledger"]["charged_at"] if audit["ledger"] else None
    return {**row, "grid": grid, "noise_scale": scale, "noise_variance": variance, "charged_at": charged_at}


def _bin_rows(grid: str, axis: Axis, stride: int, atoms: list[int] | None) -> Iterator[Any]:
    """The rows of `dph_bins` for an axis and each of its levels; null bounds and a null category for `other`."""
    fixed = {"grid": grid, "axis": axis.name, "level_of": axis.name, "stride": stride, "size": axis.size}
    fixed |= {"binned": isinstance(axis, BinnedAxis), "calendar": isinstance(axis, CalendarAxis)}
    if isinstance(axis, BinnedAxis):
        lower, upper = (pa.array(ends, from_pandas=True) for ends in axis.bounds)
        yield _rows(axis.size, {**fixed, "bin_lower": lower, "bin_upper": upper, "atoms": atoms})
        return
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        yield _rows(axis.size, {**fixed, "axis": name, "category": [*groups, *[None] * axis.other]})


def _rows(positions: int, columns: Mapping[str, Any]) -> Any:
    """Rows of `dph_bins`: columns as given, a plain value in all rows, null where there is none."""
    filled = {"position": np.arange(positions), **columns}
    arrays = []
    for field in _BINS:
        value = filled.get(field.name)
        plain = value is None or isinstance(value, str | int)
        arrays.append(pa.array([value] * positions if plain else value, field.type))
    return pa.table(arrays, schema=_BINS)


_RELEASES = pa.schema(
    [
        *[(name, pa.string()) for name in ("release", "period")],
        ("revision", pa.int64()),
        *[(name, pa.string()) for name in ("mechanism", "privacy_unit", "neighbours")],
        ("max_rows_per_unit", pa.int64()),
        ("epsilon", pa.string()),
        ("cells", pa.int64()),
        *[(name, pa.string()) for name in ("account", "charged_at", "audit_digest", "grid", "noise_scale")],
        ("noise_variance", pa.float64()),
        ("model", pa.string()),
        *[(name, pa.float64()) for name in REPORT_LAW],
    ]
)
_BINS = pa.schema(
    [
        *[(name, pa.string()) for name in ("grid", "axis", "level_of")],
        *[(name, pa.int64()) for name in ("stride", "size", "position")],
        *[(name, pa.bool_()) for name in ("binned", "calendar")],
        *[(name, pa.float64()) for name in ("bin_lower", "bin_upper")],
        ("category", pa.string()),
        ("atoms", pa.int64()),
    ]
)
_HALF_WIDTHS = pa.schema(
    [("noise_scale", pa.string()), *[(name, pa.int64()) for name in ("cells", "half_width", "half_width_of_two")]]
)
_COVARIANCE = pa.schema(
    [
        *[(name, pa.string()) for name in ("release", "period")],
        *[(name, pa.int64()) for name in ("revision", "level")],
        ("axis", pa.string()),
        ("width", pa.int64()),
        ("coefficient", pa.float64()),
    ]
)
_LINEAR_WIDTHS = pa.schema(
    [
        *[("noise_scale", pa.string()), ("draws", pa.int64())],
        *[(name, pa.float64()) for name in ("deviations", "deviations_of_two")],
    ]
)
