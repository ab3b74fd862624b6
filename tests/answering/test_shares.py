"""Shares and changes: the levels of their intervals, and wholes that the noise has brought to nothing."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from answering_scenario import attached, rows_of
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.notes import NO_WHOLE
from dphist_pipeline.releasing.releases import Release

pytestmark = pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/")

WARD = {"column": "ward", "values": ["a", "b"]}


def published(public: Path, noisy: list[int], scale: Fraction, period: str = "2026-03-02") -> Release:
    made = by_hand.estimate([WARD], np.array(noisy, dtype=float), scale=scale, off=0)
    return by_hand.publish(public, made, [WARD], period=period)


# Noisy counts of both wards and the scale of their noise, a period each.
COUNTS: dict[str, tuple[list[int], Fraction]] = {
    "2026-01-05": ([900, 2100], Fraction(2)),
    "2026-01-12": ([900, 2100], Fraction(20)),
    "2026-01-19": ([900, 2100], Fraction(1, 2)),
    "2026-01-26": ([950, 2100], Fraction(1, 4)),
    "2026-02-02": ([0, 3], Fraction(20)),
    "2026-02-09": ([900, -890], Fraction(20)),
    "2026-02-16": ([2, 2000], Fraction(20)),
    "2026-02-23": ([-49, 79], Fraction(20)),
    "2026-03-02": ([0, 0], by_hand.SCALE),
    "2026-03-09": ([3, -3], by_hand.SCALE),
    "2026-03-16": ([-2, -1], by_hand.SCALE),
}
Shares = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    public = tmp_path_factory.mktemp("public")
    for period, (noisy, scale) in COUNTS.items():
        published(public, noisy, scale, period)
    return build_catalogue(public, tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="module")
def shares(catalogue: Path) -> Shares:
    """The share of the first ward, by period."""
    with attached(catalogue) as connection:
        return {row["period"]: row for row in rows_of(connection, "FROM r.dph_share('r.weekly', {'ward': 'a'})")}


@pytest.mark.slow
@pytest.mark.parametrize("period", ["2026-01-05", "2026-01-12"])
def test_at_the_ends_of_a_share_the_part_is_as_far_off_as_noise_goes(shares: Shares, period: str) -> None:
    share, scale = shares[period], COUNTS[period][1]
    factor = noise_law(scale).linear_reach(1)
    for end in (share["ci_lower"], share["ci_upper"]):
        deviation = math.sqrt(noise_law(scale).variance * ((1 - end) ** 2 + end**2))
        assert abs((1 - end) * 900 - end * 2100) == pytest.approx(factor * deviation)
    assert share["ci_lower"] < 0.3 < share["ci_upper"]


@pytest.mark.slow
def test_a_share_of_next_to_nothing_may_be_any(shares: Shares) -> None:
    """Where the whole is lost in noise and the part far below none, what lies between two roots is excluded.

    The larger root is above 1, so what is left lies below the smaller one.
    """
    for period, ends in (("02-02", (0, 1)), ("02-09", (0, 1)), ("02-16", (0, 0.04))):
        share = shares[f"2026-{period}"]
        assert (share["ci_lower"], share["ci_upper"]) == pytest.approx(ends, abs=0.01)
    lost = shares["2026-02-23"]
    assert (lost["ci_lower"], lost["ci_upper"]) == pytest.approx((0, 0.14), abs=0.02)


@pytest.mark.slow
def test_two_intervals_that_hold_together_miss_with_2_5_percent_each(shares: Shares, catalogue: Path) -> None:
    first, second = "2026-01-19", "2026-01-26"
    qs = [math.exp(-1 / COUNTS[period][1]) for period in (first, second)]
    reach, other = (next(c for c in range(10**4) if 2 * q ** (c + 1) / (1 + q) <= 0.025) for q in qs)
    assert shares[first]["ci_lower"] == pytest.approx((900 - reach) / (900 - reach + 2100 + reach))
    assert shares[first]["ci_upper"] == pytest.approx((900 + reach) / (900 + reach + 2100 - reach))
    # Draws of two laws: the intervals of both periods are added.
    with attached(catalogue) as connection:
        (moved,) = rows_of(connection, f"FROM r.dph_compare('r.weekly', '{first}', '{second}', {{'ward': 'a'}})")
    assert (moved["ci_lower"], moved["ci_upper"]) == (50 - reach - other, 50 + reach + other)


@pytest.mark.slow
@pytest.mark.parametrize("period", ["2026-03-02", "2026-03-09", "2026-03-16"])
def test_there_is_no_share_of_a_whole_that_is_estimated_at_nothing(shares: Shares, period: str) -> None:
    found = shares[period]
    assert (found["estimate"], found["noise_error"], found["note"]) == (None, None, NO_WHOLE)
    assert 0 <= found["ci_lower"] <= found["ci_upper"] <= 1


@pytest.mark.slow
def test_python_has_no_number_for_a_share_that_there_is_not(catalogue: Path) -> None:
    folder = catalogue.parent / "weekly" / "period=2026-03-02" / "revision=1"
    found = Publication.read(folder).share({"ward": "a"}, {})
    assert math.isnan(found.estimate) and math.isnan(found.noise_error) and found.note == NO_WHOLE


@pytest.mark.slow
def test_a_change_may_be_of_another_release_and_of_another_revision(tmp_path: Path) -> None:
    one, two = (published(tmp_path / name, [900, 2100 + step], Fraction(2)) for name, step in (("a", 0), ("b", 5)))
    made = by_hand.estimate([WARD], np.array([950.0, 2100]), scale=Fraction(2), off=0)
    revised = by_hand.publish(tmp_path / "a", made, [WARD], revision=2)
    other = by_hand.publish(tmp_path / "a", made, [WARD], "daily")
    assert two.change_since(one).unbiased == 5
    with pytest.raises(QuestionRefused, match="compared with itself"):
        one.change_since(one)
    assert revised.change_since(one, {"ward": "a"}).unbiased == 50 == other.change_since(one, {"ward": "a"}).unbiased
    forth, back = revised.change_since(one), one.change_since(revised)
    assert (back.ci_lower, back.ci_upper, back.cells) == (-forth.ci_upper, -forth.ci_lower, 4)


@pytest.mark.slow
def test_a_share_names_its_two_counts_and_takes_its_boxes_by_name(tmp_path: Path) -> None:
    """The share is that of the 2,100 rows in b which are f, and not of the rows of f which lie in b."""
    axes = [WARD, {"column": "sex", "values": ["f", "m"]}]
    made = by_hand.estimate(axes, np.array([[100.0, 800.0], [700.0, 1400.0]]), scale=Fraction(2), off=0)
    by_hand.publish(tmp_path / "public", made, axes)
    (tmp_path / "scratch").mkdir()
    asked = "part_estimate, whole_estimate, estimate FROM r.dph_share('r.weekly', part := {}, whole := {})"
    with attached(build_catalogue(tmp_path / "public", tmp_path / "scratch")) as connection:
        boxes = "{'sex': 'f'}", "{'ward': 'b'}"
        assert connection.sql(f"SELECT {asked.format(*boxes)}").fetchall() == [(700, 2100, pytest.approx(1 / 3))]
        assert connection.sql(f"SELECT {asked.format(*boxes[::-1])}").fetchall() == [(700, 800, pytest.approx(7 / 8))]
