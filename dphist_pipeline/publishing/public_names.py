"""Our own names below a public folder: what publications and the files made from them are called."""

from __future__ import annotations

import re

CATALOGUE, CURRENT, INDEX = "catalog.duckdb", "current.json", "index.html"

# No name is longer than file systems take.
_RELEASE = "[a-z][a-z0-9_]{0,199}"
_PLACE = re.compile(rf"({_RELEASE}/period=[a-z0-9-]{{1,40}}/revision=[0-9]{{1,9}})/", re.ASCII)
_FILE = re.compile(r"(?:tables/[a-z0-9_]{1,200}/)?(?:[a-z]{1,40}\.(?:html|parquet|yaml)|audit\.json)", re.ASCII)
_LATEST = r"latest/(?:[a-z0-9_]{1,200}/)?(?:period=[a-z0-9-]{1,40}/)?cells\.(?:parquet|csv|xlsx)"
_PICKER = r"picker/(?:(?:script|release)\.js|(?:[a-z0-9_]{1,200}/)?period=[a-z0-9-]{1,40}/cells(?:-[0-9]{1,4})?\.js)"
_OF_RELEASE = rf"current\.json|index\.html|periods-[a-z0-9-]{{1,4}}\.html|{_LATEST}|{_PICKER}"
_DERIVED = re.compile(rf"(?:catalog\.duckdb|index\.html)|{_RELEASE}/(?:{_OF_RELEASE})", re.ASCII)
# What stores of form 1 had; `is_path` tells what of it this version still writes.
_FORM_1 = re.compile(
    rf"croissant\.json|{_RELEASE}/(?:downloads/period=[a-z0-9-]{{1,40}}/revision=[0-9]{{1,9}}/[a-z]{{1,40}}\.[a-z]{{1,9}}"
    r"|period=[a-z0-9-]{1,40}/revision=[0-9]{1,9}/[a-z]{1,40}\.json)",
    re.ASCII,
)


def place_of(path: str) -> str | None:
    """The place of the publication that a file belongs to; None for files that are made from all of them."""
    match = _PLACE.match(path)
    return match[1] if match else None


def is_path(path: str) -> bool:
    """Whether a path below the public folder is one of ours."""
    place = _PLACE.match(path)
    return bool(_FILE.fullmatch(path[place.end() :]) if place else _DERIVED.fullmatch(path))


def is_gone(path: str) -> bool:
    """Whether a path below the public folder is one that stores of form 1 had, and that this version does not write."""
    return _FORM_1.fullmatch(path) is not None and not is_path(path)
