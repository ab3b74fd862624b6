"""Chen et al. 2024 (SReB_GCA): its theorems on relative errors, its corollaries, and figures 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import printed
from measuring import private
from public_data import real_waitakere
from report import Claim, Section, Verdict

from dphist_pipeline.solvers.groups.relative_groups import relative_groups
from dphist_pipeline.solvers.groups.value_groups import groups_by_value
from dphist_pipeline.workbench.evaluation.synthetic_sets import SETS, synthetic_counts

CELLS, MEAN = 10, 100.0
SCALES = {"figure 1": 2000.0, "figure 2": 100.0}  # λ = 1/ε at ε = 0.0005 and 0.01
MARKED = {"figure 1": 0.693, "figure 2": -2.303}  # points A and B: ln of the error at the mean
BINS = np.arange(1, 301, dtype=float)
DRAWS = 200_000
CLASSES = ((0, 0), (1, 10), (11, 100), (101, 1_000), (1_001, 10_000_000))
SMALL = 10
HALF = 20.0  # λ₁ and λ₂ of corollary 2, i.e. halves of ε = 0.1
DOUBLED = (1, 2, 4, 8, 16, 32, 64)  # bins of a group
PRIVATE = private("sreb_gca")
PRINTED_DRAWS = "halves, a draw of scale λ₂/|C| for every bin of a group"
Reals = np.ndarray


def study(quick: bool) -> Section:
    """Computes the curves, and tries the theorems on random groups."""
    curves = {name: _approximated(BINS, MEAN, CELLS, scale) for name, scale in SCALES.items()}
    exact = {name: _exact(BINS, MEAN, CELLS, scale) for name, scale in SCALES.items()}
    sets = {name: synthetic_counts(name) for name in SETS}
    if (real := real_waitakere()) is not None:
        sets["real meshblocks"] = real
    shares = {name: _shares(counts) for name, counts in sets.items()}
    setting = (
        f"A group of {CELLS} bins with mean {MEAN:g}; λ = 2000 (figure 1) and 100 (figure 2). Figure 3 on stand-ins "
        "with the statistics of the paper's four sets, which are not to be had as it had them, so that the number of "
        "their small bins is invented; and on 1,340 real meshblocks, where the paper has 7,725 bins of the same people."
    )
    tables = [_curve_table(curves, exact), _share_table(shares)]
    series = {
        **{name: {"H_j": BINS.tolist(), "ln, approximated": np.log(line).tolist()} for name, line in curves.items()},
        "figure 3": {"classes": CLASSES, **shares},
    }
    return Section(
        "SReB_GCA, relative errors (Chen et al. 2024)",
        setting,
        _claims(curves, exact, sets, shares),
        tables,
        series=series,
        contenders={"sreb_gca": str(PRIVATE), "printed": f"as printed, not private: {PRINTED_DRAWS}"},
        data="a group of ten bins; for figure 3 stand-ins" + (" and real meshblocks" if real is not None else ""),
    )


def _approximated(bins: Reals, mean: float, cells: int, scale: float) -> Reals:
    """Theorem 1: (|H_j - mean| + λ/|C|) / H_j."""
    return (np.abs(bins - mean) + scale / cells) / bins


def _exact(bins: Reals, mean: float, cells: int, scale: float) -> Reals:
    """Equation (15), of which theorem 1 drops a factor exp(-|H_j - mean|·|C|/λ) of the noise."""
    off = np.abs(bins - mean)
    return (off + scale / cells * np.exp(-off * cells / scale)) / bins


def _shares(counts: Reals) -> list[float]:
    return [float(((counts >= low) & (counts <= high)).mean()) for low, high in CLASSES]


def _claims(
    curves: dict[str, Reals], exact: dict[str, Reals], sets: dict[str, Reals], shares: dict[str, list[float]]
) -> list[Claim]:
    one, two = curves.values()
    below, above = BINS <= MEAN, BINS >= MEAN
    random = np.random.default_rng(2024)
    drawing = np.random.default_rng(2025)
    printed_spent = {name: printed.sreb_gca(counts, 1.0, drawing).spent for name, counts in sets.items()}
    relative_errors = {name: _relative_to_noisy(counts, drawing) for name, counts in sets.items()}
    return [
        *(
            _claim(
                name.capitalize(),
                f"at the mean the logarithm of the error is {marked}",
                Verdict.over([abs(np.log(curves[name][BINS == MEAN][0]) - marked) < 0.001]),
            )
            for name, marked in MARKED.items()
        ),
        _claim(
            "Theorem 1",
            "the expected error, within a tenth",
            Verdict.over(
                bool((line <= 1.1 * true).all()) for line, true in zip(curves.values(), exact.values(), strict=True)
            ),
            f"it is a bound, up to {max((curves[name] / exact[name]).max() for name in curves):.2g} times the error; "
            "equation (15) is exact, and a simulation agrees",
        ),
        _claim("Theorem 1", "equation (15) is the simulated error, within 2 %", _simulated()),
        _claim("Theorem 2", "the nearer of two larger bins raises the error of a bin by less", _nearer(random)),
        _claim(
            "Theorem 3",
            "the noise of a bin, relative to its count, falls where the group doubles, from 1 to 64 bins",
            _noise_falls(),
            f"and is λ/(|C|·H_j) within 2 %: {_noise_told()} of a bin of {MEAN:g} at λ = {SCALES['figure 2']:g}",
        ),
        _claim("Theorem 4 (1)", "figure 1: the error falls along all bins", _steps(one, rises=False)),
        _claim("Theorem 4 (2)", "figure 2: it falls up to the mean", _steps(two[below], rises=False)),
        _claim("Theorem 4 (2)", "and rises above the mean", _steps(two[above], rises=True), "flat where |C|·mean = λ"),
        _claim(
            "Theorem 4",
            "the same of the exact error",
            Verdict.over(
                [
                    _all(exact["figure 1"], rises=False),
                    _all(exact["figure 2"][below], rises=False),
                    _all(exact["figure 2"][above], rises=True),
                ]
            ),
            "in figure 2 the exact error falls on just above the mean, where theorem 1 bends",
        ),
        _claim("Theorem 5", "the error rises with λ", Verdict.over(_rises_with_scale())),
        _claim(
            "Theorem 6",
            "the mean error of a group goes with a bin as the bin's own error does",
            _group_goes_along(random),
            "a bin that moves takes the mean along, and the other bins' errors with it",
        ),
        _claim("Theorem 7", "λ/((n - j + 1)·H_j) is below the least error of a bin", _lower_bound(random)),
        Claim(
            "Corollary 1",
            "its draws spend no more than ε, at ε = 1",
            Verdict.over(spent <= 1 for spent in printed_spent.values()),
            Verdict.over(_spent(counts) <= 1 for counts in sets.values()),
            "one draw for a group; a draw for every bin of a group C spends |C|·ε₂",
            "ε exactly",
            "; ".join(f"{name} {spent:,.3g}·ε" for name, spent in printed_spent.items()),
        ),
        _claim(
            "Corollary 2",
            "the expected error relative to the noisy count, mean of all bins, within a tenth",
            Verdict.over(abs(said / real - 1) <= 0.1 for said, real, _ in relative_errors.values()),
            f"{_ratios(relative_errors, 1)} times the error, at λ₁ = λ₂ = {HALF:g} and counts below 1 taken as 1",
        ),
        _claim(
            "(Corollary 2)",
            "the same, relative to the exact count",
            Verdict.over(abs(said / real - 1) <= 0.1 for said, _, real in relative_errors.values()),
            f"{_ratios(relative_errors, 2)} times the error",
        ),
        _claim(
            "(Figure 3)",
            f"on the sets here: more than half of the bins count {SMALL} or less",
            Verdict.over(sum(found[:2]) > 0.5 for found in shares.values()),
            "; ".join(f"{name} {sum(found[:2]):.0%}" for name, found in shares.items()),
        ),
    ]


def _claim(where: str, says: str, verdict: Verdict, note: str = "") -> Claim:
    return Claim(where, says, None, verdict, note)


def _steps(line: Reals, rises: bool) -> Verdict:
    """Steps that are neither up nor down are open."""
    return Verdict.over(None if abs(a - b) < 1e-12 else bool((a < b) == rises) for a, b in pairwise(line))


def _all(line: Reals, rises: bool) -> bool:
    return all((a < b) == rises for a, b in pairwise(line))


def _simulated() -> Verdict:
    """By the quantiles of the noise in place of draws."""
    answers, tail = [], np.minimum(places := (np.arange(DRAWS) + 0.5) / DRAWS, 1 - places)
    for scale in SCALES.values():
        noise = np.sign(places - 0.5) * scale * -np.log(2 * tail) / CELLS
        for count in (5.0, 60.0, 100.0, 250.0):
            told = _exact(np.array([count]), MEAN, CELLS, scale)[0]
            answers.append(bool(abs(np.abs(MEAN + noise - count).mean() / count / told - 1) < 0.02))
    return Verdict.over(answers)


def _noise(cells: int, scale: float) -> float:
    """The mean size of the noise of a bin in a group, by the quantiles of a draw of the group's sum."""
    places = (np.arange(DRAWS) + 0.5) / DRAWS
    return float((-scale * np.log(2 * np.minimum(places, 1 - places)) / cells).mean())


def _noise_falls() -> Verdict:
    """Whether a group of twice the bins has less noise, and that of the formula."""
    scale, answers = SCALES["figure 2"], []
    for few, many in pairwise(DOUBLED):
        less, more = _noise(many, scale), _noise(few, scale)
        answers.append(less < more and abs(less / (scale / many) - 1) < 0.02)
    return Verdict.over(answers)


def _noise_told() -> str:
    ends = (_noise(cells, SCALES["figure 2"]) / MEAN for cells in (DOUBLED[0], DOUBLED[-1]))
    return " → ".join(f"{end:.3g}" for end in ends)


def _spent(counts: Reals) -> Fraction:
    """What the private form charges at ε = 1."""
    return sum((charge for _, charge in PRIVATE(counts, Fraction(1), np.random.default_rng()).charges), Fraction())


def _relative_to_noisy(counts: Reals, random: np.random.Generator) -> tuple[float, float, float]:
    """Corollary 2's formula, the error relative to noisy counts, and that relative to exact ones; mean of all bins."""
    noisy = printed.laplace(counts, 1 / HALF, random).values
    groups = groups_by_value(noisy, lambda line: relative_groups(line, HALF))
    sizes = np.bincount(groups)
    mean, cells = (np.bincount(groups, weights=counts) / sizes)[groups], sizes[groups]
    below, off = np.maximum(noisy, 1.0), np.abs(noisy - mean)
    truth = np.abs(counts - mean)
    return (
        float(((off + HALF / cells) / below).mean()),
        float(((off + HALF / cells * np.exp(-off * cells / HALF)) / below).mean()),
        float(((truth + HALF / cells * np.exp(-truth * cells / HALF)) / np.maximum(counts, 1.0)).mean()),
    )


def _ratios(found: dict[str, tuple[float, float, float]], place: int) -> str:
    """Formula over error on every set."""
    return "; ".join(f"{name} {errors[0] / errors[place]:.3g}" for name, errors in found.items())


def _nearer(random: np.random.Generator) -> Verdict:
    """A bin below the mean of its group, and two larger ones of which one joins."""
    answers = []
    for _ in range(500):
        group = np.sort(random.integers(1, 100, random.integers(2, 9))).astype(float)
        low, near = group[0], group[-1] + random.integers(0, 50)
        far = near + random.integers(1, 50)
        joined = [np.append(group, other) for other in (near, far)]
        errors = [_approximated(np.array([low]), part.mean(), part.size, 50.0)[0] for part in joined]
        answers.append(bool(errors[0] < errors[1]))
    return Verdict.over(answers)


def _rises_with_scale() -> list[bool]:
    lines = [_approximated(BINS, MEAN, CELLS, scale) for scale in (1.0, 10.0, 100.0, 1000.0)]
    return [bool((low < high).all()) for low, high in pairwise(lines)]


def _group_goes_along(random: np.random.Generator) -> Verdict:
    """Whether a step of one bin moves its own error and the mean error of its group the same way."""
    answers = []
    for _ in range(500):
        group = np.sort(random.integers(2, 200, 8)).astype(float)
        place, scale = int(random.integers(8)), float(random.choice([10, 200, 4000]))
        moved = group.copy()
        moved[place] += 1
        own, whole = [], []
        for part in (group, moved):
            errors = _approximated(part, part.mean(), part.size, scale)
            own.append(errors[place])
            whole.append(errors.mean())
        answers.append(bool((own[0] < own[1]) == (whole[0] < whole[1])))
    return Verdict.over(answers)


def _lower_bound(random: np.random.Generator) -> Verdict:
    answers = []
    for _ in range(200):
        line = np.sort(random.integers(1, 300, 12)).astype(float)
        scale, first = float(random.choice([1, 50, 1000])), int(random.integers(11))
        groups = [line[first:end] for end in range(first + 1, 13)]
        least = min(_approximated(group[:1], group.mean(), group.size, scale)[0] for group in groups)
        answers.append(bool(least >= scale / (line.size - first) / line[first] * (1 - 1e-12)))
    return Verdict.over(answers)


def _curve_table(curves: dict[str, Reals], exact: dict[str, Reals]) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [f"{bin_:g}", *(f"{np.log(line[name][bin_ == BINS][0]):.3f}" for name in curves for line in (curves, exact))]
        for bin_ in (1.0, 20.0, 60.0, 100.0, 140.0, 200.0, 300.0)
    ]
    head = ["H_j", *(f"{name}, {kind}" for name in curves for kind in ("theorem 1", "exact"))]
    return "Figures 1 and 2: ln of the expected relative error", head, rows


def _share_table(shares: dict[str, Sequence[float]]) -> tuple[str, list[str], list[list[str]]]:
    names = [str(low) if low == high else f"{low:,} to {high:,}" for low, high in CLASSES[:-1]]
    rows = [[name, *(f"{share:.3f}" for share in found)] for name, found in shares.items()]
    return "Figure 3: share of bins by count", ["set", *names, "above 1,000"], rows
