"""Friedman and Schuster 2010: decision trees from private questions, on the cells of a cube; on public data.

Both trees split every node into all categories of an attribute, never use an attribute twice on a path, and spend
B/(2·(d + 1)) on each of two questions a level and on the classes of the leaves, d levels at most.

- `by_noisy_counts` (SuLQ-based ID3): every attribute's counts by class, measured with an equal part of
  the level's share; the attribute of the largest information gain wins. All nodes of a level are asked at once, because
  they hold different records.
- `by_choice` (DiffP-ID3 with the Max operator, sensitivity 1): a private choice of the attribute. The closed set of
  scores has none for attributes, so it is drawn here, as the measurement `choose` draws: geometric noise of scale 2/ε
  on every score. Counts come from measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

import numpy as np

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget

Ranked = dict[int, list[int]]  # of each open node the attributes, the best first
Choice = Callable[["Tree", np.ndarray, list[int], int], Ranked]


@dataclass
class Tree:
    """A tree over a cube whose last axis is the class.

    Attributes:
        exact: counts; read by `by_choice` alone, and through measurements.
        epsilon: of the whole tree.
    """

    exact: np.ndarray
    epsilon: Fraction
    private_counts: PrivateCounts = field(init=False)
    budgets: dict[str, Budget] = field(init=False)

    def __post_init__(self) -> None:
        self.private_counts = PrivateCounts(
            Domain.from_shape(self.exact.shape), 1, self.exact.ravel().astype(np.int64).copy
        )
        self.depth = self.exact.ndim - 1
        names = [f"{what}_{level}" for level in range(self.depth) for what in ("size", "choice")]
        share = Fraction(1, 2 * (self.depth + 1))
        parts = dict.fromkeys(names, share) | {"classes": 2 * share}
        self.budgets = dict(zip(parts, Budget(self.epsilon).split(**parts), strict=True))

    def grow(self, choose: Choice) -> np.ndarray:
        """The predicted class of every combination of attributes, shape of the cube without its last axis."""
        shape, classes = self.exact.shape[:-1], self.exact.shape[-1]
        places = np.indices(shape).reshape(self.depth, -1)
        nodes, free = np.zeros(places.shape[1], dtype=np.int64), {0: list(range(self.depth))}
        for level in range(self.depth):
            sizes = self.sums(np.repeat(nodes, classes), self.budgets[f"size_{level}"])
            least = sqrt(2) * max(shape) * classes / float(self.budgets["classes"].epsilon / 2)
            open_ = [node for node, left in free.items() if left and sizes[node] >= least]
            chosen = choose(self, nodes, open_, level) if open_ else {}
            if not chosen:
                break
            nodes, free = _split(nodes, free, chosen, places)
        answers = self.sums((nodes[:, None] * classes + np.arange(classes)).ravel(), self.budgets["classes"])
        return answers.reshape(-1, classes).argmax(axis=1)[nodes].reshape(shape)

    def sums(self, groups: np.ndarray, budget: Budget) -> np.ndarray:
        """Noisy sums of groups of cells, of which some numbers may be left out."""
        numbers, dense = np.unique(groups, return_inverse=True)
        found = np.zeros(int(numbers.max()) + 1)
        found[numbers] = self.private_counts.noisy_sums(dense.reshape(self.exact.shape), budget).values
        return found


def by_noisy_counts(tree: Tree, nodes: np.ndarray, open_: list[int], level: int) -> Ranked:
    """The attributes of each open node by information gain, from noisy counts."""
    shape, classes = tree.exact.shape[:-1], tree.exact.shape[-1]
    places, many = np.indices(shape).reshape(len(shape), -1), int(nodes.max()) + 1
    shares = {f"choice_{level}_{axis}": Fraction(1, len(shape)) for axis in range(len(shape))}
    gains = np.empty((len(shape), many))
    for axis, budget in enumerate(tree.budgets[f"choice_{level}"].split(**shares)):
        groups = ((nodes * shape[axis] + places[axis])[:, None] * classes + np.arange(classes)).ravel()
        found = tree.sums(groups, budget)
        counts = np.maximum(np.append(found, np.zeros(many * shape[axis] * classes - found.size)), 0.0)
        gains[axis] = -_disorder(counts.reshape(many, shape[axis], classes))
    return _ranked(gains, open_)


def by_choice(tree: Tree, nodes: np.ndarray, open_: list[int], level: int) -> Ranked:
    """The attributes of each open node by a private choice; a score is the records that majorities predict."""
    shape, classes = tree.exact.shape[:-1], tree.exact.shape[-1]
    places, many = np.indices(shape).reshape(len(shape), -1), int(nodes.max()) + 1
    counts = tree.exact.reshape(-1, classes)
    scale = 2 / tree.budgets[f"choice_{level}"].spend()
    scores = np.empty((len(shape), many), dtype=np.int64)
    for axis, size in enumerate(shape):
        table = np.zeros((many, size, classes), dtype=np.int64)
        np.add.at(table, (nodes, places[axis]), counts)
        scores[axis] = table.max(axis=2).sum(axis=1)
    return _ranked(scores + noise.geometric(scale, scores.size).reshape(scores.shape), open_)


def _ranked(scores: np.ndarray, open_: list[int]) -> Ranked:
    """The attributes of each open node by their scores; one that the path has used is left out when the node splits."""
    return {node: np.argsort(-scores[:, node], kind="stable").tolist() for node in open_}


def _split(
    nodes: np.ndarray, free: dict[int, list[int]], chosen: Ranked, places: np.ndarray
) -> tuple[np.ndarray, dict[int, list[int]]]:
    """Splits nodes by their best attributes that are left; nodes that are not chosen stay as leaves."""
    parts, left = np.zeros_like(nodes), {}
    for node, ranked in chosen.items():
        axis = next(axis for axis in ranked if axis in free[node])
        inside = nodes == node
        parts[inside] = places[axis, inside]
        left[node] = [one for one in free[node] if one != axis]
    _, first, made = np.unique(np.stack([nodes, parts]), axis=1, return_index=True, return_inverse=True)
    return made.ravel(), {new: left.get(int(nodes[at]), []) for new, at in enumerate(first)}


def _disorder(counts: np.ndarray) -> np.ndarray:
    """Records times the entropy of the class given the attribute, for each node; shape (nodes,)."""
    totals = counts.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, -counts * np.log2(counts / totals), 0.0)
    return terms.sum(axis=(1, 2))
