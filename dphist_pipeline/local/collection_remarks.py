"""What a collection costs and what an office should know of it, in words."""

from __future__ import annotations

from dphist_pipeline.ledger.entries import as_text
from dphist_pipeline.local.collection import CollectionSpec
from dphist_pipeline.local.question import EVERY_ROUND

NOT_COVERED = (
    "Errors are of the perturbation alone, one standard deviation. Contributors who do not answer, or not truly, are "
    "not covered.",
    "A count of less than about two standard errors cannot be told from 0.",
)


def spending(spec: CollectionSpec) -> str:
    """What a contributor spends, in words."""
    each, total = as_text(spec.report_epsilon), as_text(spec.epsilon)
    if spec.values_per_contributor == 1:
        return f"epsilon {total}"
    return f"epsilon {total}: {spec.values_per_contributor} values, each {each}"


def remarks(spec: CollectionSpec) -> list[str]:
    """What the people of an office should know before they ask, a sentence or two each."""
    each = as_text(spec.report_epsilon)
    found = []
    others = [reader for reader in spec.consumers if reader.epsilon != spec.report_epsilon]
    if others:
        named = ", ".join(f"{reader.name} ({as_text(reader.epsilon)})" for reader in others[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        found.append(f"A report spends epsilon {each}, the least of all consumers; so {named}{more} get no more of it.")
    if spec.protocol == "sampled":
        found.append(
            f"That a report is sent with probability {as_text(spec.participation)} only does not lower epsilon: "
            f"whoever sees a report knows that it was sent. It saves sending, and makes errors larger."
        )
    if spec.protocol == "split_budget" and len(spec.consumers) > 1:
        found.append(
            f"Each of {len(spec.consumers)} consumers gets a vector of its own at epsilon "
            f"{as_text(spec.report_epsilon / len(spec.consumers))}; together they spend {each}."
        )
    if spec.values_per_contributor > 1:
        found.append(
            f"Every contributor reports exactly {spec.values_per_contributor} values: missing ones as `none`, and of "
            "more, so many chosen at random. The tables count values, not people."
        )
    found.append(
        "Values below `start`, above `stop` or missing are reported as `none`: they cost the same, and are in no "
        "interval."
    )
    again = "Another round asks" if spec.round != EVERY_ROUND else "To ask again, declare a `round`: it asks"
    found.append(f"{again} anew and costs every contributor epsilon {as_text(spec.epsilon)} more.")
    if spec.nonnegative:
        found.append(
            "`nonnegative` raises estimates below 0 and lowers the others as much: what is published is biased, and "
            "errors are those of the estimates before."
        )
    return found
