"""Notes that explain unexpected answers. SQL and Python use the same texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphist_pipeline.base.languages.texts import mark_text

NO_INTERVAL = mark_text("no interval: the mechanism paid for no noisy cells")
CUTS_GROUP = mark_text("no interval: the mechanism paid for noisy sums of groups only, and these cells cut a group")
SMOOTHED = mark_text(
    "the interval is that of the noisy cells alone; the mechanism smooths them, so its estimate lies outside"
)
BELOW = mark_text("the estimate is below 0 by its noise; no true count is")
KNOWN = mark_text("known from public figures, without noise")
BEYOND = mark_text("the estimate is beyond what public figures leave by its noise; no true count is")
WHO_IS_COUNTED = (
    "units with many rows are left out in the course of a year and counted again from 1 January: a change mixes what "
    "happened with who is still counted"
)
NO_WHOLE = "no share: the whole is estimated at 0 or below"
NO_SHARE = "the estimate is no share, by the noise of a small whole or part; the interval is cut off at 0 and 1"
NO_MEAN = "no mean: the rows of the box are estimated at 0 or below"
NO_ROWS = mark_text("the rows are not above their noise, so the mean may be anything between the declared ends")
NO_RATIO = "no ratio: the second count is estimated at 0 or below"
NO_LAW = "no interval: this question has none for estimates from reports"
MIDDLES_OF_ESTIMATE = (
    "the estimate puts each row in the middle of its bin; rows elsewhere in their bins move the {what} "
    "by at most about "
)
MIDDLES_COVERED = ", which the interval covers"
OPEN_MIDDLE = "no interval: an open bin has no middle; ask for a box without open bins"
CHANCE_LEFT_OUT = "the interval covers the noise, not chance: such counts vary by chance, too; with_chance adds that"
CHANCE_NEVER = "the interval covers the noise, not chance: such counts vary by chance, too"
CHANCE_WITHIN = (
    "the interval covers chance, too, as if counts varied as Poisson's do: too little where persons have several rows"
)
CHANCE_SAME = "two revisions of one period count the same records: they differ by noise, and by what was corrected"
CHANCE_OF_RELEASES = (
    "the interval covers the noise alone: where both releases count the same records of a period, "
    "chance moves both alike"
)
FIRST_PERIOD, SECOND_PERIOD = "in the first period ", ". In the second one "
COUNT_IS = "the count is "
CAP_UNKNOWN = "biased by the cap by an unknown amount: no quality table counts the rows that the bound cut"
# Beside every number of a quality table about the rows that the bound cut among the first rows of each unit.
UNSEEN = mark_text("rows beyond these are not seen, and the 95 % is of noise alone")
CUT = "ends cut bins of {axes}: the estimate spreads their rows evenly"
CUT_COVERED = ", the interval holds however they lie"
# Behind the unit in words, where equal rows of a unit are one row.
ONCE_A_CELL = " counts once in each of these cells"
ONCE_A_PERIOD = " counts once in each of these periods"
RANKS_TOGETHER = "all intervals of counts and of ranks hold together with 95 %"
MISSING_DAY = " day between them is in no published period"
MISSING_DAYS = " days between them are in no published period"
OPEN_BIN = "the bin is open, so nothing is known of where in it the quantile lies"

ROUNDING = 1e-6


def note_of(estimate: float, lower: float, upper: float) -> str:
    """Why an estimate lies outside its interval, or below 0; else empty."""
    if lies_outside(estimate, lower, upper):
        return SMOOTHED
    return BELOW if estimate < 0 else ""


def lies_outside(estimate: Any, lower: Any, upper: Any) -> Any:
    """Whether estimates lie outside of their intervals by more than rounding; numbers, or arrays of one shape."""
    return np.logical_not((lower - ROUNDING <= estimate) & (estimate <= upper + ROUNDING))
