"""Tao et al. 2023 (DPHR): table 3 and figure 3."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import hypot

import numpy as np
import printed
from measuring import SEED, Board, as_printed, private, scores, smaller, times
from public_data import citations, real_waitakere, salaries
from report import Claim, Section, Verdict, shown

from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores
from dphist_pipeline.workbench.evaluation.synthetic_sets import synthetic_counts
from dphist_pipeline.workbench.evaluation.workloads import parse_workloads

EPSILONS = ("1", "0.693147", "0.1", "0.01")
RELEASES, DRAWS = (10, 2), (5_000, 500)  # in the whole and with `--quick`
SETS = ("waitakere", "social_network")
LENGTHS = "ranges:50,100,150,200,250,300,350,400,450,500"
EXAMPLE = np.array([2, 4, 2, 5, 8, 2, 3])
# Table 3: total squared error of one release each, and the errors it prints for DPHR's.
TABLE_3 = {"DPHR": 4.48908, "ihp": 13.07638, "ahp": 11.77906, "structure_first": 15.73435}
DPHR_ERRORS = (-0.23803, -0.50466, -0.19543, 0.62291, -1.17840, -0.17054, 0.57014)
GROUPS = 3  # in which the paper publishes its example: figure 2 goes as far, and StructureFirst needs their number
RIVALS = ("structure_first", "ahp", "ahp, halves", "ihp")
ITS_ORDER = "dphr, order: exponential"
FORMS = ("dphr, printed", "dphr", "dphr, halves", ITS_ORDER)
AT_HALVES = "all at halves (the paper prints ε/2 for DPHR, and no rival's shares)"
BY_SELECTION = "DPHR with its own ordering by selections, in thirds"
SPLITS = (
    ("dphr, halves", AT_HALVES, ("structure_first", "ahp, halves", "ihp")),
    ("dphr", "DPHR and AHP at their defaults of 17/20", ("structure_first", "ahp", "ihp")),
    (ITS_ORDER, BY_SELECTION, ("structure_first", "ahp, halves", "ihp")),
)
ALONE = 0.95  # of the squared error of cells: from there it counts as reconstruction error only
TOLD = FORMS[:2]  # of the trends, in the columns of the printed form and of the private one
CONTESTANTS = {
    "dphr, printed": as_printed(
        printed.dphr,
        "halves; each selection among the bins whose count differs by the mean distance at most, which is taken over "
        "the bins that are left, divided by n and not rounded up, as in its example; where none is that near, the "
        "nearest count; one draw of Lap(1/ε₂)/|G| for a group (line 8 of algorithm 1 has Lap(1/2) in the text at hand, "
        "the proof of theorem 4 has Lap(1/ε₂))",
    ),
    "dphr": private("dphr"),
    "dphr, halves": private("dphr", order_share="1/2"),
    ITS_ORDER: private("dphr", order="exponential", order_share="1/3", grouping_share="1/3"),
    "geometric": private("geometric"),
    "structure_first": private("structure_first"),
    "ahp": private("ahp"),
    "ahp, halves": private("ahp", order_share="1/2"),
    "ihp": private("ihp"),
}
AT_EXAMPLE = CONTESTANTS | {"structure_first": private("structure_first", buckets=GROUPS)}
REAL = {"salaries": salaries, "HEPTH": citations, "real meshblocks": real_waitakere}
BIGGEST = "selections serve up to 5,000 cells, and so the real sets alone"
STOOD_IN, THERE = "stand-ins", "real sets"


def study(quick: bool) -> Section:
    """Measures the example, stand-ins and real sets."""
    repeat = RELEASES[quick]
    example = {"example": _example(DRAWS[quick])}
    data = {name: synthetic_counts(name) for name in SETS}
    data |= {name: counts for name, load in REAL.items() if (counts := load()) is not None}
    found = {
        name: scores(name, counts, CONTESTANTS, EPSILONS, repeat, parse_workloads([LENGTHS], counts.shape))
        for name, counts in data.items()
    }
    small, boards = Board(example["example"]), {name: Board(part) for name, part in found.items()}
    shares = {form: {name: _reconstruction(form, counts, repeat) for name, counts in data.items()} for form in TOLD}
    kinds = {
        STOOD_IN: {name: board for name, board in boards.items() if name in SETS},
        THERE: {name: board for name, board in boards.items() if name not in SETS},
    }
    claims = [
        *(
            Claim(
                "Table 3",
                f"least squared error on the example of seven bins, against StructureFirst, AHP and IHP, {split}",
                Verdict.over(_at_example(small, FORMS[0], rival) for rival in rivals),
                Verdict.over(_at_example(small, form, rival) for rival in rivals),
                note=_note(split),
                figures="; ".join(f"{who} {_at(small, who)}" for who in (form, *rivals)),
                printed_figures=f"{_at(small, FORMS[0])}; with the noise of its example "
                f"{_at(small, 'as in its example')}",
            )
            for form, split, rivals in SPLITS
        ),
        Claim(
            "(Table 3)",
            "squared error on the example below plain noise's",
            Verdict.over([_at_example(small, FORMS[0], "geometric")]),
            Verdict.over(_at_example(small, form, "geometric") for form in FORMS[1:]),
            figures="; ".join(f"{who} {_at(small, who)}" for who in ("geometric", *FORMS[1:])),
            printed_figures=_at(small, FORMS[0]),
        ),
        *(
            Claim(
                place,
                f"MSE below {rival}'s for ranges of 50 to 500, {kind}, {split}",
                *(Verdict.over(_along(kinds[kind], form, rival)) for form in (FORMS[0], mine)),
                note=f"{BIGGEST}; shares of a third each" if mine == ITS_ORDER else "",
                figures=_times(kinds[kind], mine, rival),
                printed_figures=_times(kinds[kind], FORMS[0], rival),
            )
            for kind in kinds
            for place, mine, split, rivals in (
                *(("Figure 3", *split) for split in SPLITS if split[0] != ITS_ORDER or kind == THERE),
                ("(Figure 3)", "dphr", "at its default", ("geometric",)),
            )
            for rival in rivals
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
            "MSE tends to be stable with the length: it grows by less from 450 to 500 than from 50 to 100, all sets",
            *(Verdict.over(_settles(boards, form)) for form in TOLD),
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
        f"selections and groups from noisy counts; {BIGGEST}. Rivals are the package's private "
        "forms in both columns, each exact on every set. On the example `structure_first` has "
        f"{GROUPS} buckets, as many as the groups that the paper publishes; elsewhere 16, its default, since the paper "
        "tells no number."
    )
    return Section(
        "DPHR (Tao et al. 2023)",
        setting,
        claims,
        [_table_3(small), _figure_3(boards)],
        {**example, **found},
        contenders={name: str(who) for name, who in CONTESTANTS.items()}
        | {"structure_first, example": str(AT_EXAMPLE["structure_first"])},
        data=f"the example of seven bins; stand-ins of its two sets{there}; {repeat} releases, of "
        f"the example {DRAWS[quick]:,}",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}, for the example {DRAWS[1]:,} in place of {DRAWS[0]:,}",
    )


def _note(split: str) -> str:
    if split == BY_SELECTION:
        return "as printed it selects too, but from exact counts, each time with all of ε₁"
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
    names = {"as in its example": "DPHR", **dict.fromkeys(FORMS, "DPHR"), "ahp, halves": "ahp"}
    rows = [
        [who, str(TABLE_3.get(names.get(who, who), "–")), shown(board.get(who, "1", "sse"))]
        for who in ("as in its example", *CONTESTANTS)
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
