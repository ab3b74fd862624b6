"""How Polars runs wherever it works on records: in memory, silently, and for one caller at a time."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

# A process has one environment and one standard error.
ONE_AT_A_TIME = threading.Lock()
UNLIMITED = {"POLARS_OOC_MEMORY_BUDGET_MB": str(1 << 40), "POLARS_OOC_MEMORY_BUDGET_FRACTION": str(1 << 20)}


@contextmanager
def guarded_polars() -> Iterator[None]:
    """Polars works for one caller at a time, in memory alone, and shows nothing."""
    with ONE_AT_A_TIME, _nothing_spilled(), _silence():
        yield


@contextmanager
def _nothing_spilled() -> Iterator[None]:
    """Polars keeps what it works on in memory, which is bounded: else it may write some to `/var/tmp`."""
    before = {name: os.environ.get(name) for name in UNLIMITED}
    pl.Config.load(json.dumps({"environment": UNLIMITED}))
    try:
        yield
    finally:
        pl.Config.load(json.dumps({"environment": before}))


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing reaches this process's standard error: Polars writes there what it panics about, and plans if asked to.

    Its panics go past Python, so the file descriptor itself is led elsewhere.
    """
    try:
        before = os.dup(2)
    except OSError:  # a process without a standard error shows nothing
        before = -1
    if before == -1:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
