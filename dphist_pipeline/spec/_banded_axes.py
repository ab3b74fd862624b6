"""Axes of numbers whose source holds text for each bin, such as `[70-80)`: the spec says where each band begins."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from dphist_pipeline.domain import Axis, BandedAxis
from dphist_pipeline.spec.binned_axes import MOST_CELLS, NamedAxis
from dphist_pipeline.spec.fields import Flag, listed
from dphist_pipeline.spec.numbers import Edge, digits
from dphist_pipeline.spec.refusals import Location, MistakesError
from dphist_pipeline.spec.words import Category
from dphist_pipeline.tidying import STEPS, Step, tidied

BANDS = "bands"


class BandedAxisSpec(NamedAxis):
    """Bands that the source holds as text. Each ends where the next begins, the last at `stop`, or nowhere."""

    bands: dict[Category, Edge] = Field(
        description="each text of the source and the lower end of its band", examples=['{"0-17": 0, "18-64": 18}']
    )
    stop: Edge | None = Field(default=None, description="the upper end of the last band; open without it")
    whole: Flag = Field(default=False, description="values are whole numbers: bins are told as 0 to 17")
    tidy: Annotated[tuple[Step, ...], listed(0, len(STEPS))] = Field(default=(), examples=["[trim, lower, nfc]"])

    @model_validator(mode="after")
    def _bands_are_apart(self) -> Self:
        found = [*self._mistaken_ends(), *self._counted_twice()]
        if found:
            raise MistakesError(found)
        return self

    @property
    def bins(self) -> int:
        """Number of bands with two ends."""
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.bins + (self.stop is None) + self.other

    @cached_property
    def axis(self) -> Axis:
        """The axis, its edges the lower ends, and for each text the cell that counts it."""
        cells = {end: cell for cell, end in enumerate(self._ends)}
        return BandedAxis(
            self.name,
            self.column,
            tuple(map(float, self._ends)),
            above=self.stop is None,
            other=self.other,
            whole=self.whole,
            bands={text: cells[end] for text, end in self.bands.items()},
            tidy=self.tidy,
        )

    def normalised(self) -> dict[str, object]:
        """All fields as JSON values, numbers as exact fractions; `stop`, `whole`, `tidy` only where used."""
        told: dict[str, object] = {"column": self.column, "name": self.name, "other": self.other}
        told[BANDS] = {text: str(end) for text, end in self.bands.items()}
        used = {"stop": None if self.stop is None else str(self.stop), "whole": self.whole, "tidy": list(self.tidy)}
        return told | {name: value for name, value in used.items() if value}

    @property
    def _ends(self) -> list[Fraction]:
        """The ends of all bands, rising."""
        return sorted({*self.bands.values()} | ({self.stop} if self.stop is not None else set()))

    def _mistaken_ends(self) -> Iterator[tuple[Location, str]]:
        if not 2 <= len(self._ends) <= MOST_CELLS:
            yield (BANDS,), "needs at least two bands, or one and `stop`, such as {'0-17': 0, '18 or more': 18}"
        if self.stop is not None and self.bands and max(self.bands.values()) >= self.stop:
            yield ("stop",), f"{digits(self.stop)} must lie above the lower end of every band"
        for before, here in pairwise(self._ends):
            if float(before) == float(here):
                yield (BANDS,), f"{digits(here)} is the same double as the end before it; use wider bands"
        for end in self._ends if self.whole else ():
            if end.denominator != 1:
                yield (BANDS,), f"{digits(end)} is not a whole number, as `whole: true` says; leave `whole` out"

    def _counted_twice(self) -> Iterator[tuple[Location, str]]:
        if len(set(self.tidy)) < len(self.tidy):
            yield ("tidy",), "names a step twice; name each once"
        ends: dict[str, Fraction] = {}
        for number, (text, end) in enumerate(self.bands.items()):
            if ends.setdefault(tidied(text, self.tidy), end) != end:
                yield (BANDS, number), "is the same as an earlier one once both are tidied; keep one of them"
