"""The functions that a row query may call: none of them raises, on any value, and none looks beyond its row.

Kinds are DuckDB's types. Arguments have exactly the kinds named here, so that no cast is left to DuckDB, whose implicit
casts raise. Functions that are missing here are missing for a reason: `repeat` and `lpad` grow without bound, `abs` of
a whole number overflows, `last_day` raises near the ends of the calendar, `now` and `random` are no functions of a row.
Arithmetic is on DOUBLE; texts that are joined are cut to 1,000 characters each; `week`, `isoyear`, `date_part` and
`date_trunc` give null outside the years 1 to 9999.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ"]

KINDS: tuple[Kind, ...] = get_args(Kind)
TIMES: tuple[Kind, ...] = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
LONGEST_PATTERN = 200
LARGEST_PLACE = 10_000

PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MORE_PARTS = (*PARTS, "isoyear", "isodow", "dayofweek", "dayofyear")
# Not %z and %Z: they give a time with an offset, which is another kind.
_DIRECTIVE = re.compile(r"%(?:-[dmHIMSyj]|[YymdHIMSfpbBjaA%])")


@dataclass(frozen=True)
class Constant:
    """An argument that must be a constant which `fits`; `what`: how a message calls it."""

    kind: Literal["VARCHAR", "BIGINT"]
    what: str
    fits: Callable[[str], bool]


@dataclass(frozen=True)
class Function:
    """What a function takes and gives.

    Attributes:
        takes: for each argument the kinds that it may have, or the constant.
        optional: how many of the last arguments may be left out.
        raises: whether it raises near the ends of the calendar, so that it is asked within the years 1 to 9999 only.
    """

    gives: Kind
    takes: tuple[tuple[Kind, ...] | Constant, ...]
    optional: int = 0
    raises: bool = False


def is_time_format(text: str) -> bool:
    """Whether `try_strptime` takes a text as a format of dates or times without an offset.

    Args:
        text: with signs such as %Y; %% stands for a percent sign.
    """
    text = text.replace("%%", "")
    plain, directives = _DIRECTIVE.subn("", text)
    return directives > 0 and "%" not in plain and len(text) <= LONGEST_PATTERN


def _is_pattern(text: str) -> bool:
    return len(text) <= LONGEST_PATTERN


_TEXT: tuple[Kind, ...] = ("VARCHAR",)
_NUMBER: tuple[Kind, ...] = ("DOUBLE",)
_PLACE = Constant(
    "BIGINT",
    f"a whole number between -{LARGEST_PLACE:,} and {LARGEST_PLACE:,}",
    lambda text: len(text) <= 12 and abs(int(text)) <= LARGEST_PLACE,
)
_DIGITS = Constant("BIGINT", "a whole number between 0 and 15", lambda text: text.isdigit() and int(text) <= 15)
_PATTERN = Constant("VARCHAR", f"a text of at most {LONGEST_PATTERN} characters", _is_pattern)
_SIGNS = Constant("VARCHAR", "the characters to remove, as text", _is_pattern)
_SOUGHT = Constant("VARCHAR", "a text to look for, not empty", lambda text: 0 < len(text) <= LONGEST_PATTERN)
_FORMAT = Constant("VARCHAR", "a format of %Y %y %m %d %H %I %M %S %f %p %b %B %j %a %A", is_time_format)
_PART = Constant("VARCHAR", f"one of {', '.join(PARTS)}", lambda text: text.lower() in PARTS)
_ANY_PART = Constant("VARCHAR", f"one of {', '.join(MORE_PARTS)}", lambda text: text.lower() in MORE_PARTS)

FUNCTIONS: Mapping[str, Function] = {
    **{name: Function("VARCHAR", (_TEXT,)) for name in ("lower", "upper", "strip_accents", "nfc_normalize")},
    **{name: Function("VARCHAR", (_TEXT, _SIGNS), optional=1) for name in ("trim", "ltrim", "rtrim")},
    **{name: Function("VARCHAR", (_TEXT, _PLACE)) for name in ("left", "right")},
    **{name: Function("VARCHAR", (_TEXT, _PLACE, _PLACE), optional=1) for name in ("substring", "substr")},
    "replace": Function("VARCHAR", (_TEXT, _SOUGHT, _PATTERN)),
    "length": Function("BIGINT", (_TEXT,)),
    **{name: Function("BOOLEAN", (_TEXT, _TEXT)) for name in ("contains", "starts_with", "ends_with")},
    **{name: Function("BOOLEAN", (_TEXT, _PATTERN)) for name in ("~~", "!~~", "regexp_matches", "regexp_full_match")},
    **{name: Function("DOUBLE", (_NUMBER, _NUMBER)) for name in ("+", "*", "/")},
    "-": Function("DOUBLE", (_NUMBER, _NUMBER), optional=1),
    **{name: Function("DOUBLE", (_NUMBER,)) for name in ("abs", "floor", "ceil", "ceiling", "trunc")},
    "round": Function("DOUBLE", (_NUMBER, _DIGITS), optional=1),
    **{name: Function("BOOLEAN", (_NUMBER,)) for name in ("isnan", "isfinite")},
    **{name: Function("BIGINT", (TIMES,), raises=name in ("week", "isoyear")) for name in MORE_PARTS},
    "date_part": Function("BIGINT", (_ANY_PART, TIMES), raises=True),
    "try_strptime": Function("TIMESTAMP", (_TEXT, _FORMAT)),
}
# Any number of arguments, all of one kind, which is that of the result.
ALIKE = ("greatest", "least", "nullif")
JOINING = ("concat", "||")
TRUNCATING = "date_trunc"
TRUNCATION = Function("TIMESTAMP", (_PART, TIMES), raises=True)
RAISING = (*(name for name, function in FUNCTIONS.items() if function.raises), TRUNCATING)
ROW_BY_ROW = frozenset((*FUNCTIONS, *ALIKE, *JOINING, TRUNCATING))
# Refused with a reason of their own.
CHANGING = ("random", "uuid", "gen_random_uuid", "now", "get_current_timestamp", "today", "current_date", "nextval")
SQL_VALUES = frozenset(
    [
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "rowid"),
        *("current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"),
    ]
)


def by_kind() -> dict[str, list[str]]:
    """The names of all functions, each as code, by the kind of what they give; for the reference."""
    found: dict[str, list[str]] = {}
    for name, function in {**FUNCTIONS, TRUNCATING: TRUNCATION, **dict.fromkeys(JOINING, FUNCTIONS["lower"])}.items():
        found.setdefault(function.gives, []).append(f"`{name}`")
    return {**found, "the kind of its arguments": [f"`{name}`" for name in (*ALIKE, "coalesce", "CASE")]}
