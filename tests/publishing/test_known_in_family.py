"""Tables of a family with public figures: what a page says of known counts, and which sums agree."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import AGE, WARD
from families_by_hand import publish_family

from dphist_pipeline.answering.exports.rows import Exported, near_zero
from dphist_pipeline.estimates.estimate import answer_box
from dphist_pipeline.publishing._index_pages import write_index
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import read_audit

pytestmark = pytest.mark.stand_in("pictures", "catalogue", why="sentences and numbers; pictures are tried elsewhere")
ON_CARD = "Cells that are known to be 0 are told as 0, but the noise in them stays in sums"


def figures(**rows: int) -> dict[str, Any]:
    return {"level": "ward", "counts": "persons", "figures": rows}


def published(public: Path, tables: list[tuple[str, ...]], met: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The estimates of the tables of a family with figures, and its card."""
    made = publish_family(public, [AGE, WARD], tables, epsilon=Fraction(1, 8), invariants=met)
    folders = {name: release.path for name, release in made.items()}
    card = (next(iter(folders.values())).parents[1] / "card.html").read_text()
    return {name: published_estimate(folder, read_audit(folder)) for name, folder in folders.items()}, card


@pytest.mark.parametrize("others", [0, 5])
def test_sums_agree_but_for_the_noise_of_cells_known_to_be_zero_and_the_card_says_so(
    tmp_path: Path, others: int
) -> None:
    wards = dict.fromkeys(WARD["values"], 700) | {"other": others}
    tables, card = published(tmp_path, [("age", "ward"), ("age",)], figures(**wards))
    fine, coarse = tables["age_ward"], tables["age"]
    assert np.allclose(fine.values.sum(axis=1), coarse.values)
    asked = [answer_box(table, {"age": (0, 18)}).estimate for table in (fine, coarse)]
    assert asked[0] == pytest.approx(asked[1]), "a sum that is asked for is the same from both"
    cells = [answer_box(fine, {"age": (0, 18), "ward": ward}) for ward in [*WARD["values"], None]]
    added = sum(cell.estimate for cell in cells)
    assert (cells[-1].basis == "known") == (others == 0)
    noise = 0.0 if others else fine.values[1, -1]
    assert added + noise == pytest.approx(asked[0]) and (abs(noise) > 0.01) == (others == 0)
    assert (ON_CARD in " ".join(card.split())) == (others == 0)


def test_known_cells_are_neither_poor_nor_below_zero_on_a_card(tmp_path: Path) -> None:
    wards = dict.fromkeys([*WARD["values"], "other"], 0) | {"surgery": 2000}
    tables, card = published(tmp_path, [("age", "ward"), ("ward",)], figures(**wards))
    known = 2 * tables["age_ward"].domain.shape[0] + tables["ward"].cells
    said = " ".join(card.split())
    assert f"and {known} are known." in said and "wholly below 0" not in said
    exported = Exported.read(tmp_path, "family_age_ward")
    near = near_zero(exported.publications[0])
    assert (near.cells, near.below) == (tables["age_ward"].domain.shape[0], 0)


@pytest.mark.parametrize("privacy_unit", ["row", "patient"])
def test_pages_that_list_releases_say_that_known_numbers_have_no_noise(tmp_path: Path, privacy_unit: str) -> None:
    # Figures of persons are not counts of rows.
    facts: dict[str, Any] = {"privacy_unit": privacy_unit, "max_rows_per_unit": 1 if privacy_unit == "row" else 2}
    met = figures(**dict.fromkeys([*WARD["values"], "other"], 700))
    publish_family(tmp_path / "public", [AGE, WARD], [("ward",)], invariants=met, **facts)
    (tmp_path / "scratch").mkdir()
    write_index(tmp_path / "public", tmp_path / "scratch")
    for page in ("index.html", "family/index.html"):
        said = "Numbers that are marked as known are the exception" in (tmp_path / "public" / page).read_text()
        assert said == (privacy_unit == "row")
