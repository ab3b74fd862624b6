"""The estimate of a count that has the least expected relative error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compiled

Reals = NDArray[np.float64]

REACH = 20.0  # noise scales around a noisy count within which true ones are looked for
FINENESS = 4.0  # places per noise scale in a bin


@compiled
def relative_centres(
    points: Reals, levels: Reals, atoms: Reals, atom_weights: Reals, edges: Reals, bin_weights: Reals, scale: float
) -> Reals:
    """The t with the least expected |t - x| / max(x, 1) over the true counts x behind noisy ones.

    That is the median of the posterior with weights 1 / max(x, 1). Bins are looked at in steps of a fraction of the
    noise scale. O(places within reach · log) a point.

    Args:
        points: noisy counts less their levels, shape (n,).
        levels: what counts are measured from, shape (n,).
        atoms, atom_weights, bin_weights: see `count_prior.CountPrior`; of the counts less their levels.
        edges: see `count_prior.bin_edges`.
        scale: of the noise.

    Returns:
        At least 0, shape (n,).
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
