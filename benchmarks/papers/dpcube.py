"""Xiao et al. 2012 (DPCube): figures 13 to 16, on age × income, and figure 16 again on Adult's age × hours."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from measuring import Board, Private, private, scores, smaller, times
from public_data import adult_age_hours, age_income
from report import Claim, Section, Verdict, shown

from dphist_pipeline import sanitize
from dphist_pipeline.workbench.evaluation.workloads import BOXES, Boxes, EvaluationWorkload, random_boxes

ALPHA = "0.2"
ALPHAS = ("0.05", "0.1", "0.2", "0.5", "1")
MULTIPLES, COLLAPSE = (0.25, 0.5, 0.7, 0.85, 1, 1.25, 1.5), 0.85
SHARES = ("1/10", "1/4", "1/2", "3/4", "9/10")
RELEASES = (10, 3)  # in the whole and with `--quick`
SIZES = (1, 10, 100, 1_000, 10_000)
DEPTHS = (4, 6, 8)


def _by_noise(multiple: float, share: str = "1/4") -> Private:
    return private("dpcube", threshold=f"{{noise: {multiple}}}", structure_share=share)


BY_MULTIPLE = {f"ξ₀ = {multiple} v": _by_noise(multiple) for multiple in MULTIPLES}
BY_SHARE = {f"ξ₀ = 0.7 v, α₁ = {share} α": _by_noise(0.7, share) for share in SHARES}
DPCUBES = {f"dpcube, ξ₀ = {multiple} v": _by_noise(multiple) for multiple in (0.5, 0.7, 0.85)}
OURS = "dpcube, ξ₀ = 0.7 v"
AUTO = ("dpcube by `auto`, α₁ = α/2", "dpcube by `auto`")
HALF = "dpcube, ξ₀ = 0.7 v, α₁ = α/2"
TREES = {
    "hierarchical kd-tree": private("kd_hierarchy"),
    **{f"hierarchical kd-tree of depth {depth}": private("kd_hierarchy", depth=depth) for depth in DEPTHS},
}
CONSISTENCY = "consistency check"
OTHERS = {
    "privelet": private("privelet"),
    "boost, auto": private("boost"),
    "geometric": private("geometric"),
    "adaptive_boxes": private("adaptive_boxes"),
}
RIVALS = {
    **DPCUBES,
    HALF: _by_noise(0.7, "1/2"),
    AUTO[0]: private("dpcube"),
    AUTO[1]: private("dpcube", structure_share="1/4"),
    **TREES,
    CONSISTENCY: private("boost", branching=2),
    **OTHERS,
}
EVERYBODY = BY_MULTIPLE | BY_SHARE | RIVALS
SQUARED = "squared error of box means (boxes weighted by cells, not by records) rises with ξ₀"
PICTURES = {"subcube": "uniform", "estimated": "least_squares"}


def study(quick: bool) -> Section:
    """Measures along thresholds, shares and budgets."""
    repeat, first = RELEASES[quick], age_income(10_000)
    paper = "DPCube (Xiao et al. 2012)"
    if first is None:
        return Section(paper, "no data: set DPHIST_DATA to the folder that holds acs_pums_person_100k.parquet", [])
    boxes = [_boxes_by_size(first.shape)]
    found = {
        "parameters": scores("parameters", first, BY_MULTIPLE | BY_SHARE, (ALPHA,), repeat, boxes),
        "budgets": scores("budgets", first, RIVALS, ALPHAS, repeat, boxes),
    }
    everybody, adult = age_income(), adult_age_hours(10_000)
    if everybody is not None:
        found["all records"] = scores("all records", everybody, RIVALS, (ALPHA,), repeat, boxes)
    if adult is not None:
        found["adult"] = scores("adult", adult, RIVALS, ALPHAS, repeat, [_boxes_by_size(adult.shape)])
    boards, histograms = {name: Board(part) for name, part in found.items()}, _histograms(first)
    setting = (
        f"Age × income of the ACS ({' × '.join(map(str, first.shape))} cells; Adult's income is no number in the "
        f"public file), first 10,000 records; {repeat} releases each, {BOXES:,} random boxes, Δ = 1. "
        "`adult` is Adult's age × hours per week. Settings of a claim: steps along ξ₀ or α₁ at α = "
        f"{ALPHA} in figures 14 and 15, α = {', '.join(ALPHAS)} and two data sets in 16 (a), sizes of boxes in 16 (b). "
        "The paper tells no value of ξ₀, only that it is appropriate, and compares it with the variance of noisy "
        "cells. So ξ₀ is a multiple of v, the variance of the noise of a cell (`threshold: {noise: X}`), which α = "
        f"{ALPHAS[0]} to {ALPHAS[-1]} move from 12,800 to 32 where α₁ = α/4, as in its examples. α₁ is α/4 where "
        "nothing else is said. The depth of the kd-tree is not told either: its claims stand for each depth, and "
        "decide nothing. The algorithm is private as printed; here its noise is drawn in whole numbers."
    )
    tables = [
        _pictures(histograms),
        _lines("Figures 14 (a), 15 (a): against ξ₀, α = 0.2", boards["parameters"], list(BY_MULTIPLE)),
        _lines("Figures 14 (b), 15 (b): against α₁, ξ₀ = 0.7 v, α = 0.2", boards["parameters"], list(BY_SHARE)),
        _budgets("Figure 16 (a): mean |error| of random boxes", boards["budgets"]),
        _sizes(boards["budgets"]),
        *([_budgets("Figure 16 (a) on Adult's age × hours", boards["adult"])] if adult is not None else []),
    ]
    return Section(
        paper,
        setting,
        _claims(boards),
        tables,
        found,
        {"figure 13": histograms},
        contenders={name: str(who) for name, who in EVERYBODY.items()},
        data=f"age × income of the ACS{'; age × hours of Adult' if adult is not None else ''}; 10,000 records each; "
        f"{repeat} releases",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}",
    )


def _histograms(exact: np.ndarray) -> dict[str, Any]:
    """Figure 13: the original cells, those of phase I at α₁ = 0.05, and both estimates; α = 0.2, rounded."""
    shown = {"original": exact, "cell": sanitize(exact, mechanism="geometric", epsilon="0.05", sensitivity=1).values}
    for name, estimation in PICTURES.items():
        settings = {"estimation": estimation, "structure_share": Fraction(1, 4), "threshold": "{noise: 0.7}"}
        made = sanitize(exact, mechanism="dpcube", epsilon=ALPHA, sensitivity=1, **settings)
        shown[name] = made.values
    return {name: np.round(cells, 2).tolist() for name, cells in shown.items()}


def _pictures(histograms: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """What the four histograms look like, in numbers; the cells themselves are in the JSON."""
    cells = {name: np.array(values) for name, values in histograms.items()}
    exact, rows = cells["original"], []
    for name, values in cells.items():
        levels, error = np.unique(values).size, float(((values - exact) ** 2).mean())
        rows.append([name, f"{levels:,}", f"{values.min():.4g} to {values.max():.4g}", f"{error:.4g}"])
    return "Figure 13: one release, α = 0.2, α₁ = 0.05", ["histogram", "different heights", "range", "MSE"], rows


def _boxes_by_size(shape: tuple[int, ...]) -> EvaluationWorkload:
    """Random boxes, told apart by how many cells they hold."""
    boxes, parts = random_boxes(shape), []
    for low, high in pairwise(SIZES):
        inside = np.flatnonzero((boxes.cells >= low) & (boxes.cells < high))
        if inside.size:
            parts.append((f"{low}-{high - 1}", Boxes(boxes.low[inside], boxes.high[inside])))
    return EvaluationWorkload("box", f"{BOXES:,} random boxes", (("all", boxes), *parts))


def _claims(boards: dict[str, Board]) -> list[Claim]:
    budgets, error = boards["budgets"], ("box_mae", "all")
    sizes = budgets.places("box_mae")
    at_all = [(board, alpha) for name in ("budgets", "adult") if (board := boards.get(name)) for alpha in ALPHAS]
    claims = _parameters(boards["parameters"])
    for where, who, rivals in (
        ("Figure 16 (a)", (*DPCUBES,), (CONSISTENCY,)),
        ("(Figure 16 (a))", (*DPCUBES,), (*TREES,)),
        ("(Figure 16)", (OURS,), (*OTHERS,)),
        ("(Figure 16)", AUTO, (CONSISTENCY, *TREES, *OTHERS)),
        ("(Figure 16)", AUTO, (OURS,)),
    ):
        claims += [_below(where, one, rival, [(*at, *error) for at in at_all]) for rival in rivals for one in who]
    claims += [
        _below(
            "Figure 16 (b)", OURS, CONSISTENCY, [(budgets, ALPHA, "box_mae", at) for at in sizes[1:-1]], _cells(sizes)
        ),
        _below(
            "Figure 16 (b)",
            CONSISTENCY,
            OURS,
            [(budgets, ALPHA, "box_mae", sizes[-1])],
            f", boxes of {sizes[-1]} cells",
        ),
    ]
    for one, other in (AUTO, (OURS, HALF)):
        quarter, half = (one, other) if one == OURS else (other, one)
        at = [(*at, *error) for at in at_all]
        claims.append(_below("(Figure 15 (b))", quarter, half, at, ", in the settings of figure 16 (a)"))
    if "all records" in boards:
        for kind, place, words in (("box_mae", "all", "random boxes"), ("mse", "", "single cells (MSE)")):
            at = [(boards["all records"], ALPHA, kind, place)]
            words = f", {words}, all 100,000 records, α = {ALPHA}"
            claims += [_below("(Figure 16)", one, "geometric", at, words) for one in (OURS, AUTO[0])]
    return claims


def _cells(sizes: list[str]) -> str:
    return f", boxes up to {sizes[-2].rpartition('-')[2]} cells"


def _below(where: str, who: str, rival: str, at: list[tuple[Board, str, str, str]], words: str = ", every α") -> Claim:
    """That one's error is below another's, with the least and the largest ratio.

    Args:
        at: board, α, measure and place of each setting.
    """
    pairs = [(board.get(who, *place), board.get(rival, *place)) for board, *place in at]
    verdict = Verdict.over(smaller(one, other) for one, other in pairs)
    return Claim(where, f"{who}: error below that of {rival}{words}", None, verdict, figures=times(pairs, rival))


def _parameters(board: Board) -> list[Claim]:
    """Figures 14 and 15: along ξ₀ and along α₁."""
    claims = []
    for place, says, names, measure in (
        ("Figure 14 (a)", "weighted variance rises with ξ₀", BY_MULTIPLE, ("weighted_variance", "")),
        ("(Figure 14 (a))", SQUARED, BY_MULTIPLE, ("reconstruction_sse", "")),
        ("Figure 14 (b)", "weighted variance falls with α₁, ξ₀ = 0.7 v", BY_SHARE, ("weighted_variance", "")),
        ("Figure 15 (a)", "query error rises with ξ₀", BY_MULTIPLE, ("box_mae", "all")),
        ("Figure 15 (b)", "small α₁ is better: query error rises with α₁, ξ₀ = 0.7 v", BY_SHARE, ("box_mae", "all")),
    ):
        line = [board.get(name, ALPHA, *measure) for name in names]
        along = f"{_listed(MULTIPLES)} v" if names is BY_MULTIPLE else f"{_listed(SHARES)} of α"
        figures = f"at {along}: {' → '.join(f'{score.mean:.3g}' for score in line if score)}"
        if "falls" in says:
            line.reverse()
        # Steps of ξ₀ lie within noise: the trend is told below the noise's variance and beyond it.
        if names is BY_MULTIPLE:
            at = MULTIPLES.index(COLLAPSE)
            ends = {
                f"from {MULTIPLES[0]} to {COLLAPSE} v, below the noise's variance": (line[0], line[at]),
                f"from {COLLAPSE} to {MULTIPLES[-1]} v, where nearly all cells are one box": (line[at], line[-1]),
            }
        else:
            steps = Verdict.over(smaller(one, other) for one, other in pairwise(line))
            claims.append(Claim(place, f"{says}, at each step", None, steps, figures=figures))
            ends = {"from one end to the other": (line[0], line[-1])}
        for words, pair in ends.items():
            claims.append(Claim(place, f"{says}, {words}", None, Verdict.over([smaller(*pair)]), figures=figures))
    return claims


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _lines(title: str, board: Board, names: list[str]) -> tuple[str, list[str], list[list[str]]]:
    head = [
        "setting",
        "weighted variance (records)",
        "squared error of box means",
        "mean |error| of boxes",
        "MSE of cells",
    ]
    kinds = (("weighted_variance", ""), ("reconstruction_sse", ""), ("box_mae", "all"), ("mse", ""))
    return title, head, [[name, *(shown(board.get(name, ALPHA, *kind)) for kind in kinds)] for name in names]


def _budgets(title: str, board: Board) -> tuple[str, list[str], list[list[str]]]:
    rows = [[alpha, *(shown(board.get(who, alpha, "box_mae", "all")) for who in RIVALS)] for alpha in ALPHAS]
    return title, ["α", *RIVALS], rows


def _sizes(board: Board) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [at, *(shown(board.get(who, ALPHA, "box_mae", at)) for who in RIVALS)] for at in board.places("box_mae")[1:]
    ]
    return "Figure 16 (b): mean |error| by cells in a box, α = 0.2", ["cells", *RIVALS], rows
