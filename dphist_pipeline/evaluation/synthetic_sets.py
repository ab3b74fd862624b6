"""Synthetic counts with the size, mean, variance and range of data sets that papers use and that are not available.

Chen et al. 2024 (Algorithms 17(7), 293) print these figures for four sets in table 1, and say in figure 3 and section
6.1 that most bins are small. A synthetic set consists of the rounded quantiles of a Weibull distribution, cut off at
the largest count, with the printed extremes. Single records are moved until the total and the sum of squares agree with
the printed figures. The set has nothing else in common with the original.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Refused, did_you_mean

Numbers = NDArray[np.int64]
SEED = 293


@dataclass(frozen=True)
class PrintedFigures:
    """The figures that a paper prints for a set, and the parameters of a similar Weibull distribution.

    Attributes:
        cells: number of cells.
        total: number of records, the printed mean times the cells.
        variance: of the counts over all cells, in records squared.
        smallest, largest: count, in records.
        scale: the quantiles are scale · (-ln(1 - u))^power; solved for total and variance.
        power: see `scale`.
        alike: number of neighbouring cells with similar counts; 1 for a random order.
    """

    cells: int
    total: int
    variance: float
    smallest: int
    largest: int
    scale: float
    power: float
    alike: int = 1


SETS = {
    # Means 24.13, 10.25, 0.39 and 59.49. The census of 2006 counted 186,411 people in Waitakere; the paper's text says
    # 186,471, which does not agree with its mean.
    "waitakere": PrintedFigures(7_725, 186_411, 4764.57, 0, 467, 3.85314, 6.27061),
    # Queries in intervals of 90 minutes; counts are similar over about two days.
    "search_log": PrintedFigures(32_768, 335_872, 577.31, 0, 496, 5.13188, 2.04627, alike=32),
    "net_trace": PrintedFigures(65_536, 25_559, 91.01, 0, 1_423, 3.0588e-4, 6.39747),
    "social_network": PrintedFigures(11_342, 674_736, 2995.0, 1, 1_678, 61.3548, 0.894067),
}


def unknown_synthetic_set(name: str) -> Refused:
    """No synthetic set has this name."""
    return Refused(
        f"there is no synthetic data set {name[:60]!r}. {did_you_mean(name, SETS)}", code="unknown_synthetic_set"
    )


def synthetic_counts(name: str) -> Numbers:
    """The counts of one of `SETS`, int64, shape (cells,); always the same.

    Raises:
        Refused: with the known names.
    """
    if name not in SETS:
        raise unknown_synthetic_set(name)
    wanted = SETS[name]
    values = _skewed_values(wanted)
    body = values[1:-1]  # sorted, without the extremes, which do not change
    _add_records(body, wanted.total - int(values.sum()), wanted)
    squares = round(wanted.cells * wanted.variance + wanted.total**2 / wanted.cells)
    _match_squares(body, squares - int((values**2).sum()), wanted)
    return values[_ranks_of_cells(wanted)]


def _skewed_values(wanted: PrintedFigures) -> Numbers:
    """Sorted whole numbers with about the mean and variance of the set, and exactly its extremes."""
    places = (np.arange(wanted.cells) + 0.5) / wanted.cells
    reach = wanted.largest - wanted.smallest + 1
    inside = -np.expm1(-((reach / wanted.scale) ** (1 / wanted.power)))
    quantiles = wanted.scale * (-np.log1p(-places * inside)) ** wanted.power
    whole = np.rint(quantiles + wanted.smallest - 0.5).clip(wanted.smallest, wanted.largest)
    values: Numbers = whole.astype(np.int64)
    values[0], values[-1] = wanted.smallest, wanted.largest
    return values


def _add_records(body: Numbers, missing: int, wanted: PrintedFigures) -> None:
    """Adds or removes single records in place, spread evenly over the values that may change."""
    step = 1 if missing > 0 else -1
    while missing:
        room = np.flatnonzero((body + step >= wanted.smallest) & (body + step <= wanted.largest))
        cells = room[np.linspace(0, room.size - 1, min(abs(missing), room.size)).astype(np.int64)]
        body[cells] += step
        missing -= step * cells.size
    body.sort()


def _match_squares(body: Numbers, missing: int, wanted: PrintedFigures) -> None:
    """Moves single records between values in place until the sum of squares has grown by `missing`, to within 1.

    A move from a value to one that is larger by d adds 2·d + 2 to the sum of squares; the reverse move removes 2·d - 2.
    """
    while abs(missing) > 1:
        half = abs(missing) // 2
        if missing > 0:
            giver = int(np.searchsorted(body, wanted.smallest, side="right"))
            taker = int(np.searchsorted(body, min(body[giver] + half - 1, wanted.largest - 1), side="right")) - 1
        else:
            taker = int(np.searchsorted(body, wanted.smallest, side="left"))
            giver = int(np.searchsorted(body, body[taker] + half + 1, side="right")) - 1
        before = int(body[giver]) ** 2 + int(body[taker]) ** 2
        body[giver] -= 1
        body[taker] += 1
        missing -= int(body[giver]) ** 2 + int(body[taker]) ** 2 - before
        body.sort()


def _ranks_of_cells(wanted: PrintedFigures) -> Numbers:
    """The rank of each cell's value: the rank of random numbers that are averaged over `alike` neighbours."""
    draws = np.random.Generator(np.random.PCG64(SEED)).random(wanted.cells + wanted.alike - 1)
    level = np.convolve(draws, np.ones(wanted.alike), mode="valid")
    ranks = np.empty(wanted.cells, dtype=np.int64)
    ranks[np.argsort(level, kind="stable")] = np.arange(wanted.cells)
    return ranks
