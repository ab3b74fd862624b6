"""What error to expect, from the law of the noise, and what not to conclude."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dphist_pipeline.answering.intervals import half_width_of_box, half_width_of_cell, half_width_of_sum
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells
from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, rounded
from dphist_pipeline.publishing.plots_page import named, table


def expected(facts: Facts) -> str:
    """The section on errors: of a cell, of ranges, of everything."""
    unbiased = facts.drawn
    if unbiased is None:
        return (
            "<p>This mechanism measures groups of cells and spreads each sum over its group, so no cell has an "
            "interval. The noise of each group is in <code>groups.parquet</code>; the error of spreading is not known "
            "to anybody who has not seen the records.</p>"
        )
    reach = half_width_of_cell(unbiased)
    tenth = math.ceil(10 * reach)
    return (
        f"<p>The noise in one cell goes beyond ± {rounded(reach)} records in at most 1 of 20 cells; its standard "
        f"deviation is {rounded(math.sqrt(unbiased.variance))}. So a cell whose noisy count is {rounded(reach)} or "
        f"less cannot be told from an empty one, and noise is below a tenth of a count, 19 times out of 20, from about "
        f"{rounded(tenth)} records on.</p>"
        + table(
            "How far the noise in a sum of cells reaches (95 %)",
            ["sum of", "cells", "± records"],
            [[what, f"{cells:,}", rounded(width)] for what, cells, width in _reaches(facts, unbiased)],
            2,
        )
        + f"<p class='note'>{_about_estimates(facts)}</p>"
    )


def _reaches(facts: Facts, unbiased: NoisyCells | NestedCells) -> Iterator[tuple[str, int, float]]:
    """Sums that readers ask for: a cell, some cells, everything along an axis, all."""
    domain = facts.grid.domain
    one = [np.zeros(1, dtype=np.int64)] * len(domain.axes)
    yield "one cell", 1, half_width_of_box(unbiased, one)
    if isinstance(unbiased, NoisyCells):
        for cells in (10, 100, 1000, 10_000):
            if cells < domain.cells:
                yield "any cells chosen before looking", cells, float(half_width_of_sum(unbiased.scale, cells))
    else:
        for cells in (10, 100, 1000, 10_000):
            if cells < domain.shape[0]:
                first = [np.arange(cells), *one[1:]]
                name = named(domain.axes[0].name)
                yield (
                    f"the first {cells:,} along {name}, one cell of the others",
                    cells,
                    half_width_of_box(unbiased, first),
                )
    if len(domain.axes) > 1:
        for number, axis in enumerate(domain.axes):
            along = [*one[:number], np.arange(axis.size), *one[number + 1 :]]
            yield f"all of {named(axis.name)}, one cell of the others", axis.size, half_width_of_box(unbiased, along)
    if domain.cells > 1:
        yield "all cells", domain.cells, half_width_of_box(unbiased, [np.arange(size) for size in domain.shape])


def _about_estimates(facts: Facts) -> str:
    if not facts.smoothed:
        return "The estimates are these noisy counts themselves, so this is the whole error that publishing adds."
    return (
        "This is the noise of <code>unbiased_estimate</code>. The mechanism makes <code>estimate</code> from it, and "
        "from what else it bought: mostly closer, but biased where unlike cells were taken for alike, by an amount "
        "that nothing published tells."
    )


def warnings(facts: Facts) -> str:
    """What not to conclude, as a list."""
    return f"<ul>{''.join(f'<li>{text}</li>' for text in _warnings(facts))}</ul>"


def _warnings(facts: Facts) -> Iterator[str]:
    has_bars = facts.grid.unbiased is not None
    if has_bars:
        yield (
            "<b>Not what was found by looking.</b> An interval holds the true count with 95 % probability for a cell "
            "or range that was chosen before seeing the release. The largest cell, the steepest rise, the odd one out "
            "stand out partly because of their noise."
        )
        cells = facts.grid.domain.cells
        yield (
            "<b>Not all cells at once.</b> Each interval errs 1 time in 20"
            f"{f'; of {cells:,}, expect about {rounded(round(cells / 20))} outside' if cells > 20 else ''}."
        )
        yield (
            "<b>Not that something is wrong where an estimate lies outside its interval.</b> The interval is that of "
            "the noisy counts, cut off at 0"
            + (", and this mechanism’s estimates are smoothed." if facts.smoothed else "; an estimate can be below 0.")
        )
    yield (
        "<b>Not that a negative estimate is a mistake.</b> Noise goes both ways. Setting negatives to 0 before adding "
        "up makes sums too large: add first, then cut off."
    )
    if not facts.by_row:
        rows = counted(facts.audit["max_rows_per_unit"], "row", "rows")
        yield (
            f"<b>Not how many rows there are.</b> True counts here are bounded counts: at most {rows} of each "
            f"{facts.unit} are in them. What lies beyond that bound is in no interval."
        )
    if facts.smoothed:
        yield (
            "<b>Not that neighbours are alike.</b> Cells that share an estimate, or follow each other smoothly, may "
            "have been made alike by the mechanism. The error of that is in no interval."
        )
    yield (
        "<b>Not more than was counted.</b> Missing and wrong records, and who never came to be recorded, are errors of "
        "the source, which nothing here measures."
    )
    yield (
        "<b>Not that nothing can be learned of people.</b> What is true of many can be learned from these counts, and "
        "said of each of them, whether or not they took part."
    )
