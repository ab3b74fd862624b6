"""Noise, bounding keys and seeds of tests are recorded: the same for a test in every run, in any order, on any worker.

The sampler and the counts ask the operating system for keys, as shipped. In the process of the tests, and nowhere else,
the operating system's functions answer these few callers from a stream that is derived from the test's name. A test
marked `@pytest.mark.draws("LAW, BOUND")` draws really: it fails by chance with a probability of BOUND, at most 1e-7.
Processes that a test starts draw really, too. Other random ids (uuid, tokens, nonces, signing keys) are always real.
Tests of a module marked `draws_alike` all begin with the same stream: charts of equal numbers are drawn once
in a process. It is for modules whose subject is no number.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

MOST_BOUND = 1e-7
PACKAGE = "dphist_pipeline"
# These ask the operating system for what decides a draw.
DRAWERS = {
    f"{PACKAGE}.base.random_words": "noise",
    f"{PACKAGE}.confidential.cube": "a bounding key",
    f"{PACKAGE}.confidential.engines.spark": "a bounding key",
    f"{PACKAGE}.applications.synthetic_records": "a seed of synthetic records",
}
# No other module of these folders may; a journal's nonce is a random id.
DRAWING = tuple(f"{PACKAGE}.{folder}." for folder in ("confidential", "estimates", "local", "mechanisms", "solvers"))
RANDOM_IDS = {f"{PACKAGE}.confidential.journal"}
TESTS = str(Path(__file__).parent)
HOW = '@pytest.mark.draws("LAW, BOUND"), such as @pytest.mark.draws("two-sided geometric, 1e-9")'


class DrawnStream:
    """Bytes as good as the operating system's, and the same for the same name."""

    def __init__(self, name: str) -> None:
        self.name, self._given, self._lock = name, 0, threading.Lock()

    def __call__(self, size: int) -> bytes:
        with self._lock:
            self._given += 1
            asked = f"{self._given} {self.name}".encode()
        return hashlib.shake_256(asked).digest(size)


# What answers at the moment: the last stream, or None for the operating system.
_sources: list[DrawnStream | None] = [DrawnStream("outside of tests")]
_process = os.getpid()


def law_and_bound(marker: str) -> tuple[str, float]:
    """The law of a test's draws, and the bound of the probability that it fails by chance.

    Args:
        marker: "LAW, BOUND".

    Raises:
        ValueError: if there is no law, or no bound from above 0 to 10^-7.
    """
    law, _, written = marker.rpartition(",")
    bound = float(written) if re.fullmatch(r"\s*[0-9.]+(e-[0-9]+)?\s*", written) else 0.0
    if not re.search("[a-z]{3}", law) or not 0 < bound <= MOST_BOUND:
        raise ValueError(f"{marker!r} does not say a law and a bound of at most {MOST_BOUND:g}: write {HOW}")
    return law.strip(), bound


def _answering(real: Callable[[int], bytes]) -> Callable[..., bytes]:
    @wraps(real)
    def answer(size: int = 32) -> bytes:
        asking = sys._getframe(1)
        module = str(asking.f_globals.get("__name__"))
        if os.getpid() != _process or _sources[-1] is None:
            return real(size)
        if module in DRAWERS or asking.f_code.co_filename.startswith(TESTS):
            return _sources[-1](size)
        if module.startswith(DRAWING) and module not in RANDOM_IDS:
            pytest.fail(
                f"{module} asked the operating system for random bytes in a test that did not say that it draws. "
                f"Draw through `random_words`, which tests record; or mark the test {HOW}.",
                pytrace=False,
            )
        return real(size)

    return answer


@contextmanager
def drawn_from(name: str | None) -> Iterator[None]:
    """Inside, draws come from the stream of that name, from its start.

    Args:
        name: None for the operating system.
    """
    _warm_up()
    _sources.append(None if name is None else DrawnStream(name))
    try:
        yield
    finally:
        _sources.pop()


def _warm_up() -> None:
    """Runs the samplers' self-tests, which draw at first use only: no test's stream may depend on who was first."""
    from dphist_pipeline.confidential import noise
    from dphist_pipeline.local import _coins as coins

    if noise._self_test.cache_info().currsize and coins._self_test.cache_info().currsize:
        return
    _sources.append(DrawnStream("self-tests"))
    try:
        noise._self_test()
        coins._self_test()
    finally:
        _sources.pop()


def _name(node: Any) -> str | None:
    """The stream of a test, or of a module whose fixture draws; None if it asked for real draws."""
    if node.get_closest_marker("draws"):
        return None
    return "alike" if node.get_closest_marker("draws_alike") else str(node.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker, and answers for the operating system from here on."""
    config.addinivalue_line("markers", 'draws("LAW, BOUND"): draws really, and fails by chance with BOUND at most')
    config.addinivalue_line("markers", "draws_alike: all tests of a module begin with the same draws")
    if not hasattr(os.urandom, "__wrapped__"):
        os.urandom = _answering(os.urandom)
        secrets.token_bytes = _answering(secrets.token_bytes)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses markers without law or bound; each example of a test by examples starts a stream of its own."""
    for item in items:
        for marker in item.iter_markers("draws"):
            try:
                law_and_bound(*marker.args)
            except (TypeError, ValueError) as refusal:
                raise pytest.UsageError(f"{item.nodeid}: {refusal}") from None
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            _by_examples(getattr(test, "__func__", test).hypothesis)


def _by_examples(handle: Any) -> None:
    inner = handle.inner_test
    if hasattr(inner, "draws_by_example"):
        return

    @wraps(inner)
    def example(*args: Any, **values: Any) -> Any:
        source = _sources[-1]
        if source is None:
            return inner(*args, **values)
        generated = {name: value for name, value in values.items() if name in handle._given_kwargs}  # no fixtures
        written = re.sub("0x[0-9a-f]+", "", repr(generated))  # no addresses
        with drawn_from(f"{source.name} {written}"):
            return inner(*args, **values)

    example.draws_by_example = True  # type: ignore[attr-defined]
    handle.inner_test = example


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test, with its own fixtures, draws from its own stream."""
    with drawn_from(_name(item)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """What tests share draws from a stream of its own, whichever test asks first."""
    if fixturedef.scope == "function":
        return (yield)
    name = _name(request.node)
    with drawn_from(name and f"{name} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)
