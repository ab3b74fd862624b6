"""Rows that failed on an axis, bounded by what the counts hold under `other`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates import row_quality
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.row_quality import QualityTable, Row, most_failed, standing_out

DOMAIN = Domain(
    (
        CategoricalAxis(name="sex", column="sex", values=("f", "m")),
        CategoricalAxis(name="ward", column="ward", values=("east", "west"), other=True),
    )
)
HAS_OTHER = {"sex": False, "ward": True}
SCALE = 10.0


def number(statistic: str, axis: str | None, estimate: float, category: str | None = None) -> dict[str, Any]:
    told = {"statistic": statistic, "axis": axis, "position": None, "category": category, "estimate": estimate}
    return told | {"noise_scale": SCALE, "ci_lower": estimate - 30, "ci_upper": estimate + 30}


def most(in_other: float, dropped: float = 0.0, has_other: dict[str, bool] = HAS_OTHER, **seen: int | None) -> Any:
    """What can have failed, where the counts hold so many rows under `other` of the ward, with noise of scale 6."""
    counts = np.zeros(DOMAIN.shape)
    counts[:, 2] = in_other / 2
    tables = [(DOMAIN, NoisyCells(counts, Fraction(6)))]
    limits: dict[str, Any] = {"bound": 3, "seen": 5} | seen
    return most_failed([number("rows", None, dropped, "dropped")], has_other, tables, **limits)


def test_rows_that_fail_are_bounded_by_other_by_the_rows_dropped_or_by_both() -> None:
    by_row = most(700, 50, bound=None, seen=1)
    assert 700 < by_row[None] < 790 and 50 < by_row["sex"] < 150
    assert by_row["ward"] == pytest.approx(by_row[None] + by_row["sex"], abs=1)
    alone = most(700, 50, {"ward": True}, bound=None, seen=1)
    assert 700 < alone["ward"] == alone[None] < by_row["ward"]  # no other axis drops rows
    capped = most(700, 0, {"ward": True})
    assert 700 * 5 / 3 < capped["ward"] < 2_000  # of those that a quality table sees, the counts hold 3 of 5


def test_without_noisy_cells_or_places_nothing_is_bounded() -> None:
    assert most_failed([], HAS_OTHER, [], 3, 5) == {}
    assert list(most_failed([number("rows", None, 0, "dropped")], HAS_OTHER, [(DOMAIN, None)], 3, 5)) == ["sex"]


def units_all_in_other(source: np.random.Generator) -> tuple[int, int]:
    return 3 * 200, 5 * 200


def units_with_one_row_in_other(source: np.random.Generator) -> tuple[int, int]:
    kept, seen = (source.hypergeometric(1, 7, rows, 30).sum() for rows in (3, 5))
    return int(kept), int(seen)


@pytest.mark.slow
@pytest.mark.parametrize("observe", [units_all_in_other, units_with_one_row_in_other])
def test_what_is_seen_stays_below_the_bound_as_often_as_is_stated(
    observe: Callable[[np.random.Generator], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units have eight rows or five, of which three are kept; noise moves the counts and the 40 rows dropped."""
    monkeypatch.setattr(row_quality, "MISSED", Fraction(1, 5))
    source, missed, tops = np.random.default_rng(3), 0, list[float]()
    for _ in range(400):
        kept, seen = observe(source)
        noisy, dropped = (count + source.laplace(0, scale) for count, scale in ((kept, 6 * 1.4), (40, SCALE)))
        top = most(noisy, dropped)["ward"]
        tops.append(top)
        missed += seen + 40 > top
    assert missed <= 0.2 * 400
    assert np.mean(tops) < 1_700


WEEK = [number("unparsed", "ward", 10_878.0), number("undeclared", "ward", 0.0)]


def failed(rows: list[Any], **tops: float) -> tuple[list[Row], str]:
    named: dict[str | None, float] = {**tops}
    return QualityTable([row | {"noise_scale": 2_000.0} for row in rows]).failures(named)


def test_a_line_of_missing_values_does_not_reach_beyond_what_the_counts_allow() -> None:
    """As noise drew it in a week whose `other` held 728 rows: 492 to 21,264."""
    (line,), others = failed(WEEK, ward=5_000)
    assert (line["estimate"], line["ci_upper"]) == (5_000, 5_000) and 0 < line["ci_lower"] < 5_000
    assert others.endswith("it is at most 5,000 rows.")
    (unbounded,), _ = failed(WEEK)
    assert unbounded["ci_upper"] > 18_000
    assert line["ci_lower"] < unbounded["ci_lower"]  # a tenth of what may be missed is the bounds'


def test_a_line_that_lies_above_what_the_counts_allow_is_noise_and_not_shown() -> None:
    shown, others = failed(WEEK, ward=1_000)
    assert shown == [] and "none stands out from the noise" in others and others.endswith("at most 1,000 rows.")
    rows = [number("rows", None, 900.0, "other") | {"noise_scale": 100.0}]
    assert standing_out(rows, 3, "numbers", "rows", [300.0]) == (
        [],
        "One number does not stand out from the noise (95 %): it is at most 300 rows.",
    )
