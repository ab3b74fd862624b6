"""From counts of reports to estimates of values, and the law of their error.

M is the number of vectors, p the probability of a 1 in the interval of a value, q that in any other interval, and
d = p - q. The counts of s intervals that hold n of the values have a sum T with mean n·d + M·s·q. So
R = (T - M·s·q) / d is an unbiased estimate of n for the values that were reported; if a report is sent only with
probability P, R / P is unbiased for all values. Its variance is

    V(s, n) = alpha·s - beta·s² + (gamma + delta·s)·n

    with a bit for each interval   the bits of a vector are independent: s of them vary by q(1-q), a true one by p(1-p)
    grr                            a vector says one number: T counts vectors, each with probability s·q, or p + (s-1)·q
    sampling                       a value counts 1/P times, or not at all; see the contract of `ReportLaw`

Paper: Zheng et al. 2021, equations 7, 14 and 15; variances: Wang et al. 2017, sections 4 and 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.laws import ReportLaw
from dphist_pipeline.estimates.randomized_response import odds
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally


def law_of(question: Question, part: Part, vectors: int) -> ReportLaw:
    """The law of estimates from this number of vectors of a part, counted or expected."""
    chances = odds(part.encoding, part.intervals, part.epsilon)
    q, d, p = chances.elsewhere, chances.gap, chances.there
    share = float(question.participation)
    if part.encoding == "grr":
        alpha, beta, gamma, delta = q / d**2, q**2 / d**2, (1 - d) / d, -2 * q / d
    else:
        alpha, beta, gamma, delta = q * (1 - q) / d**2, 0.0, (p * (1 - p) - q * (1 - q)) / d**2, 0.0
    return ReportLaw(
        alpha=vectors * alpha / share**2,
        beta=vectors * beta / share**2,
        gamma=(gamma + 1 - share) / share,
        delta=delta / share,
        step=1 / (d * share),
    )


def estimates(tally: Tally, number: int) -> NDArray[np.float64]:
    """Unbiased estimates of the number of values in each interval of part `number`, from 0; shape (intervals,)."""
    part = tally.question.parts[number]
    chances = odds(part.encoding, part.intervals, part.epsilon)
    scale = chances.gap * float(tally.question.participation)
    ones = tally.ones[number].astype(np.float64)
    return (ones - tally.vectors * chances.elsewhere) / scale


def project(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest values, by squared error, of which none is negative and that add up to a total of at least 0.

    Exact, O(m log m): every value is lowered by the same amount, and cut off at 0.

    Args:
        values: shape (m,).
    """
    falling = np.sort(values)[::-1]
    lowered = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling - lowered >= 0)[-1]) if total > 0 else 0
    nearest: NDArray[np.float64] = np.maximum(values - lowered[last], 0.0)
    return nearest
