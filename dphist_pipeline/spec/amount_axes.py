"""Axes of a spec over an amount, such as a cost: its declared ends, and what it is measured in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import Field, model_validator

from dphist_pipeline.base.domain import AmountAxis, Axis
from dphist_pipeline.estimates.budget import LARGEST_SCALE
from dphist_pipeline.spec._binned_axes import NamedAxis
from dphist_pipeline.spec._quality import QualitySpec
from dphist_pipeline.spec.fields import Edge, Title, digits, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError

GEOMETRIC = "geometric"
MOST_DIGITS = 15
SMALLEST = Fraction(1, 10**9)
# Names of an axis that columns of figures have.
FIGURE_COLUMNS = frozenset({"rows", "figure", "value", "unit", "note", "source_digest"})
FOLLOWS = (
    "Amount '{axis}': the promise holds only if column '{column}' follows from a unit's own records and public things. "
    "Weights that are calibrated on everybody, or the size or income of a household, depend on other persons: then "
    "one person moves several rows, and no check sees it."
)


FEWEST_PARTS, MOST_PARTS = 1 << 8, 1 << 16
AMOUNT_KEYS = ("amount", "measured_in")
AmountEnds = Annotated[tuple[Edge, ...], tuple_of(2, 2)]


class AmountRelease(Protocol):
    """A release spec, as far as its amount asks it."""

    @property
    def axes(self) -> Sequence[NamedAxis]:
        """All axes."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""

    @property
    def tables(self) -> object | None:
        """Tables that are released together."""

    @property
    def quality(self) -> QualitySpec | None:
        """The quality table, which tells of rows."""

    @property
    def take(self) -> str:
        """The choice among a unit's rows."""

    @property
    def engine(self) -> str:
        """The engine that reads and counts."""

    @property
    def sensitivity(self) -> int:
        """The sensitivity of its counts, in rows."""

    @property
    def mechanism_epsilon(self) -> Fraction:
        """The mechanism's part of epsilon."""


def is_amount(axis: Any) -> bool:
    """Whether an axis of a spec is an amount, read from a column or derived of a unit's own rows."""
    # Not by `axis.axis`, which makes all bins of an axis, however many these are.
    return getattr(axis, "amount", None) is not None


def parts_for(sensitivity: int, epsilon: Fraction) -> int | None:
    """The largest power of two, from 2^8 to 2^16, of parts of a row for which noise can be drawn; None for no such."""
    parts = MOST_PARTS
    while parts >= FEWEST_PARTS and sensitivity * parts > LARGEST_SCALE * epsilon:
        parts //= 2
    return parts if parts >= FEWEST_PARTS else None


def refused_with_amount(spec: AmountRelease) -> list[tuple[Location, str]]:
    """What a release with an amount cannot have."""
    mistakes: list[tuple[Location, str]] = []
    amounts = {axis.name for axis in spec.axes if is_amount(axis)}
    if spec.mechanism != GEOMETRIC:
        mistakes.append((("mechanism",), f"must be `{GEOMETRIC}` with an amount: others know nothing of parts of rows"))
    if spec.tables is not None:
        mistakes.append((("tables",), "have no amounts; leave the amount out, or write a release without `tables`"))
    if spec.engine != "duckdb":
        mistakes.append((("engine",), "must be duckdb with an amount: Spark does not split rows"))
    if spec.take == "one_per_cell":
        problem = "does not go with an amount: amounts of equal rows add up; use `all`, `first` or `last`"
        mistakes.append((("take",), problem))
    if spec.quality is not None:
        problem = "is the amount, along which rows have no position; name another axis"
        by = enumerate(spec.quality.by)
        mistakes += [(("quality", "by", number), problem) for number, name in by if name in amounts]
    if parts_for(spec.sensitivity, spec.mechanism_epsilon) is None:
        least = spec.sensitivity * FEWEST_PARTS / LARGEST_SCALE
        problem = f"is too small for an amount at a sensitivity of {spec.sensitivity:,} rows; the mechanism needs "
        mistakes.append((("epsilon",), f"{problem}{digits(least)}. Raise it, or lower `max_rows_per_unit`"))
    return mistakes


class AmountAxisSpec(NamedAxis):
    """An amount between two declared ends; the release has rows, sum and mean of it."""

    said_by: ClassVar[tuple[str, ...]] = ("amount",)

    amount: AmountEnds = Field(
        description="the least and the largest amount; what lies beyond counts as the nearer end",
        examples=["[0, 20000]"],
    )
    # A word like the title: it is in no digest, and stands beside the axes in an audit, not in them.
    measured_in: Title = Field(default="", description="unit of the amount, for readers", examples=["EUR"])

    @model_validator(mode="after")
    def _ends_are_apart(self) -> Self:
        if mistakes := list(self._mistaken_ends()):
            raise MistakesError(mistakes)
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the published table."""
        return (self.name,)

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return 2

    @cached_property
    def axis(self) -> Axis:
        """The axis, its ends the doubles nearest to the declared ones."""
        return AmountAxis(self.name, self.column, *map(float, self.amount))

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, numbers as exact fractions."""
        return {"column": self.column, "name": self.name, "amount": [str(end) for end in self.amount]}

    @property
    def remarks(self) -> list[str]:
        """Remarks on what the promise asks of the column, which nothing in the files shows."""
        return [FOLLOWS.format(axis=self.name, column=self.column)]

    def _mistaken_ends(self) -> Iterator[tuple[Location, str]]:
        if self.other:
            yield ("other",), "is no use: a row whose amount does not parse is in no cell of an amount; leave it out"
        for place, end in enumerate(self.amount):
            if 0 < abs(end) < SMALLEST:
                yield ("amount", place), f"{digits(end)} must be 0, or at least 10^-9 in size; use a smaller unit"
            elif Fraction(f"{float(end):.{MOST_DIGITS}g}") != end:
                yield ("amount", place), f"{digits(end)} has more than {MOST_DIGITS} significant digits; give fewer"
        low, high = map(float, self.amount)
        if not low < high:
            yield ("amount", 1), f"{digits(self.amount[1])} must lie above the lower end {digits(self.amount[0])}"
