"""Formats scores as the tables of `dphist compare`, 80 columns wide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dphist_pipeline.workbench.evaluation._recommendation import competing, leaders
from dphist_pipeline.workbench.evaluation.measuring import MISSED, MeasureResult
from dphist_pipeline.workbench.evaluation.office_methods import MARK
from dphist_pipeline.workbench.evaluation.workloads import EvaluationWorkload

CELLS = {"mse": "MSE", "sse": "SSE", "mre": "MRE", "kl": "KL", "seconds": "ms"}
GROUPS = {"weighted_variance": "weighted variance", "reconstruction_sse": "SSE of exact means"}
ERRORS = {"mse": "MSE", "mae": "mean |error|", "mre": "MRE"}
BEST = "*"
LONGEST_NAME = 18

Table = tuple[str, list[str], list[tuple[str, ...]]]


def tables(
    scores: Sequence[MeasureResult], workloads: Sequence[EvaluationWorkload], decimals: int | None = None
) -> list[Table]:
    """For each epsilon, largest first, tables of errors over cells, of what groups cost, and for each workload.

    Mechanisms that group cells have a second table: the weighted variance of exact counts within groups, and the
    squared error that exact means of the groups would leave; see `metrics.weighted_variance`.

    The best mean of a column has a star if no other mechanism's mean could be as small; see `recommendation.leaders`.
    The standard error follows the mean, in per cent of the mean; SSE shows none, because it is MSE times the number of
    cells. Errors have three digits unless `decimals` are asked for.
    """
    sheets: list[Table] = []
    for epsilon in sorted({score.epsilon for score in scores}, reverse=True):
        scores_at_epsilon = [score for score in scores if score.epsilon == epsilon]
        heading = f"epsilon {format_epsilon(epsilon)}"
        sheets.append(
            (
                f"{heading}: all cells",
                *_table(scores_at_epsilon, {(name, ""): head for name, head in CELLS.items()}, decimals),
            )
        )
        grouping = {score.mechanism for score in scores_at_epsilon if score.measure in GROUPS}
        if grouping:
            grouped = [score for score in scores_at_epsilon if score.mechanism in grouping]
            sheets.append(
                (f"{heading}: groups", *_table(grouped, {(name, ""): head for name, head in GROUPS.items()}, decimals))
            )
        for workload in workloads:
            columns = {(f"{workload.name}_{kind}", ""): head for kind, head in ERRORS.items()}
            columns[f"{workload.name}_useful", str(float(MISSED))] = "95 % within"
            longest = workload.parts[-1][0]
            if len(workload.parts) > 1:
                columns[f"{workload.name}_mre", longest] = f"MRE of {longest}"
            sheets.append((f"{heading}: {workload.about}", *_table(scores_at_epsilon, columns, decimals)))
    return sheets


def format_epsilon(epsilon: Fraction) -> str:
    """The text of an epsilon: 0.1, or 1/3 if it has no finite decimal form."""
    decimal = f"{float(epsilon):.10g}"
    return decimal if Fraction(decimal) == epsilon else str(epsilon)


def format_grid(shape: Sequence[int]) -> str:
    """The number of cells of a grid in words: 12 cells (3 × 4)."""
    sides = f" ({' × '.join(map(str, shape))})" if len(shape) > 1 else ""
    return f"{math.prod(shape):,} cells{sides}"


def _table(
    scores: Iterable[MeasureResult], columns: dict[tuple[str, str], str], decimals: int | None
) -> tuple[list[str], list[tuple[str, ...]]]:
    by_measure = {(score.mechanism, score.measure, score.at): score for score in scores}
    names = list(dict.fromkeys(mechanism for mechanism, _, _ in by_measure))
    columns_of = {key: [by_measure[name, *key] for name in names] for key in columns}
    best = {key: leaders(competing(column, by_measure.values())) for key, column in columns_of.items()}
    cells = {
        key: [_cell(score, decimals, is_best=best[key] == [score]) for score in columns_of[key]] for key in columns
    }
    widths = {key: max(map(len, [*texts, columns[key]])) for key, texts in cells.items()}
    head = ["mechanism", *(title.rjust(widths[key]) for key, title in columns.items())]
    rows = [
        (wrap_name(name), *(cells[key][row].rjust(widths[key]) for key in columns)) for row, name in enumerate(names)
    ]
    return head, rows


def wrap_name(name: str) -> str:
    """The name of a mechanism; a long one has a line for each setting, which leaves room for numbers."""
    name = name.replace(MARK, f"\n {MARK}")
    return name if len(name) <= LONGEST_NAME else name.replace(":", ":\n  ").replace(",", ",\n  ")


def _cell(score: MeasureResult, decimals: int | None, *, is_best: bool) -> str:
    star = BEST if is_best else ""
    mean = _number_text(score.mean * (1000 if score.measure == "seconds" else 1), decimals)
    if score.standard_error is None or score.mean == 0 or score.measure == "sse":
        return f"{star}{mean}"
    per_cent = 100 * score.standard_error / score.mean
    return f"{star}{mean}±{per_cent:.0f}%" if per_cent >= 1 else f"{star}{mean}±{per_cent:.1f}%"


def _number_text(number: float, decimals: int | None) -> str:
    """So many decimals, else three digits: 0.0123, 1.23, 1,230, 1.23e7."""
    if decimals is not None:
        return f"{number:,.{decimals}f}"
    if number == 0:
        return "0"
    if 1e-3 <= number < 99_950:
        return f"{float(f'{number:.3g}'):,.6f}".rstrip("0").rstrip(".")
    mantissa, _, exponent = f"{number:.2e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
