"""The number that is told first, and what stands beside it, belong together on every page and in every command."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.publishing._card import total_facts
from dphist_pipeline.publishing.formatting import decimals_of, in_decimals, shown_number
from dphist_pipeline.publishing.headline_figures import HeadlineFigure


def answer(cells: int, estimate: float = 104, unbiased: float = 100, low: float = 80, high: float = 120) -> Answer:
    return Answer(estimate, unbiased, low, high, "unbiased", cells, 10.0)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (answer(12), "100 ±20"),
        (answer(1), "104 (80 to 120)"),
        (answer(12, high=150), "100 (80 to 150)"),  # an interval that sums of groups made narrower at one end
        (answer(12, unbiased=math.nan, low=math.nan, high=math.nan), "104"),
        (answer(1, unbiased=math.nan, low=math.nan, high=math.nan), "104"),
        (answer(12, 204_000, 200_161, 200_045, 200_277), "200,161 ±116"),
        (answer(12, unbiased=100.4), "100 ±20"),
        (answer(12, unbiased=100.4, low=81.0, high=120.7), "100 ±20"),  # of halves of 19.4 and 20.3 the longer
    ],
)
def test_a_sum_is_told_by_the_middle_of_its_interval_and_a_cell_by_its_estimate(found: Answer, text: str) -> None:
    assert str(HeadlineFigure.of(vars(found))) == text


@pytest.mark.parametrize(
    ("error", "decimals"), [(80.0, 0), (1.0, 0), (0.99, 1), (0.1, 1), (0.099, 2), (2e-5, 5), (0.0, 0), (math.nan, 0)]
)
def test_no_decimal_is_finer_than_the_first_digit_of_the_noise(error: float, decimals: int) -> None:
    assert decimals_of(error) == decimals
    found = replace(answer(12, 41.238, 41.238, 41.1, 41.376), noise_error=error)
    # By the width of the interval where noise is not known, or where bins make the interval far wider than noise does.
    assert HeadlineFigure.decimals_justified(vars(found)) == (decimals if error > 0.05 else 2)


def test_decimals_that_are_asked_for_take_the_place_of_those() -> None:
    assert str(HeadlineFigure.of(vars(answer(12, unbiased=100.4)), 2)) == "100.40 ±20.40"
    assert in_decimals(-0.004, 2) == "0.00" and in_decimals(-1234.5, 0) == "-1,234"
    assert shown_number(-0.004, 2) == "0.00" and shown_number(-1.25, 1) == "−1.2"


def test_what_is_not_known_is_null_in_rows_and_nan_in_answers() -> None:
    row = {"estimate": 5.0, "unbiased": None, "ci_lower": None, "ci_upper": None, "cells": 3}
    assert str(HeadlineFigure.of(row)) == "5" and HeadlineFigure.of(row).half is None


def test_the_card_gives_ends_where_the_total_is_not_in_the_middle() -> None:
    even, uneven = total_facts(answer(12)), total_facts(answer(12, high=150))
    assert (even["total"], even["total_reach"], even["total_ends"]) == ("100", "20", None)
    assert (uneven["total"], uneven["total_reach"], uneven["total_ends"]) == ("100", None, "80 to 150")
    assert total_facts(answer(12, unbiased=math.nan, low=math.nan, high=math.nan))["total_ends"] is None
