"""How counts were estimated from random reports: protocol, paper, encoding, and the estimator with its numbers."""

from __future__ import annotations

from dphist_pipeline.publishing.card_pieces.facts import Facts, entries, number
from dphist_pipeline.publishing.card_pieces.local_asked import Asked
from dphist_pipeline.publishing.plots_drawing import xml

PAPER = (
    "Zheng, Yan, Duan, Tang, Tian. Histogram publication over numerical values under local differential privacy. 2021"
)
PROTOCOLS = {
    "shp": (
        "single histogram publication: one consumer, whose intervals are asked for as they are",
        "section 4.1",
    ),
    "chp": (
        "composited histogram publication: the ends of all consumers’ intervals are merged, contributors are asked "
        "once for the finer intervals between them, at the least ε of any consumer, and each consumer’s histogram is "
        "added up",
        "section 4.2",
    ),
    "split_budget": (
        "each consumer’s intervals are asked for by themselves, at an equal part of the least ε of any consumer",
        "the baseline that the paper compares with",
    ),
    "sampled": (
        "as chp, but each report is sent with a declared probability only, and the estimator divides by it",
        "sections 3.2 and 5",
    ),
}
ENCODINGS = {
    "symmetric": "a bit for each interval, 1 and 0 kept alike (Basic RAPPOR, as in the paper)",
    "optimized": "a bit for each interval, 0 kept more often than 1 (optimized unary encoding, Wang et al. 2017)",
    "grr": "the number of an interval, or of none (generalized randomized response; Wang et al. 2017)",
}


def method(facts: Facts) -> str:
    """The section on protocol and estimator."""
    audit, asked = facts.audit, Asked.of(facts.audit)
    name = str(audit["mechanism"])
    what, where = PROTOCOLS.get(name, ("", ""))
    shown = {"Protocol": f"<code>{xml(name)}</code>{f': {what}' if what else ''}"}
    shown["Paper"] = f"{PAPER}{f': {where}' if where else ''}"
    shown["Encoding"] = f"<code>{xml(asked.encoding)}</code>: {ENCODINGS[asked.encoding]}"
    shown["Estimate"] = _estimator(asked)
    if asked.values > 1:
        shown["Several values"] = f"exactly {asked.values} of each contributor, filled up with none" + (
            "; added up bit by bit in one report" if asked.summed else ", each in a report of its own"
        )
    if asked.sampled:
        shown["Sampling"] = f"P = {number(asked.participation)}; no smaller ε is claimed for it"
    shown["After that"] = (
        "the nearest values, by squared error, that have none below 0 and the same sum (or are all 0 where that is "
        "negative)"
        if asked.nonnegative
        else "nothing: not rounded, not smoothed, not cut off at 0"
    )
    shown["Unlike the paper"] = (
        "an interval does not hold its upper end, but for the last: a value on an end that two intervals share would "
        "otherwise be reported twice, and cost 2ε. A value in no interval is reported as none"
    )
    shown["Randomness"] = "coins with exact chances, from the cryptographic source of each contributor’s own system"
    return entries(shown)


def _estimator(asked: Asked) -> str:
    chances = asked.odds
    ones = "reports that name an interval of the range" if asked.encoding == "grr" else "bits that are 1 in the range"
    divisor = "((p − q)·P)" if asked.sampled else "(p − q)"
    return (
        f"(T − M·s·q) / {divisor}: T the number of {ones}, M = {asked.reported:,} values reported, s the intervals of "
        f"a report in the range, q = {chances.elsewhere:.6g}, p = {chances.there:.6g}"
    )
