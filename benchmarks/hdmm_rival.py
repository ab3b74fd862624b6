"""How near do HDMM's own strategies come to `workload` and `multiscale`? By its authors' code, which is not kept here.

HDMM (McKenna, Miklau, Hay, Machanavajjhala, PVLDB 2018) chooses what to measure from the questions alone, so its
expected error needs no release: 2 · (Δ/ε)² · q·(AᵀA)⁻¹·q of a question q, where the columns of A have a sum of 1. The
authors' `PIdentity` with a sixteenth as many sums as cells is fitted to all ranges or all prefixes, from random starts;
the best is kept, as their `mechanism.py` does. Of a grid, the strategies of both axes are multiplied. The same
questions are asked as in `ranges.py`, and `workload` is computed by the same formula from its own weights. Template,
starts, optimiser and its tolerance are theirs; their loss, which multiplies matrices of all cells by all cells, is
computed by an equal formula that does not, and compared with theirs at each start of this script.

    python benchmarks/hdmm_rival.py --code FOLDER [--cells 101 200 …] [--to FILE] [--draws 20]

FOLDER holds the package `hdmm` of github.com/dpcomp-org/hdmm. The file is written after each length, and a length that
it holds is left out. `--draws` checks the formula at 1,340 cells by releases.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ranges import PROJECT, prefixes

from dphist_pipeline.solvers.trees.workload_strategies import (
    TOTAL,
    Gram,
    gram_of_prefixes,
    gram_of_ranges,
    weights_along,
)
from dphist_pipeline.workbench.evaluation.workloads import Boxes, random_boxes

STARTS = {101: 25, 200: 25, 256: 25, 1_001: 1, 1_340: 1, 2_200: 1, 4_096: 1}
SIDE, GRID_TOTAL = 256, 64
QUESTIONS = 2_000
CHECKED, CHECKED_EPSILON = 1_340, 0.1

Reals = NDArray[np.float64]


def template_of(cells: int, gram: Gram) -> Any:
    """The authors' template for a length, with the loss and its derivative by products with the Gram matrix alone."""
    theirs = importlib.import_module("hdmm.templates").PIdentity

    class Quick(theirs):  # type: ignore[misc, valid-type]
        def _set_workload(self, questions: Any) -> None: ...

        def _loss_and_grad(self, params: Reals) -> tuple[float, Reals]:
            sums = params.reshape(self.p, self.n)
            scale = 1 + sums.sum(axis=0)
            against = gram.times(sums * scale) * scale
            kernel = np.linalg.inv(np.eye(self.p) + sums @ sums.T)
            shrunk, answered = kernel @ sums, kernel @ against
            single, saved = gram.diagonal * scale**2, np.einsum("ij,ij->j", shrunk, against)
            slope = 2 / scale * (single - saved) - 2 * (answered - (answered @ sums.T) @ shrunk)
            return float(single.sum() - saved.sum()), slope.ravel()

    return Quick(max(1, cells // 16), cells)


def compare_losses(cells: int = 101) -> None:
    """Refuses a loss that is not the authors'."""
    theirs, questions_of = (importlib.import_module(f"hdmm.{name}") for name in ("templates", "workload"))
    for questions, gram in ((questions_of.AllRange, gram_of_ranges), (questions_of.Prefix, gram_of_prefixes)):
        template = theirs.PIdentity(cells // 16, cells)
        template._set_workload(questions(cells))
        here = template_of(cells, gram(cells))
        for params in np.random.default_rng(3).random((5, template._params.size)):
            for one, other in zip(template._loss_and_grad(params), here._loss_and_grad(params), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7 * np.abs(one).max())


def fitted(cells: int, asked: str) -> tuple[Reals, list[float]]:
    """The inverse Gram matrix of HDMM's best strategy, columns of sum 1, and the mean variance of each start."""
    gram = gram_of_ranges(cells) if asked == "ranges" else gram_of_prefixes(cells)
    best, least, losses = None, np.inf, []
    for _ in range(STARTS[cells]):
        template = template_of(cells, gram)
        loss = float(template.optimize(None))
        losses.append(2 * loss / gram.queries)
        print(cells, asked, losses[-1], flush=True)
        if loss < least:
            best, least = template, loss
    assert best is not None
    return np.asarray(best._AtA1()), losses


def ours(cells: int, asked: str, total: int) -> Reals:
    """The same matrix for `workload`: with weights divided by their sum."""
    weights = weights_along(asked, cells, total) / total
    own, sums = weights[0], weights[1:]
    weighted = sums / own**2
    inverse: Reals = np.diag(1 / own**2) - weighted.T @ np.linalg.solve(np.eye(len(sums)) + weighted @ sums.T, weighted)
    return inverse


def variances(inverse: Reals, low: NDArray[np.int64], high: NDArray[np.int64]) -> Reals:
    """q·M·q of half-open ranges."""
    sums = np.pad(inverse.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    found: Reals = sums[high, high] - sums[low, high] - sums[high, low] + sums[low, low]
    return found


def mean_variance(inverse: Reals, boxes: Boxes) -> float:
    """Mean variance of boxes, in (Δ/ε)²; along each axis alike."""
    low, high = np.asarray(boxes.low), np.asarray(boxes.high)
    along = [variances(inverse, low[:, axis], high[:, axis]) for axis in range(low.shape[1])]
    return float(2 * np.prod(along, axis=0).mean())


def questions(cells: int) -> dict[str, Boxes]:
    """The questions that `ranges.py` asks of a line, or of the grid."""
    shape = (cells, cells) if cells == SIDE else (cells,)
    return {"ranges": random_boxes(shape, QUESTIONS), "prefixes": prefixes(shape)}


def measured(cells: int) -> dict[str, Any]:
    """Mean variances of both kinds of questions, of strategies for ranges and for prefixes."""
    asked, total = questions(cells), GRID_TOTAL if cells == SIDE else TOTAL
    row: dict[str, Any] = {"cells": cells, "axes": 1 + (cells == SIDE), "starts": STARTS[cells], "chosen_for": {}}
    for kind in ("ranges", "prefixes"):
        theirs, losses = fitted(cells, kind)
        row["chosen_for"][kind] = {
            "losses": losses,
            "HDMM": {name: mean_variance(theirs, boxes) for name, boxes in asked.items()},
            "workload": {name: mean_variance(ours(cells, kind, total), boxes) for name, boxes in asked.items()},
        }
    return row


def drawn(releases: int) -> dict[str, Any]:
    """The error of ranges of so many releases by a strategy of HDMM, and what the formula says of it."""
    templates, workload = (importlib.import_module(f"hdmm.{name}") for name in ("templates", "workload"))
    template = templates.PIdentity(CHECKED // 16, CHECKED)
    template.optimize(workload.AllRange(CHECKED))
    strategy, boxes = template.strategy().dense_matrix(), random_boxes((CHECKED,), QUESTIONS)
    scale = float(np.abs(strategy).sum(axis=0).max()) / CHECKED_EPSILON
    errors = []
    for _ in range(releases):
        noise = np.random.default_rng().laplace(0, scale, strategy.shape[0])
        errors.append(float(np.mean(boxes.sums(np.linalg.lstsq(strategy, noise)[0]) ** 2)))
    return {
        **{"cells": CHECKED, "epsilon": CHECKED_EPSILON, "releases": releases},
        "formula": mean_variance(np.asarray(template._AtA1()), boxes) / CHECKED_EPSILON**2,
        "drawn": float(np.mean(errors)),
        "standard_error": float(np.std(errors, ddof=1) / releases**0.5),
    }


def main() -> None:
    """Fits what the file lacks."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--code", type=Path, required=True)
    arguments.add_argument("--cells", type=int, nargs="+", default=list(STARTS))
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "hdmm.json")
    arguments.add_argument("--draws", type=int, default=0)
    chosen = arguments.parse_args()
    sys.path.insert(0, str(chosen.code))
    compare_losses()
    found = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else {"rows": []}
    if chosen.draws:
        found["check"] = drawn(chosen.draws)
        print(found["check"])
    for cells in chosen.cells:
        if all(row["cells"] != cells for row in found["rows"]):
            found["rows"].append(measured(cells))
            print(json.dumps(found["rows"][-1]), flush=True)
        chosen.to.parent.mkdir(parents=True, exist_ok=True)
        chosen.to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
