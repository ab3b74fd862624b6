"""One question in the place of many mechanisms: what shall be answered well? A public rule names the mechanism.

The rule reads what is asked, the number of declared axes, and a public guess of the number of records where one is
given; never a record. It follows what was measured on public counts (docs/explanation/ranges.md, accuracy.md). Which
mechanism is chosen stands in the spec: it is written there once, since an upgrade must change no digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Serves = Literal["cells", "ranges", "boxes", "prefixes", "tables"]
FEW_RECORDS, NEXT_TO_NOTHING = 0.3, 0.1  # times epsilon over the sensitivity, by the number of cells
_READ_OFF = "Read sums off `estimate`, which has no interval; intervals are those of unbiased sums, and wider"


@dataclass(frozen=True)
class Serving:
    """What the rule chooses.

    Attributes:
        because: the rule, in sentences without the last full stop.
        settings: those that are not at their default, with their values.
    """

    serves: Serves
    mechanism: str
    because: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def written(self) -> str:
        """The mechanism as on a command line: its name, and settings after a colon."""
        return ":".join([self.mechanism, *(f"{name}={value}" for name, value in self.settings)])


def mechanism_for(serves: Serves, axes: int | None = None, known: float | None = None) -> Serving:
    """The mechanism that a public rule names.

    Args:
        axes: the number of axes; None before they are decided.
        known: a guess of the number of records, times epsilon over the sensitivity, by the number of cells; None
            without a guess.
    """
    if serves == "cells":
        because = "It has the least error of single cells on most public counts"
        if known is None or known < NEXT_TO_NOTHING:
            # Measured by benchmarks/few_records.py; neither a guess of records nor a noisy count tells the two apart.
            because += (
                ". Where records, times epsilon over the sensitivity, are fewer than a tenth of the cells and counts "
                "change gently from cell to cell, `adaptive_boxes` is up to three times nearer; where few cells hold "
                "most records it is far worse"
            )
        return Serving(serves, "adaptive", because)
    if serves == "tables":
        return Serving(serves, "tables", "It alone takes `tables:`, and fits all of them together")
    if (axes or 1) > 1 or (axes is None and serves == "boxes"):
        return _for_grids(serves, axes, known)
    line = "It measures what `workload` does, and its estimates are as near where counts are rough, nearer elsewhere"
    settings = (("workload", "prefixes"),) if serves == "prefixes" else ()
    return Serving(serves, "multiscale", f"{line}. {_READ_OFF}", settings)


def _for_grids(serves: Serves, axes: int | None, known: float | None) -> Serving:
    few = f"records, times epsilon over the sensitivity, are fewer than {10 * FEW_RECORDS:g} tenths of the cells"
    if axes == 2 and known is not None and known < FEW_RECORDS:
        because = f"Of sums over two axes it errs least on most public counts where {few}, as you guess here"
        bars = "Read sums off `estimate`, which has no interval; only sums of whole boxes that it measured have one"
        return Serving(serves, "adaptive_boxes", f"{because}. {bars}")
    because = "Of sums over several axes it errs least on most public counts"
    if axes in (2, None):
        because += f"; but on two axes of which {few}, `adaptive_boxes` was up to ten times nearer"
    return Serving(serves, "multiscale", f"{because}. {_READ_OFF}", (("levels", "overlapping"),))
