"""How `dphist answer --pivot` is asked and printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dphist_pipeline.cli.ask._answer_rows import (
    MARKS,
    Asked,
    bins_in_words,
    cell_text,
    mark_of,
    names_of,
    print_rows_as_json,
    print_which,
)
from dphist_pipeline.cli.terminal import out, print_table
from dphist_pipeline.domain import with_words
from dphist_pipeline.shown_below import commands_hide, limit_of, words_for

if TYPE_CHECKING:
    from dphist_pipeline.answering.asking import Box, Publication
    from dphist_pipeline.answering.pivots import Pivot


def answer_pivot(publication: Publication, asked: Asked, box: Box) -> Pivot:
    """The pivot that was asked for.

    Args:
        asked: with `pivot` and `by`.

    Raises:
        QuestionRefused: another question was asked, too, or see `pivots.pivot`.
    """
    from dphist_pipeline.answering.pivots import pivot
    from dphist_pipeline.estimates.chosen_cells import QuestionRefused

    if asked.question != "by":
        raise QuestionRefused("", "--pivot takes --by, as in --by county --pivot ward")
    return pivot(publication, names_of(asked.by), asked.pivot, box)


def print_pivot(
    publication: Publication, facts: Mapping[str, Any], found: Pivot, as_json: bool, decimals: int | None = None
) -> None:
    """Prints a pivot, each number with its 95 % interval.

    Columns that do not fit beside each other on the terminal stand below, with the rows' names again.

    Args:
        as_json: True for JSON: a row for each row of the pivot, and one for the totals.
        decimals: of numbers; None for as many as their noise justifies.
    """
    if as_json:
        print_rows_as_json({**facts, "columns": list(found.heads)}, found.rows())
        return
    rows = bins_in_words(publication, found.keys)
    names = list(rows[0])
    keys = [tuple(cell_text(key, name, []) for name in names) for key in rows]
    keys.append(("total", *[""] * (len(names) - 1)))
    limit = limit_of(publication.audit)
    columns = [
        [_told(cells.get(head), decimals, limit) for cells in (*found.answers, found.totals)] for head in found.heads
    ]
    words = _words_of(publication, str(facts["pivot"]))
    lines = [(*key, *cells) for key, *cells in zip(keys, *columns, strict=True)]
    print_table([*names, *(words.get(head, head) for head in found.heads)], lines, keys=len(names))
    print_which(publication)
    reliability = {answer.get("reliability") for cells in found.answers for answer in cells.values()}
    from dphist_pipeline.answering.quality_tables import shift_of_shares
    from dphist_pipeline.estimates.reliability import RELIABILITY

    for word in (word for word in MARKS if word in reliability):
        out.print(f"{MARKS[word].strip()} {word}: {RELIABILITY.legend[word]}")
    told = [text for texts in columns for text in texts]
    if any("±" in text for text in told):
        out.print(
            "± half of the 95 % interval of a sum of cells, whose middle is the unbiased sum; do not add these up."
        )
    if any(" to " in text for text in told):
        out.print("(… to …) the 95 % interval of a single cell, or one that does not have its number in the middle.")
    if limit is not None and any(words_for(limit) in text for text in told):
        out.print(commands_hide(limit))
    if shift := shift_of_shares(publication.folder, publication.audit):
        out.print(escape(shift))


def _words_of(publication: Publication, pivot: str) -> dict[str, str]:
    """What the categories of the pivoted axis are called; those of a level have no other words."""
    return next((with_words(axis) for axis in publication.domain.axes if axis.name == pivot), {})


def _told(answer: Mapping[str, Any] | None, decimals: int | None, limit: int | None) -> str:
    if answer is None:
        return ""
    from dphist_pipeline.publishing.told_numbers import told_number

    return f"{told_number(answer, decimals, limit)}{mark_of(answer, 'estimate')}"
