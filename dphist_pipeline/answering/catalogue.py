"""Builds the catalogue: one DuckDB file with every published table and the macros that answer questions.

The file is built from the public files and renamed into place. So it can be read during a publication, copied anywhere,
and attached read-only in plain DuckDB. It holds one table for each release (all periods and revisions, with the number
of each cell), and
    dph_releases       one row per publication: its privacy promise, and the scale and variance of a draw of its noise;
                       for a release of the local model, the error law of estimates from reports instead
    dph_bins           one row per position along an axis of a grid: its bin or category; each level of a hierarchy has
                       rows of its own; `atoms` is the number of report intervals in the bin
    dph_half_widths    for each noise scale, the half width of a 95 % interval by number of cells in the sum (`_of_two`:
                       97.5 %, so that two such intervals hold together)
    dph_covariance     for linear estimates: the covariance of two cells is the sum of the coefficients of the levels on
                       which both lie in the same node; a node is `width` cells wide along each axis
    dph_quality_rows   the quality tables of publications that have one: one row per number, in the order of the file
    dph_version        one row: the version of the macros and tables
    dph_linear_widths  for each noise scale, the half width of a 95 % interval of a linear estimate in standard
                       deviations, by the number of draws with the same variance
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.intervals import LEVEL, LEVEL_OF_TWO, half_width_grid, linear_reach_grid
from dphist_pipeline.answering.macros import MACROS, macro
from dphist_pipeline.answering.row_quality import read_rows
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, Domain
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.publishing.release_files import REPORT_LAW, read_audit
from dphist_pipeline.releasing.store import Key
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.sql_files import identifier, literal

NAME = "catalog.duckdb"
Publication = tuple[Path, dict[str, Any]]  # its folder, and its audit
OLDEST_DUCKDB = "v1.4.0"  # the oldest version that can read the file


def build_catalogue(public: Path, scratch: Path) -> Path:
    """Writes `catalog.duckdb` beside the releases; programs that have the old file open keep reading it.

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
        create_tables(connection, list_publications(public))
    draft.chmod(0o644)
    # A program that opened the old catalogue to write and was killed leaves this file, and DuckDB refuses a new
    # catalogue beside it.
    catalogue.with_name(f"{NAME}.wal").unlink(missing_ok=True)
    return draft.replace(catalogue)


def is_up_to_date(public: Path, folder: Path) -> bool:
    """Whether the catalogue can be read, has the current macros, and contains a publication as it is now.

    Args:
        public: the store's public folder.
        folder: of the publication.
    """
    digest = json.loads((folder / "audit.json").read_bytes())["audit_digest"]
    try:
        # Attach the file instead of opening it: an open one shares an older file of that name in this process.
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {literal(str(public / NAME))} AS catalogue (READ_ONLY)")
            known = connection.execute("SELECT audit_digest FROM catalogue.dph_releases").fetchall()
            made_by = connection.execute("SELECT version FROM catalogue.dph_version").fetchall()
    except duckdb.Error:  # the file is missing or damaged, or another version made it
        return False
    return (digest,) in known and made_by == [(_version(),)]


def _version() -> str:
    """A digest of tables and macros, so that a catalogue of an older version is rebuilt."""
    tables = [str(schema) for schema in (_RELEASES, _BINS, _HALF_WIDTHS, _COVARIANCE, _LINEAR_WIDTHS, _QUALITY)]
    macros = [macro(name) for name in MACROS]
    return hashlib.sha256("\n".join([*tables, *macros]).encode()).hexdigest()[:16]


def list_publications(public: Path) -> list[Publication]:
    """Every publication, ordered by release, period and revision.

    Ignores folders that were renamed, and publications that were withdrawn.

    Args:
        public: the store's public folder.
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


def create_tables(
    connection: duckdb.DuckDBPyConnection, publications: list[Publication], schema: str | None = None
) -> None:
    """Creates all tables and macros of the catalogue.

    Args:
        connection: to DuckDB.
        publications: as `list_publications` returns them.
        schema: an existing, empty schema; None for the current schema of the connection.
    """
    within = "" if schema is None else f"{identifier(schema)}."
    for release, made in groupby(publications, key=lambda publication: str(publication[1]["release"])):
        _table(connection, f"{within}{identifier(release)}", list(made))
    for name, rows in _described(publications).items():
        connection.register("dph_rows", rows)  # a name that no release can have
        connection.execute(f"CREATE TABLE {within}{name} AS SELECT * FROM dph_rows")
        connection.unregister("dph_rows")
    connection.execute(f"CREATE TABLE {within}dph_version AS SELECT $version AS version", {"version": _version()})
    for name in MACROS:
        connection.execute(macro(name, schema))


def _table(connection: duckdb.DuckDBPyConnection, table: str, publications: list[Publication]) -> None:
    """Creates the table of a release, with all periods and revisions; `cell_number` counts from 0 in declared order."""
    columns = {"period": pa.string(), "revision": pa.int64(), "cell_number": pa.int64()}
    for folder, _ in publications:  # a revision may have other axes
        for field in pq.read_schema(folder / "histogram.parquet"):
            if columns.setdefault(field.name, field.type) != field.type:
                columns[field.name] = pa.string()
    empty = pa.schema(list(columns.items())).empty_table()
    connection.register("dph_rows", empty)
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM dph_rows")
    for folder, audit in publications:
        # ParquetFile, because `read_table` would read the names of the folders as columns.
        rows = pq.ParquetFile(folder / "histogram.parquet").read()
        rows = rows.append_column("cell_number", pa.array(np.arange(rows.num_rows)))
        connection.register("dph_rows", rows)
        insert = f"INSERT INTO {table} BY NAME SELECT *, $period AS period, $revision AS revision"
        key = {"period": audit["period"], "revision": audit["revision"]}
        connection.execute(f"{insert} FROM dph_rows", key)
    connection.unregister("dph_rows")


def _described(publications: list[Publication]) -> dict[str, Any]:
    releases: list[dict[str, Any]] = []
    covariance: list[dict[str, Any]] = []
    grids: dict[str, Domain] = {}
    atoms: dict[str, list[int] | None] = {}
    most_cells: dict[bool, dict[str, int]] = {False: {}, True: {}}  # by linear and scale
    for _, audit in publications:
        grid = _grid(audit)
        atoms[grid] = audit.get("atoms")
        domain = grids.setdefault(grid, domain_of(audit["axes"]))
        scale = audit["unbiased_noise_scale"]
        if scale is not None:
            most = most_cells[audit.get("unbiased_covariance") is not None]
            most[scale] = max(most.get(scale, 1), audit["cells"])
        releases.append(_release_row(audit, grid, scale))
        covariance += _covariance_rows(audit, domain)
    widths, linear_widths = list[dict[str, Any]](), list[dict[str, Any]]()
    for noise_scale, cells in most_cells[False].items():  # up to the cells of two periods together
        widths += _width_rows(half_width_grid, _HALF_WIDTHS, noise_scale, 2 * cells)
    for noise_scale, draws in most_cells[True].items():
        linear_widths += _width_rows(linear_reach_grid, _LINEAR_WIDTHS, noise_scale, draws)
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
        "dph_quality_rows": pa.Table.from_pylist(list(_quality_rows(publications)), _QUALITY),
    }


def _grid(audit: dict[str, Any]) -> str:
    """A digest of the axes of a grid and, for estimates from reports, of the number of atoms in each cell."""
    told = audit["axes"] if audit.get("atoms") is None else {"axes": audit["axes"], "atoms": audit["atoms"]}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _width_rows(
    grid: Callable[[Fraction, int, Fraction], Sequence[tuple[int, float]]], schema: pa.Schema, scale: str, most: int
) -> Iterator[dict[str, Any]]:
    """The rows of `dph_half_widths` or `dph_linear_widths` for a scale, up to `most` cells or draws."""
    once, twice = (grid(Fraction(scale), most, level) for level in (LEVEL, LEVEL_OF_TWO))
    for (number, width), (_, width_of_two) in zip(once, twice, strict=True):
        yield dict(zip(schema.names, (scale, number, width, width_of_two), strict=True))


def _covariance_rows(audit: dict[str, Any], domain: Domain) -> list[dict[str, Any]]:
    """The rows of `dph_covariance` for one publication: one for each level from the root, and each axis."""
    key = {name: audit[name] for name in ("release", "period", "revision")}
    return [
        {**key, "level": level, "axis": axis.name, "width": width, "coefficient": part["coefficient"]}
        for level, part in enumerate(audit.get("unbiased_covariance") or (), 1)
        for axis, width in zip(domain.axes, part["widths"], strict=True)
    ]


def _quality_rows(publications: list[Publication]) -> Iterator[dict[str, Any]]:
    """The rows of `dph_quality_rows`."""
    for folder, audit in publications:
        key = {name: audit[name] for name in ("release", "period", "revision")}
        yield from ({**key, "number": number, **row} for number, row in enumerate(read_rows(folder), 1))


def _release_row(audit: dict[str, Any], grid: str, scale: str | None) -> dict[str, Any]:
    row = {name: audit[name] for name in _RELEASES.names if name in audit}
    row = {"model": "central", **row, **(audit.get("report_law") or {})}
    variance = None if scale is None else noise_law.variance(Fraction(scale))
    charged_at = audit["ledger"]["charged_at"] if audit["ledger"] else None
    return {**row, "grid": grid, "noise_scale": scale, "noise_variance": variance, "charged_at": charged_at}


def _bin_rows(grid: str, axis: Axis, stride: int, atoms: list[int] | None) -> Iterator[Any]:
    """The rows of `dph_bins` for an axis and each of its levels; bounds and category of the cell `other` are null."""
    fixed = {"grid": grid, "axis": axis.name, "level_of": axis.name, "stride": stride, "size": axis.size}
    fixed |= {"binned": isinstance(axis, BinnedAxis), "calendar": isinstance(axis, CalendarAxis)}
    if isinstance(axis, BinnedAxis):
        lower, upper = (pa.array(ends, from_pandas=True) for ends in axis.bounds)
        yield _rows(axis.size, {**fixed, "bin_lower": lower, "bin_upper": upper, "atoms": atoms})
        return
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        yield _rows(axis.size, {**fixed, "axis": name, "category": [*groups, *[None] * axis.other]})


def _rows(positions: int, columns: Mapping[str, Any]) -> Any:
    """Rows of `dph_bins`: a single value is repeated in all rows, and a missing column is null."""
    filled = {"position": np.arange(positions), **columns}
    arrays = []
    for field in _BINS:
        value = filled.get(field.name)
        plain = value is None or isinstance(value, str | int)
        arrays.append(pa.array([value] * positions if plain else value, field.type))
    return pa.table(arrays, schema=_BINS)


def _schema(*columns: tuple[pa.DataType, str]) -> pa.Schema:
    """A schema from types, each with the names of its columns separated by spaces."""
    return pa.schema([(name, kind) for kind, names in columns for name in names.split()])


_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_RELEASES = _schema(
    (_TEXT, "release period"),
    (_WHOLE, "revision"),
    (_TEXT, "mechanism privacy_unit neighbours"),
    (_WHOLE, "max_rows_per_unit"),
    (_TEXT, "epsilon"),
    (_WHOLE, "cells"),
    (_TEXT, "account charged_at audit_digest grid noise_scale"),
    (_REAL, "noise_variance"),
    (_TEXT, "model"),
    (_REAL, " ".join(REPORT_LAW)),
)
_BINS = _schema(
    (_TEXT, "grid axis level_of"),
    (_WHOLE, "stride size position"),
    (pa.bool_(), "binned calendar"),
    (_REAL, "bin_lower bin_upper"),
    (_TEXT, "category"),
    (_WHOLE, "atoms"),
)
_HALF_WIDTHS = _schema((_TEXT, "noise_scale"), (_WHOLE, "cells half_width half_width_of_two"))
_COVARIANCE = _schema(
    (_TEXT, "release period"), (_WHOLE, "revision level"), (_TEXT, "axis"), (_WHOLE, "width"), (_REAL, "coefficient")
)
_LINEAR_WIDTHS = _schema((_TEXT, "noise_scale"), (_WHOLE, "draws"), (_REAL, "deviations deviations_of_two"))
_QUALITY = _schema(
    (_TEXT, "release period"),
    (_WHOLE, "revision number"),
    (_TEXT, "statistic axis"),
    (_WHOLE, "position"),
    (_TEXT, "category"),
    (_REAL, "estimate ci_lower ci_upper noise_scale"),
)
