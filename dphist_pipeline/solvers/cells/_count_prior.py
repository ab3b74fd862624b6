"""The distribution of true counts behind noisy ones, by maximum likelihood, and the posterior of each cell under it.

A prior is a mixture of atoms, i.e. single counts, and of bins, i.e. ranges of counts within which all are equally
likely. Bins grow away from 0, so that a few dozen of them reach any count. Weights are found by expectation
maximisation (Dempster, Laird, Rubin 1977); with atoms at all crowded places that is the nonparametric estimate of
Kiefer and Wolfowitz (1956), as far as some dozen steps go.

All sums are of the kernel exp(-|t - z| / scale) of two-sided geometric noise over the counts t of a prior. It falls by
the same factor with every step. So sums over single counts (atoms) need one pass from the left and one from the right,
and sums over ranges of counts (bins) have a closed form. No window is cut off for atoms; bins further off than `reach`
noise scales are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


@compile_function
def crowds(points: Reals, cells: Reals, reach: float) -> Reals:
    """How many cells lie within reach of each point, shape (n,).

    Args:
        points: counts, distinct and rising, shape (n,).
        cells: number of cells at each point, shape (n,); fractions are weights.
        reach: in records, both ends included.
    """
    crowds, left, right, inside = np.zeros(points.size), 0, 0, 0.0
    for place in range(points.size):
        while right < points.size and points[right] <= points[place] + reach:
            inside += cells[right]
            right += 1
        while points[left] < points[place] - reach:
            inside -= cells[left]
            left += 1
        crowds[place] = inside
    return crowds


@compile_function
def bin_sums(points: Reals, edges: Reals, scale: float, reach: float) -> tuple[Numbers, Reals, Reals]:
    """For each point the first bin within reach, and the kernel's mean and first moment over each bin from there.

    Args:
        points: counts, distinct and rising, shape (n,).
        edges: bin k holds the counts edges[k] to edges[k + 1] - 1; shape (bins + 1,).
        reach: in noise scales.

    Returns:
        First bins, shape (n,); means, shape (n, most bins); moments around the point, the same.
    """
    bins = edges.size - 1
    low, most, left, right = np.zeros(points.size, dtype=np.int64), 1, 0, 0
    for place in range(points.size):
        while left < bins - 1 and edges[left + 1] <= points[place] - reach * scale:
            left += 1
        right = max(right, left)
        while right < bins - 1 and edges[right + 1] <= points[place] + reach * scale:
            right += 1
        low[place] = left
        most = max(most, right - left + 1)
    mass, first = np.zeros((points.size, most)), np.zeros((points.size, most))
    for place in range(points.size):
        for column in range(min(most, bins - low[place])):
            start, end = edges[low[place] + column], edges[low[place] + column + 1] - 1.0
            mass[place, column], first[place, column] = _range_sums(points[place], start, end, scale)
    return low, mass, first


@compile_function
def _range_sums(point: float, start: float, end: float, scale: float) -> tuple[float, float]:
    """Mean over counts t from start to end of exp(-|t - point|/scale), and of the same times (t - point)."""
    number = end - start + 1.0
    if point <= start:
        mass, moment = _tail_sums(start - point, number, scale)
        return mass / number, moment / number
    if point >= end:
        mass, moment = _tail_sums(point - end, number, scale)
        return mass / number, -moment / number
    right, right_moment = _tail_sums(math.ceil(point) - point, end - math.ceil(point) + 1.0, scale)
    left, left_moment = _tail_sums(point - math.ceil(point) + 1.0, math.ceil(point) - start, scale)
    return (left + right) / number, (right_moment - left_moment) / number


@compile_function
def _tail_sums(away: float, number: float, scale: float) -> tuple[float, float]:
    """Sums over d = away, away + 1, … (so many terms) of exp(-d/scale) and of d · exp(-d/scale)."""
    rest, last = -math.expm1(-1.0 / scale), -math.expm1(-number / scale)
    before = math.exp(-away / scale)
    mass = last / rest
    moment = 0.0 if number == 1.0 else (math.exp(-1.0 / scale) * mass - number * (1.0 - last)) / rest
    return before * mass, before * (away * mass + moment)


@compile_function
def add_bins(dense: Reals, low: Numbers, mass: Reals, first: Reals, weights: Reals) -> None:
    """Adds each point's likelihood under the bins, and the first moment around it.

    Args:
        dense: added to in place, shape (n, 2).
        low, mass, first: see `bin_sums`.
        weights: probabilities of the bins, shape (bins,).
    """
    for place in range(low.size):
        for column in range(min(mass.shape[1], weights.size - low[place])):
            weight = weights[low[place] + column]
            dense[place, 0] += weight * mass[place, column]
            dense[place, 1] += weight * first[place, column]


@compile_function
def back_to_bins(ratio: Reals, low: Numbers, mass: Reals, bins: int) -> Reals:
    """Sum over points of ratio · likelihood under each bin, shape (bins,).

    Args:
        ratio: number of cells at each point over its likelihood, shape (n,).
        low, mass: see `bin_sums`.
    """
    back = np.zeros(bins)
    for place in range(low.size):
        for column in range(min(mass.shape[1], bins - low[place])):
            back[low[place] + column] += ratio[place] * mass[place, column]
    return back


@compile_function
def add_atoms(dense: Reals, points: Reals, atoms: Reals, weights: Reals, scale: float) -> None:
    """Adds each point's likelihood under the atoms, and the first moment around it.

    Args:
        dense: added to in place, shape (n, 2).
        points: counts, distinct and rising, shape (n,).
        atoms: counts, rising, shape (atoms,).
        weights: probabilities of the atoms, shape (atoms,).
    """
    for sign in (1.0, -1.0):
        mass, moment, atom = 0.0, 0.0, 0
        at = sign * points[0 if sign > 0 else points.size - 1]
        for turn in range(points.size):
            point = sign * points[turn if sign > 0 else points.size - 1 - turn]
            faded = math.exp(-(point - at) / scale)
            moment, mass, at = (moment - (point - at) * mass) * faded, mass * faded, point
            while atom < atoms.size:
                where = sign * atoms[atom if sign > 0 else atoms.size - 1 - atom]
                # Atoms at a point count once, on the way from the left.
                if where > point or (where == point and sign < 0):
                    break
                weight = weights[atom if sign > 0 else atoms.size - 1 - atom]
                kernel = weight * math.exp(-(point - where) / scale)
                mass, moment = mass + kernel, moment + kernel * (where - point)
                atom += 1
            place = turn if sign > 0 else points.size - 1 - turn
            dense[place, 0] += mass
            dense[place, 1] += sign * moment


@compile_function
def back_to_atoms(ratio: Reals, points: Reals, atoms: Reals, scale: float) -> Reals:
    """Sum over points of ratio · kernel at each atom, shape (atoms,).

    Args:
        ratio: number of cells at each point over its likelihood, shape (n,).
        points, atoms, scale: see `add_atoms`.
    """
    back = np.zeros(atoms.size)
    for sign in (1.0, -1.0):
        if atoms.size == 0:
            break
        mass, point = 0.0, 0
        at = sign * atoms[0 if sign > 0 else atoms.size - 1]
        for turn in range(atoms.size):
            atom = turn if sign > 0 else atoms.size - 1 - turn
            where = sign * atoms[atom]
            mass, at = mass * math.exp(-(where - at) / scale), where
            while point < points.size:
                place = point if sign > 0 else points.size - 1 - point
                there = sign * points[place]
                if there > where or (there == where and sign < 0):
                    break
                mass += ratio[place] * math.exp(-(where - there) / scale)
                point += 1
            back[atom] += mass
    return back


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
        low, mass, moment: see `bin_sums`.
    """

    points: Reals
    edges: Reals
    scale: float
    low: Numbers
    mass: Reals
    moment: Reals

    @classmethod
    def of(cls, points: Reals, edges: Reals, scale: float) -> Sight:
        """What noisy counts see of bins; O(n · bins within reach)."""
        return cls(points, edges, scale, *bin_sums(points, edges, scale, REACH))

    def part(self, rows: Numbers) -> Sight:
        """What the points of some rows see; the rows' numbers rise."""
        return Sight(self.points[rows], self.edges, self.scale, self.low[rows], self.mass[rows], self.moment[rows])

    def places(self, points: Reals) -> Reals:
        """Counts at a third of a noise scale from each other beside some points, rising, within the edges."""
        step = max(1.0, math.floor(self.scale / 3))
        counts: Reals = np.unique(np.clip(np.rint(points / step) * step, self.edges[0], self.edges[-1]))
        return counts


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
        """How likely each noisy count is, up to a factor, and the first moment, on the prior's bins; shape (n, 2)."""
        sums = np.zeros((sight.points.size, 2))
        add_bins(sums, sight.low, sight.mass, sight.moment, self.bin_weights)
        add_atoms(sums, sight.points, self.atoms, self.atom_weights, sight.scale)
        np.maximum(sums[:, 0], SMALLEST, out=sums[:, 0])
        return sums

    def posterior(self, sight: Sight) -> tuple[Reals, Reals]:
        """Likelihood of each noisy count up to a factor, and the mean of the count behind it, shape (n,) each."""
        sums = self.likelihoods(sight)
        return sums[:, 0], sight.points + sums[:, 1] / sums[:, 0]


def bin_edges(lowest: float, highest: float, scale: float) -> Reals:
    """Edges of bins from the lowest count to beyond the highest one, wider away from 0.

    Args:
        lowest, highest: counts; the lowest is 0 if there are no negative ones.
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
        level: the count, within the edges; one between two whole numbers is the mean of both.
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
        more, more_used = _with_best(prior, sight, cells, places, used)
        known = CountPrior(more.atoms, np.zeros(more.atoms.size), floor)
        more, likelihood = _likelier(more, sight, cells, known, STEPS_A_TRIAL, more_used)
        if likelihood < reached + price:
            break
        prior, reached, used = more, likelihood, more_used
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
        sight, cells: see `crowded_prior`.
        known: number of cells that a first guess counts for, as weights.
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
