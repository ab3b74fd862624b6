"""How `dphist answer --pivot` is asked and printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dphist_pipeline.cli.answer_rows import MARKS, Asked, cell_text, mark_of, names_of, print_rows_as_json
from dphist_pipeline.cli.terminal import out, print_table

if TYPE_CHECKING:
    from dphist_pipeline.answering.asking import Box, Publication
    from dphist_pipeline.answering.pivots import Pivot


def answer_pivot(publication: Publication, asked: Asked, box: Box) -> Pivot:
    """The pivot that was asked for.

    Args:
        publication: that is asked.
        asked: with `pivot` and `by`.
        box: the cells.

    Raises:
        QuestionRefused: another question was asked, too, or see `pivots.pivot`.
    """
    from dphist_pipeline.answering.chosen_cells import QuestionRefused
    from dphist_pipeline.answering.pivots import pivot

    if asked.question != "by":
        raise QuestionRefused("", "--pivot takes --by, as in --by county --pivot ward")
    return pivot(publication, names_of(asked.by), asked.pivot, box)


def print_pivot(facts: Mapping[str, Any], found: Pivot, as_json: bool) -> None:
    """Prints a pivot, each estimate with half the width of its 95 % interval.

    Args:
        facts: about the question.
        found: the pivot.
        as_json: True for JSON: a row for each row of the pivot.
    """
    if as_json:
        print_rows_as_json({**facts, "columns": list(found.heads)}, found.rows())
        return
    names = list(found.keys[0])
    lines = [
        (*(cell_text(key, name, []) for name in names), *(_told(cells.get(head)) for head in found.heads))
        for key, cells in zip(found.keys, found.answers, strict=True)
    ]
    last = ("total", *[""] * (len(names) - 1), *(_told(found.totals.get(head)) for head in found.heads))
    print_table([*names, *found.heads], [*lines, last])
    words = {answer.get("reliability") for cells in found.answers for answer in cells.values()}
    from dphist_pipeline.answering.reliability import LEGEND

    for word in (word for word in MARKS if word in words):
        out.print(f"{MARKS[word].strip()} {word}: {LEGEND[word]}")
    out.print("± is half the width of the 95 % interval of that number; do not add these up.")


def _told(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return ""
    low, high = answer["ci_lower"], answer["ci_upper"]
    bar = "" if low is None or math.isnan(low) else f" ±{(high - low) / 2:,.0f}"
    return f"{answer['estimate']:,.0f}{bar}{mark_of(answer, 'estimate')}"
