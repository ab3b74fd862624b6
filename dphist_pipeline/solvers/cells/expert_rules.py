"""Experts: ways to estimate each cell from its noisy count, under a prior that the rest of the cells give.

An expert says which level each cell's count is measured from (0, or what its neighbours say), which cells share a
prior, and how the prior is found. Fitted on one half of the cells, it is judged on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.cells._count_prior import (
    CountPrior,
    Sight,
    bin_edges,
    crowded_prior,
    one_level_prior,
    reweighted_prior,
    sparse_prior,
)
from dphist_pipeline.solvers.cells._shared_level import sure_level

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees._split_surroundings import Surroundings

Reals = NDArray[np.float64]

REACH = 20.0  # noise scales around a noisy count within which true ones are looked for
FINENESS = 4.0  # places per noise scale in a bin


@compile_function
def relative_centres(
    points: Reals, levels: Reals, atoms: Reals, atom_weights: Reals, edges: Reals, bin_weights: Reals, scale: float
) -> Reals:
    """The t with the least expected |t - x| / max(x, 1) over the true counts x behind noisy ones.

    That is the median of the posterior with weights 1 / max(x, 1). Bins are looked at in steps of a fraction of the
    noise scale. O(places within reach · log) a point. Results are at least 0, shape (n,).

    Args:
        points: noisy counts less their levels, shape (n,).
        levels: what counts are measured from, shape (n,).
        atoms, atom_weights, bin_weights: see `CountPrior`; of the counts less their levels.
        edges: see `bin_edges`.
    """
    step = max(1.0, math.floor(scale / FINENESS))
    room = atoms.size + edges.size + int(2.0 * REACH * scale / step) + 8
    places, weights, centres = np.empty(room), np.empty(room), np.empty(points.size)
    for row in range(points.size):
        point, level = points[row], levels[row]
        low, high, count = max(point - REACH * scale, -level), point + REACH * scale, 0
        for atom in range(np.searchsorted(atoms, low), np.searchsorted(atoms, high, side="right")):
            places[count], weights[count] = atoms[atom], atom_weights[atom]
            count += 1
        first = max(0, np.searchsorted(edges, low, side="right") - 1)
        for each in range(first, edges.size - 1):
            if edges[each] > high:
                break
            start, end = max(edges[each], low), min(edges[each + 1], high + 1.0)
            while start < end and count < room:
                width = min(step, end - start)
                places[count] = start + math.floor((width - 1.0) / 2.0)
                weights[count] = bin_weights[each] * width / (edges[each + 1] - edges[each])
                start, count = start + width, count + 1
        total = 0.0
        for place in range(count):
            weights[place] *= math.exp(-abs(places[place] - point) / scale) / max(level + places[place], 1.0)
            total += weights[place]
        centres[row] = max(0.0, level + point)
        passed = 0.0
        for place in np.argsort(places[:count]):
            passed += weights[place]
            if 2.0 * passed >= total and total > 0.0:
                centres[row] = max(0.0, level + places[place])
                break
    return centres


Numbers = NDArray[np.int64]
Kind = Literal["level", "lean", "sparse", "crowded", "boxes"]

TRUST = 20.0  # cells that the prior of all cells counts for in a group
BESIDE = 0.2  # weight of the two groups beside a group, together with the group's size at most
MOST_FITTED = 1 << 16  # cells that a prior is fitted on; of more, every second, third, …
SURROUNDINGS, A_PIECE = 1.0, 0.5  # cost of levels of surroundings, in log-likelihood: of having any, and of each
LEARNING = 10.0  # cost of a distribution of counts
STRATA = 6  # of the law of the noise, in which a rule is probed


@dataclass(frozen=True, eq=False)
class Expert:
    """A way to find priors.

    Attributes:
        name, about: short, for tables, and in words.
        kind: how priors are found; see `_count_prior`.
        levels: what each cell's count is measured from, whole numbers, shape (n,); None for 0.
        groups: group number of each cell, shape (n,); None if all cells share a prior.
        pieces: of the cells that have levels of their own.
        around: of the kind `boxes`: what all other cells say of each; nothing is fitted.
    """

    name: str
    about: str
    kind: Kind
    levels: Reals | None = None
    groups: Numbers | None = None
    pieces: float = 0.0
    around: Surroundings | None = None

    @classmethod
    def in_boxes(cls, noisy: Reals, scale: float) -> Expert:
        """The expert that hears of each cell what all others say by how boxes are halved; `noisy` is the grid."""
        from dphist_pipeline.solvers.trees._split_surroundings import Surroundings, split_weights

        around = Surroundings.of(noisy, scale, split_weights(noisy, scale))
        return cls("boxes", "boxes that are halved evenly, unevenly or to one side", "boxes", around=around)

    @property
    def cost(self) -> float:
        """What the expert's log-likelihood must gain: much if it learns a distribution of counts, else by levels."""
        if self.kind not in ("level", "lean"):
            return LEARNING
        return SURROUNDINGS + A_PIECE * self.pieces if self.pieces else 0.0


@dataclass(frozen=True, eq=False)
class Rule:
    """The prior of some cells.

    Attributes:
        prior: of their counts, less their levels.
    """

    members: Numbers
    prior: CountPrior


@dataclass(frozen=True, eq=False)
class Probes:
    """Changes of a noisy count, and weights, with which a rule's covariance with the noise is estimated.

    For a rule f(z) and the noise z - x, the sum over k >= 1 of a^k · (f(z + k) - f(z - k)) has the expected value of
    f(z) · (z - x), where a = exp(-1/scale): the noise law K has K⁻¹ = I - a/(1-a)² · (second difference), and the
    sum of a^k over both sides is that of the first difference of K * f. Here the sum is over few k, each for a stratum
    of the geometric law; it is exact for rules that are linear.

    Attributes:
        steps: whole numbers, shape (k,).
        weights: shape (k,).
    """

    steps: Reals
    weights: Reals

    @classmethod
    def of(cls, scale: float) -> Probes:
        """The steps and weights for noise of one scale, in records."""
        faded, rest = math.exp(-1.0 / scale), -math.expm1(-1.0 / scale)
        if scale <= 3:
            steps = np.arange(1.0, 3 * STRATA)
            weights = faded**steps
            weights[-1] /= rest  # stands for all steps beyond
        else:
            ends = -scale * np.log1p(-np.arange(STRATA) / STRATA)
            left = 1.0 - np.arange(STRATA + 1) / STRATA
            beyond = np.append(left[:-1] * (ends + scale), 0.0)
            steps = np.maximum(1.0, np.rint((beyond[:-1] - beyond[1:]) * STRATA))
            weights = np.full(STRATA, faded / rest / STRATA)
        variance = 2.0 * faded / rest**2
        return cls(steps, weights * (variance / (2.0 * (weights * steps).sum())))

    @property
    def offsets(self) -> Reals:
        """0, then all steps up, then all steps down."""
        return np.concatenate([[0.0], self.steps, -self.steps])

    def covariances(self, values: Reals) -> Reals:
        """Estimated covariance of each cell's rule and noise, shape (n,), from values of shape (n, offsets)."""
        count = self.steps.size
        sums: Reals = ((values[:, 1 : count + 1] - values[:, count + 1 :]) * self.weights).sum(axis=1)
        return sums


def fitted_rules(expert: Expert, noisy: Reals, folds: NDArray[np.bool_] | None, scale: float) -> list[Rule]:
    """The priors of an expert.

    Args:
        noisy: whole noisy counts, shape (n,).
        folds: the half that each cell is in: a cell's prior is fitted on the other half. None fits it on all cells.
    """
    if expert.around is not None:
        return []
    above = noisy if expert.levels is None else noisy - expert.levels
    points, places = distinct(above)
    lowest = min(0.0, float(points[0])) if expert.levels is not None else 0.0
    sight = Sight.of(points, bin_edges(lowest, float(points[-1]), scale), scale)
    fit = _Fit(expert, sight, places, above)
    members = _members(expert.groups, noisy.size)
    rules = []
    for fold in (False,) if folds is None else (False, True):
        visible = np.ones(noisy.size, dtype=np.bool_) if folds is None else folds != fold
        if not visible.any():
            visible = ~visible
        own = [cells if folds is None else cells[folds[cells] == fold] for cells in members]
        known = [cells[visible[cells]] for cells in members]
        rules += [Rule(cells, prior) for cells, prior in zip(own, fit.priors(known), strict=True) if cells.size]
    return rules


@dataclass(frozen=True, eq=False)
class _Fit:
    expert: Expert
    sight: Sight
    places: Numbers
    above: Reals

    def priors(self, known: Sequence[Numbers]) -> Iterator[CountPrior]:
        """The prior of each group from the cells of it that may be seen."""
        everyone = np.concatenate(known)
        of_all = self._prior([(everyone, 1.0)]) if len(known) == 1 or self.expert.levels is None else None
        for group, cells in enumerate(known):
            if len(known) == 1 and of_all is not None:
                yield of_all
            elif of_all is not None:
                rows, counts = self._counted([(cells, 1.0)])
                yield reweighted_prior(of_all, self.sight.part(rows), counts, TRUST) if cells.size else of_all
            else:
                near = [known[other] for other in (group - 1, group + 1) if 0 <= other < len(known)]
                beside = np.concatenate([*near, cells[:0]])
                weight = BESIDE * min(1.0, cells.size / max(1, beside.size))
                yield self._prior([(cells, 1.0), (beside, weight)] if cells.size else [(everyone, 1.0)])

    def _prior(self, parts: Sequence[tuple[Numbers, float]]) -> CountPrior:
        rows, counts = self._counted(parts)
        sight = self.sight.part(rows)
        if self.expert.kind == "level":
            level = 0.0 if self.expert.levels is not None else sure_level(self.above[parts[0][0]], sight.scale)
            return one_level_prior(sight, level, counts.sum())
        if self.expert.kind == "crowded":
            return crowded_prior(sight, counts)
        return sparse_prior(sight, counts, math.log(max(3.0, counts.sum())), self.expert.kind == "lean")

    def _counted(self, parts: Sequence[tuple[Numbers, float]]) -> tuple[Numbers, Reals]:
        """The distinct points of some cells, and the weight of each."""
        counts = np.zeros(self.sight.points.size)
        for cells, weight in parts:
            some = cells[:: cells.size // MOST_FITTED + 1]
            counts += np.bincount(self.places[some], minlength=counts.size) * (weight * cells.size / max(1, some.size))
        rows = np.flatnonzero(counts)
        return rows, counts[rows]


def estimates(
    expert: Expert,
    rules: Sequence[Rule],
    noisy: Reals,
    chosen: Numbers,
    offsets: Reals,
    scale: float,
    relative: bool = False,
) -> tuple[Reals, Reals]:
    """Likelihood of each chosen noisy count, and each rule's estimate at several changes of that count.

    The estimate is the mean of the true count, given the noisy one.

    Args:
        expert, rules, noisy, scale: see `fitted_rules`.
        chosen: numbers of cells, rising, shape (c,).
        offsets: changes of the noisy count, the first one 0, shape (k,).
        relative: the estimate is that of the least expected relative error instead; k is 1.

    Returns:
        Likelihoods up to a common factor, and estimates, at least 0; shape (c, k) each.
    """
    if expert.around is not None:
        return expert.around.estimates(chosen, offsets, relative)
    levels = np.zeros(chosen.size) if expert.levels is None else expert.levels[chosen]
    above = noisy[chosen] - levels
    points, places = distinct(above)
    queries, at = distinct((points[:, None] + offsets).ravel())
    at = at.reshape(points.size, offsets.size)
    everything = noisy if expert.levels is None else noisy - expert.levels
    lowest = min(0.0, float(everything.min())) if expert.levels is not None else 0.0
    sight = Sight.of(queries, bin_edges(lowest, float(everything.max()), scale), scale)
    likely, values = np.empty((chosen.size, offsets.size)), np.empty((chosen.size, offsets.size))
    where = np.full(noisy.size, -1, dtype=np.int64)
    where[chosen] = np.arange(chosen.size)
    for rule in rules:
        members = where[rule.members]
        members = members[members >= 0]
        if members.size == 0:
            continue
        needed = np.zeros(queries.size, dtype=np.bool_)
        needed[at[np.unique(places[members])]] = True
        rows = np.flatnonzero(needed)
        likelihoods, means = rule.prior.posterior(sight.part(rows))
        row_of = np.cumsum(needed) - 1
        query = row_of[at[places[members]]]
        likely[members] = likelihoods[query]
        values[members] = np.maximum(0.0, levels[members][:, None] + means[query])
        if relative:
            values[members, 0] = _centres(rule.prior, above[members], levels[members], sight)
    return likely, values


def _centres(prior: CountPrior, above: Reals, levels: Reals, sight: Sight) -> Reals:
    """See `relative_centres`; each pair of a noisy count and a level is worked out once."""
    pairs, places = np.unique(np.stack([above, levels]), axis=1, return_inverse=True)
    known = (prior.atoms, prior.atom_weights, sight.edges, prior.bin_weights, sight.scale)
    centres: Reals = relative_centres(pairs[0], pairs[1], *known)[places.ravel()]
    return centres


def distinct(values: Reals) -> tuple[Reals, Numbers]:
    """Distinct whole numbers, rising, and the place of each value among them; linear where they lie close together.

    Args:
        values: noisy counts, whole, perhaps less their levels; at least one, shape (n,).
    """
    low, high = values.min(), values.max()
    if high - low > 8.0 * values.size + 1024:
        points, places = np.unique(values, return_inverse=True)
        return points, places.reshape(values.shape).astype(np.int64)
    steps = (values - low).astype(np.int64)
    there = np.bincount(steps) > 0
    return low + np.flatnonzero(there).astype(np.float64), (np.cumsum(there) - 1)[steps]


def _members(groups: Numbers | None, cells: int) -> list[Numbers]:
    """Numbers of the cells of each group, rising."""
    if groups is None:
        return [np.arange(cells)]
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1])
