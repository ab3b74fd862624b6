"""What a forecast tells errors of: single cells, and boxes of some shares of the grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dphist_pipeline.evaluation.workloads import Boxes

SHARES = (0.01, 0.1, 0.5, 1.0)
PLACES = 64
SEED = 20_120_401


@dataclass(frozen=True, eq=False)
class Question:
    """Boxes of one size; a range, where there is one axis.

    Attributes:
        cells: in each box.
        boxes: that many cells each, where they lie drawn evenly.
    """

    cells: int
    boxes: Boxes


def questions(shape: tuple[int, ...]) -> list[Question]:
    """Boxes of about 1, 10, 50 and 100 % of the cells, each size once; the same ones every time."""
    draws = np.random.Generator(np.random.PCG64(SEED))
    found: dict[int, Question] = {}
    for share in SHARES:
        part = share ** (1 / len(shape))
        sides = np.array([max(1, round(side * part)) for side in shape])
        cells = math.prod(sides.tolist())
        if cells > 1 and cells not in found:
            low = draws.integers(0, np.array(shape) - sides + 1, size=(PLACES, len(shape)), dtype=np.int64)
            low = np.unique(low, axis=0)
            found[cells] = Question(cells, Boxes(low, low + sides))
    return list(found.values())
