"""Axes of numbers whose source holds text for each bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from dphist_pipeline.base.axes._binned import BinnedAxis
from dphist_pipeline.base.axes._interface import Reads
from dphist_pipeline.base.tidying import tidy


@dataclass(frozen=True)
class BandedAxis(BinnedAxis):
    """An axis of numbers whose source holds text for each bin: what is published and asked is as of numbers.

    `bands`: texts of the source, and the position that counts each; several may be counted in one. `tidy`: steps of
    `tidying` that a text takes before it is compared.
    """

    bands: Mapping[str, int] = field(default_factory=dict, compare=False)
    tidy: tuple[str, ...] = field(default=(), compare=False)

    reads: ClassVar[Reads] = "texts"

    @property
    def texts(self) -> dict[str, int]:
        """The texts that are counted in a cell, as they stand after `tidy`, and the position of that cell."""
        return {tidy(text, self.tidy): place for text, place in self.bands.items()}
