"""Tells apart errors that share a class: `pytest.raises(Refused, check=coded("where_refused"))`."""

from __future__ import annotations

from collections.abc import Callable

from dphist_pipeline.errors import DphistError


def coded(code: str) -> Callable[[DphistError], bool]:
    """Whether an error has this name for programs."""
    return lambda error: error.code == code
