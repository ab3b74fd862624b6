"""Draws that are the same in every run: no test passes or fails by chance.

Noise, coins and bounding keys of the test's own process come from a stream that follows from the test's name alone: the
cipher is the real one, only its keys are recorded. A fixture that several tests share has a stream of its own. A test
that needs the operating system's source says which law it tests, and bounds the probability that it fails by chance:
`@pytest.mark.draws("two-sided geometric", 1e-9)`, at most 10^-7. Child processes draw really: tests assert nothing of
them that a draw decides. Random ids and signing keys are real everywhere.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from dphist_pipeline import random_words
from dphist_pipeline.confidential import cube

MOST = 1e-7  # probability that a test fails by chance


class Recorded:
    """Stands in for the operating system's source of keys."""

    def __init__(self) -> None:
        self.name, self.given, self.real, self.process = "", 0, False, os.getpid()

    def start(self, name: str, real: bool = False) -> None:
        """Begins the stream of a name; of a test that is to draw really, the operating system's."""
        self.name, self.given, self.real = name, 0, real

    def __call__(self, size: int) -> bytes:
        # A process that was forked would repeat what its parent draws.
        if self.real or os.getpid() != self.process or not self.name:
            return os.urandom(size)
        self.given += 1
        return hashlib.shake_256(f"{self.name} {self.given}".encode()).digest(size)

    @contextmanager
    def switched(self, name: str) -> Iterator[None]:
        """Another stream for a while."""
        before = self.name, self.given, self.real
        self.start(name)
        try:
            yield
        finally:
            self.name, self.given, self.real = before


RECORDED = Recorded()


def pytest_configure() -> None:
    """Puts the recorded source where keys are asked for; no configuration of the program can."""
    random_words.os = SimpleNamespace(**{**vars(os), "urandom": RECORDED})  # type: ignore[attr-defined]
    cube.secrets = SimpleNamespace(**{**vars(secrets), "token_bytes": RECORDED})  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins the stream of a test, before its fixtures."""
    marker = item.get_closest_marker("draws")
    if marker is not None:
        law, bound = marker.args
        assert law and 0 <= bound <= MOST, f"{item.nodeid}: fails by chance with a probability of {bound}"
    RECORDED.start(item.nodeid, real=marker is not None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Fixtures that tests share draw the same whichever test asks first."""
    if fixturedef.scope == "function":
        return (yield)
    with RECORDED.switched(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """What is drawn after a test is nobody's."""
    RECORDED.start("")
