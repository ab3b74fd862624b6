"""When the average cell of a release is poor: from the errors of cells alone, before a record is counted.

A cell is poor where the standard deviation of its noise is more than a quarter of its count, as in answers (see
`estimates.reliability`). Most cells of a table usually hold fewer rows than its average cell, since few hold very many:
where the average cell is poor, most cells usually are. The reverse does not follow, and sentences say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.reliability import RELIABILITY

UNEVEN = "where few cells hold most rows, most cells are poor above that, too"


def poor_share(counts: NDArray[np.int64], error: float) -> float:
    """The share of cells that are poor, from 0 to 1.

    Args:
        counts: of the cells, any shape.
        error: standard deviation of the noise in a cell, in rows.
    """
    return float(np.mean(counts * RELIABILITY.fair < error))


def poor_tables(cells: Mapping[str, int], errors: Mapping[str, float], records: float) -> list[str]:
    """The tables whose average cell is poor, by the standard deviation of the noise in a cell of each, in rows."""
    return [name for name, size in cells.items() if records / size * RELIABILITY.fair < errors[name]]


def rows_for_reliability(cells: Mapping[str, int], errors: Mapping[str, float]) -> dict[str, dict[str, int]]:
    """From how many rows on cells are not poor, by the standard deviation of the noise in a cell of each table.

    Returns:
        By table: rows below which a cell is poor, rows from which it is good, and rows of a period below which the
        average cell is poor.
    """
    return {
        "poor_below": {name: math.ceil(errors[name] / RELIABILITY.fair) for name in cells},
        "good_from": {name: math.ceil(errors[name] / RELIABILITY.good) for name in cells},
        "average_cell_poor_below": {
            name: math.ceil(size * errors[name] / RELIABILITY.fair) for name, size in cells.items()
        },
    }


def middle_table(limits: Mapping[str, Mapping[str, int]]) -> int:
    """The rows of a period below which the average cell of at least half of the tables is poor."""
    return sorted(limits["average_cell_poor_below"].values())[(len(limits["average_cell_poor_below"]) - 1) // 2]


def say_rows(limits: Mapping[str, Mapping[str, int]], per: str) -> str:
    """When the average cell is poor, in a sentence or two; of one table, what its cells are, too."""
    least, middle = limits["average_cell_poor_below"], middle_table(limits)
    last, most = max(least.items(), key=lambda table: table[1])
    if len(least) == 1:
        return (
            f"a cell is poor below {limits['poor_below'][last]:,} rows (its noise is more than a quarter of them; from "
            "how many on it is told from an empty one is another limit: dphist explain), good from "
            f"{limits['good_from'][last]:,}; the average cell is poor where a {per} holds fewer than {most:,} rows; "
            f"{UNEVEN}"
        )
    return (
        f"the average cell of half of the tables or more is poor where a {per} holds fewer than {middle:,} rows, that "
        f"of the worst table, {last}, below {most:,}; {UNEVEN}"
    )
