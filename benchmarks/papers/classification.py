"""Xiao et al. 2012, figure 17: classifiers from released cubes of Adult, beside private interactive trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import polars as pl
from interactive_id3 import Tree, by_choice, by_noisy_counts
from measuring import Board, smaller, told
from public_data import adult_complete
from report import Claim, Section, Verdict, shown

from dphist_pipeline import sanitize
from dphist_pipeline.applications.classification import Classifier, train
from dphist_pipeline.applications.coded_records import places_of
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NoisySums
from dphist_pipeline.estimates.whole_tables import WholeTable
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores

ALPHAS = ("0.05", "0.1", "0.2", "0.5", "1")
FEATURES = ("workclass", "marital_status", "race", "sex")
TARGET = "income"
RELEASES = (15, 5)  # in the whole and with `--quick`
RECORDS, ALWAYS = "records", "most frequent class"
DPCUBES: dict[str, dict[str, str]] = {
    f"tree, dpcube, ξ₀ = {multiple} v": {"threshold": f"{{noise: {multiple}}}", "structure_share": "1/4"}
    for multiple in (0.25, 0.5, 0.7, 0.85)
}
AUTO = "tree, dpcube by `auto`"
CUBES: dict[str, tuple[str, dict[str, str]]] = {
    **{name: ("dpcube", settings) for name, settings in DPCUBES.items()},
    AUTO: ("dpcube", {}),
    "tree, geometric": ("geometric", {}),
    "tree, kd_hierarchy": ("kd_hierarchy", {}),
}
INTERACTIVE = {"interactive ID3, noisy counts": by_noisy_counts, "interactive ID3, choice": by_choice}
OTHER = "logistic regression, dpcube by `auto`"
WHO = (*CUBES, OTHER, *INTERACTIVE)
Contestant = Callable[[np.ndarray, Fraction], float]


def study(quick: bool) -> Section:
    """Measures accuracy on the test records along budgets."""
    paper, records = "DPCube (Xiao et al. 2012), classification", adult_complete()
    if records is None:
        return Section(paper, "no data: set DPHIST_DATA to the folder that holds adult.parquet", [])
    repeat, domain = RELEASES[quick], _domain(records)
    rows, test = (records.filter(pl.col("split") == part) for part in ("train", "test"))
    exact = _counted(domain, rows)
    found = [*_baselines(domain, exact, test), *_scores(_contestants(domain, test), exact, repeat)]
    setting = (
        f"Adult without missing values: {rows.height:,} records to train, {test.height:,} to test; "
        f"{', '.join(FEATURES)} → {TARGET} ({domain.cells:,} cells); {repeat} releases each, Δ = 1. The paper tells no "
        "ξ₀ and no α₁: ξ₀ is 0.25, 0.5, 0.7 or 0.85 times v, the variance of the noise of a cell, with α₁ = α/4 as in "
        "its other examples, and a setting holds where it does at each ξ₀; `auto` stands beside them. "
        "scikit-learn's entropy tree stands for Weka's ID3: it splits in two. Interactive trees spend as Friedman and "
        "Schuster say, d = 4; see `interactive_id3.py`."
    )
    board = Board(found)
    tables = [("Figure 17: accuracy on the test records", ["α", RECORDS, ALWAYS, *WHO], _rows(board))]
    contenders = {
        name: f"{told(mechanism, **settings)}; tree of scikit-learn" for name, (mechanism, settings) in CUBES.items()
    }
    contenders[OTHER] = f"{told('dpcube')}; logistic regression"
    contenders |= dict.fromkeys(INTERACTIVE, "d = 4: α/10 on each of two questions a level, and on the leaves; Δ = 1")
    drawn = [
        {"who": who, "α": float(alpha), "accuracy": board.get(who, alpha, "accuracy").mean}  # type: ignore[union-attr]
        for who in (RECORDS, ALWAYS, *WHO)
        for alpha in ALPHAS
    ]
    return Section(
        paper,
        setting,
        _claims(board),
        tables,
        {"accuracy": found},
        contenders=contenders,
        data=f"Adult without missing values, {rows.height:,} records to train; {repeat} releases",
        drawn={"figure 17": drawn},
        few=f"{RELEASES[1]} releases in place of {RELEASES[0]}",
    )


def _domain(records: pl.DataFrame) -> Domain:
    names = (*FEATURES, TARGET)
    return Domain(tuple(CategoricalAxis(name, name, tuple(sorted(records[name].unique()))) for name in names))


def _counted(domain: Domain, records: pl.DataFrame) -> np.ndarray:
    cells = np.ravel_multi_index(tuple(places_of(domain.axes, records)), domain.shape)
    return np.bincount(cells, minlength=domain.cells).reshape(domain.shape)


def _contestants(domain: Domain, test: pl.DataFrame) -> dict[str, Contestant]:
    from sklearn.linear_model import LogisticRegression

    tested = _counted(domain, test)

    def cube(mechanism: str, settings: dict[str, str], estimator: Callable[[], object] = lambda: None) -> Contestant:
        def run(exact: np.ndarray, epsilon: Fraction) -> float:
            made = sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1, **settings)
            sums = made.sums if isinstance(made.sums, NoisySums) else None
            whole = WholeTable.fit(domain, made.values, made.unbiased, sums)
            return train(_release(domain, whole.counts), TARGET, estimator=estimator()).accuracy(test)

        return run

    def interactive(choose: Callable[..., dict[int, list[int]]]) -> Contestant:
        def run(exact: np.ndarray, epsilon: Fraction) -> float:
            predicted = Tree(exact, epsilon).grow(choose)
            return float(np.take_along_axis(tested, predicted[..., None], axis=-1).sum() / tested.sum())

        return run

    found = {name: cube(*cells) for name, cells in CUBES.items()}
    found[OTHER] = cube("dpcube", {}, lambda: LogisticRegression(max_iter=300))
    return found | {name: interactive(choose) for name, choose in INTERACTIVE.items()}


def _release(domain: Domain, counts: np.ndarray) -> WholeRelease:
    return WholeRelease({"release": "adult", "period": "all"}, domain, counts, counts.astype(float), ())


def _baselines(domain: Domain, exact: np.ndarray, test: pl.DataFrame) -> list[MeasureResult]:
    learned: Classifier = train(_release(domain, exact), TARGET)
    frequent = domain.axes[-1].values[int(exact.sum(axis=(0, 1, 2, 3)).argmax())]  # type: ignore[union-attr]
    always = float((test[TARGET] == frequent).mean())  # type: ignore[arg-type]
    return [
        MeasureResult(who, Fraction(alpha), "accuracy", "", accuracy, None, 1)
        for who, accuracy in ((RECORDS, learned.accuracy(test)), (ALWAYS, always))
        for alpha in ALPHAS
    ]


def _scores(contestants: dict[str, Contestant], exact: np.ndarray, repeat: int) -> list[MeasureResult]:
    found: list[MeasureResult] = []
    for who, contestant in contestants.items():
        for alpha in map(Fraction, ALPHAS):
            runs = [{("accuracy", ""): contestant(exact, alpha)} for _ in range(repeat)]
            found += aggregate_scores(who, alpha, runs)
    return found


def _claims(board: Board) -> list[Claim]:
    def better(one: str, other: str) -> list[bool | None]:
        """At each alpha, whether the accuracy of one is above that of the other."""
        return [_above(board, one, alpha, other, alpha) for alpha in ALPHAS]

    def near(who: str) -> list[bool]:
        return [
            board.get(who, alpha, "accuracy").mean > board.get(RECORDS, alpha, "accuracy").mean - 0.01  # type: ignore[union-attr]
            for alpha in ALPHAS
        ]

    def told_of(cubes: Iterable[str]) -> str:
        return "; ".join(_all(board, who) for who in cubes)

    rising = [
        Claim(
            "Figure 17",
            f"{who}: accuracy at α = 1 above that at 0.05",
            None,
            Verdict.over([_above(board, who, "1", who, "0.05")]),
            figures=f"{_percent(board, who, '0.05')} → {_percent(board, who, '1')}",
        )
        for who in (*DPCUBES, *INTERACTIVE)
    ]
    thresholds = "tree, dpcube, ξ₀ of 0.25 to 0.85 v"
    judged = [
        claim
        for name, cubes, place in ((thresholds, (*DPCUBES,), "Figure 17"), (AUTO, (AUTO,), "(Figure 17)"))
        for claim in (
            Claim(
                place,
                f"{name}: within one point of one from records",
                None,
                Verdict.agreeing(zip(*map(near, cubes), strict=True)),
                figures=f"{told_of(cubes)}; from records {_percent(board, RECORDS, '1')}",
            ),
            *(
                Claim(
                    place if rival in INTERACTIVE else "(Figure 17)",
                    f"{name}: better than {words}",
                    None,
                    Verdict.agreeing(zip(*(better(who, rival) for who in cubes), strict=True)),
                    figures=f"{told_of(cubes)}; {words} {_all(board, rival)}",
                )
                for rival, words in (
                    *((rival, rival) for rival in INTERACTIVE),
                    ("tree, geometric", "one from geometric cells"),
                    (ALWAYS, f"the {ALWAYS}"),
                )
            ),
        )
    ]
    always = Claim(
        "(Figure 17)",
        "a tree from records better than the most frequent class",
        None,
        Verdict.over(better(RECORDS, ALWAYS)),
    )
    return [*judged, *rising, always]


def _percent(board: Board, who: str, alpha: str) -> str:
    return f"{board.get(who, alpha, 'accuracy').mean:.1%}"  # type: ignore[union-attr]


def _all(board: Board, who: str) -> str:
    """By α, from the least to the largest."""
    return " → ".join(_percent(board, who, alpha).removesuffix("%") for alpha in ALPHAS) + " %"


def _above(board: Board, one: str, alpha: str, other: str, other_alpha: str) -> bool | None:
    return smaller(board.get(other, other_alpha, "accuracy"), board.get(one, alpha, "accuracy"))


def _rows(board: Board) -> list[list[str]]:
    return [[alpha, *(shown(board.get(who, alpha, "accuracy")) for who in (RECORDS, ALWAYS, *WHO))] for alpha in ALPHAS]
