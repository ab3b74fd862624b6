"""The intervals that are published: their levels, and the numbers that SQL and the picker's script share with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline.estimates.laws._interface import LEVEL, LEVEL_OF_TWO, SURE
from dphist_pipeline.estimates.laws._laplace import LEAST_VARIANCE_OF_SHARES
from dphist_pipeline.estimates.laws._report_law import normal_factor


@dataclass(frozen=True)
class Intervals:
    """How wide published intervals are.

    Attributes:
        level: of an interval.
        level_of_two: of each of two intervals that hold together with `level`, however they depend.
        reach_of_ratios: half the width of an interval of a ratio of noisy numbers, in standard deviations.
        least_variance_of_shares: of a draw of noise, in records squared, for which intervals of shares are calibrated.
    """

    level: Fraction
    level_of_two: Fraction
    reach_of_ratios: float
    least_variance_of_shares: float

    @property
    def normal_reach(self) -> float:
        """Half the width of an interval by a normal law, in standard deviations."""
        return normal_factor(self.level)

    @property
    def normal_reach_of_two(self) -> float:
        """As `normal_reach`, for two intervals that hold together."""
        return normal_factor(self.level_of_two)


INTERVALS = Intervals(LEVEL, LEVEL_OF_TWO, SURE, LEAST_VARIANCE_OF_SHARES)
