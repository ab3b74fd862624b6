"""Which ways through the code an input takes: steps from line to line, of chosen files only."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from yaml.parser import Parser

Edge = tuple[int, int, int]
# They make thousands of calls, and none of those comes back to code of ours.
APART: list[tuple[type, str]] = [
    *((Parser, name) for name in ("check_event", "peek_event", "get_event")),
    *((difflib.SequenceMatcher, name) for name in ("__init__", "set_seq1", "set_seq2", "quick_ratio", "ratio")),
]
# Called for every letter: a line of theirs says nothing new, and costs more than all else.
LEFT_OUT = {"_is_hidden", "<genexpr>", "_step"}


class Edges:
    """Steps (code, line before, line) seen so far, in the Python files below some folders.

    Code elsewhere is left at its first call, so that pydantic and the engines run at nearly their own speed.
    """

    def __init__(self, *folders: Path) -> None:
        self.seen: set[Edge] = set()
        self._below = tuple(f"{folder.resolve()}/" for folder in folders)
        self._numbers: dict[CodeType, int] = {}

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Sets no foot into what is `APART`: done once for many inputs."""
        with ExitStack() as stack:
            for owner, name in APART:
                stack.enter_context(patch.object(owner, name, self._untraced(getattr(owner, name))))
            yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Notes the steps of what runs inside, in this thread."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _untraced(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            tracing = sys.gettrace()
            sys.settrace(None)
            try:
                return work(*arguments, **named)
            finally:
                sys.settrace(tracing)

        return run

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        number = self._numbers.get(code)
        if number is None:
            watched = code.co_filename.startswith(self._below) and code.co_name not in LEFT_OUT
            number = self._numbers[code] = len(self._numbers) + 1 if watched else 0
        if not number:
            return None
        seen, line = self.seen, 0

        def stepped(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal line
            if event == "line":
                seen.add((number, line, frame.f_lineno))
                line = frame.f_lineno
            elif event == "exception":
                seen.add((number, line, -1))
            return stepped

        seen.add((number, 0, 0))
        return stepped
