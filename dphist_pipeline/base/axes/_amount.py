"""Axes of an amount: two positions, its ends, between which every row is split.

A row of the amount a counts (a - low) / (high - low) of a row at `high`, and the rest at `low`. So the rows at both
ends add up to rows, and end times rows to amounts, however these are distributed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from dphist_pipeline.base.axes._interface import Along, Kind, PublicType, Reads


@dataclass(frozen=True)
class AmountAxis:
    """An axis of an amount from `low` to `high`, which are declared; its published column `<name>` holds the two.

    Amounts beyond the ends count as the nearer one. A row whose amount does not parse is in no cell.
    """

    name: str
    column: str
    low: float
    high: float

    kind: ClassVar[Kind] = "amount"
    reads: ClassVar[Reads] = "numbers"
    is_ordered: ClassVar[bool] = True
    size: ClassVar[int] = 2
    other: ClassVar[bool] = False
    other_cell: ClassVar[None] = None
    labels: ClassVar[tuple[str, ...]] = ()
    levels: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high, in the order of the positions."""
        return self.low, self.high

    def written(self, end: float) -> str:
        """The shortest text of an end that reads back as the same double, without a final `.0`."""
        return repr(end).removesuffix(".0")

    def worth_of_part(self, parts: int) -> float:
        """How far the sum moves where one part of a row moves from an end to the other.

        Args:
            parts: of a row.
        """
        return (self.high - self.low) / parts

    @property
    def columns(self) -> dict[str, PublicType]:
        """The end."""
        return {self.name: "double"}

    @property
    def keys(self) -> tuple[str, ...]:
        """The end, which no cell lacks."""
        return (self.name,)

    @property
    def published(self) -> dict[str, Along]:
        """Both ends."""
        return {self.name: np.array(self.ends)}
