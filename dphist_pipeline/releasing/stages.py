"""The stages of a release, each of which goes on from wherever an earlier attempt stopped.

`pipeline.release` runs them in one process, `handover` in several. What one stage leaves for the next lies in the
store: the cube in the attempt's private folder, the doors' answers in the journal, the charge in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NoReturn

from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.row_questions import ObservedRows
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import AnyEstimate, with_quality
from dphist_pipeline.estimates.row_quality import failed_nearly_all, rows_of
from dphist_pipeline.ledger.errors import AlreadyCharged, ChargeLost
from dphist_pipeline.ledger.ledger import Charge, ChargeRequest, Ledger
from dphist_pipeline.ledger.witness import Witness, place_of
from dphist_pipeline.ledger.witness_errors import AnswerDrawnElsewhere
from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing import engines, publisher
from dphist_pipeline.releasing.approvals import (
    finish_rejections,
    finish_withdrawals,
    note_if_out,
    refuse_rejected,
    refuse_withdrawn,
)
from dphist_pipeline.releasing.errors import (
    AnswersLost,
    CubeMissing,
    NothingToRevise,
    RevisedMeanwhile,
    UpstreamUnchecked,
    ValuesDiffer,
)
from dphist_pipeline.releasing.frames import Frame, as_file
from dphist_pipeline.releasing.hosts import refuse_other_host
from dphist_pipeline.releasing.mechanism_run import Counts, Load, estimate_of, private_counts
from dphist_pipeline.releasing.plans import plan_of, request_of
from dphist_pipeline.releasing.plausibility import facts_if_approved
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.row_quality import buy_quality
from dphist_pipeline.releasing.spec_changes import changes_since, keep_spec
from dphist_pipeline.releasing.store import Key, Store, own_folder
from dphist_pipeline.releasing.vouching import vouched_audit
from dphist_pipeline.spec.periods import Period


@dataclass(frozen=True)
class Attempt:
    """One call for one release and period: what it asks, and what pays for it.

    Attributes:
        charge: the charge that pays, if it was made before.
        request: what to ask the ledger for if not.
        progress: told the name of each step as it begins.
    """

    spec: ReleaseSpec
    store: Store
    ledger: Ledger
    period: Period
    key: Key
    charge: Charge | None
    request: ChargeRequest
    progress: Progress = lambda step: None

    @property
    def path(self) -> Path:
        """Where the release is, or will be, published."""
        return self.store.published(self.key)


@dataclass(frozen=True)
class Paid:
    """An estimate, the charge that paid for it, each step's noise, and whether it had been published before."""

    charge: Charge
    estimate: AnyEstimate
    scales: dict[str, Fraction]
    published: bool

    @property
    def remark(self) -> str:
        """What whoever approves it should know; mostly nothing."""
        return failed_nearly_all(list(rows_of(self.estimate.quality)))


def begin(
    spec: ReleaseSpec,
    store: Store,
    named: str | None,
    now: datetime,
    reason: str = "",
    progress: Progress = lambda step: None,
    revision: int | None = None,
    upstream_checked: str = "",
) -> Attempt:
    """Chooses period and revision and asks the ledger, which refuses early; charges nothing.

    Args:
        spec: checked; see `load_spec`.
        store: where to publish.
        named: key of the period; the latest finished one when left out.
        now: the present, with its time zone.
        reason: of a revision; empty for none.
        progress: told the name of each step as it begins.
        revision: the latest when left out.
        upstream_checked: why upstream partitions are known to be there; see `pipeline.release`.
    """
    period = chosen_period(spec, named, now)
    store.sweep()
    ledger = store.ledger()
    finish_withdrawals(store, ledger)
    finish_rejections(store, ledger)
    charge, request = _charge_or_request(spec, store, ledger, period, reason, revision)
    if charge is None:
        request = replace(request, upstream_checked=upstream_checked)
    if charge is not None:
        refuse_rejected(store, ledger, charge)
    key = Key(spec.release, period.key, request.revision)
    tables = spec.family.names if spec.family is not None else ()
    publisher.refuse_taken_name(store, spec.release, tables=tables, charged=charge is not None)
    return Attempt(spec, store, ledger, period, key, charge, request, progress)


def replayed(attempt: Attempt) -> Release | None:
    """The release as it was published, after checking its files against the ledger; None when it is not there.

    Args:
        attempt: see `begin`.
    """
    if attempt.charge is None:
        return None
    refuse_withdrawn(attempt.ledger, attempt.charge, attempt.key)
    recorded = note_if_out(attempt.store, attempt.ledger, attempt.charge)
    if attempt.path.exists():
        vouched_audit(attempt.path, attempt.charge, recorded, attempt.ledger)
    made = publisher.published(attempt.store, attempt.key, {}, ValuesDiffer(attempt.key))
    if made is not None:
        attempt.store.forget_kept_runs(attempt.key)  # of a run that counted while another one published
    return made


def refuse_unchecked(attempt: Attempt) -> None:
    """Refuses to charge where nobody looked at the upstream partitions and checks that the spec requires.

    Files that a period needs are looked for when they are read: with placeholders, only checks need anybody.

    Args:
        attempt: see `begin`.

    Raises:
        UpstreamUnchecked: with what to do.
    """
    spec, vouched = attempt.spec, attempt.request.upstream_checked
    if attempt.charge is None and spec.only_dagster_knows and not vouched:
        raise UpstreamUnchecked(spec.release, spec.deps, spec.required_checks)


def write_cube(attempt: Attempt, folder: Path, frame: Frame | None = None) -> Path:
    """Reads, bounds and counts the records of the period into a private file, whose path it gives.

    Args:
        attempt: see `begin`.
        folder: private, of this run.
        frame: the records, where the spec's source is one.
    """
    # Before any file is looked for: what is not allowed, or no longer, is not read, whatever was charged for it.
    decisions = attempt.ledger.allowed(attempt.request)
    with as_file(plan_of(attempt.spec, attempt.period, decisions[0].reading), frame, folder) as plan:
        return engines.count(plan, decisions, folder, attempt.progress)


def read_cube(cube: Path) -> Counts:
    """Exact counts, shape (cells,); deletes their file.

    Args:
        cube: that `write_cube` wrote.
    """
    from dphist_pipeline.confidential.cube import load_cube

    exact = load_cube(cube)
    cube.unlink()
    return exact


def _observed_rows(load: Load, folder: Path) -> ObservedRows:
    """Exact numbers about rows, which counting left in a folder; where counts may not be loaded, these may not."""
    from dphist_pipeline.confidential import row_tables

    load()
    return row_tables.load(folder)


def estimate(attempt: Attempt, load: Load, scratch: Path) -> Paid:
    """Charges, unless that was done before, and asks the doors, unless the journal holds their answers.

    Args:
        attempt: see `begin`.
        load: gives the exact counts; called before the charge, or after it for a door that has no answer yet.
        scratch: a private folder on the store's file system; `load` leaves exact numbers about rows there.
    """
    once: Load = cache(load)  # one reading serves every door, and bounds every unit's rows by the same key

    def still_allowed() -> Counts:
        exact = once()
        # Asked again, after a count that took its time, or that another process left: a decision may be taken back.
        attempt.ledger.allowed(attempt.request)
        return exact

    charge, witness = attempt.charge, attempt.store.witness(attempt.ledger)
    if charge is None:
        once()
        attempt.progress("charging the account")
        keep_spec(attempt.store, attempt.spec)
        charge = attempt.ledger.charge(attempt.request)
        refuse_other_host(attempt.store, charge, published=False)
        if charge.reason != attempt.request.reason:
            raise RevisedMeanwhile(charge)
        # Asked before the journal is: whoever publishes while this call runs has answered every door by then.
        published, late = None, once
    else:
        published = attempt.ledger.published_digest(charge)
        if published is not None or charge.number > attempt.ledger.adopted_at():
            refuse_other_host(attempt.store, charge, published is not None)
        late = _drawn_at_most_once(attempt, charge, still_allowed, published)
    spec = attempt.spec
    if published is None:
        _vouch(attempt, witness)

    def vouch(step: str, digest: str) -> None:
        # What was published is out: reading its answers again tells nobody anything new.
        if published is None:
            witness.vouch_answer(attempt.store.id, charge.hash, step, digest)

    journal = Journal(attempt.store.journal(attempt.key), scratch, charge.hash, vouch)
    attempt.progress(f"releasing by {spec.mechanism}")
    counts = private_counts(spec, late, journal)
    try:
        made = estimate_of(spec.build_mechanism(), counts, spec.mechanism_epsilon, spec.family)
        quality = buy_quality(spec, cache(lambda: _observed_rows(late, scratch)), journal)
    except (FileNotFoundError, AnswerDrawnElsewhere):
        refuse_rejected(attempt.store, attempt.ledger, charge)  # meanwhile, and its answers were deleted
        raise
    made = with_quality(made, quality)
    if published not in (None, values_digest(made)):
        raise ValuesDiffer(attempt.key)
    # Whoever rejected it meanwhile deleted the answers, and a door may have drawn anew: that leads nowhere.
    refuse_rejected(attempt.store, attempt.ledger, charge)
    attempt.store.forget_kept_runs(attempt.key)
    scales = {step: scale for one in counts for step, scale in one.scales.items()}
    scales |= {table.step: table.scale for table in quality}
    return Paid(charge, made, scales, published is not None)


def publish(attempt: Attempt, paid: Paid) -> Release:
    """Publishes what the doors answered; see `publisher.publish`.

    Args:
        attempt: see `begin`.
        paid: as `estimate` gave it for that attempt.

    Raises:
        AwaitsApproval: `publish` holds it back, and nobody approved yet.
    """
    facts = facts_if_approved(attempt, paid)
    attempt.progress("publishing")
    made = publisher.publish(
        attempt.store,
        attempt.key,
        paid.estimate,
        paid.scales,
        facts,
        ValuesDiffer(attempt.key),
        # Whatever gets lost after that, what somebody may have read is never drawn again.
        record=lambda: attempt.ledger.record_published(paid.charge, values_digest(paid.estimate)),
    )
    # Whoever withdrew it before it was in place found nothing to mark.
    finish_withdrawals(attempt.store, attempt.ledger)
    refuse_withdrawn(attempt.ledger, paid.charge, attempt.key)
    return replace(made, replayed=paid.published)


def refresh_catalogue(attempt: Attempt) -> None:
    """Builds the catalogue anew unless it holds this release.

    Args:
        attempt: whose release is published.
    """
    publisher.refresh_catalogue(attempt.store, attempt.key, [attempt.path], attempt.progress)


def answered(attempt: Attempt, scratch: Path) -> Paid | None:
    """The estimate from the journal alone; None when a door has not answered yet.

    Args:
        attempt: see `begin`.
        scratch: a private folder on the store's file system.
    """
    if attempt.charge is None:
        return None
    try:
        return estimate(attempt, _refusing(CubeMissing(attempt.key)), scratch)
    except CubeMissing:
        return None


def chosen_period(spec: ReleaseSpec, named: str | None, now: datetime) -> Period:
    """The period of that key, which must be over; the latest finished one when none is named.

    Args:
        spec: checked.
        named: key of the period, or None.
        now: the present, with its time zone.
    """
    if named is None:
        return spec.latest_period(now)
    period = spec.period_named(named)
    spec.refuse_unfinished(period, now)
    return period


def _charge_or_request(
    spec: ReleaseSpec,
    store: Store,
    ledger: Ledger,
    period: Period,
    reason: str,
    revision: int | None,
) -> tuple[Charge | None, ChargeRequest]:
    """The charge that pays for this call, if it was made before, and what to ask the ledger for if not."""
    made = ledger.charges(spec.release, period.key)
    if reason and not made:
        raise NothingToRevise(spec.release, period.key)
    meant = [
        charge for charge in publisher.revisions_meant(made, reason, spec.digest) if revision in (None, charge.revision)
    ]
    # What was rejected stands in nobody's way, but where nothing else was made.
    standing = [charge for charge in meant if "rejected" not in ledger.notes(charge)]
    charge = (standing or meant)[-1] if meant else None
    request = request_of(
        spec,
        store.id,
        period.key,
        revision=charge.revision if charge else len(made) + 1,
        reason=charge.reason if charge else reason,
        engine=engines.engine_of(ledger, charge) if charge else spec.engine,
    )
    if charge is None:
        days = (period.end - period.start).days if period.start and period.end else None
        request = replace(request, folder=own_folder(store), days=days)
    # An early refusal: a changed spec, an account that disagrees, too little left. Charges nothing.
    try:
        ledger.check(request)
    except AlreadyCharged as error:
        raise AlreadyCharged(error.there, changes_since(store, error.there.digest, spec) or error.differences) from None
    if charge is None:
        witness = store.witness(ledger)
        witness.check(store.id, ledger.standing)
        store.refuse_cut(ledger, witness)
    return charge, request


def _vouch(attempt: Attempt, witness: Witness) -> None:
    """Has the witness know every charge before the first draw; it refuses a ledger that lacks one, and copies."""
    ledger, store = attempt.ledger, attempt.store
    store.refuse_cut(ledger, witness)
    witness.vouch(store.id, ledger.standing)
    witness.note_head(store.id, *ledger.head())
    before = witness.note_place(store.id, place_of(store.root), own_folder(store).id)
    if before is not None:
        attempt.progress(f"note: this store was used at another place before, {before}")


def _drawn_at_most_once(attempt: Attempt, charge: Charge, load: Load, published: str | None) -> Load:
    """What gives the counts to a door that must draw; of some charges nothing is drawn any more."""
    if published is not None:
        return _refusing(AnswersLost(attempt.key))
    # Another copy may have drawn for a charge from before this store was adopted.
    return _refusing(ChargeLost(charge=charge)) if charge.number < attempt.ledger.adopted_at() else load


def _refusing(error: DphistError) -> Load:
    """Gives no counts."""

    def refuse() -> NoReturn:
        raise error

    return refuse
