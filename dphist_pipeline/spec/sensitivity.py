"""How far one person can move the counts: derived here and nowhere else."""

from __future__ import annotations

from typing import Literal

Neighbours = Literal["add_remove", "substitute"]


def l1_sensitivity(max_rows_per_unit: int, neighbours: Neighbours) -> int:
    """The most that all counts together change between neighbouring inputs, in rows.

    Bounding keeps at most `max_rows_per_unit` rows of a unit, each in one cell. Adding or removing a unit
    therefore moves the counts by at most that many rows in sum, whatever the number of axes. Substituting one
    unit for another takes its rows away and puts as many elsewhere: twice as much.
    """
    if max_rows_per_unit < 1:
        raise ValueError("max_rows_per_unit must be at least 1")
    return 2 * max_rows_per_unit if neighbours == "substitute" else max_rows_per_unit
