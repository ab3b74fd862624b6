"""What all other cells of a grid say of each cell, by the laws of halves of `split_posterior`.

The weights of the laws are learned from all cells, some forty numbers from thousands of cells; with weights held, what
the others say of a cell is a function of their noisy counts alone. So the cell's own count may be estimated from both,
and judged, without being seen twice. (Windows lie around noisy counts, its own among them, but only limit where
messages are looked at: they reach 9 noise scales beyond.)

Yet likelihoods of cells, each given all others, must not be added up: where noise makes neighbours alike each of the
two is likely given the other, and the coincidence counts twice. The likelihood of all cells at once counts it once:
under empty cells it is g times that of empty cells with a probability of at most 1/g. So the cells' likelihoods are
brought to that sum, all by one factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees._halved_boxes import (
    NEAR_EMPTY,
    NOTHING,
    SMALLEST,
    Evidence,
    HalvedBoxes,
    learned_weights,
)
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, Widths
from dphist_pipeline.solvers.trees.split_posterior import LEARNED_ON, halvings

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Window = tuple[Numbers, Numbers, NDArray[np.float32]]  # first counts in steps, where entries start, their chances


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Laws of each cell's count, given all other cells.

    Attributes:
        noisy: the noisy counts, shape (cells,).
        window: the laws, up to a factor for each cell.
        step: records a step.
        scale: of the discrete Laplace noise, in records.
        factor: of all cells' likelihoods; see the module.
    """

    noisy: Reals
    window: Window
    step: float
    scale: float
    factor: float = 1.0

    @classmethod
    def of(cls, noisy: Reals, scale: float, weights: Reals) -> Surroundings:
        """Takes about as long as `split_means` without learning.

        The count of all cells, in steps, has a law of 1 / ((n + 1) · (1 + ln(n + 1))²): nearly alike on all orders of
        magnitude, and not small for none.

        Args:
            noisy: whole noisy counts, shape of the grid, of two cells or more.
            weights: of the laws; see `split_weights`.
        """
        boxes = _halve(noisy, scale)
        table = kernels.mixed_table(kernels.law_tables(boxes.step), weights)
        whole, cells = boxes.levels[0], boxes.levels[-1]
        above = np.log1p(whole.low[0] + np.arange(int(whole.starts[-1]), dtype=np.float64))
        first = np.exp(-above) / (1.0 + above) ** 2
        chances, likely = boxes.outside(table, weights, first / first.sum())
        last = cells.low + np.diff(cells.starts) - 1
        nearest = np.clip(np.rint(noisy.ravel() / boxes.step), cells.low, last) * boxes.step
        likely -= float(np.abs(noisy.ravel() - nearest).sum()) / scale
        alone = cls(noisy.ravel(), (cells.low, cells.starts, chances), boxes.step, scale)
        one_by_one, _ = alone.estimates(np.arange(noisy.size), np.zeros(1), False)
        factor = math.exp((likely - float(np.log(one_by_one).sum())) / noisy.size)
        return cls(alone.noisy, alone.window, alone.step, scale, factor)

    def estimates(self, chosen: Numbers, offsets: Reals, relative: bool) -> tuple[Reals, Reals]:
        """Likelihoods and estimates of chosen cells; see `expert_rules.estimates`.

        The law of a window that does not begin at 0 says nothing of how likely counts beyond it were. All such cells
        share their part of the cells, over counts t as 1 / (t · (1 + ln(t / cut))²): never more than all of it.
        """
        far = (np.count_nonzero(self.window[0]) + 1.0) / (self.noisy.size + 2.0)
        values = np.empty((2, chosen.size, offsets.size))
        known = (self.step, self.scale, far, NEAR_EMPTY * self.step)
        _answers(self.window, known, self.noisy, chosen, offsets, relative, values)
        return cast(Reals, np.maximum(values[0] * self.factor, SMALLEST)), cast(Reals, values[1])


def split_weights(noisy: Reals, scale: float) -> Reals:
    """Weights of the laws of halves, learned from all cells, or from blocks that lie evenly over a large grid.

    Args:
        noisy, scale: see `Surroundings.of`.

    Returns:
        Shape (classes, laws); a row sums to 1.
    """
    blocks = [block for block in _blocks(noisy) if block.size > 1]
    pieces = [_halve(block, scale) for block in blocks]
    return learned_weights(pieces, kernels.law_tables(pieces[0].step))


def _blocks(noisy: Reals) -> list[Reals]:
    """The grid, or some blocks of at most a quarter of `LEARNED_ON` cells, together about as many."""
    if noisy.size <= LEARNED_ON:
        return [noisy]
    widths = next(widths for widths in _chain(noisy) if 4 * math.prod(widths) <= LEARNED_ON)
    grid = [-(-side // width) for side, width in zip(noisy.shape, widths, strict=True)]
    wanted = np.unique(np.linspace(0, math.prod(grid) - 1, LEARNED_ON // math.prod(widths)).astype(np.int64))
    blocks = []
    for at in zip(*np.unravel_index(wanted, grid), strict=True):
        place = tuple(slice(int(one) * width, (int(one) + 1) * width) for one, width in zip(at, widths, strict=True))
        blocks.append(np.ascontiguousarray(noisy[place]))
    return blocks


def _chain(noisy: Reals) -> list[Widths]:
    """Widths of the boxes of all levels; see `halvings`."""
    return halvings(RegularTree(noisy.shape, ((1,) * noisy.ndim,)))


def _halve(noisy: Reals, scale: float) -> HalvedBoxes:
    """The boxes of a grid of which cells alone were measured."""
    chain, measured = _chain(noisy), Evidence(noisy.ravel().astype(np.float64), np.full(noisy.size, scale))
    deviations = [math.sqrt(2.0 * math.prod(widths)) * scale for widths in chain]
    evidence: Sequence[Evidence] = [NOTHING] * (len(chain) - 1) + [measured]
    return HalvedBoxes.around(chain, noisy, deviations, evidence, scale)


@compile_function
def _answers(
    window: Window,
    known: tuple[float, float, float, float],
    noisy: Reals,
    chosen: Numbers,
    offsets: Reals,
    relative: bool,
    values: Reals,
) -> None:
    """Writes likelihoods and estimates; see `expert_rules.estimates`.

    Args:
        known: records a step; scale; part of cells far from 0; where far begins, in records.
        values: is filled, shape (2, chosen, offsets).
    """
    lows, starts, chances = window
    step, scale, far, cut = known
    posterior = np.empty(int(np.diff(starts).max()))
    for row in range(chosen.size):
        cell = chosen[row]
        start, size = starts[cell], int(starts[cell + 1] - starts[cell])
        whole = 0.0
        for place in range(size):
            whole += chances[start + place]
        for column in range(offsets.size):
            point, first = noisy[cell] + offsets[column], lows[cell] * step
            away = max(0.0, first - point, point - (first + (size - 1) * step))
            mass, moment = 0.0, 0.0
            for place in range(size):
                count = first + place * step
                chance = chances[start + place] if whole > 0.0 else 1.0
                posterior[place] = chance * math.exp((away - abs(point - count)) / scale)
                mass += posterior[place]
                moment += posterior[place] * count
            if lows[cell] > 0:
                high = max(point, cut)
                likely = far * 2.0 * scale / (high * (1.0 + math.log(high / cut)) ** 2)
            else:
                likely = (1.0 - far) * mass * math.exp(-away / scale) / max(whole, 1e-300)
            values[0, row, column] = max(likely, SMALLEST)
            values[1, row, column] = moment / mass if mass > 0.0 else max(0.0, point)
            if relative and mass > 0.0:
                total = 0.0
                for place in range(size):
                    posterior[place] /= max(1.0, first + place * step)
                    total += posterior[place]
                place, passed = 0, posterior[0]
                while passed < 0.5 * total and place < size - 1:
                    place += 1
                    passed += posterior[place]
                values[1, row, column] = first + place * step
