"""Processes that are started a moment before there is work for them, because their imports take longer than the work.

`dphist release` has the catalogue built by a process of its own, which has read no record. It is started once it is
known that records must be read, so that a second processor imports while the first one counts; a replay, or a run that
is refused, starts none. Such a process reads each task as a line of JSON from standard input, answers with a line, and
ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

CACHES = ("NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX")
Process = subprocess.Popen[str]
# By the process that allowed or started it, since a fork must not share it.
_allowed: dict[int, list[str]] = {}
_waiting: dict[tuple[int, str], Process] = {}


@contextmanager
def started_early(modules: Iterable[str]) -> Iterator[None]:
    """Lets `start_allowed` start modules as processes that wait for tasks, and ends them afterwards."""
    own = os.getpid()
    _allowed[own] = list(modules)
    try:
        yield
    finally:
        _allowed.pop(own, None)
        for key in [key for key in _waiting if key[0] == own]:
            end(_waiting.pop(key))


def start_allowed() -> None:
    """Starts what `started_early` allows, since there is work to come; nothing elsewhere, or a second time."""
    own = os.getpid()
    for module in _allowed.pop(own, []):
        _waiting[own, module] = start(module)


def start(module: str) -> Process:
    """Starts a module as a process that waits for tasks.

    The environment is also part of the process's memory, so it gets no credentials: only where programs and modules
    are, and where what was compiled is kept.
    """
    environment = {name: os.environ[name] for name in CACHES if name in os.environ}
    environment |= {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )


def waiting(module: str) -> Process | None:
    """The process of a module that was started early by this process; None if there is none."""
    return _waiting.get((os.getpid(), module))


def ask(process: Process, task: object) -> str:
    """Gives a process a task, and returns its answer: a line of JSON, or nothing if it failed."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except OSError:  # it has ended
        answer = ""
    if not answer:
        process.wait()
    return answer


def end(process: Process) -> int:
    """Ends a process, and returns its exit code."""
    process.kill()
    with suppress(OSError, ValueError):  # a task that it never read
        process.communicate()
    return process.wait()
