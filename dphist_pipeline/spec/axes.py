"""Axes as a spec writes them, and the bins they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    TypeAdapter,
    ValidationInfo,
)

from dphist_pipeline.domain import Axis, BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec import words
from dphist_pipeline.spec.fields import Flag, Text, one_of
from dphist_pipeline.spec.numbers import digits, edge
from dphist_pipeline.spec.refusals import Location, MistakesError, not_yet, shown

MOST_CELLS = 10_000_000
MOST_AXES = 50

BINNED_KEYS = ("start", "stop", "width", "edges")
CATEGORICAL_KEYS = ("values", "values_from")


def _axis_name(value: object, info: ValidationInfo) -> str:
    if value is not None:
        word = words.name(value)
    elif "column" not in info.data:
        return ""
    else:
        word = _name_of_column(info.data["column"])
    if word in words.OUR_COLUMNS:
        raise ValueError(f"{shown(word)} is a column that every release has; choose another name with `name:`")
    return word


def _name_of_column(column: str) -> str:
    try:
        return words.name(column)
    except ValueError:
        problem = f"the column {shown(column)} cannot be a published name"
    raise ValueError(
        f"{problem}; add `name: {words.suggestion(column)}` (lower-case letters, digits and _, no SQL word)"
    )


def _stop(value: object, info: ValidationInfo) -> Fraction | None:
    if value is None:
        return None
    stop, start = edge(value), info.data.get("start")
    if start is not None and stop <= start:
        raise ValueError(f"{digits(stop)} must lie above start {digits(start)}")
    return stop


def _width(value: object, info: ValidationInfo) -> Fraction | None:
    if value is None:
        return None
    width = edge(value)
    if width <= 0:
        raise ValueError(f"must be above 0, not {digits(width)}")
    start, stop = info.data.get("start"), info.data.get("stop")
    if start is not None and stop is not None:
        _check_division(start, stop, width)
    return width


def _check_division(start: Fraction, stop: Fraction, width: Fraction) -> None:
    bins = (stop - start) / width
    if bins > MOST_CELLS:
        raise ValueError(f"makes more than {MOST_CELLS:,} bins, the most that a release may have; use wider bins")
    if bins.denominator != 1:
        fitting = start + math.ceil(bins) * width
        raise ValueError(
            f"{digits(width)} does not divide the way from start to stop; "
            f"use `stop: {digits(fitting)}`, another width, or `edges`"
        )
    if width <= Fraction(math.ulp(float(max(abs(start), abs(stop))))):
        raise ValueError(
            "is too narrow for doubles to tell the edges apart; use wider bins or a smaller start and stop"
        )


def _edges(value: object) -> tuple[Fraction, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be one rising list of numbers such as [0, 18, 65], not {shown(value)}")
    if len(value) < 2:
        raise ValueError("needs at least two edges to make a bin")
    found: list[tuple[Location, str]] = []
    numbers: list[Fraction] = []
    for position, item in enumerate(value):
        try:
            numbers.append(edge(item))
        except ValueError as error:
            found.append(((position,), str(error)))
    if found:
        raise MistakesError(found)
    _check_rising(numbers)
    return tuple(numbers)


def _check_rising(numbers: list[Fraction]) -> None:
    found: list[tuple[Location, str]] = []
    for position in range(1, len(numbers)):
        before, here = numbers[position - 1], numbers[position]
        if here <= before:
            what = f"{digits(here)} must lie above edges[{position - 1}], {digits(before)}: bins may not overlap"
            found.append(((position,), f"{what}; sort the edges and write each once"))
        elif float(here) == float(before):
            found.append(((position,), f"is the same double as edges[{position - 1}]; use wider bins"))
    if found:
        raise MistakesError(found)


class _AxisSpec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Text
    name: Annotated[str, PlainValidator(_axis_name)] = Field(default=None, validate_default=True)
    other: Flag = False


class BinnedAxisSpec(_AxisSpec):
    """Bins of a number, evenly spaced or by their edges, held as exact fractions."""

    start: Annotated[Fraction | None, PlainValidator(lambda value: None if value is None else edge(value))] = None
    stop: Annotated[Fraction | None, PlainValidator(_stop)] = None
    width: Annotated[Fraction | None, PlainValidator(_width)] = None
    edges: Annotated[tuple[Fraction, ...] | None, PlainValidator(_edges)] = None
    closed: Annotated[Literal["left", "right"], one_of("left", "right")] = "left"
    below: Flag = False
    above: Flag = False

    @property
    def bins(self) -> int:
        """Number of declared bins, known without making them."""
        if self.edges is not None:
            return len(self.edges) - 1
        start, stop, width = self._spacing()
        return int((stop - start) / width)

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.bins + self.below + self.above + self.other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return f"{self.name}_lower", f"{self.name}_upper"

    @cached_property
    def axis(self) -> Axis:
        """The axis with its edges as the doubles nearest to the exact ones."""
        edges = tuple(map(float, self.edges)) if self.edges is not None else self._even_edges()
        return BinnedAxis(str(self.name), str(self.column), edges, self.closed, self.below, self.above, self.other)

    def normalised(self) -> dict[str, object]:
        """All fields as JSON values, numbers as exact fractions, defaults filled in."""
        where: dict[str, object] = (
            {"edges": [str(number) for number in self.edges]}
            if self.edges is not None
            else dict(zip(BINNED_KEYS, map(str, self._spacing()), strict=False))
        )
        fixed = {
            "column": str(self.column),
            "name": str(self.name),
            "other": self.other,
            "closed": self.closed,
        }
        return {**where, **fixed, "below": self.below, "above": self.above}

    def _spacing(self) -> tuple[Fraction, Fraction, Fraction]:
        if self.start is None or self.stop is None or self.width is None:
            raise TypeError("an axis without edges has start, stop and width")
        return self.start, self.stop, self.width

    def _even_edges(self) -> tuple[float, ...]:
        """Every edge by one division of whole numbers, which Python rounds correctly."""
        start, _, width = self._spacing()
        unit = math.lcm(start.denominator, width.denominator)
        first, step = int(start * unit), int(width * unit)
        return tuple((first + number * step) / unit for number in range(self.bins + 1))


class CategoricalAxisSpec(_AxisSpec):
    """Named categories, compared as text."""

    values: Annotated[tuple[str, ...], PlainValidator(words.categories)]

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self.values) + self.other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return (str(self.name),)

    @cached_property
    def axis(self) -> Axis:
        """The axis of the domain."""
        return CategoricalAxis(str(self.name), str(self.column), tuple(map(str, self.values)), self.other)

    def normalised(self) -> dict[str, object]:
        """All fields as JSON values, defaults filled in."""
        values = [str(value) for value in self.values]
        return {"column": str(self.column), "name": str(self.name), "other": self.other, "values": values}


def _kind(value: object) -> str:
    keys = value if isinstance(value, Mapping) else dict[str, object]()
    return (
        "categorical"
        if isinstance(value, CategoricalAxisSpec) or any(k in keys for k in CATEGORICAL_KEYS)
        else "binned"
    )


def _decidable(value: object) -> object:
    """Passes on an axis whose keys say, without doubt, whether it is binned or categorical."""
    if isinstance(value, _AxisSpec):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(
            f"must be a mapping such as {{column: age, start: 0, stop: 100, width: 5}}, not {shown(value)}"
        )
    if "calendar" in value:
        raise MistakesError([(("calendar",), not_yet("calendar"))])
    given = [key for key in (*BINNED_KEYS, *CATEGORICAL_KEYS) if key in value]
    if not given:
        unknown = [key for key in value if key not in BinnedAxisSpec.model_fields]
        hint = " ".join(did_you_mean(shown(key), (*BINNED_KEYS, "values")) for key in unknown[:3])
        raise ValueError(f"needs `values`, or `edges`, or `start`, `stop` and `width`. {hint}".strip())
    if any(key in value for key in CATEGORICAL_KEYS) and any(key in value for key in BINNED_KEYS):
        raise ValueError("is both categorical and binned: keep `values`, or `edges`, or `start`, `stop` and `width`")
    _check_whole(given)
    return dict(value)


def _check_whole(given: list[str]) -> None:
    spacing = [key for key in BINNED_KEYS[:3] if key in given]
    if spacing and "edges" in given:
        raise ValueError("has `edges` and `start`, `stop` or `width`: keep one of the two ways")
    missing = [f"`{key}`" for key in BINNED_KEYS[:3] if key not in given]
    if spacing and missing:
        raise ValueError(f"needs {' and '.join(missing)} too, or `edges` instead")


AxisSpec = Annotated[
    Annotated[BinnedAxisSpec, Tag("binned")] | Annotated[CategoricalAxisSpec, Tag("categorical")],
    Discriminator(_kind),
    BeforeValidator(_decidable),
]


def domain_of(described: Iterable[object]) -> Domain:
    """The declared grid from its description in an audit: axes as `normalised` gives them."""
    return Domain(tuple(TypeAdapter(AxisSpec).validate_python(axis).axis for axis in described))


def check_axes(axes: tuple[BinnedAxisSpec | CategoricalAxisSpec, ...]) -> None:
    """Refuses no axes, too many of them, and published columns that clash.

    Raises:
        MistakesError: naming the later of two axes that clash.
    """
    if not 1 <= len(axes) <= MOST_AXES:
        raise ValueError(f"needs between 1 and {MOST_AXES} axes, not {len(axes)}")
    found: list[tuple[Location, str]] = []
    taken = dict.fromkeys(words.OUR_COLUMNS, "that every release has")
    for number, axis in enumerate(axes):
        for column in (axis.name, *axis.columns):
            if taken.setdefault(column, f"of axes[{number}]") != f"of axes[{number}]":
                what = f"its published column {shown(column)} clashes with the one {taken[column]}"
                found.append(((number, "name"), f"{what}; give it another `name:`"))
                break
    if found:
        raise MistakesError(found)
