"""The grammar of `dphist answer --where`: conditions on axes, joined by `and`; categories of one axis also by `or`.

age in [60, 80)            a half-open range, in axis units
age >= 60    age < 80      one end of a range; > and <= are refused, and the message names the end to use
day >= 2026-03-02          days on a calendar axis
ward = 'surgery'           a category, also with ==; a plain word needs no quotes
ward in ('surgery', 'medicine')
ward is other              the cell for null and undeclared values; also `ward = other`, unless a category has that name
ward != 'surgery'          all other cells of the axis, with the one for null and undeclared values; also `is not other`
ward = a or ward = b       as `ward in (a, b)`; beside `and` in parentheses: `age >= 60 and (ward = a or ward = b)`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from itertools import takewhile
from typing import Any

from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import Condition

LONGEST = 2_000
_TOKEN = re.compile(
    r"\s*(?:(?P<day>\d{4}-\d{2}-\d{2})(?!\w)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)|'(?P<text>(?:[^']|'')*)'"
    r"|(?P<sign>>=|<=|==|!=|<>|[=<>\[\](),]))",
)

_IN_DOUBLE_QUOTES = re.compile(r'\s*"([^"]*)"?')
_WITHOUT_QUOTES = ("word", "number", "day")


def where_refused(problem: str) -> Refused:
    """The text of `--where` does not follow the grammar."""
    return Refused(
        f"--where: {problem}. It takes conditions joined by `and`, as in "
        "\"age in [60, 80) and ward = 'surgery'\"; also >=, <, !=, in ('a', 'b'), is other, and `or` on one axis.",
        code="where_refused",
    )


def parse_where(where: str) -> dict[str, Condition]:
    """The box that a `--where` text describes: condition by name of axis. The text is not empty.

    Raises:
        Refused: the text does not follow the grammar; the message names the place.
    """
    if len(where) > LONGEST:
        raise where_refused(f"is longer than {LONGEST} characters")
    return _Parser(where).box()


class _Parser:
    def __init__(self, where: str) -> None:
        self._where = where
        self._tokens = list(self._read())
        self._next = 0
        self._box: dict[str, Condition] = {}

    def box(self) -> dict[str, Condition]:
        while True:
            self._alternatives()
            if self._peek() == ("end", ""):
                return self._box
            self._expect("word", "and")

    def _alternatives(self) -> None:
        """Adds a condition, or several conditions on one axis that are joined by `or`."""
        in_parentheses, first = self._skip("sign", "("), self._next
        axis, wanted = self._condition()
        while self._skip("word", "or"):
            other_axis, also = self._condition()
            if other_axis != axis or not (_are_categories(wanted) and _are_categories(also)):
                raise where_refused(
                    f"`or` joins categories of one axis, not '{axis}' and '{other_axis}'"
                    if other_axis != axis
                    else f"`or` joins categories that '{axis}' equals, not ranges and not !=",
                )
            wanted = [*_as_list(wanted), *_as_list(also)]
        if in_parentheses:
            self._expect("sign", ")")
        elif self._joined_by_or(first) and (self._box or self._peek()[0] != "end"):
            raise where_refused("beside `and`, put the conditions that `or` joins into parentheses")
        self._add(axis, wanted)

    def _joined_by_or(self, first: int) -> bool:
        return any(kind == "word" and text.lower() == "or" for kind, text in self._tokens[first + 3 : self._next])

    def _condition(self) -> tuple[str, Condition]:
        axis = self._take("word")
        kind, sign = self._peek()
        self._next += 1
        if kind == "word" and sign.lower() == "in":
            return axis, self._in()
        if kind == "word" and sign.lower() == "is":
            is_not = self._skip("word", "not")
            self._expect("word", "other")
            return axis, {"not": [None]} if is_not else None
        if sign in ("=", "=="):
            return axis, self._category()
        if sign in ("!=", "<>"):
            return axis, {"not": [self._category()]}
        if sign == ">=":
            return axis, (self._number_or_day(), None)
        if sign == "<":
            return axis, (None, self._number_or_day())
        if sign in (">", "<="):
            mend = f"{axis} {'>=' if sign == '>' else '<'} {_next(*self._peek())}"
            raise where_refused(
                f"'{axis} {sign}' cannot be asked: a range holds its lower end and not its upper one. Use >= and <, as "
                f"in `{mend}`, or a range, as in `{axis} in [low, high)`",
            )
        raise where_refused(f"after '{axis}' one of in, is, =, !=, >=, < is expected")

    def _in(self) -> Condition:
        if self._skip("sign", "["):
            if self._peek()[0] == "text":
                raise where_refused("categories stand in round brackets, as in ('a', 'b')")
            low = self._number_or_day()
            self._expect("sign", ",")
            high = self._number_or_day()
            self._expect("sign", ")")
            return low, high
        self._expect("sign", "(")
        categories = [self._category()]
        while self._skip("sign", ","):
            categories.append(self._category())
        self._expect("sign", ")")
        return categories

    def _add(self, axis: str, wanted: Condition) -> None:
        """Adds a condition; only two ends of a range, or several !=, may be on one axis."""
        there = self._box.get(axis, wanted)
        if axis not in self._box:
            self._box[axis] = wanted
        elif isinstance(there, Mapping) and isinstance(wanted, Mapping):
            self._box[axis] = {"not": [*_as_list(there["not"]), *_as_list(wanted["not"])]}
        elif isinstance(there, tuple) and isinstance(wanted, tuple) and (there[0], wanted[1]) == (None, None):
            self._box[axis] = (wanted[0], there[1])
        elif isinstance(there, tuple) and isinstance(wanted, tuple) and (there[1], wanted[0]) == (None, None):
            self._box[axis] = (there[0], wanted[1])
        else:
            raise where_refused(f"'{axis}' has two conditions that cannot be joined; write one")

    def _category(self) -> str:
        kind, text = self._peek()
        if kind not in ("text", "word", "number", "day"):
            raise where_refused("a category is expected, as in 'surgery'")
        self._next += 1
        if kind in _WITHOUT_QUOTES:
            words = [text, *takewhile(lambda word: word.lower() not in ("and", "or"), self._words())]
            if len(words) > 1:
                raise where_refused(_in_single_quotes(" ".join(words)))
        return text

    def _words(self) -> Iterator[str]:
        """The words and numbers that come next, without quotes."""
        coming = takewhile(lambda token: token[0] in _WITHOUT_QUOTES, self._tokens[self._next :])
        return (text for _, text in coming)

    def _number_or_day(self) -> float | str:
        return self._take("day") if self._peek()[0] == "day" else float(self._take("number"))

    def _skip(self, kind: str, text: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        token_kind, word = self._peek()
        is_next = (token_kind, word.lower()) == (kind, text)
        self._next += is_next
        return is_next

    def _take(self, kind: str) -> str:
        token_kind, text = self._peek()
        if token_kind != kind:
            raise where_refused(f"a {'name' if kind == 'word' else kind} is expected{self._here()}")
        self._next += 1
        return text

    def _expect(self, kind: str, text: str) -> None:
        token_kind, word = self._peek()
        if (token_kind, word.lower()) != (kind, text):
            raise where_refused(f"'{text}' is expected{self._here()}")
        self._next += 1

    def _here(self) -> str:
        kind, text = self._peek()
        return " at the end" if kind == "end" else f" before {text[:60]!r}"

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next]

    def _read(self) -> Iterator[tuple[str, str]]:
        position, text, before = 0, self._where.rstrip(), ""
        while position < len(text):
            match = _TOKEN.match(text, position)
            quoted = _IN_DOUBLE_QUOTES.match(text, position)
            if quoted is not None and before.lower() in ("", "and", "or"):
                raise where_refused(f"write the axis {quoted[1][:60]!r} without quotes")
            if quoted is not None:
                raise where_refused(_in_single_quotes(quoted[1], ", and not in double ones"))
            if match is None:
                raise where_refused(f"{text[position:].strip()[:60]!r} is not understood")
            kind = str(match.lastgroup)
            before = value = match[kind]
            yield kind, value.replace("''", "'") if kind == "text" else value
            position = match.end()
        yield "end", ""


def _in_single_quotes(category: str, more: str = "") -> str:
    """A sentence that says how to write a category of several words."""
    doubled = category[:60].replace("'", "''")
    return f"write '{doubled}' in single quotes{more}"


def _are_categories(wanted: Condition) -> bool:
    return not isinstance(wanted, tuple | Mapping)


def _as_list(wanted: Any) -> list[str | None]:
    return wanted if isinstance(wanted, list) else [wanted]


def _next(kind: str, text: str) -> str:
    """The next whole number or day after that of a token."""
    with suppress(ValueError, OverflowError):
        if kind == "day":
            return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
        return str(int(text) + 1)
    return "END"
