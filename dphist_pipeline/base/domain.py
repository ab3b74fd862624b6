"""The declared grid: the cells of a release and their order. It follows from the spec alone, not from the records.

Cells are numbered in C order: the last axis runs fastest. The order along an axis is: below, the bins (or categories),
above, other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.axes import (
    AmountAxis,
    Axis,
    BandedAxis,
    BinnedAxis,
    ByText,
    CalendarAxis,
    CategoricalAxis,
    day_of,
    number_of_day,
)

__all__ = [
    "OTHER",
    "SECONDS",
    "AmountAxis",
    "Axis",
    "BandedAxis",
    "BinnedAxis",
    "ByText",
    "CalendarAxis",
    "CategoricalAxis",
    "Domain",
    "Family",
    "Figures",
    "Levels",
    "day_of",
    "finest",
    "groups_along",
    "number_of_day",
    "texts_at",
    "with_words",
]

# How many seconds the units of lengths of time have.
SECONDS: Mapping[str, Fraction] = {
    **{"weeks": Fraction(604_800), "days": Fraction(86_400), "hours": Fraction(3_600), "minutes": Fraction(60)},
    **{"seconds": Fraction(1), "milliseconds": Fraction(1, 10**3), "microseconds": Fraction(1, 10**6)},
    "nanoseconds": Fraction(1, 10**9),
}
OTHER = "other"  # the name of the cell of values that no bin or category holds


@dataclass(frozen=True)
class Domain:
    """The axes of a cube, which define every cell that is counted and published."""

    axes: tuple[Axis, ...]

    @classmethod
    def from_shape(cls, shape: tuple[int, ...]) -> Domain:
        """The domain of an array: bins of width 1, numbered from 0, on the axes `axis_0`, `axis_1`, …

        Args:
            shape: cells along each axis.
        """
        axes = [(f"axis_{number}", tuple(map(float, range(size + 1)))) for number, size in enumerate(shape)]
        return cls(tuple(BinnedAxis(name, name, edges) for name, edges in axes))

    def called(self, labels: Mapping[str, str] | None) -> Domain:
        """The same grid with its axes named as readers call them: for pages and pictures, not for SQL and files.

        Args:
            labels: by name of an axis; those without one keep their name.
        """
        return Domain(tuple(replace(axis, name=(labels or {}).get(axis.name) or axis.name) for axis in self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis, in declared order."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Number of cells of the whole cube."""
        return math.prod(self.shape)

    def sums_along(self, axis: str | None, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Counts by position along an axis, or their total, shape (1,).

        Args:
            counts: of the cells, shape of the domain.
        """
        others = tuple(number for number, known in enumerate(self.axes) if known.name != axis)
        return np.atleast_1d(counts.sum(axis=others))

    @cached_property
    def amount(self) -> int | None:
        """The number of the axis of an amount; None without one. No grid has two."""
        return next((number for number, axis in enumerate(self.axes) if isinstance(axis, AmountAxis)), None)

    @cached_property
    def of_rows(self) -> Domain:
        """The grid without its axis of an amount: its cells hold rows; the same grid without such an axis."""
        if self.amount is None:
            return self
        return Domain(tuple(axis for number, axis in enumerate(self.axes) if number != self.amount))

    @property
    def strides(self) -> tuple[int, ...]:
        """Difference of cell numbers for one step along each axis (mixed radix)."""
        return tuple(math.prod(self.shape[number + 1 :]) for number in range(len(self.axes)))

    @property
    def strides_of_rows(self) -> tuple[int, ...]:
        """`strides` of the grid without an amount, along which every row stands at 0."""
        strides = iter(self.of_rows.strides)
        return tuple(0 if number == self.amount else next(strides) for number in range(len(self.axes)))


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one axis that tables use, as a tree: each position lies in one position of the level above.

    Attributes:
        axes: the levels as axes of a family, by their numbers in its domain, the coarsest first.
        parents: for each level but the first, the number of each position's group in the level above, int64, shape
            (positions,). Every group has a position.
    """

    axes: tuple[int, ...]
    parents: tuple[NDArray[np.int64], ...]

    @cached_property
    def _known(self) -> tuple[object, ...]:
        return self.axes, sha256(b"".join(parent.tobytes() for parent in self.parents)).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Levels) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known)

    @property
    def even(self) -> bool:
        """Whether all positions of a level have equally many positions in the level below."""
        return all(np.unique(np.bincount(parent)).size == 1 for parent in self.parents)

    @property
    def above(self) -> dict[int, int]:
        """For each level but the coarsest the next coarser one, by their numbers as axes."""
        return dict(zip(self.axes[1:], self.axes, strict=False))


@dataclass(frozen=True)
class Family:
    """Tables that are released together: marginals of a grid that is never built.

    Attributes:
        domain: the axes that tables have; several levels of one declared axis are axes of their own.
        sources: for each of them, the number of the declared axis that it groups, or that it is.
        names: of the tables.
        tables: for each table its axes, as numbers in `domain`, rising.
        weights: for each table how much its accuracy counts.
        most_cells: that a table may have.
    """

    domain: Domain
    sources: tuple[int, ...]
    names: tuple[str, ...]
    tables: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    most_cells: int

    def grid(self, axes: Collection[int]) -> Domain:
        """The cells of a marginal: its axes in declared order."""
        return Domain(tuple(self.domain.axes[axis] for axis in sorted(axes)))

    @cached_property
    def trees(self) -> tuple[Levels, ...]:
        """The axes that tables use at several levels; mostly none."""
        several = dict.fromkeys(source for source in self.sources if self.sources.count(source) > 1)
        return tuple(self._tree(source) for source in several)

    def _tree(self, source: int) -> Levels:
        levels = [number for number, one in enumerate(self.sources) if one == source]
        axes = sorted(levels, key=lambda number: (self.domain.axes[number].size, -number))
        steps = pairwise(self.domain.axes[number] for number in axes)
        return Levels(tuple(axes), tuple(np.array(groups_along(fine, coarse)) for coarse, fine in steps))


def groups_along(axis: Axis, level: Axis) -> tuple[int, ...]:
    """For each position along an axis, its position along one of its levels.

    Args:
        level: an axis of its groups; `other` is a group of its own.

    Raises:
        KeyError: the axis has no such level.
    """
    assert isinstance(axis, CategoricalAxis) and isinstance(level, CategoricalAxis)
    places = {group: place for place, group in enumerate(level.values)}
    groups = tuple(places[group] for group in axis.levels[level.name])
    return (*groups, level.size - 1) if axis.other else groups


def finest(domains: Iterable[Domain]) -> Domain:
    """All axes of some tables but those that are levels of others."""
    every = {axis.name: axis for domain in domains for axis in domain.axes}
    match: dict[str, Axis] = {}
    # The finest first: a level with the groups of another one is as fine, and one of them is enough.
    for axis in sorted(every.values(), key=lambda axis: -axis.size):
        if not any(axis.name in one.levels for one in match.values()):
            match[axis.name] = axis
    return Domain(tuple(axis for name, axis in every.items() if name in match))


@dataclass(frozen=True, eq=False)
class Figures:
    """Public figures that whole tables meet exactly.

    Attributes:
        levels: the axes, or levels of axes, that they are given by; no two are of one axis.
        values: along each of them, `other` among them.
        rows: the figure of every combination of values, int64, shape (values along the first, along the second, …).
    """

    levels: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    rows: NDArray[np.int64]


def with_words(axis: Axis) -> dict[str, str]:
    """What pages and terminals call each category: its text, and its label where it has another one; empty for bins."""
    if not isinstance(axis, CategoricalAxis):
        return {}
    pairs = zip(axis.values, axis.labels or axis.values, strict=True)
    return {value: f"{value} {label}" if label and label != value else value for value, label in pairs}


def texts_at(axis: Axis, level: str) -> list[str]:
    """What the positions of an axis are called at a level.

    Args:
        level: the name of the axis, or of one of its levels; nothing is returned if it has no such level.
    """
    if not isinstance(axis, CategoricalAxis) or level not in (axis.name, *axis.levels):
        return []
    return list(axis.values if axis.name == level else axis.levels[level]) + [OTHER] * axis.other
