"""Published files: which ones a publication has, reading their audit and checking them, and marking a withdrawal.

The audit seals the Parquet files. Pages are made from them and can be made again; see `published_pages`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dphist_pipeline.base.files import open_regular, read_regular, replace_public
from dphist_pipeline.errors import Halted
from dphist_pipeline.publishing.public_names import is_path, place_of
from dphist_pipeline.publishing.values_digests import digest_of_family, digest_of_files

TABLES = ("histogram.parquet", "groups.parquet", "audit.parquet")
QUALITY = "quality.parquet"  # only where the spec asks for it
SUMS = "sums.parquet"  # only where the mechanism draws noise for sums of groups
WHOLE = "whole.parquet"  # only of a table of a family
POPULATION = "population.parquet"  # only of a family: the records behind the whole counts of its tables
TABLES_OF_FAMILY = "tables"  # the folder with a folder for each table of a family
SEALED = (*TABLES, QUALITY, SUMS, WHOLE, POPULATION)  # what an audit names
CARD = "card.html"
PAGES = (CARD, "deployment.yaml")  # audits of stores of form 1 name them, too
AUDIT = "audit.json"
FILES = (*SEALED, *PAGES, AUDIT)
DAMAGED = "damaged"  # begins the name of a folder that was a publication, and whose files are damaged
_ENDING = 200  # bytes at the end of an audit that hold its digest


class PublishedFilesDamaged(Halted):
    """Files in the public store are not those that were published."""

    def __init__(self, folder: Path, problem: str) -> None:
        self.folder, self.problem = folder, problem
        super().__init__(
            f"the published release at {folder} {problem}. Move that folder away and run the same command again: it "
            "makes the files anew from the journal, and spends nothing."
        )


def read_audit(published: Path) -> dict[str, Any]:
    """Reads the audit of a published release, and checks its files: their names, digests and the values that they hold.

    Only files of our own names are opened, whatever the audit names. What a check found is kept for as long as the
    process runs and every file keeps its size and times.

    Raises:
        PublishedFilesDamaged: a file is missing or altered, or the audit does not say what is in the files.
    """
    audit = read_sealed_audit(published)
    _check_files(published, audit)
    for name, table in audit.get("tables", {}).items():
        if read_audit(published / TABLES_OF_FAMILY / name)["values_digest"] != table["values_digest"]:
            raise PublishedFilesDamaged(published, f"has an altered table {name}")
    return audit


def read_sealed_audit(published: Path) -> dict[str, Any]:
    """The audit as it was sealed, with the facts that readers rest on, which names files of ours alone.

    Raises:
        PublishedFilesDamaged: it is missing or altered; the files are not looked at.
    """
    from dphist_pipeline.publishing.audit import is_audit  # most commands that open a store read no audit

    with suppress(OSError, ValueError, RecursionError):
        audit: dict[str, Any] = json.loads(read_regular(published / "audit.json"))
        if (
            is_audit(audit)
            and audit["audit_digest"] == audit_digest(audit)
            and audit["files"].keys() <= {*SEALED, *PAGES}
        ):
            return audit
    raise PublishedFilesDamaged(published, "has a missing or altered audit.json")


def _check_files(published: Path, audit: Mapping[str, Any]) -> None:
    """Checks the files of one publication, but not those of its tables."""
    # A file that the audit does not name must not exist: no digest protects it.
    for name in SEALED:
        path = published / name
        if (_digest_of_file(_Seen.of(path)) if path.is_file() else None) != audit["files"].get(name):
            raise PublishedFilesDamaged(published, f"has a missing or altered {name}")
    if _values_digest(published, audit) != audit["values_digest"]:
        raise PublishedFilesDamaged(published, "has other values in its files than its audit says")


def _values_digest(published: Path, audit: Mapping[str, Any]) -> str | None:
    """The digest of the values that the files hold; None if they hold none."""
    if "tables" in audit:
        return digest_of_family({name: table["values_digest"] for name, table in audit["tables"].items()})
    names = [name for name in ("histogram.parquet", QUALITY) if name in audit["files"]]
    with suppress(OSError, ValueError):
        return _digest_of_values(*(_Seen.of(published / name) for name in names))
    return None


@dataclass(frozen=True)
class _Seen:
    """A file as it is on the disk now."""

    path: Path
    identity: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> _Seen:
        status = path.stat()
        times = (status.st_mtime_ns, status.st_ctime_ns)
        return cls(path.absolute(), (status.st_dev, status.st_ino, status.st_size, *times))


@lru_cache(maxsize=10_000)
def _digest_of_file(file: _Seen) -> str | None:
    return digest_of(file.path)


def forget_digests() -> None:
    """Has the next reading of every publication digest its files again, for whoever looks for damage."""
    _digest_of_file.cache_clear()
    _digest_of_values.cache_clear()


@lru_cache(maxsize=10_000)
def _digest_of_values(histogram: _Seen, quality: _Seen | None = None) -> str:
    return digest_of_files(histogram.path, None if quality is None else quality.path)


def revisions_by_period(release: Path) -> dict[str, list[int]]:
    """The revisions of each period of a release, both in order, by the names of folders; renamed folders are none.

    A run that was killed may leave a period without revisions, which is left out.
    """
    revisions = {}
    for period in sorted(_names_after(str(release), "period=")):
        numbers = sorted(map(int, filter(str.isdecimal, _names_after(f"{release}/period={period}", "revision="))))
        if numbers and place_of(f"{release.name}/period={period}/revision={numbers[-1]}/"):
            revisions[period] = numbers
    return revisions


def _names_after(folder: str, prefix: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name.removeprefix(prefix) for entry in entries if entry.name.startswith(prefix)]
    return []


@dataclass(frozen=True)
class PublishedFolder:
    """The folder of a publication, or of one table of a family: where its files lie, and what its audit and card say.

    The path is `PUBLIC/RELEASE/period=DAY/revision=NUMBER`; for a table of a family, `tables/NAME` below it.
    """

    path: Path

    @staticmethod
    def all_in(public: Path, periods: str = "*/period=*") -> Iterator[tuple[str, Path]]:
        """The places and folders of the publications; folders that were renamed are none.

        Where one of them, or a folder above it, is a link, `refuse_links` says so.
        """
        for folder in sorted(public.glob(f"{periods}/revision=*")):
            place = folder.relative_to(public).as_posix()
            if place_of(f"{place}/{AUDIT}") == place and (folder / AUDIT).is_file():
                yield place, folder

    def refuse_links(self, public: Path) -> None:
        """Refuses a folder that is a link, or lies in one below the public folder; raises PublishedFilesDamaged."""
        for folder in (self.path, *self.tables):
            refuse_links(public, folder)

    @property
    def is_table(self) -> bool:
        """Whether it is one table of a family."""
        return self.path.parent.name == TABLES_OF_FAMILY

    @property
    def is_family(self) -> bool:
        """Whether it holds tables of a family."""
        return (self.path / TABLES_OF_FAMILY).is_dir()

    def cards(self) -> Iterator[tuple[str, str]]:
        """The paths of the card and of the pages of tables in the folder, each with the way to that of the period."""
        yield CARD, "../"
        yield from ((f"{TABLES_OF_FAMILY}/{table.name}/{CARD}", "../../../") for table in self.tables)

    def paths(self, public: Path) -> list[str]:
        """The paths below the public folder of the files of a publication and its tables, by our own names."""
        named = [(part / name).relative_to(public).as_posix() for part in (self.path, *self.tables) for name in FILES]
        return [path for path in named if is_path(path) and os.path.lexists(public / path)]

    @property
    def publication(self) -> Path:
        """The folder of the publication: of a table, that of its family."""
        return self.path.parents[1] if self.is_table else self.path

    @property
    def release(self) -> Path:
        """The folder of the release; `public` is above it."""
        return self.publication.parents[1]

    @property
    def tables(self) -> list[Path]:
        """The folders of the tables of a family, by name; empty for other publications."""
        return sorted(self.path.glob(f"{TABLES_OF_FAMILY}/*")) if self.is_family else []

    def table(self, name: str) -> Path:
        """The folder of one table of a family."""
        return self.path / TABLES_OF_FAMILY / name

    @property
    def quality(self) -> Path:
        """The quality table; it is there if the spec asked for it."""
        return self.path / QUALITY

    @property
    def sums(self) -> Path:
        """Noisy sums of groups; they are there if the mechanism draws noise for them."""
        return self.path / SUMS

    @property
    def whole(self) -> Path:
        """Whole counts; they are there for a table of a family."""
        return self.path / WHOLE

    @property
    def population(self) -> Path:
        """The records behind the whole counts of a family; other publications have none."""
        return self.path / POPULATION

    @property
    def stated_digest(self) -> str:
        """The digest that ends the audit, read without the rest; empty if it was withdrawn or is damaged.

        `write_release` writes the digest last, and `mark_withdrawn` writes the withdrawal after it.
        """
        with suppress(OSError), open_regular(self.path / "audit.json") as file:
            file.seek(-min(_ENDING, file.seek(0, os.SEEK_END)), os.SEEK_END)
            match = re.search(rb'"audit_digest": "([0-9a-f]{64})"\s*}\s*$', file.read())
            return match[1].decode() if match else ""
        return ""

    def is_marked_withdrawn(self) -> bool:
        """Whether the audit of a publication says that it is withdrawn, and those of its tables too."""
        audit = read_audit(self.path)
        tables = [PublishedFolder(self.table(name)) for name in audit.get("tables", {})]
        return "withdrawn" in audit and all(table.is_marked_withdrawn() for table in tables)

    def mark_withdrawn(self, note: Mapping[str, Any], scratch: Path) -> None:
        """Says in the audit of a publication that it is withdrawn, in one step; its card follows with the catalogue."""
        for name in read_audit(self.path).get("tables", {}):
            PublishedFolder(self.table(name)).mark_withdrawn(note, scratch)
        audit = {**read_audit(self.path), "withdrawn": dict(note)}
        audit["audit_digest"] = audit_digest(audit)
        replace_public(self.path / AUDIT, json.dumps(audit, indent=2) + "\n", scratch)


def audit_digest(audit: dict[str, Any]) -> str:
    """SHA-256 of an audit's facts without its own digest; it does not depend on their layout in the file."""
    facts = {name: fact for name, fact in audit.items() if name != "audit_digest"}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None when there is none to read."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_links(public: Path, path: Path) -> None:
    """Refuses a file or folder that is a link, or lies in a folder that is one.

    The public folder itself may be reached through links. Names are looked at from the outermost on.

    Raises:
        PublishedFilesDamaged: naming the link.
    """
    for parent in reversed([path, *path.parents]):
        if parent.is_relative_to(public) and parent != public and parent.is_symlink():
            raise PublishedFilesDamaged(parent, "is a link: what is published must lie in the public folder itself")
