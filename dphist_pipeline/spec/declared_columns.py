"""Columns that a spec derives from those of its source, and the rows that it keeps: `derive` and `keep`.

Each form says which columns it reads and what it gives, in words; its SQL is a template of the same name in
`confidential.reading`. A form looks at one row alone, and none can fail on what a row holds: what does not parse is
null, and a row is kept only where every condition is true.

No form is for a privacy unit: an operator's decision holds the names of its columns, which stay those of the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dphist_pipeline.base.declared_numbers import with_plain_texts
from dphist_pipeline.base.domain import CategoricalAxis
from dphist_pipeline.base.languages.texts import gettext
from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec._calendar_axes import day_of
from dphist_pipeline.spec.fields import Category, Name, Text, digits, edge, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, checker, echo, with_location
from dphist_pipeline.spec.sources import ISO, TextFormat

MOST_DERIVED, MOST_CONDITIONS, MOST_DATES, MOST_LETTERS, MOST_KEPT = 50, 50, 10, 100, 1000
DERIVE_EXAMPLE = "{column: age, years_between: [born, admitted_on]}"
KEEP_EXAMPLE = "{column: kind, is: [inpatient]}"

Two = Annotated[tuple[Text, ...], tuple_of(2, 2)]


class DerivedColumn(BaseModel):
    """A column that is made of others, row by row."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str]  # DuckDB type of what it gives

    column: Name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        raise NotImplementedError

    @property
    def dates(self) -> Mapping[str, str | None]:
        """The columns that it reads as dates, and how text writes them; None where that is not declared."""
        return dict.fromkeys(self.inputs)

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)


class YearsBetween(DerivedColumn):
    """Birthdays from one date to another; the difference of years where one of the two is a year."""

    kind = "BIGINT"
    years_between: Two

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.years_between

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        first, second = self.years_between
        return gettext(
            "whole years from %(first)s to %(second)s; where one of the two is a year alone, the difference of years",
            first=first,
            second=second,
        )


class DaysBetween(DerivedColumn):
    """Midnights from one local day to another."""

    kind = "BIGINT"
    days_between: Two

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.days_between

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        first, second = self.days_between
        return gettext("days from %(first)s to %(second)s", first=first, second=second)


class DatePart(DerivedColumn):
    """A part of a local date or time."""

    kind = "BIGINT"
    part: Literal["year", "quarter", "month", "week", "day", "weekday", "hour"]
    of: Text

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.of,)

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        words = {
            "year": gettext("the year of %(column)s", column=self.of),
            "quarter": gettext("the quarter of %(column)s, 1 to 4", column=self.of),
            "month": gettext("the month of %(column)s, 1 to 12", column=self.of),
            "week": gettext("the ISO week of %(column)s, 1 to 53", column=self.of),
            "day": gettext("the day of the month of %(column)s, 1 to 31", column=self.of),
            "weekday": gettext("the weekday of %(column)s, from 1 (Monday) to 7", column=self.of),
            "hour": gettext("the hour of %(column)s, 0 to 23, as local clocks show it", column=self.of),
        }
        return words[self.part]


class FirstLetters(DerivedColumn):
    """The first Unicode code points of a text, or digits of a whole number."""

    kind = "VARCHAR"
    first_letters: int = Field(strict=True, ge=1, le=MOST_LETTERS)
    of: Text

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.of,)

    @property
    def dates(self) -> Mapping[str, str | None]:
        """None: it reads letters."""
        return {}

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        return gettext("the first characters of %(column)s: %(number)s", column=self.of, number=self.first_letters)


class WrittenDate(BaseModel):
    """A column of dates; `format` says how its text writes them, in ISO 8601 by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Text
    format: TextFormat | None = None

    @property
    def pattern(self) -> str | None:
        """How dates are written; None for ISO dates."""
        return None if self.format == ISO else self.format


def _written_date(value: object) -> object:
    return value if isinstance(value, WrittenDate) else _validate(WrittenDate, value, "{column: admitted_on}")


class FirstOf(DerivedColumn):
    """The first of several columns that holds a date, as a local time stamp."""

    kind = "TIMESTAMP"
    first_of: Annotated[tuple[Annotated[WrittenDate, BeforeValidator(_written_date)], ...], tuple_of(1, MOST_DATES)]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(one.column for one in self.first_of)

    @property
    def dates(self) -> Mapping[str, str | None]:
        """The columns that it reads as dates, and how text writes them; None where that is not declared."""
        return {one.column: one.format for one in self.first_of}

    @property
    def says(self) -> str:
        """What it holds, in the language of the page."""
        columns = [f"{one.column} ({one.pattern})" if one.pattern else one.column for one in self.first_of]
        return gettext("the first of these that holds a date: %(columns)s", columns=", ".join(columns))

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; no format where it is `iso`, the default."""
        dates = [{"column": one.column} | ({"format": one.pattern} if one.pattern else {}) for one in self.first_of]
        return {"column": self.column, "first_of": dates}


FORMS: dict[str, type[DerivedColumn]] = {
    "years_between": YearsBetween,
    "days_between": DaysBetween,
    "part": DatePart,
    "first_letters": FirstLetters,
    "first_of": FirstOf,
}


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    mistakes: list[tuple[Location, str]] = [
        ((number,), f"{echo(value)} is named twice; name it once")
        for number, value in enumerate(values)
        if value in values[:number]
    ]
    if mistakes:
        raise MistakesError(mistakes)
    return values


class Condition(BaseModel):
    """What must be true of a column for a row to count; a row for which it is null does not count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Text

    @property
    def says(self) -> str:
        """Which rows it keeps, in the language of the page."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values, by their names in a spec."""
        raise NotImplementedError


class IsOneOf(Condition):
    """The column holds one of these, compared as an axis compares its categories."""

    values: Annotated[tuple[Category, ...], AfterValidator(_distinct), tuple_of(1, MOST_KEPT)] = Field(alias="is")

    @property
    def axis(self) -> CategoricalAxis:
        """The axis of which these are the categories."""
        return CategoricalAxis("kept", self.column, self.values)

    def with_plain_texts(self) -> IsOneOf:
        """The condition that also takes a number that is written otherwise: 1 as 1.0."""
        return self.model_copy(update={"values": tuple(with_plain_texts(self.axis).texts)})

    @property
    def says(self) -> str:
        """Which rows it keeps, in the language of the page."""
        return gettext("%(column)s is one of: %(values)s", column=self.column, values=", ".join(self.values))

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values, by their names in a spec."""
        return {"column": self.column, "is": list(self.values)}


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def _end(value: object) -> Fraction | date | None:
    """A number, or a day from its ISO date."""
    if value is None or isinstance(value, date):
        return value
    return day_of(value) if isinstance(value, str) and _DAY.fullmatch(value) else edge(value)


End = Annotated[Any, BeforeValidator(_end)]


class IsBetween(Condition):
    """The column holds a number or a date in a range; `from` is included, `to` is not."""

    first: End = Field(default=None, alias="from")
    to: End = None

    @property
    def ends(self) -> dict[str, Fraction | date]:
        """The ends that are declared, by their names in a spec; both are numbers, or both days."""
        return {name: end for name, end in (("from", self.first), ("to", self.to)) if end is not None}

    @property
    def numbers(self) -> dict[str, Fraction]:
        """The ends that are numbers."""
        return {name: end for name, end in self.ends.items() if isinstance(end, Fraction)}

    @property
    def days(self) -> dict[str, date]:
        """The ends that are days."""
        return {name: end for name, end in self.ends.items() if isinstance(end, date)}

    @property
    def says(self) -> str:
        """Which rows it keeps, in the language of the page."""
        ends = {name: end.isoformat() if isinstance(end, date) else digits(end) for name, end in self.ends.items()}
        if "to" not in ends:
            return gettext("%(column)s is %(first)s or more", column=self.column, first=ends["from"])
        if "from" not in ends:
            return gettext("%(column)s is less than %(end)s", column=self.column, end=ends["to"])
        return gettext(
            "%(column)s is %(first)s or more, and less than %(end)s",
            column=self.column,
            first=ends["from"],
            end=ends["to"],
        )

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values, by their names in a spec."""
        return {"column": self.column, **{name: str(end) for name, end in self.ends.items()}}


def _validate(model: type[BaseModel], value: object, example: str) -> Any:
    """A mapping as a model, with all mistakes in it."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping such as {example}, not {echo(value)}")
    try:
        return model.model_validate(dict(value))
    except ValidationError as error:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        mistakes = MistakesError(with_location(error, fields))
    raise mistakes


def _derived_column(value: object) -> object:
    if isinstance(value, DerivedColumn):
        return value
    forms = [form for form in FORMS if isinstance(value, Mapping) and form in value]
    if isinstance(value, Mapping) and len(forms) != 1:
        unknown = next((str(key) for key in value if key not in ("column", "of", *FORMS)), "")
        hint = f" {did_you_mean(unknown, FORMS)}" if unknown and not forms else ""
        raise ValueError(f"needs one of {', '.join(f'`{form}`' for form in FORMS)}.{hint}")
    return _validate(FORMS[forms[0]] if forms else DerivedColumn, value, DERIVE_EXAMPLE)


def _condition(value: object) -> object:
    if isinstance(value, Condition):
        return value
    ranged = isinstance(value, Mapping) and ("from" in value or "to" in value)
    if isinstance(value, Mapping) and ("is" in value) == ranged:
        raise ValueError("needs `is`, or `from` and `to` or one of these")
    condition = _validate(IsBetween if ranged else IsOneOf, value, KEEP_EXAMPLE)
    if isinstance(condition, IsBetween):
        numbers, days = [*condition.numbers.values()], [*condition.days.values()]
        if not condition.ends:
            raise ValueError("needs `from`, `to` or both")
        if numbers and days:
            raise ValueError("compares with a number and with a date; use one of the two")
        if numbers != sorted(set(numbers)) or days != sorted(set(days)):
            raise MistakesError([(("to",), "must lie above `from`: it is the first value that is not kept")])
    return condition


def _in_order(derived: tuple[DerivedColumn, ...]) -> tuple[DerivedColumn, ...]:
    """Columns of different names, in whatever case, each made of those of the source and of earlier ones."""
    mistakes: list[tuple[Location, str]] = []
    names = [one.column for one in derived]
    for number, one in enumerate(derived):
        if one.column in names[:number]:
            mistakes.append(((number, "column"), f"{echo(one.column)} is derived twice; give it another name"))
        mistakes += [
            ((number,), f"reads {echo(column)}, which is derived here or further down; derive it before")
            for column in dict.fromkeys(one.inputs)
            if column in names[number:] and column not in names[:number]
        ]
    if mistakes:
        raise MistakesError(mistakes)
    return derived


Derive = Annotated[
    tuple[Annotated[DerivedColumn, BeforeValidator(_derived_column)], ...],
    AfterValidator(_in_order),
    tuple_of(0, MOST_DERIVED),
]
Keep = Annotated[tuple[Annotated[Condition, BeforeValidator(_condition)], ...], tuple_of(0, MOST_CONDITIONS)]

_DERIVE, _KEEP = checker(Derive), checker(Keep)


def derived_columns(described: Sequence[object]) -> tuple[DerivedColumn, ...]:
    """The derived columns that an `audit.json` describes."""
    return tuple(_DERIVE(list(described)))


def conditions(described: Sequence[object]) -> tuple[Condition, ...]:
    """The conditions on rows that an `audit.json` describes."""
    return tuple(_KEEP(list(described)))


def unit_mistakes(derived: Sequence[DerivedColumn], unit: Sequence[str]) -> list[tuple[Location, str]]:
    """A mistake for each derived column that is called as one of a privacy unit, in upper or lower case."""
    taken = {column.lower() for column in unit}
    return [
        (
            (number, "column"),
            f"{echo(one.column)} names the privacy unit, whose columns are those of the source; give the derived "
            "column another name",
        )
        for number, one in enumerate(derived)
        if one.column in taken
    ]


def inputs_of(derived: Sequence[DerivedColumn], keep: Sequence[Condition]) -> set[str]:
    """The columns that forms and conditions read, derived ones among them."""
    return {column for one in derived for column in one.inputs} | {condition.column for condition in keep}


def source_columns(described: Sequence[object], column: str) -> list[str]:
    """The columns of the source that a column is made of, by the derived columns of an `audit.json`; or itself."""
    columns = [column]
    for one in reversed(derived_columns(described)):
        if one.column in columns:
            place = columns.index(one.column)
            columns[place : place + 1] = one.inputs
            columns = [name for number, name in enumerate(columns) if name not in columns[:number]]
    return columns
