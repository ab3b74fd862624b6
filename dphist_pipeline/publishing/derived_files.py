"""What is made from all publications: lists of current files, latest cells, notices on cards, and pages.

`current.json` of every release has the files of the latest revisions that stand, for readers of plain Parquet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dphist_pipeline.base.files import open_below, replace_public
from dphist_pipeline.publishing.notices import with_notice
from dphist_pipeline.publishing.public_names import CATALOGUE, CURRENT, INDEX, is_path
from dphist_pipeline.publishing.published_files import (
    PAGES,
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    PublishedFolder,
    read_audit,
    read_sealed_audit,
    revisions_by_period,
)

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class DerivedFiles:
    """The files of a public folder that are made from all its publications, by one process at a time.

    Each is written anew where something changed since; what a killed run left is mended by the next one. Scratch
    folders are private, and on the same file system.
    """

    public: Path
    catalogue: ClassVar[str] = CATALOGUE
    index: ClassVar[str] = INDEX
    current: ClassVar[str] = CURRENT

    def write_current_files(self, scratch: Path, read: Callable[[Path], dict[str, Any]] = read_audit) -> None:
        """Writes `current.json` of every release of which something was published or withdrawn since.

        Of publications that it lists already, only the ends of their audits are read.

        Args:
            read: gives and checks the audit of a publication that is not listed yet, by its folder.
        """
        for folder in sorted({path.parent for path in self.public.glob("*/period=*")}):
            listed = _current_entries(folder)
            periods = [
                entry
                for period, numbers in revisions_by_period(folder).items()
                for entry in _current(folder / f"period={period}", numbers, listed, read)
            ]
            # A period a line: the lines of the others stay as they were.
            head = json.dumps({"schema_version": SCHEMA_VERSION, "release": folder.name})[:-1]
            text = f'{head}, "periods": [\n' + ",\n".join(map(json.dumps, periods)) + "\n]}\n"
            if not (folder / CURRENT).is_file() or (folder / CURRENT).read_bytes() != text.encode():
                replace_public(folder / CURRENT, text, scratch)

    def set_notices(self, scratch: Path) -> None:
        """Sets the notices of cards as audits and `current.json` say; no link is followed, and none is replaced."""
        for release in sorted({path.parent for path in self.public.glob("*/period=*")}):
            listed = _current_entries(release)
            for period, numbers in revisions_by_period(release).items():
                if len(numbers) == 1 and period in listed:
                    continue  # it stands, and nothing ever took its place
                for _, folder in PublishedFolder.all_in(self.public, f"{release.name}/period={period}"):
                    with suppress(PublishedFilesDamaged):  # other checks name it
                        audit, later = read_sealed_audit(folder), later_revision(folder, listed)
                        for path, to_period in PublishedFolder(folder).cards():
                            card = page_in(self.public, folder / path)
                            if card is not None and (noticed := with_notice(card, audit, later, to_period)) != card:
                                replace_public(folder / path, noticed, scratch)

    def write_index(self, scratch: Path, anew: bool = False) -> None:
        """Writes the pages of releases of which something changed, then the page of all; after every other file.

        `anew` reads every publication again; without it, those that pages tell already are not read.
        """
        from dphist_pipeline.publishing._index_pages import write_index

        write_index(self.public, scratch, anew)

    def there(self) -> Iterator[tuple[str, Path]]:
        """The paths and files that are there: the catalogue, then the pages that name it, last."""
        latest = [*sorted(self.public.glob("*/latest/**/cells.*")), *sorted(self.public.glob(f"*/{CURRENT}"))]
        latest += sorted(self.public.glob("*/picker/**/*.js"))
        pages = [*sorted(self.public.glob("*/periods-*.html")), *sorted(self.public.glob(f"*/{INDEX}"))]
        for source in [*latest, self.public / CATALOGUE, *pages, self.public / INDEX]:
            path = source.relative_to(self.public).as_posix()
            if is_path(path) and os.path.lexists(source):
                yield path, source

    def tell(self, published: Path) -> bool:
        """Whether `current.json` and both pages tell a publication as it is now, or a later revision of its period."""
        from dphist_pipeline.publishing._index_pages import shows

        return _is_current(published) and shows(self.public, published)


def later_revision(published: Path, listed: Mapping[str, Mapping[str, Any]] | None = None) -> Mapping[str, Any] | None:
    """The audit of the later revision that stands for a period; its number alone if that is damaged, None if none does.

    `listed`: the entries of `current.json` by period, read here by default.
    """
    listed = _current_entries(published.parents[1]) if listed is None else listed
    entry = listed.get(published.parent.name.removeprefix("period="))
    if entry is None or int(entry["revision"]) <= int(published.name.removeprefix("revision=")):
        return None
    with suppress(PublishedFilesDamaged):
        return read_sealed_audit(published.with_name(f"revision={int(entry['revision'])}"))
    return {"revision": int(entry["revision"])}


def page_in(public: Path, page: Path) -> str | None:
    """The text of a page; None where there is none, or a link to one: another file's text would be published."""
    with suppress(OSError), open_below(public, page.relative_to(public).as_posix()) as file:
        return file.read().decode(errors="replace")
    return None


def grid_of(audit: Mapping[str, Any]) -> str:
    """A digest of the axes of a publication and, for estimates from reports, of the number of atoms in each cell.

    Publications of the same grid have the same cells and columns. Of a family all tables count.
    """
    grid: Any = audit["axes"] if audit.get("atoms") is None else {"axes": audit["axes"], "atoms": audit["atoms"]}
    if "tables" in audit:
        grid = {name: table["axes"] for name, table in audit["tables"].items()}
    return hashlib.sha256(json.dumps(grid, sort_keys=True).encode()).hexdigest()[:16]


def _is_current(published: Path) -> bool:
    """Whether `current.json` lists a publication as it is now, or a later revision of its period."""
    entry = _current_entries(published.parents[1]).get(published.parent.name.removeprefix("period="))
    if entry is None:
        return False
    revision = int(published.name.removeprefix("revision="))
    is_same = entry["revision"] == revision and entry["audit_digest"] == PublishedFolder(published).stated_digest
    return is_same or int(entry["revision"]) > revision


def _current(
    period: Path,
    numbers: Sequence[int],
    listed: Mapping[str, Mapping[str, Any]],
    read: Callable[[Path], dict[str, Any]],
) -> list[Mapping[str, Any]]:
    """The entry of the latest revision of a period that stands; none if all were withdrawn."""
    name = period.name.removeprefix("period=")
    for number in reversed(numbers):
        before, folder = listed.get(name), period / f"revision={number}"
        if before and (before["revision"], before["audit_digest"]) == (number, PublishedFolder(folder).stated_digest):
            return [before]
        audit = read(folder)
        is_here = (audit["release"], audit["period"], audit["revision"]) == (period.parent.name, name, number)
        if is_here and "withdrawn" not in audit:
            return [_entry(folder, audit)]
    return []


def _entry(folder: Path, audit: Mapping[str, Any]) -> dict[str, Any]:
    place = f"period={audit['period']}/revision={audit['revision']}"
    files = dict(audit["files"])
    for table in audit.get("tables", {}):
        inside = f"{TABLES_OF_FAMILY}/{table}"
        files |= {f"{inside}/{name}": digest for name, digest in read_audit(folder / inside)["files"].items()}
    files = {path: digest for path, digest in files.items() if not path.endswith(PAGES)}
    return {
        **{name: audit.get(name) for name in ("period", "period_start", "period_end", "revision")},
        "grid": grid_of(audit),
        "audit_digest": audit["audit_digest"],
        "files": [{"path": f"{place}/{name}", "sha256": digest} for name, digest in files.items()],
    }


def _current_entries(release: Path) -> dict[str, Mapping[str, Any]]:
    """The entries of `current.json` by period; none if it is missing or damaged, or names pages, as it did once."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        with open_below(release, CURRENT) as file:
            content = json.load(file)
        entries = content["periods"]
        names_pages = any(file["path"].endswith(PAGES) for entry in entries for file in entry["files"])
        if content["schema_version"] == SCHEMA_VERSION and content["release"] == release.name and not names_pages:
            return {str(entry["period"]): entry for entry in entries}
    return {}
