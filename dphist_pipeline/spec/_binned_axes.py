"""Axes of a spec: what every axis has, and axes of numbers, whose bins are evenly spaced or given by their edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from dphist_pipeline.base.domain import SECONDS, Axis, BinnedAxis
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.fields import Edge, Flag, PublishedName, Text, Title, digits, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo

MOST_CELLS = 10_000_000

TimeUnit = Literal["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]
LONGEST_TIME = 36_000 * 366 * SECONDS["days"]  # in seconds: so many microseconds fit 64 bits, with room to spare

LABEL = "label"
BINNED_KEYS = ("start", "stop", "width", "edges")


def _of_column(name: object, info: ValidationInfo) -> object:
    """A name that is the column's own; where that cannot be published, the message asks for another one."""
    if name != info.data.get("column"):
        return name
    try:
        return fields.name(name)
    except ValueError:
        problem = f"the column {echo(name)} cannot be a published name"
    instead = fields.suggestion(str(name)) or "NAME"
    raise ValueError(f"{problem}; add `name: {instead}` (lower-case letters, digits and _, no SQL word)")


class NamedAxis(BaseModel):
    """An axis with its column, its published name, and whether it has a cell for all other values."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    # The keys of which one says that an axis is of this kind; none for the kind that an axis is else.
    said_by: ClassVar[tuple[str, ...]] = ()

    column: Text = Field(description="the column of the source")
    name: Annotated[PublishedName, BeforeValidator(_of_column)] = Field(
        default_factory=lambda axis: axis["column"], validate_default=True
    )
    other: Flag = False
    # A word like the title: it is in no digest, and stands beside the axes in an audit, not in them.
    label: Title = Field(default="", description="what readers call the axis", examples=["household size"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return f"{self.name}_lower", f"{self.name}_upper"

    @property
    def declared_texts(self) -> dict[Location, tuple[str, ...]]:
        """The texts that name its positions, by the fields that give them; `other` may be none of them."""
        return {}

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, as an audit holds them; fields that are newer than digests only where used."""
        raise NotImplementedError

    def digest_facts(self) -> dict[str, object]:
        """What a spec's digest holds of it: `as_json`, without words that may change as a title may."""
        return self.as_json()


class BinnedAxisSpec(NamedAxis):
    """Bins of a number, evenly spaced or by their edges, held as exact fractions."""

    start: Edge | None = None
    stop: Edge | None = None
    width: Edge | None = None
    edges: Annotated[tuple[Edge, ...], tuple_of(least=2)] | None = Field(default=None, examples=["[0, 18, 65]"])
    closed: Literal["left", "right"] = "left"
    below: Flag = False
    above: Flag = False
    whole: Flag = Field(default=False, description="values are whole numbers: bins are told as 0 to 19")
    lowest: Edge | None = Field(default=None, description="no value is less: where `below` ends, for means and sums")
    highest: Edge | None = Field(default=None, description="no value is more: where `above` ends, for means and sums")
    unit: TimeUnit | None = Field(default=None, description="of the bins, over a column of lengths of time")

    @model_validator(mode="after")
    def _bins_are_apart(self) -> Self:
        mistakes = list(_unordered_edges(self.edges)) if self.edges is not None else _uneven(*self._spacing())
        if self.whole and not mistakes:
            mistakes = list(self._broken_ends())
        if self.unit is not None and not mistakes:
            mistakes = list(self._ends_beyond_time(self.unit))
        if not mistakes:
            mistakes = list(self._ends_within())
        if mistakes:
            raise MistakesError(mistakes)
        return self

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

    @cached_property
    def axis(self) -> Axis:
        """The axis with its edges as the doubles nearest to the exact ones."""
        edges = tuple(map(float, self.edges)) if self.edges is not None else self._even_edges()
        grid = (edges, self.closed, self.below, self.above, self.other, self.whole)
        lowest, highest = (None if end is None else float(end) for end in (self.lowest, self.highest))
        return BinnedAxis(self.name, self.column, *grid, unit=self.unit, lowest=lowest, highest=highest)

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, numbers as exact fractions, defaults filled in; `whole` and `unit` where used."""
        numbers = {"start": self.start, "stop": self.stop, "width": self.width}
        numbers |= {"lowest": self.lowest, "highest": self.highest}
        bins = {key: str(number) for key, number in numbers.items() if number is not None}
        edges = {} if self.edges is None else {"edges": list(map(str, self.edges))}
        # Digests are older than these fields.
        unused = {name for name in ("whole", "unit") if not getattr(self, name)}
        return {**self.model_dump(exclude={*BINNED_KEYS, "lowest", "highest", *unused, LABEL}), **bins, **edges}

    def _broken_ends(self) -> Iterator[tuple[Location, str]]:
        """The ends that are no whole numbers, though the values are."""
        numbers = {("start",): self.start, ("stop",): self.stop, ("width",): self.width}
        numbers |= {("lowest",): self.lowest, ("highest",): self.highest}
        ends = numbers | {("edges", place): edge for place, edge in enumerate(self.edges or ())}
        for place, end in ends.items():
            if end is not None and end.denominator != 1:
                yield place, f"{digits(end)} is not a whole number, as `whole: true` says; leave `whole` out"

    def _ends_within(self) -> Iterator[tuple[Location, str]]:
        """The ends of open bins that are not there, or that do not lie within them."""
        if self.edges is not None:
            first, last = self.edges[0], self.edges[-1]
        else:
            first, last, _ = self._spacing()
        # A bin of whole numbers may hold one number, its own edge where that belongs to it.
        for name, end, is_open, room, ends_in in (
            ("lowest", self.lowest, "below", first - (self.lowest or 0), self.closed == "right"),
            ("highest", self.highest, "above", (self.highest or 0) - last, self.closed == "left"),
        ):
            if end is not None and not getattr(self, is_open):
                yield (name,), f"ends the bin of `{is_open}: true`, which this axis does not have; leave it out"
            elif end is not None and (room < 0 or (room == 0 and not (self.whole and ends_in))):
                edge = digits(first if name == "lowest" else last)
                yield (name,), f"{digits(end)} must lie {is_open} {edge}, the edge of the open bin"

    def _ends_beyond_time(self, unit: TimeUnit) -> Iterator[tuple[Location, str]]:
        """The ends that no column of lengths of time holds."""
        ends = {("start",): self.start, ("stop",): self.stop}
        for place, end in (ends | {("edges", at): edge for at, edge in enumerate(self.edges or ())}).items():
            if end is not None and abs(end) * SECONDS[unit] > LONGEST_TIME:
                yield place, f"{digits(end)} {unit} are more than 36,000 years; correct `unit`, or the end"

    def _spacing(self) -> tuple[Fraction, Fraction, Fraction]:
        if self.start is None or self.stop is None or self.width is None:
            raise ValueError("needs `start`, `stop` and `width`, or `edges` instead")
        return self.start, self.stop, self.width

    def _even_edges(self) -> tuple[float, ...]:
        """Every edge by one division of whole numbers, which Python rounds correctly."""
        start, _, width = self._spacing()
        unit = math.lcm(start.denominator, width.denominator)
        first, step = int(start * unit), int(width * unit)
        return tuple((first + number * step) / unit for number in range(self.bins + 1))


def _uneven(start: Fraction, stop: Fraction, width: Fraction) -> list[tuple[Location, str]]:
    """What keeps a width from dividing the numbers from start to stop into bins."""
    if stop <= start:
        return [(("stop",), f"{digits(stop)} must lie above start {digits(start)}")]
    if width <= 0:
        return [(("width",), f"must be above 0, not {digits(width)}")]
    bins = (stop - start) / width
    if bins > MOST_CELLS:
        problem = f"makes more than {MOST_CELLS:,} bins, the most that a release may have; use wider bins"
    elif bins.denominator != 1:
        fitting = f"`stop: {digits(start + math.ceil(bins) * width)}`"
        problem = (
            f"{digits(width)} does not divide the way from start to stop; use {fitting}, another width, or `edges`"
        )
    elif width <= Fraction(math.ulp(float(max(abs(start), abs(stop))))):
        problem = "is too narrow for doubles to tell the edges apart; use wider bins or a smaller start and stop"
    else:
        return []
    return [(("width",), problem)]


def _unordered_edges(edges: tuple[Fraction, ...]) -> Iterator[tuple[Location, str]]:
    """The edges that do not lie above the edge before them."""
    for position, (before, edge) in enumerate(pairwise(edges), 1):
        if edge <= before:
            problem = f"{digits(edge)} must lie above edges[{position - 1}], {digits(before)}: bins may not overlap"
            yield ("edges", position), f"{problem}; sort the edges and write each once"
        elif float(edge) == float(before):
            yield ("edges", position), f"is the same double as edges[{position - 1}]; use wider bins"
