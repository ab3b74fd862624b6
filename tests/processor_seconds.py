"""Processor seconds of every test, those of its child processes included, and which tests `make test` leaves out.

A run writes them to `.tests/seconds.json`. `slow_tests.txt` names the tests that only `make test-all` runs;
`kept_tests.txt` those above half a second that `make test` runs all the same, each with the promise that it alone
touches. `python tests/processor_seconds.py` compares the two with the last run (`make slow-tests`).
Numba compiles a solver for the test that happens to call it first; in a cold clone this takes some forty seconds. They
are counted apart, since they are of no test and any other test would pay them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
SECONDS = TESTS.parent / ".tests" / "seconds.json"
SLOW, KEPT = TESTS / "slow_tests.txt", TESTS / "kept_tests.txt"
LONG, MOST_KEPT = 0.5, 60
COMPILING = "compiling solvers, for whichever test calls them first"
_last = 0.0


class _Compiling:
    """Processor seconds that Numba's compiler took in this process, by its own events."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """Notes when the outermost compilation begins and ends; one compilation calls others."""
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.began = used()
        elif event.is_end and self.depth == 0:
            self.seconds += used() - self.began

    def take(self) -> float:
        """What it was since this was last asked."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


_compiling = _Compiling()


def used() -> float:
    """Processor seconds of this process and of its children that ended; those of a fork server are not among them."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def slow_tests() -> set[str]:
    """The tests that `make test` leaves out: node ids, or those without parameters for all cases of a test."""
    return set(SLOW.read_text(encoding="utf-8").splitlines()) if SLOW.exists() else set()


def kept_tests() -> dict[str, str]:
    """The tests above half a second that `make test` runs, by node id: what promise each touches."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    return {name: promise for name, _, promise in (line.partition("  ") for line in lines)}


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is listed as slow."""
    slow = slow_tests()
    for item in items:
        if item.nodeid in slow or item.nodeid.partition("[")[0] in slow:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Notes what was used since the last report of this process."""
    global _last
    report: Any = yield
    report.compiling = _compiling.take()
    report.processor, _last = (used() - _last - report.compiling if _last else 0.0), used()
    return report


def pytest_sessionstart() -> None:
    """What was used to start and collect is of no test; every worker of a whole run compiles something."""
    global _last
    _last = 0.0
    if "PYTEST_XDIST_WORKER" in os.environ:
        from numba.core import event

        event.Listener.register(_Compiling)
        event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


def pytest_runtest_logstart() -> None:
    """From here on it is of a test."""
    global _last
    _last = _last or used()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Writes and prints the sums; of a run by several processes, those of all of them."""
    seconds = Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        seconds[str(getattr(report, "nodeid", ""))] += getattr(report, "processor", 0.0)
        seconds[COMPILING] += getattr(report, "compiling", 0.0)
    if hasattr(terminalreporter.config, "workerinput") or not seconds:
        return
    SECONDS.parent.mkdir(exist_ok=True)
    SECONDS.write_text(json.dumps({name: round(spent, 3) for name, spent in seconds.most_common()}, indent=0) + "\n")
    terminalreporter.write_line(f"processor seconds of all tests: {sum(seconds.values()):.0f}")


def main() -> int:
    """Lists the tests of the last run of `make test` above half a second; 1 where one is unnamed, or there are many."""
    seconds, kept = json.loads(SECONDS.read_text()), kept_tests()
    compiling, slow = seconds.pop(COMPILING, 0.0), slow_tests()
    ran = {name: spent for name, spent in seconds.items() if not {name, name.partition("[")[0]} & slow}
    long = {name: spent for name, spent in ran.items() if spent > LONG}
    for name, spent in long.items():
        print(f"{spent:6.2f}  {name}  {kept.get(name, 'NOT NAMED in tests/kept_tests.txt')}")
    print(f"{len(long)} of {len(ran)} tests above {LONG} s, of {MOST_KEPT} at most; {sum(ran.values()):.0f} s in all")
    print(f"{compiling:.0f} s more: {COMPILING}")
    return int(len(long) > MOST_KEPT or not long.keys() <= kept.keys())


if __name__ == "__main__":
    sys.exit(main())
