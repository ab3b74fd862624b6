"""The curator's side in one function: reports are counted, and every consumer's histogram is published.

Nothing here is confidential, and nothing is charged: what contributors spent, they spent when they answered, and their
own records say so. Counting reports again is free, so more reports make a new revision at no price.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dphist_pipeline.answering import building
from dphist_pipeline.answering.catalogue import is_up_to_date
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.ledger.limits import refuse_no_reason
from dphist_pipeline.local.collection import CollectionSpec
from dphist_pipeline.local.collection_consumers import Consumer
from dphist_pipeline.local.law import estimates, law_of, projected
from dphist_pipeline.local.partition import Spans, question_of, spans_of
from dphist_pipeline.local.reports import tallied
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.publishing.release_files import move_into_place, read_audit, values_digest, write_release
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.binned_axes import BinnedAxisSpec

Progress = Callable[[str], None]

STEP = "reports"


class NoReports(DphistError):
    """A collection that nobody answered, or not as its question asks."""

    def __init__(self, collection: str, refused: dict[str, int]) -> None:
        self.collection, self.refused = collection, refused
        why = ", ".join(f"{number:,} {reason}" for reason, number in refused.items() if number)
        super().__init__(
            f"there is no report to the question of '{collection}'{f' (refused: {why})' if why else ''}. Look whether "
            "contributors were given this question: dphist local plan SPEC --question FILE"
        )


class ReportsChanged(DphistError):
    """What the reports say now is not what was published."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} is published, and these reports, "
            "or this spec, give something else. Reports cost nothing more: publish a new revision with "
            "dphist local publish SPEC --revise --reason TEXT"
        )


class ConsumersTakenBack(DphistError):
    """Publications of a collection that their office has withdrawn; its other consumers have theirs."""

    def __init__(self, collection: str, withdrawn: Sequence[Release], made: Sequence[Release]) -> None:
        self.collection = collection
        self.withdrawn, self.published = ([str(one.audit["release"]) for one in ones] for ones in (withdrawn, made))
        marked = "".join(
            f"release '{one['release']}', period {one['period']}, revision {one['revision']} was withdrawn on "
            f"{one['withdrawn']['at'][:10]}: {one['withdrawn']['reason']}. "
            for one in (each.audit for each in withdrawn)
        )
        super().__init__(
            f"{marked}Not published anew: {', '.join(self.withdrawn)}; "
            f"published: {', '.join(self.published) or 'none'}. "
            f"A new revision of all consumers of '{collection}' costs nothing more: "
            "dphist local publish SPEC --revise --reason TEXT, with a TEXT that was not given before"
        )


class TakenByARelease(DphistError):
    """A name that another collection, or a release of the central model, has already."""

    def __init__(self, release: str) -> None:
        self.release = release
        super().__init__(
            f"'{release}' is a release of this store already, and not of this collection. Nothing was published; "
            "rename the consumer or the collection."
        )


@dataclass(frozen=True, eq=False)
class Counted:
    """The reports to a collection's question, counted.

    Attributes:
        tally: what was accepted.
        refused: how many were not, by reason.
    """

    tally: Tally
    refused: dict[str, int]


def count_reports(spec: CollectionSpec, files: Sequence[Path], left_out: Mapping[str, int] = {}) -> Counted:
    """Counts the reports in Parquet files.

    Args:
        left_out: how many more came that no file could hold, by reason.

    Raises:
        NoReports, ReportsUnreadable.
    """
    tally, refused = tallied(question_of(spec), files)
    refused = {reason: number + left_out.get(reason, 0) for reason, number in refused.items()}
    if not tally.reports:
        raise NoReports(str(spec.collection), refused)
    return Counted(tally, refused)


def estimate_of(spec: CollectionSpec, counted: Counted, number: int) -> Estimate:
    """The estimated histogram of a consumer, by its number: unbiased, and projected where the spec says so."""
    tally, where, consumer = counted.tally, spans_of(spec)[number], spec.consumers[number]
    part = tally.question.parts[where.part]
    unbiased = _sums(estimates(tally, where.part), where)
    law = law_of(tally.question, part, tally.vectors)
    values = unbiased
    if spec.nonnegative:
        values = projected(unbiased, max(0.0, float(unbiased.sum())))
    return Estimate(
        domain=spec.domain_of(consumer),
        values=values,
        charges=((STEP, tally.question.epsilon),),
        unbiased=ReportedCells(unbiased, np.array(where.atoms, dtype=np.int64), law),
    )


def publish_collection(
    spec: CollectionSpec,
    store: Store | Path | str,
    counted: Counted,
    *,
    reason: str = "",
    only: str | None = None,
    progress: Progress = lambda step: None,
) -> list[Release]:
    """Publishes the histogram of every consumer, or gives back what was published.

    Args:
        spec: of the collection.
        store: where to publish; made by `dphist init`.
        counted: its reports.
        reason: makes a new revision of all consumers; the same reason again gives that revision back.
        only: one consumer's name, for an orchestrator that publishes them one by one.
        progress: told the name of each step as it begins.

    Raises:
        ReportsChanged: something else is published, and no reason for a revision is given.
        TakenByARelease: a name is taken; nothing was published.
        ConsumersTakenBack: what is meant was withdrawn, of some consumers; the others are published.
    """
    if reason:
        refuse_no_reason(f"collection '{spec.collection}': a revision", reason)
    store = store if isinstance(store, Store) else Store.open(Path(store))
    store.sweep()
    made: list[Release] = []
    withdrawn: list[Release] = []
    for consumer in spec.consumers:
        _refuse_taken(spec, store, spec.release_of(consumer))
    for number, consumer in enumerate(spec.consumers):
        if only in (None, consumer.name):
            progress(f"publishing {spec.release_of(consumer)}")
            release = _publish(spec, store, counted, number, reason)
            (withdrawn if "withdrawn" in release.audit else made).append(release)
    if not _catalogued(store, made):
        progress("updating the catalogue")
        key = Key(spec.release_of(spec.consumers[0]), spec.round, 1)
        with store.run(key) as scratch, store.building():
            if not _catalogued(store, made):  # whoever built just now may have had them
                building.build_apart(store.public, scratch)
    if withdrawn:
        raise ConsumersTakenBack(str(spec.collection), withdrawn, made)
    return made


def _catalogued(store: Store, made: Sequence[Release]) -> bool:
    return all(is_up_to_date(store.public, release.path) for release in made)


def _refuse_taken(spec: CollectionSpec, store: Store, release: str) -> None:
    """Refuses a name that anything else was published under, in any period, or that was charged and drawn for."""
    taken = (store.confidential / "journal" / release).exists()
    for audit in store.public.glob(f"{release}/period=*/revision=*/audit.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):  # a damaged one tells nothing
            taken |= json.loads(audit.read_bytes()).get("collection") != spec.collection
    if taken:
        raise TakenByARelease(release)


def _publish(spec: CollectionSpec, store: Store, counted: Counted, number: int, reason: str) -> Release:
    consumer = spec.consumers[number]
    estimate = estimate_of(spec, counted, number)
    key = _key(spec, store, consumer, reason)
    path = store.published(key)
    replayed = path.exists()
    if not replayed:
        with store.run(key) as scratch:
            staging = scratch / "published"
            staging.mkdir()
            write_release(estimate, {}, _facts(spec, consumer, counted, key, reason), staging)
            replayed = not move_into_place(staging, path)
    audit = read_audit(path)
    if reason and audit["reason"] != reason:  # somebody else made that revision a moment ago
        return _publish(spec, store, counted, number, reason)
    same = (audit["values_digest"], audit["spec_digest"]) == (values_digest(estimate), spec.digest)
    if not same and "withdrawn" not in audit:
        raise ReportsChanged(key)
    return Release(path, audit, replayed)


def _key(spec: CollectionSpec, store: Store, consumer: Consumer, reason: str) -> Key:
    """Which revision is meant: the latest, or that of the reason, or the next."""
    first = Key(spec.release_of(consumer), spec.round, 1)
    made = {}
    for folder in store.published(first).parent.glob("revision=*"):
        if folder.name.removeprefix("revision=").isdecimal():
            audit = read_audit(folder)
            made[audit["revision"]] = audit["reason"]
    same = [revision for revision, why in made.items() if why == reason]
    if not reason:
        return Key(first.release, first.period, max(made, default=1))
    return Key(first.release, first.period, same[0] if same else max(made, default=0) + 1)


def _sums(atoms: Any, where: Spans) -> Any:
    running = np.concatenate([[0.0], np.cumsum(atoms)])
    return running[np.array(where.last) + 1] - running[np.array(where.first)]


def _facts(spec: CollectionSpec, consumer: Consumer, counted: Counted, key: Key, reason: str) -> dict[str, Any]:
    """What the audit says beside the estimates: from the spec, and from what was sent."""
    question = counted.tally.question
    part = question.parts[spans_of(spec)[spec.consumers.index(consumer)].part]
    sampled = {"participation": str(question.participation)} if question.participation < 1 else {}
    return {
        "format": 1,
        "model": "local",
        "release": key.release,
        **({"title": str(spec.title)} if spec.title else {}),
        "period": key.period,
        "period_start": None,
        "period_end": None,
        "revision": key.revision,
        "reason": reason,
        "collection": str(spec.collection),
        "consumer": consumer.name,
        "account": None,
        "privacy_unit": "contributor",
        "max_rows_per_unit": question.values,
        "neighbours": "local",
        "sensitivity": None,
        "mechanism": spec.protocol,
        "settings": {
            "encoding": part.encoding,
            "values": question.combine,
            "report_epsilon": str(sum((each.epsilon for each in question.parts), Fraction(0))),
            "part_epsilon": str(part.epsilon),
            "intervals": part.intervals,
            **sampled,
            "nonnegative": spec.nonnegative,
        },
        "cells": consumer.intervals,
        "axes": [BinnedAxisSpec.model_validate({"column": str(spec.value), "edges": consumer.edges}).normalised()],
        "spec_digest": spec.digest,
        "question_digest": question.digest,
        "reports": {
            "accepted": counted.tally.reports,
            "values": counted.tally.vectors,
            "refused": counted.refused,
        },
        "ledger": None,
    }
