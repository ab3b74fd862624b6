"""The story in one function: spec → ingest → bound → count → charge → doors → mechanism → estimate → publish.

`release` may be killed anywhere and called again, or called by twenty processes at once: the ledger charges a release
and period once, the journal keeps the first answer of every door, and all files appear by one rename.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline import mechanisms
from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism
from dphist_pipeline.privacy.budget import Budget
from dphist_pipeline.privacy.journal import Journal
from dphist_pipeline.privacy.ledger import Charge, ChargeRequest, Ledger
from dphist_pipeline.privacy.private_counts import PrivateCounts
from dphist_pipeline.publishing.release_files import move_into_place, read_audit, values_digest, write_release
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.numbers import exact
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.store import Key, Store

if TYPE_CHECKING:
    import polars as pl

Counts = NDArray[np.int64]
Progress = Callable[[str], None]


class NothingToRevise(DphistError):
    """`--revise` for a period that was never released."""

    def __init__(self, release: str, period: str) -> None:
        self.release, self.period = release, period
        super().__init__(f"release '{release}', period {period}: nothing to revise yet. Leave out --revise.")


class AnswersLost(DphistError):
    """A release was published once, and neither its files nor its journal are there any more."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} was published, but its files "
            "and its journal are gone. Drawing again would spend its epsilon twice: put them back from a backup, or "
            "release anew, at its price, with --revise --reason TEXT."
        )


class MechanismMisspent(DphistError):
    """A mechanism spent another epsilon than the spec declares."""

    def __init__(self, mechanism: str, spent: Fraction, declared: Fraction) -> None:
        self.spent, self.declared = spent, declared
        super().__init__(f"mechanism '{mechanism}' spent epsilon {spent} of {declared}: a fault of the mechanism")


class ValuesDiffer(DphistError):
    """What the journal gives now is not what was published."""

    def __init__(self, key: Key) -> None:
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision}: the journal now gives other "
            "values than were published. Use the version of dphist-pipeline that published it."
        )


@dataclass(frozen=True)
class Release:
    """A published release.

    Attributes:
        path: the folder of its files.
        audit: the facts in `audit.json`.
        replayed: whether it had been published before: nothing was spent and no record was read.
    """

    path: Path
    audit: dict[str, Any]
    replayed: bool

    @property
    def table(self) -> pl.DataFrame:
        """The published histogram, one row a declared cell."""
        import polars as pl

        return pl.read_parquet(self.path / "histogram.parquet", glob=False)


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
        ValueError: for an epsilon that is not a number.
    """
    if isinstance(counts, PrivateCounts):
        if sensitivity is not None:
            raise TypeError("counts behind doors know their sensitivity: leave it out")
    else:
        counts = _behind_doors(np.asarray(counts), sensitivity)
    built, budget = mechanisms.build(mechanism, settings), exact(epsilon)
    built.check(counts.domain, counts.sensitivity, budget)
    return _estimate(built, counts, budget)


def release(
    spec: ReleaseSpec,
    store: Store | Path | str,
    period: str | None = None,
    *,
    reason: str = "",
    now: datetime | None = None,
    progress: Progress = lambda step: None,
) -> Release:
    """Publishes one period of a release, or gives back what was published.

    Args:
        spec: checked; see `load_spec`.
        store: where to publish; made by `dphist init`.
        period: its key, the first day; the latest finished one when left out.
        reason: makes a revision, which is charged again; the same reason again gives that revision back.
        now: the present, for tests of schedules.
        progress: told the name of each step as it begins.

    Raises:
        DphistError: refused, with nothing spent; or failed after the charge, and the same call finishes it.
    """
    store = store if isinstance(store, Store) else Store.open(Path(store))
    chosen = _chosen_period(spec, period, now or datetime.now(UTC))
    ledger = store.ledger()
    try:
        charge, request = _charge_or_request(spec, store, ledger, chosen, reason)
        key = Key(spec.release, chosen.key, request.revision)
        if charge and store.published(key).exists():
            return _replay(store, ledger, key, charge)
        with store.run(key) as folder:
            return _make(spec, store, ledger, chosen, key, charge, request, folder, progress)
    finally:
        ledger.close()


def _chosen_period(spec: ReleaseSpec, named: str | None, now: datetime) -> Period:
    if named is None:
        return spec.latest_period(now)
    period = spec.period_named(named)
    spec.refuse_unfinished(period, now)
    return period


def _charge_or_request(
    spec: ReleaseSpec, store: Store, ledger: Ledger, period: Period, reason: str
) -> tuple[Charge | None, ChargeRequest]:
    """The charge that pays for this call, if it was made before, and what to ask the ledger for if not."""
    made = ledger.charges(spec.release, period.key)
    latest = made[-1] if made else None
    revision = latest.revision if latest else 1
    if reason and latest is None:
        raise NothingToRevise(spec.release, period.key)
    if reason and latest and not (latest.reason == reason and latest.digest == spec.digest):
        revision, latest = revision + 1, None
    request = ChargeRequest(
        account=spec.account,
        release=spec.release,
        period=period.key,
        revision=revision,
        epsilon=spec.epsilon,
        digest=spec.digest,
        reason=reason or (latest.reason if latest else ""),
        privacy_unit=spec.privacy_unit,
        neighbours=spec.neighbours,
        store_id=store.id,
    )
    # An early refusal: a changed spec, an account that disagrees, too little left. Charges nothing.
    ledger.check(request)
    return latest, request


def _replay(store: Store, ledger: Ledger, key: Key, charge: Charge) -> Release:
    path = store.published(key)
    audit = read_audit(path)
    if ledger.published_digest(charge) is None:
        # The run that published was killed before it could say so.
        ledger.record_published(charge, audit["values_digest"])
    elif ledger.published_digest(charge) != audit["values_digest"]:
        raise ValuesDiffer(key)
    return Release(path, audit, replayed=True)


def _make(
    spec: ReleaseSpec,
    store: Store,
    ledger: Ledger,
    period: Period,
    key: Key,
    charge: Charge | None,
    request: ChargeRequest,
    folder: Path,
    progress: Progress,
) -> Release:
    """Goes on from wherever an earlier attempt stopped."""
    if charge is None:
        exact = _read_and_count(spec, period, folder, progress)
        progress("charging the account")
        charge = ledger.charge(request)
        load: Callable[[], Counts] = lambda: exact  # noqa: E731
    else:
        load = _late_load(spec, ledger, period, key, charge, folder, progress)
    counts = PrivateCounts(spec.domain, spec.sensitivity, load, Journal(store.journal(key), folder, charge.hash))
    mechanism = spec.build_mechanism()
    progress(f"releasing by {spec.mechanism}")
    estimate = _estimate(mechanism, counts, spec.epsilon)
    digest = values_digest(estimate)
    if ledger.published_digest(charge) not in (None, digest):
        raise ValuesDiffer(key)
    progress("publishing")
    staging = folder / "published"
    staging.mkdir()
    write_release(estimate, _facts(spec, period, key, charge), staging)
    path = store.published(key)
    first = move_into_place(staging, path)
    ledger.record_published(charge, digest)
    return Release(path, read_audit(path), replayed=not first)


def _read_and_count(spec: ReleaseSpec, period: Period, folder: Path, progress: Progress) -> Counts:
    from dphist_pipeline.counting.cube import load_cube, write_cube
    from dphist_pipeline.counting.ingest import stage_rows

    progress("reading records")
    staged = stage_rows(spec, period, folder)
    progress("bounding and counting")
    cube = write_cube(spec, staged, folder)
    exact = load_cube(cube)
    cube.unlink()
    return exact


def _late_load(
    spec: ReleaseSpec,
    ledger: Ledger,
    period: Period,
    key: Key,
    charge: Charge,
    folder: Path,
    progress: Progress,
) -> Callable[[], Counts]:
    """Counts for a release that is already charged, read only if a door has no answer yet."""

    def load() -> Counts:
        if ledger.published_digest(charge) is not None:
            raise AnswersLost(key)
        return _read_and_count(spec, period, folder, progress)

    return load


def _estimate(mechanism: Mechanism, counts: PrivateCounts, epsilon: Fraction) -> Estimate:
    estimate = mechanism.release(counts, Budget(epsilon))
    if estimate.epsilon != epsilon:
        raise MechanismMisspent(mechanisms.name_of(mechanism), estimate.epsilon, epsilon)
    return estimate


def _facts(spec: ReleaseSpec, period: Period, key: Key, charge: Charge) -> dict[str, Any]:
    """What the audit says of a release beside its charges: from the spec and the ledger, never from records."""
    return {
        "format": 1,
        "release": spec.release,
        "period": key.period,
        "period_start": period.start.isoformat() if period.start else None,
        "period_end": period.end.isoformat() if period.end else None,
        "revision": key.revision,
        "reason": charge.reason,
        "account": spec.account,
        "privacy_unit": spec.privacy_unit,
        "max_rows_per_unit": spec.max_rows_per_unit,
        "neighbours": spec.neighbours,
        "sensitivity": spec.sensitivity,
        "mechanism": spec.mechanism,
        "settings": mechanisms.settings_of(spec.build_mechanism()),
        "cells": spec.domain.cells,
        "spec_digest": spec.digest,
        "ledger": {"number": charge.number, "hash": charge.hash, "charged_at": charge.charged_at},
    }


def _behind_doors(counts: NDArray[np.integer[Any]], sensitivity: int | None) -> PrivateCounts:
    if sensitivity is None:
        raise TypeError("an array of counts needs `sensitivity`: the most that one privacy unit moves its sum")
    if counts.dtype.kind not in "iu" or counts.size == 0:
        raise TypeError("counts must be a non-empty array of integers")
    exact = counts.astype(np.int64).ravel()
    return PrivateCounts(Domain.from_shape(counts.shape), sensitivity, lambda: exact)
