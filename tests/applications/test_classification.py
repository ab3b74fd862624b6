"""Classifiers from cells: the same tree as from the records, any estimator that takes weights, clear refusals."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pyarrow as pa
import pytest
from error_codes import coded

from dphist_pipeline.applications.classification import chosen_axes, examples_of
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing.releases import Release

pytestmark = pytest.mark.skipif(  # looked for, not imported as every process collects tests: it takes a second
    find_spec("sklearn") is None, reason="scikit-learn is not installed: pip install -e '.[learn]'"
)

INCOME = {"column": "income", "values": ["low", "high"]}
SEX = {"column": "sex", "values": ["f", "m"], "other": True}
AGE = {"column": "age", "start": 0, "stop": 80, "width": 10, "other": True}
AXES: list[dict[str, Any]] = [INCOME, SEX, AGE]


@pytest.fixture(scope="module")
def records() -> dict[str, np.ndarray]:
    random = np.random.default_rng(9)
    age, sex = random.integers(0, 80, 4_000), random.choice(["f", "m"], 4_000)
    high = random.random(4_000) < np.where((age > 40) & (sex == "m"), 0.9, np.where(age > 60, 0.7, 0.1))
    return {"income": np.where(high, "high", "low"), "sex": sex, "age": age.astype(np.float64)}


@pytest.fixture(scope="module")
def release(records: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Release:
    counts = np.zeros((2, 3, 9))
    np.add.at(
        counts, ((records["income"] == "high") * 1, (records["sex"] == "m") * 1, records["age"].astype(int) // 10), 1
    )
    return by_hand.publish(tmp_path_factory.mktemp("public"), by_hand.estimate(AXES, counts, off=0.0), AXES)


@pytest.mark.slow
def test_cells_teach_what_their_records_would(release: Release, records: dict[str, np.ndarray]) -> None:
    from sklearn.tree import DecisionTreeClassifier

    learned = release.train("income")
    plain = DecisionTreeClassifier(criterion="entropy", random_state=0)
    rows = np.stack([records["sex"] == "m", records["age"] // 10], axis=1)
    plain.fit(rows, records["income"])
    found = learned.predict(pa.table(records))
    assert np.mean(np.array(found) == plain.predict(rows)) > 0.99
    assert learned.accuracy(pa.table(records)) == pytest.approx(plain.score(rows, records["income"]), abs=0.005)
    assert learned.accuracy(pa.table(records)) > 0.8 > np.mean(records["income"] == "low")


@pytest.mark.slow
def test_any_estimator_that_takes_weights_serves(release: Release, records: dict[str, np.ndarray]) -> None:
    from sklearn.linear_model import LogisticRegression

    learned = release.train("income", ["sex"], LogisticRegression())
    odd = pa.table({"sex": ["m", "f", None, "x"]})
    assert len(learned.predict(odd)) == 4 and [axis.name for axis in learned.features] == ["sex"]
    assert learned.predict(odd.slice(0, 0)) == []


def test_examples_are_the_occupied_cells_with_their_counts(release: Release) -> None:
    whole = WholeRelease.read(release.path)
    goal, axes = chosen_axes(whole, "income", ["age", "sex"])
    examples = examples_of(whole, goal, axes)
    assert examples.weights.sum() == whole.total and (examples.weights > 0).all()
    assert examples.features.shape == (len(examples.classes), 2 + 3)
    expected = whole.counts.sum(axis=(1, 2))
    np.testing.assert_array_equal(np.bincount(examples.classes, weights=examples.weights), expected)
    by_age = np.bincount(examples.features[:, 0].astype(int) + 1, weights=examples.weights)
    np.testing.assert_array_equal(by_age[1:9], whole.counts.sum(axis=(0, 1))[:8])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("age",), "'age' is an axis of numbers or days"),
        (("incom",), "Did you mean 'income'"),
        (("income", ["income"]), "at least one axis beside the target"),
        (("income", []), "at least one axis beside the target"),
        (("income", ["sex", "sex"]), "each once"),
        (("income", ["height"]), "no axis 'height'"),
    ],
)
def test_what_cannot_be_learned_is_refused(release: Release, asked: tuple[Any, ...], says: str) -> None:
    with pytest.raises(Refused, check=coded("application_refused"), match=says):
        release.train(*asked)


def test_one_class_or_no_known_class_is_refused(release: Release, tmp_path: Path) -> None:
    learned = release.train("income")
    with pytest.raises(
        Refused, check=coded("application_refused"), match="no record has a category of the axis 'income'"
    ):
        learned.accuracy(pa.table({"income": ["?"], "sex": ["m"], "age": [3.0]}))
    with pytest.raises(Refused, check=coded("application_refused"), match="the records have no column 'age'"):
        learned.predict(pa.table({"sex": ["m"]}))
    counts = np.zeros((2, 3, 9))
    counts[0] = 1_000
    one = by_hand.publish(tmp_path / "public", by_hand.estimate(AXES, counts, off=0.0), AXES)
    with pytest.raises(Refused, check=coded("application_refused"), match="all records have one category"):
        one.train("income")
