"""Classifiers trained from a release: its cells are examples, weighted by their whole counts. Nothing is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.applications.coded_records import NOWHERE, places_of
from dphist_pipeline.applications.whole_release import WholeRelease, application_refused
from dphist_pipeline.base.domain import Axis, CategoricalAxis
from dphist_pipeline.errors import did_you_mean, how_to_install

NEEDED = f"the package scikit-learn is missing. To install it: {how_to_install('learn')}"


@dataclass(frozen=True, eq=False)
class Examples:
    """Weighted examples of a release, or of records.

    Attributes:
        features: one number a category of an axis of categories, one an axis of numbers or days and one for its
            `other`; float64, shape (examples, numbers).
        classes: position of each example along the target axis, shape (examples,).
        weights: records that each example stands for, shape (examples,).
    """

    features: NDArray[np.float64]
    classes: NDArray[np.int64]
    weights: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted estimator that reads records as the release counts them."""

    estimator: Any
    target: CategoricalAxis
    features: tuple[Axis, ...]

    def predict(self, records: Any) -> list[str | None]:
        """The predicted category of each record of a frame or an Arrow table, see `places_of`; None is `other`."""
        values = [*self.target.values, None]
        return [values[place] for place in self._predicted(places_of(self.features, records))]

    def accuracy(self, records: Any) -> float:
        """The share of the records with a category of the target whose category is predicted; others are left out."""
        (truth,) = places_of([self.target], records)
        is_inside = truth != NOWHERE
        if not is_inside.any():
            raise application_refused(f"no record has a category of the axis '{self.target.name}' to test on")
        return float((self._predicted(places_of(self.features, records))[is_inside] == truth[is_inside]).mean())

    def _predicted(self, places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        if places[0].size == 0:
            return places[0]
        classes: NDArray[np.int64] = self.estimator.predict(features_of_places(self.features, places)).astype(np.int64)
        return classes


def train(whole: WholeRelease, target: str, features: Sequence[str] | None = None, estimator: Any = None) -> Classifier:
    """Trains a classifier from the cells of a release.

    Args:
        features: axes; all others by default.
        estimator: with `fit(features, classes, sample_weight)` and `predict`; a decision tree by entropy by default.

    Raises:
        Refused: an axis is unknown, the target has no categories, there is only one class, or scikit-learn
            is missing.
    """
    goal, axes = chosen_axes(whole, target, features)
    return fit_classifier(goal, axes, examples_of(whole, goal, axes), estimator)


def fit_classifier(
    goal: CategoricalAxis, axes: tuple[Axis, ...], examples: Examples, estimator: Any = None
) -> Classifier:
    """Fits an estimator to weighted examples; see `train`.

    Args:
        axes: of the features, in the order of their columns.
        examples: of at least two classes; see `examples_of`.

    Raises:
        Refused: there is only one class, or scikit-learn is missing.
    """
    if np.unique(examples.classes).size < 2:
        raise application_refused(f"all records have one category of the axis '{goal.name}': there is nothing to learn")
    model = entropy_tree() if estimator is None else estimator
    model.fit(examples.features, examples.classes, sample_weight=examples.weights.astype(np.float64))
    return Classifier(model, goal, axes)


def entropy_tree() -> Any:
    """scikit-learn's decision tree by entropy, which splits as ID3 does, but in two; at least 1 record a leaf.

    Raises:
        Refused: scikit-learn is missing.
    """
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise application_refused(NEEDED) from None
    return DecisionTreeClassifier(criterion="entropy", random_state=0)


def chosen_axes(
    whole: WholeRelease, target: str, features: Sequence[str] | None = None
) -> tuple[CategoricalAxis, tuple[Axis, ...]]:
    """The axis of the target, and the axes of the features: those that are named, in that order, or all others."""
    axes = {axis.name: axis for axis in whole.domain.axes}
    names = [name for name in axes if name != target] if features is None else list(features)
    for name in (target, *names):
        if name not in axes:
            raise application_refused(f"{whole.called} has no axis {name!r:.60}. {did_you_mean(name, axes)}")
    goal = axes[target]
    if not isinstance(goal, CategoricalAxis):
        raise application_refused(f"the target '{target}' is an axis of numbers or days; name an axis of categories")
    if not names or target in names or len(set(names)) < len(names):
        raise application_refused("features: takes at least one axis beside the target, each once")
    return goal, tuple(axes[name] for name in names)


def examples_of(whole: WholeRelease, goal: CategoricalAxis, axes: tuple[Axis, ...]) -> Examples:
    """The occupied cells of a release as examples, summed over all axes that are neither features nor the goal."""
    order = {axis.name: number for number, axis in enumerate(whole.domain.axes)}
    positions = [order[axis.name] for axis in (*axes, goal)]
    summed = whole.counts.sum(axis=tuple(number for number in order.values() if number not in positions))
    table = np.transpose(summed, [sorted(positions).index(number) for number in positions])
    places = np.nonzero(table)
    return Examples(features_of_places(axes, places[:-1]), places[-1], table[places])


def features_of_places(axes: Sequence[Axis], places: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Positions along axes as features, float64, shape (examples, numbers); see `Examples`.

    Args:
        places: for each axis the position of each example, from 0, shape (examples,); `NOWHERE` where no bin holds it.
    """
    parts = []
    for axis, along in zip(axes, places, strict=True):
        if isinstance(axis, CategoricalAxis):
            parts.append(along[:, None] == np.arange(axis.size))
        else:
            other = along == axis.other_cell if axis.other else np.zeros(along.size, dtype=bool)
            parts.append(np.stack([np.where(other, NOWHERE, along), other], axis=1))
    return np.concatenate(parts, axis=1).astype(np.float64)
