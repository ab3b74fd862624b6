"""One way to compile a hot loop: cached on disk where that is possible, compiled in the process where it is not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """A function compiled to machine code on its first call; strict IEEE arithmetic, the same bytes every time.

    It lets other threads run meanwhile.
    """
    try:
        return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # nowhere to keep the cache
        return cast(Callable[P, R], numba.njit(nogil=True)(function))


def at_once(first: Callable[[], R], second: Callable[[], S]) -> tuple[R, S]:
    """What both give, each run in a thread of its own: for compiled functions, which then share two processors."""
    with ThreadPoolExecutor(1) as other:
        promised = other.submit(second)
        return first(), promised.result()
