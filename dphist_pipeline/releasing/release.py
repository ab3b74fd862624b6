"""A release, told in order: begin, count, charge, draw, publish. In one process, or in two.

`release` may be killed anywhere and called again, or called by twenty processes at once: the ledger charges a release
and period once, the journal keeps the first answer of every door, and all files appear by one rename. What one step
leaves for the next lies in the store: the cube in the private folder of a run, the doors' answers in the journal, the
charge in the ledger. So an orchestrator may draw in one process (`draw_apart`) and publish in another one, a month
later (`publish_apart`). A step that is repeated changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline import about_publisher
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.row_questions import ObservedRows
from dphist_pipeline.errors import AfterCharge, DphistError, Halted, Refused
from dphist_pipeline.estimates.estimate import with_quality
from dphist_pipeline.ledger.errors import AlreadyCharged, AnswerDrawnElsewhere, LedgerError
from dphist_pipeline.ledger.ledger import Charge, ChargeRequest, Ledger
from dphist_pipeline.ledger.witness import Witness, place_of
from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing import _engines as engines
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing._approvals import AwaitsApproval as AwaitsApproval
from dphist_pipeline.releasing._approvals import (
    PublicationRule,
    finish_rejections,
    finish_withdrawals,
    nothing_to_decide,
    record_if_published,
)
from dphist_pipeline.releasing._approvals import damaged_folders as damaged_folders
from dphist_pipeline.releasing._approvals import reject as reject
from dphist_pipeline.releasing._attempts import Attempt as Attempt
from dphist_pipeline.releasing._attempts import Paid, Race, refuse_overtaken
from dphist_pipeline.releasing._audit_facts import facts_if_approved
from dphist_pipeline.releasing._plans import plan_of, request_of, run_of
from dphist_pipeline.releasing._spec_changes import changes_since, keep_spec
from dphist_pipeline.releasing._taken_names import refuse_other_length
from dphist_pipeline.releasing.frames import Frame, as_file
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.row_quality import buy_quality
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.periods import Period

Counts = NDArray[np.int64]
Load = Callable[[], Counts]


def nothing_to_revise(release: str, period: str) -> Refused:
    """`--revise` for a period that was never released."""
    return Refused(
        f"release '{release}', period {period}: nothing to revise yet. Leave out --revise.", code="nothing_to_revise"
    )


def upstream_unchecked(release: str, deps: Sequence[str], checks: Sequence[str] = ()) -> Refused:
    """A plain run of a release that requires upstream partitions, of which only Dagster knows."""
    passed = f" and that {', '.join(checks)} passed" if checks else ""
    return Refused(
        f"release '{release}' requires that all partitions of {', '.join(deps)} for the period are there{passed} "
        f"(`require: {'checks' if checks else 'partitions'}`), and only Dagster knows that. Run it in Dagster, or "
        "look yourself and say so: --upstream-checked REASON, which the audit keeps. Nothing was read or spent.",
        code="upstream_unchecked",
    )


def about_refused(faults: Sequence[str]) -> Refused:
    """What the office wrote about the publisher cannot be read as it meant it: cards would go without."""
    return Refused(
        f"{'; '.join(faults)}. Cards and pages are written by that file, which lies in the store's folder: mend it "
        "first. Nothing was read or spent.",
        code="about_refused",
    )


def revised_meanwhile(charge: Charge) -> AfterCharge:
    """Somebody else revised the same period a moment ago, for another reason."""
    return AfterCharge(
        f"release '{charge.release}', period {charge.period}: revision {charge.revision} was charged a moment ago "
        f"by somebody else, with the reason '{charge.reason}'. This call spent nothing; if another revision is "
        "still wanted, run the same command again.",
        code="revised_meanwhile",
    )


def answers_lost(key: Key) -> AfterCharge:
    """A release was published once, and neither its files nor its journal are there any more."""
    return AfterCharge(
        f"release '{key.release}', period {key.period}, revision {key.revision} was published, but its files "
        "and its journal are gone. Drawing again would spend its epsilon twice: put them back from a backup, or "
        "release anew, at its price, with --revise --reason TEXT.",
        code="answers_lost",
    )


def values_differ(key: Key) -> AfterCharge:
    """What the journal gives now is not what was published."""
    return AfterCharge(
        f"release '{key.release}', period {key.period}, revision {key.revision}: the journal now gives other "
        "values than were published. Use the version of dphist-pipeline that published it.",
        code="values_differ",
    )


class CubeMissing(Halted):
    """A later step was run alone, and what an earlier one leaves for it is not there."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}: its numbers were not drawn yet, or not all of them, so "
            "nothing is published. Run the whole release: its job, or all of its assets together."
        )


@dataclass(frozen=True)
class Charged:
    """A charge, and from what its doors may still draw.

    `published`: digest of the values that the ledger knows to be out, if any. `load` gives the exact counts to a door
    that has no answer yet; refuses where nothing may be drawn any more.
    """

    charge: Charge
    published: str | None
    load: Load


@dataclass(frozen=True)
class Drawn:
    """An attempt whose doors have answered, with the digest of the drawn values.

    `replayed`: they had been published before.
    """

    attempt: Attempt
    digest: str
    replayed: bool = False

    @cached_property
    def paid(self) -> Paid:
        """What the journal says, made anew from its answers alone.

        Raises:
            CubeMissing: a door's answer is not there.
        """
        return _from_journal(self.attempt)

    def waits_for(self) -> str | None:
        """What a person must do before the release is published; None if nothing."""
        attempt = self.attempt
        if attempt.charge is not None and replayed(attempt) is None:
            try:
                facts_if_approved(attempt, self.paid)
            except AwaitsApproval as waiting:
                return str(waiting)
        return None

    def doors(self) -> list[dict[str, str]]:
        """What was asked of the exact counts: a row a door, with its epsilon and the scale of its noise; no answer."""
        published = replayed(self.attempt)
        if published is not None:
            columns = ("step", "epsilon", "noise_scale")
            return [{name: str(row[name]) for name in columns} for row in published.audit["charges"]]
        paid = self.paid
        return [
            {"step": step, "epsilon": str(epsilon), "noise_scale": str(paid.scales.get(step, "-"))}
            for step, epsilon in paid.estimate.charges
        ]

    def releasable(self) -> dict[str, bool]:
        """The conditions for publishing, by name."""
        attempt = self.attempt
        cells = attempt.spec.cells
        published = replayed(attempt)
        if published is not None:
            complete, digest = published.audit["cells"] == cells, published.audit["values_digest"]
        else:
            complete, digest = self.paid.estimate.cells == cells, values_digest(self.paid.estimate)
        return {
            "cells complete": complete,
            "charged": attempt.charge is not None,
            "digest matches": digest == self.digest,
        }


def release(
    spec: ReleaseSpec,
    store: Store | Path | str,
    period: str | None = None,
    *,
    frame: Frame | None = None,
    reason: str = "",
    upstream_checked: str = "",
    now: datetime | None = None,
    progress: Progress = lambda step: None,
) -> Release:
    """Publishes one period of a release, or gives back what was published.

    Args:
        store: where to publish; made by `dphist init`.
        period: its key, the first day; the latest finished one when left out.
        frame: the records of a spec that says `source: frame:NAME`, of any kind that `count_cube` takes. The program
            that calls answers for its being what the operator allowed under that name. A replay needs none.
        reason: makes a revision, which is charged again; the same reason again gives that revision back.
        upstream_checked: where a spec requires upstream partitions, which only Dagster can look at: why they are
            known to be there. The audit keeps it.

    Raises:
        DphistError: refused, with nothing spent; or failed after the charge, and the same call finishes it.
    """
    with nothing_charged():
        if not isinstance(spec, ReleaseSpec):
            raise TypeError(f"release takes a spec, as load_spec(path) gives it, not a {type(spec).__name__}")
        store = store if isinstance(store, Store) else Store.open(Path(store))
        now = now or datetime.now(UTC)
        attempt = begin(spec, store, period, now, reason, progress, upstream_checked=upstream_checked)
    with marking_charges(attempt):
        publication = replayed(attempt)
        if publication is None:
            refuse_unchecked(attempt)
            with store.run(attempt.key) as folder:
                counts = lambda: read_cube(write_cube(attempt, folder, frame))  # noqa: E731
                publication = publish(attempt, draw(attempt, counts, folder))
        refresh_catalogue(attempt)
    return publication


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

    What it gives has what must be equal in every process, and no later step derives it again: what the ledger is asked
    for, the run of the mechanism, and when the numbers are published.
    """
    period = chosen_period(spec, named, now)
    store.sweep()
    ledger = store.ledger()
    finish_withdrawals(store, ledger)
    finish_rejections(store, ledger)
    charge, request = _charge_or_request(spec, store, ledger, period, reason, revision)
    if charge is None:
        request = replace(request, upstream_checked=upstream_checked)
    key = Key(spec.release, period.key, request.revision)
    if not store.published(key).exists():
        store.refuse_form_1()
    rule = PublicationRule(spec.publish, charge is not None and store.is_doubted(charge))
    attempt = Attempt(spec, store, ledger, period, key, charge, request, run_of(spec), rule, progress)
    if charge is not None:
        refuse_overtaken(attempt, Race.REJECTED_BEFORE)
    else:
        if faults := about_publisher.faults(store.public):
            raise about_refused(faults)
        refuse_other_length(store, spec)
    tables = spec.family.names if spec.family is not None else ()
    publisher.refuse_taken_name(store, spec.release, tables=tables, charged=charge is not None)
    return attempt


def chosen_period(spec: ReleaseSpec, key: str | None, now: datetime) -> Period:
    """The period of that key, which must be over; the latest finished one when none is named."""
    if key is None:
        return spec.latest_period(now)
    period = spec.period_named(key)
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
    charges = ledger.charges(spec.release, period.key)
    if reason and not charges:
        raise nothing_to_revise(spec.release, period.key)
    meant = [
        charge
        for charge in publisher.revisions_meant(charges, reason, spec.digest)
        if revision in (None, charge.revision)
    ]
    # What was rejected stands in nobody's way, but where nothing else was made.
    standing = [charge for charge in meant if "rejected" not in ledger.notes(charge)]
    charge = (standing or meant)[-1] if meant else None
    request = request_of(
        spec,
        store.id,
        period.key,
        revision=charge.revision if charge else len(charges) + 1,
        reason=charge.reason if charge else reason,
        engine=engines.engine_of(ledger, charge) if charge else spec.engine,
    )
    if charge is None:
        days = (period.end - period.start).days if period.start and period.end else None
        request = replace(request, folder=store.own_folder(), days=days)
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


def replayed(attempt: Attempt) -> Release | None:
    """The release as it was published, after checking its files against the ledger; None when it is not there."""
    if attempt.charge is None:
        return None
    refuse_overtaken(attempt, Race.WITHDRAWN_BEFORE)
    recorded = record_if_published(attempt.store, attempt.ledger, attempt.charge)
    if attempt.path.exists():
        attempt.store.vouched_audit(attempt.charge, recorded)
    publication = publisher.published(attempt.store, attempt.key, {}, values_differ(attempt.key))
    if publication is not None:
        attempt.store.forget_kept_runs(attempt.key)  # of a run that counted while another one published
    return publication


def refuse_unchecked(attempt: Attempt) -> None:
    """Refuses to charge where nobody looked at the upstream partitions and checks that the spec requires.

    Files that a period needs are looked for when they are read: with placeholders, only checks need anybody.
    """
    spec, vouched = attempt.spec, attempt.request.upstream_checked
    if attempt.charge is None and spec.only_dagster_knows and not vouched:
        raise upstream_unchecked(spec.release, spec.deps, spec.required_checks)


def write_cube(attempt: Attempt, folder: Path, frame: Frame | None = None) -> Path:
    """Reads, bounds and counts the records of the period into a file in the run's private folder; gives its path."""
    # Before any file is looked for: what is not allowed, or no longer, is not read, whatever was charged for it.
    decisions = refuse_overtaken(attempt, Race.DISALLOWED_BEFORE_READING)
    spec, charges = attempt.spec, attempt.charge is None
    if charges:
        engines.refuse_undeclared_dates(spec, spec.declared_types)
    plan = plan_of(spec, attempt.period, decisions[0].reading, attempt.run, charges)
    with as_file(plan, frame, folder) as plan:
        return engines.count(plan, decisions, folder, attempt.progress)


def read_cube(cube: Path) -> Counts:
    """Exact counts, shape (cells,); deletes their file."""
    from dphist_pipeline.confidential.cube import load_cube

    exact = load_cube(cube)
    cube.unlink()
    return exact


def charge(attempt: Attempt, load: Load) -> Charged:
    """Charges the account, unless that was done before; why first of all: docs/decisions/charge-before-draw.md.

    After a crash between this and the draw, the same call reads the records anew and draws for this charge.

    Raises:
        AfterCharge: somebody else's charge came first.
    """
    once: Load = cache(load)  # one reading serves every door, and bounds every unit's rows by the same key
    store, ledger, entry = attempt.store, attempt.ledger, attempt.charge
    if entry is None:
        once()
        attempt.progress("charging the account")
        keep_spec(store, attempt.spec)
        entry = ledger.charge(attempt.request)
        refuse_overtaken(attempt, Race.CHARGED_BY_ANOTHER_SINCE, entry)
        if entry.reason != attempt.request.reason:
            raise revised_meanwhile(entry)
        # Asked before the journal is: whoever publishes while this call runs has answered every door by then.
        return Charged(entry, None, once)
    published, adopted = ledger.published_digest(entry), ledger.adopted_at()
    if published is not None or entry.number > adopted:
        refuse_overtaken(attempt, Race.CHARGED_BY_ANOTHER_BEFORE, published=published is not None)
    if published is not None:
        return Charged(entry, published, _refusing(answers_lost(attempt.key)))
    if entry.number < adopted:
        # Another copy may have drawn for a charge from before this store was adopted.
        return Charged(entry, None, _refusing(LedgerError("charge_lost", charge=entry)))

    def still_allowed() -> Counts:
        exact = once()
        refuse_overtaken(attempt, Race.DISALLOWED_WHILE_COUNTING)
        return exact

    return Charged(entry, None, still_allowed)


def draw(attempt: Attempt, load: Load, scratch: Path) -> Paid:
    """Charges, unless that was done before, and asks the doors, unless the journal holds their answers.

    Args:
        load: gives the exact counts; called before the charge, or after it for a door that has no answer yet.
        scratch: a private folder on the store's file system; `load` leaves exact numbers about rows there.
    """
    spec, store = attempt.spec, attempt.store
    witness = store.witness(attempt.ledger)  # before the charge: one that cannot be asked stops here
    charged = charge(attempt, load)
    if charged.published is None:
        _vouch(attempt, witness)

    def vouch(step: str, digest: str) -> None:
        # What was published is out: reading its answers again tells nobody anything new.
        if charged.published is None:
            witness.vouch_answer(store.id, charged.charge.hash, step, digest)

    def elsewhere(step: str) -> DphistError | None:
        return witness.drawn_elsewhere(store.id, charged.charge.hash, step) if charged.published is None else None

    journal = Journal(store.journal(attempt.key), scratch, charged.charge.hash, vouch, elsewhere)
    attempt.progress(f"releasing by {spec.mechanism}")
    counts = attempt.run.private_counts(charged.load, journal)
    try:
        estimate = attempt.run.estimate(counts)
        rest = attempt.request.epsilon - attempt.run.epsilon
        quality = buy_quality(spec, rest, cache(lambda: _observed_rows(charged.load, scratch)), journal)
    except (FileNotFoundError, AnswerDrawnElsewhere):
        refuse_overtaken(attempt, Race.REJECTED_IN_A_DOOR, charged.charge)
        raise
    estimate = with_quality(estimate, quality)
    if charged.published is not None and charged.published != values_digest(estimate):
        raise values_differ(attempt.key)
    refuse_overtaken(attempt, Race.REJECTED_WHILE_DRAWING, charged.charge)
    store.forget_kept_runs(attempt.key)
    scales = {step: scale for count in counts for step, scale in count.scales.items()}
    scales |= {table.step: table.scale for table in quality}
    return Paid(charged.charge, estimate, scales, charged.published is not None)


def _observed_rows(load: Load, folder: Path) -> ObservedRows:
    """Exact numbers about rows, which counting left in a folder; where counts may not be loaded, these may not."""
    from dphist_pipeline.confidential import row_tables

    load()
    return row_tables.load(folder)


def _vouch(attempt: Attempt, witness: Witness) -> None:
    """Has the witness know every charge before the first draw; it refuses a ledger that lacks one, and copies."""
    ledger, store = attempt.ledger, attempt.store
    store.refuse_cut(ledger, witness)
    witness.vouch(store.id, ledger.standing)
    witness.note_head(store.id, *ledger.head())
    before = witness.note_place(store.id, place_of(store.root), store.own_folder().id)
    if before is not None:
        attempt.progress(f"note: this store was used at another place before, {before}")


def _refusing(error: DphistError) -> Load:
    """Gives no counts."""

    def refuse() -> NoReturn:
        raise error

    return refuse


def publish(attempt: Attempt, paid: Paid) -> Release:
    """Publishes what `draw` gave; see `publisher.publish`.

    Raises:
        AwaitsApproval: `publish` holds it back, and nobody approved yet.
    """
    facts = facts_if_approved(attempt, paid)
    attempt.progress("publishing")
    publication = publisher.publish(
        attempt.store,
        attempt.key,
        paid.estimate,
        paid.scales,
        facts,
        values_differ(attempt.key),
        # Whatever gets lost after that, what somebody may have read is never drawn again.
        record=lambda: attempt.ledger.record_published(paid.charge, values_digest(paid.estimate)),
    )
    finish_withdrawals(attempt.store, attempt.ledger)
    refuse_overtaken(attempt, Race.WITHDRAWN_WHILE_PUBLISHING, paid.charge)
    return replace(publication, replayed=paid.published)


def refresh_catalogue(attempt: Attempt) -> None:
    """Builds the catalogue anew unless it holds this release."""
    PublicFolder(attempt.store).refresh(attempt.key, [attempt.path], attempt.progress)


def answered(attempt: Attempt, scratch: Path) -> Paid | None:
    """The estimate from the journal alone; None when a door has not answered yet. See `draw` for the folder."""
    if attempt.charge is None:
        return None
    try:
        return draw(attempt, _refusing(CubeMissing(attempt.key)), scratch)
    except CubeMissing:
        return None


def draw_apart(attempt: Attempt, before: Callable[[], None]) -> Drawn:
    """Counts, charges and asks the doors, unless all that was done.

    `before` is called before a first charge; refuses what must not be charged.
    """
    with marking_charges(attempt):
        publication = replayed(attempt)
        if publication is not None:
            return Drawn(attempt, str(publication.audit["values_digest"]), replayed=True)
        if attempt.charge is None:
            before()
        with attempt.store.run(attempt.key) as folder:
            paid = draw(attempt, lambda: read_cube(write_cube(attempt, folder)), folder)
    return Drawn(replace(attempt, charge=paid.charge), values_digest(paid.estimate))


def publish_apart(attempt: Attempt, drawn: Drawn | None = None) -> Release:
    """Publishes what the journal holds, or gives back what was published; `drawn` if this process drew for it."""
    publication = make_public(attempt, drawn)
    refresh_catalogue(attempt)
    return publication


def make_public(attempt: Attempt, drawn: Drawn | None = None) -> Release:
    """As `publish_apart`, before the catalogue and the copy in a bucket; see `refresh_catalogue`."""
    with marking_charges(attempt):
        publication = replayed(attempt)
        if publication is None:
            publication = publish(attempt, _from_journal(attempt) if drawn is None else drawn.paid)
    return publication


def _from_journal(attempt: Attempt) -> Paid:
    with attempt.store.run(attempt.key) as scratch:
        paid = answered(attempt, scratch)
    if paid is None:
        raise CubeMissing(attempt.key)
    return paid


def publish_approved(
    spec: ReleaseSpec,
    store: Store | Path | str,
    approved_by: str,
    period: str | None = None,
    *,
    revision: int | None = None,
    now: datetime | None = None,
    progress: Progress = lambda step: None,
) -> Release:
    """Publishes what a release of `publish: manual` holds back; the ledger and the audit say who approved it.

    Without period and revision, it is the only one that waits.

    Raises:
        Refused: several wait, and period and revision leave open which; or it was never drawn, or publishes by itself.
    """
    store, now = store if isinstance(store, Store) else Store.open(Path(store)), now or datetime.now(UTC)
    unnamed = period is None and spec.period != "none"
    key = None if unnamed else chosen_period(spec, period, now).key
    key, revision = approvals.period_and_revision(spec, store, store.ledger(), key, revision)
    attempt = begin(spec, store, key, now, "", progress, revision)
    if not attempt.rule.may_wait(attempt.charge):
        raise nothing_to_decide(attempt.key, "it publishes by itself; `publish: manual` in its spec would hold it back")
    with store.run(attempt.key) as folder:
        is_drawn = answered(replace(attempt, progress=lambda step: None), folder) is not None
    if attempt.charge is None or not is_drawn:
        raise nothing_to_decide(
            attempt.key, "its numbers were not drawn yet, or not all of them; run `dphist release` first"
        )
    published = attempt.ledger.published_digest(attempt.charge) is not None
    if published and "approved" not in attempt.ledger.notes(attempt.charge):
        raise nothing_to_decide(attempt.key, f"it was published before `publish: {attempt.rule.publish}` held it back")
    attempt.ledger.note(attempt.charge, "approved", approved_by)
    return publish_apart(attempt)


def withdraw(store: Store | Path | str, name: str, period: str, reason: str) -> list[Path]:
    """Takes back all publications of a release's period; see `_approvals.withdraw`. The catalogue has them no more."""
    store = store if isinstance(store, Store) else Store.open(Path(store))
    folders = approvals.withdraw(store, name, period, reason)
    PublicFolder(store).refresh(Key(name, period, 1))
    return folders


@contextmanager
def nothing_charged() -> Iterator[None]:
    """Marks errors of what comes before a charge."""
    try:
        yield
    except DphistError as error:
        error.charged = False
        raise


@contextmanager
def marking_charges(attempt: Attempt) -> Iterator[None]:
    """Marks errors of an attempt with whether its period is charged, by this call or an earlier one."""
    try:
        yield
    except DphistError as error:
        error.charged = _is_charged(attempt)
        raise


def _is_charged(attempt: Attempt) -> bool | None:
    """None where the ledger cannot be asked: a charge that was under way may have been made."""
    if attempt.charge is not None:
        return True
    try:
        charges = attempt.ledger.charges(attempt.key.release, attempt.key.period)
    except DphistError:
        return None
    return any(charge.revision == attempt.key.revision for charge in charges)
