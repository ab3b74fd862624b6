"""The variance and the exact quantiles of discrete Laplace noise."""

from __future__ import annotations

import math
from fractions import Fraction

from dphist_pipeline.estimates.certified import Law


def variance(scale: Fraction) -> float:
    """Variance of one draw, 1 / (2·sinh²(1 / (2·scale))), in records squared.

    Args:
        scale: of the noise, in records.
    """
    return float(1 / (2 * math.sinh(1 / (2 * scale)) ** 2))


def half_width(scale: Fraction, level: Fraction) -> int:
    """The smallest c with P(|noise| <= c) >= level, exactly, in records.

    Args:
        scale: of the noise, in records.
        level: between 0 and 1.
    """
    law, outside = Law("laplace_magnitude", 1 / scale), 1 - level
    c = max(0, int(scale * math.log(1 / outside)) - 1)
    while c > 0 and law.at_most(c, outside):
        c -= 1
    while not law.at_most(c + 1, outside):
        c += 1
    return c
