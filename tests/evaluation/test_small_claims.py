"""Small versions of claims of the papers: two that hold here, and two that do not.

Noise is recorded, so that a test measures the same errors in every run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.workbench.evaluation.metrics import kl_divergence
from dphist_pipeline.workbench.evaluation.workloads import random_boxes

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def studies(monkeypatch) -> Iterator[Callable[[str], ModuleType]]:
    """The folder of the studies, which are scripts and no package, as the place of modules."""
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks" / "papers"))
    known = set(sys.modules)
    yield __import__
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(f"{PROJECT}/benchmarks"):
            del sys.modules[name]


def released(exact: np.ndarray, mechanism: str, epsilon: str, times: int, **settings: object) -> list[np.ndarray]:
    """The counts of several releases."""
    asked = {"mechanism": mechanism, "epsilon": epsilon, "sensitivity": 1, **settings}
    return [dph.sanitize(exact, **asked).values for _ in range(times)]


@pytest.mark.slow
def test_dpcube_answers_boxes_better_than_the_kd_tree_where_cells_are_alike():
    """Figure 16 (a) of DPCube."""
    exact = np.zeros((32, 32), dtype=np.int64)
    exact[4:12, 6:20], exact[18:30, 20:28] = 40, 15
    boxes = random_boxes(exact.shape)
    errors = {
        name: np.mean([np.abs(boxes.sums(made - exact)).mean() for made in released(exact, name, "0.1", 5)])
        for name in ("dpcube", "kd_hierarchy")
    }
    assert errors["dpcube"] < 0.8 * errors["kd_hierarchy"]


@pytest.mark.parametrize(
    ("folds", "epsilon", "least"), [((3, 5, 7), "3", 3), ((3, 5, 7), "15", 40), ((3, 5, 7, 10, 15), "15", 100)]
)
def test_merged_intervals_have_far_less_error_than_a_split_budget(studies, folds, epsilon, least):
    """Figures 4 and 5 of the paper on the local model, by the law of the noise."""
    collecting = studies("collecting")
    salaries = np.minimum(np.random.default_rng(1).lognormal(11, 0.6, 3_000), 515_102)
    city = collecting.City(salaries, 0, 520_000)
    errors = [
        score.mean
        for protocol in ("split_budget", "chp")
        for score in collecting.collect(protocol, city, collecting.Way(folds, protocol), (epsilon,), 1)
        if (score.measure, score.at) == ("law_mse", "")
    ]
    assert least < errors[0] / errors[1] < 2 * least


def test_the_groups_that_dphr_publishes_for_its_example_are_not_the_best_three(studies):
    """Figure 2 of DPHR."""
    cost = studies("dphr_cost")
    assert round(cost._cost(cost.SHOWN), 2) == 7.67
    assert round(cost._best(cost.SORTED, cost.MOST_GROUPS)[0], 2) == 4.75


def test_sreb_gca_has_a_larger_divergence_than_ahp_at_a_small_epsilon():
    """Table 2 of SReB_GCA, whose claim holds at larger epsilons alone."""
    exact = np.random.default_rng(2).geometric(0.04, 1_000) - 1
    divergences = [
        np.mean([kl_divergence(exact, made) for made in released(exact, name, "0.01", 5, order_share="1/2")])
        for name in ("sreb_gca", "ahp")
    ]
    assert divergences[0] > 1.2 * divergences[1]
