"""What a spec declares in decimal, as numbers of a column's type: edges of bins, and categories that are numbers.

A float counts by its shortest decimal text that reads back as the same float: a 32-bit 36.6 is 36.6, though it is
stored a little below. So an edge is moved to the float from which on that text lies at or above it, once, and no row is
changed. Decimals and lengths of time are compared as the whole numbers that they are stored as.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dphist_pipeline.base.domain import SECONDS, BandedAxis, BinnedAxis, ByText
from dphist_pipeline.base.sql_files import identifier
from dphist_pipeline.errors import first_of

SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_NUMBERS = (*SIGNED, *(f"U{name}" for name in SIGNED))
# DuckDB has no type FLOAT16: it reads such a file as FLOAT, whose shortest text is another one.
FLOATS = ("FLOAT16", "FLOAT", "DOUBLE")
NUMBERS = (*WHOLE_NUMBERS, *FLOATS, "DECIMAL")
# Lengths of time by Arrow, which DuckDB reads as whole numbers: ticks, of which a second has ten to this power.
ARROW_UNITS = {"S": 0, "MS": 3, "US": 6, "NS": 9}
ARROW_DURATIONS = tuple(f"DURATION_{unit}" for unit in ARROW_UNITS)
DURATIONS = (*ARROW_DURATIONS, "INTERVAL")
TEXT = ("VARCHAR", "ENUM")

WIDTHS: dict[str, type[np.floating]] = {"FLOAT16": np.float16, "FLOAT": np.float32, "DOUBLE": np.float64}
# Decimals of more digits share doubles; each of these is the nearest one to a double of its own.
MOST_DIGITS = 15
SECOND = 1_000_000  # microseconds, as which INTERVAL is read
TICKS_A_SECOND = {"INTERVAL": SECOND, **{f"DURATION_{unit}": 10**power for unit, power in ARROW_UNITS.items()}}
DECIMAL_TYPE = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
# How categories write numbers: no zero before another digit, which is a code and no number.
NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
ANY_NUMBER = re.compile(r"[-+]?[0-9]{1,300}(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
NO_FINITE = re.compile(r"nan|-?inf(?:inity)?", re.IGNORECASE | re.ASCII)
MOST_SHOWN = 2
EXAMPLE = "'1'"
EXAMPLES = {"BOOLEAN": "'true'", "DATE": "'2026-09-14'", "UUID": "'123e4567-e89b-12d3-a456-426614174000'"}


def physical_type(kind: str) -> str:
    """The type as which DuckDB reads a column."""
    return "FLOAT" if kind == "FLOAT16" else "BIGINT" if kind in ARROW_DURATIONS else kind


@dataclass(frozen=True)
class ExactEdges:
    """Edges that are compared with values of a type other than DOUBLE: `edge <= value` for each edge below.

    Attributes:
        value: SQL of the value.
        kind: DuckDB type of value and edges.
        edges: as text, rising; None for one above all values of the type.
    """

    value: str
    kind: str
    edges: tuple[str | None, ...]


def axis_for_type(axis: BinnedAxis, kind: str) -> BinnedAxis:
    """The axis with edges for values of a floating type that are widened to doubles; itself for other types."""
    if kind not in ("FLOAT16", "FLOAT"):
        return axis
    width, up = WIDTHS[kind], axis.closed == "left"
    return replace(axis, edges=tuple(_moved_edge(edge, width, up) for edge in axis.edges))


def _moved_edge(edge: float, width: type[np.floating], up: bool) -> float:
    """The first float, going up or down, whose shortest text does not lie before an edge."""
    with np.errstate(over="ignore"):
        nearest = width(edge)
        beyond = np.nextafter(nearest, width(math.inf if up else -math.inf))
    if not np.isfinite(nearest):
        return edge  # beyond all finite floats
    declared = Decimal(repr(edge))
    if _shortest(nearest) == declared or (_shortest(nearest) > declared) == up:
        return float(nearest)
    # Beside the largest float there is only infinity; a double between them parts the two.
    return float(beyond) if np.isfinite(beyond) else math.nextafter(float(nearest), float(beyond))


def _shortest(value: np.floating) -> Decimal:
    return Decimal(np.format_float_scientific(value, unique=True))


def exact_edges(axis: BinnedAxis, kind: str) -> ExactEdges | None:
    """Edges for a type whose values doubles cannot tell apart; None for other types.

    Args:
        kind: DuckDB type, of a decimal with its parameters.
    """
    name = identifier(axis.column)
    if kind in DURATIONS and axis.unit is not None:
        bits = 127 if kind == "INTERVAL" else 63
        edges = _whole_edges(axis, SECONDS[axis.unit] * TICKS_A_SECOND[kind], -(1 << bits), (1 << bits) - 1)
        value, stored = (microseconds(name), "HUGEINT") if kind == "INTERVAL" else (name, "BIGINT")
        return ExactEdges(value, stored, tuple(None if edge is None else str(edge) for edge in edges))
    decimal = DECIMAL_TYPE.fullmatch(kind)
    if decimal is None or int(decimal[1]) <= MOST_DIGITS:
        return None
    digits, scale = int(decimal[1]), int(decimal[2])
    first = 1 - 10**digits
    edges = _whole_edges(axis, 10**scale, first, -first)
    return ExactEdges(name, kind, tuple(None if edge is None else _with_point(edge, scale) for edge in edges))


def _whole_edges(axis: BinnedAxis, factor: Fraction | int, first: int, last: int) -> Iterator[int | None]:
    """For each edge the smallest whole number from `first` to `last` that counts as above it, once divided again."""
    for edge in axis.edges:
        exact = Fraction(repr(edge)) * factor
        whole = math.ceil(exact) if axis.closed == "left" else math.floor(exact) + 1
        yield max(whole, first) if whole <= last else None


def _with_point(whole: int, scale: int) -> str:
    text = f"{abs(whole):0{scale + 1}}"
    point = len(text) - scale
    return f"{'-' * (whole < 0)}{text[:point]}.{text[point:]}"


def microseconds(name: str) -> str:
    """SQL of an INTERVAL in microseconds; null where it has months, which are of no fixed length."""
    parts = {"day": 86_400 * SECOND, "hour": 3_600 * SECOND, "minute": 60 * SECOND, "microsecond": 1}
    summed = " + ".join(f"CAST(datepart('{part}', {name}) AS HUGEINT) * {size}" for part, size in parts.items())
    months = f"datepart('month', {name}) = 0 AND datepart('year', {name}) = 0"
    return f"CASE WHEN {months} THEN {summed} END"


@dataclass(frozen=True)
class Keys:
    """The texts that are counted in a cell, as keys of one type that values are joined to.

    Attributes:
        kind: DuckDB type of the keys; VARCHAR where texts are compared.
        places: by the text of a key the position that counts it.
        refused: why the axis is refused over a column of this type, or empty: a category that would match if it were
            written otherwise, two that are one number, or none that a value can ever be.
        never: categories that no value can ever be, while others can.
    """

    kind: str
    places: dict[str, int]
    refused: str = ""
    never: tuple[str, ...] = ()


def keys_of(axis: ByText, kind: str) -> Keys:
    """The keys of an axis of texts for a column of some type.

    Args:
        kind: DuckDB type, of a decimal with its parameters; NUMERIC for a decimal that a server gives as text.
    """
    texts = axis.texts
    if kind in TEXT or kind == "NULL":
        return Keys("VARCHAR", texts)
    numbers = is_number(kind)
    key_of = _number_key if numbers else _other_key
    places, possible, mends = dict[str, int](), set[int](), dict[int, str]()
    same, twice = dict[str, int](), ""
    for text, place in texts.items():
        number = _number_of(text) if numbers else text
        if same.setdefault(number, place) != place:
            twice = f"{_text_at(axis, same[number])} and {_text_at(axis, place)} are one number; keep one of them"
        key, mend = key_of(text, kind)
        if key is not None:
            places[key] = place
        if key is not None or mend is None:
            possible.add(place)
        elif mend:
            mends.setdefault(place, mend)
    missed = [
        f"{_text_at(axis, place)} (write {mend})"
        for place, mend in mends.items()
        # Beside a category `true`, nobody means truth by a category `1`.
        if place not in possible and not (kind == "BOOLEAN" and mend.strip("'") in places)
    ]
    never = tuple(_text_at(axis, place) for place in sorted({*texts.values()} - possible))
    problem = ""
    if missed:
        problem = f"has type {kind}, whose values never match {first_of(missed, MOST_SHOWN)}"
    elif twice:
        problem = f"has type {kind}, in which {twice}"
    elif not possible:
        examples = f"declare categories such as {EXAMPLES.get(kind, EXAMPLE)}"
        problem = f"has type {kind}, whose values are never {first_of(never, MOST_SHOWN)}; {examples}"
    return Keys(physical_type(kind) if numbers and kind != "NUMERIC" else "VARCHAR", places, problem, never)


def _number_of(text: str) -> str:
    """What two categories that are one number have in common."""
    if NUMBER.fullmatch(text):
        return plain_number(Decimal(text))
    return repr(float(text)) if NO_FINITE.fullmatch(text) else text


def with_plain_texts(axis: ByText) -> ByText:
    """An axis that also counts a number that is written otherwise than a category: 1 as 1.0, unless it is declared."""
    declared = axis.bands if isinstance(axis, BandedAxis) else {**dict.fromkeys(axis.values), **axis.spellings}
    plain = {plain_number(Decimal(text)): text for text in declared if NUMBER.fullmatch(text)}
    plain = {text: of for text, of in plain.items() if text not in axis.texts}
    if isinstance(axis, BandedAxis):
        return replace(axis, bands={**axis.bands, **{text: axis.bands[of] for text, of in plain.items()}})
    return replace(
        axis, spellings={**axis.spellings, **{text: axis.spellings.get(of, of) for text, of in plain.items()}}
    )


def is_number(kind: str) -> bool:
    """Whether a column of a type holds numbers, with which categories are compared as numbers."""
    return kind in (*WHOLE_NUMBERS, *FLOATS, "NUMERIC") or kind.startswith("DECIMAL")


def _number_key(text: str, kind: str) -> tuple[str | None, str | None]:
    """A category as the text of a key, or the text that would match, empty if there is none.

    Neither for a number that no value of the type is, though it is written as one: whether a column holds whole numbers
    or floats, and how many digits decimals have, often follows from what a writer met.
    """
    if NO_FINITE.fullmatch(text):
        if kind in FLOATS:
            return repr(float(text)), None
        sign = "-" if text.startswith("-") else ""
        return ("NaN" if text.lower() == "nan" else f"{sign}Infinity") if kind == "NUMERIC" else None, None
    if not NUMBER.fullmatch(text):
        meant = ANY_NUMBER.fullmatch(text.strip())
        return None, repr(plain_number(Decimal(meant[0]))) if meant else ""
    number = Decimal(text)
    if kind in FLOATS:
        with np.errstate(over="ignore"):
            nearest = WIDTHS[kind](text)
        shortest = _shortest(nearest)
        if not np.isfinite(nearest) or shortest == number:
            return repr(float(nearest) + 0.0) if np.isfinite(nearest) else None, None
        return None, repr(plain_number(shortest))
    if kind in WHOLE_NUMBERS:
        return str(int(number)) if number == int(number) else None, None
    plain, decimal = plain_number(number), DECIMAL_TYPE.fullmatch(kind)
    fits = decimal is None or len(plain.partition(".")[2]) <= int(decimal[2])
    return plain if fits else None, None


def plain_number(number: Decimal) -> str:
    """All digits of a number, without an exponent and without zeros that do not count."""
    if not number.is_finite():
        return str(number)
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removeprefix("-") if not number else text


TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "on"), "true"),
    **dict.fromkeys(("false", "f", "no", "n", "0", "off"), "false"),
}
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y")
# As DuckDB writes a day: years before Christ, and those of five digits, too.
A_DAY = re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}(?: \(BC\))?|-?infinity", re.ASCII | re.IGNORECASE)


def _other_key(text: str, kind: str) -> tuple[str | None, str]:
    """A category as the text of a truth value, a day or a UUID; or the text that would match, empty without one."""
    meant = text.strip().lower()
    if kind == "BOOLEAN":
        return (text, "") if text in ("true", "false") else (None, repr(TRUTH[meant]) if meant in TRUTH else "")
    if kind == "UUID":
        meant = meant.strip("{}")
        return (text, "") if UUID.fullmatch(text) else (None, repr(meant) if UUID.fullmatch(meant) else "")
    return (text, "") if A_DAY.fullmatch(text) else (None, _days(meant))


def _days(text: str) -> str:
    """The days that a text may mean, as they would match."""
    days = []
    for form in DAYS:
        with suppress(ValueError):
            days.append(datetime.strptime(text, form).date().isoformat())
    return " or ".join(map(repr, dict.fromkeys(days)))


def _text_at(axis: ByText, place: int) -> str:
    """A declared text of a position; accepted spellings are not shown, since they may come from a file."""
    texts = axis.bands if isinstance(axis, BandedAxis) else {value: at for at, value in enumerate(axis.values)}
    return repr(next(text for text, at in texts.items() if at == place))
