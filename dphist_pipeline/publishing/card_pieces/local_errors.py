"""What error to expect of counts that were estimated from random reports, by their law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import LEVEL
from dphist_pipeline.answering.report_intervals import half_widths_of_cells, normal_factor, report_reach
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, rounded
from dphist_pipeline.publishing.card_pieces.local_asked import Asked, about
from dphist_pipeline.publishing.plots_page import table

LENGTHS = (2, 10, 100, 1000)

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reached:
    """How far the estimates of all ranges of so many intervals reach.

    Attributes:
        what: such a range is called.
        half_widths: one for each of them, in values.
    """

    what: str
    half_widths: Reals

    def row(self) -> list[str]:
        """As a row of a table: the least, the one in the middle, the largest."""
        ends = (self.half_widths.min(), np.median(self.half_widths), self.half_widths.max())
        return [self.what, *(rounded(float(end)) for end in ends)]


def errors(facts: Facts) -> str:
    """The section on errors: of an interval, of ranges, of everything."""
    cells, asked = facts.reported, Asked.of(facts.audit)
    one = reach_of_ranges(cells, 1)
    return (
        f"<p>{_first(cells, asked, one)}</p>"
        + table(
            "How far the estimate of a range reaches (95 %)",
            ["range of", "± least", "median", "largest"],
            [reached.row() for reached in _reached(cells)],
            3,
        )
        + f"<p>{_telling(cells, one)}</p><p class='note'>{_coverage()} {_about_estimates(asked)}</p>"
    )


def reach_of_ranges(cells: ReportedCells, intervals: int) -> Reals:
    """How far (95 %) the estimate of every range of so many neighbouring intervals reaches, in order."""
    law = cells.law
    atoms, counts = (
        running[intervals:] - running[:-intervals]
        for running in (np.cumsum([0, *values.tolist()]) for values in (cells.atoms, cells.values))
    )
    return report_reach(normal_factor(LEVEL), law.variance(atoms, counts), law.slope(atoms), law.step)


def _reached(cells: ReportedCells) -> Iterator[Reached]:
    size = cells.values.size
    yield Reached("1 interval", half_widths_of_cells(cells, normal_factor(LEVEL)))
    for length in LENGTHS:
        if length < size:
            yield Reached(f"{length:,} neighbouring intervals", reach_of_ranges(cells, length))
    if size > 1:
        yield Reached(f"all {size:,} intervals", reach_of_ranges(cells, size))


def _first(cells: ReportedCells, asked: Asked, one: Reals) -> str:
    values = asked.reported / float(asked.participation)
    ends = " to ".join(dict.fromkeys(rounded(float(end)) for end in (one.min(), one.max())))
    of_all = f"the {rounded(round(values))} values reported"
    if asked.sampled:
        of_all = f"about {about(values)} values, those included whose report was not sent"
    made = " and of how many intervals of a report it is made" if np.ptp(cells.atoms) else ""
    by_interval = ", by interval" if " to " in ends else ""
    share = 100 * float(one.max()) / values
    written = f"{share:,.0f} %" if share >= 10 else f"{share:.2g} %"
    return (
        f"An estimate is off by more than its ± in at most 1 of 20 intervals; that ± is {ends}{by_interval}, and at "
        f"most {written} of {of_all}. It depends on how many values an interval holds{made}; but every report adds its "
        f"randomness to every interval, so that an empty one has ± {rounded(float(_empty(cells).min()))} or more. With "
        "four times as many reports the ± is about twice as large, and as a share of the values half as large."
    )


def _empty(cells: ReportedCells) -> Reals:
    law, none = cells.law, np.zeros(cells.values.shape)
    return report_reach(normal_factor(LEVEL), law.variance(cells.atoms, none), law.slope(cells.atoms), law.step)


def _telling(cells: ReportedCells, one: Reals) -> str:
    near = int(np.count_nonzero(cells.values <= one))
    size = cells.values.size
    if not near:
        return "Every interval has more values than its error: none can be taken for empty."
    return (
        f"Of {counted(size, 'interval', 'intervals')}, {near:,} cannot be told from empty: the unbiased estimate is "
        "not above its ±."
    )


def _coverage() -> str:
    return (
        "Between an estimate less its ± and an estimate more its ± lies the true number of reported values, with a "
        "probability of at least 95 %. The ± comes from the variance of the random reports, which is known exactly but "
        "for the true number, with room for what few reports do; it is calibrated, not proven: wherever coverage was "
        "worked out exactly, it was at least 95 %. It is so for an interval or range that was chosen before looking, "
        "and if contributors reported as they were asked."
    )


def _about_estimates(asked: Asked) -> str:
    if not asked.nonnegative:
        return "The estimates are these unbiased ones themselves, so this is the whole error that randomness adds."
    return (
        "This is the error of <code>unbiased_estimate</code>; <code>estimate</code> was moved so that none is below 0, "
        "mostly closer to the truth, but too high where few values lie."
    )
