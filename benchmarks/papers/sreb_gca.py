"""Chen et al. 2024 (SReB_GCA): table 2 and figures 4 to 6, on stand-ins with the statistics of its table 1."""

from __future__ import annotations

import printed
from measuring import Board, as_printed, private, scores, smaller
from public_data import real_waitakere
from report import Claim, Section, Verdict, shown

from dphist_pipeline.evaluation.synthetic_sets import SETS, synthetic_counts
from dphist_pipeline.evaluation.workloads import parse_workloads

EPSILONS = ("1", "0.1", "0.01")
# Table 2: KL divergence of AHP and of SReB_GCA at each epsilon.
TABLE_2 = {
    "waitakere": ((0.018, 0.0004), (0.203, 0.056), (0.467, 0.171)),
    "search_log": ((0.054, 0.0001), (0.103, 0.009), (0.189, 0.099)),
    "net_trace": ((0.153, 0.004), (0.572, 0.092), (1.229, 0.252)),
    "social_network": ((0.071, 0.0001), (0.309, 0.003), (0.825, 0.099)),
}
CONTESTANTS = {
    "geometric": private("geometric"),
    "ahp": private("ahp"),
    "sreb_gca": private("sreb_gca"),
    "printed": as_printed(printed.sreb_gca),
    "printed, counts ≥ 1": as_printed(printed.sreb_gca_at_least_one),
}
# The paper does not say what becomes of counts below 1: a claim holds as printed where either reading has it.
PRINTED, PRIVATE = ("printed", "printed, counts ≥ 1"), ("sreb_gca",)
SMALL, LARGE = 10, 100
Readings = tuple[str, ...]


def study(quick: bool) -> Section:
    """Measures all sets."""
    repeat, data = (3 if quick else 20), {name: synthetic_counts(name) for name in SETS}
    if (real := real_waitakere()) is not None:
        data["real meshblocks"] = real
    found = {
        name: scores(name, counts, CONTESTANTS, EPSILONS, repeat, parse_workloads([], counts.shape))
        for name, counts in data.items()
    }
    boards = {name: Board(part) for name, part in found.items()}
    claims = [
        Claim(
            "Table 2",
            "KL divergence below AHP's, all sets and ε",
            *(_beats(boards, who, "ahp", "kl") for who in (PRINTED, PRIVATE)),
        ),
        Claim(
            "Figure 4",
            f"relative error of bins up to {SMALL} below DP_BASE's",
            *(_by_size(boards, who, small=True) for who in (PRINTED, PRIVATE)),
        ),
        Claim(
            "Figure 4",
            f"no substantial loss on bins above {LARGE}: at most 1.5 times DP_BASE's relative error",
            *(_by_size(boards, who, small=False) for who in (PRINTED, PRIVATE)),
        ),
        Claim(
            "Figure 5",
            "relative error below DP_BASE's for every length of range",
            *(_by_length(boards, who) for who in (PRINTED, PRIVATE)),
        ),
        Claim(
            "Figure 6",
            "KL divergence below DP_BASE's",
            *(_beats(boards, who, "geometric", "kl") for who in (PRINTED, PRIVATE)),
            note="DP_BASE is `geometric` throughout.",
        ),
        Claim(
            "Section 6",
            "mean relative error over all bins below DP_BASE's",
            *(_beats(boards, who, "geometric", "mre") for who in (PRINTED, PRIVATE)),
        ),
    ]
    too = ", and the real 1,340 meshblocks of Waitakere" if real is not None else ""
    setting = (
        f"Synthetic stand-ins for its four sets (size, mean, variance, range as in table 1){too}; {repeat} releases "
        "each; even split of ε. Printed: Lap(λ₂)/|C| drawn for every bin of a group, in the better of two readings. "
        "Private: one draw a group."
    )
    return Section("SReB_GCA (Chen et al. 2024)", setting, claims, [_table_2(boards), _spent(boards)], found)


def _below(board: Board, who: Readings, other: str, epsilon: str, measure: str, at: str = "") -> bool | None:
    answers = [smaller(board.get(one, epsilon, measure, at), board.get(other, epsilon, measure, at)) for one in who]
    return True if True in answers else None if None in answers else False


def _beats(boards: dict[str, Board], who: Readings, other: str, measure: str) -> Verdict:
    return Verdict.over(
        _below(board, who, other, epsilon, measure) for board in boards.values() for epsilon in EPSILONS
    )


def _by_size(boards: dict[str, Board], who: Readings, small: bool) -> Verdict:
    answers: list[bool | None] = []
    for board in boards.values():
        for size in board.places("mre"):
            low, high = int(size.partition("-")[0]), int(size.rpartition("-")[2])
            for epsilon in EPSILONS:
                if small and high <= SMALL:
                    answers.append(_below(board, who, "geometric", epsilon, "mre", size))
                if not small and low > LARGE:
                    found = (board.get(name, epsilon, "mre", size) for name in (*who, "geometric"))
                    *mine, base = (one.mean for one in found if one is not None)
                    answers.append(min(mine) <= 1.5 * base)
    return Verdict.over(answers)


def _by_length(boards: dict[str, Board], who: Readings) -> Verdict:
    return Verdict.over(
        _below(board, who, "geometric", epsilon, "range_mre", length)
        for board in boards.values()
        for epsilon in EPSILONS
        for length in board.places("range_mre")
    )


def _table_2(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    head = ["set", "ε", "AHP, paper", "AHP, here", "SReB_GCA, paper", *PRINTED, "private", "DP_BASE"]
    rows = []
    for name, board in boards.items():
        for place, epsilon in enumerate(EPSILONS):
            ahp, sreb = map(str, TABLE_2[name][place]) if name in TABLE_2 else ("–", "–")
            mine = [shown(board.get(who, epsilon, "kl")) for who in ("ahp", *PRINTED, *PRIVATE, "geometric")]
            rows.append([name, epsilon, ahp, mine[0], sreb, *mine[1:]])
    return "Table 2: KL divergence (here with half a record in every cell)", head, rows


def _spent(boards: dict[str, Board]) -> tuple[str, list[str], list[list[str]]]:
    head = ["set", "reading", *(f"declared ε = {epsilon}" for epsilon in EPSILONS)]
    rows = [
        [name, who, *(shown(board.get(who, epsilon, "spent")) for epsilon in EPSILONS)]
        for name, board in boards.items()
        for who in PRINTED
    ]
    return "What the printed form really spends: ε₁ + (largest group) · ε₂", head, rows
