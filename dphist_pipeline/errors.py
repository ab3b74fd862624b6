"""The base class of all errors of this package, and hints for misspelt names.

An error keeps its facts as attributes and has one message: the problem, its place, and how to correct it. Before noise
is added, a message names columns, rules and declared bins, and never a value, a sample or a number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class DphistError(Exception):
    """The package refuses something or fails in a known way; the command line prints the message and exits with 1.

    Attributes:
        try_again: whether the same call may succeed later without anybody mending anything: a connection was lost, or
            something was in use. The command line then exits with 75.
        charged: whether the period that was asked for is charged; None where nobody asked for one, or nobody knows.
    """

    try_again: bool = False
    charged: bool | None = None

    @property
    def code(self) -> str:
        """A name for programs, such as `not_allowed`; texts may change, names stay."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def told(self) -> str:
        """The message, then whether anything was charged, and whether the same call may be tried again."""
        said = str(self)
        if self.charged is False and not _NOTHING.search(said):
            said = f"{_ended(said)} Nothing was charged."
        if self.charged:
            said = f"{_ended(said)} The period is charged, and this call never charges it again."
        return f"{_ended(said)} The same call may be tried again." if self.try_again else said

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, vars(self))


_NOTHING = re.compile(r"(nothing|neither)\b[^.]* (spent|charged|decided|changed)\b|spent nothing", re.IGNORECASE)


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _revived(kind: type[DphistError], args: tuple[Any, ...], facts: dict[str, Any]) -> DphistError:
    """Restores an error from another process; plain unpickling calls `__init__` with the message alone, and fails."""
    error = kind.__new__(kind, *args)
    vars(error).update(facts)
    return error


MOST_NAMED = 20


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A sentence that suggests known words: the nearest ones, else the first twenty.

    Returns:
        Empty if there are no known words.
    """
    choices = sorted(known)
    near = get_close_matches(str(word), choices, n=2, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    more = f" and {len(choices) - MOST_NAMED:,} more" if len(choices) > MOST_NAMED else ""
    return f"Known: {', '.join(choices[:MOST_NAMED])}{more}." if choices else ""


def first_of(names: Sequence[str], most: int) -> str:
    """The first names of a list, and how many more there are.

    Args:
        names: in order.
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
