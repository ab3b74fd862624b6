"""What a kind of axis says of itself, so that few others must ask of which kind an axis is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["bins", "calendar", "categories", "amount"]
Reads = Literal["numbers", "days", "texts"]
PublicType = Literal["double", "string"]
# A value for each position along an axis; a number that is not finite is published as null.
Along = NDArray[np.float64] | list[str | None]


class AxisKind(Protocol):
    """An axis of any kind; each kind is one file beside this one."""

    @property
    def name(self) -> str:
        """What its published columns and conditions are called."""

    @property
    def column(self) -> str:
        """Its column in the source."""

    @property
    def kind(self) -> Kind:
        """What its positions are: bins of numbers, bins of days, categories, or the two ends of an amount."""

    @property
    def reads(self) -> Reads:
        """What its column in the source holds: numbers, days, or texts that are compared."""

    @property
    def is_ordered(self) -> bool:
        """Whether neighbours along it are alike, so that ranges of it and sums of neighbours mean something."""

    @property
    def size(self) -> int:
        """Number of cells along the axis."""

    @property
    def other(self) -> bool:
        """Whether there is a cell for null, unparsable and undeclared values."""

    @property
    def other_cell(self) -> int | None:
        """Position of the `other` cell, always the last."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Display names of its positions; mostly none."""

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Coarser groupings by name, the finest first: the group of each position; mostly none."""

    @property
    def columns(self) -> dict[str, PublicType]:
        """The columns of a published table, with their types."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The published columns that are all null for `other`, and for no other cell."""

    @property
    def published(self) -> dict[str, Along]:
        """What the published columns hold at each position; None, or a number that is not finite, is null there."""
