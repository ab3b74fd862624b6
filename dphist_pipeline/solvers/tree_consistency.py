"""Making the noisy sums of a tree agree: every node the sum of its children."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def consistent(
    measured: Sequence[Reals], parents: Sequence[Numbers], variances: Sequence[float] | None = None
) -> list[Reals]:
    """The weighted least squares estimate of every node, by two linear passes (Hay, Rastogi, Miklau, Suciu 2010).

    Upwards, a node's own measurement and the sum of its children are averaged, weighted by the inverse of their
    variances. Downwards, what children lack of their parent is shared among them in proportion to their variances.
    This is the exact optimum whatever the number of children of each node, one included. The leaves are the last
    level, and every node above has at least one child. O(nodes).

    Args:
        measured: for each level, from the top, one measurement per node.
        parents: for each level but the top, the number of each node's parent in the level above.
        variances: of the measurements of each level, above 0; equal ones when left out.

    Returns:
        For each level, one estimate per node.
    """
    own = [1.0] * len(measured) if variances is None else [float(variance) for variance in variances]
    upward = [np.asarray(measured[-1], dtype=np.float64)]
    spread = [np.full(upward[0].size, own[-1])]
    for level in range(len(measured) - 2, -1, -1):
        nodes, parent = measured[level].size, parents[level]
        below = np.bincount(parent, weights=upward[0], minlength=nodes)
        below_spread = np.bincount(parent, weights=spread[0], minlength=nodes)
        share = own[level] / (own[level] + below_spread)  # of the correction that the children's sum is worth
        upward.insert(0, measured[level] + share * (below - measured[level]))
        spread.insert(0, share * below_spread)
    estimates = [upward[0]]
    for level, parent in enumerate(parents, 1):
        nodes = upward[level - 1].size
        lacking = estimates[-1] - np.bincount(parent, weights=upward[level], minlength=nodes)
        rate = lacking / np.bincount(parent, weights=spread[level], minlength=nodes)
        estimates.append(upward[level] + spread[level] * rate[parent])
    return estimates
