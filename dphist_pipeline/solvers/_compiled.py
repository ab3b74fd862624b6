"""Compiles hot loops with Numba, cached on disk where the folder can be written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

P = ParamSpec("P")
R = TypeVar("R")
SOLVERS = Path(__file__).parent


def compile_function(function: Callable[P, R]) -> Callable[P, R]:
    """The function, compiled to machine code on its first call; strict IEEE arithmetic gives the same bytes every time.

    Other threads run while it does (`nogil`).
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    with suppress(RuntimeError):  # there is no folder to keep the cache in
        dispatcher._cache = _Cache(function)  # what `cache=True` does, with a cache of its own
    return cast(Callable[P, R], dispatcher)


class _Cache(FunctionCache):
    """Numba's cache, for these very sources.

    Numba looks at the file of a function alone. Machine code of other files' functions is part of what it keeps: after
    an upgrade in place it would go on to use these as they were, or fail where such a file has another name now.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        name, stamp = f"{self._impl.filename_base}.{digest(SOLVERS)}", self._impl.locator.get_source_stamp()
        self._cache_file = IndexDataCacheFile(self._cache_path, name, stamp)  # type: ignore[no-untyped-call]


@cache
def digest(folder: Path) -> str:
    """Eight bytes of the digest of all Python files below a folder, in hex: their places and their content."""
    sha256 = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        for part in (path.relative_to(folder).as_posix().encode(), path.read_bytes()):
            sha256.update(len(part).to_bytes(8, "big") + part)
    return sha256.hexdigest()[:16]
