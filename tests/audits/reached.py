"""Which tests reach which functions, so that a mutation is first tried on those that can notice it.

A run without any mutation says what each test calls and how long it takes, and is kept in `.soak/reached.json`. It may
be out of date or miss what another process calls: a mutation that its chosen tests miss is tried on all its tests.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

ENOUGH = 20.0  # seconds of tests that are chosen


class Seen(NamedTuple):
    """What one test does: its seconds, and the functions of watched files that it calls, as `file:name`."""

    seconds: float
    called: frozenset[str]


class Watch:
    """A plugin of pytest that notes what each test calls.

    Args:
        project: the folder of the code.
        files: watched, below `project`.
        kept: a file of JSON to write at the end.
    """

    def __init__(self, project: Path, files: Collection[str], kept: Path) -> None:
        self.names, self.kept = {str(project / file): file for file in files}, kept
        self.seconds: dict[str, float] = defaultdict(float)
        self.called: dict[str, set[str]] = defaultdict(set)
        self.prepared: dict[str, set[str]] = defaultdict(set)  # by test file: what its fixtures call
        self.now: set[str] = set()

    def noted(self, frame: FrameType, event: str, argument: object) -> None:
        """Told of every call by Python; nothing is told of the lines in it."""
        code = frame.f_code
        if (file := self.names.get(code.co_filename)) is not None:
            self.now.add(f"{file}:{code.co_qualname}")

    def pytest_sessionstart(self) -> None:
        """Watches from now on, in threads too."""
        threading.settrace(self.noted)  # type: ignore[arg-type]
        sys.settrace(self.noted)  # type: ignore[arg-type]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """A fixture may be made once for many tests: what it calls counts for all of a file."""
        return (yield from self._phase(item, self.prepared[str(item.path)]))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Notes what the test calls itself."""
        self.called[item.nodeid] |= self.prepared[str(item.path)]
        return (yield from self._phase(item, self.called[item.nodeid]))

    def _phase(self, item: pytest.Item, called: set[str]) -> Iterator[None]:
        self.now, begun = called, time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] += time.perf_counter() - begun

    def pytest_sessionfinish(self) -> None:
        """Writes what was noted."""
        sys.settrace(None)
        found = {test: [round(self.seconds[test], 4), sorted(called)] for test, called in self.called.items()}
        self.kept.write_text(json.dumps(found), encoding="utf-8")


class First:
    """A plugin of pytest that runs some tests first, in their order.

    Args:
        tests: of any files.
        alone: leave out all others.
    """

    def __init__(self, tests: Collection[str], alone: bool = False) -> None:
        self.places, self.alone = {test: place for place, test in enumerate(tests)}, alone

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sorts what was not left out by marks."""
        kept = [item for item in items if item.nodeid in self.places] if self.alone else items
        items[:] = sorted(kept, key=lambda item: self.places.get(item.nodeid, len(self.places)))


def function_at(text: str, old: str) -> str:
    """The qualified name of the function that a text of Python's begins in; empty outside of functions."""
    line = text[: text.index(old)].count("\n") + 1
    return _innermost(ast.parse(text).body, line, "")


def _innermost(nodes: list[ast.stmt], line: int, above: str) -> str:
    for node in nodes:
        if not node.lineno <= line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.ClassDef):
            return _innermost(node.body, line, f"{above}{node.name}.")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{above}{node.name}"
            return _innermost(node.body, line, f"{name}.<locals>.") or name
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)]
        return _innermost(inner, line, above)
    return ""


def chosen(seen: Mapping[str, Seen], tests: Collection[str], file: str, function: str | None) -> list[str]:
    """The tests to try first on a mutation: the quickest that call what it changes, of `ENOUGH` seconds.

    Tests of one file follow each other, since they share fixtures.

    Args:
        seen: by test, what it does.
        tests: files below `tests`, or tests in them, of which to choose.
        file: that is changed.
        function: in the file; empty for code outside of functions, None if calls are not seen.
    """
    own = tuple(f"tests/{test}" for test in tests)
    able = sorted((one.seconds, test) for test, one in seen.items() if _of(test, own) and _calls(one, file, function))
    spent: dict[str, list[str]] = defaultdict(list)
    left = ENOUGH
    for place, (seconds, test) in enumerate(able):
        left -= seconds
        if place and left < 0:
            break
        spent[test.partition("::")[0]].append(test)
    return [test for found in spent.values() for test in found]


def _of(test: str, own: tuple[str, ...]) -> bool:
    return any(test == one or test.startswith((f"{one}::", f"{one}[")) for one in own)


def _calls(one: Seen, file: str, function: str | None) -> bool:
    if function is None:
        return True
    return f"{file}:{function}" in one.called if function else any(name.startswith(f"{file}:") for name in one.called)


def read(kept: Path) -> dict[str, Any]:
    """What earlier runs saw, by the digest of tests and code."""
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    return found


def seen_by(rows: Mapping[str, Any]) -> dict[str, Seen]:
    """What one run saw, from its JSON."""
    return {test: Seen(seconds, frozenset(called)) for test, (seconds, called) in rows.items()}
