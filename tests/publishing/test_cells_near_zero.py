"""Whether whole counts come first, and what is said of intervals below 0: one rule for cards, files and the picker."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, WARD
from families_by_hand import publish_family

from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.estimates.cells_near_zero import CellsNearZero, first_in_words, has_whole_first

pytestmark = pytest.mark.stand_in(
    "pictures", "catalogue", why="sentences and columns; the picker is tried in a browser"
)
NAN = float("nan")


@pytest.mark.parametrize(
    ("lower", "is_first"),
    [([-5, 0, 1, 2], True), ([-5, 1, 1, 2], False), ([NAN, NAN, 1, 0], True), ([NAN, NAN], False), ([], False)],
)
def test_whole_counts_come_first_where_at_least_half_of_the_known_cells_reach_zero(
    lower: list[float], is_first: bool
) -> None:
    near = CellsNearZero.of(np.array(lower), np.array(lower) + 3)
    assert has_whole_first({}, near) == is_first == bool(first_in_words({}, [near]))
    known = {"invariants": {"counts": "rows"}, "privacy_unit": "row"}
    assert has_whole_first(known, near) and first_in_words(known, [near])
    assert not has_whole_first({"amount": {}, **known}, near)
    of_others = {**known, "privacy_unit": "patient", "max_rows_per_unit": 3}  # figures count rows, and not all are kept
    assert has_whole_first(of_others, near) == is_first


def test_intervals_wholly_below_zero_are_counted_and_explained() -> None:
    near = CellsNearZero.of(np.array([-9.0, -9.0, -9.0, NAN]), np.array([-1.0, 0.0, 5.0, NAN]))
    assert near == CellsNearZero(3, 3, 1)
    assert near.below_in_words().startswith("Of 3 cells, 1 has an interval wholly below 0. No count is")
    both = CellsNearZero.together([near, near, CellsNearZero()])
    assert both == CellsNearZero(6, 6, 2) and "2 have an interval" in both.below_in_words()
    assert CellsNearZero(3, 3, 0).below_in_words() == ""


@pytest.mark.parametrize("values", [[0.0, 5, -30], [80.0, 60, 70]])
def test_a_card_and_the_files_beside_it_follow_one_rule(tmp_path: Path, values: list[float]) -> None:
    by_hand.publish(tmp_path, by_hand.estimate([WARD], np.array(values), off=0), [WARD])
    exported, sparse = Exported.read(tmp_path, "weekly"), values[0] == 0
    card = (exported.publications[0].folder / "card.html").read_text()
    assert exported.has_whole_first == sparse == ("Most cells cannot be told from empty ones (3 of 3)" in card)
    assert ("Of 3 cells, 1 has an interval wholly below 0" in card) == sparse


@pytest.mark.parametrize("epsilon", [1, "1/500"])
def test_a_familys_card_says_in_how_many_tables_whole_counts_come_first(tmp_path: Path, epsilon: Any) -> None:
    tables = publish_family(tmp_path, [AGE, WARD], [("age", "ward"), ("ward",)], epsilon=Fraction(epsilon))
    first = [Exported.read(tmp_path, f"family_{name}").has_whole_first for name in tables]
    card = (next(iter(tables.values())).path.parents[1] / "card.html").read_text()
    assert any(first) == (epsilon != 1)
    assert (f"In {sum(first)} of 2 tables most cells cannot be told" in card) == any(first)
