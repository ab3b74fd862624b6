"""Axes of half-open bins of a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.axes._interface import Along, Kind, PublicType, Reads


@dataclass(frozen=True)
class BinnedAxis:
    """An axis of half-open bins of a number; its published columns are `<name>_lower` and `<name>_upper`.

    `edges`, in axis units, are rising and at least two: the doubles nearest to the declared decimals. `closed`: the end
    of a bin that belongs to it. `below`, `above`: there is a cell beyond the first or last edge; `other`: there is one
    for null, unparsable and undeclared values. `whole`: values are whole numbers: bins are told by their first and last
    one. `unit`: of edges over a column of lengths of time, as `days`; how a column is read is no part of the grid.
    `lowest`, `highest`: where values of the open bins end, by the office's word; no part of the grid either.
    """

    name: str
    column: str
    edges: tuple[float, ...]
    closed: Literal["left", "right"] = "left"
    below: bool = False
    above: bool = False
    other: bool = False
    whole: bool = False
    unit: str | None = field(default=None, compare=False, kw_only=True)
    lowest: float | None = field(default=None, compare=False, kw_only=True)
    highest: float | None = field(default=None, compare=False, kw_only=True)

    kind: ClassVar[Kind] = "bins"
    reads: ClassVar[Reads] = "numbers"
    is_ordered: ClassVar[bool] = True
    labels: ClassVar[tuple[str, ...]] = ()
    levels: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

    @property
    def bins(self) -> int:
        """Number of declared bins, without below, above and other."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.bins + self.below + self.above + self.other

    @property
    def other_cell(self) -> int | None:
        """Position of the `other` cell, always the last."""
        return self.size - 1 if self.other else None

    @cached_property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper end of every cell, shape (size,); infinite at open ends, nan for `other`."""
        edges = np.array(self.edges)
        lower = [np.array([-math.inf])] * self.below + [edges[:-1]]
        upper = [edges[:1]] * self.below + [edges[1:]]
        if self.above:
            lower.append(edges[-1:])
            upper.append(np.array([math.inf]))
        if self.other:
            lower.append(np.array([math.nan]))
            upper.append(np.array([math.nan]))
        return np.concatenate(lower), np.concatenate(upper)

    def values_between(self, lower: float, upper: float, closed: bool = False) -> tuple[float, float]:
        """The ends, infinite if open, between which the values of a bin lie: of whole numbers, the first and last one.

        `closed`: both ends of the last bin belong to it.
        """
        if not self.whole or (closed and upper == self.edges[-1]):
            return lower, upper
        return (lower, upper - 1) if self.closed == "left" else (lower + 1, upper)

    def written(self, end: float) -> str:
        """The shortest text of an end of a bin that reads back as the same double, without a final `.0`."""
        return repr(end).removesuffix(".0")

    def public_end(self, end: float) -> float | str | None:
        """An end of a bin as boxes and files have it; None for an open one, and for `other`."""
        return end if math.isfinite(end) else None

    @property
    def columns(self) -> dict[str, PublicType]:
        """Both ends."""
        return {f"{self.name}_lower": "double", f"{self.name}_upper": "double"}

    @property
    def keys(self) -> tuple[str, ...]:
        """Both ends: an open bin has one."""
        return f"{self.name}_lower", f"{self.name}_upper"

    @property
    def published(self) -> dict[str, Along]:
        """The ends of every cell."""
        return dict(zip(self.keys, self.bounds, strict=True))
