"""The measurement of contrasts: exact differences of halves, moved by a neighbour by no more than the noise covers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_words import RecordedWords

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential._queries import Contrasts
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget

EXACT = [4, 0, 7, 1_000_003, -2, 90]
LARGEST = 1 << 52
COUNTS = st.integers(-100, 100) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([LARGEST, -LARGEST, LARGEST - 1])


def private_counts(counts: Sequence[int], sensitivity: int = 1) -> PrivateCounts:
    exact = np.array(counts, dtype=np.int64)
    return PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> RecordedWords:
    recorded = RecordedWords()
    monkeypatch.setattr(noise, "random_words", recorded)
    return recorded


def test_noisy_contrasts_are_total_and_halves_less_halves_plus_one_draw_each(words: RecordedWords) -> None:
    scale = 4 * 3 / Fraction(1, 5)  # six cells are halved three times: four numbers may move by the sensitivity
    added = noise.discrete_laplace(scale, 7)
    drawn = words.given
    words.rewind()
    wavelet = private_counts(EXACT, 3).noisy_contrasts(Budget(Fraction(1, 5)))
    assert words.given == drawn
    assert wavelet.scale == scale
    assert [level.size for level in wavelet.contrasts] == [1, 2, 3]
    exact = [1_000_102, 999_926, -1_000_006, 88, 4, -999_996, -92]
    assert np.array_equal([wavelet.total, *np.concatenate(wavelet.contrasts)], exact + added)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))


@settings(deadline=None)
@given(st.lists(COUNTS, min_size=1, max_size=20), st.data())
def test_contrasts_of_neighbours_differ_by_at_most_one_sensitivity_a_level(
    exact: list[int], data: st.DataObject
) -> None:
    moves = data.draw(st.lists(st.integers(-2, 2), min_size=len(exact), max_size=len(exact)))
    there = [max(-(2**63), min(2**63 - 1, count + move)) for count, move in zip(exact, moves, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        without_noise(patch)
        both = [private_counts(counts).noisy_contrasts(Budget(Fraction(1))) for counts in (exact, there)]
    moved = np.abs(np.array(both[0].total) - both[1].total)
    levels = [np.abs(one - other).sum() for one, other in zip(both[0].contrasts, both[1].contrasts, strict=True)]
    assert len(levels) == (len(exact) - 1).bit_length()
    assert max([moved, *levels]) <= np.abs(moves).sum()
    assert both[0].scale == 1 + len(levels)


SHAPES = [(4,), (3, 2), (2, 5), (1, 3), (2, 2, 3), (5, 1, 2)]


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.data())
def test_contrasts_of_neighbours_on_grids_differ_by_no_more_than_is_declared(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    cells = math.prod(shape)
    exact = np.array(data.draw(st.lists(COUNTS, min_size=cells, max_size=cells)), dtype=np.int64)
    moves = data.draw(st.lists(st.integers(-2, 2), min_size=cells, max_size=cells))
    there = np.array(
        [max(-(2**63), min(2**63 - 1, int(count) + move)) for count, move in zip(exact, moves, strict=True)],
        dtype=np.int64,
    )
    question = Contrasts(shape)
    here, moved = (question.answers(counts.clip(-LARGEST, LARGEST)) for counts in (exact, there))
    assert max(abs(here.max()), abs(here.min())) <= LARGEST
    assert np.abs(here - moved).sum() <= question.sensitivity(int(np.abs(moves).sum()))


@pytest.mark.parametrize("shape", SHAPES)
def test_one_row_in_a_first_cell_moves_them_exactly_as_far_as_is_declared(shape: tuple[int, ...]) -> None:
    row = np.zeros(math.prod(shape), dtype=np.int64)
    row[0] = 1
    assert np.abs(Contrasts(shape).answers(row)).sum() == Contrasts(shape).sensitivity(1)


def test_contrasts_saturate_at_two_to_the_fifty_second(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    wavelet = private_counts([2**62, 2**62, 5, -(2**62)]).noisy_contrasts(Budget(Fraction(1)))
    assert [int(wavelet.total), *map(int, np.concatenate(wavelet.contrasts))] == [5, LARGEST, 0, LARGEST]
