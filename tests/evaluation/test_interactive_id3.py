"""The interactive trees that benchmarks compare with: they find a known tree and spend their budget."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "papers" / "interactive_id3.py"


@pytest.fixture(scope="module")
def trees() -> ModuleType:
    described = importlib.util.spec_from_file_location("interactive_id3", FILE)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules["interactive_id3"] = module
    described.loader.exec_module(module)
    return module


def cube() -> np.ndarray:
    """The class is 1 where the second attribute is 2, or the first is 1 and the third is 0; the rest is noise."""
    exact = np.zeros((2, 3, 2, 2), dtype=np.int64)
    for first, second, third in np.ndindex(2, 3, 2):
        true = second == 2 or (first == 1 and third == 0)
        exact[first, second, third] = (300, 5_000) if true else (5_000, 300)
    return exact


@pytest.mark.parametrize("choice", ["by_noisy_counts", "by_choice"])
def test_a_large_budget_finds_the_tree_and_is_spent_whole(trees: ModuleType, choice: str) -> None:
    exact = cube()
    tree = trees.Tree(exact, Fraction(40))
    np.testing.assert_array_equal(tree.grow(getattr(trees, choice)), exact.argmax(axis=-1))
    assert sum(dict(tree.budgets["classes"].charges).values()) == Fraction(40)  # the shares have one list of charges


@pytest.mark.parametrize("choice", ["by_noisy_counts", "by_choice"])
def test_a_node_too_small_for_its_budget_stays_a_leaf(trees: ModuleType, choice: str) -> None:
    tree = trees.Tree(cube() // 100, Fraction(1, 100))
    assert np.unique(tree.grow(getattr(trees, choice))).size == 1
    assert set(tree.private_counts.scales) <= {"size_0", "classes"}
