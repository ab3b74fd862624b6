"""Xiao et al. 2012 (DPCube): figures 13 to 16, on age × income, and figure 16 again on Adult's age × hours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import sinh
from typing import Any

import numpy as np
from measuring import Board, Private, private, scores, smaller, times
from public_data import adult_age_hours, age_income
from report import Claim, Section, Verdict, shown

from dphist_pipeline import sanitize
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult
from dphist_pipeline.workbench.evaluation.workloads import BOXES, Boxes, EvaluationWorkload, random_boxes

ALPHA = "0.2"
ALPHAS = ("0.05", "0.1", "0.2", "0.5", "1")
APPROPRIATE, COLLAPSED = (0.25, 0.5, 0.7, 0.85), (1, 1.25, 1.5)
SHARES = ("1/10", "1/4", "1/2", "3/4", "9/10")
RELEASES = (10, 3)  # in the whole and with `--quick`
SIZES = (1, 10, 100, 1_000, 4_000, 10_000)
DEPTHS = (4, 6, 8)


def _by_noise(multiple: float, share: str = "1/4") -> Private:
    return private("dpcube", threshold=f"{{noise: {multiple}}}", structure_share=share)


def _fixed(multiple: float, share: str) -> Private:
    """The number that a multiple of the noise's variance is at α₁ = α/4, whatever the share."""
    return private("dpcube", threshold=f"{{paper: {multiple * V_AT_QUARTER:.5g}}}", structure_share=share)


@dataclass(frozen=True)
class OnLine:
    """A mechanism on the cells one after the other, row by row."""

    mechanism: Private

    def __call__(self, exact: np.ndarray, epsilon: Fraction, random: np.random.Generator) -> Estimate:
        """A release."""
        made = self.mechanism(exact.ravel(), epsilon, random)
        return Estimate(Domain.from_shape(exact.shape), made.values.reshape(exact.shape), made.charges)

    def __str__(self) -> str:
        return f"{self.mechanism}; on the cells row by row, as one axis"


V_AT_QUARTER = 1 / (2 * sinh(float(ALPHA) / 8) ** 2)  # the variance of the noise of a cell at α₁ = α/4
BY_MULTIPLE = {f"ξ₀ = {multiple} v": _by_noise(multiple) for multiple in (*APPROPRIATE, *COLLAPSED)}
BY_SHARE = {
    multiple: {f"ξ₀ = {multiple} v, α₁ = {share} α": _by_noise(multiple, share) for share in SHARES}
    for multiple in APPROPRIATE
}
BY_SHARE_FIXED = {
    multiple: {f"ξ₀ = {multiple} v of α₁ = α/4, α₁ = {share} α": _fixed(multiple, share) for share in SHARES}
    for multiple in APPROPRIATE
}
ALONG_SHARES = {
    who: how for lines in (BY_SHARE, BY_SHARE_FIXED) for line in lines.values() for who, how in line.items()
}
DPCUBES = {f"dpcube, ξ₀ = {multiple} v": _by_noise(multiple) for multiple in APPROPRIATE}
OURS = "dpcube, ξ₀ = 0.7 v"
AUTO = ("dpcube by `auto`, α₁ = α/2", "dpcube by `auto`")
HALF = "dpcube, ξ₀ = 0.7 v, α₁ = α/2"
TREES = {
    "hierarchical kd-tree": private("kd_hierarchy"),
    **{f"hierarchical kd-tree of depth {depth}": private("kd_hierarchy", depth=depth) for depth in DEPTHS},
}
NO_DEPTH = "neither depth nor shares of the kd-tree are told"
# [23] is for one dimension, and how two are served is not told: both axes cut at once, or the cells as one line.
CONSISTENCY = {
    "consistency check": private("boost", branching=2),
    "consistency check on a line": OnLine(private("boost", branching=2)),
}
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
    **CONSISTENCY,
    **OTHERS,
}
EVERYBODY = BY_MULTIPLE | ALONG_SHARES | RIVALS
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
        "parameters": scores("parameters", first, BY_MULTIPLE | ALONG_SHARES, (ALPHA,), repeat, boxes),
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
        f"public file), first 10,000 records; {repeat} releases each, {BOXES:,} random "
        "boxes, Δ = 1. `adult` is Adult's age × hours per week. Settings of a claim: steps along ξ₀ or α₁ at α = "
        f"{ALPHA} in figures 14 and 15, α = {', '.join(ALPHAS)} and two data sets in 16 (a), sizes of boxes in 16 (b). "
        "The paper tells no value of ξ₀, only that it is appropriate, and compares it with the variance of noisy "
        "cells. So ξ₀ is a multiple of v, the variance of the noise of a cell (`threshold: {noise: X}`), which α = "
        f"{ALPHAS[0]} to {ALPHAS[-1]} move from 12,800 to 32 where α₁ = α/4, as in its examples. α₁ is α/4 where "
        f"nothing else is said. The paper may mean multiples of {_listed(APPROPRIATE)}; from 1 v on nearly all cells "
        "are one box. Along α₁ it has one ξ₀ for all of them in figure 14 (b): here the number that the multiple is at "
        "α₁ = α/4, beside one that follows the noise. Against the consistency check a setting holds where it does at "
        "each of these multiples. Depth and shares of the kd-tree are not told: its claims cannot be "
        "judged, and stand for each depth. The consistency check is for one dimension: here it cuts both axes at once, "
        "or has the cells row by row as one line. The algorithm is private as printed; here its noise is drawn in "
        "whole numbers."
    )
    tables = [
        _pictures(histograms),
        _lines("Figures 14 (a), 15 (a): against ξ₀, α = 0.2", boards["parameters"], list(BY_MULTIPLE)),
        _lines("Figures 14 (b), 15 (b): against α₁, α = 0.2", boards["parameters"], list(ALONG_SHARES)),
        _budgets("Figure 16 (a): mean |error| of random boxes", boards["budgets"]),
        _sizes(boards["budgets"]),
        *([_budgets("Figure 16 (a) on Adult's age × hours", boards["adult"])] if adult is not None else []),
        _budgets("Beside figure 16 (a): MSE of single cells", boards["budgets"], "mse", ""),
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
    for where, who, rivals, unjudged in (
        ("Figure 16 (a)", (OURS,), (*TREES,), NO_DEPTH),
        ("(Figure 16)", (OURS,), (*OTHERS,), ""),
        ("(Figure 16)", AUTO, (*CONSISTENCY, *TREES, *OTHERS), ""),
        ("(Figure 16)", AUTO, (OURS,), ""),
    ):
        at = [(*at, *error) for at in at_all]
        claims += [_below(where, one, rival, at, unjudged=unjudged) for rival in rivals for one in who]
    small, large = ([(budgets, ALPHA, "box_mae", at) for at in part] for part in (sizes[1:-2], sizes[-2:]))
    at_each = f"dpcube, ξ₀ of {APPROPRIATE[0]} to {APPROPRIATE[-1]} v"
    for rival in CONSISTENCY:
        for where, one, other, at, words in (
            ("Figure 16 (a)", at_each, rival, [(*at, *error) for at in at_all], "every α"),
            ("Figure 16 (b)", at_each, rival, small, f"boxes up to {_end(sizes[-3])} cells"),
            ("Figure 16 (b)", rival, at_each, large, f"boxes of {_end(sizes[-3]) + 1:,} cells and more"),
        ):
            found = [
                [(board.get(who, *place), board.get(rival, *place))[:: -1 if one == rival else 1] for who in DPCUBES]
                for board, *place in at
            ]
            claims.append(
                Claim(
                    where,
                    f"{one}: error below that of {other}, {words}",
                    None,
                    Verdict.agreeing([smaller(*pair) for pair in pairs] for pairs in found),
                    figures=times((pair for pairs in found for pair in pairs), other),
                )
            )
    cells = [(board, alpha, "mse", "") for board, alpha in at_all]
    claims.append(_below("(Figure 16)", AUTO[0], OURS, cells, ", single cells (MSE), every α"))
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


def _end(size: str) -> int:
    return int(size.rpartition("-")[2])


def _below(
    where: str,
    who: str,
    rival: str,
    at: list[tuple[Board, str, str, str]],
    words: str = ", every α",
    unjudged: str = "",
) -> Claim:
    """That one's error is below another's, with the least and the largest ratio.

    Args:
        at: board, α, measure and place of each setting.
    """
    pairs = [(board.get(who, *place), board.get(rival, *place)) for board, *place in at]
    verdict = Verdict.over(smaller(one, other) for one, other in pairs)
    says = f"{who}: error below that of {rival}{words}"
    return Claim(where, says, None, verdict, figures=times(pairs, rival), unjudged=unjudged)


def _parameters(board: Board) -> list[Claim]:
    """Figures 14 and 15: along ξ₀ and along α₁."""
    variance, cells, error = ("weighted_variance", ""), ("reconstruction_sse", ""), ("box_mae", "all")
    claims = []
    # Steps of ξ₀ lie within noise: the trend is that from end to end.
    not_told = "the range of ξ₀ is not told"
    for place, says, measure, unjudged in (
        ("Figure 14 (a)", "weighted variance rises with ξ₀", variance, not_told),
        ("(Figure 14 (a))", SQUARED, cells, ""),
        ("Figure 15 (a)", "query error rises with ξ₀", error, not_told),
    ):
        line = [board.get(name, ALPHA, *measure) for name in BY_MULTIPLE]
        figures = f"at {_listed((*APPROPRIATE, *COLLAPSED))} v: {_along(line)}"
        last = len(APPROPRIATE) - 1
        for words, pair in (
            (f"from {APPROPRIATE[0]} to {APPROPRIATE[-1]} v, below the noise's variance", (line[0], line[last])),
            (
                f"from {APPROPRIATE[-1]} to {COLLAPSED[-1]} v, where nearly all cells are one box",
                (line[last], line[-1]),
            ),
        ):
            claims.append(
                Claim(
                    place, f"{says}, {words}", None, Verdict.over([smaller(*pair)]), figures=figures, unjudged=unjudged
                )
            )
    fixed, following = "one ξ₀ for every α₁", "ξ₀ that follows the noise"
    of_v = f"{_listed(APPROPRIATE)} v"
    for place, says, measure, falls, lines, words in (
        ("Figure 14 (b)", "the variance should fall as α₁ grows", variance, True, BY_SHARE, following),
        ("(Figure 14 (b))", "the variance falls as α₁ grows", variance, True, BY_SHARE_FIXED, fixed),
        ("Figure 15 (b)", "small α₁ is better: query error rises with α₁", error, False, BY_SHARE_FIXED, fixed),
        ("(Figure 15 (b))", "small α₁ is better: query error rises with α₁", error, False, BY_SHARE, following),
    ):
        found = {of: [board.get(name, ALPHA, *measure) for name in names] for of, names in lines.items()}
        ends = ((line[-1], line[0]) if falls else (line[0], line[-1]) for line in found.values())
        claims.append(
            Claim(
                place,
                f"{says}, from {SHARES[0]} to {SHARES[-1]} of α, {words}: {of_v}"
                + (" of α₁ = α/4" if lines is BY_SHARE_FIXED else ""),
                None,
                Verdict.over(smaller(*pair) for pair in ends),
                figures=f"at {_listed(SHARES)} of α: "
                + "; ".join(f"{of} v {_along(line)}" for of, line in found.items()),
            )
        )
    unclear = [[board.get(name, ALPHA, *variance) for name in names] for names in BY_SHARE_FIXED.values()]
    claims.append(
        Claim(
            "Figure 14 (b)",
            f"the correlation of variance and α₁ is not very clear, {fixed}: it neither rises nor falls at each step, "
            f"{of_v} of α₁ = α/4",
            None,
            Verdict.over(not _steady(line) and not _steady(line[::-1]) for line in unclear),
        )
    )
    return claims


def _steady(line: Sequence[MeasureResult | None]) -> bool:
    """Whether each is above the one before by more than noise."""
    return all(smaller(one, other) is True for one, other in pairwise(line))


def _along(line: Iterable[MeasureResult | None]) -> str:
    return " → ".join(f"{score.mean:.3g}" for score in line if score)


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


def _budgets(
    title: str, board: Board, measure: str = "box_mae", place: str = "all"
) -> tuple[str, list[str], list[list[str]]]:
    rows = [[alpha, *(shown(board.get(who, alpha, measure, place)) for who in RIVALS)] for alpha in ALPHAS]
    return title, ["α", *RIVALS], rows


def _sizes(board: Board) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [at, *(shown(board.get(who, ALPHA, "box_mae", at)) for who in RIVALS)] for at in board.places("box_mae")[1:]
    ]
    return "Figure 16 (b): mean |error| by cells in a box, α = 0.2", ["cells", *RIVALS], rows
