"""Where noise is cut off: a noisy answer is a function of the number plus noise without an end."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential._queries import LARGEST_COUNT
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.noise import LARGEST_GEOMETRIC, LARGEST_NOISE
from dphist_pipeline.estimates.budget import Budget

ENDS = [0, 1, LARGEST_COUNT - 1, LARGEST_COUNT, LARGEST_COUNT + 1]
COUNTS = sorted({sign * end for sign in (1, -1) for end in ENDS})
BESIDE = [end + more for end in (0, 1 << 52, 1 << 53, 10**30) for more in (-1, 0, 1)]
NOISE = sorted({sign * end for sign in (1, -1) for end in BESIDE})


def clipped(number: int, end: int) -> int:
    return max(-end, min(end, number))


def measured(counts: list[int], drawn: int, measurement: str) -> list[int]:
    """What a measurement says when every draw of noise without an end is `drawn`."""
    exact = np.array(counts, dtype=np.int64)
    private = PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact)
    with pytest.MonkeyPatch.context() as patch:
        ended = clipped(drawn, LARGEST_NOISE)
        patch.setattr(noise, "discrete_laplace", lambda scale, size: np.full(size, ended))
        if measurement == "noisy_cells":
            return [int(value) for value in private.noisy_cells(Budget(Fraction(1))).values]
        if measurement == "noisy_sums":
            return [int(value) for value in private.noisy_sums(np.arange(exact.size), Budget(Fraction(1))).values]
        return [int(private.noisy_contrasts(Budget(Fraction(1))).total)]


@pytest.mark.parametrize("measurement", ["noisy_cells", "noisy_sums"])
@pytest.mark.parametrize("drawn", NOISE)
def test_an_answer_at_the_ends_is_the_count_plus_noise_without_an_end_then_cut_off(
    drawn: int, measurement: str
) -> None:
    expected = [clipped(clipped(count, LARGEST_COUNT) + drawn, LARGEST_COUNT) for count in COUNTS]
    assert measured(COUNTS, drawn, measurement) == expected


@given(st.integers(-LARGEST_COUNT, LARGEST_COUNT), st.integers(-(1 << 55), 1 << 55))
def test_any_total_is_the_count_plus_noise_without_an_end_then_cut_off(count: int, drawn: int) -> None:
    assert measured([count], drawn, "noisy_contrasts") == [clipped(count + drawn, LARGEST_COUNT)]


def test_noise_that_ended_with_the_counts_would_not_do() -> None:
    count, drawn = -LARGEST_COUNT, 1 << 53
    assert clipped(count + clipped(drawn, LARGEST_COUNT), LARGEST_COUNT) != clipped(count + drawn, LARGEST_COUNT)


@pytest.mark.parametrize("sampler", ["_signed_value", "_difference"])
def test_discrete_laplace_noise_ends_at_two_to_the_fifty_third(monkeypatch: pytest.MonkeyPatch, sampler: str) -> None:
    drawn = np.array([1 << 60, -(1 << 60), LARGEST_NOISE, -LARGEST_NOISE - 1, 7])
    monkeypatch.setattr(noise, sampler, lambda scale, size: drawn)
    scale = Fraction(1) if sampler == "_signed_value" else 2 * noise.LARGEST_TABLE
    ends = [LARGEST_NOISE, -LARGEST_NOISE, LARGEST_NOISE, -LARGEST_NOISE, 7]
    assert noise._draw(scale, drawn.size).tolist() == ends


def test_a_difference_is_taken_of_numbers_that_are_not_cut_off_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = iter([np.array([LARGEST_NOISE + 10]), np.array([LARGEST_NOISE + 3])])
    monkeypatch.setattr(noise, "_geometric", lambda scale, size: next(parts))
    assert noise._draw(2 * noise.LARGEST_TABLE, 1).tolist() == [7]


def test_a_refinement_without_an_end_stops_where_int64_still_holds_the_number() -> None:
    endless = SimpleNamespace(threshold=lambda k, bits: 1 << bits if k < LARGEST_GEOMETRIC + 9 else 0)
    table = noise._ThresholdTable(endless, np.zeros(1, dtype=np.uint64), np.full(1 << 16, -1))  # type: ignore[arg-type]
    assert table.refine(5, LARGEST_GEOMETRIC - 2) == LARGEST_GEOMETRIC


@pytest.mark.parametrize("scale", [Fraction(5000), Fraction(10**7)])
def test_a_geometric_number_of_two_parts_at_their_ends_does_not_wrap(
    monkeypatch: pytest.MonkeyPatch, scale: Fraction
) -> None:
    def at_its_end(law: noise.Law) -> SimpleNamespace:
        most = law.below - 1 if law.kind == "truncated" else LARGEST_GEOMETRIC
        return SimpleNamespace(magnitudes=lambda prefixes: np.full(prefixes.size, most))

    monkeypatch.setattr(noise, "_table", at_its_end)
    assert 0.99 * LARGEST_GEOMETRIC < int(noise._geometric(scale, 1)[0]) <= LARGEST_GEOMETRIC
