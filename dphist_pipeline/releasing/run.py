"""A run: one call for one release and one period, in order: begin, draw (count, charge, measure), publish.

A run may be killed anywhere and called again, or called by twenty processes at once: the ledger charges a release and
period once, the journal keeps the first answer of every measurement, and all files appear by one rename. What one step
leaves for the next lies in the store: the charge in the ledger, the answers in the journal. So a run may draw in one
process and publish in another one, a month later. A step that is repeated changes nothing. Exact counts are not left:
the cube lies in a private folder that one draw makes and deletes; after a crash, records are counted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base import about_publisher
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.row_queries import ObservedRows
from dphist_pipeline.errors import AfterCharge, DphistError, Halted, Refused
from dphist_pipeline.estimates.estimate import AnyEstimate, with_quality
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.errors import AlreadyCharged, AnswerDrawnElsewhere, LedgerError
from dphist_pipeline.ledger.ledger import Charge, ChargeRequest, Ledger
from dphist_pipeline.ledger.witness import Witness, place_of
from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing import _engine_choice as engines
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing._approvals import (
    AwaitsApproval,
    PublicationRule,
    approval,
    finish_rejections,
    finish_withdrawals,
    record_if_published,
)
from dphist_pipeline.releasing._audit_facts import audit_facts, judge
from dphist_pipeline.releasing._individual_charge import GrantedRows, States
from dphist_pipeline.releasing._plans import mechanism_run_of, plan_of, request_of
from dphist_pipeline.releasing._races import By, Race, refuse_other_host
from dphist_pipeline.releasing._spec_changes import changes_since, keep_spec
from dphist_pipeline.releasing._taken_names import refuse_other_length
from dphist_pipeline.releasing.declared_figures import figure_facts, keep_figures, refuse_untold_figures
from dphist_pipeline.releasing.frames import Frame, as_file
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.quality_queries import buy_left_out, buy_quality
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.periods import Period

Counts = NDArray[np.int64]
Load = Callable[[], Counts]


def nothing_to_revise(release: str, period: str) -> Refused:
    """`--revise` for a period that was never released."""
    return Refused(
        f"release '{release}', period {period}: nothing to revise yet. Leave out --revise.", code="nothing_to_revise"
    )


def upstream_unchecked(spec: ReleaseSpec) -> Refused:
    """A plain run of a release that requires upstream partitions, of which only Dagster knows."""
    checks = spec.required_checks
    passed = f" and that {', '.join(checks)} passed" if checks else ""
    return Refused(
        f"release '{spec.release}' requires that all partitions of {', '.join(spec.deps)} for the period are "
        f"there{passed} (`require: {'checks' if checks else 'partitions'}`), and only Dagster knows that. Run it in "
        "Dagster, or look yourself and say so: --upstream-checked REASON, which the audit keeps. Nothing was read or "
        "spent.",
        code="upstream_unchecked",
    )


def about_refused(faults: list[str]) -> Refused:
    """The file about the publisher cannot be read: cards would go without it."""
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
    """The journal's values differ from the published ones."""
    return AfterCharge(
        f"release '{key.release}', period {key.period}, revision {key.revision}: the journal now gives other "
        "values than were published. Use the version of dphist-pipeline that published it.",
        code="values_differ",
    )


class NotDrawn(Halted):
    """A later step was run alone, and a measurement has no answer in the journal yet."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(
            f"release '{key.release}', period {key.period}: its numbers were not drawn yet, or not all of them, so "
            "nothing is published. Run the whole release: its job, or all of its assets together.",
            code="cube_missing",  # programs know it by the name that the class had
        )


@dataclass
class Run:
    """One call for one release and period: what `begin` froze, and what its steps have added since.

    Attributes:
        request: what the ledger is asked for, if nothing was charged yet.
        mechanism_run: the mechanism, with what its measurements count.
        rule: when measured numbers are published.
        progress: is told each step as it begins.
        charge: pays for the call; None until it is made.
        publication: the release as it was published before this call; None where it was not.
        estimate: what was measured; None until `draw` or `resume`.
        scales: of the noise of each step.
        was_published: whether the values of `estimate` had been published before.
    """

    spec: ReleaseSpec
    store: Store
    ledger: Ledger
    period: Period
    key: Key
    request: ChargeRequest
    mechanism_run: MechanismRun
    rule: PublicationRule
    progress: Progress = lambda step: None
    charge: Charge | None = None
    publication: Release | None = None
    estimate: AnyEstimate | None = None
    scales: dict[str, Fraction] = field(default_factory=dict)
    was_published: bool = False

    @classmethod
    def begin(
        cls,
        spec: ReleaseSpec,
        store: Store,
        period_key: str | None,
        now: datetime,
        reason: str = "",
        progress: Progress = lambda step: None,
        revision: int | None = None,
        upstream_checked: str = "",
    ) -> Run:
        """Chooses period and revision and asks the ledger, which refuses early; charges nothing.

        It also finishes what killed calls left: deletes their folders, completes withdrawals and rejections.
        What it gives is equal in every process that joins the same release, and no later step derives it again: what
        the ledger is asked for, the run of the mechanism, and when the numbers are published.

        Args:
            reason: asks for a revision, or for the one that was made for the same reason by the same spec.
            revision: chooses among earlier charges, for a decision about one of them.
        """
        period = resolve_period(spec, period_key, now)
        store.sweep()
        ledger = store.ledger()
        finish_withdrawals(store, ledger)
        finish_rejections(store, ledger)
        charges = ledger.charges(spec.release, period.key)
        if reason and not charges:
            raise nothing_to_revise(spec.release, period.key)
        candidates = [
            charge
            for charge in publisher.matching_revisions(charges, reason, spec.digest)
            if revision in (None, charge.revision)
        ]
        # A rejected charge is picked only where there is no other; `refuse_overtaken` refuses the call below.
        not_rejected = [charge for charge in candidates if "rejected" not in ledger.notes(charge)]
        charge = (not_rejected or candidates)[-1] if candidates else None
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
            request = replace(request, folder=store.own_folder(), days=days, upstream_checked=upstream_checked)
        # An early refusal: a changed spec, an account that disagrees, too little left. Charges nothing.
        try:
            ledger.check(request)
        except AlreadyCharged as error:
            changes = changes_since(store, error.there.digest, spec) or error.differences
            raise AlreadyCharged(error.there, changes) from None
        if charge is None:
            # The witness holds every charge that any copy of this store made. A ledger that lacks one, or its latest
            # entry, was put back from a backup or is a copy: nothing new is charged in it.
            witness = store.witness(ledger)
            witness.check(store.id, ledger.standing)
            store.refuse_truncated_ledger(ledger, witness)
        key = Key(spec.release, period.key, request.revision)
        # Below the public folder of a store that was not upgraded, this version writes nothing.
        if not store.published(key).exists():
            store.refuse_old_layout()
        rule = PublicationRule(spec.publish, charge is not None and store.is_marked_for_approval(charge))
        run = cls(spec, store, ledger, period, key, request, mechanism_run_of(spec), rule, progress, charge)
        if charge is not None:
            run.refuse_overtaken(Race.REJECTED_BEFORE)
        else:
            if faults := about_publisher.faults(store.public):
                raise about_refused(faults)
            refuse_other_length(store, spec)
            refuse_untold_figures(spec)
        tables = spec.family.names if spec.family is not None else ()
        publisher.refuse_taken_name(store, spec.release, tables=tables, charged=charge is not None)
        return run

    @property
    def path(self) -> Path:
        """The folder in which the release is, or will be, published."""
        return self.store.published(self.key)

    def refuse_overtaken(self, race: Race, published: bool = False) -> tuple[Decision, ...]:
        """Stops this run if the ledger says that it was overtaken; else gives the decisions that allow its source.

        The ledger is asked at nine places, and every place closes a race of its own; `Race` says which. A call goes
        only when another one is proved to close its race. Decisions are given only where the race is about a
        disallowed source; else none.
        `published`: values of the charge are out; asked for another host's.

        Raises:
            LedgerError: `rejected`, and what was drawn for it is deleted; `not_allowed` any more; `charged_elsewhere`.
            Withdrawn: the publication was taken back.
            AfterCharge: another host has published.
        """
        if race.by is By.DISALLOWANCE:
            return self.ledger.decisions_for(self.request)
        assert self.charge is not None, "the other races are about a charge"
        notes = self.ledger.notes(self.charge)
        if race.by is By.REJECTION and "rejected" in notes:
            finish_rejections(self.store, self.ledger)
            raise LedgerError("rejected", charge=self.charge, note=notes["rejected"])
        if race.by is By.WITHDRAWAL and "withdrawn" in notes:
            raise publisher.Withdrawn(self.key, notes["withdrawn"].made_at, notes["withdrawn"].text)
        if race.by is By.OTHER_HOST:
            refuse_other_host(self.store, self.charge, published)
        return ()

    def replay(self) -> Release | None:
        """The release as it was published, after checking its files against the ledger; None when it is not there."""
        if self.charge is None:
            return None
        self.refuse_overtaken(Race.WITHDRAWN_BEFORE)
        if self.publication is None:
            # Also enters `published` where the files are there and the ledger, put back from a backup, lacks the entry.
            recorded = record_if_published(self.store, self.ledger, self.charge)
            if self.path.exists():
                self.store.read_vouched_audit(self.charge, recorded)
            self.publication = publisher.published_release(
                self.store, self.key, expected={}, differs=values_differ(self.key)
            )
            if self.publication is not None:
                self.store.forget_kept_runs(self.key)  # what a version up to 0.2 left, under Dagster
        return self.publication

    def refuse_unchecked(self) -> None:
        """Refuses to charge where nobody looked at the upstream partitions and checks that the spec requires.

        Files that a period needs are looked for when they are read: with placeholders, only checks need anybody.
        """
        if self.spec.only_dagster_knows and not self.request.upstream_checked:
            raise upstream_unchecked(self.spec)

    def draw(self, refuse_charge: Callable[[], None] = lambda: None, frame: Frame | None = None) -> None:
        """Counts, charges and measures, unless all that was done.

        Args:
            refuse_charge: is called before a first charge; raises where upstream partitions or checks that the spec
                requires are missing: `refuse_unchecked`, or Dagster's own look at them.
            frame: the records of a spec that says `source: frame:NAME`.
        """
        with self.marking_charges():
            if self.replay() is not None:
                return
            if self.charge is None:
                refuse_charge()
            with self.store.run(self.key) as folder:
                if not self.is_individual:
                    self._measure(lambda: read_cube(self.count(folder, frame)), folder)
                    return
                # In an individual account each unit pays for its own rows that are counted. The charge names a state,
                # a file that says how many rows of each unit are granted: docs/decisions/individual-accounts.md.
                rows = GrantedRows(self.store, self.ledger, self.spec.account, lambda: self.stage(folder))
                self._measure(lambda: rows.counts(self._made_charge), folder, rows)

    @property
    def is_individual(self) -> bool:
        """Whether each unit pays for its own rows in the account of the release."""
        return self.ledger.account(self.spec.account).is_individual

    @property
    def _made_charge(self) -> Charge:
        """The charge, once there is one."""
        assert self.charge is not None, "nothing is drawn before a charge"
        return self.charge

    def resume(self) -> bool:
        """Takes all that was measured from the journal; False where a measurement has no answer yet."""
        if self.charge is None:
            return False
        try:
            with self.store.run(self.key) as folder:
                self._measure(_refusing(NotDrawn(self.key)), folder)
        except NotDrawn:
            return False
        return True

    def count(self, folder: Path, frame: Frame | None = None) -> Path:
        """Reads, bounds and counts the records of the period into a file in the run's private folder."""
        plan, decisions = self._plan()
        with as_file(plan, frame, folder) as plan:
            return engines.count(plan, decisions, folder, self.progress)

    def stage(self, folder: Path) -> tuple[CountingPlan, Path]:
        """Reads the records of the period into a file in the run's private folder, and says what is counted of them."""
        plan, _ = self._plan()
        return plan, engines.stage(plan, folder, self.progress)

    def _plan(self) -> tuple[CountingPlan, tuple[Decision, ...]]:
        """The counting plan, and the decisions that allow it."""
        # Before any file is looked for: a source whose permission was withdrawn is not read, whatever was charged.
        decisions = self.refuse_overtaken(Race.DISALLOWED_BEFORE_READING)
        will_charge = self.charge is None
        if will_charge:
            engines.refuse_undeclared_dates(self.spec, self.spec.declared_types)
        return plan_of(self.spec, self.period, decisions, self.mechanism_run, will_charge), decisions

    def _pay(self, load: Load, rows: GrantedRows | None) -> tuple[Charge, str | None, Load]:
        """Charges the account, unless that was done before; why first of all: docs/decisions/charge-before-draw.md.

        After a crash between this and the measurements, the same call reads the records anew and draws for this charge.
        Gives the charge, the digest of its values if they are published, and a `load` for measurements that have no
        answer yet. It is one of three: the counts of the records that were read; the same after asking once more
        whether the source is allowed (of an earlier charge); or an error, where nothing may be drawn any more.

        Raises:
            AfterCharge: somebody else's charge came first.
        """
        # One reading serves every measurement of this call, and bounds every unit's rows by one random key. After a
        # crash the measurements that are left get another reading, with another key.
        once: Load = cache(load)
        charge = self.charge
        if charge is None:
            # All records are read before the charge: a file that cannot be read costs nothing.
            _ = once() if rows is None else rows.staged_rows
            self.progress("charging the account" if rows is None else "filtering, counting and charging the account")
            keep_spec(self.store, self.spec)
            self.charge = charge = (self.ledger if rows is None else rows).charge(self.request)
            self.refuse_overtaken(Race.CHARGED_BY_OTHER_HOST_SINCE)
            if charge.reason != self.request.reason:
                raise revised_meanwhile(charge)
            # None, though another process that joined the charge may publish from now on: by then it has put every
            # answer in the journal, where this call finds it and draws nothing.
            return charge, None, once
        published_digest, last_adoption = self.ledger.published_digest(charge), self.ledger.adopted_at()
        if published_digest is not None or charge.number > last_adoption:
            self.refuse_overtaken(Race.CHARGED_BY_OTHER_HOST_BEFORE, published=published_digest is not None)
        if published_digest is not None:
            return charge, published_digest, _refusing(answers_lost(self.key))
        if charge.number < last_adoption:
            # Another copy may have drawn for a charge from before this store was adopted.
            return charge, None, _refusing(LedgerError("charge_lost", charge=charge))

        def still_allowed() -> Counts:
            exact = once()
            self.refuse_overtaken(Race.DISALLOWED_WHILE_COUNTING)
            return exact

        return charge, None, still_allowed

    def _measure(self, load: Load, scratch: Path, rows: GrantedRows | None = None) -> None:
        """Charges, unless that was done before, and measures what the journal does not hold yet.

        Args:
            load: gives the exact counts; called before the charge (of an individual account: only after it), or after
                it for a measurement without an answer.
            scratch: a private folder on the store's file system; `load` leaves exact numbers about rows there.
            rows: of an individual account, which filters them before it is charged.
        """
        store = self.store
        witness = store.witness(self.ledger)  # a witness that cannot be reached stops the call here, uncharged
        charge, published_digest, load = self._pay(load, rows)
        if published_digest is None:
            self._vouch(witness)

        def vouch(step: str, digest: str) -> None:
            # What was published is out: reading its answers again tells nobody anything new.
            if published_digest is None:
                witness.vouch_answer(store.id, charge.hash, step, digest)

        def elsewhere(step: str) -> DphistError | None:
            return witness.drawn_elsewhere(store.id, charge.hash, step) if published_digest is None else None

        def observed_rows() -> ObservedRows:
            from dphist_pipeline.confidential import row_tables

            load()  # counting leaves them in the folder; where counts may not be loaded, these may not
            return row_tables.load(scratch)

        def units_left_out() -> ObservedRows:
            load()  # where counts may not be loaded, these may not
            assert rows is not None, "only a run that reads gives counts"
            return rows.left_out(charge)

        # A first reader may skip to here: `private_counts` gives a `PrivateCounts` for each grid (of a family: for each
        # of its tables), which hands out nothing but noisy measurements; `estimate` makes the budget of the mechanism's
        # epsilon, calls `Mechanism.release`, and refuses if it spent less or more.
        journal = Journal(store.journal(self.key), scratch, charge.hash, vouch, elsewhere)
        self.progress(f"releasing by {self.spec.mechanism}")
        counts = self.mechanism_run.private_counts(load, journal)
        try:
            estimate = self.mechanism_run.estimate(counts)
            rest = self.request.epsilon - self.mechanism_run.epsilon
            quality = buy_quality(self.spec, rest, cache(observed_rows), journal)
            if charge.granted is not None and charge.granted.left_out:
                quality += (buy_left_out(charge.granted, units_left_out, journal),)
        except (FileNotFoundError, AnswerDrawnElsewhere):  # a rejection deletes the journal's folder
            self.refuse_overtaken(Race.REJECTED_IN_A_MEASUREMENT)
            raise
        estimate = with_quality(estimate, quality)
        if published_digest is not None and published_digest != values_digest(estimate):
            raise values_differ(self.key)
        self.refuse_overtaken(Race.REJECTED_WHILE_DRAWING)
        store.forget_kept_runs(self.key)
        if charge.granted is not None:
            States.of(store, self.ledger, charge.account).note_answered(charge)
        self.estimate, self.was_published = estimate, published_digest is not None
        self.scales = {step: scale for count in counts for step, scale in count.scales.items()}
        self.scales |= {table.step: table.scale for table in quality}

    def _vouch(self, witness: Witness) -> None:
        """Has the witness know every charge before the first draw; it refuses a ledger that lacks one, and copies."""
        ledger, store = self.ledger, self.store
        store.refuse_truncated_ledger(ledger, witness)
        witness.vouch(store.id, ledger.standing)
        witness.note_head(store.id, *ledger.head())
        before = witness.note_place(store.id, place_of(store.root), store.own_folder().id)
        if before is not None:
            self.progress(f"note: this store was used at another place before, {before}")

    def publish(self) -> Release:
        """Publishes what was measured, or gives back what was published; see `publisher.publish`.

        Raises:
            AwaitsApproval: `publish` holds it back, and nobody approved yet.
            NotDrawn: a measurement has no answer in the journal.
        """
        with self.marking_charges():
            if self.estimate is None:
                if (publication := self.replay()) is not None:
                    return publication
                if not self.resume():
                    raise NotDrawn(self.key)
            estimate, charge = self.estimate, self.charge
            assert estimate is not None and charge is not None
            facts = self._facts_if_approved()
            self.progress("publishing")
            publication = publisher.publish(
                self.store,
                self.key,
                estimate,
                self.scales,
                facts,
                values_differ(self.key),
                # Called after all files are written, before the rename. Whatever gets lost after that, what somebody
                # may have read is never drawn again.
                record=lambda: self.ledger.record_published(charge, values_digest(estimate)),
            )
            finish_withdrawals(self.store, self.ledger)
            self.refuse_overtaken(Race.WITHDRAWN_WHILE_PUBLISHING)
            return replace(publication, replayed=self.was_published)

    def _facts_if_approved(self) -> dict[str, Any]:
        """The facts for the audit beside the charges; refuses where an approval is missing.

        Raises:
            AwaitsApproval: `publish` holds the release back, and nobody approved yet.
        """
        estimate, charge = self.estimate, self.charge
        assert estimate is not None and charge is not None, "measured and paid for"
        facts = audit_facts(self.spec, self.period, self.mechanism_run, self.rule, self.ledger, charge)
        judgement = judge(self.store.public, facts, estimate)
        remark = QualityTable.of(estimate.quality).failed_nearly_all
        try:
            approval_facts = approval(self.rule, self.ledger, charge, self.key, remark, judgement.doubt)
        except AwaitsApproval:
            if self.rule.judges:
                self.store.mark_for_approval(charge)
            raise
        figures = figure_facts(self.spec)
        return facts | approval_facts | judgement.facts | ({"figures": figures} if figures else {})

    def refresh_catalogue(self) -> None:
        """Builds the catalogue anew unless it holds this release and its figures, and copies to the bucket."""
        figures_changed = keep_figures(self.store, self.spec)
        PublicFolder(self.store).refresh(self.key, [self.path], self.progress)
        if figures_changed and len([*self.path.parents[1].glob("period=*")]) > 1:
            PublicFolder(self.store).render(self.spec.release, self.progress)  # cards of other periods have lines, too

    def waits_for(self) -> str | None:
        """Says what a person must do before the release is published; None if nothing."""
        if self.publication is None:
            try:
                self._facts_if_approved()
            except AwaitsApproval as waiting:
                return str(waiting)
        return None

    def measurements(self) -> list[dict[str, str]]:
        """The queries to the exact counts: a row a step, with its epsilon and the scale of its noise; no answer."""
        if self.publication is not None:
            columns = ("step", "epsilon", "noise_scale")
            charges = self.publication.audit["charges"]
            return [{name: str(row[name] or "-") for name in columns} for row in charges]
        assert self.estimate is not None
        return [
            {"step": step, "epsilon": str(epsilon), "noise_scale": str(self.scales.get(step, "-"))}
            for step, epsilon in self.estimate.charges
        ]

    def releasable(self) -> dict[str, bool]:
        """The conditions for publishing, by name; those of numbers are asked of the journal, which is read anew.

        Raises:
            NotDrawn: a measurement has no answer there any more.
        """
        charged = self.charge is not None
        if self.publication is not None:
            complete = self.publication.audit["cells"] == self.spec.cells
            return {"cells complete": complete, "charged": charged, "digest matches": True}  # the ledger's, by `replay`
        resumed_run = replace(self, estimate=None, progress=lambda step: None)
        if self.estimate is None or not resumed_run.resume() or resumed_run.estimate is None:
            raise NotDrawn(self.key)
        return {
            "cells complete": resumed_run.estimate.cells == self.spec.cells,
            "charged": charged,
            "digest matches": values_digest(resumed_run.estimate) == values_digest(self.estimate),
        }

    @contextmanager
    def marking_charges(self) -> Iterator[None]:
        """Marks errors with whether the period is charged, by this call or an earlier one.

        None where the ledger cannot be asked: a charge that was under way may have been made.
        """
        try:
            yield
        except DphistError as error:
            error.charged = self.charge is not None
            if not error.charged:
                try:
                    charges = self.ledger.charges(self.key.release, self.key.period)
                    error.charged = any(charge.revision == self.key.revision for charge in charges)
                except DphistError:
                    error.charged = None
            raise


@contextmanager
def marking_uncharged() -> Iterator[None]:
    """Marks errors of what comes before a charge."""
    try:
        yield
    except DphistError as error:
        error.charged = False
        raise


def resolve_period(spec: ReleaseSpec, key: str | None, now: datetime) -> Period:
    """Finds the period of that key, which must be over; the latest finished one when none is named."""
    if key is None:
        return spec.latest_period(now)
    period = spec.period_named(key)
    spec.refuse_unfinished(period, now)
    return period


def read_cube(cube: Path) -> Counts:
    """Exact counts, shape (cells,); deletes their file."""
    from dphist_pipeline.confidential.cube import load_cube

    exact = load_cube(cube)
    cube.unlink()
    return exact


def _refusing(error: DphistError) -> Load:
    """Gives no counts."""

    def refuse() -> NoReturn:
        raise error

    return refuse
