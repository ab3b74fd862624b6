"""Tao et al. 2023 (DPHR): table 3 and figure 3."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import hypot
from typing import Any

import numpy as np
import printed
from measuring import SEED, Board, ahp_of_its_authors, as_printed, private, scores, smaller, times
from public_data import citations, real_waitakere, salaries
from report import Claim, Section, Verdict, shown

from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores
from dphist_pipeline.workbench.evaluation.synthetic_sets import synthetic_counts
from dphist_pipeline.workbench.evaluation.workloads import parse_workloads

EPSILONS = ("1", "0.693147", "0.1", "0.01")
RELEASES, DRAWS = (10, 2), (2_000, 500)  # in the whole and with `--quick`
SETS = ("waitakere", "social_network")
LENGTHS = "ranges:50,100,150,200,250,300,350,400,450,500"
EXAMPLE = np.array([2, 4, 2, 5, 8, 2, 3])
# Table 3: total squared error of one release each, and the errors it prints for DPHR's.
TABLE_3 = {"DPHR": 4.48908, "ihp": 13.07638, "ahp": 11.77906, "structure_first": 15.73435}
DPHR_ERRORS = (-0.23803, -0.50466, -0.19543, 0.62291, -1.17840, -0.17054, 0.57014)
GROUPS = 3  # in which the paper publishes its example: figure 2 goes as far
PRINTED, HALVES, DEFAULT, ITS_ORDER = FORMS = ("dphr, printed", "dphr, halves", "dphr", "dphr, order: exponential")
AHP = "ahp of its authors"
AT_HALVES = f"{HALVES} as algorithm 1 prints it, and AHP as its authors have it for each ε"
ALONE = 0.95  # of the squared error of cells: from there it counts as reconstruction error only
TOLD = PRINTED, HALVES  # of the trends, in the columns of the printed form and of the private one
DEPTHS = (4, 8, 12)
IHP = tuple(f"ihp, depth {depth}" for depth in DEPTHS)
FIRST = "structure_first, 16 buckets"
CONTESTANTS = {
    PRINTED: as_printed(
        printed.dphr,
        "halves; each selection among the bins whose count differs by the mean distance at most, which is taken over "
        "the bins that are left, divided by n and not rounded up, as in its example; where none is that near, the "
        "nearest count; one draw of Lap(1/ε₂)/|G| for a group (line 8 of algorithm 1 has Lap(1/2) in the text at hand, "
        "the proof of theorem 4 has Lap(1/ε₂))",
    ),
    HALVES: private("dphr", order_share="1/2"),
    DEFAULT: private("dphr"),
    ITS_ORDER: private("dphr", order="exponential", order_share="1/3", grouping_share="1/3"),
    "geometric": private("geometric"),
    AHP: ahp_of_its_authors(),
    "ahp": private("ahp"),
    FIRST: private("structure_first", buckets=16),
    **{name: private("ihp", depth=depth) for name, depth in zip(IHP, DEPTHS, strict=True)},
}
# Numbers of buckets of the example, around that of its published groups; once with the score of its authors' paper.
FIRST_AT_EXAMPLE = {
    f"structure_first, {buckets} buckets": private("structure_first", buckets=buckets) for buckets in (2, 3, 4)
}
FIRST_AT_EXAMPLE["structure_first, 3 buckets, squared"] = private(
    "structure_first", buckets=GROUPS, score="squared", count_ceiling=int(EXAMPLE.max())
)
AHP_HALVES = "ahp, halves"
AT_EXAMPLE = {
    **{who: how for who, how in CONTESTANTS.items() if who != FIRST},
    AHP_HALVES: private("ahp", order_share="1/2"),
    **FIRST_AT_EXAMPLE,
}
NO_BUCKETS = "the number of StructureFirst's buckets is not told"
NO_DEPTH = "no setting of IHP is told, and its authors' paper is not at hand"
NO_ORDER = ", and the order of the bins is invented"
REAL = {"salaries": salaries, "HEPTH": citations, "real meshblocks": real_waitakere}
BIGGEST = "selections serve up to 5,000 cells, and so the real sets alone"
STOOD_IN, THERE = "stand-ins", "real sets"


def study(quick: bool) -> Section:
    """Measures the example, stand-ins and real sets."""
    repeat = RELEASES[quick]
    example = {"example": _example(DRAWS[quick])}
    data = {name: synthetic_counts(name) for name in SETS}
    data |= {name: counts for name, load in REAL.items() if (counts := load()) is not None}
    found = {}
    for name, counts in data.items():
        # On stand-ins StructureFirst takes minutes, and its claim could not be judged: their order is invented.
        who = {one: how for one, how in CONTESTANTS.items() if one != FIRST or name not in SETS}
        found[name] = scores(name, counts, who, EPSILONS, repeat, parse_workloads([LENGTHS], counts.shape))
    small, boards = Board(example["example"]), {name: Board(part) for name, part in found.items()}
    shares = {form: {name: _reconstruction(form, counts, repeat) for name, counts in data.items()} for form in TOLD}
    kinds = {
        STOOD_IN: {name: board for name, board in boards.items() if name in SETS},
        THERE: {name: board for name, board in boards.items() if name not in SETS},
    }

    def compared(who: str, rivals: Iterable[str]) -> dict[str, Any]:
        """Verdicts and figures of the example's errors, as printed and of a private form."""
        return {
            "printed": Verdict.over(_at_example(small, PRINTED, rival) for rival in rivals),
            "private": Verdict.over(_at_example(small, who, rival) for rival in rivals),
            "figures": "; ".join(f"{one} {_at(small, one)}" for one in (who, *rivals)),
            "printed_figures": f"{_at(small, PRINTED)}; with its example's noise {_at(small, 'as in its example')}",
        }

    def along(kind: str, who: str, rivals: Iterable[str]) -> dict[str, Any]:
        """The same of ranges on stand-ins or real sets."""
        return {
            "printed": Verdict.over(answer for rival in rivals for answer in _along(kinds[kind], PRINTED, rival)),
            "private": Verdict.over(answer for rival in rivals for answer in _along(kinds[kind], who, rival)),
            "figures": "; ".join(_times(kinds[kind], who, rival) for rival in rivals),
            "printed_figures": "; ".join(_times(kinds[kind], PRINTED, rival) for rival in rivals),
        }

    least, ranges = "squared error on the example of seven bins below", "MSE for ranges of 50 to 500 below"
    claims = [
        Claim("Table 3", f"{least} AHP's, {AT_HALVES}", **compared(HALVES, [AHP]), note=_squares()),
        Claim("Table 3", f"{least} StructureFirst's", **compared(HALVES, FIRST_AT_EXAMPLE), unjudged=NO_BUCKETS),
        Claim("Table 3", f"{least} IHP's", **compared(HALVES, IHP), unjudged=NO_DEPTH),
        *(
            Claim("(Table 3)", f"{least} AHP's, {HALVES}, and AHP at {words}", **compared(HALVES, [rival]))
            for rival, words in ((AHP_HALVES, "halves with our threshold"), ("ahp", "our default of 17/20"))
        ),
        Claim("(Table 3)", f"{least} AHP's, {DEFAULT} at our default of 17/20", **compared(DEFAULT, [AHP])),
        Claim(
            "(Table 3)",
            f"{least} AHP's, {ITS_ORDER}, which needs a third share: thirds",
            **compared(ITS_ORDER, [AHP]),
            note="as printed it selects too, but from exact counts, each time with all of ε₁",
        ),
        *(Claim("(Table 3)", f"{least} plain noise's, {form}", **compared(form, ["geometric"])) for form in FORMS[1:]),
        *(
            claim
            for kind in kinds
            for claim in (
                Claim("Figure 3", f"{ranges} AHP's, {kind}, {AT_HALVES}", **along(kind, HALVES, [AHP])),
                Claim(
                    "Figure 3",
                    f"{ranges} IHP's, {kind}",
                    **along(kind, HALVES, IHP),
                    unjudged=NO_DEPTH + (NO_ORDER if kind == STOOD_IN else ""),
                ),
                Claim(
                    "(Figure 3)",
                    f"{ranges} AHP's, {kind}, both at our default of 17/20",
                    **along(kind, DEFAULT, ["ahp"]),
                ),
                *(
                    Claim("(Figure 3)", f"{ranges} plain noise's, {kind}, {form}", **along(kind, form, ["geometric"]))
                    for form in (HALVES, DEFAULT)
                ),
            )
        ),
        Claim("Figure 3", f"{ranges} StructureFirst's, {THERE}", **along(THERE, HALVES, [FIRST]), unjudged=NO_BUCKETS),
        Claim(
            "(Figure 3)",
            f"{ranges} AHP's, {THERE}, {ITS_ORDER}, which needs a third share: thirds",
            **along(THERE, ITS_ORDER, [AHP]),
            note=BIGGEST,
        ),
        Claim(
            "Figure 3",
            f"at ε = 1 the global error is only the reconstruction error: {ALONE:.0%} of the squared error of cells",
            *(Verdict.over(share >= ALONE for share in shares[form].values()) for form in TOLD),
            figures=_shares_told(shares[TOLD[1]]),
            printed_figures=_shares_told(shares[TOLD[0]]),
        ),
        Claim(
            "Figure 3",
            "MSE grows with the length: ranges of 500 have more than ranges of 50, all sets",
            *(Verdict.over(_grows(boards, form)) for form in TOLD),
            note="a range of 500 has 10 times the cells",
            figures=_growths(boards, TOLD[1]),
            printed_figures=_growths(boards, TOLD[0]),
        ),
        Claim(
            "Figure 3",
            "with the query time MSE tends to be stable; taken for the length: it grows by less from 450 to 500 than "
            "from 50 to 100, all sets",
            *(Verdict.over(_settles(boards, form)) for form in TOLD),
            unjudged="what query time means is not told, and with the length the error grows, as the paper itself says",
            figures=_last_steps(boards, TOLD[1]),
            printed_figures=_last_steps(boards, TOLD[0]),
        ),
        Claim(
            "Figure 3",
            "MSE falls at each step of ε from 0.01 to 1, all sets and lengths",
            *(Verdict.over(_falls(boards, form)) for form in TOLD),
            figures=_whole_fall(boards, TOLD[1]),
            printed_figures=_whole_fall(boards, TOLD[0]),
        ),
        Claim(
            "Figure 3",
            "MSE on Social_Network above that on Waitakere",
            *(Verdict.over(_larger_on_social(boards, form)) for form in TOLD),
            figures=_social_times(boards, TOLD[1]),
            printed_figures=_social_times(boards, TOLD[0]),
        ),
    ]
    there = f", and real: {', '.join(kinds[THERE])}" if kinds[THERE] else ""
    setting = (
        f"Synthetic stand-ins for Waitakere and Social_Network in random order{there}; {repeat} releases each; "
        f"settings of a claim: sets, ε = {', '.join(EPSILONS)} and all ranges of 50, 100, … 500 bins. Printed: n "
        "selections with ε₁ each among candidates read from exact counts, and groups of exact counts: no finite ε "
        "covers it. Private: order and groups from noisy counts; with `order: exponential`, order by private "
        f"selections and groups from noisy counts; {BIGGEST}. Claims are judged at halves, as algorithm 1 prints. "
        "Rivals are the package's private forms in both columns, each exact on every set: AHP with its authors' share "
        "and threshold for each ε (those of ε = 1 at ln 2), since the paper tells none. It tells neither "
        "StructureFirst's number of buckets nor a setting of IHP: what is found at ours decides nothing."
    )
    return Section(
        "DPHR (Tao et al. 2023)",
        setting,
        claims,
        [_table_3(small), _figure_3(boards)],
        {**example, **found},
        contenders={name: str(who) for name, who in CONTESTANTS.items()}
        | {f"{name}, example": str(who) for name, who in AT_EXAMPLE.items() if name not in CONTESTANTS},
        data=f"the example of seven bins; stand-ins of its two sets{there}; {repeat} releases, of "
        f"the example {DRAWS[quick]:,}",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}, for the example {DRAWS[1]:,} in place of {DRAWS[0]:,}",
    )


def _squares() -> str:
    return (
        f"the errors that it prints for DPHR have squares that sum to {_printed_squares():.2f}, not to 4.49; they come "
        "from Lap(1/2), a quarter of the scale that its own algorithm adds at ε = 1"
    )


def _reconstruction(form: str, counts: np.ndarray, repeat: int) -> float:
    """The part of the squared error of cells, at ε = 1, that is left when groups have their exact means."""
    random, within, whole = np.random.default_rng(SEED), 0.0, 0.0
    for _ in range(repeat):
        made = CONTESTANTS[form](counts, Fraction(1), random)
        assert made.groups is not None, "DPHR groups cells"
        groups = made.groups.ravel()
        means = np.bincount(groups, weights=counts) / np.bincount(groups)
        within += float(((counts - means[groups]) ** 2).sum())
        whole += float(((counts - made.values) ** 2).sum())
    return within / whole


def _shares_told(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items())


def _at(board: Board, who: str) -> str:
    """The squared error on the example."""
    return shown(board.get(who, "1", "sse"))


def _times(boards: dict[str, Board], form: str, rival: str) -> str:
    return times(
        (
            (board.get(form, epsilon, "range_mse", at), board.get(rival, epsilon, "range_mse", at))
            for board in boards.values()
            for epsilon in EPSILONS
            for at in board.places("range_mse")
        ),
        rival,
    )


def _example(repeat: int) -> list[MeasureResult]:
    random = np.random.default_rng(SEED)
    found = scores("example", EXAMPLE, AT_EXAMPLE, ("1",), repeat)
    runs = [{("sse", ""): float(((printed.dphr_example(EXAMPLE, random) - EXAMPLE) ** 2).sum())} for _ in range(repeat)]
    return found + aggregate_scores("as in its example", Fraction(1), runs)


def _printed_squares() -> float:
    return sum(error**2 for error in DPHR_ERRORS)


def _at_example(board: Board, form: str, rival: str) -> bool | None:
    return smaller(board.get(form, "1", "sse"), board.get(rival, "1", "sse"))


def _along(boards: dict[str, Board], form: str, rival: str) -> list[bool | None]:
    return [
        smaller(board.get(form, epsilon, "range_mse", at), board.get(rival, epsilon, "range_mse", at))
        for board in boards.values()
        for epsilon in EPSILONS
        for at in board.places("range_mse")
        if board.get(rival, epsilon, "range_mse", at) and board.get(form, epsilon, "range_mse", at)
    ]


def _grows(boards: dict[str, Board], form: str) -> list[bool | None]:
    return [smaller(line[0], line[-1]) for line in _lines(boards, form)]


def _lines(boards: dict[str, Board], form: str) -> list[list[MeasureResult]]:
    """The error along the lengths of ranges, of every set and epsilon."""
    return [
        [found for at in board.places("range_mse") if (found := board.get(form, epsilon, "range_mse", at))]
        for board in boards.values()
        for epsilon in EPSILONS
    ]


def _growths(boards: dict[str, Board], form: str) -> str:
    return _spread(line[-1].mean / line[0].mean for line in _lines(boards, form))


def _last_steps(boards: dict[str, Board], form: str) -> str:
    told = _spread((line[-1].mean - line[-2].mean) / (line[1].mean - line[0].mean) for line in _lines(boards, form))
    return f"the last step has {told} the growth of the first"


def _whole_fall(boards: dict[str, Board], form: str) -> str:
    ends = EPSILONS[0], EPSILONS[-1]
    pairs = (
        [board.get(form, epsilon, "range_mse", at) for epsilon in ends]
        for board in boards.values()
        for at in board.places("range_mse")
    )
    return (
        f"at ε = {ends[0]} {_spread(one.mean / other.mean for one, other in pairs if one and other)} that at {ends[1]}"
    )


def _social_times(boards: dict[str, Board], form: str) -> str:
    waitakere, social = (boards[name] for name in SETS)
    return times(
        ((social.get(form, epsilon, "range_mse"), waitakere.get(form, epsilon, "range_mse")) for epsilon in EPSILONS),
        "Waitakere",
    )


def _spread(ratios: Iterable[float]) -> str:
    found = sorted(ratios)
    return f"{found[0]:.3g} to {found[-1]:.3g} times"


def _settles(boards: dict[str, Board], form: str) -> list[bool | None]:
    answers: list[bool | None] = []
    for line in _lines(boards, form):
        first, *_, last = (other.mean - one.mean for one, other in pairwise(line))
        noise = 2 * hypot(*(one.standard_error or 0.0 for one in (*line[:2], *line[-2:])))
        answers.append(None if abs(first - last) <= noise else last < first)
    return answers


def _falls(boards: dict[str, Board], form: str) -> list[bool | None]:
    return [
        smaller(board.get(form, high, "range_mse", at), board.get(form, low, "range_mse", at))
        for board in boards.values()
        for high, low in pairwise(EPSILONS)
        for at in board.places("range_mse")
    ]


def _larger_on_social(boards: dict[str, Board], form: str) -> list[bool | None]:
    waitakere, social = (boards[name] for name in SETS)
    return [
        smaller(waitakere.get(form, epsilon, "range_mse"), social.get(form, epsilon, "range_mse"))
        for epsilon in EPSILONS
    ]


def _table_3(board: Board) -> tuple[str, list[str], list[list[str]]]:
    names = {"as in its example": "DPHR", **dict.fromkeys(FORMS, "DPHR")}
    rows = [
        [who, str(TABLE_3.get(names.get(who, re.split("[, ]", who)[0]), "–")), shown(board.get(who, "1", "sse"))]
        for who in ("as in its example", *AT_EXAMPLE)
    ]
    return "Table 3: total squared error on the example, ε = 1", ["who", "paper, one release", "here, mean"], rows


def _figure_3(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [name, epsilon, length, *(shown(board.get(who, epsilon, "range_mse", length)) for who in CONTESTANTS)]
        for name, board in boards.items()
        for epsilon in EPSILONS
        for length in ("50", "500")
    ]
    return "Figure 3: MSE of all ranges of a length", ["set", "ε", "length", *CONTESTANTS], rows
