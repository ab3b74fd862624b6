"""When a row happened: SQL of its local wall clock in the session's zone, as a time stamp. Nothing here raises.

Periods and calendar axes both compare this one time stamp with local days. So DuckDB's zone data alone decide where a
record belongs, and the zone data of Python, which run schedules, decide nothing about records. Every row has one local
day, also where clocks are changed around midnight: an hour that is repeated counts for the day that clocks show.

- A date, and a time without an offset, are wall clock already: no zone data are asked.
- A time stamp with a zone, and text with an offset, are instants: DuckDB's zone data give their wall clock.
- Text that is a date with an offset and no time of day is that day: it names no instant.

Text is read by one of three readings, chosen by its own signs, without blanks at its ends. `_ISO` is ISO 8601; what it
takes is listed in the reference of specs. `_WITHOUT_ZONE` and `_WITH_ZONE` are what DuckDB's casts read the same,
and sooner. All else goes to DuckDB's cast to an instant, which knows names of zones.
"""

from __future__ import annotations

from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.base.tidying import BLANKS, tidied_sql
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import ZONED_TIMES

_BLANK = r"[ \t\n\v\f\r\x{a0}]"
# Years of any length, and dates such as 2026-2-5 or 2026/02/05, as DuckDB casts them.
_WITHOUT_ZONE = r"\d+[-/]\d{1,2}[-/]\d{1,2}(?:[T ]+[\d:.]+)?"
_WITH_ZONE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d(?::?\d\d)?)"
_HOUR, _SIXTIETH = r"[01]\d|2[0-3]", r"[0-5]\d"
_DATE = r"(\d{4})(?:-?(\d\d)-?(\d\d)|-?W(0[1-9]|[1-4]\d|5[0-3])-?([1-7])|-?(\d{3}))"
_TIME = rf"({_HOUR}|24)(?::?({_SIXTIETH})(?::?({_SIXTIETH}|60))?)?(?:[.,](\d+))?"
_ZONE = rf"{_BLANK}*([Zz]|([-+\x{{2212}}])({_HOUR})(?::?({_SIXTIETH})(?::?({_SIXTIETH}))?)?)"
# A date alone may have the zone of XML Schema, as 2026-02-05Z or 2026-02-05+01:00.
_ZONE_OF_DATE = rf"{_BLANK}*(?:[Zz]|[-+\x{{2212}}](?:{_HOUR}):{_SIXTIETH})"
_ISO = rf"{_DATE}(?:((?:[Tt]|{_BLANK}+){_TIME})(?:{_ZONE})?|{_ZONE_OF_DATE})?"
_GROUPS = (
    *("year", "month", "day", "week", "weekday", "nth"),
    *("time", "hour", "minute", "second", "fraction", "zone", "sign", "zone_hour", "zone_minute", "zone_second"),
)


def wall_clock(column: str, kind: str, pattern: str | None = None) -> str:
    """SQL of the local wall clock of an unquoted column; null where it does not parse, or is too far away for DuckDB.

    Args:
        kind: DuckDB type of the column, without parameters.
        pattern: how dates are written in a column of text, as `try_strptime` takes it; None for ISO dates.
    """
    if kind not in (*lengths.TEXT, "NULL"):
        # An instant in nanoseconds has no cast to wall clock of its own.
        value = f"TRY_CAST({identifier(column)} AS TIMESTAMPTZ)" if kind in ZONED_TIMES else identifier(column)
        return f"TRY_CAST({value} AS TIMESTAMP)"
    text = lengths.value_of(column, kind)
    if pattern is not None:
        # A pattern that has blanks at its ends may need those of the text.
        text = text if pattern != pattern.strip(BLANKS) else tidied_sql(text, ("trim",))
        return f"try_strptime({text}, {literal(pattern)})"
    local, instant = "TRY_CAST({} AS TIMESTAMP)".format, "TRY_CAST(TRY_CAST({} AS TIMESTAMPTZ) AS TIMESTAMP)".format
    groups = ", ".join(map(literal, _GROUPS))
    # Lists of one, so that a text is trimmed and taken apart once, not for each use of it.
    iso = f"list_transform([regexp_extract(trimmed, {literal(_ISO)}, [{groups}])], lambda iso: {_iso_wall_clock()})[1]"
    other = (
        f"coalesce(CASE WHEN {_has('trimmed', _WITHOUT_ZONE)} THEN {local('trimmed')} END, "
        f"CASE WHEN {_has('trimmed', _ISO)} THEN {iso} "
        f"WHEN NOT {_has('trimmed', _WITHOUT_ZONE)} THEN {instant('trimmed')} END)"
    )
    quick = f"WHEN {_has(text, _WITHOUT_ZONE)} THEN {local(text)} WHEN {_has(text, _WITH_ZONE)} THEN {instant(text)}"
    trimmed = tidied_sql(text, ("trim",))
    return f"coalesce(CASE {quick} END, list_transform([{trimmed}], lambda trimmed: {other})[1])"


def _has(text: str, form: str) -> str:
    return f"regexp_full_match({text}, {literal(form)})"


def _iso_wall_clock() -> str:
    """SQL of the wall clock of `iso`, the groups of a text in ISO 8601; all its numbers are small by the pattern."""
    year = "TRY_CAST(iso['year'] || '-01-0{}' AS DATE)".format
    # Week 1 has 4 January, and day 366 is in leap years alone: what lies in another year is no date.
    in_week = (
        f"TRY_CAST(date_trunc('week', {year(4)}) AS DATE) "
        "+ (TRY_CAST(iso['week'] AS INTEGER) * 7 + TRY_CAST(iso['weekday'] AS INTEGER) - 8)"
    )
    nth = f"{year(1)} + (TRY_CAST(iso['nth'] AS INTEGER) - 1)"
    date = (
        "CASE WHEN iso['month'] <> '' THEN TRY_CAST(iso['year'] || '-' || iso['month'] || '-' || iso['day'] AS DATE) "
        f"WHEN iso['week'] <> '' THEN CASE WHEN isoyear({in_week}) = isoyear({year(4)}) THEN {in_week} END "
        f"ELSE CASE WHEN iso['nth'] <> '000' AND year({nth}) = year({year(1)}) THEN {nth} END END"
    )
    number = "coalesce(TRY_CAST(iso['{}'] AS BIGINT), 0)".format
    # A fraction belongs to the last unit that is given. The 60th second is one more instant of the 59th.
    fraction = "coalesce(TRY_CAST('0.' || left(iso['fraction'], 9) AS DOUBLE), 0)"
    unit = "CASE WHEN iso['minute'] = '' THEN 3600 WHEN iso['second'] = '' THEN 60 ELSE 0 END"
    seconds = (
        f"{number('hour')} * 3600 + {number('minute')} * 60 + least({number('second')}, 59) "
        f"+ CAST(floor({fraction} * {unit}) AS BIGINT)"
    )
    # 24:00 is the end of the day, and nothing lies after it.
    possible = f"(iso['hour'] <> '24' OR {seconds} + {number('second')} = 86400 AND iso['fraction'] SIMILAR TO '0*')"
    offset = f"{number('zone_hour')} * 3600 + {number('zone_minute')} * 60 + {number('zone_second')}"
    east = f"CASE WHEN iso['sign'] = '+' THEN {offset} ELSE -({offset}) END"
    since_1970 = f"CAST(date_diff('day', DATE '1970-01-01', {date}) AS BIGINT) * 86400 + {seconds}"
    stated = f"make_timestamp(({since_1970}) * 1000000)"
    instant = f"TRY_CAST(make_timestamptz(({since_1970} - {east}) * 1000000) AS TIMESTAMP)"
    return (
        f"CASE WHEN iso['time'] = '' THEN CAST({date} AS TIMESTAMP) WHEN NOT {possible} THEN NULL "
        f"WHEN iso['zone'] = '' THEN {stated} ELSE {instant} END"
    )
