"""Says how each column that a spec names will be read: by what the spec declares and the column's type alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dphist_pipeline.base.declared_numbers import is_number, keys_of
from dphist_pipeline.base.domain import Axis, BandedAxis, BinnedAxis, ByText, CalendarAxis, CategoricalAxis
from dphist_pipeline.base.reading import QUOTE_ALL, UTF_8, quote_in_words
from dphist_pipeline.errors import first_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.declared_columns import DerivedColumn, FirstOf
from dphist_pipeline.spec.mistakes import echo
from dphist_pipeline.spec.sources import EVERY_ROW, ISO

MOST_NEVER = 3
NOTHING = "NULL"  # as DuckDB calls the type of a column that holds nothing but nulls
# A day whose day and month cannot be taken for each other.
A_MOMENT = datetime(2026, 9, 14, 8, 30)
# Signs that Python's `strftime` writes as DuckDB reads them.
_ALIKE = re.compile(r"([^%]|%-?[dmHIMSj]|%[YypbBaA%])+")


@dataclass(frozen=True)
class ColumnReading:
    """How one column is read.

    Attributes:
        use: what the spec takes it for: unit, period, or the name of an axis.
        type: as the source declares it; `text` for text.
        read: a sentence that goes on after "is text:" or "is of type DATE:".
    """

    column: str
    use: str
    type: str
    read: str

    @property
    def says(self) -> str:
        """The whole sentence."""
        kind = "text" if self.type == "text" else f"of type {self.type}"
        column = self.column if self.column.isprintable() else echo(self.column)  # on one line
        return f"`{column}` ({self.use}) is {kind}: {self.read}"


def column_readings(spec: ReleaseSpec, types: Mapping[str, str]) -> list[ColumnReading]:
    """How the columns of a spec are read, in the order unit, period, axes, and dates in text that `derive` reads.

    A column without a type is left out.
    """
    return [
        ColumnReading(column, use, "text" if types[column] in sources.TEXT else types[column], read)
        for column, use, read in _read(spec, types)
    ]


def encoding_in_words(spec: ReleaseSpec) -> str:
    """How the bytes of a CSV file become text, and what becomes of others; empty for other sources."""
    if spec.source_format != "csv":
        return ""
    mend = ""
    if spec.csv_encoding == UTF_8:
        mend = " (if a spreadsheet on Windows wrote the file, perhaps `csv_encoding: windows-1252`)"
    broken = "a value with other bytes is read as undeclared, and a row with such a unit is left out"
    alone = "every byte is read as a letter, a wrong one where the file is written otherwise"
    return f"CSV is read as {spec.csv_encoding}: {broken if spec.csv_encoding == UTF_8 else alone}{mend}"


def lines_in_words(spec: ReleaseSpec) -> str:
    """What a line of a CSV file must be to count, and whom it is taken for; empty for other sources."""
    if spec.source_format != "csv":
        return ""
    form = {"": "no field in quotes", QUOTE_ALL: "every field in quotes"}.get(spec.csv_quote, "quotes in pairs")
    text = (
        f"each line of CSV is read alone (`csv_quote: {quote_in_words(spec.csv_quote)}`): one with {form} and as many "
        "fields as the header line is a row; any other is in no number and nobody's, and only `dphist look` tells how "
        "many there are. `publish: if_plausible` holds back a file of which most lines are such"
    )
    if spec.csv_quote not in ("", QUOTE_ALL):
        text += (
            ". A text of several lines is cut into them, and one within it may count as a row of somebody else: have "
            "such files written without line breaks in text, or with every field quoted and `csv_quote: all`"
        )
    if spec.csv_quote and spec.privacy_unit == EVERY_ROW:
        text += ". With `privacy_unit: row`, what is protected is a line, not a person"
    return text[0].upper() + text[1:]


def example_of(pattern: str) -> str:
    """A date as a format writes it; empty where Python writes one of its signs in another way than DuckDB reads it."""
    return A_MOMENT.strftime(pattern) if _ALIKE.fullmatch(pattern) else ""


def dates_in_words(pattern: str | None) -> str:
    """How dates in text are read, by a format with signs such as %d; `iso` or None stands for ISO dates."""
    if pattern in (None, ISO):
        return f"ISO dates, as {sources.AN_ISO_DATE}"
    example = example_of(str(pattern))
    return f'dates by "{pattern}"{f", as {example}" if example else ""}'


def _read(spec: ReleaseSpec, types: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for column in () if spec.privacy_unit == EVERY_ROW else spec.privacy_unit.columns:
        if column in types:
            yield column, "unit", _unit(spec, types[column] in sources.TEXT)
    if spec.period_column is not None and spec.period_column in types:
        yield spec.period_column, "period", _period(spec, types[spec.period_column])
    for axis in spec.read_axes:
        if axis.column in types:
            yield axis.column, f"axis {axis.name}", _axis(spec, axis, types[axis.column])
    made = {one.column for one in spec.derive}
    for one in spec.derive:
        for column, pattern in one.dates.items():
            if column not in made and types.get(column) in sources.TEXT:
                yield column, f"derives {one.column}", _date(one, column, pattern)


def _date(derived: DerivedColumn, column: str, pattern: str | None) -> str:
    """How a date in text is read that a column is made of; where no format is declared, also how to declare one."""
    reading = f"{dates_in_words(pattern)}; what does not parse is null"
    if pattern is not None:
        return reading
    called = column if column.isidentifier() else json.dumps(column, ensure_ascii=False)
    dated = f'{{column: {called}, format: "%d.%m.%Y"}}'
    if isinstance(derived, FirstOf):
        return f"{reading} (for dates written otherwise, write `{dated}`)"
    return (
        f"{reading} (for dates written otherwise, derive `{{column: day, first_of: [{dated}]}}` before, and use that)"
    )


def _unit(spec: ReleaseSpec, text: bool) -> str:
    if not text:
        return "its numbers name units"
    if spec.unit_normalise:
        return f"names are compared after {', '.join(spec.unit_normalise)}; a row without a name is left out"
    return (
        "names are compared letter by letter, with case and blanks (`unit_normalise: [trim_all, fold]` ignores these); "
        "a row without a name is left out"
    )


def _period(spec: ReleaseSpec, kind: str) -> str:
    if kind not in sources.TEXT:
        return (
            "holds nothing, so no row falls into a period"
            if kind == NOTHING
            else f"a row without it is in no period{_elsewhere(spec)}"
        )
    reading = dates_in_words(spec.period_format)
    return f"{reading}; what does not parse falls into no period{_elsewhere(spec)}"


def _elsewhere(spec: ReleaseSpec) -> str:
    """Says that rows in files of another period are not counted; empty for a source without placeholders."""
    if not spec.has_placeholders:
        return ""
    reads = "" if not (spec.files_before or spec.files_after) else " and of those around them"
    return f", nor does a row in other files than those of its period{reads}"


def _axis(spec: ReleaseSpec, axis: Axis, kind: str) -> str:
    ends = "goes to `other`" if axis.other else "is dropped"
    if kind not in sources.TEXT:
        noun = "categories" if isinstance(axis, CategoricalAxis) else "numbers"
        noun = "days" if isinstance(axis, CalendarAxis) else "bands" if isinstance(axis, BandedAxis) else noun
        if isinstance(axis, BinnedAxis) and axis.unit is not None:
            noun = f"lengths of time, in {axis.unit}"
        return f"{noun}{_comparison(axis, kind) if isinstance(axis, ByText) else ''}; a row without a value {ends}"
    if isinstance(axis, CalendarAxis):
        return f"{dates_in_words(axis.format)}; a row whose value does not parse {ends}"
    if not isinstance(axis, ByText):
        reading = _text_numbers(spec)
        return f"{reading}; a row whose value does not parse {ends}"
    compared = "compared letter by letter, with case and blanks (`tidy: [trim, lower]` ignores these)"
    if axis.tidy:
        compared = f"compared after {' and '.join(axis.tidy)}"
    spellings = {} if isinstance(axis, BandedAxis) else axis.spellings
    more = f"; {len(spellings):,} more spellings count" if spellings else ""
    return f"{compared}{more}; a row with another value than declared {ends}"


def _text_numbers(spec: ReleaseSpec) -> str:
    """How numbers in text are written, and which fields say so."""
    if spec.thousands:
        mark = "," if spec.decimal_comma else "."
        return f"numbers written 1{spec.thousands}250{mark}5 (`thousands`) or 1250{mark}5"
    if spec.decimal_comma:
        return 'numbers written 3,5 (`decimal_comma`), and 3.5 is none (for 1.250,5 set `thousands: "."`, too)'
    return (
        "numbers written 3.5 (for 3,5 set `decimal_comma: true`), so 1.250 is 1.25 and 1,250 is none (for thousands "
        'set `thousands: "."`, `","`, `" "` or "\'")'
    )


def _comparison(axis: ByText, kind: str) -> str:
    """How categories are compared with values that are no text, and which of them none can be."""
    never = keys_of(axis, kind).never
    compared = ", compared as numbers (1 is 1.0)" if is_number(kind) else ""
    return compared + (f"; no value of this type is {first_of(never, MOST_NEVER)}" if never else "")
