"""The tree of errors: its branches say whether anything was charged, and whether the same call may be tried again.

    DphistError
      Refused     nothing was charged by this call; the same call is refused again until something is corrected
      AfterCharge the period is charged, by this call or an earlier one, and is never charged again
      Halted      it may have been charged, or not; the same call goes on, once what the message names is mended
        TryAgain  the same, and nobody needs to mend anything: the same call may be tried again

An error of its own class is one that somebody catches by name; others are told apart by their `code`. An error keeps
its facts as attributes and has one message: the problem, its place, and how to correct it. Before noise is added, a
message names columns, rules and declared bins, and never a value, a sample or a number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class DphistError(Exception):
    """The package refuses something or fails in a known way; the command line prints the message and exits with 1.

    Args:
        code: by default the name of the class, as `not_allowed`.
        facts: kept as attributes.

    Attributes:
        code: a name for programs; texts may change, names stay.
        try_again: whether the same call may succeed later without anybody mending anything: a connection was lost, or
            something was in use. The command line then exits with 75.
        charged: whether the period that was asked for is charged; None where nobody asked for one, or nobody knows.
    """

    code: str
    try_again: bool = False
    charged: bool | None = None

    def __init__(self, message: str = "", *, code: str = "", **facts: object) -> None:
        self.code = code or re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()
        vars(self).update(facts)
        super().__init__(message)

    @property
    def told(self) -> str:
        """The message, then whether anything was charged, and whether the same call may be tried again."""
        text = str(self)
        if self.charged is False and not _NOTHING.search(text):
            text = f"{_ended(text)} Nothing was charged."
        if self.charged:
            text = f"{_ended(text)} The period is charged, and this call never charges it again."
        return f"{_ended(text)} The same call may be tried again." if self.try_again else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args, vars(self))


class Refused(DphistError):
    """A call that is not carried out as it was made: its words, a spec, a decision or a public file stand against it.

    Was anything charged? Not by this call. May the same call be tried again? It is refused again, until what the
    message names is corrected.
    """


class AfterCharge(DphistError):
    """A period whose charge was made, and that gives no other result.

    Was anything charged? Yes, by this call or an earlier one. May the same call be tried again? It charges no more, and
    goes on only once what the message names was done; some periods are released only as a new revision, at its price.
    """


class Halted(DphistError):
    """Something that a call needs is missing, damaged or at fault, which may come to light before a charge or after it.

    Was anything charged? Perhaps: `charged` says so where a release asked the ledger. May the same call be tried again?
    Once what the message names is mended; it goes on where it stopped, and never charges twice.
    """


class TryAgain(Halted):
    """Something was in use, or a connection was lost.

    Was anything charged? Perhaps, as for `Halted`. May the same call be tried again? Yes, as it is; it never charges
    twice. The command line exits with 75, and Dagster tries again within the step.
    """

    try_again = True


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
    near = [choice for choice in choices if choice.casefold() == str(word).casefold()][:2]
    near = near or get_close_matches(str(word), choices, n=2, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    # One more word is shorter than "and 1 more".
    most = MOST_NAMED if len(choices) > MOST_NAMED + 1 else len(choices)
    more = f" and {len(choices) - most:,} more" if len(choices) > most else ""
    return f"Known: {', '.join(choices[:most])}{more}." if choices else ""


def first_of(names: Sequence[str], most: int) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


IN_THE_ARCHIVE = frozenset({"dagster", "export", "postgresql", "bucket"})


def how_to_install(extra: str = "") -> str:
    """How somebody gets the program, or one of its extras: from a checkout, or from the archive for offices.

    The program is in no public index of packages: its name there would be anybody's to take, so no message asks for it.

    Args:
        extra: a name in `pyproject.toml`; empty for the program alone.
    """
    checkout = f"in a checkout of its repository, pip install -c constraints.txt '.{f'[{extra}]' if extra else ''}'"
    if extra and extra not in IN_THE_ARCHIVE:
        return f"{checkout}; the archive for machines without network leaves it out"
    without = " without --command-line" if extra else ""
    return f"{checkout}; from the archive for machines without network, sh install.sh{without} and a new folder"
