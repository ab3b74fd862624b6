"""Tables of the rows, sum and mean of an amount: by the values of other axes, and the files `figures` of a release.

The numbers are those of `dph_sum`, `dph_mean` and `dph_marginal`; see `estimates.amounts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.asking import Box, Publication
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.base.domain import AmountAxis, Axis
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.estimates.amounts import AmountFigures, What
from dphist_pipeline.estimates.chosen_cells import QuestionRefused, check_axes, chosen_cells
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.notes import CHANCE_LEFT_OUT
from dphist_pipeline.publishing.release_files import published_unbiased

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Values:
    """The values of an axis that a table has a row for: groups of its positions.

    Attributes:
        groups: of the chosen positions, the number of each one's group, from 0.
        columns: what the columns of the axis hold for each group; none for an axis that is summed over.
    """

    groups: Positions
    columns: dict[str, list[Any]]

    @property
    def sizes(self) -> Positions:
        """The number of positions of each group."""
        return np.bincount(self.groups).astype(np.int64)


def amounts_by(publication: Publication, by: Sequence[str], box: Box) -> Iterator[tuple[dict[str, Any], AmountFigures]]:
    """The figures of every combination of values of some axes or levels within a box: columns of the axes, and figures.

    Raises:
        QuestionRefused: the release has no amount, or there is no such axis, or it is the amount.
    """
    domain = publication.domain
    if (amount := domain.amount) is None:
        raise QuestionRefused("", f"'{publication.audit['release']}' has no amount: ask for each value, as in a box")
    axis = domain.axes[amount]
    assert isinstance(axis, AmountAxis)
    check_axes(domain, by)
    if axis.name in by:
        raise QuestionRefused(axis.name, "is the amount itself; name other axes")
    chosen = chosen_cells(domain, box)
    column = pq.ParquetFile(publication.folder / "histogram.parquet").read(["unbiased_estimate"])["unbiased_estimate"]
    noisy = published_unbiased(publication.audit, column.to_numpy().reshape(domain.shape))
    assert isinstance(noisy, NoisyCells), "parts of rows are measured cell by cell"
    values = noisy.values[np.ix_(*chosen)]
    rows = [_values(one, along, by) for one, along in zip(domain.axes, chosen, strict=True) if one is not axis]
    for number, one in enumerate(rows):
        place = number + (number >= amount)
        summed = np.zeros((one.sizes.size, *np.moveaxis(values, place, 0).shape[1:]))
        np.add.at(summed, one.groups, np.moveaxis(values, place, 0))
        values = np.moveaxis(summed, 0, place)
    lower, upper = (np.asarray(values.take(end, axis=amount)) for end in (0, 1))
    for at in np.ndindex(lower.shape):
        cells = math.prod(int(one.sizes[place]) for one, place in zip(rows, at, strict=True))
        names = {name: texts[place] for one, place in zip(rows, at, strict=True) for name, texts in one.columns.items()}
        yield names, AmountFigures(axis, noisy.law, noisy.parts, float(upper[at]), float(lower[at]), cells)


def _values(axis: Axis, chosen: Positions, by: Sequence[str]) -> _Values:
    """The values of an axis that rows are asked by: its own, those of its levels, or one for all of it."""
    if axis.name in by:
        columns: dict[str, list[Any]] = {}
        for name, along in axis.published.items():
            at = along if isinstance(along, list) else [end if math.isfinite(end) else None for end in along.tolist()]
            columns[name] = [at[place] for place in chosen.tolist()]
        return _Values(np.arange(chosen.size), columns)
    levels = [level for level in axis.levels if level in by]
    texts_of = [[*axis.levels[level], *[None] * axis.other] for level in levels]
    keys = [tuple(texts[place] for texts in texts_of) for place in chosen.tolist()]
    distinct = list(dict.fromkeys(keys))
    groups = np.array([distinct.index(key) for key in keys], dtype=np.int64)
    return _Values(groups, {level: [key[number] for key in distinct] for number, level in enumerate(levels)})


def amount_table(publication: Publication, what: What, axis: str, by: Sequence[str], box: Box) -> list[dict[str, Any]]:
    """The sum or mean of an amount for each combination of values: the columns of the axes, then those of an answer.

    Raises:
        QuestionRefused: see `amounts_by`; or the axis is not the amount; or intervals are to cover chance.
    """
    domain = publication.domain
    if domain.amount is None or domain.axes[domain.amount].name != axis:
        problem = "is no amount: a sum or mean of its bins is asked of one value at a time, as in a box"
        raise QuestionRefused(axis, problem)
    if publication.with_chance:
        raise QuestionRefused("", "intervals by value cover noise alone; with chance, ask of one value at a time")
    capped = PublishedQuality(publication.folder, publication.audit).cap_in_words().rstrip(".") or None
    return [
        {
            **names,
            "estimate": None if math.isnan(one.value) else one.value,
            "unbiased": None if math.isnan(one.value) else one.value,
            "noise_error": None if math.isnan(one.noise_error) else one.noise_error,
            "ci_lower": one.lower,
            "ci_upper": one.upper,
            "basis": "linear",
            "cells": figures.cells,
            "note": one.note,
            "capped": capped,
            "chance": CHANCE_LEFT_OUT,
        }
        for names, figures in amounts_by(publication, by, box)
        for one in [getattr(figures, what)]
    ]


Columns = Mapping[str, tuple[pa.DataType, str]]
KEY_COLUMNS: Columns = {
    "release": (pa.string(), "name of the release"),
    "period": (pa.string(), "first day of the period"),
    "revision": (pa.int64(), "number of the revision, from 1"),
    "figure": (pa.string(), "what it is: rows, or the sum or mean of the amount"),
}
VALUE_COLUMNS: Columns = {
    "value": (pa.float64(), "the figure"),
    "ci_lower": (pa.float64(), "lower end of its 95 % interval, which covers the noise alone"),
    "ci_upper": (pa.float64(), "upper end of its 95 % interval"),
    "unit": (pa.string(), "what the figure is measured in"),
    "note": (pa.string(), "what a reader must know of it"),
}
HIDDEN = "fewer rows than the least figure that is shown"


def figure_rows(publication: Publication) -> list[dict[str, Any]]:
    """The lines of `figures` for a publication with an amount: rows, sum and mean for every cell of the other axes.

    A line about fewer rows than the least figure that is shown has no number.
    """
    domain, audit = publication.domain, publication.audit
    limit, key = limit_of(audit), {name: audit[name] for name in ("release", "period", "revision")}
    lines = []
    for names, figures in amounts_by(publication, [axis.name for axis in domain.of_rows.axes], {}):
        hides = limit is not None and figures.rows.value < limit
        for one in figures.figures:
            figure = one.what if one.what == "rows" else f"{one.what}_{figures.axis.name}"
            ends = {"value": one.value, "ci_lower": one.lower, "ci_upper": one.upper}
            numbers = {name: None if hides or math.isnan(end) else end for name, end in ends.items()}
            unit = "rows" if one.what == "rows" else audit["amount"].get("measured_in", "")
            note = HIDDEN if hides else one.note
            lines.append({**key, "figure": figure, **names, **numbers, "unit": unit or None, "note": note or None})
    return lines


def figure_columns(publications: Sequence[Publication]) -> Columns:
    """The columns of `figures` with their types and meanings: those of the axes of all publications are among them."""
    axes: dict[str, tuple[pa.DataType, str]] = {}
    for axis in (axis for one in publications for axis in one.domain.of_rows.axes):
        for name, kind in axis.columns.items():
            meaning = f"{axis.name}: where the figure lies along it; null for an open end and for other"
            known = axes.setdefault(name, (pa.type_for_alias(kind), meaning))
            axes[name] = (known[0] if known[0] == pa.type_for_alias(kind) else pa.string(), meaning)
    return {**KEY_COLUMNS, **axes, **VALUE_COLUMNS}


def figures_table(publication: Publication, columns: Columns) -> pa.Table:
    """The lines of a publication as a table of these columns; none without an amount."""
    lines = figure_rows(publication) if "amount" in publication.audit else []
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    texts = {name for name, (kind, _) in columns.items() if kind == pa.string()}
    return pa.Table.from_pylist(
        [
            {
                name: str(value) if name in texts and value is not None else value
                for name, value in ((name, line.get(name)) for name in columns)
            }
            for line in lines
        ],
        schema,
    )
