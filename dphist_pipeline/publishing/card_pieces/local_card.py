"""A card of the local model: contributors sent reports that were random already, and a curator counted those."""

from __future__ import annotations

from dphist_pipeline.answering.intervals import LEVEL
from dphist_pipeline.answering.report_intervals import half_widths_of_cells, normal_factor
from dphist_pipeline.publishing.card_pieces import grid_words
from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, number, rounded
from dphist_pipeline.publishing.card_pieces.local_asked import Asked, about
from dphist_pipeline.publishing.card_pieces.local_errors import errors
from dphist_pipeline.publishing.card_pieces.local_method import method
from dphist_pipeline.publishing.card_pieces.local_promise import cost, promise
from dphist_pipeline.publishing.card_pieces.local_warnings import warnings
from dphist_pipeline.publishing.card_pieces.pieces import Pieces
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import named, table

FILES = {
    "histogram.parquet": "every interval with its estimate, the unbiased estimate and its ends",
    "groups.parquet": "one group of all intervals: none were put together",
    "audit.parquet": "what answering spent",
    "audit.json": "all facts, digests of all files; whether this was withdrawn later",
    "deployment.yaml": "the same facts for the OpenDP deployments registry, as far as they are known",
}
REFUSED = {
    "unreadable": "was no report, or was cut off",
    "other question": "answered another question, or another round of this one",
    "wrong length": "was shorter or longer than the question asks",
    "malformed": "says what no contributor’s program says",
    "duplicate": "has the random number of a report that came before it",
}


def _when(facts: Facts) -> str:
    return "" if facts.audit["period"] == "all" else f"the round of {xml(str(facts.audit['period']))}"


def _key(facts: Facts) -> dict[str, str]:
    asked, reach = Asked.of(facts.audit), half_widths_of_cells(facts.reported, normal_factor(LEVEL))
    ends = list(dict.fromkeys(rounded(float(end)) for end in (reach.min(), reach.max())))
    return {
        "Intervals": f"{facts.grid.domain.cells:,}",
        "Protected": "the value of each contributor" if asked.values == 1 else "the values of each contributor",
        "Privacy": f"ε\u00a0=\u00a0{number(asked.epsilon)} for a contributor",
        "Reports": f"{asked.accepted:,}",
        "Error of an interval": f"± {' to '.join(ends)} (95\u00a0%)",
    }


def _counted(facts: Facts) -> dict[str, str]:
    audit, asked = facts.audit, Asked.of(facts.audit)
    name = named(facts.grid.domain.axes[0].name)
    question = f"every contributor was asked for {counted(asked.values, f'value of {name}', f'values of {name}')}"
    if asked.values > 1:
        question += (
            "; somebody with fewer reports none for the rest, somebody with more reports some of them, chosen at random"
        )
    return {
        "Collection": f"<code>{xml(str(audit['collection']))}</code>, for the consumer "
        f"<q>{named(str(audit['consumer']))}</q>",
        "Round": _when(facts) or "no rounds: asked once",
        "Question": question,
        "Counted": "random reports of these values, never the values; how many values lie in each interval is "
        "estimated from them",
        "Intervals": f"{facts.grid.domain.cells:,}; declared before anybody was asked, and all published, empty ones "
        "too",
        "Reports accepted": _accepted(asked),
    }


def _accepted(asked: Asked) -> str:
    said = f"{asked.accepted:,}"
    if asked.summed:
        return f"{said}, each for the {asked.values} values of a contributor together"
    made = f", of about {about(asked.accepted / float(asked.participation))} that were made"
    each = f"; a contributor makes {asked.values}, one for each value"
    return f"{said}{made if asked.sampled else ''}{each if asked.values > 1 else ''}"


def _refused(facts: Facts) -> str:
    refused = Asked.of(facts.audit).refused
    if not any(refused.values()):
        return "<p>No report was refused.</p>"
    rows = [[named(reason), REFUSED.get(reason, ""), f"{reports:,}"] for reason, reports in refused.items() if reports]
    return table(
        "Reports that were refused: they are in no number here", ["reason", "each of them", "reports"], rows, 1
    )


def _record(facts: Facts) -> dict[str, str]:
    return {
        "Ledger entry": "none: nothing was charged to an account. What contributors spent stands in their own records",
        "Question digest": f"<code>{xml(str(facts.audit['question_digest']))}</code>, by which a contributor’s program "
        "knows what was asked",
    }


LOCAL = Pieces(
    kind="Counts under local differential privacy",
    when=_when,
    key=_key,
    counted=_counted,
    after_axes=_refused,
    axis=grid_words.intervals_in_words,
    axis_header=("axis", "intervals along it", "number"),
    promise=promise,
    cost=cost,
    errors=errors,
    warnings=warnings,
    method=method,
    record=_record,
    files=FILES,
)
