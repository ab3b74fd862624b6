"""Whether the cells of a publication tell more than noise makes: by published files alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import INTERVALS
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

BY_CHANCE = Fraction(1, 1000)  # of publications without a record that would be taken to tell something
HIGHEST = Fraction(999_999, 1_000_000)


@dataclass(frozen=True)
class CellsAboveZero:
    """Cells whose 95 % intervals lie above zero, and what noise alone would make.

    `by_chance`: how many would, in the mean, if no record were counted; an upper bound. `tell`: there are more of them,
    or one is farther above zero, than chance makes in 999 of 1,000.
    """

    cells: int
    above: int
    by_chance: float
    tell: bool


def cells_above_zero(tables: Sequence[Path]) -> CellsAboveZero:
    """Compares the cells of all tables of a publication with what noise makes of empty ones."""
    cells, above, far, allowed = 0, 0, 0, 0.0
    are_independent = True
    laws = [(folder, audit, domain_of(audit["axes"])) for folder, audit in ((one, read_audit(one)) for one in tables)]
    every = sum(domain.of_rows.cells for *_, domain in laws)
    level = min(HIGHEST, 1 - BY_CHANCE / every)
    for folder, audit, domain in laws:
        noisy = pq.ParquetFile(folder / "histogram.parquet").read(["unbiased_estimate"])["unbiased_estimate"]
        if noisy.null_count:
            continue
        values = noisy.to_numpy().reshape(domain.shape)
        rows = Estimate(domain, values, (), published_unbiased(audit, values)).of_rows
        unbiased = rows.unbiased
        if not isinstance(unbiased, NoisyCells | NestedCells):
            continue
        cells += rows.cells
        are_independent &= isinstance(unbiased, NoisyCells)
        above += int((unbiased.values > _widest(unbiased, INTERVALS.level)).sum())
        far += int((unbiased.values > _widest(unbiased, level)).sum())
        allowed += rows.cells * float(1 - level) / 2
    # Far cells by Markov's inequality, which holds however noise is shared; many cells where each has its own.
    enough = max(1, math.ceil(allowed / float(BY_CHANCE)))
    chance = cells * float(1 - INTERVALS.level) / 2
    many = are_independent and len(laws) == 1 and above > 0 and _at_least(above, chance) <= float(BY_CHANCE)
    return CellsAboveZero(cells, above, chance, far >= enough or many)


def _widest(unbiased: NoisyCells | NestedCells, level: Fraction) -> float:
    """Half the width of the interval of a cell, of the widest one if they differ, in records."""
    return unbiased.law.half_width_of_linear(float(unbiased.variances.max()), level)


def _at_least(number: int, mean: float) -> float:
    """A bound on the probability of so many events of small probability: Chernoff's, of the Poisson law."""
    return 1.0 if number <= mean else math.exp(number - mean - number * math.log(number / mean))
