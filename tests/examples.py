"""How many examples Hypothesis tries: up to a hundred in `make test`, all that a test asks for in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

MOST = 100
SOAKING = os.environ.get("DPHIST_SOAK") == "1"
Test = TypeVar("Test", bound=Callable[..., Any])


def examples(wanted: int, **more: Any) -> Callable[[Test], Test]:
    """Settings for that many examples without a deadline; more than `MOST` of them are tried by `make soak` only."""

    def decorate(test: Test) -> Test:
        limited: Test = settings(max_examples=wanted if SOAKING else min(wanted, MOST), deadline=None, **more)(test)
        return pytest.mark.many_examples(limited) if wanted > MOST else limited

    return decorate
