"""The story in one function: spec → ingest → bound → count → charge → doors → mechanism → estimate → publish.

`release` may be killed anywhere and called again, or called by twenty processes at once: the ledger charges a release
and period once, the journal keeps the first answer of every door, and all files appear by one rename.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline import mechanisms
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.releasing import approvals, handover, publisher, stages
from dphist_pipeline.releasing.approvals import NothingToDecide
from dphist_pipeline.releasing.charge_marks import marking_charges, nothing_charged
from dphist_pipeline.releasing.frames import Frame
from dphist_pipeline.releasing.mechanism_run import estimate_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.numbers import parse_epsilon


def release(
    spec: ReleaseSpec,
    store: Store | Path | str,
    period: str | None = None,
    *,
    frame: Frame | None = None,
    reason: str = "",
    upstream_checked: str = "",
    now: datetime | None = None,
    progress: publisher.Progress = lambda step: None,
) -> Release:
    """Publishes one period of a release, or gives back what was published.

    Args:
        spec: checked; see `load_spec`.
        store: where to publish; made by `dphist init`.
        period: its key, the first day; the latest finished one when left out.
        frame: the records of a spec that says `source: frame:NAME`, of any kind that `count_cube` takes. The program
            that calls answers for its being what the operator allowed under that name. A replay needs none.
        reason: makes a revision, which is charged again; the same reason again gives that revision back.
        upstream_checked: where a spec requires upstream partitions, which only Dagster can look at: why they are
            known to be there. The audit keeps it.
        now: the present, for tests of schedules.
        progress: told the name of each step as it begins.

    Raises:
        DphistError: refused, with nothing spent; or failed after the charge, and the same call finishes it.
    """
    with nothing_charged():
        store = store if isinstance(store, Store) else Store.open(Path(store))
        now = now or datetime.now(UTC)
        attempt = stages.begin(spec, store, period, now, reason, progress, upstream_checked=upstream_checked)
    with marking_charges(attempt):
        made = stages.replayed(attempt)
        if made is None:
            stages.refuse_unchecked(attempt)
            with store.run(attempt.key) as folder:
                cube = lambda: stages.read_cube(stages.write_cube(attempt, folder, frame))  # noqa: E731
                made = stages.publish(attempt, stages.estimate(attempt, cube, folder))
        stages.refresh_catalogue(attempt)
    return made


def publish(
    spec: ReleaseSpec,
    store: Store | Path | str,
    approved_by: str,
    period: str | None = None,
    *,
    revision: int | None = None,
    now: datetime | None = None,
    progress: publisher.Progress = lambda step: None,
) -> Release:
    """Publishes what a release of `publish: manual` holds back; the ledger and the audit say who approved it.

    Args:
        spec: as released.
        store: that holds its answers.
        approved_by: a name; everybody can read it.
        period: as for `release`; when left out, that of the only one that waits.
        revision: the latest when left out.
        now: as for `release`.
        progress: as for `release`.

    Raises:
        SayWhich: several wait, and period and revision leave open which.
        NothingToDecide: it was never drawn, or publishes by itself.
    """
    store, now = store if isinstance(store, Store) else Store.open(Path(store)), now or datetime.now(UTC)
    unnamed = period is None and spec.period != "none"
    named = None if unnamed else stages.chosen_period(spec, period, now).key
    named, revision = approvals.meant(spec, store.ledger(), named, revision)
    attempt = stages.begin(spec, store, named, now, "", progress, revision)
    if not approvals.may_wait(spec, attempt.charge):
        raise NothingToDecide(attempt.key, "it publishes by itself; `publish: manual` in its spec would hold it back")
    with store.run(attempt.key) as folder:
        drawn = stages.answered(replace(attempt, progress=lambda step: None), folder) is not None
    if attempt.charge is None or not drawn:
        raise NothingToDecide(attempt.key, "it was not drawn yet, or not to its end; run `dphist release` first")
    published = attempt.ledger.published_digest(attempt.charge) is not None
    if published and "approved" not in attempt.ledger.notes(attempt.charge):
        raise NothingToDecide(attempt.key, f"it was published before `publish: {spec.publish}` held it back")
    attempt.ledger.note(attempt.charge, "approved", approved_by)
    return handover.publish_answers(attempt)


def withdraw(store: Store | Path | str, name: str, period: str, reason: str) -> list[Path]:
    """Takes back all publications of a release's period; the catalogue no longer has them.

    Args:
        store: that holds them, or its folder.
        name: of the release.
        period: its key, the first day or `all`.
        reason: why; everybody can read it.

    Returns:
        The folders of the publications; see `approvals.withdraw`, for errors, too.
    """
    store = store if isinstance(store, Store) else Store.open(Path(store))
    folders = approvals.withdraw(store, name, period, reason)
    publisher.refresh_catalogue(store, Key(name, period, 1))
    return folders


def sanitize(
    counts: NDArray[np.integer[Any]] | PrivateCounts,
    *,
    mechanism: str,
    epsilon: str | int | float | Fraction,
    sensitivity: int | None = None,
    **settings: object,
) -> Estimate:
    """Spends ε that no ledger records: for studies, not for publishing.

    Args:
        counts: exact counts, integers of any shape, or counts behind doors, which know their sensitivity.
        mechanism: its name; see `mechanisms()`.
        epsilon: the whole budget, read by its decimal digits.
        sensitivity: L1 sensitivity of an array of counts; required for an array, refused for PrivateCounts.
        settings: of the mechanism.

    Raises:
        DphistError: for an unknown mechanism or setting, or an epsilon out of range.
    """
    if isinstance(counts, PrivateCounts):
        if sensitivity is not None:
            raise TypeError("counts behind doors know their sensitivity: leave it out")
    else:
        counts = _behind_doors(np.asarray(counts), sensitivity)
    built, budget = mechanisms.build(mechanism, settings), parse_epsilon(epsilon)
    built.check(counts.domain, counts.sensitivity, budget)
    made = estimate_of(built, [counts], budget)
    assert isinstance(made, Estimate)  # a family is released from a spec alone
    return made


def _behind_doors(counts: NDArray[np.integer[Any]], sensitivity: int | None) -> PrivateCounts:
    if sensitivity is None:
        raise TypeError("an array of counts needs `sensitivity`: the most that one privacy unit moves its sum")
    if counts.dtype.kind not in "iu" or counts.size == 0:
        raise TypeError("counts must be a non-empty array of integers")
    exact = counts.astype(np.int64).ravel()
    return PrivateCounts(Domain.from_shape(counts.shape), sensitivity, lambda: exact)
