"""Xiao et al. 2012 (DPCube): the theorems of section 4, and figures 9 to 12 with the defaults of table II."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from report import Claim, Section, Verdict

from dphist_pipeline.workbench.evaluation import theory
from dphist_pipeline.workbench.evaluation.theory import QueryParameters

DEFAULT, ALPHA = QueryParameters(), 0.2
SMALL_QUERIES, SHARES = range(1, 12), [part / 20 * ALPHA for part in range(1, 20)]
SIZES, SMOOTHNESS, INCONSISTENCY = range(2, 31), range(11), range(0, 51, 5)
LEAST_SQUARES = "least squares"
LINES: dict[str, Callable[[QueryParameters], float]] = {
    "γ-smooth, bound (33)": lambda at: theory.uniform_bound(at, printed=True),
    "γ-smooth, mended bound": theory.uniform_bound,
    "γ-smooth, exact at the largest bias": lambda at: theory.uniform_error(at, at.largest_bias),
    "any distribution (34)": theory.error_given_inconsistency,
    f"{LEAST_SQUARES} (35)": lambda at: theory.least_squares_error(at, weighted=False),
    f"{LEAST_SQUARES}, weighted": theory.least_squares_error,
}
BOUND, MENDED, EXACT, ANY, SQUARES, WEIGHTED = LINES
Curves = dict[str, list[float]]


def study(quick: bool) -> Section:
    """Computes all curves; the theorems are checked by simulation in the tests of `evaluation.theory`."""
    curves = {
        "figure 9": _curves(replace(DEFAULT, query=size) for size in SMALL_QUERIES),
        "figure 10": _curves(replace(DEFAULT, first=share, second=ALPHA - share) for share in SHARES),
        "figure 11 (a)": _curves(replace(DEFAULT, cells=size, query=max(1, size // 2)) for size in SIZES),
        "figure 11 (b)": _curves(replace(DEFAULT, smoothness=float(value)) for value in SMOOTHNESS),
        "figure 12": _curves(replace(DEFAULT, inconsistency=float(value)) for value in INCONSISTENCY),
    }
    along = dict(zip(curves, (SMALL_QUERIES, SHARES, SIZES, SMOOTHNESS, INCONSISTENCY), strict=True))
    setting = (
        "Continuous Laplace noise; a box of 11 cells, a query of 5, α₁ = 0.05, α₂ = 0.15, γ = 5 and η = 5 where not "
        "varied. Expected absolute errors in records, computed and not simulated. Bound (33) takes min(s, n - s)·γ for "
        "the bias, which is at most γ·s·(n - s)/n."
    )
    tables = [_table(name, along[name], found) for name, found in curves.items()]
    series = {name: {"along": list(along[name]), **found} for name, found in curves.items()}
    return Section(
        "DPCube, error theory (Xiao et al. 2012)",
        setting,
        _claims(curves),
        tables,
        series=series,
        data="none: curves by formulas, table II's defaults",
    )


def _curves(settings: Iterable[QueryParameters]) -> Curves:
    found = list(settings)
    return {name: [line(at) for at in found] for name, line in LINES.items()}


def _claims(curves: dict[str, Curves]) -> list[Claim]:
    nine, ten, eleven, smooth, twelve = curves.values()
    small = [LINES[MENDED](replace(DEFAULT, smoothness=1.0, query=size)) for size in SMALL_QUERIES]
    finer = [ALPHA * part / 1_000 for part in range(50, 951)]
    errors = [LINES[SQUARES](replace(DEFAULT, first=share, second=ALPHA - share)) for share in finer]
    best, least = finer[int(np.argmin(errors))], min(errors)
    half = range(len(SHARES) // 2, len(SHARES))
    return [
        _claim(
            "Figure 9", "the error bound of γ-smooth data is largest at half of the box", _peaks(nine[BOUND], (5, 6))
        ),
        _claim("Figure 9", "and that of least squares", _peaks(nine[SQUARES], (5, 6))),
        _claim(
            "Figure 9 (b)",
            "uniform estimation for any distribution (34) is worst at half of the box, too",
            _peaks(nine[ANY], (5, 6)),
            f"it is largest at a query of {1 + int(np.argmax(nine[ANY]))}: {nine[ANY][5]:.3g} at 6, "
            f"{nine[ANY][-1]:.3g} at 11",
        ),
        _claim(
            "Figure 9 (a)",
            "for γ = 1 uniform estimation is below least squares, all queries",
            Verdict.over(one < other for one, other in zip(small, nine[SQUARES], strict=True)),
        ),
        _claim(
            "Figure 9 (b)",
            "for any distribution least squares is below uniform estimation, all queries",
            Verdict.over(one < other for one, other in zip(nine[SQUARES], nine[ANY], strict=True)),
        ),
        _claim(
            "Figure 10",
            "least squares is best at an even split, or with slightly more for the cells: 0.5 to 0.6 of α",
            Verdict.over([0.5 <= best / ALPHA <= 0.6]),
            f"the best α₁ is {best:.3f} of {ALPHA}, {best / ALPHA:.2f} of α; the error there is {least:.3g}, at an "
            f"even split {ten[SQUARES][SHARES.index(ALPHA / 2)]:.3g}",
        ),
        _claim("Figure 10 (a)", "γ-smooth: less for the cells is better", _steps(ten[BOUND], rises=True)),
        _claim("Figure 10 (b)", "any distribution: more for the cells is better", _steps(ten[ANY], rises=False)),
        _claim(
            "(not in the paper)",
            "least squares weighted by the variances is at most 1 % above the printed one",
            Verdict.over(one <= 1.01 * other for one, other in zip(ten[WEIGHTED], ten[SQUARES], strict=True)),
            f"at α₁ = 19/20 of α it has {ten[WEIGHTED][half[-1]] / ten[SQUARES][half[-1]]:.2f} times its error",
        ),
        _claim(
            "Figure 11 (a)",
            "the bound grows with the box, by two cells",
            Verdict.over(one < other for one, other in zip(eleven[BOUND], eleven[BOUND][2:], strict=False)),
        ),
        _claim("Figure 11 (b)", "the bound grows with γ", _steps(smooth[BOUND], rises=True)),
        _claim("Figure 12", "the error grows with η", _steps(twelve[ANY], rises=True)),
        _claim(
            "Figure 12",
            "it is above that of least squares at every η",
            Verdict.over(one > other for one, other in zip(twelve[ANY], twelve[SQUARES], strict=True)),
            "(34) is an error over all counts that may lie behind η. On given counts with γ = 5 it is at most "
            f"{LINES[EXACT](DEFAULT):.3g}, and {LINES[ANY](DEFAULT):.3g} by (34)",
        ),
    ]


def _claim(where: str, says: str, verdict: Verdict, note: str = "") -> Claim:
    return Claim(where, says, None, verdict, note)


def _peaks(line: Sequence[float], queries: tuple[int, ...]) -> Verdict:
    return Verdict.over([1 + int(np.argmax(line)) in queries])


def _steps(line: Sequence[float], rises: bool) -> Verdict:
    return Verdict.over((one < other) == rises for one, other in pairwise(line))


def _table(name: str, along: Sequence[float], found: Curves) -> tuple[str, list[str], list[list[str]]]:
    chosen = sorted({0, len(along) // 4, len(along) // 2, 3 * len(along) // 4, len(along) - 1})
    rows = [[f"{along[place]:.3g}", *(f"{line[place]:.3g}" for line in found.values())] for place in chosen]
    return f"{name[0].upper()}{name[1:]}: expected |error|", ["at", *found], rows
