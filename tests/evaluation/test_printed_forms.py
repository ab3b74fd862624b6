"""The printed forms of the papers are not private: nothing that publishes may reach them."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dphist_pipeline import mechanisms

PROJECT = Path(__file__).resolve().parents[2]
PRINTED = PROJECT / "benchmarks" / "papers" / "printed.py"


@pytest.fixture(scope="module")
def printed() -> ModuleType:
    described = importlib.util.spec_from_file_location("printed_forms", PRINTED)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    sys.modules["printed_forms"] = module
    described.loader.exec_module(module)
    return module


def imported(path: Path) -> set[str]:
    """The first word of everything that a file imports."""
    return set(re.findall(r"^\s*(?:from|import)\s+(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_nothing_in_the_package_or_the_project_imports_benchmarks():
    studies = {path.stem for path in PRINTED.parent.glob("*.py")}
    assert "printed" in studies
    files = [path for folder in ("dphist_pipeline", "dagster_project") for path in (PROJECT / folder).rglob("*.py")]
    for path in files:
        assert not imported(path) & ({"benchmarks"} | studies), path


def test_no_spec_and_no_wheel_can_name_them():
    assert not [name for name in mechanisms.names() if "printed" in name]
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["dphist_pipeline"]


def cost(line: np.ndarray, ends: tuple[int, ...], price: float) -> float:
    parts = np.split(line, ends)
    return sum(float(((part - part.mean()) ** 2).sum()) + price / part.size for part in parts)


@pytest.mark.parametrize("price", [1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("seed", range(5))
def test_groups_as_printed_are_the_cheapest_of_all(printed, seed, price):
    line = np.random.default_rng(seed).integers(0, 9, size=7).astype(float)
    groups = printed.cheapest_groups(line, price)
    ends = tuple(np.flatnonzero(np.diff(groups)) + 1)
    every = [cut for many in range(7) for cut in combinations(range(1, 7), many)]
    assert cost(line, ends, price) == pytest.approx(min(cost(line, cut, price) for cut in every))


def test_the_walk_as_printed_visits_every_cell_once_and_follows_large_budgets(printed):
    counts = np.array([2, 4, 2, 5, 8, 2, 3])
    order = printed.approximate_sort(counts, 1000.0, np.random.default_rng(0))
    # The example of the paper: B1, B3, B6, B7, B2, B4, B5.
    assert counts[order].tolist() == [2, 2, 2, 3, 4, 5, 8] and sorted(order) == list(range(7))


def test_sreb_gca_as_printed_gives_away_the_mean_of_a_large_group(printed):
    exact = np.full(2_000, 50)
    made = printed.sreb_gca(exact, 2.0, np.random.default_rng(0), least=1_000.0)
    assert made.groups.max() == 0 and made.spent == 1 + 2_000
    # 2,000 draws of scale 1/2,000: their mean has a standard deviation of 1.6e-5, one honest draw 7e-4 at the least.
    assert abs(made.values.mean() - 50) < 2e-4 and made.values.std() > 4e-4


def test_declared_and_spent_epsilon_are_told_apart(printed):
    random = np.random.default_rng(0)
    assert printed.cnfg(np.arange(9), 0.5, random).spent == 1
    assert printed.laplace(np.arange(9), 0.5, random).spent == 1
    assert printed.dphr(np.arange(9), 0.5, random).spent == float("inf")
