"""Makes collecting cheap: every process of a run collects all tests, of which there are 17,000."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

gc.disable()  # until tests are collected: what is made meanwhile stays


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Every second worker imports test files from the last to the first, before it collects them like all others.

    pytest rewrites and compiles each file once and keeps it on disk: so each of two workers does half of them.
    """
    if int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2:
        for path in sorted(
            (path for one in session.config.args for path in Path(one).rglob("test_*.py")), reverse=True
        ):
            if sys.path[0] != str(path.parent):
                sys.path.insert(0, str(path.parent))
            with suppress(Exception, pytest.skip.Exception):  # collecting tells what is wrong with it
                importlib.import_module(path.stem)


def pytest_collection_finish() -> None:
    """What was collected is no garbage: to look through 600,000 objects takes a third of a second each time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)  # modules that tests import are looked through each time, too
    gc.enable()


def pytest_sessionfinish() -> None:
    """At the end they are, or libraries would tell of leaks."""
    gc.unfreeze()
