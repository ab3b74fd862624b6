"""Axes of a spec whose value follows from several rows of one unit: `of_unit` says what is derived of them.

`number` (of the visit), `days_since` (the one before), `is_new`, `first_value`, `last_value` and `count`. Values that
are whole numbers have bins; `is_new` has the categories yes and no; the others have the positions of the axis `of`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.domain import Axis
from dphist_pipeline.spec._binned_axes import BINNED_KEYS, BinnedAxisSpec, NamedAxis
from dphist_pipeline.spec._categorical_axes import CategoricalAxisSpec
from dphist_pipeline.spec.fields import Edge, Flag, PublishedName, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, with_location

OF_UNIT = "of_unit"
MOST_DAYS = 3_660
MOST_NUMBER = 10_000  # rows of a unit that are carried from batch to batch
NUMBERS = ("number", "days_since", "count")
WITHIN = ("number", "days_since", "is_new")
AHEAD = ("last_value", "count")  # of which later rows have a say
YES_AND_NO = ("yes", "no")

Derived = Literal["number", "days_since", "is_new", "first_value", "last_value", "count"]


def _within(written: object) -> int | None:
    """How many days back, None for the period."""
    if written is None or written == "period":
        return None
    days = re.fullmatch(r"([1-9]\d{0,4}) days?", written) if isinstance(written, str) else None
    if days is None or int(days[1]) > MOST_DAYS:
        raise ValueError(f"must be `period`, or a number of days up to {MOST_DAYS:,} such as `30 days`")
    return int(days[1])


def _axis_of(written: object) -> object:
    if written is None or isinstance(written, NamedAxis):
        return written
    raise ValueError(f"names no axis of this release that is read from a column, {echo(written)}; describe one here")


class UnitAxisSpec(NamedAxis):
    """An axis of what a unit's own rows say: the number of a visit, days since the one before, and the like."""

    said_by: ClassVar[tuple[str, ...]] = (OF_UNIT,)

    # Not written: of the axis `of`, else the period's column. `with_columns` fills it in.
    column: str = Field(default="", description="left out")
    name: PublishedName
    of_unit: Derived = Field(description="what is derived of the unit's rows")
    within: Annotated[str | None, Field(description="period, or days back such as `30 days`")] = None
    of: Annotated[NamedAxis | None, BeforeValidator(_axis_of)] = Field(
        default=None, description="an axis of this release by its name, or the description of one that is only read"
    )
    start: Edge | None = None
    stop: Edge | None = None
    width: Edge | None = None
    edges: Annotated[tuple[Edge, ...], tuple_of(least=2)] | None = Field(default=None, examples=["[0, 2, 8, 31]"])
    closed: Literal["left", "right"] = "left"
    below: Flag = False
    above: Flag = False
    whole: Flag = Field(default=True, description="as it is of all values of this kind")

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> Self:
        mistakes: list[tuple[Location, str]] = []
        needed = {"within": self.of_unit in WITHIN, "of": self.of_unit not in NUMBERS}
        for name, is_needed in needed.items():
            if is_needed != (getattr(self, name) is not None):
                problem = f"is required with `of_unit: {self.of_unit}`" if is_needed else "has no use here; remove it"
                mistakes.append(((name,), problem))
        if self.of_unit not in NUMBERS:
            used = self.model_fields_set & {*BINNED_KEYS, "below", "above", "other", "closed", "whole"}
            mistakes += [((name,), f"has no use with `of_unit: {self.of_unit}`; remove it") for name in sorted(used)]
        try:
            _within(self.within)
        except ValueError as error:
            mistakes.append((("within",), str(error)))
        if mistakes:
            raise MistakesError(mistakes)
        if self.of_unit == "number" and self.last_edge > MOST_NUMBER:
            raise MistakesError([(("of_unit",), f"has a last edge above {MOST_NUMBER:,}, the most for `number`")])
        return self

    @cached_property
    def _shape(self) -> Any:
        """The positions that it has, as an axis that were read from a column."""
        if self.of_unit in NUMBERS:
            bins = {name: getattr(self, name) for name in (*BINNED_KEYS, "closed", "below", "above", "other", "whole")}
            try:
                return BinnedAxisSpec(column=self.column or self.name, name=self.name, **bins)
            except ValidationError as error:
                problems = with_location(error, BinnedAxisSpec.model_fields)
            raise MistakesError(problems)
        if self.of_unit == "is_new":
            return CategoricalAxisSpec(column=self.column or self.name, name=self.name, values=YES_AND_NO)
        assert self.of is not None, "checked"
        return self.of.model_copy(update={"name": self.name})

    @property
    def last_edge(self) -> int:
        """The whole number from which on all are alike."""
        return math.ceil(float(self._shape.axis.edges[-1]))

    @property
    def days(self) -> int:
        """How many days before the period its rows look back to."""
        return _within(self.within) or 0

    @property
    def window(self) -> int | None:
        """How many days back from a row; None for the first day of its period."""
        return _within(self.within)

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return int(self._shape.size)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        columns: tuple[str, ...] = self._shape.columns
        return columns

    @property
    def declared_texts(self) -> dict[Location, tuple[str, ...]]:
        """Texts that the spec declares: none of its own, since the axis `of` checks its own texts."""
        return {}

    @property
    def axis(self) -> Axis:
        """The axis of the domain."""
        axis: Axis = self._shape.axis
        return axis

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values; those of its bins where it has some, and the whole description of `of`."""
        fields: dict[str, object] = {"column": self.column, "name": self.name, OF_UNIT: self.of_unit}
        fields |= {} if self.within is None else {"within": self.within}
        if self.of is not None:
            return fields | {"of": self.of.as_json()}
        return {**self._shape.as_json(), **fields}

    def digest_facts(self) -> dict[str, object]:
        """As `as_json`, without words that may change as a title may."""
        return self.as_json() | ({} if self.of is None else {"of": self.of.digest_facts()})


def with_described(
    axis: Mapping[str, Any], described: Callable[[object], NamedAxis], kinds: Mapping[str, type[NamedAxis]]
) -> dict[str, Any]:
    """The axis with its `of` as an axis, where that is a description; `described` reads one."""
    of = axis.get("of")
    if not isinstance(of, Mapping):
        return dict(axis)
    if OF_UNIT in of:
        raise MistakesError([(("of",), "is derived itself; name an axis that is read from a column")])
    try:
        return {**axis, "of": described(of)}
    except ValidationError as error:
        problems = [(("of", *at[1:]), problem) for at, problem in with_location(error, {}, kinds)]
    raise MistakesError(problems)


def read_axes(axes: Iterable[NamedAxis]) -> tuple[tuple[Axis, ...], tuple[int | None, ...]]:
    """The axes whose columns are read, in the spec's order, and of each axis the number of the one that it is, or is
    derived from; None for one that is derived from times alone.

    An axis that `of` describes is read where it stands, unless the release has the same one.
    """
    axes = tuple(axes)
    own = {_reading(axis) for axis in axes if not isinstance(axis, UnitAxisSpec)}
    read: dict[str, Any] = {}
    for axis in axes:
        of = axis.of if isinstance(axis, UnitAxisSpec) else axis
        if of is not None and (of is axis or _reading(of) not in own):
            read.setdefault(_reading(of), of)
    sources = [axis.of if isinstance(axis, UnitAxisSpec) else axis for axis in axes]
    numbers = {reading: number for number, reading in enumerate(read)}
    return tuple(axis.axis for axis in read.values()), tuple(
        None if of is None else numbers[_reading(of)] for of in sources
    )


def _reading(axis: NamedAxis) -> str:
    """The reading of an axis, as text: all but its name."""
    return canonical_json({**axis.as_json(), "name": ""})


def with_columns(written: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a release whose axes of units have the column by which they are ordered, and their `of` in full."""
    axes = written.get("axes")
    if not isinstance(axes, list | tuple):
        return dict(written)
    described = [axis for axis in axes if isinstance(axis, Mapping) and OF_UNIT not in axis]
    named = {str(axis.get("name") or axis.get("column")): axis for axis in described}
    return {**written, "axes": [_with_column(axis, named, written.get("period_column")) for axis in axes]}


def _with_column(axis: Any, named: Mapping[Any, Any], period_column: object) -> Any:
    if not isinstance(axis, Mapping) or OF_UNIT not in axis:
        return axis
    of = axis.get("of")
    if isinstance(of, str):
        of = named.get(of, of)
    column = of.get("column") if isinstance(of, Mapping) else period_column
    return {**axis, **({} if of is None else {"of": of}), **({"column": column} if isinstance(column, str) else {})}


_WORDS = {
    "number": "1 for the unit's first row {within}, 2 for its second one, and so on",
    "days_since": "local days since the unit's row before, if that is one {within}",
    "is_new": "yes, if no earlier row of the unit {within} has the same value of {of}",
    "first_value": "{of} of the unit's first row of the period",
    "last_value": "{of} of the unit's last row of the period",
    "count": "how many rows the unit has in the period",
}


def in_words(axes: Any) -> dict[str, str]:
    """What axes hold that follow from a unit's own rows, by name; `axes` as a spec normalises them."""
    words = {}
    for axis in axes:
        if isinstance(axis, Mapping) and axis.get(OF_UNIT) in _WORDS:
            written = axis.get("within")
            within = "of the period" if written in (None, "period") else f"of at most {written} back"
            of = axis.get("of") or {}
            words[str(axis["name"])] = _WORDS[str(axis[OF_UNIT])].format(within=within, of=of.get("name"))
    return words
