"""What people decide of a publication: that it may go out (`publish: manual`), that it will not, that it is taken back.

All are entries of the ledger, which says who or why, and when; none gives any budget back. What was charged under
`publish: manual` waits for a person, whatever its spec says later. What is rejected loses what was drawn for it. What
is taken back keeps its files, with the mark in its audit, for whoever has copies of them; it leaves the catalogue, and
nothing answers from it.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.published import NotPublished
from dphist_pipeline.base.files import make_folder, read_regular, sync_folder, write_durably
from dphist_pipeline.errors import AfterCharge, Refused
from dphist_pipeline.ledger.ledger import Charge, Ledger
from dphist_pipeline.ledger.limits import refuse_no_reason
from dphist_pipeline.ledger.opened import utc_now
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import DAMAGED, PublishedFilesDamaged, PublishedFolder, read_audit
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.due import unpublished_charges
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import FORM, Key, Store


class AwaitsApproval(AfterCharge):
    """A release that is charged and drawn, is held back by `publish`, and that nobody has approved yet."""

    def __init__(self, key: Key, held: bool, remark: str = "", publish: str = "manual") -> None:
        self.key, self.held, self.remark = key, held, remark
        reason = "it was charged under `publish: manual`" if held else f"its spec says `publish: {publish}`"
        reason = "it was held back under `publish: if_plausible`" if publish == "automatic" and not held else reason
        reason = f"{reason}. {remark}" if remark else f"{reason}."
        period = "" if key.period == "all" else f" --period {key.period}"
        revision = "" if key.revision == 1 else f" --revision {key.revision}"
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} is charged and drawn, and waits "
            f"for approval: {reason} Publish it, at no further cost: dphist publish SPEC{period}{revision} "
            f"--approved-by NAME; or say that it will not be: dphist reject {key.release} "
            f"{key.period}{revision} --reason TEXT"
        )


def say_which(release: str, names: list[str]) -> Refused:
    """A decision that may be about more than one of those that wait."""
    return Refused(
        f"release '{release}': it is not clear which publication is meant; name it by its period and revision. "
        f"Those that wait: {'; '.join(names)}. Nothing was changed.",
        code="say_which",
    )


def nothing_to_decide(key: Key, problem: str) -> Refused:
    """A decision about what was never drawn, publishes by itself, or is not there."""
    return Refused(
        f"release '{key.release}', period {key.period}: {problem}. Nothing was changed.", code="nothing_to_decide"
    )


def withdrawn_otherwise(key: Key, reason: str) -> Refused:
    """A publication of the local model that was taken back already, in other words."""
    return Refused(
        f"release '{key.release}', period {key.period} was withdrawn already: '{reason}'. It stands once, and "
        "stays as it is.",
        code="withdrawn_otherwise",
    )


@dataclass(frozen=True)
class PublicationRule:
    """When drawn numbers are published: by `publish` of the spec as it is now, and by how they were charged and held.

    `doubted`: they were held back before, being in doubt; then an edit of the spec lets nothing out.
    """

    publish: str
    doubted: bool = False

    @property
    def judges(self) -> bool:
        """Whether numbers that are in doubt wait for a person."""
        return self.publish == "if_plausible"

    def waits(self, charge: Charge | None) -> bool:
        """Whether a person must approve, whatever the numbers are; the charge that pays is None before it is made."""
        doubted = self.doubted and not self.judges  # which asks again, of what is published by now
        return self.publish == "manual" or doubted or (charge is not None and charge.held)

    def may_wait(self, charge: Charge | None) -> bool:
        """Whether a person may have to approve: as `waits`, or where the numbers are in doubt."""
        return self.judges or self.waits(charge)


def approval(
    rule: PublicationRule, ledger: Ledger, charge: Charge, key: Key, remark: str = "", doubt: str = ""
) -> dict[str, Any]:
    """The facts of the approval for the audit; none where a release was published by itself.

    Args:
        remark: what whoever decides should know of its noisy numbers.
        doubt: why it may be wrong, by published and drawn numbers; empty if nothing is odd.
    """
    note = ledger.notes(charge).get("approved")
    if note is not None:
        return {"approved": {"by": note.text, "at": note.made_at, "entry": note.number}}
    is_held = rule.waits(charge) or (rule.judges and doubt)
    if is_held and ledger.published_digest(charge) is None:
        message = " ".join(filter(None, [remark, doubt and f"{doubt[0].upper()}{doubt[1:]}{'.' * (doubt[-1] != '?')}"]))
        raise AwaitsApproval(key, charge.held, message, rule.publish)
    return {}


def period_and_revision(
    spec: ReleaseSpec, store: Store, ledger: Ledger, period: str | None, revision: int | None
) -> tuple[str | None, int | None]:
    """Period and revision that an approval is about: as named, else of the only one that waits, as far as there is one.

    Raises:
        Refused: several wait, or one that a later revision has taken the place of; there is no such revision.
    """
    waiting = [
        charge
        for charge in unpublished_charges(ledger, spec.release)
        if PublicationRule(spec.publish, store.is_marked_for_approval(charge)).may_wait(charge)
        and period in (None, charge.period)
        and revision in (None, charge.revision)
    ]
    if len(waiting) == 1:
        period = waiting[0].period
    revisions = [charge.revision for charge in ledger.charges(spec.release, period)] if period is not None else []
    if period is not None and revision not in (None, *revisions):
        raise nothing_to_decide(Key(spec.release, period, 1), f"there is no revision {revision}")
    latest = revision or max(revisions, default=None)
    if len(waiting) > 1 or any(charge.revision != latest for charge in waiting):
        raise say_which(spec.release, [f"--period {charge.period} --revision {charge.revision}" for charge in waiting])
    return period, latest


def reject(store: Store, release: str, period: str, reason: str, revision: int | None = None) -> Key:
    """Says that what waits will not be published, and deletes what was drawn for it; the same again changes nothing.

    Raises:
        Refused: several wait, or nothing was charged.
        LedgerError: no reason, or it was published, or rejected for another one.
    """
    ledger = store.ledger()
    charges_of_period = reconcile_charges(store, ledger, release, period)
    charges = [charge for charge in charges_of_period if revision in (None, charge.revision)]
    if not charges:
        raise nothing_to_decide(Key(release, period, 1), "nothing waits, for nothing was charged")
    waiting = [charge for charge in unpublished_charges(ledger, release) if charge in charges]
    if len(waiting) > 1:
        raise say_which(release, [f"--revision {charge.revision}" for charge in waiting])
    (charge,) = waiting or charges[-1:]
    # Noted before anything is deleted: from then on a crash leaves nothing that `finish_rejections` does not mend.
    ledger.note(charge, "rejected", reason)
    finish_rejections(store, ledger)
    store.sweep()
    return Key(release, period, charge.revision)


def withdraw(store: Store, release: str, period: str, reason: str) -> list[Path]:
    """Takes back all publications of a release's period that still stand; the same again changes nothing.

    Gives the folders of all its publications that are withdrawn, and there. Who calls builds the catalogue anew.

    Raises:
        NotPublished: there is no such publication.
        LedgerError: no reason, or all of it was withdrawn for other ones.
        Halted: the store was not upgraded.
    """
    store.refuse_old_layout()
    ledger = store.ledger()
    charges_of_period = reconcile_charges(store, ledger, release, period)
    charges = [charge for charge in charges_of_period if ledger.published_digest(charge) is not None]
    if not charges and any(charge.period == period for charge in unpublished_charges(ledger, release)):
        raise nothing_to_decide(
            Key(release, period, 1), "nothing is published yet; what waits is refused by `dphist reject`"
        )
    if not charges:
        return _withdraw_uncharged(store, Key(release, period, 1), reason)
    standing = [charge for charge in charges if "withdrawn" not in ledger.notes(charge)]
    # All are noted before one is marked: from then on a crash leaves nothing that `finish_withdrawals` does not mend.
    for charge in standing or charges[-1:]:
        ledger.note(charge, "withdrawn", reason)
    finish_withdrawals(store, ledger)
    folders = [store.published(Key(release, period, charge.revision)) for charge in charges]
    return [folder for folder in folders if folder.exists()]


def damaged_folders(store: Store, release: str, period: str) -> list[Path]:
    """The folders of a period's publications that were set aside, because they were damaged."""
    return sorted(store.published(Key(release, period, 1)).parent.glob(f"{DAMAGED}_revision=*"))


def _withdraw_uncharged(store: Store, first: Key, reason: str) -> list[Path]:
    """Marks a release of the local model, for which no ledger charged anything: audits and cards alone say so."""
    folders = [folder for folder in sorted(store.published(first).parent.glob("revision=*")) if is_local(folder)]
    if not folders:
        raise NotPublished(f"period of '{first.release}'", first.period, [])
    refuse_no_reason(f"release '{first.release}', period {first.period}: that it is withdrawn", reason)
    with store.building(), store.run(first) as scratch:
        notes = {}
        for folder in folders:
            try:
                notes[folder] = read_audit(folder).get("withdrawn")
            except PublishedFilesDamaged:  # it cannot be marked, and is no publication any more
                set_aside(store, folder)
        reasons = [note["reason"] for note in notes.values() if note is not None]
        if reasons and len(reasons) == len(notes) and reason not in reasons:
            raise withdrawn_otherwise(first, reasons[-1])
        (store.public / DerivedFiles.index).unlink(missing_ok=True)  # as in `finish_withdrawals`
        for folder, note in notes.items():
            if not PublishedFolder(folder).is_marked_withdrawn():
                PublishedFolder(folder).mark_withdrawn(note or {"reason": reason, "at": utc_now()}, scratch)
    return [*notes]


def is_local(folder: Path) -> bool:
    """Whether a published folder says that it is of the local model; its files are not checked."""
    if folder.name.removeprefix("revision=").isdecimal():
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return bool(json.loads(read_regular(folder / "audit.json")).get("model") == "local")
    return False


def finish_withdrawals(store: Store, ledger: Ledger) -> None:
    """Marks what the ledger says is withdrawn and whose audit does not say so yet: somebody was killed in between.

    Files that are damaged cannot be marked: their folder gets another name, under which nothing is a publication. A
    store that was not upgraded stays as it is.
    """
    for key, note in Statement.charges_with_note(ledger, "withdrawn") if store.form == FORM else ():
        folder = store.published(Key(*key))
        try:
            if folder.exists() and not PublishedFolder(folder).is_marked_withdrawn():
                notice = {"reason": note.text, "at": note.made_at, "entry": note.number}
                with store.building(), store.run(Key(*key)) as scratch:
                    # Made last and looked for first: without it, catalogue, notices and pages are made anew by whatever
                    # comes next, though this process is killed here and what comes next is the replay of another.
                    (store.public / DerivedFiles.index).unlink(missing_ok=True)
                    PublishedFolder(folder).mark_withdrawn(notice, scratch)
        except PublishedFilesDamaged:
            with store.building():
                set_aside(store, folder)


def set_aside(store: Store, folder: Path) -> None:
    """Gives the folder of a damaged publication another name, under which nothing is one; while `store.building()`."""
    with suppress(FileNotFoundError):  # another process was first
        (store.public / DerivedFiles.index).unlink(missing_ok=True)
        folder.rename(folder.with_name(f"{DAMAGED}_{folder.name}_{uuid.uuid4().hex[:8]}"))


def finish_rejections(store: Store, ledger: Ledger) -> None:
    """Deletes what was drawn for releases that the ledger says are rejected, and kept cubes: by one rename each.

    In its place stays which entry of the ledger says so. Without it, a ledger that is put back to before that entry
    would find nothing drawn, and draw again for the same charge.
    """
    for key_parts, note in Statement.charges_with_note(ledger, "rejected"):
        key = Key(*key_parts)
        answers, witness = store.journal(key), store.rejection(key)
        if not witness.exists():
            with store.run(key) as scratch:
                content = json.dumps({"number": note.number, "hash": note.hash})
                write_durably(scratch / "rejection", content.encode())
                make_folder(witness.parent)
                (scratch / "rejection").rename(witness)
                sync_folder(witness.parent)
        if answers.exists():
            with store.run(key) as scratch, suppress(FileNotFoundError):  # somebody else was first
                answers.rename(scratch / "rejected")
        store.forget_kept_runs(key)


def reconcile_charges(store: Store, ledger: Ledger, release: str, period: str) -> list[Charge]:
    """The charges of a period; the ledger says what is published, though it was put back to just after a charge."""
    charges = ledger.charges(release, period)
    for charge in charges:
        record_if_published(store, ledger, charge)
    return charges


def record_if_published(store: Store, ledger: Ledger, charge: Charge) -> str | None:
    """The digest of the values that the ledger says were published, if any; has it say so where their files are there.

    Raises:
        PublishedFilesDamaged: files are there that another charge paid for, or that are altered.
    """
    recorded = ledger.published_digest(charge)
    folder = store.published(Key.of(charge))
    if recorded is None and folder.exists():
        recorded = str(store.read_vouched_audit(charge, None)["values_digest"])
        ledger.record_published(charge, recorded)
    return recorded
