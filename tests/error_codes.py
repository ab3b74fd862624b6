"""Tells apart errors that share a class: `pytest.raises(Refused, check=coded("where_refused"))`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.errors import LedgerError


def coded(code: str) -> Callable[[DphistError], bool]:
    """Whether an error has this name for programs."""
    return lambda error: error.code == code


def ledger_refuses(code: str, match: str | None = None) -> pytest.RaisesExc[LedgerError]:
    """Expects an error of a ledger or a witness that has this name for programs."""
    return pytest.raises(LedgerError, match=match, check=coded(code))
