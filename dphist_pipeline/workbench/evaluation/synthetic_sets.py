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
    """The counts of one of `SETS`, int64, shape (cells,); always the same."""
    if name not in SETS:
        raise unknown_synthetic_set(name)
    figures = SETS[name]
    values = _skewed_values(figures)
    body = values[1:-1]  # sorted, without the extremes, which do not change
    _add_records(body, figures.total - int(values.sum()), figures)
    squares = round(figures.cells * figures.variance + figures.total**2 / figures.cells)
    _match_squares(body, squares - int((values**2).sum()), figures)
    return values[_ranks_of_cells(figures)]


def _skewed_values(figures: PrintedFigures) -> Numbers:
    """Sorted whole numbers with about the mean and variance of the set, and exactly its extremes."""
    places = (np.arange(figures.cells) + 0.5) / figures.cells
    reach = figures.largest - figures.smallest + 1
    inside = -np.expm1(-((reach / figures.scale) ** (1 / figures.power)))
    quantiles = figures.scale * (-np.log1p(-places * inside)) ** figures.power
    whole = np.rint(quantiles + figures.smallest - 0.5).clip(figures.smallest, figures.largest)
    values: Numbers = whole.astype(np.int64)
    values[0], values[-1] = figures.smallest, figures.largest
    return values


def _add_records(body: Numbers, missing: int, figures: PrintedFigures) -> None:
    """Adds or removes single records in place, spread evenly over the values that may change."""
    step = 1 if missing > 0 else -1
    while missing:
        room = np.flatnonzero((body + step >= figures.smallest) & (body + step <= figures.largest))
        cells = room[np.linspace(0, room.size - 1, min(abs(missing), room.size)).astype(np.int64)]
        body[cells] += step
        missing -= step * cells.size
    body.sort()


def _match_squares(body: Numbers, missing: int, figures: PrintedFigures) -> None:
    """Moves single records between values in place until the sum of squares has grown by `missing`, to within 1.

    A move from a value to one that is larger by d adds 2·d + 2 to the sum of squares; the reverse move removes 2·d - 2.
    """
    while abs(missing) > 1:
        half = abs(missing) // 2
        if missing > 0:
            giver = int(np.searchsorted(body, figures.smallest, side="right"))
            taker = int(np.searchsorted(body, min(body[giver] + half - 1, figures.largest - 1), side="right")) - 1
        else:
            taker = int(np.searchsorted(body, figures.smallest, side="left"))
            giver = int(np.searchsorted(body, body[taker] + half + 1, side="right")) - 1
        before = int(body[giver]) ** 2 + int(body[taker]) ** 2
        body[giver] -= 1
        body[taker] += 1
        missing -= int(body[giver]) ** 2 + int(body[taker]) ** 2 - before
        body.sort()


def _ranks_of_cells(figures: PrintedFigures) -> Numbers:
    """The rank of each cell's value: the rank of random numbers that are averaged over `alike` neighbours."""
    draws = np.random.Generator(np.random.PCG64(SEED)).random(figures.cells + figures.alike - 1)
    level = np.convolve(draws, np.ones(figures.alike), mode="valid")
    ranks = np.empty(figures.cells, dtype=np.int64)
    ranks[np.argsort(level, kind="stable")] = np.arange(figures.cells)
    return ranks
