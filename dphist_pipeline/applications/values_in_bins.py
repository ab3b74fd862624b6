"""Values within the cells of an axis: numbers and days spread over their bins, categories with labels and levels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphist_pipeline.applications.whole_release import application_refused
from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.chosen_cells import End, check_axes, end_of
from dphist_pipeline.publishing.parquet_tables import texts_at

Reals = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """How values lie within bins.

    Attributes:
        low: the lowest value of the open bin below, by axis; a day on a calendar axis.
        high: the end of the open bin above, by axis.
        whole_numbers: binned axes whose values are whole numbers.
        interpolate: whether density rises or falls within a bin towards the next one; else it is uniform.
    """

    low: Mapping[str, End]
    high: Mapping[str, End]
    whole_numbers: Sequence[str] = ()
    interpolate: bool = False

    def check(self, domain: Domain) -> None:
        """Refuses names that are no binned axes, and ends for bins that are not open."""
        binned = {axis.name: axis for axis in domain.axes if isinstance(axis, BinnedAxis)}
        for option, names in (("low", self.low), ("high", self.high), ("whole_numbers", self.whole_numbers)):
            for name in names:
                if name not in binned:
                    check_axes(domain, [name])
                    raise application_refused(
                        f"{option}: axis '{name}' has categories; name an axis of numbers or days"
                    )
                if option != "whole_numbers" and not (binned[name].below if option == "low" else binned[name].above):
                    raise application_refused(f"{option}: axis '{name}' has no open bin at that end; leave it out")


def columns_of(axis: Axis, spread: Spread, counts: NDArray[np.int64]) -> NumberColumn | CategoryColumns:
    """Prepares the columns of an axis.

    Args:
        counts: whole counts along the axis, shape (size,); for interpolation.

    Raises:
        Refused: an open bin has no declared end, or a bin holds no whole number.
    """
    if isinstance(axis, CategoricalAxis):
        return CategoryColumns(axis)
    assert isinstance(axis, BinnedAxis), "an amount has no whole counts"
    lower, upper = _closed_ends(axis, spread)
    tilt = _tilts(counts[: lower.size], upper - lower) if spread.interpolate else np.zeros(lower.size)
    if isinstance(axis, CalendarAxis) or axis.name in spread.whole_numbers:
        whole_numbers = _whole_numbers_between(axis, lower, upper)
        return NumberColumn(axis, whole_numbers[0].astype(np.float64), whole_numbers[1].astype(np.float64), tilt, True)
    return NumberColumn(axis, lower, upper, tilt, False)


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """The column of a binned axis.

    Attributes:
        lower: lower end of each bin, without `other`; of whole numbers the first one.
        upper: upper end of each bin; of whole numbers one more than the last.
        tilt: by how much the density at the upper end exceeds that at the middle, as a share, from -1 to 1.
    """

    axis: BinnedAxis
    lower: Reals
    upper: Reals
    tilt: Reals
    is_whole: bool

    @property
    def fields(self) -> list[pa.Field]:
        """Name and type of the column."""
        whole = pa.date32() if isinstance(self.axis, CalendarAxis) else pa.int64()
        return [pa.field(self.axis.name, whole if self.is_whole else pa.float64())]

    def draw(self, places: Places, random: np.random.Generator) -> list[pa.Array]:
        """One value in the bin of each record; null in `other`."""
        other = places == self.axis.other_cell if self.axis.other else None
        bins = np.where(other, 0, places) if other is not None else places
        lower, upper, share = self.lower[bins], self.upper[bins], random.random(places.size)
        from_above = self.axis.closed == "right" and not self.is_whole
        if self.tilt.any():
            share = _draws_of_tilt(share, self.tilt[bins] * (-1 if from_above else 1))
        if self.is_whole:
            values = np.minimum(lower + np.floor(share * (upper - lower)), upper - 1).astype(np.int64)
            kind = np.int32 if isinstance(self.axis, CalendarAxis) else np.int64
            return [pa.array(values.astype(kind), mask=other).cast(self.fields[0].type)]
        # Rounding must not carry a value over the end that does not belong to its bin.
        if from_above:
            values = np.maximum(upper - share * (upper - lower), np.nextafter(lower, upper))
        else:
            values = np.minimum(lower + share * (upper - lower), np.nextafter(upper, lower))
        return [pa.array(values, mask=other)]


@dataclass(frozen=True, eq=False)
class CategoryColumns:
    """The columns of an axis of categories: the category, its label, its group on each level."""

    axis: CategoricalAxis

    @property
    def fields(self) -> list[pa.Field]:
        """Names and types of the columns."""
        return [pa.field(name, pa.string()) for name in self.axis.columns]

    def draw(self, places: Places, random: np.random.Generator) -> list[pa.Array]:
        """The texts of each record; null in `other`."""
        return [texts_at(along, places) for along in self.axis.published.values() if isinstance(along, list)]


def _closed_ends(axis: BinnedAxis, spread: Spread) -> tuple[Reals, Reals]:
    """Both ends of each bin along an axis, without `other`, with declared ends for open bins."""
    bins = axis.size - axis.other
    lower, upper = (ends[:bins].copy() for ends in axis.bounds)
    for option, declared, is_open, ends, place in (
        ("low", spread.low, axis.below, lower, 0),
        ("high", spread.high, axis.above, upper, -1),
    ):
        if not is_open:
            continue
        edge = axis.edges[place]
        side = "below" if option == "low" else "above"
        if declared.get(axis.name) is None:
            raise application_refused(
                f"axis '{axis.name}' has an open bin {side} {axis.written(edge)}: declare where its values end, "
                f"on the command line by --{option} {axis.name}=VALUE, in Python by {option}={{{axis.name!r}: VALUE}}"
            )
        ends[place] = end_of(axis, declared[axis.name], math.nan)
        if not math.isfinite(ends[place]) or not lower[place] < upper[place]:
            raise application_refused(f"{option}: the end of axis '{axis.name}' must lie {side} {axis.written(edge)}")
    return lower, upper


def _whole_numbers_between(axis: BinnedAxis, lower: Reals, upper: Reals) -> tuple[Reals, Reals]:
    """The first whole number in each bin, and the one after the last."""
    left_closed = axis.closed == "left"
    first, after = (np.ceil(lower), np.ceil(upper)) if left_closed else (np.floor(lower) + 1, np.floor(upper) + 1)
    if not (first < after).all():
        bin_ = int(np.argmin(first < after))
        ends = f"{axis.written(float(lower[bin_]))} to {axis.written(float(upper[bin_]))}"
        raise application_refused(f"whole_numbers: the bin of axis '{axis.name}' from {ends} holds no whole number")
    if max(abs(first[0]), abs(after[-1])) > 2**53:
        raise application_refused(f"whole_numbers: axis '{axis.name}' reaches beyond 2^53; leave it out")
    return first, after


def _tilts(counts: NDArray[np.int64], widths: Reals) -> Reals:
    """The tilt of density in each bin: the smaller of the slopes to both neighbours, 0 at peaks, dips and the ends.

    So the density is never negative and no bin's share changes.
    """
    density, tilt = counts / widths, np.zeros(counts.size)
    if counts.size < 3:
        return tilt
    slopes = np.diff(density) / ((widths[:-1] + widths[1:]) / 2)
    before, after = slopes[:-1], slopes[1:]
    gentler = np.where(np.abs(before) < np.abs(after), before, after) * (before * after > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt[1:-1] = np.where(density[1:-1] > 0, gentler * widths[1:-1] / 2 / density[1:-1], 0.0)
    return np.clip(tilt, -1.0, 1.0)


def _draws_of_tilt(share: Reals, tilt: Reals) -> Reals:
    """Uniform shares in [0, 1) as draws from the density 1 + tilt · (2x - 1): solves x + tilt · (x² - x) = share."""
    root = (1 - tilt) + np.sqrt((1 - tilt) ** 2 + 4 * tilt * share)
    return np.divide(2 * share, root, out=np.zeros_like(share), where=root > 0)
