"""Xiao et al. 2012 (DPCube): figures 13 to 16, on age × income, and figure 16 again on Adult's age × hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from measuring import Board, private, scores, smaller, times
from public_data import adult_age_hours, age_income
from report import Claim, Section, Verdict, shown

from dphist_pipeline import sanitize
from dphist_pipeline.evaluation.measuring import Score
from dphist_pipeline.evaluation.workloads import BOXES, Boxes, Workload, random_boxes

ALPHA = "0.2"
ALPHAS = ("0.05", "0.1", "0.2", "0.5", "1")
THRESHOLDS = (0, 1, 3, 10, 30, 100)
SHARES = ("1/10", "1/4", "1/2", "3/4", "9/10")
FIXED, PRINTED = 3, 100
PRINTED_THRESHOLDS = (50, 100, 150, 200, 250, 300)
RELEASES = (20, 3)  # in the whole and with `--quick`
SIZES = (1, 10, 100, 1_000, 10_000)
BY_THRESHOLD = {f"ξ₀ = {value:,}": private("dpcube", threshold=value) for value in THRESHOLDS}
BY_SHARE = {f"α₁ = {share} α": private("dpcube", threshold=FIXED, structure_share=share) for share in SHARES}
BY_PRINTED = {
    f"printed ξ₀ = {value}": private("dpcube", threshold=f"{{paper: {value}}}") for value in PRINTED_THRESHOLDS
}
BY_PRINTED_SHARE = {
    f"printed ξ₀ = {PRINTED}, α₁ = {share} α": private(
        "dpcube", threshold=f"{{paper: {PRINTED}}}", structure_share=share
    )
    for share in SHARES
}
RIVALS = {
    "dpcube": private("dpcube"),
    "dpcube, α₁ = α/4": private("dpcube", structure_share="1/4"),
    f"dpcube, ξ₀ = {FIXED}": private("dpcube", threshold=FIXED),
    f"dpcube, ξ₀ = {FIXED}, α₁ = α/4": private("dpcube", threshold=FIXED, structure_share="1/4"),
    f"dpcube, printed ξ₀ = {PRINTED}, α₁ = α/4": private(
        "dpcube", threshold=f"{{paper: {PRINTED}}}", structure_share="1/4"
    ),
    "dpcube, least squares": private("dpcube", estimation="least_squares"),
    "hierarchical kd-tree": private("kd_hierarchy"),
    "consistency check": private("boost", branching=2),
    "boost, auto": private("boost"),
    "privelet": private("privelet"),
    "geometric": private("geometric"),
}
EVERYBODY = BY_THRESHOLD | BY_PRINTED | BY_SHARE | BY_PRINTED_SHARE | RIVALS
DPCUBES = ("dpcube", "dpcube, α₁ = α/4")
AFTERWARDS = "by `auto`, the better of two splits"  # chosen by its error
NUMBERS = tuple(name for name in RIVALS if "ξ₀" in name)
PUBLISHED = ("hierarchical kd-tree", "consistency check")  # of figure 16
OTHERS = ("privelet", "boost, auto", "geometric")
PICTURES = {"subcube": "uniform", "estimated": "least_squares"}


def study(quick: bool) -> Section:
    """Measures along thresholds, shares and budgets."""
    repeat, first = RELEASES[quick], age_income(10_000)
    paper = "DPCube (Xiao et al. 2012)"
    if first is None:
        return Section(paper, "no data: set DPHIST_DATA to the folder that holds acs_pums_person_100k.parquet", [])
    boxes = [_boxes_by_size(first.shape)]
    found = {
        "thresholds": scores("thresholds", first, BY_THRESHOLD, (ALPHA,), repeat, boxes),
        "printed": scores("printed", first, BY_PRINTED | BY_PRINTED_SHARE, (ALPHA,), repeat, boxes),
        "shares": scores("shares", first, BY_SHARE, (ALPHA,), repeat, boxes),
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
        "ξ₀ as printed is compared with the variance of noisy cells (`threshold: {paper: X}`); a number ξ₀ "
        "(`threshold: X`) with that variance less the noise's. The noise's is 200 at α₁ = 0.1, so that in (a) numbers "
        "of 0 to 100 are printed ones of 200 to 300; in (b), where the noise varies, they are another rule. The paper "
        "tells no value of ξ₀. In figure 16 the better of two splits, or the best of three ξ₀, is chosen by its error, "
        "which favours dpcube; each setting stands in the tables. The algorithm is private as printed; here its noise "
        "is drawn in whole numbers."
    )
    tables = [
        _pictures(histograms),
        _lines("Figures 14 (a), 15 (a): against ξ₀, α = 0.2", boards["thresholds"], list(BY_THRESHOLD)),
        _lines(f"Figures 14 (b), 15 (b): against α₁, ξ₀ = {FIXED}, α = 0.2", boards["shares"], list(BY_SHARE)),
        _lines("Figures 14 (a), 15 (a): against ξ₀ as printed, α = 0.2", boards["printed"], list(BY_PRINTED)),
        _lines(
            f"Figures 14 (b), 15 (b): against α₁, ξ₀ = {PRINTED} as printed, α = 0.2",
            boards["printed"],
            list(BY_PRINTED_SHARE),
        ),
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
        settings = {"estimation": estimation, "structure_share": Fraction(1, 4)}
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


def _boxes_by_size(shape: tuple[int, ...]) -> Workload:
    """Random boxes, told apart by how many cells they hold."""
    boxes, parts = random_boxes(shape), []
    for low, high in pairwise(SIZES):
        inside = np.flatnonzero((boxes.cells >= low) & (boxes.cells < high))
        if inside.size:
            parts.append((f"{low}-{high - 1}", Boxes(boxes.low[inside], boxes.high[inside])))
    return Workload("box", f"{BOXES:,} random boxes", (("all", boxes), *parts))


def _claims(boards: dict[str, Board]) -> list[Claim]:
    budgets, error = boards["budgets"], ("box_mae", "all")
    largest = budgets.places("box_mae")[-1]
    claims = [*_parameters(boards), *_share_of_auto(boards)]
    there = [boards[name] for name in ("budgets", "adult") if name in boards]
    for rules, words in ((DPCUBES, AFTERWARDS.removeprefix("by ")), (NUMBERS, "a fixed ξ₀, the best of three")):
        for rival in (*PUBLISHED, *OTHERS):
            verdict = Verdict.over(
                _best_below(board, rival, alpha, *error, rules=rules) for board in there for alpha in ALPHAS
            )
            pairs = (
                (_least(board, rules, alpha, *error), board.get(rival, alpha, *error))
                for board in there
                for alpha in ALPHAS
            )
            where = "Figure 16 (a)" if rival in PUBLISHED else "(Figure 16)"
            says = f"query error below that of {rival}, every α, by {words}"
            claims.append(Claim(where, says, None, verdict, figures=times(pairs, rival)))
    sizes = budgets.places("box_mae")[1:]
    claims.append(
        Claim(
            "Figure 16 (b)",
            f"below the consistency check for boxes up to {sizes[-2].rpartition('-')[2]} cells, {AFTERWARDS}",
            None,
            Verdict.over(_best_below(budgets, "consistency check", ALPHA, "box_mae", at) for at in sizes[:-1]),
            figures=_against_consistency(budgets, sizes[:-1]),
        )
    )
    claims.append(
        Claim(
            "Figure 16 (b)",
            f"the consistency check is better for boxes of {largest} cells, {AFTERWARDS}",
            None,
            Verdict.over([_not(_best_below(budgets, "consistency check", ALPHA, "box_mae", largest))]),
            figures=_against_consistency(budgets, [largest]),
        )
    )
    if "all records" in boards:
        everybody = boards["all records"]
        for kind, words in (("box_mae", "for random boxes"), ("mse", "for single cells (MSE)")):
            at = "all" if kind == "box_mae" else ""
            verdict = Verdict.over([_best_below(everybody, "geometric", ALPHA, kind, at)])
            claims.append(
                Claim(
                    "(Figure 16)", f"below geometric {words}, all 100,000 records, α = 0.2, {AFTERWARDS}", None, verdict
                )
            )
    return claims


def _parameters(boards: dict[str, Board]) -> list[Claim]:
    """Figures 14 and 15: along ξ₀ and along α₁, by the printed rule and beside it by a number."""
    error, variance, by_cells = ("box_mae", "all"), ("weighted_variance", ""), ("reconstruction_sse", "")
    printed = boards["printed"]
    claims = []
    for rule, thresholds, shares in (
        ("", (printed, BY_PRINTED, PRINTED_THRESHOLDS), (printed, BY_PRINTED_SHARE, PRINTED)),
        (
            "ξ₀ less the noise's variance, not the paper's rule: ",
            (boards["thresholds"], BY_THRESHOLD, THRESHOLDS),
            (boards["shares"], BY_SHARE, FIXED),
        ),
    ):
        board, names, values = thresholds
        for place, says, measure in (
            ("14 (a)", "weighted variance rises with ξ₀", variance),
            ("15 (a)", "query error rises with ξ₀", error),
        ):
            figures = f"at {_listed(values)}: {_along(board, names, *measure)}"
            claims += _steps(_beside(place, rule), f"{rule}{says}", board, list(names), measure, figures)
        says = f"{rule}squared error of box means (boxes weighted by cells, not by records) rises with ξ₀, at each step"
        figures, verdict = _along(board, names, *by_cells), _rises(board, names, *by_cells)
        claims.append(Claim("(Figure 14 (a))", says, None, verdict, figures=figures))
        board, names, fixed = shares
        for place, says, order, measure in (
            ("14 (b)", f"weighted variance falls with α₁, ξ₀ = {fixed}", list(names)[::-1], variance),
            ("15 (b)", f"small α₁ is better: query error rises with α₁, ξ₀ = {fixed}", list(names), error),
        ):
            figures = f"at {_listed(SHARES)} of α: {_along(board, names, *measure)}"
            claims += _steps(_beside(place, rule), f"{rule}{says}", board, order, measure, figures)
    return claims


def _beside(place: str, rule: str) -> str:
    return f"(Figure {place})" if rule else f"Figure {place}"


def _steps(
    where: str, says: str, board: Board, order: list[str], measure: tuple[str, str], figures: str
) -> Iterator[Claim]:
    """That a measure rises at each step of an order of settings, and that it is larger at the last one."""
    ends = smaller(*(board.get(name, ALPHA, *measure) for name in (order[0], order[-1])))
    yield Claim(where, f"{says}, at each step", None, _rises(board, order, *measure), figures=figures)
    yield Claim(where, f"{says}, from one end to the other", None, Verdict.over([ends]))


def _share_of_auto(boards: dict[str, Board]) -> list[Claim]:
    """What figure 16 has of the shares: the same question as figure 15 (b), with another rule."""
    there = [boards[name] for name in ("budgets", "adult") if name in boards]
    pairs = [tuple(board.get(who, alpha, "box_mae", "all") for who in DPCUBES) for board in there for alpha in ALPHAS]
    verdict = Verdict.over(smaller(quarter, half) for half, quarter in pairs)
    says = "not the paper's rule: query error at α₁ = α/4 below that at α/2, `auto`, in the settings of figure 16 (a)"
    figures = times(((quarter, half) for half, quarter in pairs), "α/2")
    return [Claim("(Figure 15 (b))", says, None, verdict, figures=figures)]


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _best_below(
    board: Board, rival: str, alpha: str, measure: str, at: str = "", rules: tuple[str, ...] = DPCUBES
) -> bool | None:
    answers = [smaller(board.get(who, alpha, measure, at), board.get(rival, alpha, measure, at)) for who in rules]
    return True if True in answers else None if None in answers else False


def _least(board: Board, rules: tuple[str, ...], alpha: str, measure: str, at: str) -> Score | None:
    there = [found for who in rules if (found := board.get(who, alpha, measure, at)) is not None]
    return min(there, key=lambda score: score.mean, default=None)


def _against_consistency(board: Board, sizes: list[str]) -> str:
    rival = "consistency check"
    pairs = ((_least(board, DPCUBES, ALPHA, "box_mae", at), board.get(rival, ALPHA, "box_mae", at)) for at in sizes)
    return times(pairs, rival)


def _along(board: Board, names: Iterable[str], measure: str, at: str = "") -> str:
    """The first and the last of a line."""
    line = [found.mean for name in names if (found := board.get(name, ALPHA, measure, at)) is not None]
    return " → ".join(f"{mean:.3g}" for mean in line)


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _rises(board: Board, names: Iterable[str], measure: str, at: str = "") -> Verdict:
    """Whether each step along a list of settings raises a measure; a step within noise is open."""
    line = [board.get(name, ALPHA, measure, at) for name in names]
    return Verdict.over(smaller(one, other) for one, other in pairwise(line))


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
