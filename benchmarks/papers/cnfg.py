"""Sun et al. (CNFG): figure 1 and table 2, on public data with as many bins as theirs and fewer records."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import combinations
from math import hypot

import numpy as np
import printed
import public_data
from measuring import Board, as_printed, private, scores, smaller, times
from report import Claim, Section, Verdict, shown

EPSILONS = ("1", "0.1", "0.01")
AGE_RECORDS = 100_079_675  # of the paper's Age
DATA = {
    "Age": lambda: _as_many(public_data.brazil_age()),
    "GASP": public_data.gas_cost,
    "GRNTP": public_data.gross_rent,
    "PINCP": public_data.income,
    "salaries": public_data.salaries,
}
RELEASES = (20, 5)  # in the whole and with `--quick`
LOW = 1  # records: what counts as a low count
SPARSE = ("GASP", "GRNTP", "PINCP")
THEIRS = ("Age", *SPARSE)  # the sets of the paper
# Table 2: seconds of NoiseFirst and of CNFG at ε = 0.1.
TABLE_2 = {"Age": (0.00468, 0.00030), "GASP": (1.02154, 0.01010), "GRNTP": (None, 0.10148), "PINCP": (None, 0.35566)}
GREEDY, SEARCHED = "cnfg, printed", "noise_first, printed"
MOST_SEARCHED = 1_000  # bins: above, its O(m³) search takes seconds to minutes
DOUBLED = (300, 600, 1_200, 2_400)  # bins of PINCP, of which that search is timed alone
CONTESTANTS = {
    "laplace, printed": as_printed(printed.laplace, "all of ε, scale 1/ε"),
    GREEDY: as_printed(printed.cnfg, "all of ε, scale 1/ε"),
    "noise_first, Δ = 1": private("noise_first"),
    "geometric": private("geometric", sensitivity=2),
    "cnfg": private("cnfg", sensitivity=2),
    "noise_first": private("noise_first", sensitivity=2),
}
BY_LOOPS = {
    SEARCHED: as_printed(
        printed.noise_first, "all of ε, scale 1/ε, all numbers of buckets one after the other, O(m³), compiled"
    )
}
FORMS = {
    "printed": ("cnfg, printed", "laplace, printed", "noise_first, Δ = 1"),
    "private": ("cnfg", "geometric", "noise_first"),
}


def study(quick: bool) -> Section:
    """Measures all sets that are there."""
    repeat, data = RELEASES[quick], {name: load() for name, load in DATA.items()}
    found = {
        name: scores(name, counts, CONTESTANTS | (BY_LOOPS if counts.size <= MOST_SEARCHED else {}), EPSILONS, repeat)
        for name, counts in data.items()
        if counts is not None
    }
    if not found:
        return Section("CNFG (Sun et al.)", "no data: set DPHIST_DATA to the folder that holds them", [])
    boards = {name: Board(part) for name, part in found.items()}
    low = {name: float((data[name] <= LOW).mean()) for name in THEIRS if name in boards}
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
            "the more low counts the more gain, of every two of its sets",
            *(_more_gain(boards, low, form) for form in FORMS),
            figures=f"{_low_told(low)} of the bins count {LOW} or less; {_gains(boards)}",
        ),
        Claim(
            "Figure 1",
            "the most gain on PINCP",
            *(_most_on_income(boards, form) for form in FORMS),
            unjudged="the paper's PINCP has the most low counts, and ours has not",
        ),
        Claim(
            "Table 2",
            "CNFG is faster than NoiseFirst as it is printed, Age and GASP, every ε",
            None,
            Verdict.over(
                smaller(boards[name].get(GREEDY, epsilon, "seconds"), boards[name].get(SEARCHED, epsilon, "seconds"))
                for name in ("Age", "GASP")
                if name in boards
                for epsilon in EPSILONS
            ),
            note="times of both as printed, with the same noise: the search alone makes the difference",
            figures=_times(boards, ("Age", "GASP"), "seconds", SEARCHED, GREEDY),
        ),
        Claim(
            "Table 2",
            "the gap grows with the number of bins: NoiseFirst as it is printed takes more times CNFG's seconds on "
            "GASP than on Age",
            None,
            Verdict.over(_gap_grows(boards)),
            figures=_gaps(boards, SEARCHED),
        ),
        Claim(
            "Table 2",
            "NoiseFirst as it is printed cannot be run in acceptable time with 5,413 bins and more",
            None,
            Verdict(),
            unjudged="what time is acceptable is not told",
            figures=_search_told(data),
        ),
        Claim(
            "(Table 2)",
            "CNFG is faster than `noise_first`, whose search is exact and near-linear (functional pruning), every set "
            "and ε",
            None,
            Verdict.over(
                smaller(
                    boards[name].get("cnfg", epsilon, "seconds"), boards[name].get("noise_first", epsilon, "seconds")
                )
                for name in THEIRS
                if name in boards
                for epsilon in EPSILONS
            ),
            figures=f"{_times(boards, THEIRS, 'seconds', 'noise_first')}; {_gaps(boards, 'noise_first')}",
        ),
    ]
    sizes = "; ".join(f"{name} {data[name].size:,} bins, {int(data[name].sum()):,} records" for name in found)
    setting = (
        f"{repeat} releases each, ε = {', '.join(EPSILONS)}; settings of a claim: sets and ε. The paper's sets have "
        "102, 648, 5,413 and 15,551 bins and 2 to 100 million records; salaries are not in the paper. The file on Age "
        "holds household heads of 10 years and more: its counts are multiplied to the paper's number of records, since "
        "Age has no low counts there. The other sets have fewer records than the paper's. Times are "
        "seconds of the processor; NoiseFirst is built as it is printed, too, for up to 1,000 bins. "
        "Printed: neighbours by substitution with Δ = 1, which spends 2ε. Private: "
        "substitution with Δ = 2."
    )
    return Section(
        "CNFG (Sun et al.)",
        setting,
        claims,
        [_figure_1(boards), _table_2(boards)],
        found,
        contenders={name: str(who) for name, who in (CONTESTANTS | BY_LOOPS).items()},
        data=f"{sizes}; {repeat} releases",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}",
    )


def _as_many(counts: np.ndarray | None) -> np.ndarray | None:
    """The ages that the file holds, each as many times as it takes to have the records of the paper's set."""
    return None if counts is None else np.rint(counts[counts > 0] * (AGE_RECORDS / counts.sum())).astype(np.int64)


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


def _times(boards: dict[str, Board], names: Iterable[str], measure: str, rival: str, mine: str = "cnfg") -> str:
    return times(
        (
            (boards[name].get(mine, epsilon, measure), boards[name].get(rival, epsilon, measure))
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


def _more_gain(boards: dict[str, Board], low: dict[str, float], form: str) -> Verdict:
    """Whether of two sets the one with the larger share of low counts has less of the error of plain noise."""
    mine, plain, _ = FORMS[form]
    answers: list[bool | None] = []
    for few, many in combinations(sorted(low, key=low.__getitem__), 2):
        for epsilon in EPSILONS:
            (one, off), (two, other) = (_ratio(boards[name], mine, plain, epsilon) for name in (few, many))
            answers.append(None if abs(one - two) <= 2 * hypot(off, other) else two < one)
    return Verdict.over(answers)


def _low_told(low: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in low.items())


def _gains(boards: dict[str, Board]) -> str:
    """The errors of the private form in those of plain noise, with standard errors, along ε."""
    told = {
        name: [_ratio(boards[name], "cnfg", "geometric", epsilon) for epsilon in EPSILONS]
        for name in THEIRS
        if name in boards
    }
    parts = (f"{name} {', '.join(f'{one:.3f} ± {off:.3f}' for one, off in found)}" for name, found in told.items())
    return f"SSE in that of geometric at ε = {', '.join(EPSILONS)}: {'; '.join(parts)}"


def _gap(board: Board, epsilon: str, search: str) -> tuple[float, float]:
    """How many times CNFG's seconds a search of NoiseFirst takes, with its standard error."""
    return _ratio(board, search, GREEDY if search == SEARCHED else "cnfg", epsilon, "seconds")


def _gap_grows(boards: dict[str, Board]) -> list[bool | None]:
    answers: list[bool | None] = []
    for epsilon in EPSILONS if {"Age", "GASP"} <= set(boards) else ():
        (few, off), (many, other) = (_gap(boards[name], epsilon, SEARCHED) for name in ("Age", "GASP"))
        answers.append(None if abs(few - many) <= 2 * hypot(off, other) else few < many)
    return answers


def _gaps(boards: dict[str, Board], search: str) -> str:
    found = {name: _gap(board, "0.1", search) for name, board in boards.items() if board.get(search, "0.1", "seconds")}
    return "at ε = 0.1: " + "; ".join(f"{name} {ratio:.3g} ± {off:.2g} times" for name, (ratio, off) in found.items())


def _search_told(data: dict[str, np.ndarray | None]) -> str:
    """The seconds of the printed search on the first bins of PINCP, and by how much they grow."""
    line = data["PINCP"]
    if line is None:
        return ""
    seconds = []
    for size in DOUBLED:
        noisy = line[:size] + np.random.default_rng(size).laplace(0, 10, size)
        printed.buckets_by_loops(noisy[:4], 400.0)  # compiles
        start = time.process_time()
        printed.buckets_by_loops(noisy, 400.0)
        seconds.append(time.process_time() - start)
    growth = float(np.polyfit(np.log(DOUBLED), np.log(seconds), 1)[0])
    there = ", ".join(f"{one:.2g} s" for one in seconds)
    most = max(counts.size for counts in data.values() if counts is not None)
    later = (seconds[-1] * (bins / DOUBLED[-1]) ** 3 for bins in (5_413, most))
    return (
        f"compiled, its search takes {there} for {', '.join(f'{size:,}' for size in DOUBLED)} bins, which grows as "
        f"m^{growth:.1f}; by m³ that is {' and '.join(f'{one:,.0f} s' for one in later)} for 5,413 and {most:,} bins"
    )


def _figure_1(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [name, epsilon, *(shown(board.get(who, epsilon, "sse")) for who in CONTESTANTS)]
        for name, board in boards.items()
        for epsilon in EPSILONS
    ]
    return "Figure 1: SSE over all bins", ["set", "ε", *CONTESTANTS], rows


def _table_2(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    ours = (SEARCHED, GREEDY, "noise_first", "cnfg")
    head = ["set", "NoiseFirst, paper", "CNFG, paper", *(f"{who}, here" for who in ours)]
    rows = []
    for name, board in boards.items():
        theirs = ["not finished" if value is None else str(value) for value in TABLE_2.get(name, ())] or ["–", "–"]
        rows.append([name, *theirs, *(shown(board.get(who, "0.1", "seconds")) for who in ours)])
    return "Table 2: seconds of the processor, a release at ε = 0.1", head, rows
