"""Choices read off bytes, so that whoever changes bytes changes what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


class Choices:
    """Reads choices from the front of an input; where it has ended, every choice is the first."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def number(self, below: int) -> int:
        """A whole number from 0, below 65,536."""
        taken = self.bytes(1 if below <= 256 else 2)
        return int.from_bytes(taken, "little") % below

    def one_of(self, things: Sequence[Thing]) -> Thing:
        """One of some things."""
        return things[self.number(len(things))]

    def bytes(self, many: int) -> bytes:
        """The next bytes, as many as are left."""
        taken, self._left = self._left[:many], self._left[many:]
        return taken

    def rest(self) -> bytes:
        """All that is left."""
        return self._left
