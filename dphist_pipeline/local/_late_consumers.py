"""Consumers who come later: whether reports that exist serve them, and if not, which of them makes the reports useless.

A question is what contributors were asked: merged boundaries, epsilon and encodings. A late consumer leaves it as it
is if its boundaries are among those of the others, its epsilon is at least theirs, and the encoding is declared, or
remains the best. Then its histogram is summed from the reports. Otherwise the reports answer another question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dphist_pipeline.errors import first_of
from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.local.partition import choices, merge_boundaries, question_of
from dphist_pipeline.local.reports import NAMED
from dphist_pipeline.spec.collection import CollectionSpec, Consumer
from dphist_pipeline.spec.fields import digits

MOST_NAMED = 5


def why_unserved(spec: CollectionSpec, digests: Collection[str]) -> str:
    """Which change of the spec makes reports answer another question, and its mend; empty if no such change is found.

    Looks at the declared encoding and each other one; then at the spec without each of its consumers, and without the
    last ones. Questions are told by the first digits of their digests, as reports name them.
    """
    for latecomers in _left_out(spec):
        earlier_consumers = tuple(reader for reader in spec.consumers if reader not in latecomers)
        earlier_spec = spec.model_copy(update={"consumers": earlier_consumers})
        for encoding in _encodings(earlier_spec, digests):
            return _in_words(spec, earlier_spec, latecomers, encoding)
    return ""


def _left_out(spec: CollectionSpec) -> Iterator[tuple[Consumer, ...]]:
    """Consumers who may have come later: nobody, each one, and the last two, three …"""
    yield ()
    if len(spec.consumers) > 1:
        yield from ((reader,) for reader in reversed(spec.consumers))
        yield from (spec.consumers[first:] for first in range(len(spec.consumers) - 2, 0, -1))


def _encodings(spec: CollectionSpec, digests: Collection[str]) -> Iterator[Encoding | None]:
    """By which encodings the spec asks one of the questions; None is the declared one."""
    declared = question_of(spec)
    if declared.digest[:NAMED] in digests:
        yield None
    for encoding in choices(declared):
        if question_of(spec, encoding=encoding).digest[:NAMED] in digests:
            yield encoding


def _in_words(
    spec: CollectionSpec, earlier_spec: CollectionSpec, latecomers: tuple[Consumer, ...], encoding: Encoding | None
) -> str:
    by = f"`encoding: {encoding or question_of(earlier_spec).parts[0].encoding}`"
    if not latecomers:
        return f"The reports are to this question by {by}: declare that, and they count."
    names = [f"{consumer.name!r}" for consumer in latecomers]
    who = f"consumer{'s' if len(latecomers) > 1 else ''} {first_of(names, MOST_NAMED)}"
    boundaries = merge_boundaries(reader.edges for reader in earlier_spec.consumers)
    added = sorted({edge for consumer in latecomers for edge in consumer.edges} - set(boundaries))
    lower = [consumer for consumer in latecomers if consumer.epsilon < earlier_spec.report_epsilon]
    if spec.protocol == "split_budget":
        reason = (
            "under split_budget every consumer has a vector of its own, so no later one is served by reports that exist"
        )
    elif added:
        places = first_of([digits(edge) for edge in added], MOST_NAMED)
        reason = (
            f"boundaries {places} are not among theirs, which are {first_of([digits(edge) for edge in boundaries], 20)}"
        )
    elif lower:
        spent = as_text(earlier_spec.report_epsilon)
        reason = f"epsilon {as_text(min(one.epsilon for one in lower))} is less than the {spent} that they spent"
    else:
        return f"The reports are to the question without {who}, by {by}: declare that, and they serve all consumers."
    return (
        f"The reports are to the question without {who}, by {by}, and cannot serve this one: {reason}. Change that and "
        f"declare {by}, or ask anew in another `round`, which costs contributors epsilon anew."
    )
