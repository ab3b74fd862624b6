"""Noise against two other exact samplers, and what neighbours may learn of it: the log-ratio of shifted draws.

Beside `test_noise.py`: more scales, one-sided noise, Canonne, Kamath and Steinke's algorithm in exact fractions, and
OpenDP, all of which must refuse a scale that is 30 % off. Draws are recorded, but for OpenDP's own.
"""

from __future__ import annotations

import math
import secrets
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]
from test_noise import UNLIKELY, allowed, apart, at_least, distance, fit, symmetry, tail_fit

from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.noise import discrete_laplace

DRAWS = 200_000
OFF = [Fraction(7, 10), Fraction(13, 10)]
SCALES = [Fraction(scale) for scale in ("1/3", "1", "7/3", "17", "1000/7", "100000", "1000000")]
ONE_SIDED = [Fraction(scale) for scale in ("1/3", "2", "355/7", "4097", "1000000")]
Draws = NDArray[np.int64]


@pytest.fixture(scope="module")
def draws() -> dict[Fraction, Draws]:
    return {scale: discrete_laplace(scale, DRAWS) for scale in SCALES}


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_has_its_law_at_more_scales_and_no_other(draws: dict[Fraction, Draws], scale: Fraction) -> None:
    assert fit(draws[scale], scale) > UNLIKELY
    assert symmetry(draws[scale]) > UNLIKELY
    assert tail_fit(draws[scale], scale, 1e-3) > UNLIKELY
    assert all(fit(draws[scale], scale * off) < UNLIKELY**2 for off in OFF)


@pytest.mark.parametrize("scale", ["1/50", "1/20", "1/12"])
def test_the_smallest_scales_are_as_rare_as_their_law(scale: str) -> None:
    # Nobody sees 1/50 move in a lifetime; at 1/12, 12 in a million do.
    drawn = discrete_laplace(Fraction(scale), 10**6)
    expected = float(at_least(np.array(1.0), Fraction(scale)))
    assert stats.binomtest(int((drawn != 0).sum()), drawn.size, expected).pvalue > UNLIKELY
    assert (np.abs(drawn) <= 2).all()


# What a neighbour changes: of the draws that reach k, those that reach k + d are a share of exp(-d / scale).


def shifted_fit(drawn: Draws, scale: Fraction) -> float:
    """How likely fair draws have log-ratios of neighbouring tails as far off, over several places and both sides."""
    chances = []
    step = max(1, round(scale))
    for side in (drawn, -drawn):
        for k in (1, 1 + step, 1 + 2 * step):
            reached, further = int((side >= k).sum()), int((side >= k + step).sum())
            chances.append(stats.binomtest(further, reached, math.exp(-step / scale)).pvalue)
    return float(min(chances))


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale >= 1], ids=str)
def test_tails_of_neighbours_differ_by_the_factor_that_the_scale_allows(
    draws: dict[Fraction, Draws], scale: Fraction
) -> None:
    assert shifted_fit(draws[scale], scale) > UNLIKELY
    assert all(shifted_fit(draws[scale], scale * off) < UNLIKELY for off in OFF)


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale < 20], ids=str)
def test_no_count_of_a_value_and_of_its_neighbour_differ_by_more_than_epsilon(
    draws: dict[Fraction, Draws], scale: Fraction
) -> None:
    counts = {k: int((draws[scale] == k).sum()) for k in range(-3, 4)}
    for k in range(-3, 3):
        here, there = sorted((counts[k], counts[k + 1]))
        if here >= 50:
            assert math.log(there / here) < 1 / scale + 8 * math.sqrt(1 / here + 1 / there)
            assert math.log(there / here) > 1 / scale - 8 * math.sqrt(1 / here + 1 / there)


# One-sided noise, of choices


def one_sided_fit(drawn: Draws, scale: Fraction) -> float:
    """How likely draws on 0, 1, … with P(M >= k) = exp(-k / scale) fit it as badly, by chi-square."""
    bounds = np.unique((-float(scale) * np.log(1 - np.linspace(0, 1 - 1e-3, 60))).astype(np.int64)) + 1
    reach = np.exp(-np.concatenate([[0], bounds]) / float(scale))
    masses = np.append(reach[:-1] - reach[1:], reach[-1])
    kept = masses > 1e-4
    observed = np.bincount(np.searchsorted(bounds, drawn, side="right"), minlength=masses.size)
    expected = drawn.size * masses
    return float(stats.chi2.sf((((observed - expected) ** 2) / expected)[kept].sum(), kept.sum() - 1))


@pytest.mark.parametrize("scale", ONE_SIDED, ids=str)
def test_one_sided_noise_has_its_law_and_no_other(scale: Fraction) -> None:
    drawn = noise.geometric(scale, DRAWS)
    assert drawn.min() == 0 or scale > 1000
    assert one_sided_fit(drawn, scale) > UNLIKELY
    assert all(one_sided_fit(drawn, scale * off) < UNLIKELY**2 for off in OFF)
    assert one_sided_fit(drawn + max(1, round(scale / 10)), scale) < UNLIKELY


# Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020, algorithms 1 and 2.


def below(bound: int) -> int:
    """A whole number, uniform but for a part in 2^200, from recorded bytes."""
    return int.from_bytes(secrets.token_bytes(32)) % bound


def bernoulli(chance: Fraction) -> bool:
    return below(chance.denominator) < chance.numerator


def bernoulli_exp(gamma: Fraction) -> bool:
    """True with probability exp(-gamma), by fair draws of exact fractions alone."""
    while gamma > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        gamma -= 1
    terms = 1
    while bernoulli(gamma / terms):
        terms += 1
    return terms % 2 == 1


def by_exact_fractions(scale: Fraction) -> int:
    """One draw of discrete Laplace noise."""
    whole, part = scale.numerator, scale.denominator
    while True:
        rest = below(whole)
        if not bernoulli_exp(Fraction(rest, whole)):
            continue
        laps = 0
        while bernoulli_exp(Fraction(1)):
            laps += 1
        magnitude = (rest + whole * laps) // part
        negative = below(2) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def same_law(theirs: Draws, scale: Fraction) -> float:
    """How likely draws of ours and theirs come from one law."""
    return float(stats.ks_2samp(np.abs(theirs), np.abs(discrete_laplace(scale, DRAWS))).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(7, 2), Fraction(355, 7)], ids=str)
def test_an_algorithm_in_exact_fractions_draws_from_the_same_law(scale: Fraction) -> None:
    theirs = np.array([by_exact_fractions(scale) for _ in range(8_000)])
    assert fit(theirs, scale) > UNLIKELY and symmetry(theirs) > UNLIKELY
    assert same_law(theirs, scale) > UNLIKELY
    for off in OFF:
        assert fit(theirs, scale * off) < UNLIKELY
        assert same_law(theirs, scale * off) < UNLIKELY


# Four sets of draws, each further from its law than allowed with 10^-9. Laws of 0.7 and 1.3 times the scale lie 0.09
# away or further; 0.031 is allowed to both sets.
@pytest.mark.draws("two-sided geometric, 1e-8")
@pytest.mark.parametrize("scale", [Fraction(3, 4), Fraction(51, 2), Fraction(40_000)], ids=str)
def test_opendp_draws_from_the_same_law_and_no_other(scale: Fraction) -> None:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    oracle = make_laplace(vector_domain(atom_domain(T=int)), l1_distance(T=int), scale=float(scale))
    theirs = np.array(oracle([0] * 20_000))
    assert distance(theirs, scale) < allowed(20_000)
    assert apart(theirs, discrete_laplace(scale, DRAWS)) < 0
    for off in OFF:
        assert distance(theirs, scale * off) > allowed(20_000)
        assert apart(theirs, discrete_laplace(scale * off, DRAWS)) > 0
