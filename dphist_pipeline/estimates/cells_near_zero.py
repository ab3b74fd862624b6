"""How many cells of a table noise hides, and whether whole counts are told before its estimates.

Both follow from published numbers and public figures alone. Where most cells cannot be told from empty ones, the whole
count of a cell has less error than its estimate: it knows that no count is negative. In 1,200 cells with noise of
standard deviation 7.0, rows in half of them, about 200 each: 5.9; rows in 5 % of them: 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import gettext, ngettext, whole
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.known_figures import totals_are_known

Reals = NDArray[np.float64]
SPARSE = 0.5  # a table is sparse where the intervals of at least this part of its cells reach 0


@dataclass(frozen=True)
class CellsNearZero:
    """Cells with an interval: how many there are, and of how many it reaches 0, or lies wholly below 0."""

    cells: int = 0
    reaching: int = 0
    below: int = 0

    @classmethod
    def of(cls, lower: Reals, upper: Reals) -> CellsNearZero:
        """Counts cells by the ends of their intervals; nan for a cell without one."""
        return cls(*(int(np.count_nonzero(some)) for some in (~np.isnan(lower), lower <= 0, upper < 0)))

    @classmethod
    def of_estimate(cls, estimate: Estimate) -> CellsNearZero:
        """Counts the cells of a table by its unbiased estimates; none where the mechanism paid for none.

        With public figures, known cells have no interval, and others are cut off at 0.
        """
        if estimate.unbiased is None:
            return cls()
        values, half = estimate.unbiased.values, estimate.unbiased.half_widths()
        if estimate.known is None:
            return cls.of(values - half, values + half)
        is_noisy = ~estimate.known.are_known
        return replace(cls.of((values - half)[is_noisy], (values + half)[is_noisy]), below=0)

    @classmethod
    def together(cls, tables: Sequence[CellsNearZero]) -> CellsNearZero:
        """Adds up the counts of several tables."""
        return cls(*(sum(getattr(near, name) for near in tables) for name in ("cells", "reaching", "below")))

    @property
    def are_most(self) -> bool:
        """Whether the table is sparse."""
        return self.cells > 0 and self.reaching >= SPARSE * self.cells

    def below_in_words(self) -> str:
        """What a reader does with intervals wholly below 0; empty where there are none."""
        if not self.below:
            return ""
        return ngettext(
            "Of %(cells)s cells, %(number)s has an interval wholly below 0. No count is: such an interval is one of "
            "the 1 in 20 that miss. Read it as few or none, and leave it as it is in sums.",
            "Of %(cells)s cells, %(number)s have an interval wholly below 0. No count is: such intervals are some of "
            "the 1 in 20 that miss. Read them as few or none, and leave them as they are in sums.",
            self.below,
            **{"cells": whole(self.cells), "number": whole(self.below)},
        )


def has_whole_first(audit: Mapping[str, Any], near: CellsNearZero) -> bool:
    """Whether whole counts of a published table stand before its estimates: it is sparse, or totals are known.

    Cards, files and the picker ask this. There are no whole counts of an amount, whose rows are split.
    """
    return "amount" not in audit and (totals_are_known(audit) or near.are_most)


def first_in_words(audit: Mapping[str, Any], tables: Sequence[CellsNearZero]) -> str:
    """Why files and answers of some tables of a publication tell whole counts first; empty where none does."""
    sparse = sum(has_whole_first(audit, near) for near in tables)
    if not sparse:
        return ""
    if totals_are_known(audit):
        return gettext("Whole numbers meet totals that were public before, so they stand first in files and answers.")
    if len(tables) > 1:
        return gettext(
            "In %(number)s of %(tables)s tables most cells cannot be told from empty ones. There the whole number of a "
            "cell has less error than its estimate, so it stands first in files and answers.",
            **{"number": whole(sparse), "tables": whole(len(tables))},
        )
    return gettext(
        "Most cells cannot be told from empty ones (%(number)s of %(cells)s). There the whole number of a cell has "
        "less error than its estimate, so it stands first in files and answers.",
        **{"number": whole(tables[0].reaching), "cells": whole(tables[0].cells)},
    )
