"""Pivots: the categories of one axis as columns, with totals; every number keeps its own interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphist_pipeline.answering.asking import MARGINAL_COLUMNS, Box, Publication
from dphist_pipeline.base.domain import OTHER, BinnedAxis
from dphist_pipeline.estimates.chosen_cells import QuestionRefused, end_of
from dphist_pipeline.publishing.axis_labels import ReaderAxis

TOTAL = "total"
NUMBERS = ("estimate", "unbiased", "ci_lower", "ci_upper")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Pivot:
    """A table with the categories or bins of one axis as columns.

    `keys`: the columns of the axes of the rows, for each row. `heads`: texts of the columns, `total` last. `answers`:
    for each row by the text of a column, as `dph_marginal` gives them; none for a combination that a box or a hierarchy
    leaves out. `totals`: over all rows, by the text of a column.
    """

    keys: tuple[Row, ...]
    heads: tuple[str, ...]
    answers: tuple[Mapping[str, Row], ...]
    totals: Mapping[str, Row]

    @classmethod
    def of(cls, publication: Publication, rows: Sequence[str], column: str, box: Box) -> Pivot:
        """Counts by some axes and one more, whose categories or bins become columns.

        Raises:
            QuestionRefused: no axis is left for the rows, the column is among them, or see `Publication.marginal`.
        """
        if isinstance(rows, str) or not rows or column in rows:
            raise QuestionRefused(column, "a pivot takes a list of axes for its rows, and another axis for its columns")
        by_row, by_column, both = (
            _answers_by_cell(publication.marginal(by, box)) for by in (rows, [column], [*rows, column])
        )
        heads = {key: _head(publication, column, dict(key)) for key in by_column}
        distinct_heads = dict(zip(heads, _apart([*heads.values()]), strict=True))
        answers: dict[Any, dict[str, Row]] = {key: {} for key in by_row}
        names = {name for key in by_column for name, _ in key}
        for key, answer in both.items():
            row = tuple(part for part in key if part[0] not in names)
            answers[row][distinct_heads[tuple(part for part in key if part[0] in names)]] = answer
        for key, answer in by_row.items():
            answers[key][TOTAL] = answer
        whole = publication.answer(box)
        totals = {distinct_heads[key]: answer for key, answer in by_column.items()} | {TOTAL: vars(whole)}
        return cls(tuple(map(dict, by_row)), (*distinct_heads.values(), TOTAL), tuple(answers.values()), totals)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each row of the pivot, and one more for the totals of its columns.

        Columns are the axes of the rows, `is_total` (true in the last row, where the axes are null), and
        `<column>_estimate`, `_unbiased`, `_ci_lower` and `_ci_upper` for each column of the pivot.
        """
        marker = "is_total"
        while any(marker in key for key in self.keys):  # an axis of that name
            marker += "_"
        numbered = zip([*self.keys, dict.fromkeys(self.keys[0])], [*self.answers, self.totals], strict=True)
        return [
            {
                **key,
                marker: cells is self.totals,
                **{f"{head}_{number}": cells.get(head, {}).get(number) for head in self.heads for number in NUMBERS},
            }
            for key, cells in numbered
        ]


def _answers_by_cell(marginal: pa.Table) -> dict[Any, Row]:
    """Answers by ((column, value), …) of their axes; read by places, as an axis may be named as an answer's column."""
    names, keys = marginal.column_names, marginal.num_columns - len(MARGINAL_COLUMNS)
    rows = zip(*(column.to_pylist() for column in marginal.columns), strict=True)
    return {
        tuple(zip(names, row[:keys], strict=False)): dict(zip(MARGINAL_COLUMNS, row[keys:], strict=True))
        for row in rows
    }


def _head(publication: Publication, name: str, key: Row) -> str:
    """The text of a column of the pivot: a category, or the ends of a bin."""
    axis = next((axis for axis in publication.domain.axes if axis.name == name), None)
    if not isinstance(axis, BinnedAxis):
        return OTHER if key[name] is None else str(key[name])
    lower, upper = (key[f"{name}_{end}"] for end in ("lower", "upper"))
    if lower is None and upper is None:
        return OTHER
    return ReaderAxis(axis).range_in_words(end_of(axis, lower, -np.inf), end_of(axis, upper, np.inf))


def _apart(heads: Sequence[str]) -> list[str]:
    """Texts that differ, also from `total`."""
    distinct: list[str] = []
    for head in heads:
        distinct.append(head if head not in (*distinct, TOTAL) else f"{head} ({len(distinct) + 1})")
    return distinct
