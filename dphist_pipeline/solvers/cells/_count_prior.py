"""The distribution of true counts behind noisy ones, by maximum likelihood, and the posterior of each cell under it.

A prior is a mixture of atoms, i.e. single counts, and of bins, i.e. ranges of counts within which all are equally
likely. Bins grow away from 0, so that a few dozen of them reach any count. Weights are found by expectation
maximisation (Dempster, Laird, Rubin 1977); with atoms at all crowded places that is the nonparametric estimate of
Kiefer and Wolfowitz (1956), as far as some dozen steps go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.cells._count_kernels import (
    add_atoms,
    add_bins,
    back_to_atoms,
    back_to_bins,
    bin_sums,
    crowds,
)

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]

GROWTH = 1.6  # of the bins' widths, away from 0
REACH = 30.0  # noise scales beyond which a bin is out of sight: a factor of e^-30
STEPS, STEPS_A_TRIAL = 40, 20  # of expectation maximisation
CROWD = 3.0  # noisy cells within 1.5 noise scales that make an atom
MOST_ADDED = 24  # atoms and bins of a sparse prior
KNOWN = 1.0  # cells' worth of trust in the first guess of the bins' weights
UNLIKE = 0.02  # cells that differ from one level, as expected before any is seen
RARE = 0.1  # the same where bins have to be paid for: no count is impossible
SMALLEST = 1e-290  # likelihood; noise that reaches it occurs to nobody, but an answer made by hand may


@dataclass(frozen=True, eq=False)
class Sight:
    """Noisy counts, and how likely each bin of counts makes them.

    Attributes:
        points: noisy counts, distinct and rising, shape (n,).
        edges: bin k holds the counts edges[k] to edges[k + 1] - 1; shape (bins + 1,).
        scale: of the noise.
        low, mass, moment: see `count_kernels.bin_sums`.
    """

    points: Reals
    edges: Reals
    scale: float
    low: Numbers
    mass: Reals
    moment: Reals

    @classmethod
    def of(cls, points: Reals, edges: Reals, scale: float) -> Sight:
        """What noisy counts see of bins; O(n · bins within reach).

        Args:
            points: noisy counts, distinct and rising, shape (n,).
            edges: of the bins, see `bin_edges`; shape (bins + 1,).
            scale: of the noise, in records.
        """
        return cls(points, edges, scale, *bin_sums(points, edges, scale, REACH))

    def part(self, rows: Numbers) -> Sight:
        """What some of the points see.

        Args:
            rows: their numbers, rising.
        """
        return Sight(self.points[rows], self.edges, self.scale, self.low[rows], self.mass[rows], self.moment[rows])

    def places(self, points: Reals) -> Reals:
        """Counts at a third of a noise scale from each other beside some points, rising, within the edges.

        Args:
            points: counts, any order, shape (k,).
        """
        step = max(1.0, math.floor(self.scale / 3))
        found: Reals = np.unique(np.clip(np.rint(points / step) * step, self.edges[0], self.edges[-1]))
        return found


@dataclass(frozen=True, eq=False)
class CountPrior:
    """A distribution of counts.

    Attributes:
        atoms: single counts, rising, shape (atoms,).
        atom_weights: their probabilities, shape (atoms,).
        bin_weights: the bins' probabilities, shape (bins,).
    """

    atoms: Reals
    atom_weights: Reals
    bin_weights: Reals

    def likelihoods(self, sight: Sight) -> Reals:
        """How likely each noisy count is, up to a common factor, and the kernel's first moment; shape (n, 2).

        Args:
            sight: of n noisy counts; its bins are those of the prior.
        """
        sums = np.zeros((sight.points.size, 2))
        add_bins(sums, sight.low, sight.mass, sight.moment, self.bin_weights)
        add_atoms(sums, sight.points, self.atoms, self.atom_weights, sight.scale)
        np.maximum(sums[:, 0], SMALLEST, out=sums[:, 0])
        return sums

    def posterior(self, sight: Sight) -> tuple[Reals, Reals]:
        """Likelihood of each noisy count up to a factor, and the mean of the count behind it, shape (n,) each.

        Args:
            sight: see `likelihoods`.
        """
        sums = self.likelihoods(sight)
        return sums[:, 0], sight.points + sums[:, 1] / sums[:, 0]


def bin_edges(lowest: float, highest: float, scale: float) -> Reals:
    """Edges of bins from the lowest count to beyond the highest one, wider away from 0.

    Args:
        lowest: a count; 0 if there are no negative ones.
        highest: a count.
        scale: of the noise; the bins beside 0 have a third of it.
    """

    def side(end: float) -> list[float]:
        edges, width = [0.0], max(1.0, math.floor(scale / 3))
        while edges[-1] <= end:
            edges.append(edges[-1] + math.floor(width))
            width *= GROWTH
        return edges

    below = [-edge for edge in side(-lowest)[:0:-1]] if lowest < 0 else []
    return np.array([*below, *side(max(0.0, highest))])


def one_level_prior(sight: Sight, level: float, cells: float) -> CountPrior:
    """All counts are equal, but for rare ones anywhere.

    Args:
        sight: of the noisy counts.
        level: the count, within the edges; one between two whole numbers is the mean of both.
        cells: how many there are.
    """
    count, low = sight.edges.size - 1, math.floor(level)
    rare, above = UNLIKE / (UNLIKE + cells), level - low
    atoms, weights = np.array([low, low + 1.0]), np.array([1.0 - above, above]) * (1.0 - rare)
    return CountPrior(atoms[weights > 0.0], weights[weights > 0.0], np.full(count, rare / count))


def crowded_prior(sight: Sight, cells: Reals) -> CountPrior:
    """The prior under which noisy cells are most likely, with an atom wherever several of them lie close together.

    Args:
        sight: of the distinct noisy counts.
        cells: number of cells with each, shape (n,); fractions are weights.
    """
    atoms = sight.places(sight.points[crowds(sight.points, cells, 1.5 * sight.scale) >= CROWD])
    even = np.full(sight.edges.size - 1, 1.0 / (sight.edges.size - 1))
    weights = np.full(atoms.size, 0.5 / max(1, atoms.size))
    start = CountPrior(atoms, weights, even * (1.0 - weights.sum()))
    return _likelier(start, sight, cells, CountPrior(atoms, np.zeros(atoms.size), KNOWN * even), STEPS)[0]


def reweighted_prior(prior: CountPrior, sight: Sight, cells: Reals, trust: float) -> CountPrior:
    """The same atoms and bins with the weights of some of the cells, drawn towards those of all.

    Args:
        prior: of all cells.
        sight, cells: see `crowded_prior`; of some of them.
        trust: number of cells that the prior counts for.
    """
    known = CountPrior(prior.atoms, trust * prior.atom_weights, trust * prior.bin_weights)
    return _likelier(prior, sight, cells, known, STEPS)[0]


def sparse_prior(sight: Sight, cells: Reals, price: float, lean: bool) -> CountPrior:
    """A prior of few atoms and bins: starts from 0, and adds the best one as long as the likelihood pays for it.

    Args:
        sight, cells: see `crowded_prior`.
        price: least gain of the log-likelihood by an atom or a bin.
        lean: bins are paid for as well; otherwise all bins are there from the start.
    """
    count, places = sight.edges.size - 1, sight.places(sight.points)
    used = np.full(count, not lean)
    floor = np.full(count, (RARE if lean else KNOWN) / count)
    bins = floor / (floor.sum() + cells.sum()) if lean else np.full(count, 0.5 / count)
    prior = CountPrior(np.zeros(1), np.array([1.0 - bins.sum()]), bins)
    prior, reached = _likelier(prior, sight, cells, CountPrior(prior.atoms, np.zeros(1), floor), STEPS_A_TRIAL, used)
    for _ in range(MOST_ADDED):
        more, taken = _with_best(prior, sight, cells, places, used)
        known = CountPrior(more.atoms, np.zeros(more.atoms.size), floor)
        more, found = _likelier(more, sight, cells, known, STEPS_A_TRIAL, taken)
        if found < reached + price:
            break
        prior, reached, used = more, found, taken
    return prior


def _with_best(
    prior: CountPrior, sight: Sight, cells: Reals, places: Reals, used: NDArray[np.bool_]
) -> tuple[CountPrior, NDArray[np.bool_]]:
    """The prior with the atom or bin along which the likelihood rises fastest, and the bins that are used then."""
    ratio = cells / prior.likelihoods(sight)[:, 0]
    by_atom = np.where(np.isin(places, prior.atoms), 0.0, back_to_atoms(ratio, sight.points, places, sight.scale))
    by_bin = np.where(used, 0.0, back_to_bins(ratio, sight.low, sight.mass, used.size))
    part = 1.0 / (prior.atoms.size + used.sum() + 2)
    atoms, weights, bins = prior.atoms, prior.atom_weights * (1.0 - part), prior.bin_weights * (1.0 - part)
    if by_bin.max() >= by_atom.max():
        new = np.arange(used.size) == np.argmax(by_bin)
        return CountPrior(atoms, weights, bins + part * new), used | new
    best = places[np.argmax(by_atom)]
    at = int(np.searchsorted(atoms, best))
    return CountPrior(np.insert(atoms, at, best), np.insert(weights, at, part), bins), used


def _likelier(
    prior: CountPrior,
    sight: Sight,
    cells: Reals,
    known: CountPrior,
    steps: int,
    used: NDArray[np.bool_] | None = None,
) -> tuple[CountPrior, float]:
    """Better weights by expectation maximisation, and the log-likelihood of the cells before the last step.

    Args:
        prior: to start from.
        sight, cells: see `crowded_prior`.
        known: number of cells that a first guess counts for, as weights.
        steps: of expectation maximisation.
        used: bins that have more than their floor; all if left out.
    """
    for step in range(steps + 1):
        likely = prior.likelihoods(sight)[:, 0]
        if step == steps:
            break
        ratio = cells / likely
        atoms = prior.atom_weights * back_to_atoms(ratio, sight.points, prior.atoms, sight.scale) + known.atom_weights
        bins = prior.bin_weights * back_to_bins(ratio, sight.low, sight.mass, prior.bin_weights.size)
        bins = (bins if used is None else bins * used) + known.bin_weights
        total = atoms.sum() + bins.sum()
        prior = CountPrior(prior.atoms, atoms / total, bins / total)
    return prior, float((cells * np.log(likely)).sum())
