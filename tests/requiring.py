"""A test that needs what is not installed: it skips with a word, or fails where the environment promised it."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(named: str, problem: str) -> NoReturn:
    """Skips; fails if `DPHIST_REQUIRE` has the name of what is missing.

    Args:
        named: as in that variable, whose names are parted by commas.
        problem: what is not installed.
    """
    if named in os.environ.get("DPHIST_REQUIRE", "").split(","):
        pytest.fail(f"{problem}, and DPHIST_REQUIRE names {named}")
    pytest.skip(problem)
