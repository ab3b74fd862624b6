"""Processes that are started before there is work for them, because their imports take longer than the work.

`dphist release` has the catalogue built by a process of its own, which has read no record. It starts it before it
imports what it needs itself, so that a second processor imports at the same time. Such a process reads each task as a
line of JSON from standard input, answers with a line, and ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

Process = subprocess.Popen[str]
_waiting: dict[tuple[int, str], Process] = {}  # by the process that started it, since a fork must not share it


@contextmanager
def started_early(modules: Iterable[str]) -> Iterator[None]:
    """Starts modules as processes that wait for tasks, and ends them afterwards, whether they were used or not."""
    started = {(os.getpid(), module): start(module) for module in modules}
    _waiting.update(started)
    try:
        yield
    finally:
        for key, process in started.items():
            _waiting.pop(key, None)
            end(process)


def start(module: str) -> Process:
    """Starts a module as a process that waits for tasks.

    The environment is also part of the process's memory, so it gets no credentials.
    """
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
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
