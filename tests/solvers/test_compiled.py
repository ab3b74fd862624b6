"""Two calls at once."""

from __future__ import annotations

import threading

import pytest

from dphist_pipeline.solvers.compiled import at_once


def test_both_run_at_the_same_time_and_each_gives_its_own() -> None:
    both = threading.Barrier(2, timeout=30)
    assert at_once(lambda: (both.wait(), "first")[1], lambda: (both.wait(), "second")[1]) == ("first", "second")


def fails() -> None:
    raise ArithmeticError("of one")


def test_what_fails_in_either_fails_for_the_caller() -> None:
    for calls in ((fails, int), (int, fails)):
        with pytest.raises(ArithmeticError, match="of one"):
            at_once(*calls)
