"""Axes of named categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from dphist_pipeline.base.axes._interface import Along, Kind, PublicType, Reads
from dphist_pipeline.base.tidying import tidy


@dataclass(frozen=True)
class CategoricalAxis:
    """An axis of named categories, in declared order, which are compared as text.

    `other`: there is a cell for null, unparsable and undeclared values. `levels`: coarser groupings by name, the finest
    first: the group of each category. `labels`: display name of each category; may be empty. `tidy`: steps of `tidying`
    that a text takes before it is compared. `spellings`: other texts that are counted as a category. How a column is
    read is no part of the grid.
    """

    name: str
    column: str
    values: tuple[str, ...]
    other: bool = False
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    labels: tuple[str, ...] = ()
    tidy: tuple[str, ...] = field(default=(), compare=False)
    spellings: Mapping[str, str] = field(default_factory=dict, compare=False)

    kind: ClassVar[Kind] = "categories"
    reads: ClassVar[Reads] = "texts"
    is_ordered: ClassVar[bool] = False

    @property
    def texts(self) -> dict[str, int]:
        """The texts that are counted in a cell, as they stand after `tidy`, and the position of that cell."""
        places = {value: place for place, value in enumerate(self.values)}
        categories = {value: value for value in self.values} | {**self.spellings}
        return {tidy(text, self.tidy): places[category] for text, category in categories.items()}

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self.values) + self.other

    @property
    def other_cell(self) -> int | None:
        """Position of the `other` cell, always the last."""
        return self.size - 1 if self.other else None

    @property
    def columns(self) -> dict[str, PublicType]:
        """The category, its label where there are labels, and the group of each level."""
        return dict.fromkeys([self.name, *([f"{self.name}_label"] if self.labels else []), *self.levels], "string")

    @property
    def keys(self) -> tuple[str, ...]:
        """The category."""
        return (self.name,)

    @property
    def published(self) -> dict[str, Along]:
        """The texts of every cell; a label that is not there is null."""
        columns = [self.values, *([self.labels] if self.labels else []), *self.levels.values()]
        return {
            name: [text or None for text in texts] + [None] * self.other
            for name, texts in zip(self.columns, columns, strict=True)
        }
