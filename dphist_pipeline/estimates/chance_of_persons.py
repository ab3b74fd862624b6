"""Whether two counts differ by more than noise and chance explain: one rule for every page.

People come independently of each other, each with some rows. The sum of rows of independent persons, each with at most
m of them, has a variance of at most about m times itself. That is more than Poisson's, which `dph_compare` adds: the
rule says yes only where the macro's interval leaves 0 out, too. The script of the picker has the same formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ChanceRule:
    """The rule.

    Attributes:
        sure: standard deviations of noise and chance that explain a difference, 19 times out of 20.
        least: records of chance where nothing is counted: a mean may be above its count.
    """

    sure: float
    least: float

    def half_width(self, one: float, two: float, noise: tuple[float, float], rows_of_each: int) -> float:
        """Half the width of the interval of a difference between two counts, by noise and chance, in records.

        Args:
            one: in records; below 0 it counts as 0, as `two` does.
            noise: half widths of their 95 % intervals.
            rows_of_each: how many rows of one person may be counted in either.
        """
        chance = rows_of_each * (max(0.0, one) + max(0.0, two) + self.least)
        return math.sqrt(noise[0] ** 2 + noise[1] ** 2 + self.sure**2 * chance)


CHANCE = ChanceRule(sure=1.96, least=2.0)
