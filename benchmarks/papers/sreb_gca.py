"""Chen et al. 2024 (SReB_GCA): table 2 and figures 4 to 6, on stand-ins with the statistics of its table 1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import hypot

import numpy as np
import printed
from measuring import SEED, Board, Private, ahp_of_its_authors, as_printed, private, scores, smaller, times
from public_data import real_waitakere
from report import Claim, Section, Verdict, shown

from dphist_pipeline.mechanisms.sreb_gca import MOST_EXACT
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult
from dphist_pipeline.workbench.evaluation.synthetic_sets import SETS, synthetic_counts
from dphist_pipeline.workbench.evaluation.workloads import parse_workloads

EPSILONS = ("1", "0.1", "0.01")
# Table 2: KL divergence of AHP and of SReB_GCA at each epsilon.
TABLE_2 = {
    "waitakere": ((0.018, 0.0004), (0.203, 0.056), (0.467, 0.171)),
    "search_log": ((0.054, 0.0001), (0.103, 0.009), (0.189, 0.099)),
    "net_trace": ((0.153, 0.004), (0.572, 0.092), (1.229, 0.252)),
    "social_network": ((0.071, 0.0001), (0.309, 0.003), (0.825, 0.099)),
}
AHP = "ahp of its authors"
# The paper tells no share: ours, and one on either side, the larger that of AHP's authors at ε = 0.1.
SHARES, OURS = ("1/4", "1/2", "17/20"), "1/2"
SEARCHES = {"GGS": "greedy", "GP": "greedy_problem", "OP": "exact"}


def _at_shares(search: str) -> dict[str, Private]:
    """One search at each share; at ours it has the name of the search alone."""
    return {_named(search, share): private("sreb_gca", order_share=share, search=SEARCHES[search]) for share in SHARES}


def _named(search: str, share: str) -> str:
    return search if share == OURS else f"{search}, share {share}"


CONTESTANTS = {
    "geometric": private("geometric"),
    AHP: ahp_of_its_authors(),
    "ahp, halves": private("ahp", order_share="1/2"),
    "ahp": private("ahp"),
    **_at_shares("GGS"),
    **_at_shares("GP"),
    "printed": as_printed(printed.sreb_gca, "halves, a draw of scale λ₂/|C| for every bin of a group"),
    "printed, counts ≥ 1": as_printed(printed.sreb_gca_at_least_one, "the same, counts below 1 grouped as 1"),
}
# The paper does not say what becomes of counts below 1: a claim holds as printed where either reading has it.
PRINTED = ("printed", "printed, counts ≥ 1")
# OP takes time that grows with the square of the bins, and serves up to 32,768.
EXACT = _at_shares("OP")
SMALL, LARGE = 10, 100
MOSTLY = 0.5  # of the bins: so many are small where the paper's premise holds, that small bins prevail
RELEASES, EXACT_RELEASES = (10, 3), (3, 2)  # in the whole and with `--quick`
MOST_BY_OP = (MOST_EXACT, 12_000)  # bins, likewise
BESIDE = "; where few bins are small"
Answers = list[bool | None]


def study(quick: bool) -> Section:
    """Measures all sets."""
    repeat, data = RELEASES[quick], {name: synthetic_counts(name) for name in SETS}
    if (real := real_waitakere()) is not None:
        data["real meshblocks"] = real
    found = {}
    for name, counts in data.items():
        workloads = parse_workloads([], counts.shape)
        found[name] = scores(name, counts, CONTESTANTS, EPSILONS, repeat, workloads)
        if counts.size <= MOST_BY_OP[quick]:
            found[name] += scores(name, counts, EXACT, EPSILONS, EXACT_RELEASES[quick], workloads)
    boards = {name: Board(part) for name, part in found.items()}
    small = {name: float((counts <= SMALL).mean()) for name, counts in data.items()}
    judged, beside = (
        {name: board for name, board in boards.items() if (small[name] > MOSTLY) is premise}
        for premise in (True, False)
    )
    claims = [claim for search in SEARCHES for claim in _claims(judged, beside, search)]
    claims += _searches(boards, {name: _seconds_by_loops(counts) for name, counts in data.items()})
    too = ", and the real 1,340 meshblocks of Waitakere" if real is not None else ""
    setting = (
        f"Synthetic stand-ins for its four sets (size, mean, variance, range as in table 1){too}; {repeat} releases "
        f"each, ε = {', '.join(EPSILONS)}. In the paper's sets small bins prevail: its claims are judged where "
        f"more than half of the bins count {SMALL} or less ({_shares(judged, small)}), and told beside that for the "
        f"others ({_shares(beside, small)}). AHP is judged with its authors' share and threshold for each ε, since the "
        "paper tells none. Nor does it tell its own share: claims are judged at "
        f"{' and '.join((', '.join(SHARES[:-1]), SHARES[-1]))} of ε for the order, and a setting in which they hold at "
        "one share and fail at another turns with it. Settings of a claim: sets and ε; in figure 4 also classes of "
        "counts (0, 1, 2 to 5, 6 to 10, …), in figure 5 lengths of ranges (1, 50, 100, … 500). Printed: Lap(λ₂)/|C| "
        "drawn for every bin of a group, at halves, in the better of two readings, by GGS. Private: one draw a group, "
        f"by each of the paper's searches: GGS (algorithm 2), GP and, in {EXACT_RELEASES[quick]} releases where a set "
        f"has at most {MOST_BY_OP[quick]:,} bins, OP."
    )
    return Section(
        "SReB_GCA (Chen et al. 2024)",
        setting,
        claims,
        [_table_2(boards), _compared(boards), _sizes(boards), _lengths(boards), _spent(boards)],
        found,
        contenders={name: str(who) for name, who in (CONTESTANTS | EXACT).items()},
        data=f"stand-ins of its four sets{too}; {repeat} releases",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}, OP on sets of up to {MOST_BY_OP[1]:,} bins",
    )


def _shares(boards: Iterable[str], small: dict[str, float]) -> str:
    return ", ".join(f"{name} {small[name]:.0%}" for name in boards)


def _claims(judged: dict[str, Board], beside: dict[str, Board], search: str) -> list[Claim]:
    """What the paper claims, of one of its searches; as printed, of GGS alone. Each claim where small bins prevail."""
    there, elsewhere = (
        {name: board for name, board in boards.items() if board.get(search, EPSILONS[0], "kl") is not None}
        for boards in (judged, beside)
    )
    claims: list[Claim] = []

    def claim(
        where: str,
        says: str,
        judge: Callable[[dict[str, Board], str], Answers],
        told: Callable[[dict[str, Board], str], str] = lambda boards, who: "",
        shares: Sequence[str] = SHARES,
        note: str = "",
        unjudged: str = "",
    ) -> None:
        names = [_named(search, share) for share in shares]
        for place, boards, words in ((where, there, ""), (f"({where.strip('()')})", elsewhere, BESIDE)):
            as_printed = [judge(boards, one) for one in PRINTED] if search == "GGS" else []
            either = [
                True if True in both else None if None in both else False for both in zip(*as_printed, strict=True)
            ]
            figures = (
                f"at {share} {found}" for share, who in zip(shares, names, strict=True) if (found := told(boards, who))
            )
            claims.append(
                Claim(
                    place,
                    f"by {search}: {says}{words}",
                    Verdict.over(either) if as_printed else None,
                    Verdict.agreeing(zip(*(judge(boards, who) for who in names), strict=True)),
                    note,
                    "; ".join(figures),
                    unjudged=unjudged if not place.startswith("(") else "",
                )
            )

    def told(
        rival: str, measure: str, at: Callable[[str], bool] | None = None
    ) -> Callable[[dict[str, Board], str], str]:
        return lambda boards, who: _times(boards, who, rival, measure, at)

    below, beats = "KL divergence below AHP's, every ε", partial(_beats, other=AHP, measure="kl")
    claim("Table 2", f"{below}, AHP as its authors have it for each ε", beats, told(AHP, "kl"))
    for share in SHARES:
        claim("(Table 2)", f"{below}, {share} for the order, AHP as its authors have it", beats, shares=(share,))
    for rival, share in (("ahp, halves", OURS), ("ahp", "17/20")):
        judge = partial(_beats, other=rival, measure="kl")
        claim("(Table 2)", f"{below}, both with {share} for the order", judge, told(rival, "kl"), (share,))
    claim(
        "Figure 4",
        f"relative error of bins up to {SMALL} below DP_BASE's",
        partial(_by_size, small=True),
        told("geometric", "mre", lambda size: size != "0" and _ends(size)[1] <= SMALL),
    )
    claim(
        "Figure 4",
        f"no substantial loss on bins above {LARGE}: at most 1.5 times DP_BASE's relative error",
        partial(_by_size, small=False),
        told("geometric", "mre", lambda size: _ends(size)[0] > LARGE),
        unjudged="how much counts as substantial is not told",
    )
    claim(
        "Figure 4",
        "more even over bins than DP_BASE: the largest error of a class of counts is fewer times the least one",
        _more_even,
        lambda boards, who: f"{_spreads(boards, who)} times, DP_BASE's {_spreads(boards, 'geometric')} times",
    )
    claim("Figure 5", "relative error falls as ε grows, from 0.01 to 0.1 to 1, every length of range", _falls)
    claim(
        "Figure 5",
        "relative error below DP_BASE's for every length of range",
        _by_length,
        told("geometric", "range_mre", lambda length: True),
    )
    claim(
        "Figure 6",
        "KL divergence below DP_BASE's",
        partial(_beats, other="geometric", measure="kl"),
        told("geometric", "kl"),
        note="DP_BASE is `geometric` throughout.",
    )
    claim(
        "(Figure 4)",
        "mean relative error over all bins below DP_BASE's",
        partial(_beats, other="geometric", measure="mre"),
        told("geometric", "mre"),
    )
    return claims


def _searches(boards: dict[str, Board], by_loops: dict[str, list[tuple[float, float]]]) -> list[Claim]:
    """Section 5: what GGS gains in time and loses in error, beside the problems that it stands for."""

    def pairs(rival: str, measure: str) -> list[tuple[MeasureResult | None, MeasureResult | None]]:
        return [
            (board.get("GGS", epsilon, measure), board.get(rival, epsilon, measure))
            for board in boards.values()
            for epsilon in EPSILONS
        ]

    found = []
    for rival in ("GP", "OP"):
        errors, seconds = pairs(rival, "mre"), pairs(rival, "seconds")
        near = Verdict.over(one.mean <= 1.1 * other.mean for one, other in errors if one and other)
        says = f"GGS is near {rival}: its mean relative error over all bins is at most 1.1 times {rival}'s"
        told, vague = times(errors, rival), "how near is not told"
        found.append(Claim("Section 5.2", says, None, near, figures=told, unjudged=vague))
        faster = Verdict.over(smaller(one, other) for one, other in seconds if one and other)
        says = f"a release by GGS takes less time than by {rival}"
        where = "Section 5.2"
        if rival == "GP":
            where, says = "(Section 5.2)", f"{says}, whose search is near-linear here"
        found.append(Claim(where, says, None, faster, figures=times(seconds, rival)))
    slowest = {name: max(seconds for _, seconds in lines) for name, lines in by_loops.items()}
    told = ", ".join(f"{most:.2g} s ({name})" for name, most in slowest.items())
    most = max(seconds for lines in by_loops.values() for seconds, _ in lines)
    found.append(
        Claim(
            "Section 5.2",
            "the search by GGS takes less time than by GP, both as they are printed, every sum taken anew",
            None,
            Verdict.over(one < other for lines in by_loops.values() for one, other in lines),
            figures=f"compiled, GP takes up to {told}, GGS up to {most:.2g} s",
        )
    )
    return found


def _seconds_by_loops(counts: np.ndarray) -> list[tuple[float, float]]:
    """Seconds of the searches GGS and GP as they are printed, for each ε at halves; compiled, the search alone."""
    random, found = np.random.default_rng(SEED), []
    printed.relative_by_loops(np.ones(2), 1.0, True)  # compiles
    for scale in (2 / float(epsilon) for epsilon in EPSILONS):
        line, seconds = np.sort(counts.ravel() + random.laplace(0, scale, counts.size)), []
        for ahead in (False, True):
            start = time.process_time()
            printed.relative_by_loops(line, scale, ahead)
            seconds.append(time.process_time() - start)
        found.append((seconds[0], seconds[1]))
    return found


def _beats(boards: dict[str, Board], who: str, other: str, measure: str) -> Answers:
    return [
        smaller(board.get(who, epsilon, measure), board.get(other, epsilon, measure))
        for board in boards.values()
        for epsilon in EPSILONS
    ]


def _by_size(boards: dict[str, Board], who: str, small: bool) -> Answers:
    answers: Answers = []
    for board in boards.values():
        for size in board.places("mre"):
            low, high = _ends(size)
            for epsilon in EPSILONS:
                mine, base = (board.get(name, epsilon, "mre", size) for name in (who, "geometric"))
                if small and high <= SMALL:
                    answers.append(smaller(mine, base))
                if not small and low > LARGE and mine and base:
                    answers.append(mine.mean <= 1.5 * base.mean)
    return answers


def _falls(boards: dict[str, Board], who: str) -> Answers:
    """Whether the error of a range falls at each step of epsilon."""
    return [
        smaller(board.get(who, high, "range_mre", length), board.get(who, low, "range_mre", length))
        for board in boards.values()
        for length in board.places("range_mre")
        for high, low in pairwise(EPSILONS)
    ]


def _spread(board: Board, who: str, epsilon: str) -> MeasureResult:
    """How many times the least relative error of a class of counts the largest is, with its standard error."""
    there = (board.get(who, epsilon, "mre", size) for size in board.places("mre"))
    found = [one for one in there if one is not None and one.mean > 0]
    least, largest = (choose(found, key=lambda score: score.mean) for choose in (min, max))
    ratio = largest.mean / least.mean
    noise = hypot(*((one.standard_error or 0.0) / one.mean for one in (least, largest)))
    return replace(largest, mean=ratio, standard_error=ratio * noise)


def _more_even(boards: dict[str, Board], who: str) -> Answers:
    return [
        smaller(_spread(board, who, epsilon), _spread(board, "geometric", epsilon))
        for board in boards.values()
        for epsilon in EPSILONS
    ]


def _spreads(boards: dict[str, Board], who: str) -> str:
    found = [_spread(board, who, epsilon).mean for board in boards.values() for epsilon in EPSILONS]
    return f"{min(found):.3g} to {max(found):.3g}"


def _ends(size: str) -> tuple[int, int]:
    """The least and the largest count of a class: `2-10`, or `0`."""
    return int(size.partition("-")[0]), int(size.rpartition("-")[2])


def _times(boards: dict[str, Board], who: str, other: str, measure: str, at: Callable[[str], bool] | None) -> str:
    """What the private form has of another's error, over all sets, epsilons, and classes or lengths."""
    return times(
        (
            (board.get(who, epsilon, measure, place), board.get(other, epsilon, measure, place))
            for board in boards.values()
            for epsilon in EPSILONS
            for place in ([""] if at is None else filter(at, board.places(measure)))
        ),
        "AHP" if other.startswith("ahp") else "DP_BASE",
    )


def _by_length(boards: dict[str, Board], who: str) -> Answers:
    return [
        smaller(board.get(who, epsilon, "range_mre", length), board.get("geometric", epsilon, "range_mre", length))
        for board in boards.values()
        for epsilon in EPSILONS
        for length in board.places("range_mre")
    ]


def _table_2(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    ours = (AHP, "ahp, halves", "ahp")
    every = [_named(search, share) for search in SEARCHES for share in SHARES]
    head = ["set", "ε", "AHP, paper", *ours, "SReB_GCA, paper", *PRINTED, *every, "DP_BASE"]
    rows = []
    for name, board in boards.items():
        for place, epsilon in enumerate(EPSILONS):
            ahp, sreb = map(str, TABLE_2[name][place]) if name in TABLE_2 else ("–", "–")
            mine = [shown(board.get(who, epsilon, "kl")) for who in (*ours, *PRINTED, *every, "geometric")]
            rows.append([name, epsilon, ahp, *mine[: len(ours)], sreb, *mine[len(ours) :]])
    return "Table 2: KL divergence (here with half a record in every cell)", head, rows


def _compared(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    kinds = {"KL": "kl", "relative error": "mre", "squared error": "mse", "seconds": "seconds"}
    rows = [
        [name, epsilon, *(shown(board.get(search, epsilon, kind)) for kind in kinds.values() for search in SEARCHES)]
        for name, board in boards.items()
        for epsilon in EPSILONS
    ]
    return "The three searches", ["set", "ε", *(f"{kind}, {search}" for kind in kinds for search in SEARCHES)], rows


def _sizes(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    return _places("Figure 4: mean relative error by count of a bin", "count", boards, "mre")


def _lengths(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    return _places("Figure 5: mean relative error by length of a range", "length", boards, "range_mre")


def _places(title: str, what: str, boards: dict[str, Board], measure: str) -> tuple[str, list[str], list[list[str]]]:
    who = ("geometric", *PRINTED, *SEARCHES)
    rows = [
        [name, epsilon, place, *(shown(board.get(one, epsilon, measure, place)) for one in who)]
        for name, board in boards.items()
        for epsilon in EPSILONS
        for place in board.places(measure)
    ]
    return title, ["set", "ε", what, "DP_BASE", *PRINTED, *SEARCHES], rows


def _spent(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    head = ["set", "reading", *(f"declared ε = {epsilon}" for epsilon in EPSILONS)]
    rows = [
        [name, who, *(shown(board.get(who, epsilon, "spent")) for epsilon in EPSILONS)]
        for name, board in boards.items()
        for who in PRINTED
    ]
    return "What the printed form really spends: ε₁ + (largest group) · ε₂", head, rows
