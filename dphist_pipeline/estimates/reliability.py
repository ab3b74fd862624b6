"""How far a reader may trust a count: one word, and what the words mean; of many cells, a sentence.

The macros use the same words and limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.noisy import Unbiased

Reals = NDArray[np.float64]
WORDS = ("good", "fair", "poor")
MOST_GOOD, MOST_FAIR = 0.1, 0.25
LEGEND = {
    "good": "the standard deviation of the noise is at most 10 % of the count",
    "fair": "the standard deviation of the noise is between 10 and 25 % of the count",
    "poor": "the standard deviation of the noise is more than 25 % of the count, or the interval reaches 0",
    "": "nothing is known of the error of this estimate",
}


def judged_error(error: float, lower: float, upper: float) -> float:
    """The error that a word of `LEGEND` judges: of noise, or of an interval that is far wider than noise makes it.

    The interval of a box whose ends cut bins holds wherever their rows lie, so its width is that of what nobody knows.
    Noise alone has no half width above three standard deviations.

    Args:
        error: standard deviation of the noise, in records.
        lower: lower end of the 95 % interval; nan if there is none.
    """
    return (upper - lower) / 4 if upper - lower > 6 * error else error


def reliability(unbiased: float, error: float, lower: float) -> str:
    """A word of `LEGEND` for a count.

    Args:
        unbiased: the number that the interval belongs to.
        error: standard deviation of its noise.
        lower: lower end of its 95 % interval; nan if there is none.
    """
    if math.isnan(lower):
        return ""
    if lower <= 0 or error > MOST_FAIR * unbiased:
        return "poor"
    return "fair" if error > MOST_GOOD * unbiased else "good"


def reliability_words(unbiased: Reals, errors: Reals, lower: Reals) -> NDArray[np.str_]:
    """As `reliability`, for many counts at once.

    Args:
        unbiased: the numbers that the intervals belong to, in records, any shape.
        errors: standard deviations of their noise, of a shape that fits.
        lower: lower ends of their 95 % intervals.
    """
    poor = (lower <= 0) | (errors > MOST_FAIR * unbiased)
    return np.where(poor, "poor", np.where(errors > MOST_GOOD * unbiased, "fair", "good"))


def cells_by_reliability(unbiased: Unbiased | None) -> dict[str, int]:
    """How many cells are good, fair and poor; empty if the mechanism paid for no noisy cells.

    Args:
        unbiased: of all cells of a table.
    """
    if unbiased is None:
        return {}
    words = reliability_words(unbiased.values, np.sqrt(unbiased.variances), unbiased.values - unbiased.half_widths())
    return {word: int(np.count_nonzero(words == word)) for word in WORDS}


def reliability_in_words(tables: Iterable[Unbiased | None]) -> str:
    """A sentence on the cells of some tables together; empty if nothing tells of their errors.

    Args:
        tables: the unbiased cells of each.
    """
    found = dict.fromkeys(WORDS, 0)
    for table in tables:
        for word, cells in cells_by_reliability(table).items():
            found[word] += cells
    many = sum(found.values())
    if not many:
        return ""
    if many in found.values():
        (word,) = (word for word, cells in found.items() if cells == many)
        return f"{'The cell is' if many == 1 else f'All {many:,} cells are'} {word}."
    told = [f"{cells:,} {'is' if cells == 1 else 'are'} {word}" for word, cells in found.items() if cells]
    return f"Of {many:,} cells, {', '.join(told[:-1])} and {told[-1]}."
