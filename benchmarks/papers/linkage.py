"""Xiao et al. 2012, figure 18: how many pairs blocks from released cubes save, and which true matches they keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import hypot, log

import numpy as np
import polars as pl
from measuring import SEED, Board, smaller, told
from public_data import adult_complete
from report import Claim, Section, Verdict, shown

from dphist_pipeline import sanitize
from dphist_pipeline.applications.blocking import blocks, pairs_completeness, reduction_ratio
from dphist_pipeline.applications.coded_records import places_of
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.base.domain import Axis, BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NoisySums
from dphist_pipeline.estimates.whole_tables import WholeTable
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores

ALPHAS = ("0.05", "0.1", "0.2", "0.5", "1")
ATTRIBUTES = ("age", "education_num", "income", "marital_status", "race", "sex")
ALPHA, TWO = "0.1", 2
RELEASES = (10, 3)  # in the whole and with `--quick`
MOVED = 0.05  # share of the second owner's ages that are a year off
Contestant = Callable[[Domain, list[np.ndarray], Fraction], np.ndarray]
OF_GROUPS, OF_BOXES = "the groups of the first owner's release", "boxes cut from both owners' whole counts"


def study(quick: bool) -> Section:
    """Measures reduction ratio and completeness along budgets, and along numbers of attributes."""
    paper, records = "DPCube (Xiao et al. 2012), record linkage", adult_complete()
    if records is None:
        return Section(paper, "no data: set DPHIST_DATA to the folder that holds adult.parquet", [])
    repeat = RELEASES[quick]
    owners, matches = _owners(records)
    found = {
        "budgets": _scores(owners, matches, [(alpha, TWO) for alpha in ALPHAS], repeat),
        "attributes": _scores(owners, matches, [(ALPHA, many) for many in range(1, len(ATTRIBUTES) + 1)], repeat),
    }
    boards = {name: Board(part) for name, part in found.items()}
    setting = (
        f"Adult without missing values, shuffled: two owners of {owners[0].height:,} records, of whom {matches:,} are "
        f"in both; {MOVED:.0%} of the second owner's ages are a year off. Attributes in order: {', '.join(ATTRIBUTES)} "
        "(the public file has no wage: the income class stands for it). Blocks are the groups that the first owner's "
        "release publishes, as in the paper; `boxes of …`: cut from both owners' whole "
        "counts to at most 1 % of all pairs. The paper tells neither ξ₀ nor the depth of the kd-tree. ξ₀ is a multiple "
        "of v, the variance of the noise of a cell, and α₁ = α/4. A finer partition saves more pairs and loses more "
        "matches, so that dpcube stands beside the kd-tree, of depths 3 to 10, with as many blocks as nearly as can "
        f"be; beside trees of depth 3, 4 and our default for all to see. {repeat} releases each, Δ = 1. Settings of a "
        "claim: α = "
        f"{', '.join(ALPHAS)} with two attributes in (a), one to six attributes at α = {ALPHA} in (b). One block of "
        "all records saves no pair and loses no match; smaller blocks save more and lose more, so that both are told."
    )
    tables = [
        _table("Figure 18 (a): two attributes", "α", boards["budgets"], [*ALPHAS], lambda alpha: (alpha, "2")),
        _table(
            f"Figure 18 (b): α = {ALPHA}",
            "attributes",
            boards["attributes"],
            [str(many) for many in range(1, len(ATTRIBUTES) + 1)],
            lambda many: (ALPHA, many),
        ),
    ]
    contenders = {who: f"{told('dpcube', **settings)}: {OF_GROUPS}" for who, settings in DPCUBES.items()}
    contenders |= {who: f"{told('kd_hierarchy', **settings)}: {OF_GROUPS}" for who, settings in TREES.items()}
    contenders["boxes of geometric"] = f"{told('geometric')}: {OF_BOXES}"
    return Section(
        paper,
        setting,
        _claims(boards),
        tables,
        found,
        contenders=contenders,
        data=f"Adult without missing values, two owners of {owners[0].height:,} records; {repeat} releases",
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}",
    )


def _owners(records: pl.DataFrame) -> tuple[list[pl.DataFrame], int]:
    """Both owners' records, and how many of the first ones are the same people."""
    random = np.random.default_rng(SEED)
    mixed = records.select(ATTRIBUTES)[random.permutation(records.height)]
    third = records.height // 3
    shared, mine, theirs = (mixed[part * third : (part + 1) * third] for part in range(3))
    second = pl.concat([shared, theirs])
    off = np.where(random.random(second.height) < MOVED, random.choice([-1, 1], second.height), 0)
    second = second.with_columns((pl.col("age") + pl.Series(off)).clip(17, 90))
    return [pl.concat([shared, mine]), second], third


def _domain(owners: list[pl.DataFrame], many: int) -> Domain:
    axes: list[Axis] = []
    for name in ATTRIBUTES[:many]:
        if name in ("age", "education_num"):
            start, stop = (17, 91) if name == "age" else (1, 17)
            axes.append(BinnedAxis(name, name, tuple(map(float, range(start, stop + 1)))))
        else:
            axes.append(CategoricalAxis(name, name, tuple(sorted(owners[0][name].unique()))))
    return Domain(tuple(axes))


def _groups_of(mechanism: str, **settings: object) -> Contestant:
    """The partition that the first owner's release publishes."""

    def run(domain: Domain, exact: list[np.ndarray], epsilon: Fraction) -> np.ndarray:
        made = sanitize(exact[0], mechanism=mechanism, epsilon=epsilon, sensitivity=1, **settings)
        return np.zeros(domain.shape, dtype=np.int64) if made.groups is None else made.groups

    return run


def _boxes_of(mechanism: str) -> Contestant:
    """Boxes that both owners' whole counts give."""

    def run(domain: Domain, exact: list[np.ndarray], epsilon: Fraction) -> np.ndarray:
        owners = []
        for counts in exact:
            made = sanitize(counts, mechanism=mechanism, epsilon=epsilon, sensitivity=1)
            sums = made.sums if isinstance(made.sums, NoisySums) else None
            whole = WholeTable.fit(domain, made.values, made.unbiased, sums).counts
            audit = {"release": mechanism, "period": "all", "epsilon": str(epsilon)}
            owners.append(WholeRelease(audit, domain, whole, whole.astype(float), ()))
        target = int(exact[0].sum() * exact[1].sum() // 100)
        names = [axis.name for axis in domain.axes]
        return blocks(owners[0], owners[1], names, target).of_cells

    return run


OURS, AUTO = "dpcube, ξ₀ = 0.7 v", "dpcube by `auto`"
DPCUBES: dict[str, dict[str, object]] = {
    **{
        f"dpcube, ξ₀ = {multiple} v": {"threshold": f"{{noise: {multiple}}}", "structure_share": "1/4"}
        for multiple in (0.5, 0.7, 0.85)
    },
    AUTO: {},
}
TREES: dict[str, dict[str, object]] = {
    "kd-tree": {},
    **{f"kd-tree of depth {depth}": {"depth": depth} for depth in (3, 4, 5, 6, 7, 8, 9)},
}
NO_THRESHOLD = "ξ₀ is not told"
UNTOLD = "neither ξ₀ nor the depth of the kd-tree is told"
MOST_APART = 1.5  # times as many blocks
TOLD = ("kd-tree of depth 3", "kd-tree of depth 4", "kd-tree")
BOXES = "boxes of geometric"
WHO: dict[str, Contestant] = {
    **{who: _groups_of("dpcube", **settings) for who, settings in DPCUBES.items()},
    **{who: _groups_of("kd_hierarchy", **settings) for who, settings in TREES.items()},
    BOXES: _boxes_of("geometric"),
}


def _scores(
    owners: list[pl.DataFrame], matches: int, settings: list[tuple[str, int]], repeat: int
) -> list[MeasureResult]:
    found: list[MeasureResult] = []
    for alpha, many in settings:
        domain = _domain(owners, many)
        cells = [np.ravel_multi_index(tuple(places_of(domain.axes, side)), domain.shape) for side in owners]
        exact = [np.bincount(side, minlength=domain.cells).reshape(domain.shape) for side in cells]
        for who, contestant in WHO.items():
            runs = []
            for _ in range(repeat):
                part = contestant(domain, exact, Fraction(alpha)).ravel()
                mine, theirs = part[cells[0]], part[cells[1]]
                counts = [np.bincount(side, minlength=int(part.max()) + 1) for side in (mine, theirs)]
                kept = pairs_completeness(mine[:matches], theirs[:matches])
                runs.append(
                    {("saved", str(many)): reduction_ratio(*counts), ("kept", str(many)): kept}
                    | {("blocks", str(many)): float(np.unique(part).size)}
                )
            found += aggregate_scores(who, Fraction(alpha), runs)
    return found


def _claims(boards: dict[str, Board]) -> list[Claim]:
    budgets, attributes = boards["budgets"], boards["attributes"]
    along = [(alpha, "2") for alpha in ALPHAS]
    across = [(ALPHA, str(many)) for many in range(1, len(ATTRIBUTES) + 1)]
    parts = (("Figure 18 (a)", budgets, along), ("Figure 18 (b)", attributes, across))
    claims = []
    # The paper tells no depth of the kd-tree and no ξ₀, on which pairs and matches depend: such claims decide nothing.
    for where, board, at in parts:
        for who in DPCUBES:
            place, unjudged = (f"({where})", "") if who == AUTO else (where, UNTOLD)
            claims.append(replace(_as_many_blocks(place, board, who, at), unjudged=unjudged))
            if who in (OURS, AUTO):
                claims += [replace(_saves_more(place, board, who, rival, at), unjudged=unjudged) for rival in TOLD]
        claims.append(_saves_more(f"({where})", board, BOXES, OURS, at))
    for who in DPCUBES:
        saved = (budgets.get(who, alpha, "saved", "2") for alpha in ALPHAS)
        near = Verdict.over(0.8 < score.mean < 0.9 for score in saved if score)
        says = f"{who} saves around 85 % (80 to 90 %)"
        place, unjudged = ("(Figure 18 (a))", "") if who == AUTO else ("Figure 18 (a)", NO_THRESHOLD)
        claims.append(Claim(place, says, None, near, figures=_line(budgets, who, along), unjudged=unjudged))
    cubes = [who for who in DPCUBES if who != AUTO]
    everybody, trees = (*cubes, *TOLD), "kd-trees of depth 3, 4 and our default"
    ends = [[budgets.get(who, alpha, "saved", "2") for alpha in (ALPHAS[0], ALPHAS[-1])] for who in everybody]
    says = f"dpcube at each ξ₀, and {trees}, save more at α = 1 than at 0.05"
    claims.append(Claim("Figure 18 (a)", says, None, Verdict.over(smaller(*pair) for pair in ends)))
    drops = [[attributes.get(who, ALPHA, "saved", many) for many in (across[-1][1], "2")] for who in everybody]
    says = f"dpcube at each ξ₀, and {trees}, save less with six attributes than with two"
    drop = Verdict.over(smaller(*pair) for pair in drops)
    claims.append(Claim("Figure 18 (b)", says, None, drop, unjudged=UNTOLD))
    steadier = Verdict.over(
        smaller(_drop(attributes, who), _drop(attributes, rival)) for who in cubes for rival in TOLD
    )
    says = f"robust: from two attributes to six dpcube at each ξ₀ loses less of what it saves than {trees}"
    figures = "; ".join(f"{who} {_drop(attributes, who).mean:.3f}" for who in everybody)
    claims.append(Claim("Figure 18 (b)", says, None, steadier, figures=figures))
    return claims


def _saves_more(where: str, board: Board, who: str, rival: str, at: list[tuple[str, str]]) -> Claim:
    saved = ([board.get(one, alpha, "saved", many) for one in (rival, who)] for alpha, many in at)
    verdict = Verdict.over(smaller(*pair) for pair in saved)
    figures = f"{who} {_line(board, who, at)}; {rival} {_line(board, rival, at)}"
    return Claim(where, f"{who} saves more pairs than the {rival}", None, verdict, figures=figures)


def _as_many_blocks(where: str, board: Board, who: str, at: list[tuple[str, str]]) -> Claim:
    """That one saves more pairs than the kd-tree whose depth gives about as many blocks; open where none does.

    Args:
        at: α and number of attributes of each setting.
    """
    verdicts: list[bool | None] = []
    told = []
    for alpha, many in at:
        mine, *trees = (board.get(one, alpha, "blocks", many) for one in (who, *TREES))
        off, blocks, rival = min(
            (abs(log(tree.mean / mine.mean)), tree.mean, name)
            for tree, name in zip(trees, TREES, strict=True)
            if tree and mine
        )
        one, other = (board.get(name, alpha, "saved", many) for name in (who, rival))
        if off > log(MOST_APART) or not (one and other and mine):
            verdicts.append(None)
            told.append("no tree has as many")
            continue
        verdicts.append(smaller(other, one))
        told.append(f"{mine.mean:,.0f} and {blocks:,.0f} blocks {one.mean:.3f} and {other.mean:.3f}")
    says = f"{who} saves more pairs than a kd-tree with about as many blocks"
    return Claim(where, says, None, Verdict.over(verdicts), figures="; ".join(told))


def _line(board: Board, who: str, at: list[tuple[str, str]]) -> str:
    """The least and the largest share of pairs that are saved, and of matches that are lost."""
    saved, kept = (
        [score.mean for alpha, many in at if (score := board.get(who, alpha, measure, many)) is not None]
        for measure in ("saved", "kept")
    )
    return (
        f"saves {min(saved):.3f} to {max(saved):.3f} of pairs and loses {1 - max(kept):.3f} to {1 - min(kept):.3f} "
        "of matches"
    )


def _drop(board: Board, who: str) -> MeasureResult:
    """How much less is saved with all attributes than with two, with its standard error."""
    two, all_of_them = (board.get(who, ALPHA, "saved", many) for many in ("2", str(len(ATTRIBUTES))))
    assert two is not None, "everyone has a score"
    assert all_of_them is not None, "everyone has a score"
    noise = hypot(two.standard_error or 0.0, all_of_them.standard_error or 0.0)
    return replace(two, mean=two.mean - all_of_them.mean, standard_error=noise)


def _table(
    title: str, head: str, board: Board, lines: list[str], at: Callable[[str], tuple[str, str]]
) -> tuple[str, list[str], list[list[str]]]:
    rows = []
    for line in lines:
        alpha, many = at(line)
        cells = [
            f"{shown(board.get(who, alpha, 'saved', many))} / {shown(board.get(who, alpha, 'kept', many))} / "
            f"{board.get(who, alpha, 'blocks', many).mean:,.0f}"  # type: ignore[union-attr]
            for who in WHO
        ]
        rows.append([line, *cells])
    return f"{title}: reduction ratio / pairs completeness / blocks", [head, *WHO], rows
