"""The prefix sums of the kd-tree: what is exact, and what is rounded by how much."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dphist_pipeline.solvers.kd_cuts import prefix_sums


def differences(cells):
    """Every cell less the first one, as the sums tell it."""
    sums = prefix_sums(cells)[: cells.size + 1]
    found = [Fraction(after) - Fraction(before) for before, after in pairwise(sums)]
    return [cell - found[0] for cell in found]


@pytest.mark.parametrize("offset", [0, 10**9, -(10**15)])
def test_whole_numbers_are_exact_around_any_offset(offset):
    cells = np.random.default_rng(1).integers(-(10**10), 10**10, 5000) + float(offset)
    assert differences(cells) == [int(cell) - int(cells[0]) for cell in cells]


@pytest.mark.parametrize("huge", [0.0, 1e6, 1e12, 1e18])
def test_other_cells_are_rounded_by_a_tiny_part_of_what_all_distances_come_to(huge):
    cells = np.random.default_rng(2).normal(0.0, 0.1, 2000)
    cells[700] += huge
    most = np.abs(cells - np.median(cells)).sum() * 2.0**-51  # two cells, each by 2^-52 of the sum
    off = [
        float(found - (Fraction(cell) - Fraction(cells[0])))
        for found, cell in zip(differences(cells), cells, strict=True)
    ]
    assert max(map(abs, off)) <= most
    # Sums of rounded cells are exact: the last sum is what all cells come to.
    sums = prefix_sums(cells)[: cells.size + 1]
    assert sum(Fraction(step) for step in np.diff(sums)) == Fraction(sums[-1])
