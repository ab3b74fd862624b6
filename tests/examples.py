"""Which examples a test tries: some, the same in every run, in `make test`; all that it asks for in `make soak`.

`make soak` draws its examples anew: what it finds becomes an `@example` of the test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

MOST = 20
SOAKING = os.environ.get("DPHIST_SOAK") == "1"
# For tests that say nothing of it: neither how busy a machine is nor chance fails one. conftest.py has `make soak` try
# all of these.
settings.register_profile("here", deadline=None, **({} if SOAKING else {"max_examples": MOST, "derandomize": True}))
settings.load_profile("here")
Test = TypeVar("Test", bound=Callable[..., Any])


def examples(wanted: int, **more: Any) -> Callable[[Test], Test]:
    """Settings for that many examples without a deadline; more than `MOST` of them are tried by `make soak` only."""

    def decorate(test: Test) -> Test:
        limited: Test = settings(max_examples=wanted if SOAKING else min(wanted, MOST), deadline=None, **more)(test)
        return pytest.mark.many_examples(limited) if wanted > MOST else limited

    return decorate


def mostly_soaked(cases: Iterable[Any], kept: Collection[int]) -> list[Any]:
    """Cases of a test, of which `make soak` tries all but those at the places `kept`: they are tried by `make test`."""
    return _mostly(cases, kept, pytest.mark.soak)


def mostly_audited(cases: Iterable[Any], kept: Collection[int]) -> list[Any]:
    """As `mostly_soaked`, but the others are tried by `make audit`."""
    return _mostly(cases, kept, pytest.mark.audit)


def _mostly(cases: Iterable[Any], kept: Collection[int], mark: pytest.MarkDecorator) -> list[Any]:
    whole = [case if type(case) is tuple else (case,) for case in cases]
    return [pytest.param(*one, marks=() if place in kept else mark) for place, one in enumerate(whole)]
