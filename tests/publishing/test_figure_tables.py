"""Tables of figures on a page: a sentence about several figures stands once below them all."""

from __future__ import annotations

from typing import Any

from by_hand import WARD

from dphist_pipeline.publishing._figure_tables import figure_tables

CAPPED, ABOVE_NOISE = "Stays beyond 3 of each patient are not counted.", "The rows are not above their noise."
ROUGH = "The ends are rough."
AUDIT = {"axes": [WARD]}


def line(figure: str, ward: str, value: float | None, note: str = "") -> dict[str, Any]:
    ends = (None, None) if value is None else (value - 5, value + 5)
    return {"figure": figure, "ward": ward, "value": value, "ci_lower": ends[0], "ci_upper": ends[1]} | {
        "unit": "stays",
        "note": note,
    }


def test_a_sentence_of_several_figures_stands_once_below_them_and_in_no_row() -> None:
    shown = figure_tables(
        [
            line("rows", "surgery", 50),
            line("sum", "surgery", 500, f"{CAPPED} {ROUGH}"),
            line("mean", "surgery", 10, CAPPED),
            line("mean", "other", None, f"{ABOVE_NOISE} {CAPPED}"),
        ],
        AUDIT,
    )
    assert shown["sentences"] == [CAPPED]
    assert [one["sentences"] for one in shown["tables"]] == [[], [ROUGH], []]
    assert shown["tables"][2]["rows"][1] == ("other", "–", ABOVE_NOISE)


def test_a_sentence_of_one_figure_stands_below_its_table() -> None:
    shown = figure_tables([line("rows", "surgery", 50), line("sum", "surgery", 500, CAPPED)], AUDIT)
    assert shown["sentences"] == [] and shown["tables"][1]["sentences"] == [CAPPED]
