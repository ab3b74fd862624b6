"""Sun et al. (CNFG): figure 1 and table 2, on public data with as many bins as theirs and fewer records."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

import printed
import public_data
from measuring import Board, as_printed, private, scores, smaller, times
from report import Claim, Section, Verdict, shown

EPSILONS = ("1", "0.1", "0.01")
DATA = {
    "Age": public_data.brazil_age,
    "GASP": public_data.gas_cost,
    "GRNTP": public_data.gross_rent,
    "PINCP": public_data.income,
    "salaries": public_data.salaries,
}
RELEASES = (20, 5)  # in the whole and with `--quick`
SPARSE = ("GASP", "GRNTP", "PINCP")
THEIRS = ("Age", *SPARSE)  # the sets of the paper
# Table 2: seconds of NoiseFirst and of CNFG at ε = 0.1.
TABLE_2 = {"Age": (0.00468, 0.00030), "GASP": (1.02154, 0.01010), "GRNTP": (None, 0.10148), "PINCP": (None, 0.35566)}
CONTESTANTS = {
    "laplace, printed": as_printed(printed.laplace, "all of ε, scale 1/ε"),
    "cnfg, printed": as_printed(printed.cnfg, "all of ε, scale 1/ε"),
    "noise_first, Δ = 1": private("noise_first"),
    "geometric": private("geometric", sensitivity=2),
    "cnfg": private("cnfg", sensitivity=2),
    "noise_first": private("noise_first", sensitivity=2),
}
FORMS = {
    "printed": ("cnfg, printed", "laplace, printed", "noise_first, Δ = 1"),
    "private": ("cnfg", "geometric", "noise_first"),
}


def study(quick: bool) -> Section:
    """Measures all sets that are there."""
    repeat, data = RELEASES[quick], {name: load() for name, load in DATA.items()}
    found = {
        name: scores(name, counts, CONTESTANTS, EPSILONS, repeat) for name, counts in data.items() if counts is not None
    }
    if not found:
        return Section("CNFG (Sun et al.)", "no data: set DPHIST_DATA to the folder that holds them", [])
    boards = {name: Board(part) for name, part in found.items()}
    claims = [
        Claim(
            "Figure 1",
            "no gain over plain noise on Age: not below it by more than two standard errors",
            *(_no_gain(boards, form) for form in FORMS),
            figures=_times(boards, ("Age",), "sse", "geometric"),
        ),
        Claim(
            "Figure 1",
            "less SSE than plain noise on GASP, GRNTP, PINCP",
            *(_gain(boards, form) for form in FORMS),
            figures=_times(boards, SPARSE, "sse", "geometric"),
        ),
        Claim(
            "Figure 1",
            "as good as NoiseFirst on GASP, within a tenth",
            *(_as_noise_first(boards, form) for form in FORMS),
            figures=_times(boards, ("GASP",), "sse", "noise_first"),
        ),
        Claim(
            "Figure 1",
            "the most gain on PINCP, the most skewed",
            *(_most_on_income(boards, form) for form in FORMS),
            figures=_gains(boards),
            note="our GASP and GRNTP have 1,101 and 208 records, theirs 2 million: skewed in another way",
        ),
        Claim(
            "Table 2",
            "NoiseFirst cannot be run above some 1,000 bins",
            None,
            Verdict.over(
                board.get("noise_first", "0.1", "seconds") is None
                for name, board in boards.items()
                if name in SPARSE[1:]
            ),
            note="the package's search is exact and near-linear (functional pruning), so the reason for CNFG is gone",
        ),
        Claim(
            "Table 2",
            "CNFG is faster than NoiseFirst, every set and ε",
            None,
            Verdict.over(
                smaller(
                    boards[name].get("cnfg", epsilon, "seconds"), boards[name].get("noise_first", epsilon, "seconds")
                )
                for name in THEIRS
                if name in boards
                for epsilon in EPSILONS
            ),
            figures=_times(boards, THEIRS, "seconds", "noise_first"),
        ),
        Claim(
            "Table 2",
            "the gap grows with the number of bins: NoiseFirst takes more times CNFG's seconds on GASP than on Age",
            None,
            Verdict.over(_gap_grows(boards)),
            figures=_gaps(boards),
        ),
    ]
    sizes = "; ".join(f"{name} {data[name].size:,} bins, {int(data[name].sum()):,} records" for name in found)
    setting = (
        f"{repeat} releases each, ε = {', '.join(EPSILONS)}; settings of a claim: sets and ε. The paper's sets have "
        "102, 648, 5,413 and 15,551 bins and 2 to 100 million records; salaries are not in the paper. Times are "
        "seconds of the processor. Printed: neighbours by substitution with Δ = 1, which spends 2ε. Private: "
        "substitution with Δ = 2."
    )
    return Section(
        "CNFG (Sun et al.)",
        setting,
        claims,
        [_figure_1(boards), _table_2(boards)],
        found,
        contenders={name: str(who) for name, who in CONTESTANTS.items()},
        data=f"{sizes}; {repeat} releases",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}",
    )


def _no_gain(boards: dict[str, Board], form: str) -> Verdict:
    mine, plain, _ = FORMS[form]
    board = boards.get("Age")
    if board is None:
        return Verdict()
    return Verdict.over(not smaller(board.get(mine, e, "sse"), board.get(plain, e, "sse")) for e in EPSILONS)


def _gain(boards: dict[str, Board], form: str) -> Verdict:
    mine, plain, _ = FORMS[form]
    there = [boards[name] for name in SPARSE if name in boards]
    return Verdict.over(
        smaller(board.get(mine, e, "sse"), board.get(plain, e, "sse")) for board in there for e in EPSILONS
    )


def _times(boards: dict[str, Board], names: Iterable[str], measure: str, rival: str) -> str:
    return times(
        (
            (boards[name].get("cnfg", epsilon, measure), boards[name].get(rival, epsilon, measure))
            for name in names
            if name in boards
            for epsilon in EPSILONS
        ),
        rival,
    )


def _ratio(board: Board, one: str, other: str, epsilon: str, measure: str = "sse") -> tuple[float, float]:
    """How many times the second one's error the first one has, with its standard error."""
    mine, theirs = board.get(one, epsilon, measure), board.get(other, epsilon, measure)
    if mine is None or theirs is None:
        return float("nan"), 0.0
    ratio = mine.mean / theirs.mean
    return ratio, ratio * hypot(*((score.standard_error or 0.0) / score.mean for score in (mine, theirs)))


def _as_noise_first(boards: dict[str, Board], form: str) -> Verdict:
    mine, _, best = FORMS[form]
    return Verdict.over(_ratio(boards["GASP"], mine, best, e)[0] <= 1.1 for e in EPSILONS if "GASP" in boards)


def _most_on_income(boards: dict[str, Board], form: str) -> Verdict:
    """Whether both others gain less than PINCP; within noise where the nearest of them cannot be told from it."""
    mine, plain, _ = FORMS[form]
    answers: list[bool | None] = []
    for epsilon in EPSILONS if all(name in boards for name in SPARSE) else ():
        income, off = _ratio(boards["PINCP"], mine, plain, epsilon)
        nearest, other = min(_ratio(boards[name], mine, plain, epsilon) for name in SPARSE if name != "PINCP")
        answers.append(None if abs(income - nearest) <= 2 * hypot(off, other) else income < nearest)
    return Verdict.over(answers)


def _gains(boards: dict[str, Board]) -> str:
    """The errors of the private form in those of plain noise, with standard errors, along ε."""
    told = {
        name: [_ratio(boards[name], "cnfg", "geometric", epsilon) for epsilon in EPSILONS]
        for name in SPARSE
        if name in boards
    }
    parts = (f"{name} {', '.join(f'{one:.3f} ± {off:.3f}' for one, off in found)}" for name, found in told.items())
    return f"SSE in that of geometric at ε = {', '.join(EPSILONS)}: {'; '.join(parts)}"


def _gap(board: Board, epsilon: str) -> tuple[float, float]:
    """How many times CNFG's seconds NoiseFirst takes, with its standard error."""
    return _ratio(board, "noise_first", "cnfg", epsilon, "seconds")


def _gap_grows(boards: dict[str, Board]) -> list[bool | None]:
    answers: list[bool | None] = []
    for epsilon in EPSILONS if {"Age", "GASP"} <= set(boards) else ():
        (few, off), (many, other) = (_gap(boards[name], epsilon) for name in ("Age", "GASP"))
        answers.append(None if abs(few - many) <= 2 * hypot(off, other) else few < many)
    return answers


def _gaps(boards: dict[str, Board]) -> str:
    found = {name: _gap(boards[name], "0.1") for name in boards}
    return "at ε = 0.1: " + "; ".join(f"{name} {ratio:.2f} ± {off:.2f} times" for name, (ratio, off) in found.items())


def _figure_1(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [name, epsilon, *(shown(board.get(who, epsilon, "sse")) for who in CONTESTANTS)]
        for name, board in boards.items()
        for epsilon in EPSILONS
    ]
    return "Figure 1: SSE over all bins", ["set", "ε", *CONTESTANTS], rows


def _table_2(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    head = ["set", "NoiseFirst, paper", "CNFG, paper", "noise_first, here", "cnfg, here"]
    rows = []
    for name, board in boards.items():
        theirs = ["not finished" if value is None else str(value) for value in TABLE_2.get(name, ())] or ["–", "–"]
        rows.append([name, *theirs, *(shown(board.get(who, "0.1", "seconds")) for who in ("noise_first", "cnfg"))])
    return "Table 2: seconds of the processor, a release at ε = 0.1", head, rows
