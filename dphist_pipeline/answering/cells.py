"""The cells of a publication, as questions need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.noisy import Unbiased


@dataclass(frozen=True, eq=False)
class Cells:
    """What was published of every cell.

    Attributes:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: noisy cells or linear estimates of them, where they were paid for; or estimates from reports.
    """

    domain: Domain
    values: NDArray[np.float64]
    unbiased: Unbiased | None
