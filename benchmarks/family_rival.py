"""How far off are tables of a family beside the plain rival: ε in equal parts, Laplace noise, and a fit by mbi?

All pairs of brazil and adult, as in `whole_families`. The rival gives every table the same part of ε, adds discrete
Laplace noise to its cells, and fits all tables by mbi (private-pgm), mirror descent of 1,000 steps. Mean squared error
of a cell over tables and releases: of the noisy tables, of mbi's, and of `estimate` and `whole` of this package at the
same ε. mbi lives in an environment of its own, made on first use. Writes JSON to benchmarks/results/.

    python benchmarks/family_rival.py [--releases 2] [--output FILE]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from tables import EPSILONS, PROJECT, adult, brazil, summed
from whole_families import compared, family_of

MBI = "mbi==2.0.0"
HOME = PROJECT / "benchmarks" / "results" / "peers" / "mbi"
DRAWS = np.random.default_rng()


def environment() -> Path:
    """The interpreter that has mbi."""
    python = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--prefer-binary", MBI], check=True)
        (HOME / "ready").touch()
    return python


def fitted_by_mbi(
    shape: Sequence[int], exact: Sequence[np.ndarray], tables: Sequence[tuple[int, ...]], epsilon: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Tables as measured in equal parts of ε, and fitted by mbi.

    Args:
        shape: positions along each axis of the grid.
        exact: counts of each table.
        tables: their axes.
        epsilon: of all tables together.
    """
    decay = np.exp(-epsilon / len(tables))
    noisy = [
        part.ravel() + DRAWS.geometric(1 - decay, part.size) - DRAWS.geometric(1 - decay, part.size) for part in exact
    ]
    given: dict[str, Any] = {"shape": shape, "tables": len(tables), "deviation": (2 * decay) ** 0.5 / (1 - decay)}
    given |= {f"axes_{number}": axes for number, axes in enumerate(tables)}
    given |= {f"noisy_{number}": part.astype(float) for number, part in enumerate(noisy)}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "noisy.npz"), Path(folder, "fitted.npz")
        np.savez(source, **given)
        subprocess.run([environment(), PROJECT / "benchmarks/peers/peer_mbi.py", source, target], check=True)
        held = np.load(target)
        fitted = [held[f"table_{number}"] for number in range(len(tables))]
    shaped = [[one.reshape(part.shape) for one, part in zip(made, exact, strict=True)] for made in (noisy, fitted)]
    return shaped[0], shaped[1]


def rival(counts: np.ndarray, epsilon: float) -> tuple[float, float]:
    """The mean squared errors of a cell of all pairs: as measured in equal parts of ε, and fitted by mbi."""
    pairs = list(combinations(range(counts.ndim), 2))
    exact = [summed(counts, axes) for axes in pairs]
    noisy, fitted = fitted_by_mbi(counts.shape, exact, pairs, epsilon)
    errors = ([((one - other) ** 2).mean() for one, other in zip(made, exact, strict=True)] for made in (noisy, fitted))
    return tuple(float(np.mean(found)) for found in errors)


def main() -> None:
    """Compares both sets at both epsilons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "family_rival.json")
    asked = parser.parse_args()
    facts: dict[str, Any] = {"measured": datetime.now(UTC).date().isoformat(), "mbi": MBI, "releases": asked.releases}
    facts["pairs"] = []
    for name, read in {"brazil": brazil, "adult": adult}.items():
        counts = read()
        family = family_of(counts.shape, 2)
        for epsilon in EPSILONS:
            ours = compared(family, lambda axes, counts=counts: summed(counts, axes), epsilon, asked.releases)
            noisy, fitted = np.mean([rival(counts, float(epsilon)) for _ in range(asked.releases)], axis=0)
            row = {"set": name, "epsilon": epsilon, "equal_parts": float(noisy), "equal_parts_and_mbi": float(fitted)}
            row |= {"estimate": ours["estimate, 2-way"], "whole": ours["whole, 2-way"]}
            facts["pairs"].append(row)
            print(row, flush=True)
            asked.output.parent.mkdir(parents=True, exist_ok=True)
            asked.output.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
