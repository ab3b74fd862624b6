"""One way to compile a hot loop: cached on disk where that is possible, compiled in the process where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """A function compiled to machine code on its first call; strict IEEE arithmetic, the same bytes every time."""
    try:
        return cast(Callable[P, R], numba.njit(cache=True)(function))
    except RuntimeError:  # nowhere to keep the cache
        return cast(Callable[P, R], numba.njit(function))
