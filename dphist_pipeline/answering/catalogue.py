"""Builds the catalogue: one DuckDB file with every published table and the macros that answer questions.

The file is drafted elsewhere and renamed into place. So it can be read during a publication, copied anywhere, and
attached read-only in plain DuckDB. For each release it holds a table of its cells (all periods and revisions, with the
number of each cell) and views of it; see `views`. What users do not ask lies in a schema of its own; see
`catalogue_places`. The other tables are those of `catalogue_schemas.TABLES`:

    dph_releases       one row per publication: its privacy promise, and the scale and variance of a draw of its noise;
                       for a release of the local model, the error law of estimates from reports instead
    dph_charges        one row per step of a publication: the epsilon that it spent
    dph_bins           one row per position along an axis of a grid: its bin or category; each level of a hierarchy has
                       rows of its own; `atoms` is the number of report intervals in the bin
    dph_half_widths    for each noise scale, the half width of a 95 % interval by number of cells in the sum (`_of_two`:
                       97.5 %, so that two such intervals hold together)
    dph_covariance     for linear estimates: the covariance of two cells is the sum of the coefficients of the levels on
                       which both lie in the same node; a node is `width` cells wide along each axis. Where weighted
                       sums were measured, it is the product of the axes' covariances; `width` names their `dph_lines`
    dph_lines          for each axis of which weighted sums were measured, the covariance of its positions
    dph_better         for tables of a family with levels: the axes and levels of a question, for which another table of
                       the family tells less noise than the one that is named; macros ask that one
    dph_moments        for each noise scale, what Chernoff's inequality bounds the tails of sums with
    dph_quality_rows   the quality tables of publications that have one: one row per number, in the order of the file
    dph_version        one row: the version of the macros and tables
    dph_linear_widths  for each noise scale, the half width of a 95 % interval of a linear estimate in standard
                       deviations, by the number of draws with the same variance

A publication is added to a copy of the file, so that its cost does not grow with what was published before. Everything
is built from the public files where that cannot be right: the file is missing, damaged, of another version or written
to by somebody else, or a publication that it holds was withdrawn, replaced or moved away. To create the macros takes
longer than to add a release: so an empty catalogue is kept among Python's compiled files, and a copy of it added to.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import duckdb

from dphist_pipeline.answering._catalogue_places import Places
from dphist_pipeline.answering.catalogue_tables import (
    Publication,
    add_publications,
    create_tables,
    releases_in,
    remove_release,
    version,
)
from dphist_pipeline.base.files import keeps_compiled, read_regular
from dphist_pipeline.base.sql_files import literal
from dphist_pipeline.publishing.derived_files import grid_of
from dphist_pipeline.publishing.published_files import (
    AUDIT,
    PublishedFolder,
    read_audit,
    revisions_by_period,
)

NAME = "catalog.duckdb"
PLACES = Places()
Key = tuple[str, str, int]  # release, period and revision
OLDEST_DUCKDB = "v1.4.0"  # the oldest version that can read the file
# Every table takes a block at least: with this size hundreds of small ones take a quarter of what they do with DuckDB's
# own, and a table of millions of rows takes a tenth more.
BLOCK = 65_536  # bytes


@dataclass(frozen=True)
class Catalogue:
    """The catalogue of a public folder, and the publications that it is made from."""

    public: Path

    def attach(self, connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
        """Attaches the catalogue as `catalogue`, and returns the audit digests of its publications.

        The set is empty if the catalogue cannot be read or has other macros. The connection is to a database in memory:
        an open file would share an older file of that name in this process.
        """
        try:
            connection.execute(f"ATTACH {literal(str(self.public / NAME))} AS catalogue (READ_ONLY)")
            # It may come from a bucket that others write to, and its views and macros are SQL that is run here.
            connection.execute("SET enable_external_access = false")
            digests = connection.execute("SELECT audit_digest FROM catalogue.dph_releases").fetchall()
            made_by = connection.execute(f"SELECT version FROM catalogue.{PLACES.table('dph_version')}").fetchall()
        except duckdb.Error:  # the file is missing or damaged, or another version made it
            return frozenset()
        return frozenset(digest for (digest,) in digests) if made_by == [(version(),)] else frozenset()

    def is_up_to_date(self, folder: Path) -> bool:
        """Whether the catalogue can be read, has the current macros, and contains a publication as it is now."""
        tables = PublishedFolder(folder).tables
        digests = {json.loads(read_regular(one / "audit.json"))["audit_digest"] for one in tables or [folder]}
        with duckdb.connect() as connection:
            return digests <= self.attach(connection)

    def lacking(self, folders: Iterable[Path]) -> list[Path]:
        """The publications that it does not contain as they are now; the ends of their audits are read."""
        with duckdb.connect() as connection:
            held = self.attach(connection)
        tables = {folder: PublishedFolder(folder).tables or [folder] for folder in folders}
        return [
            folder
            for folder in tables
            if not held.issuperset(PublishedFolder(one).stated_digest for one in tables[folder])
        ]

    def is_complete(self) -> bool:
        """Whether the catalogue has every publication that stands, and no other; the ends of their audits are read."""
        folders = _folders(self.public).values()
        families = {PublishedFolder(folder).publication for folder in folders if PublishedFolder(folder).is_table}
        stated = {PublishedFolder(folder).stated_digest for folder in folders if folder not in families} - {""}
        with duckdb.connect() as connection:
            return (self.public / NAME).is_file() and self.attach(connection) == stated

    def publications(self, release: str = "*") -> list[Publication]:
        """Every publication, or those of one release, ordered by release, period and revision.

        Ignores folders that were renamed, and publications that were withdrawn.
        """
        return _publications_in_force(_folders(self.public, release))


def one_thread() -> duckdb.DuckDBPyConnection:
    """A connection that writes rows once, in order; several threads write them again at the end, in twice the time."""
    return duckdb.connect(config={"threads": 1})


Connect = Callable[[], duckdb.DuckDBPyConnection]


def build_catalogue(
    public: Path,
    scratch: Path,
    read: Callable[[duckdb.DuckDBPyConnection], None] = lambda connection: None,
    empty: Callable[[Path], Path] | None = None,
    connect: Connect = one_thread,
) -> Path:
    """Writes `catalog.duckdb` beside the releases, one process at a time; programs with the old file go on reading it.

    Args:
        read: is given the draft, attached as `catalogue` and in use, before it takes its place: to attach the file
            again would take longer than most readings. The catalogue takes its place even if this fails.
        empty: gives an empty catalogue to begin with where the one that is there cannot serve; see `kept_empty`.
        connect: gives the connection that writes; one of this process where it has read no record.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
    """
    draft, catalogue, sealed = scratch / NAME, public / NAME, int(time.time())
    failure: Exception | None = None
    with _draft_connection(public, draft, sealed, empty, connect) as connection:
        try:
            # A file or the network is asked for by none of our views, but somebody may have altered the file.
            # Rows that are added come through the scratch folder.
            connection.execute(f"SET allowed_directories = [{literal(str(draft.parent))}]")
            connection.execute("SET enable_external_access = false")
            read(connection)
        except Exception as problem:
            failure = problem
    draft.chmod(0o644)
    os.utime(draft, (sealed, sealed))
    # A program that opened the old catalogue to write and was killed leaves this file, and DuckDB refuses a new
    # catalogue beside it.
    catalogue.with_name(f"{NAME}.wal").unlink(missing_ok=True)
    draft.replace(catalogue)
    if failure is not None:
        raise failure
    return catalogue


@contextmanager
def _draft_connection(
    public: Path, draft: Path, sealed: int, empty: Callable[[Path], Path] | None, connect: Connect
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the draft, which has every publication."""
    bases: list[Callable[[Path], Path]] = [lambda scratch: public / NAME, *([empty] if empty else [])]
    for base_in in bases:
        base = base_in(draft.parent)
        if not base.exists():
            continue
        with connect() as connection:
            if _is_added_to_copy(connection, base, public, draft, sealed):
                yield connection
                return
    with _new_catalogue(draft, Catalogue(public).publications(), sealed, connect) as connection:
        yield connection


def kept_empty(scratch: Path, connect: Connect) -> Path:
    """The empty catalogue of this version, made if need be; no file where it can be neither made nor kept.

    `connect`: of a process that has read no record: the file goes into every store.
    """
    kept = Path(cache_from_source(__file__)).with_name(f"{version()}.{NAME}")
    if not kept.exists() and keeps_compiled(kept.parent):
        made, sealed = scratch / f"empty.{NAME}", int(time.time())
        with _new_catalogue(made, [], sealed, connect):
            pass
        os.utime(made, (sealed, sealed))
        with suppress(OSError), tempfile.TemporaryDirectory(dir=kept.parent) as beside:
            for older in kept.parent.glob(f"*.{NAME}"):
                older.unlink()
            Path(shutil.copy2(made, beside)).replace(kept)
        made.unlink()
    return kept


@contextmanager
def _new_catalogue(
    draft: Path, publications: Sequence[Publication], sealed: int, connect: Connect
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a new catalogue of some publications."""
    for leftover in (draft, draft.with_name(f"{draft.name}.wal")):
        leftover.unlink(missing_ok=True)
    with connect() as connection:
        how = f"STORAGE_VERSION '{OLDEST_DUCKDB}', BLOCK_SIZE {BLOCK}"
        connection.execute(f"ATTACH {literal(str(draft))} AS catalogue ({how})")
        connection.execute("USE catalogue")
        connection.execute("BEGIN TRANSACTION")  # one, since each is written to disk
        create_tables(connection, publications)
        connection.execute(f"UPDATE {PLACES.table('dph_version')} SET sealed = $sealed", {"sealed": sealed})
        connection.execute("COMMIT")
        yield connection


def _publications_in_force(folders: Mapping[Key, Path]) -> list[Publication]:
    """The publications in force in some folders, ordered by release, period and revision."""
    publications: list[Publication] = []
    for key, folder in sorted(folders.items()):
        audit = read_audit(folder)
        # A family of tables has no cells of its own: its tables are publications.
        if (audit["release"], audit["period"], audit["revision"]) == key and not audit.keys() & {"withdrawn", "tables"}:
            publications.append((folder, audit))
    return publications


def _folders(public: Path, release: str = "*") -> dict[Key, Path]:
    """The folders of publications, tables of families among them, by release, period and revision."""
    folders = {}
    for of in sorted({folder.parent for folder in public.glob("*/period=*")}):
        for period, numbers in revisions_by_period(of).items():
            for number in numbers:
                folder = of / f"period={period}/revision={number}"
                if not (folder / AUDIT).exists():
                    continue
                folder_of = {of.name: folder}
                folder_of |= {f"{of.name}_{table.name}": table for table in PublishedFolder(folder).tables}
                for name, path in folder_of.items():
                    if release in ("*", name):
                        folders[name, period, number] = path
    return folders


def _is_added_to_copy(
    connection: duckdb.DuckDBPyConnection, catalogue: Path, public: Path, draft: Path, sealed: int
) -> bool:
    """Copies a catalogue and adds the publications that it lacks; False if it cannot serve."""
    try:
        time_of_file = catalogue.stat().st_mtime_ns
        draft.with_name(f"{NAME}.wal").unlink(missing_ok=True)
        shutil.copyfile(catalogue, draft)  # within the kernel, where that can
        connection.execute(f"ATTACH {literal(str(draft))} AS catalogue")
        connection.execute("USE catalogue")
        versions = connection.execute(f"SELECT version, sealed FROM {PLACES.table('dph_version')}").fetchall()
        keys = connection.execute("SELECT release, period, revision, audit_digest FROM dph_releases").fetchall()
        digests = {(release, period, revision): digest for release, period, revision, digest in keys}
        folders = _folders(public)
        is_whole = versions == [(version(), time_of_file // 10**9)] and time_of_file % 10**9 == 0
        if not is_whole or any(
            PublishedFolder(folders.get(key, draft)).stated_digest != digests[key] for key in digests
        ):
            return False
        _add(connection, folders, digests.keys(), sealed)
        return True
    except (duckdb.Error, FileNotFoundError):  # the file is missing or damaged, or another version made it
        return False


def _add(
    connection: duckdb.DuckDBPyConnection, folders: Mapping[Key, Path], held: Collection[Key], sealed: int
) -> None:
    """Adds publications to the catalogue that is in use; of a release whose axes changed, all of them anew."""
    connection.execute("BEGIN TRANSACTION")
    added, there = (
        _publications_in_force({key: folder for key, folder in folders.items() if key not in held}),
        releases_in(connection, PLACES),
    )
    grids = set(connection.execute("SELECT DISTINCT release, grid FROM dph_releases").fetchall())
    new_grids = {(str(audit["release"]), grid_of(audit)) for _, audit in added} - grids
    changed = _with_families({release for release, _ in new_grids if release in there}, folders) & there
    for release in changed:
        remove_release(connection, release)
    added = [one for one in added if one[1]["release"] not in changed]
    added += _publications_in_force({key: folder for key, folder in folders.items() if key[0] in changed})
    add_publications(connection, added)
    connection.execute(f"UPDATE {PLACES.table('dph_version')} SET sealed = $sealed", {"sealed": sealed})
    connection.execute("COMMIT")


def _with_families(releases: set[str], folders: Mapping[Key, Path]) -> set[str]:
    """Some releases, and all tables of their families, which answer for each other."""
    family_of = {
        name: folder.parents[3].name for (name, _, _), folder in folders.items() if PublishedFolder(folder).is_table
    }
    families = {family_of[release] for release in releases if release in family_of}
    return releases | {table for table, family in family_of.items() if family in families}
