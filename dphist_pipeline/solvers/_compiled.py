"""Compiles hot loops with Numba, cached on disk where the folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function, compiled to machine code on its first call; strict IEEE arithmetic gives the same bytes every time.

    Other threads run while it does (`nogil`).

    Args:
        function: of numbers, arrays and tuples of them, as Numba takes them.
    """
    try:
        return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # there is no folder to keep the cache in
        return cast(Callable[P, R], numba.njit(nogil=True)(function))
