"""Errors of a release say whether its period is charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing.stages import Attempt


@contextmanager
def nothing_charged() -> Iterator[None]:
    """Marks errors of what comes before a charge."""
    try:
        yield
    except DphistError as error:
        error.charged = False
        raise


@contextmanager
def marking_charges(attempt: Attempt) -> Iterator[None]:
    """Marks errors of an attempt with whether its period is charged, by this call or an earlier one.

    Args:
        attempt: see `stages.begin`.
    """
    try:
        yield
    except DphistError as error:
        error.charged = _is_charged(attempt)
        raise


def _is_charged(attempt: Attempt) -> bool | None:
    """None where the ledger cannot be asked: a charge that was under way may have been made."""
    if attempt.charge is not None:
        return True
    try:
        made = attempt.ledger.charges(attempt.key.release, attempt.key.period)
    except DphistError:
        return None
    return any(charge.revision == attempt.key.revision for charge in made)
