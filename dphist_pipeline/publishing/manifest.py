"""The manifest of a copy of the public folder in a bucket: which object holds which file.

Readers start at `manifest.json`, which is replaced by a conditional write. What it names does not change while it is
named, so a reader sees one state of the public folder, whole:

- a file of a publication is the object of its own name, such as `wards/period=all/revision=1/histogram.parquet`;
- a file that is replaced (the catalogue, `index.html`, `current.json`, `croissant.json`, the audit and card of what is
  withdrawn) is an object below `_versions/`, and is copied to its own name afterwards, for readers who know only that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from dphist_pipeline.errors import Halted

NAME = "manifest.json"
SCHEMA_VERSION = 1
LAST_GENERATION = 10**18
LARGEST_OBJECT = 50 << 40  # bytes, as Amazon's S3 takes them
VERSIONS = "_versions"
CATALOGUE, CROISSANT, CURRENT, INDEX = "catalog.duckdb", "croissant.json", "current.json", "index.html"
DOWNLOADS = "downloads"

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
# No name is longer than file systems take.
_RELEASE = "[a-z][a-z0-9_]{0,199}"
_PLACE = re.compile(rf"({_RELEASE}/period=[a-z0-9-]{{1,40}}/revision=[0-9]{{1,9}})/", re.ASCII)
_FILE = re.compile(r"(?:tables/[a-z0-9_]{1,200}/)?[a-z]{1,40}\.(?:html|json|parquet|yaml)", re.ASCII)
_LATEST = r"latest/(?:[a-z0-9_]{1,200}/)?(?:period=[a-z0-9-]{1,40}/)?cells\.(?:parquet|csv)"
_PICKER = r"picker/(?:(?:script|release)\.js|(?:[a-z0-9_]{1,200}/)?period=[a-z0-9-]{1,40}/cells(?:-[0-9]{1,4})?\.js)"
_DOWNLOADS = rf"{DOWNLOADS}/period=[a-z0-9-]{{1,40}}/revision=[0-9]{{1,9}}/(?:cells\.(?:csv|xlsx)|picture\.svg)"
_OF_RELEASE = rf"current\.json|index\.html|{_LATEST}|{_PICKER}|{_DOWNLOADS}"
_DERIVED = re.compile(rf"(?:catalog\.duckdb|croissant\.json|index\.html)|{_RELEASE}/(?:{_OF_RELEASE})", re.ASCII)
_VERSION = re.compile(rf"{VERSIONS}/[0-9]{{1,18}}/[0-9a-f]{{64}}/[a-z]{{1,40}}\.[a-z]{{1,20}}", re.ASCII)
_PUBLISHER = re.compile(r"[0-9a-f]{0,32}", re.ASCII)
_LEDGER = re.compile(r"[0-9A-Za-z_-]{1,100}", re.ASCII)


class ManifestDamaged(Halted):
    """An object that is called manifest.json and is none."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(
            f"{address}/{NAME} is not a manifest that this version can read. Update dphist if a newer version wrote "
            "it; else choose another prefix, or put back the object's last version."
        )


@dataclass(frozen=True)
class Entry:
    """An object that holds a file: its name below the prefix; SHA-256, in hex, and size of the file in bytes."""

    object: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """A state of the public folder in a bucket.

    Attributes:
        ledger: the id of the ledger that pays for what is there; another ledger's releases are refused.
        retired: objects that were named before, with the time when they no longer were; some may still be read.
        publisher: the id of the host that writes here, as `publisher_id` gives it; empty in those of earlier versions.
    """

    name: ClassVar[str] = NAME

    ledger: str
    generation: int
    files: Mapping[str, Entry] = field(default_factory=dict)
    retired: Mapping[str, str] = field(default_factory=dict)
    publisher: str = ""

    @classmethod
    def read(cls, content: bytes, address: str) -> Manifest:
        """Reads a manifest, which may be anybody's: every name in it stays below the prefix and the folder.

        Raises:
            ManifestDamaged: it is none, or of another version.
        """
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _read(json.loads(content))
        raise ManifestDamaged(address)

    @staticmethod
    def publisher_id(folder: str) -> str:
        """The id under which a host publishes; it tells nobody the id of its confidential folder."""
        return hashlib.sha256(f"publisher {folder}".encode()).hexdigest()[:32]

    def publications(self) -> set[str]:
        """The places of the publications that have files here, such as `wards/period=all/revision=1`."""
        return {place for path in self.files if (place := place_of(path)) is not None}

    def version_of(self, path: str, sha256: str) -> str:
        """The name of a new object for a file that is replaced, in the manifest after this one.

        It has that manifest's number, so that no object that was retired is ever named again.
        """
        return f"{VERSIONS}/{self.generation + 1}/{sha256}/{path.rpartition('/')[2]}"

    def text(self) -> bytes:
        """The content of the object.

        Raises:
            ValueError: `read` would refuse it.
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "ledger": self.ledger,
            **({"publisher": self.publisher} if self.publisher else {}),
            "generation": self.generation,
            "files": {path: vars(entry) for path, entry in sorted(self.files.items())},
            "retired": dict(sorted(self.retired.items())),
        }
        if _read(content) != self:
            raise ValueError
        return json.dumps(content, indent=1).encode() + b"\n"


def place_of(path: str) -> str | None:
    """The place of the publication that a file belongs to; None for files that are made from all of them."""
    match = _PLACE.match(path)
    return match[1] if match else None


def _read(content: Any) -> Manifest:
    """A manifest from its JSON; ValueError, KeyError, TypeError or AttributeError if it is none."""
    ledger, generation, publisher = content["ledger"], content["generation"], content.get("publisher", "")
    is_number = type(generation) is int and 0 < generation < LAST_GENERATION
    are_ids = _LEDGER.fullmatch(ledger) and _PUBLISHER.fullmatch(publisher)
    if content["schema_version"] != SCHEMA_VERSION or not is_number or not are_ids:
        raise ValueError
    files = {path: _entry(path, entry) for path, entry in content["files"].items()}
    retired = {name: _time(name, at) for name, at in content["retired"].items()}
    return Manifest(ledger, generation, files, retired, publisher)


def is_path(path: str) -> bool:
    """Whether a manifest may name a path in the public folder."""
    place = _PLACE.match(path)
    return bool(_FILE.fullmatch(path[place.end() :]) if place else _DERIVED.fullmatch(path))


def _entry(path: str, fields: Mapping[str, Any]) -> Entry:
    if not is_path(path):
        raise ValueError
    name, sha256, size = fields["object"], fields["sha256"], fields["size"]
    if not (_SHA256.fullmatch(sha256) and type(size) is int and 0 <= size <= LARGEST_OBJECT):
        raise ValueError
    if name != path and not re.fullmatch(
        rf"{VERSIONS}/[0-9]{{1,18}}/{sha256}/{re.escape(path.rpartition('/')[2])}", name, re.ASCII
    ):
        raise ValueError
    return Entry(name, sha256, size)


def _time(name: str, at: str) -> str:
    if not _VERSION.fullmatch(name) or datetime.fromisoformat(at).tzinfo is None:
        raise ValueError
    return at
