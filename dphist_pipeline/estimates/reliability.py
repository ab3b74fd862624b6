"""How far a reader may trust a count: one word, and what the words mean; of many cells, a sentence.

The macros use the same words and limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import gettext, mark_text, ngettext, whole
from dphist_pipeline.estimates.noisy import Unbiased

Reals = NDArray[np.float64]
_LEGEND = {
    "good": mark_text("the standard deviation of the noise is at most 10 % of the count"),
    "fair": mark_text("the standard deviation of the noise is between 10 and 25 % of the count"),
    "poor": mark_text("the standard deviation of the noise is more than 25 % of the count, or the interval reaches 0"),
    "": mark_text("nothing is known of the error of this estimate"),
}


def judged_error(error: float, lower: float, upper: float) -> float:
    """The error that a word of `Reliability` judges: of noise, or of an interval that is far wider than noise makes it.

    The interval of a box whose ends cut bins holds wherever their rows lie, so its width is that of what nobody knows.
    Noise alone has no half width above three standard deviations.

    Args:
        error: standard deviation of the noise, in records.
        lower: lower end of the 95 % interval; nan if there is none.
    """
    return (upper - lower) / 4 if upper - lower > 6 * error else error


@dataclass(frozen=True)
class Reliability:
    """The rule: which word a count gets, and what is said of many.

    Attributes:
        good: the largest standard deviation of the noise of a good count, as a part of the count.
        fair: likewise, of a fair one.
        legend: what each word means; the empty word stands where nothing is known.
    """

    good: float
    fair: float
    legend: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The words for counts whose error is known, the best first."""
        return tuple(word for word in self.legend if word)

    def word(self, unbiased: float, error: float, lower: float) -> str:
        """A word of `legend` for a count.

        Args:
            unbiased: the number that the interval belongs to.
            error: standard deviation of its noise.
            lower: lower end of its 95 % interval; nan if there is none.
        """
        if math.isnan(lower):
            return ""
        if lower <= 0 or error > self.fair * unbiased:
            return "poor"
        return "fair" if error > self.good * unbiased else "good"

    def words_of(self, unbiased: Reals, errors: Reals, lower: Reals) -> NDArray[np.str_]:
        """As `word`, for many counts at once: arrays of shapes that fit."""
        poor = (lower <= 0) | (errors > self.fair * unbiased)
        return np.where(poor, "poor", np.where(errors > self.good * unbiased, "fair", "good"))

    def cells(self, unbiased: Unbiased | None, known: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """How many cells are good, fair and poor, or known; empty if the mechanism paid for no noisy cells.

        `known`: which cells public figures tell; no other word is said of them.
        """
        if unbiased is None:
            return {}
        words = self.words_of(unbiased.values, np.sqrt(unbiased.variances), unbiased.values - unbiased.half_widths())
        if known is None:
            return {word: int(np.count_nonzero(words == word)) for word in self.words}
        words = np.where(known, "known", words)
        return {word: int(np.count_nonzero(words == word)) for word in (*self.words, "known")}

    def sentence(
        self,
        tables: Iterable[Unbiased | None],
        are_intervals: bool = False,
        known: Iterable[NDArray[np.bool_] | None] = (),
    ) -> str:
        """A sentence on the cells of some tables together; empty if nothing tells of their errors.

        Args:
            are_intervals: whether cells are the intervals of a question to contributors, and are called so.
            known: which cells of each table are known.
        """
        cells_of_word = dict.fromkeys((*self.words, "known"), 0)
        for table, known_cells in zip_longest(tables, known):
            for word, cells in self.cells(table, known_cells).items():
                cells_of_word[word] += cells
        many = sum(cells_of_word.values())
        if not many:
            return ""
        if many in cells_of_word.values():
            (word,) = (word for word, cells in cells_of_word.items() if cells == many)
            return _all_alike(many, word, are_intervals)
        phrases = [_some(word, cells) for word, cells in cells_of_word.items() if cells]
        parts = {"number": whole(many), "first": ", ".join(phrases[:-1]), "last": phrases[-1]}
        if are_intervals:
            return gettext("Of %(number)s intervals, %(first)s and %(last)s.", **parts)
        return gettext("Of %(number)s cells, %(first)s and %(last)s.", **parts)


RELIABILITY = Reliability(0.1, 0.25, _LEGEND)


def _all_alike(many: int, word: str, are_intervals: bool) -> str:
    number = whole(many)
    one, several = {
        "good": (gettext("The cell is good."), gettext("All %(number)s cells are good.", number=number)),
        "fair": (gettext("The cell is fair."), gettext("All %(number)s cells are fair.", number=number)),
        "poor": (gettext("The cell is poor."), gettext("All %(number)s cells are poor.", number=number)),
        "known": (gettext("The cell is known."), gettext("All %(number)s cells are known.", number=number)),
    }[word]
    if are_intervals:
        one, several = {
            "good": (gettext("The interval is good."), gettext("All %(number)s intervals are good.", number=number)),
            "fair": (gettext("The interval is fair."), gettext("All %(number)s intervals are fair.", number=number)),
            "poor": (gettext("The interval is poor."), gettext("All %(number)s intervals are poor.", number=number)),
        }[word]
    return one if many == 1 else several


def _some(word: str, cells: int) -> str:
    number = whole(cells)
    return {
        "good": ngettext("%(number)s is good", "%(number)s are good", cells, number=number),
        "fair": ngettext("%(number)s is fair", "%(number)s are fair", cells, number=number),
        "poor": ngettext("%(number)s is poor", "%(number)s are poor", cells, number=number),
        "known": ngettext("%(number)s is known", "%(number)s are known", cells, number=number),
    }[word]
