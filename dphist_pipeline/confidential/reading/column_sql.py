"""SQL of the columns that a spec derives and of the rows that it keeps; nothing here raises on any value.

Dates and times are local wall clock, by `wall_clock` alone, so that DuckDB's zone data decide as for periods. A date
that is infinite, or too far away for DuckDB, is null. Functions that raise somewhere (`hour` of a time with a zone,
`datesub`, casts without TRY_) are not used; nor is TRY, around which DuckDB moves what expressions share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dphist_pipeline.base.declared_numbers import FLOATS, NUMBERS, WHOLE_NUMBERS, axis_for_type, exact_edges, keys_of
from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.base.tidying import tidied_sql
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading._moments import wall_clock
from dphist_pipeline.confidential.reading._positions import positions
from dphist_pipeline.confidential.reading._units import whole_text
from dphist_pipeline.confidential.reading.source import ALWAYS, TIMES, ColumnRefused, OpenedSource
from dphist_pipeline.spec.declared_columns import (
    Condition,
    DatePart,
    DaysBetween,
    DerivedColumn,
    FirstLetters,
    FirstOf,
    IsBetween,
    IsOneOf,
    YearsBetween,
)

CATEGORIES = (*NUMBERS, "BOOLEAN", "DATE", "UUID")
LETTERS = (*WHOLE_NUMBERS, *FLOATS)
PARTS = {"weekday": "isodow"}  # what DuckDB calls a part; others have the same name
FIRST_YEAR, LAST_YEAR = 1, 9999  # of a year that stands alone


def with_derived_columns(source: OpenedSource, derived: Sequence[DerivedColumn]) -> OpenedSource:
    """The source with the columns that a spec derives; no record is read.

    Raises:
        ColumnRefused: for an input that is missing or cannot serve, and for a name that the source has already, in
            upper or lower case: nothing of the source is shadowed, whatever file comes later.
    """
    # A header line that does not name the unit may be a record, and is compared with nothing.
    for column in source.unit if source.is_csv and derived else ():
        if column not in source.types:
            raise ColumnRefused(column, f"is not in the source. {source.nearest(column)}")
    refuse_shadowing(derived, source.types)
    for one in derived:
        values, text = _template(source, one)
        fresh = (name for number in range(len(source.types) + len(values)) if (name := f"value_{number}"))
        names = [name for name in fresh if name not in {other.lower() for other in source.types}][: len(values)]
        # In two projections, so that each input is worked out once.
        inner = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        relation = f"SELECT *, {inner} FROM ({source.relation})"
        outer = f"SELECT * EXCLUDE ({', '.join(names)}), CAST({text.format(*names)} AS {one.kind})"
        source = replace(
            source,
            types={**source.types, one.column: one.kind},
            relation=f"{outer} AS {identifier(one.column)} FROM ({relation})",
        )
    return source


def refuse_shadowing(derived: Sequence[DerivedColumn], names: Iterable[str]) -> None:
    """Refuses a derived column whose name the source has already, in upper or lower case."""
    taken = {name.lower() for name in names}  # a derived name is in lower case
    for one in derived:
        if one.column in taken:
            problem = "is derived by the spec, and the source has a column of this name, in upper or lower case"
            raise ColumnRefused(one.column, f"{problem}; give the derived column another name")


def _template(source: OpenedSource, one: DerivedColumn) -> tuple[list[str], str]:
    """SQL of what a form is worked out from, and of its result over those, as `{0}`, `{1}` and so on."""
    match one:
        case YearsBetween():
            (first, first_year), (second, second_year) = (_date_or_year(source, column) for column in one.years_between)
            before = "month({2}) * 100 + day({2}) < month({0}) * 100 + day({0})"
            passed = "coalesce({3}, year({2})) - coalesce({1}, year({0}))"
            # A year alone has no birthday: then nothing is before it.
            return [first, first_year, second, second_year], f"{passed} - CASE WHEN {before} THEN 1 ELSE 0 END"
        case DaysBetween():
            return [
                f"TRY_CAST({_date(source, column)} AS DATE)" for column in one.days_between
            ], "date_diff('day', {0}, {1})"
        case DatePart():
            return [_date(source, one.of)], f"{PARTS.get(one.part, one.part)}({{0}})"
        case FirstLetters():
            return [_text(source, one.of)], f"left({{0}}, {one.first_letters})"
        case FirstOf():
            dates = [_date(source, written.column, written.pattern) for written in one.first_of]
            return dates, f"coalesce({', '.join(f'{{{number}}}' for number in range(len(dates)))})"
    raise AssertionError(one)


def _date(source: OpenedSource, column: str, pattern: str | None = None) -> str:
    """SQL of the local wall clock of a column of dates, null where it holds none.

    `pattern`: how text writes them; None for ISO dates.
    """
    kind = source.type_of(column, TIMES, "dates of a derived column, which are dates, time stamps or text of those")
    if pattern is not None and source.server_times.get(column, kind) not in ALWAYS:
        raise ColumnRefused(column, f"has type {kind}, which needs no `format`; remove that")
    return _finite(wall_clock(column, kind, pattern))


def _finite(clock: str) -> str:
    return f"nullif(nullif({clock}, TIMESTAMP 'infinity'), TIMESTAMP '-infinity')"


def _date_or_year(source: OpenedSource, column: str) -> tuple[str, str]:
    """SQL of a date and of a year that stands alone, of which one is null; a year is a whole number of four digits."""
    use = "dates or years of a derived column, which are dates, time stamps, whole numbers or text of those"
    kind = source.type_of(column, (*TIMES, *NUMBERS), use)
    no_date, no_year = "CAST(NULL AS TIMESTAMP)", "CAST(NULL AS BIGINT)"
    if kind in TIMES:
        return _date(source, column), no_year
    if kind in NUMBERS:
        number, date_sql = f"TRY_CAST({identifier(column)} AS DOUBLE)", no_date
    else:
        text = tidied_sql(lengths.value_of(column, kind), ("trim",))
        is_year = f"regexp_full_match({text}, '[0-9]{{1,4}}')"
        number = f"CASE WHEN {is_year} THEN TRY_CAST({text} AS DOUBLE) END"
        date_sql = f"CASE WHEN NOT {is_year} THEN {_date(source, column)} END"
    whole = f"{number} = trunc({number}) AND {number} BETWEEN {FIRST_YEAR} AND {LAST_YEAR}"
    return date_sql, f"CASE WHEN {whole} THEN TRY_CAST({number} AS BIGINT) END"


def _text(source: OpenedSource, column: str) -> str:
    """SQL of a column's text; of whole numbers, also where they are stored as floats, their digits."""
    kind = source.type_of(column, LETTERS, "text of a derived column, which takes text and whole numbers")
    return whole_text(identifier(column), kind) if kind in FLOATS else f"TRY_CAST({identifier(column)} AS VARCHAR)"


def numbers_of(keep: Sequence[Condition]) -> tuple[str, ...]:
    """The columns that conditions compare with numbers."""
    return tuple(one.column for one in keep if isinstance(one, IsBetween) and one.numbers)


def check_kept(source: OpenedSource, keep: Sequence[Condition]) -> None:
    """Refuses columns of conditions that are missing or cannot serve, before any row is read."""
    for one in keep:
        if isinstance(one, IsOneOf):
            kind = source.type_of(one.column, CATEGORIES, "a column of `keep` with `is`, which takes text and the like")
            if refused := keys_of(one.axis, source.by_server.get(one.column, kind)).refused:
                raise ColumnRefused(one.column, refused)
        elif isinstance(one, IsBetween) and one.days:
            source.type_of(one.column, TIMES, "a column of `keep` with dates")
        else:
            source.type_of(one.column, NUMBERS, "a column of `keep` with numbers")


def kept_rows(
    source: OpenedSource, keep: Sequence[Condition], types: Mapping[str, str], numbers: Mapping[str, str]
) -> OpenedSource:
    """The source with those rows alone for which all conditions are true.

    Args:
        types: of the source's columns, of decimals with their parameters.
        numbers: under which name a column of text has its numbers (see `with_plain_numbers`).
    """
    if not keep:
        return source
    conditions = " AND ".join(f"({_condition(source, one, types, numbers)})" for one in keep)
    return replace(source, relation=f"SELECT * FROM ({source.relation}) WHERE {conditions}")


def _condition(source: OpenedSource, one: Condition, types: Mapping[str, str], numbers: Mapping[str, str]) -> str:
    if isinstance(one, IsOneOf):
        axis, kind, by_server = one.axis, types[one.column], source.by_server.get(one.column, "")
        keys = keys_of(axis, by_server or kind)
        values = ", ".join(f"TRY_CAST({literal(text)} AS {keys.kind})" for text in keys.places)
        return f"({positions(axis, 0, kind, by_server).value}) IN ({values})"
    assert isinstance(one, IsBetween)
    if one.days:
        value = _finite(wall_clock(one.column, types[one.column]))
        ends: dict[str, str | None] = {name: f"TIMESTAMP {literal(str(day))}" for name, day in one.days.items()}
    else:
        column = numbers.get(one.column, one.column)
        kind = types[column]
        # The ends are compared as the edges of a bin are: `edge <= value`.
        edges = tuple(float(number) for number in one.numbers.values())
        ranged = axis_for_type(BinnedAxis("kept", column, edges), kind)
        value, exact = positions(ranged, 0, kind).value, exact_edges(ranged, kind)
        texts = tuple(map(repr, ranged.edges)) if exact is None else exact.edges
        stored = "DOUBLE" if exact is None else exact.kind
        ends = {
            name: None if text is None else f"CAST({literal(text)} AS {stored})"
            for name, text in zip(one.numbers, texts, strict=True)
        }
    parts = []
    if "from" in ends:  # None lies above all values of the type
        parts.append("false" if ends["from"] is None else f"{ends['from']} <= {value}")
    if "to" in ends:
        parts.append(f"({value}) IS NOT NULL" if ends["to"] is None else f"{value} < {ends['to']}")
    return " AND ".join(parts)
