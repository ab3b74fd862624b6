"""The curator's side: counts reports, estimates every consumer's histogram, and hands it to the publisher.

Nothing here is confidential, and nothing is charged: contributors spent their epsilon when they answered, and their own
records say so. Counting reports again is free, so more reports make a new revision at no price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphist_pipeline.errors import Halted, Refused
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.ledger.limits import refuse_no_reason
from dphist_pipeline.local._late_consumers import why_unserved
from dphist_pipeline.local.law import estimates, law_of, project
from dphist_pipeline.local.partition import question_of, spans_of
from dphist_pipeline.local.reports import OTHER_QUESTION, files_at, questions_named, tally_of
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.collection import CollectionSpec

STEP = "reports"


def no_report_files(spec: CollectionSpec) -> Refused:
    """A collection without files of reports."""
    problem = "nothing says where the reports are"
    if spec.reports is not None:
        problem = f"no file matches `reports: {spec.reports}`, looked for from the project's folder"
    return Refused(
        f"collection '{spec.collection}': {problem}. Put Parquet files there, name files after the spec, or send "
        "lines to standard input: … | dphist local publish SPEC -. Nothing was published.",
        code="no_report_files",
    )


def no_reports(collection: str, refused: dict[str, int], mend: str = "") -> Refused:
    """A collection without a single valid report; `mend` says what made reports useless, where that is known."""
    why = ", ".join(f"{number:,} {reason}" for reason, number in refused.items() if number)
    hint = "Look whether contributors were given this question: dphist local plan SPEC --question FILE"
    reasons = f" (refused: {why})" if why else ""
    return Refused(f"there is no report to the question of '{collection}'{reasons}. {mend or hint}", code="no_reports")


def reports_changed(key: Key) -> Refused:
    """The reports, or the spec, give other values than were published."""
    return Refused(
        f"release '{key.release}', period {key.period}, revision {key.revision} is published, and these reports, "
        "or this spec, give something else. Reports cost nothing more: publish a new revision with "
        "dphist local publish SPEC --revise --reason TEXT",
        code="reports_changed",
    )


def consumers_withdrawn(errors: Sequence[publisher.Withdrawn], releases: Sequence[Release]) -> Halted:
    """Some consumers' releases were withdrawn and not published anew; the others are published."""
    withdrawn = [error.key.release for error in errors]
    published = [str(release.audit["release"]) for release in releases]
    return Halted(
        f"{' '.join(map(str, errors))} Not published anew: {', '.join(withdrawn)}; published: "
        f"{', '.join(published) or 'none'}.",
        code="consumers_withdrawn",
        **{"withdrawn": withdrawn, "published": published},
    )


@dataclass(frozen=True, eq=False)
class CountedReports:
    """The counted reports to a collection's question."""

    tally: Tally
    refused: dict[str, int]


@dataclass(frozen=True, order=True)
class _Published:
    """What an audit says of a revision; see `publisher.Revision`."""

    number: int
    reason: str
    digest: str


def report_files(spec: CollectionSpec) -> list[Path]:
    """The files of reports that the spec names."""
    files = [] if spec.reports_pattern is None else files_at(spec.reports_pattern)
    if not files:
        raise no_report_files(spec)
    return files


def count_reports(spec: CollectionSpec, files: Sequence[Path], left_out: Mapping[str, int] = {}) -> CountedReports:
    """Counts the reports in Parquet files; `left_out` are refused ones that are in no file, by reason.

    Raises:
        Refused: no report is valid, or a file is damaged or no file of reports.
    """
    tally, refused = tally_of(question_of(spec), files)
    refused = {reason: number + left_out.get(reason, 0) for reason, number in refused.items()}
    if not tally.reports:
        digests = questions_named(files) if refused[OTHER_QUESTION] else ()
        raise no_reports(str(spec.collection), refused, why_unserved(spec, digests) if digests else "")
    return CountedReports(tally, refused)


def estimate_of(spec: CollectionSpec, counted: CountedReports, number: int) -> Estimate:
    """The estimated histogram of a consumer, by its number from 0: unbiased, or non-negative if the spec says so."""
    tally, spans = counted.tally, spans_of(spec)[number]
    running = np.concatenate([[0.0], np.cumsum(estimates(tally, spans.part))])
    unbiased = running[np.array(spans.last) + 1] - running[np.array(spans.first)]
    law = law_of(tally.question, tally.question.parts[spans.part], tally.vectors)
    return Estimate(
        domain=spec.domain_of(spec.consumers[number]),
        values=project(unbiased, max(0.0, float(unbiased.sum()))) if spec.nonnegative else unbiased,
        charges=((STEP, tally.question.epsilon),),
        unbiased=ReportedCells(unbiased, np.array(spans.atoms, dtype=np.int64), law),
    )


def publish_collection(
    spec: CollectionSpec,
    store: Store | Path | str,
    counted: CountedReports,
    *,
    reason: str = "",
    only: str | None = None,
    progress: publisher.Progress = lambda step: None,
) -> list[Release]:
    """Publishes the histogram of every consumer, or gives back what was published.

    Args:
        reason: makes a new revision of all consumers; the same reason again gives that revision back.
        only: name of the one consumer to publish, for an orchestrator that publishes them one by one.

    Raises:
        Refused: other values are published, and no reason for a revision is given.
        Halted: the name of a release is taken; nothing was published.
        Halted: releases of some consumers were withdrawn; the others are published.
    """
    if reason:
        refuse_no_reason(f"collection '{spec.collection}': a revision", reason)
    store = store if isinstance(store, Store) else Store.open(Path(store))
    store.sweep()
    for consumer in spec.consumers:
        publisher.refuse_taken_name(store, spec.release_of(consumer), str(spec.collection))
    releases: list[Release] = []
    withdrawn: list[publisher.Withdrawn] = []
    for number, consumer in enumerate(spec.consumers):
        if only in (None, consumer.name):
            progress(f"publishing {spec.release_of(consumer)}")
            try:
                releases.append(_publish(spec, store, counted, number, reason))
            except publisher.Withdrawn as error:
                withdrawn.append(error)
    if releases:
        key = Key(spec.release_of(spec.consumers[0]), spec.round, 1)
        PublicFolder(store).refresh(key, [release.path for release in releases], progress)
    if withdrawn:
        raise consumers_withdrawn(withdrawn, releases)
    return releases


def _publish(spec: CollectionSpec, store: Store, counted: CountedReports, number: int, reason: str) -> Release:
    estimate = estimate_of(spec, counted, number)
    with store.building():  # of two calls that revise at once, each makes a revision of its own
        key = _key(spec, store, number, reason)
        expected = {"values_digest": values_digest(estimate), "spec_digest": spec.digest}
        publication = publisher.published_release(store, key, expected, reports_changed(key))
        if publication is None:
            facts = _facts(spec, counted, number, key, reason)
            publication = publisher.publish(store, key, estimate, {}, facts, reports_changed(key))
    return publication


def _key(spec: CollectionSpec, store: Store, number: int, reason: str) -> Key:
    """The revision to publish or give back: the latest, or that of the reason, or the next."""
    first = Key(spec.release_of(spec.consumers[number]), spec.round, 1)
    folders = store.published(first).parent.glob("revision=*")
    audits = [read_audit(folder) for folder in folders if folder.name.removeprefix("revision=").isdecimal()]
    revisions = sorted(_Published(audit["revision"], audit["reason"], audit["spec_digest"]) for audit in audits)
    same = publisher.matching_revisions(revisions, reason, spec.digest)
    next_number = revisions[-1].number + 1 if revisions else 1
    return Key(first.release, first.period, same[-1].number if same else next_number)


def _facts(spec: CollectionSpec, counted: CountedReports, number: int, key: Key, reason: str) -> dict[str, Any]:
    """What the audit says besides the estimates."""
    question, consumer = counted.tally.question, spec.consumers[number]
    part = question.parts[spans_of(spec)[number].part]
    sampled = {"participation": str(question.participation)} if question.participation < 1 else {}
    return {
        "schema_version": 2,
        "model": "local",
        "release": key.release,
        **({"title": str(spec.title)} if spec.title else {}),
        **({"language": spec.language} if spec.language else {}),
        **({"show_below": spec.show_below} if spec.show_below is not None else {}),
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
            "report_epsilon": str(question.report_epsilon),
            "part_epsilon": str(part.epsilon),
            "intervals": part.intervals,
            **sampled,
            "nonnegative": spec.nonnegative,
        },
        "cells": consumer.intervals,
        "axes": spec.axes_of(consumer),
        "spec_digest": spec.digest,
        "question_digest": question.digest,
        "reports": {"accepted": counted.tally.reports, "values": counted.tally.vectors, "refused": counted.refused},
        "ledger": None,
    }
