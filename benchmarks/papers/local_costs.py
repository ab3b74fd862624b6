"""Zheng et al. 2021 (histograms under local privacy): theorems 2 and 3 by likelihoods, section 4.2.3 by times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, isclose, log

import numpy as np
from local_shapes import EPSILONS, INTERVALS, SHARE, chances, loss
from report import Claim, Section, Verdict

from dphist_pipeline.local.encoding import encode
from dphist_pipeline.local.law import estimates
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally

MERGED = (64, 128, 256, 512, 1024)  # intervals
CONTRIBUTORS = (20_000, 40_000, 80_000, 160_000)
EPSILON, TOP = Fraction(15), 1 << 19
NOISE = 0.3  # of a measured exponent
REPEATS = (9, 3)  # in the whole and with `--quick`


def study(quick: bool) -> Section:
    """Counts all reports for the theorems, and times contributors and curator."""
    repeats = REPEATS[quick]
    by_merged = [_seconds(merged, CONTRIBUTORS[0], repeats) for merged in MERGED]
    by_number = [_seconds(MERGED[0], number, repeats) for number in CONTRIBUTORS]
    encoding, decoding = (_slope(MERGED, [pair[place] for pair in by_merged]) for place in (0, 1))
    crowd = _slope(CONTRIBUTORS, [pair[1] for pair in by_number])
    hidden, seen = [_hidden_loss(epsilon) for epsilon in EPSILONS], [_seen_loss(epsilon) for epsilon in EPSILONS]
    claims = [
        Claim(
            "Theorem 2",
            "Basic RAPPOR with f has the loss ln(((1 - f/2)/(f/2))²), over all reports",
            Verdict.over(loss(_truthful(e), closed=False) <= _misprint(e) * (1 + 1e-9) for e in EPSILONS),
            Verdict.over(isclose(loss(_truthful(e), closed=False), e) for e in EPSILONS),
            note=f"all reports and values of {INTERVALS} intervals, f = 2/(e^(ε/2) + 1) at ε = {_listed(EPSILONS)}",
            figures=f"the loss is {_listed(loss(_truthful(e), closed=False) for e in EPSILONS)}",
            printed_figures="the text at hand has 1/2 for f/2 in the denominator: "
            f"{_listed(_misprint(e) for e in EPSILONS)}",
        ),
        Claim(
            "Theorem 3",
            "sampling lowers the loss to ln(1 + P₀·(e^ε - 1)): nobody sees who takes part",
            None,
            Verdict.over(found <= most * (1 + 1e-9) for found, most in hidden),
            note=f"P₀ = {SHARE}; who is not asked sends the noise of an empty vector, and is compared with one who is "
            "absent",
            figures=f"the loss is {_listed(found for found, _ in hidden)}, by the theorem "
            f"{_listed(most for _, most in hidden)}",
        ),
        Claim(
            "Theorem 3",
            "sampling lowers the loss to ln(1 + P₀·(e^ε - 1)): the curator sees that a report was sent, as in CHP",
            None,
            Verdict.over(found <= most * (1 + 1e-9) for found, most in seen),
            figures=f"the loss is {_listed(found for found, _ in seen)}, by the theorem "
            f"{_listed(most for _, most in seen)}",
        ),
        Claim(
            "Section 4.2.3",
            f"a contributor's time grows with the merged intervals at most: exponent at most 1 + {NOISE}",
            None,
            Verdict.over([encoding <= 1 + NOISE]),
            figures=f"exponent {encoding:.2f} from {MERGED[0]} to {MERGED[-1]:,} intervals",
        ),
        Claim(
            "Section 4.2.3",
            f"the curator's time grows with the square of the merged intervals at most: exponent at most 2 + {NOISE}",
            None,
            Verdict.over([decoding <= 2 + NOISE]),
            figures=f"exponent {decoding:.2f} from {MERGED[0]} to {MERGED[-1]:,} intervals",
        ),
        Claim(
            "(Section 4.2.3)",
            f"the curator's time does not grow with contributors: exponent at most {NOISE}",
            None,
            Verdict.over([crowd <= NOISE]),
            note="the statement names the intervals alone; that of one query names contributors, too (section 4.1.3)",
            figures=f"exponent {crowd:.2f} from {CONTRIBUTORS[0]:,} to {CONTRIBUTORS[-1]:,} contributors: every report "
            "is counted",
        ),
    ]
    setting = (
        f"Theorems: exact likelihoods of all reports of {INTERVALS} intervals, ε = {_listed(EPSILONS)}; settings of a "
        f"claim: these ε. Times: processor seconds, best of {repeats}, one consumer of {_listed(MERGED)} equal "
        f"intervals, {CONTRIBUTORS[0]:,} invented contributors, or {_listed(CONTRIBUTORS)} and {MERGED[0]} intervals; "
        "encoding as contributors do, counting and estimating as the curator does. Exponents by least squares of "
        f"logarithms, held to within {NOISE}."
    )
    return Section(
        "LDP histograms, theorems and times (Zheng et al. 2021)",
        setting,
        claims,
        [
            ("Section 4.2.3: seconds by merged intervals", HEAD, _rows(MERGED, by_merged)),
            ("Section 4.2.3: seconds by contributors", HEAD, _rows(CONTRIBUTORS, by_number)),
        ],
        contenders={"chp": f"chp, symmetric encoding, ε = {EPSILON}"},
        data=f"invented salaries, {CONTRIBUTORS[0]:,} to {CONTRIBUTORS[-1]:,} contributors",
        few=f"best of {REPEATS[1]} in place of {REPEATS[0]}",
    )


HEAD = ["number", "all contributors", "curator"]


def _truthful(epsilon: float) -> float:
    """The probability that a bit is told as it is, 1 - f/2, with f of equation (13)."""
    return 1 - 1 / (exp(epsilon / 2) + 1)


def _misprint(epsilon: float) -> float:
    """Theorem 2 as the text at hand prints it: ln(((1 - f/2)/(1/2))²)."""
    return 2 * log(2 * _truthful(epsilon))


def _hidden_loss(epsilon: float) -> tuple[float, float]:
    """The loss of a sampled report against that of somebody absent, and what theorem 3 says of it."""
    share = float(SHARE)
    laws = np.exp(chances(_truthful(epsilon), [(), (0,)]))
    own = float(np.abs(np.diff(np.log(laws), axis=1)).max())
    mixed = np.log(share * laws[:, 1] + (1 - share) * laws[:, 0]) - np.log(laws[:, 0])
    return float(np.abs(mixed).max()), log(1 + share * (exp(own) - 1))


def _seen_loss(epsilon: float) -> tuple[float, float]:
    """The loss between two values where a report that was not sent is an outcome, and what theorem 3 says of it."""
    share = float(SHARE)
    laws = log(share) + chances(_truthful(epsilon), [(0,), (1,)])
    sent = float(np.abs(np.diff(laws, axis=1)).max())
    return max(sent, 0.0), log(1 + share * (exp(epsilon) - 1))


def _seconds(merged: int, contributors: int, repeats: int) -> tuple[float, float]:
    """The best seconds of all contributors together, and of the curator."""
    edges = tuple(Fraction(TOP * place, merged) for place in range(merged + 1))
    question = Question("salaries", (Part(edges, EPSILON, "symmetric"),))
    values = np.random.default_rng(7).uniform(0, TOP, (contributors, 1))
    reports = encode(question, values)

    def curator() -> None:
        tally = Tally(question)
        tally.add(reports)
        estimates(tally, 0)

    return _best(lambda: encode(question, values), repeats), _best(curator, repeats)


def _best(call: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found[1:])  # the first compiles


def _slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of the growth, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _rows(sizes: Sequence[int], seconds: Sequence[tuple[float, float]]) -> list[list[str]]:
    return [[f"{size:,}", *(f"{one:.3g}" for one in pair)] for size, pair in zip(sizes, seconds, strict=True)]


def _listed(numbers: object) -> str:
    return ", ".join(f"{number:,.4g}" if number < 10_000 else f"{number:,}" for number in numbers)  # type: ignore[attr-defined]
