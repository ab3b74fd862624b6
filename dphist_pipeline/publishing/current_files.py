"""`current.json` of every release: the files of the latest revisions that stand, for readers of plain Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphist_pipeline.files import replace_public
from dphist_pipeline.publishing.manifest import CURRENT
from dphist_pipeline.publishing.published_files import TABLES_OF_FAMILY, PublishedFolder, read_audit

SCHEMA_VERSION = 1


def write_current_files(public: Path, scratch: Path, read: Callable[[Path], dict[str, Any]] = read_audit) -> None:
    """Writes `current.json` of every release of which something was published or withdrawn since.

    Of publications that it lists already, only the ends of their audits are read.

    Args:
        public: the store's public folder; one process at a time.
        scratch: a private folder on the same file system.
        read: gives and checks the audit of a publication that is not listed yet, by its folder.

    Raises:
        PublishedFilesDamaged: a file of a publication that it does not list yet is missing or altered.
    """
    for folder in sorted({path.parent for path in public.glob("*/period=*")}):
        listed = _listed(folder)
        periods = [found for path in sorted(folder.glob("period=*")) for found in _current(path, listed, read)]
        content = {"schema_version": SCHEMA_VERSION, "release": folder.name, "periods": periods}
        text = json.dumps(content, indent=2) + "\n"
        if not (folder / CURRENT).is_file() or (folder / CURRENT).read_bytes() != text.encode():
            replace_public(folder / CURRENT, text, scratch)


def grid_of(audit: Mapping[str, Any]) -> str:
    """A digest of the axes of a publication and, for estimates from reports, of the number of atoms in each cell.

    Publications of the same grid have the same cells and columns.

    Args:
        audit: of a publication, or of a family, whose tables all count.
    """
    told: Any = audit["axes"] if audit.get("atoms") is None else {"axes": audit["axes"], "atoms": audit["atoms"]}
    if "tables" in audit:
        told = {name: table["axes"] for name, table in audit["tables"].items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def is_listed(published: Path) -> bool:
    """Whether `current.json` lists a publication as it is now, or a later revision of its period."""
    entry = _listed(published.parents[1]).get(published.parent.name.removeprefix("period="))
    if entry is None:
        return False
    revision = int(published.name.removeprefix("revision="))
    is_same = entry["revision"] == revision and entry["audit_digest"] == PublishedFolder(published).stated_digest
    return is_same or int(entry["revision"]) > revision


def _current(
    period: Path, listed: Mapping[str, Mapping[str, Any]], read: Callable[[Path], dict[str, Any]]
) -> list[Mapping[str, Any]]:
    """The entry of the latest revision of a period that stands; none if all were withdrawn."""
    name = period.name.removeprefix("period=")
    revisions = {path.name.removeprefix("revision="): path for path in period.glob("revision=*")}
    for number in sorted(filter(str.isdecimal, revisions), key=int, reverse=True):
        before, folder = listed.get(name), revisions[number]
        if before and (before["revision"], before["audit_digest"]) == (
            int(number),
            PublishedFolder(folder).stated_digest,
        ):
            return [before]
        audit = read(folder)
        is_here = (audit["release"], audit["period"], str(audit["revision"])) == (period.parent.name, name, number)
        if is_here and "withdrawn" not in audit:
            return [_entry(folder, audit)]
    return []


def _entry(folder: Path, audit: Mapping[str, Any]) -> dict[str, Any]:
    place = f"period={audit['period']}/revision={audit['revision']}"
    files = dict(audit["files"])
    for table in audit.get("tables", {}):
        inside = f"{TABLES_OF_FAMILY}/{table}"
        files |= {f"{inside}/{name}": digest for name, digest in read_audit(folder / inside)["files"].items()}
    return {
        **{name: audit.get(name) for name in ("period", "period_start", "period_end", "revision")},
        "grid": grid_of(audit),
        "audit_digest": audit["audit_digest"],
        "files": [{"path": f"{place}/{name}", "sha256": digest} for name, digest in files.items()],
    }


def _listed(release: Path) -> dict[str, Mapping[str, Any]]:
    """The entries of `current.json` by period; none if it is missing or damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads((release / CURRENT).read_bytes())
        if content["schema_version"] == SCHEMA_VERSION and content["release"] == release.name:
            return {str(entry["period"]): entry for entry in content["periods"]}
    return {}
