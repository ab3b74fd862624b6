"""The grammar of `dphist answer --where`: conditions on axes, joined by `and`.

age in [60, 80)            a half-open range, in axis units
age >= 60    age < 80      one end of a range; > and <= are refused, and the message names the end to use
day >= 2026-03-02          days on a calendar axis
ward = 'surgery'           a category, also with ==; a plain word needs no quotes
ward in ('surgery', 'medicine')
ward is other              the cell for null and undeclared values; also `ward = other`, unless a category has that name
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta

from dphist_pipeline.answering.chosen_cells import Condition
from dphist_pipeline.errors import DphistError

LONGEST = 2_000
_TOKEN = re.compile(
    r"\s*(?:(?P<day>\d{4}-\d{2}-\d{2})(?!\w)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|'(?P<text>(?:[^']|'')*)'"
    r"|(?P<sign>>=|<=|==|[=<>\[\](),]))",
)


class WhereRefused(DphistError):
    """The text of `--where` does not follow the grammar."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"--where: {problem}. It takes conditions joined by `and`, as in "
            "\"age in [60, 80) and ward = 'surgery'\"; also >=, <, in ('a', 'b'), is other."
        )


def parse_where(where: str) -> dict[str, Condition]:
    """The box that a `--where` text describes: condition by name of axis.

    Args:
        where: conditions joined by `and`; not empty.

    Raises:
        WhereRefused: the text does not follow the grammar; the message names the place.
    """
    if len(where) > LONGEST:
        raise WhereRefused(where, f"is longer than {LONGEST} characters")
    return _Parser(where).box()


class _Parser:
    def __init__(self, where: str) -> None:
        self._where = where
        self._tokens = list(self._read())
        self._next = 0
        self._box: dict[str, Condition] = {}

    def box(self) -> dict[str, Condition]:
        while True:
            self._condition()
            if self._peek() == ("end", ""):
                return self._box
            self._expect("word", "and")

    def _condition(self) -> None:
        axis = self._take("word")
        kind, sign = self._peek()
        self._next += 1
        if kind == "word" and sign.lower() == "in":
            self._in(axis)
        elif kind == "word" and sign.lower() == "is":
            self._expect("word", "other")
            self._add(axis, None)
        elif sign in ("=", "=="):
            self._add(axis, self._category())
        elif sign == ">=":
            self._end(axis, 0, self._number_or_day())
        elif sign == "<":
            self._end(axis, 1, self._number_or_day())
        elif sign in (">", "<="):
            mend = f"{axis} {'>=' if sign == '>' else '<'} {_next(*self._peek())}"
            raise WhereRefused(
                self._where,
                f"'{axis} {sign}' is not known, since ranges hold their lower end and not their upper one; use >= and "
                f"<, as in `{mend}`, or a range, as in `{axis} in [low, high)`",
            )
        else:
            raise WhereRefused(self._where, f"after '{axis}' one of in, is, =, >=, < is expected")

    def _in(self, axis: str) -> None:
        if self._peek() == ("sign", "["):
            self._next += 1
            low = self._number_or_day()
            self._expect("sign", ",")
            high = self._number_or_day()
            self._expect("sign", ")")
            self._add(axis, (low, high))
            return
        self._expect("sign", "(")
        listed = [self._category()]
        while self._peek() == ("sign", ","):
            self._next += 1
            listed.append(self._category())
        self._expect("sign", ")")
        self._add(axis, listed)

    def _end(self, axis: str, side: int, value: float | str) -> None:
        """Adds one end of a range; another condition may add the other end."""
        ends = self._box.get(axis, (None, None))
        if not isinstance(ends, tuple) or ends[side] is not None:
            raise WhereRefused(self._where, f"'{axis}' has two conditions that do not go together")
        self._box[axis] = (value, ends[1]) if side == 0 else (ends[0], value)

    def _add(self, axis: str, wanted: Condition) -> None:
        if axis in self._box:
            raise WhereRefused(self._where, f"'{axis}' has two conditions; join them into one")
        self._box[axis] = wanted

    def _category(self) -> str:
        kind, text = self._peek()
        if kind not in ("text", "word", "number", "day"):
            raise WhereRefused(self._where, "a category is expected, as in 'surgery'")
        self._next += 1
        return text

    def _number_or_day(self) -> float | str:
        return self._take("day") if self._peek()[0] == "day" else float(self._take("number"))

    def _take(self, kind: str) -> str:
        found, text = self._peek()
        if found != kind:
            raise WhereRefused(self._where, f"a {'name' if kind == 'word' else kind} is expected{self._here()}")
        self._next += 1
        return text

    def _expect(self, kind: str, text: str) -> None:
        found, word = self._peek()
        if (found, word.lower()) != (kind, text):
            raise WhereRefused(self._where, f"'{text}' is expected{self._here()}")
        self._next += 1

    def _here(self) -> str:
        kind, text = self._peek()
        return " at the end" if kind == "end" else f" before {text[:60]!r}"

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next]

    def _read(self) -> Iterator[tuple[str, str]]:
        position, text = 0, self._where.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise WhereRefused(self._where, f"{text[position:].strip()[:60]!r} is not understood")
            kind = str(match.lastgroup)
            value = match[kind]
            yield kind, value.replace("''", "'") if kind == "text" else value
            position = match.end()
        yield "end", ""


def _next(kind: str, text: str) -> str:
    """The next whole number or day after that of a token."""
    with suppress(ValueError, OverflowError):
        if kind == "day":
            return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
        return str(int(text) + 1)
    return "END"
