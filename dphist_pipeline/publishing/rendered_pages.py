"""`pages.json`: the digests of pages that were rendered anew, after a publication; its audit keeps those of the first.

The file is written before the pages are replaced, and keeps the digests of earlier renderings: whenever a run is
killed, every page has a digest that the audit or this file names. The ledger holds the digest of the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

NAME = "pages.json"
_FORM = 1
_PAGE = re.compile(r"(?:tables/[a-z0-9_]{1,200}/)?card\.html|deployment\.yaml", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Rendering:
    """One run that rendered pages of a publication anew.

    Attributes:
        version: of this program.
        day: as ISO text.
        pages: SHA-256 by path in the folder of the publication, without marks of a withdrawal or a later revision.
    """

    version: str
    day: str
    pages: dict[str, str]


def renderings(published: Path) -> tuple[Rendering, ...]:
    """Every rendering of a publication after the first, the newest last.

    Args:
        published: its folder; of a family, not that of a table.

    Raises:
        ValueError: the file is not one of ours.
    """
    path = published / NAME
    if not path.exists():
        return ()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        content = json.loads(path.read_bytes())
        read = tuple(Rendering(**one) for one in content["renderings"])
        if content["form"] == _FORM and read and all(map(_is_ours, read)):
            return read
    raise ValueError("not a list of pages")


def content_of(made: tuple[Rendering, ...]) -> bytes:
    """The bytes of the file."""
    return json.dumps({"form": _FORM, "renderings": [asdict(one) for one in made]}, indent=1).encode() + b"\n"


def file_digest(published: Path) -> str | None:
    """SHA-256 of the file; None where nothing was rendered anew."""
    path = published / NAME
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def page_version(published: Path, audit: Mapping[str, Any]) -> str:
    """The version of this program that wrote the pages of a publication; empty if nothing says it."""
    made = renderings(published)
    return made[-1].version if made else str((audit.get("versions") or {}).get("dphist-pipeline", ""))


def _is_ours(made: Rendering) -> bool:
    pages: dict[Any, Any] = made.pages
    date.fromisoformat(made.day)
    return (
        isinstance(made.version, str)
        and len(made.version) <= 50
        and all(_PAGE.fullmatch(path) and _SHA256.fullmatch(digest) for path, digest in pages.items())
    )
