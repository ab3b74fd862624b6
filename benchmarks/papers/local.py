"""Zheng et al. 2021 (histograms under local privacy): figures 4 to 7, theorem 9 and section 4.2, on salaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from math import hypot, isclose

import numpy as np
from collecting import STAND_IN, City, Way, bits, cities, collect, on_edges
from collecting_as_printed import collect_as_printed
from measuring import Board, smaller, times
from report import Claim, Section, Verdict, shown

from dphist_pipeline.local.law import law_of
from dphist_pipeline.local.question import Question
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult

EPSILONS = ("3", "6", "9", "12", "15", "18")
LOW_TO_HIGH = ("1", "3", "15")
GROUPS = {"1 consumer": (10,), "3 consumers": (3, 5, 7), "5 consumers": (3, 5, 7, 10, 15)}
FOLDS = GROUPS["3 consumers"]
FIXED = "15"
SHARE = "0.8"
RUNS = (20, 3)  # in the whole and with `--quick`
FEW = 0.01  # of the mean count of an interval: what counts as few errors
FLAT = 1.5  # times the least: what counts as much alike
FORMS = {
    "chp": lambda folds: Way(folds, "chp"),
    "sampled": lambda folds: Way(folds, "sampled", participation=SHARE),
    "baseline": lambda folds: Way(folds, "split_budget"),
    "optimized": lambda folds: Way(folds, "chp", "optimized"),
    "grr": lambda folds: Way(folds, "chp", "grr"),
}
MEASURED, OTHERS = ("chp", "sampled", "baseline"), ("optimized", "grr")
Table = tuple[str, list[str], list[list[str]]]
Boards = dict[str, Board]


def study(quick: bool) -> Section:
    """Collects in every city along epsilons, consumers and encodings."""
    repeat, known = RUNS[quick], cities()
    found = {name: _measured(city, repeat) for name, city in known.items()}
    boards = {name: Board(part) for name, part in found.items()}
    printed = {name: Board(_printed(city, repeat)) for name, city in known.items()}
    on_edge = ", ".join(f"{name} {on_edges(city, FOLDS):.2%}" for name, city in known.items())
    told = ", ".join(f"{name} ({city.contributors:,} contributors, {city.range})" for name, city in known.items())
    setting = (
        f"{told}, the ranges of table 1; consumers of "
        f"{', '.join(map(str, FOLDS))} equal intervals unless said otherwise, {repeat} runs each, ε = "
        f"{', '.join(EPSILONS)} in figure 4 and {FIXED} in figures 5 and 7; settings of a claim: cities and ε, "
        "consumers or intervals; MSE of a histogram is over its intervals, and of several their mean; by the law, it "
        "is the expected one. The paper's Baltimore has 13,683 contributors and its New York 138,715; its San "
        "Francisco is not public here, but invented. Baseline: `split_budget`. Printed, intervals are closed at both "
        "ends: a salary on a boundary sets two bits, spends 2ε and is counted twice where a consumer's interval holds "
        f"both (on an inner boundary lie: {on_edge}); its errors are those against exact counts of closed "
        "intervals, drawn from the counts. Sampling is said to lower ε, which it does not where a report shows that it "
        f"was sent; here both forms have the same ε and ask {SHARE}."
    )
    tables = [_figure_4(boards), _figure_5(boards), _figure_6(), _figure_7(boards), _encodings(boards)]
    return Section(
        "LDP histograms (Zheng et al. 2021)",
        setting,
        _claims(boards, printed, known),
        tables,
        found,
        contenders=_contenders(),
        data=f"salaries of {', '.join(known)}; {repeat} runs",
        few=f"{RUNS[1]} runs in place of {RUNS[0]}",
    )


def _contenders() -> dict[str, str]:
    return {f"{form}, {group}": str(FORMS[form](folds)) for group, folds in GROUPS.items() for form in FORMS}


def _printed(city: City, repeat: int) -> list[MeasureResult]:
    scores = []
    for group, folds in GROUPS.items():
        for form in MEASURED:
            epsilons = EPSILONS if folds == FOLDS else (FIXED,)
            scores += collect_as_printed(f"{form}, {group}", city, FORMS[form](folds), epsilons, repeat)
    return scores


def _measured(city: City, repeat: int) -> list[MeasureResult]:
    scores = []
    for group, folds in GROUPS.items():
        for form in MEASURED:
            epsilons = ("1", *EPSILONS) if folds == FOLDS else (FIXED,)
            scores += collect(f"{form}, {group}", city, FORMS[form](folds), epsilons, repeat)
    for encoding in OTHERS:
        scores += collect(f"{encoding}, 3 consumers", city, FORMS[encoding](FOLDS), LOW_TO_HIGH, repeat)
    return scores


def _claims(boards: Boards, printed: Boards, known: dict[str, City]) -> list[Claim]:
    def claim(
        where: str,
        says: str,
        judged: Callable[[Boards], Verdict],
        note: str = "",
        told: Callable[[Boards], str] = lambda _: "",
        unjudged: str = "",
    ) -> Claim:
        """The claims of both forms, but for what stands beside the paper."""
        beside = where.startswith("(")
        figures, of_printed = told(boards), told(printed)
        same = beside or of_printed == figures
        verdict = None if beside else judged(printed)
        return Claim(where, says, verdict, judged(boards), note, figures, "" if same else of_printed, unjudged)

    return [
        *(
            claim(
                "Figure 4",
                f"{name}'s MSE is below the baseline's, ε 3 to 18",
                partial(_below, form=form, rival="baseline"),
                told=partial(_times, form=form),
            )
            for form, name in (("chp", "CHP"), ("sampled", "sampling"))
        ),
        *(
            claim(
                "Figure 4", f"MSE of {form} falls with ε", partial(_falls, form=form), note, partial(_ends, form=form)
            )
            for form, note in (("chp", ""), ("baseline", ""), ("sampled", "what is left is who was not asked"))
        ),
        claim(
            "Figure 4",
            f"CHP introduces few errors at ε = {EPSILONS[-1]}: by the law, {FEW:.0%} of a mean count at most",
            lambda of: Verdict.over(off <= FEW for off in _off(of, known)),
            told=lambda of: f"{', '.join(f'{off:.2g}' for off in _off(of, known))} of the mean count",
        ),
        claim("Figure 4", "CHP's gain on the baseline grows with ε", _gain_grows, told=_gains),
        claim(
            "Figure 4",
            "MSE in San Francisco, here invented, is above the other cities'",
            _larger_in_the_largest,
            "not because some intervals hold few, as the paper supposes: of CHP and the baseline because it has most "
            "contributors, each with noise of their own, whatever an interval holds; of sampling because its intervals "
            "hold most, of which more or fewer were asked",
            _larger,
        ),
        *(
            claim(
                "Figure 5",
                f"{name}'s MSE is low: below the baseline's, with 3 and 5 consumers",
                partial(_low, form=form),
                "with one consumer CHP is the baseline" if form == "chp" else "with one consumer it is far above",
                partial(_lows, form=form),
            )
            for form, name in (("chp", "CHP"), ("sampled", "sampling"))
        ),
        claim(
            "Figure 5",
            "the baseline's MSE grows with its consumers",
            partial(_grows, form="baseline"),
            told=partial(_growths, form="baseline"),
        ),
        *(
            claim(
                "Figure 5",
                f"{name}'s MSE is similar, by the law within {FLAT} times from 1 to 5 consumers",
                partial(_flat, form=form),
                note,
                partial(_growths, form=form),
                "how much counts as similar is not told",
            )
            for form, name, note in (
                ("chp", "CHP", "an interval is added up from more merged ones, each with noise of its own"),
                (
                    "sampled",
                    "sampling",
                    "who was not asked counts more in wide intervals, which the groups have more or fewer of",
                ),
            )
        ),
        *(
            claim(
                "Figure 5",
                f"{name}'s MSE grows by a smaller factor than the baseline's, from 1 to 5 consumers",
                partial(_grows_less, form=form),
                told=partial(_growth_factors, form=form),
            )
            for form, name in (("chp", "CHP"), ("sampled", "sampling"))
        ),
        claim(
            "Figure 6",
            "CHP sends fewer bits than the baseline, of 3 and 5 consumers",
            lambda _: _fewer_bits("baseline", "chp"),
            told=lambda _: _bits_told("chp", "baseline"),
        ),
        claim(
            "Theorem 9",
            "of encodings with a bit for each interval none with fewer bits serves all consumers: each inner boundary "
            "is one of a consumer",
            lambda _: Verdict.over(_is_needed()),
            "3 and 5 consumers; without a boundary two intervals are one, and that consumer's counts have a bias",
            lambda _: _bits_told("chp", "baseline"),
        ),
        claim(
            "(Theorem 9)",
            "no other encoding sends fewer bits: not that of grr, the number of an interval",
            lambda _: _fewer_bits("grr", "chp"),
            "the theorem's proof is about one bit for each interval; grr is as unbiased",
            lambda _: _bits_told("grr", "chp"),
        ),
        claim(
            "Section 4.2",
            "merging intervals does not change the scale of the variance: by the law it is the same multiple of that "
            "of a merged interval at every ε from 3 to 18, with 1,000 contributors and with 100 times as many",
            lambda _: Verdict.over(_of_one_scale()),
            told=lambda _: f"{_merged_told()}, as many as are added up",
        ),
        claim(
            "(Section 4.2)",
            f"the variance of an interval is by the law at most {FLAT} times that of a merged one",
            lambda _: Verdict.over(times <= FLAT for times in _merged()),
            told=lambda _: _merged_told(),
        ),
        *(
            claim(
                "Figure 7",
                f"{name}'s variance is determined by ε, which is the same: MSE by the law within a tenth for 3, 5 and "
                "7 intervals",
                partial(_alike, form=form),
                note,
                partial(_each, form=form),
            )
            for form, name, note in (
                ("baseline", "the baseline", ""),
                (
                    "chp",
                    "CHP",
                    "an interval's variance is proportional to the merged ones in it: 13/3, 13/5, 13/7 on average",
                ),
            )
        ),
        claim(
            "Figure 7",
            f"CHP's performance is relatively similar on all queries: MSE by the law within {FLAT} times",
            partial(_alike, form="chp", factor=FLAT),
            told=partial(_each, form="chp"),
            unjudged="how much counts as similar is not told",
        ),
        claim(
            "(not in the paper)",
            "sampling's MSE is above CHP's at the same ε",
            partial(_below, form="chp", rival="sampled"),
        ),
        *(
            claim(
                "(not in the paper)",
                f"{other}'s MSE by the law below symmetric's at ε = {epsilon}",
                partial(_better, other=other, epsilon=epsilon),
            )
            for other in OTHERS
            for epsilon in LOW_TO_HIGH
        ),
        claim(
            "(not in the paper)",
            "MSE within a factor of 3 of what the law says",
            _lawful,
            "on average over the settings it is "
            f"{np.mean([mean / law for mean, law in _by_law(boards) if law > 1]):.3f} times that",
        ),
    ]


def _is_needed() -> Iterator[bool]:
    """For each inner boundary of the merged partitions, whether a consumer's own partition has it."""

    def edges(folds: tuple[int, ...]) -> tuple[object, ...]:
        return FORMS["chp"](folds).asked(City(np.empty(0), 0, 1), FIXED)[0].parts[0].edges

    for folds in list(GROUPS.values())[1:]:
        own = {edge for fold in folds for edge in edges((fold,))}
        yield from (edge in own for edge in edges(folds)[1:-1])


def _merged() -> list[float]:
    """How many merged intervals are added up for one of a consumer's, on average."""
    _, places = FORMS["chp"](FOLDS).asked(City(np.empty(0), 0, 1), FIXED)
    return [float(np.mean(at.atoms)) for at in places]


def _merged_told() -> str:
    return f"{', '.join(f'{times:.2g}' for times in _merged())} times"


def _of_one_scale() -> Iterator[bool]:
    """For each ε and consumer, whether the mean variance of an interval is that of a merged one times their number."""
    for epsilon in EPSILONS:
        question, places = FORMS["chp"](FOLDS).asked(City(np.empty(0), 0, 1), epsilon)
        for at, merged in zip(places, _merged(), strict=True):
            found = []
            for contributors in (1_000, 100_000):
                law = law_of(question, question.parts[at.part], contributors)
                told, one = (law.variance(np.array(atoms), np.zeros(len(atoms))) for atoms in (at.atoms, (1,)))
                found.append(float(told.mean() / one.mean()))
            yield all(isclose(ratio, merged) for ratio in found)


def _by_city(boards: Boards, told: Callable[[Board], str]) -> str:
    return "; ".join(f"{name} {told(board)}" for name, board in boards.items())


def _ends(boards: Boards, form: str) -> str:
    """The MSE by the law along epsilon."""
    line = partial(_arrows, form=form)
    return f"by the law {_by_city(boards, line)}"


def _arrows(board: Board, form: str) -> str:
    return " → ".join(f"{law.mean:.3g}" for epsilon in EPSILONS if (law := _law(board, form, epsilon)))


def _gains(boards: Boards) -> str:
    return _by_city(boards, lambda board: f"{_gain(board, EPSILONS[0])[0]:.3g} → {_gain(board, EPSILONS[-1])[0]:.3g}")


def _larger(boards: Boards) -> str:
    others = [board for name, board in boards.items() if name != STAND_IN]
    return "; ".join(
        times(
            (
                (_law(boards[STAND_IN], form, epsilon), _law(board, form, epsilon))
                for board in others
                for epsilon in EPSILONS
            ),
            "another city",
        )
        + f" ({form})"
        for form in MEASURED
        if others
    )


def _low(boards: Boards, form: str) -> Verdict:
    return Verdict.over(
        smaller(_mse(board, f"{form}, {group}"), _mse(board, f"baseline, {group}"))
        for board in boards.values()
        for group in list(GROUPS)[1:]  # of one consumer the baseline is CHP
    )


def _lows(boards: Boards, form: str) -> str:
    return f"{_growths(boards, form)}; baseline {_growths(boards, 'baseline')}"


def _growth_factors(boards: Boards, form: str) -> str:
    return _by_city(
        boards, lambda board: f"{_growth(board, form)[0]:.3g} and {_growth(board, 'baseline')[0]:.3g} times"
    )


def _bits_told(form: str, rival: str) -> str:
    return "; ".join(
        f"{group} {bits(_bits(form, group))} ({form}), {bits(_bits(rival, group))} ({rival})"
        for group in list(GROUPS)[1:]
    )


def _each(boards: Boards, form: str) -> str:
    return _by_city(
        boards,
        lambda board: " → ".join(f"{law.mean:.3g}" for fold in FOLDS if (law := _law(board, form, FIXED, str(fold)))),
    )


def _off(boards: Boards, known: dict[str, City]) -> list[float]:
    """The root of CHP's MSE by the law at the largest epsilon, as a share of the mean count of an interval."""
    found = []
    for name, city in known.items():
        law = _law(boards[name], "chp", EPSILONS[-1])
        assert law is not None, "the law says it of every setting"
        found.append(law.mean**0.5 / (city.contributors * len(FOLDS) / sum(FOLDS)))
    return found


def _times(boards: Boards, form: str) -> str:
    return times(
        ((_law(board, form, e), _law(board, "baseline", e)) for board in boards.values() for e in EPSILONS),
        "the baseline",
    )


def _growths(boards: Boards, form: str) -> str:
    """The MSE by the law with one consumer, three and five, in every city."""
    lines = (
        f"{name} {' → '.join(f'{found.mean:.3g}' for group in GROUPS if (found := _law(board, f'{form}, {group}')))}"
        for name, board in boards.items()
    )
    return f"by the law {'; '.join(lines)}"


def _mse(board: Board, form: str, epsilon: str = FIXED, at: str = "") -> MeasureResult | None:
    """Of three consumers, unless the form names another group."""
    return board.get(form if "," in form else f"{form}, 3 consumers", epsilon, "mse", at)


def _law(board: Board, form: str, epsilon: str = FIXED, at: str = "") -> MeasureResult | None:
    """The same as the law expects it, exactly: it tells apart what 20 runs cannot."""
    return board.get(form if "," in form else f"{form}, 3 consumers", epsilon, "law_mse", at)


def _ratio(above: MeasureResult | None, below: MeasureResult | None) -> tuple[float, float]:
    """Of two means, with its standard error."""
    if above is None or below is None:
        raise ValueError("both were measured")
    ratio = above.mean / below.mean
    return ratio, ratio * hypot((above.standard_error or 0) / above.mean, (below.standard_error or 0) / below.mean)


def _exceeds(ratio: tuple[float, float], limit: tuple[float, float]) -> bool | None:
    """Whether one is above the other by more than two standard errors; None where nobody can say."""
    noise = 2 * hypot(ratio[1], limit[1])
    return None if abs(ratio[0] - limit[0]) <= noise else ratio[0] > limit[0]


def _within(scores: list[MeasureResult | None], factor: float) -> bool | None:
    """Whether the largest mean is at most so many times the least."""
    means = sorted((score for score in scores if score is not None), key=lambda score: score.mean)
    above = _exceeds(_ratio(means[-1], means[0]), (factor, 0.0))
    return None if above is None else not above


def _below(boards: Boards, form: str, rival: str) -> Verdict:
    return Verdict.over(
        smaller(_mse(board, form, epsilon), _mse(board, rival, epsilon))
        for board in boards.values()
        for epsilon in EPSILONS
    )


def _falls(boards: Boards, form: str) -> Verdict:
    return Verdict.over(
        smaller(_mse(board, form, high), _mse(board, form, low))
        for board in boards.values()
        for low, high in pairwise(EPSILONS)
    )


def _gain(board: Board, epsilon: str) -> tuple[float, float]:
    return _ratio(_mse(board, "baseline", epsilon), _mse(board, "chp", epsilon))


def _gain_grows(boards: Boards) -> Verdict:
    return Verdict.over(
        _exceeds(_gain(board, high), _gain(board, low)) for board in boards.values() for low, high in pairwise(EPSILONS)
    )


def _larger_in_the_largest(boards: Boards) -> Verdict:
    return Verdict.over(
        smaller(_mse(board, form, epsilon), _mse(boards[STAND_IN], form, epsilon))
        for name, board in boards.items()
        if name != STAND_IN
        for form in MEASURED
        for epsilon in EPSILONS
    )


def _grows(boards: Boards, form: str) -> Verdict:
    return Verdict.over(
        smaller(_mse(board, f"{form}, {few}"), _mse(board, f"{form}, {more}"))
        for board in boards.values()
        for few, more in pairwise(GROUPS)
    )


def _flat(boards: Boards, form: str) -> Verdict:
    return Verdict.over(
        _within([_law(board, f"{form}, {group}") for group in GROUPS], FLAT) for board in boards.values()
    )


def _growth(board: Board, form: str) -> tuple[float, float]:
    few, *_, most = GROUPS
    return _ratio(_mse(board, f"{form}, {most}"), _mse(board, f"{form}, {few}"))


def _grows_less(boards: Boards, form: str) -> Verdict:
    return Verdict.over(_exceeds(_growth(board, "baseline"), _growth(board, form)) for board in boards.values())


def _alike(boards: Boards, form: str, factor: float = 1.1) -> Verdict:
    return Verdict.over(
        _within([_law(board, form, FIXED, str(fold)) for fold in FOLDS], factor) for board in boards.values()
    )


def _better(boards: Boards, other: str, epsilon: str) -> Verdict:
    return Verdict.over(smaller(_law(board, other, epsilon), _law(board, "chp", epsilon)) for board in boards.values())


def _by_law(boards: Boards) -> list[tuple[float, float]]:
    """Measured and expected MSE of every setting."""
    return [
        (score.mean, board.found[score.mechanism, score.epsilon, "law_mse", score.at].mean)
        for board in boards.values()
        for score in board.found.values()
        if score.measure == "mse" and score.at == ""
    ]


def _lawful(boards: Boards) -> Verdict:
    """Within a factor of 3; open below an error of 1, which hardly any run has: nobody's report lies."""
    return Verdict.over(1 / 3 < mean / law < 3 if law > 1 else None for mean, law in _by_law(boards))


def _bits(form: str, group: str) -> Question:
    """What contributors of any city are asked: its bits depend on the consumers alone."""
    return FORMS[form](GROUPS[group]).asked(City(np.empty(0), 0, 1), FIXED)[0]


def _fewer_bits(rival: str, form: str) -> Verdict:
    return Verdict.over(bits(_bits(form, group)) < bits(_bits(rival, group)) for group in list(GROUPS)[1:])


def _told(board: Board, form: str, epsilon: str = FIXED, at: str = "") -> str:
    """A mean with its standard error, and by the law."""
    return f"{shown(_mse(board, form, epsilon, at))} ({shown(_law(board, form, epsilon, at)).split()[0]})"


def _figure_4(boards: Boards) -> Table:
    rows = [
        [city, epsilon, *(_told(board, form, epsilon) for form in MEASURED), f"{_gain(board, epsilon)[0]:.3g}"]
        for city, board in boards.items()
        for epsilon in EPSILONS
    ]
    return "Figure 4: MSE (by the law) against ε", ["city", "ε", *MEASURED, "baseline / chp"], rows


def _figure_5(boards: Boards) -> Table:
    rows = [
        [city, group, *(_told(board, f"{form}, {group}") for form in MEASURED)]
        for city, board in boards.items()
        for group in GROUPS
    ]
    return f"Figure 5: MSE (by the law) and number of consumers, ε = {FIXED}", ["city", "consumers", *MEASURED], rows


def _figure_6() -> Table:
    forms = ("chp", "baseline", "grr")
    rows = [
        [group, *(f"{bits(asked)} ({asked.report_bytes})" for form in forms for asked in (_bits(form, group),))]
        for group in GROUPS
    ]
    return f"Figure 6: bits (packed bytes) a contributor; sampling sends {SHARE} of chp's", ["consumers", *forms], rows


def _figure_7(boards: Boards) -> Table:
    rows = [
        [city, form, *(_told(board, form, FIXED, str(fold)) for fold in FOLDS)]
        for city, board in boards.items()
        for form in MEASURED
    ]
    head = ["city", "form", *(f"{fold} intervals" for fold in FOLDS)]
    return f"Figure 7: MSE (by the law) of each consumer, ε = {FIXED}", head, rows


def _encodings(boards: Boards) -> Table:
    rows = [
        [city, epsilon, _told(board, "chp", epsilon), *_against(board, epsilon)]
        for city, board in boards.items()
        for epsilon in LOW_TO_HIGH
    ]
    head = ["city", "ε", "symmetric", *(name for other in OTHERS for name in (other, "times symmetric's (by the law)"))]
    return "Encodings of the merged intervals: MSE (by the law)", head, rows


def _against(board: Board, epsilon: str) -> Iterator[str]:
    for other in OTHERS:
        law = _ratio(_law(board, other, epsilon), _law(board, "chp", epsilon))
        ratio, error = _ratio(_mse(board, other, epsilon), _mse(board, "chp", epsilon))
        yield _told(board, other, epsilon)
        yield f"{ratio:.3g} ± {error:.2g} ({law[0]:.3g})"
