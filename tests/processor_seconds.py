"""Processor seconds of every test, those of its child processes included.

A run writes them to `.tests/seconds.json`, and prints their sum; a long run prints it also as a multiple of
`benchmarks/fixed_task.py`, by which runs of two machines compare. `python tests/processor_seconds.py` lists the tests
of the last run above half a second (`make slow-tests`): each carries `@pytest.mark.slow`, or touches a promise that no
other test of `make test` touches.
Some costs fall on the test that happens to come first in its process: Numba compiles a solver, or reads it compiled,
modules are imported when they are needed first, and a store that several tests share is made. They are counted apart,
since any other test would pay them: what is shared under the name of its fixture, the rest in one sum.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[1]
SECONDS = PROJECT / ".tests" / "seconds.json"
LONG, LONG_RUN = 0.5, 60  # of a test, and of all
FIRST = "importing modules, and compiling and reading solvers, for whichever test needs them first"
_last = 0.0


class _FirstCalls:
    """Processor seconds of this process for what only its first caller pays."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0

    def enter(self) -> None:
        """Notes that something begins: an import imports others, and a compilation compiles others."""
        self.depth += 1
        if self.depth == 1:
            self.began = used()

    def leave(self) -> None:
        """Notes that it ends."""
        self.depth -= 1
        if not self.depth:
            self.seconds += used() - self.began

    def notify(self, event: Any) -> None:
        """Notes what Numba's compiler tells when it begins and ends."""
        (self.enter if event.is_start else self.leave)()

    def around(self, owner: Any, name: str) -> None:
        """Counts every call of a function that lies in `owner`."""
        inner = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.enter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.leave()

        setattr(owner, name, counted)

    def take(self) -> float:
        """What it was since this was last asked."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


_first_calls = _FirstCalls()
_shared = Counter[str]()  # by fixture, since the last report


def used() -> float:
    """Processor seconds of this process and of its children that ended; those of a fork server are not among them."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    """Counts what several tests share apart; a fixture that it asks for was set up before it."""
    if fixturedef.scope == "function":
        return (yield)
    before = used() - _first_calls.seconds
    made = yield
    spent = used() - _first_calls.seconds - before
    _shared[f"{request.node.nodeid or fixturedef.baseid}::{fixturedef.argname}"] += spent
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Notes what was used since the last report of this process."""
    global _last
    report: Any = yield
    report.first_calls, report.shared = _first_calls.take(), dict(_shared)
    _shared.clear()
    apart = report.first_calls + sum(report.shared.values())
    report.processor, _last = (used() - _last - apart if _last else 0.0), used()
    return report


def pytest_sessionstart() -> None:
    """What was used to start and collect is of no test; every worker of a whole run compiles something."""
    global _last
    _last = 0.0
    if "PYTEST_XDIST_WORKER" in os.environ:
        from numba.core import caching, event

        event.Listener.register(_FirstCalls)
        event.register("numba:compile", _first_calls)  # type: ignore[no-untyped-call]
        _first_calls.around(caching.Cache, "load_overload")
        # What `import` calls for a module that is not there yet.
        _first_calls.around(importlib._bootstrap, "_find_and_load")  # type: ignore[attr-defined]


def pytest_runtest_logstart() -> None:
    """From here on it is of a test."""
    global _last
    if not _last:
        _first_calls.take()
        _last = used()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Writes and prints the sums; of a run by several processes, those of all of them."""
    seconds = Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        seconds[str(getattr(report, "nodeid", ""))] += getattr(report, "processor", 0.0)
        seconds[FIRST] += getattr(report, "first_calls", 0.0)
        seconds.update(getattr(report, "shared", {}))
    if hasattr(terminalreporter.config, "workerinput") or not seconds:
        return
    SECONDS.parent.mkdir(exist_ok=True)
    SECONDS.write_text(json.dumps({name: round(spent, 3) for name, spent in seconds.most_common()}, indent=0) + "\n")
    total = sum(seconds.values())
    told = f"processor seconds of all tests: {total:.0f}"
    if total > LONG_RUN:
        task = [sys.executable, PROJECT / "benchmarks" / "fixed_task.py"]
        fixed = float(subprocess.run(task, capture_output=True, text=True, check=True).stdout)
        told += f", {total / fixed:,.0f} times the fixed task of {fixed:.3f} s"
    terminalreporter.write_line(told)


def main() -> None:
    """Lists the tests of the last run above half a second."""
    seconds = json.loads(SECONDS.read_text())
    first = seconds.pop(FIRST, 0.0)
    tests = {name: spent for name, spent in seconds.items() if name.partition("::")[2].startswith("test_")}
    long = {name: spent for name, spent in tests.items() if spent > LONG}
    for name, spent in long.items():
        print(f"{spent:6.2f}  {name}")
    print(f"{len(long)} of {len(tests)} tests above {LONG} s; {sum(tests.values()):.0f} s in all")
    print(f"{sum(seconds.values()) - sum(tests.values()):.0f} s more: what several tests share, in every process anew")
    print(f"{first:.0f} s more: {FIRST}")


if __name__ == "__main__":
    main()
