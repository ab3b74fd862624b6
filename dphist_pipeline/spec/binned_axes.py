"""Axes of numbers as a spec writes them: bins evenly spaced, or by their edges."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

from pydantic import PlainValidator, ValidationInfo

from dphist_pipeline.domain import Axis, BinnedAxis
from dphist_pipeline.spec.axis_names import NamedAxis
from dphist_pipeline.spec.fields import Flag, one_of
from dphist_pipeline.spec.numbers import digits, edge
from dphist_pipeline.spec.refusals import Location, MistakesError, shown

MOST_CELLS = 10_000_000

BINNED_KEYS = ("start", "stop", "width", "edges")


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
        fitting = f"`stop: {digits(start + math.ceil(bins) * width)}`"
        raise ValueError(
            f"{digits(width)} does not divide the way from start to stop; use {fitting}, another width, or `edges`"
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


class BinnedAxisSpec(NamedAxis):
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
