"""One question in the place of twenty mechanisms: what shall be answered well? A public rule names the mechanism.

The rule reads the declared axes, epsilon, and how many records somebody expects in public; never a record. It follows
what was measured on public counts (docs/explanation/ranges.md, accuracy.md). Which mechanism is chosen stands in the
spec: it is written there once, since an upgrade must change no digest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

# With so many records in a cell, times epsilon, fixed weights do better on a line of at most so many cells; for
# prefixes, on a line of any length.
LONG_LINE, FULL, FULL_OF_PREFIXES = 2_000, 10, 3
Serves = Literal["cells", "ranges", "boxes", "prefixes", "tables"]
_READ_OFF = "Read sums off `estimate`, which has no interval; intervals are those of unbiased sums, and wider"


@dataclass(frozen=True)
class Serving:
    """What the rule chooses.

    Attributes:
        serves: what shall be answered well.
        mechanism: its name.
        because: the rule, in sentences without the last full stop.
        settings: those that are not at their default, with their values.
    """

    serves: Serves
    mechanism: str
    because: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def written(self) -> str:
        """As on a command line: the name, and settings after a colon."""
        return ":".join([self.mechanism, *(f"{name}={value}" for name, value in self.settings)])


def mechanism_for(
    serves: Serves, shape: tuple[int, ...] | None = None, epsilon: Fraction | None = None, records: int | None = None
) -> Serving:
    """The mechanism that a public rule names.

    Args:
        serves: what shall be answered well.
        shape: cells along each axis; None before the axes are decided.
        epsilon: of a period's counts, over the sensitivity; None before it is decided.
        records: that a period is expected to hold, by a public guess.
    """
    if serves == "cells":
        return Serving(serves, "adaptive", "It has the least error of single cells on most public counts")
    if serves == "tables":
        return Serving(serves, "tables", "It alone takes `tables:`, and fits all of them together")
    if len(shape or ()) > 1 or (shape is None and serves == "boxes"):
        return Serving(serves, "multiscale", f"It is nearest for sums over several axes. {_READ_OFF}")
    fixed = Serving(serves, "workload", "", (("workload", "prefixes"),) if serves == "prefixes" else ())
    full = FULL_OF_PREFIXES if serves == "prefixes" else FULL
    line = "a line whose cells" if serves == "prefixes" else f"a line of at most {LONG_LINE:,} cells that"
    rule = f"on {line} hold {full} or more each, in records times epsilon over the sensitivity"
    if shape is None or epsilon is None or records is None:
        return Serving(serves, "multiscale", f"{_READ_OFF}. `{fixed.written}` is nearer {rule}")
    held = float(records * epsilon / shape[0])
    here = f"these {shape[0]:,} hold {records / shape[0]:,.0f} records each, which is {held:,.1f}"
    if held >= full and (serves == "prefixes" or shape[0] <= LONG_LINE):
        return replace(fixed, because=f"It is nearer {rule}: {here}")
    return Serving(serves, "multiscale", f"`{fixed.written}` would be nearer {rule}; {here}. {_READ_OFF}")
