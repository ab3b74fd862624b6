"""What can go wrong, said once: each error keeps its culprit as data and writes one message.

A message says what, where and how to mend it. Before noise it names columns, rules and declared bins,
never a value, a sample or a number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class DphistError(Exception):
    """Anything that this package refuses or fails at on purpose: exit code 1, one message."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, vars(self))


def _revived(kind: type[DphistError], args: tuple[Any, ...], facts: dict[str, Any]) -> DphistError:
    """An error sent from another process: unpickling alone would call `__init__` with the message only, and fail."""
    error = kind.__new__(kind, *args)
    vars(error).update(facts)
    return error


MOST_NAMED = 20


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A sentence that names the nearest known words, or all of them (the first twenty) when none is near."""
    choices = sorted(known)
    near = get_close_matches(str(word), choices, n=2, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    more = f" and {len(choices) - MOST_NAMED:,} more" if len(choices) > MOST_NAMED else ""
    return f"Known: {', '.join(choices[:MOST_NAMED])}{more}." if choices else ""
