"""What people decide about a publication: that it may go out (`publish: manual`), and that it is taken back.

Both are entries of the ledger, which says who or why, and when; neither gives any budget back. What is taken back keeps
its files, with the mark in its audit, for whoever has copies of them; it leaves the catalogue, and nothing answers from
it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.published import NotPublished
from dphist_pipeline.errors import DphistError
from dphist_pipeline.privacy.ledger import Charge, Ledger, Note, utc_now
from dphist_pipeline.privacy.ledger_limits import refuse_no_reason
from dphist_pipeline.publishing.release_files import PublishedFilesDamaged, is_marked, mark_withdrawn, read_audit
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.store import Key, Store


class AwaitsApproval(DphistError):
    """A release of `publish: manual` that is charged and drawn, and that nobody has approved yet."""

    def __init__(self, key: Key) -> None:
        self.key = key
        period = "" if key.period == "all" else f" --period {key.period}"
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} is charged and drawn, and waits "
            f"for approval: its spec says `publish: manual`. Publish it, for nothing more: "
            f"dphist publish SPEC{period} --approved-by NAME"
        )


class NothingToApprove(DphistError):
    """An approval of what was never drawn, or of what publishes by itself."""

    def __init__(self, key: Key, problem: str) -> None:
        self.key = key
        super().__init__(f"release '{key.release}', period {key.period}: {problem}. Nothing was changed.")


class Withdrawn(DphistError):
    """A publication that was taken back."""

    def __init__(self, key: Key, note: Note) -> None:
        self.key, self.note = key, note
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} was withdrawn on "
            f"{note.made_at[:10]}: {note.text}. What it spent stays spent. To publish that period anew, at its price: "
            "dphist release with --revise --reason TEXT."
        )


class WithdrawnOtherwise(DphistError):
    """A publication of the local model that was taken back already, in other words."""

    def __init__(self, key: Key, reason: str) -> None:
        self.key, self.reason = key, reason
        super().__init__(
            f"release '{key.release}', period {key.period} was withdrawn already: '{reason}'. It stands once, and "
            "stays as it is."
        )


def refuse_withdrawn(ledger: Ledger, charge: Charge, key: Key) -> None:
    """Raises Withdrawn where the ledger says so."""
    note = ledger.notes(charge).get("withdrawn")
    if note is not None:
        raise Withdrawn(key, note)


def approval(spec: ReleaseSpec, ledger: Ledger, charge: Charge, key: Key) -> dict[str, Any]:
    """What the audit says of the approval; nothing where a release publishes by itself.

    Raises:
        AwaitsApproval: nobody approved yet.
    """
    if spec.publish == "automatic":
        return {}
    note = ledger.notes(charge).get("approved")
    if note is None:
        raise AwaitsApproval(key)
    return {"approved": {"by": note.text, "at": note.made_at, "entry": note.number}}


def withdraw(store: Store, release: str, period: str, reason: str) -> list[Path]:
    """Takes back all publications of a release's period that still stand; the same again changes nothing.

    Args:
        store: that holds them.
        release: its name.
        period: its key, the first day or `all`.
        reason: why; everybody can read it.

    Returns:
        The folders of all its publications that are withdrawn, and there. Who calls builds the catalogue anew.

    Raises:
        NotPublished: there is no such publication.
        LedgerError: no reason, or all of it was withdrawn for other ones.
    """
    ledger = store.ledger()
    charges = [charge for charge in ledger.charges(release, period) if ledger.published_digest(charge) is not None]
    if not charges:
        return _withdraw_uncharged(store, Key(release, period, 1), reason)
    standing = [charge for charge in charges if "withdrawn" not in ledger.notes(charge)]
    # All are noted before one is marked: from then on a crash leaves nothing that `finish_withdrawals` does not mend.
    for charge in standing or charges[-1:]:
        ledger.note(charge, "withdrawn", reason)
    finish_withdrawals(store, ledger)
    folders = [store.published(Key(release, period, charge.revision)) for charge in charges]
    return [folder for folder in folders if folder.exists()]


def _withdraw_uncharged(store: Store, first: Key, reason: str) -> list[Path]:
    """Marks a release of the local model, for which no ledger charged anything: audits and cards alone say so."""
    folders = [folder for folder in sorted(store.published(first).parent.glob("revision=*")) if is_local(folder)]
    if not folders:
        raise NotPublished(f"period of '{first.release}'", first.period, [])
    refuse_no_reason(f"release '{first.release}', period {first.period}: that it is withdrawn", reason)
    with store.building(), store.run(first) as scratch:
        notes = {folder: read_audit(folder).get("withdrawn") for folder in folders}
        said = [note["reason"] for note in notes.values() if note is not None]
        if len(said) == len(folders) and reason not in said:
            raise WithdrawnOtherwise(first, said[-1])
        for folder, note in notes.items():
            if not is_marked(folder):
                mark_withdrawn(folder, note or {"reason": reason, "at": utc_now()}, scratch)
    return folders


def is_local(folder: Path) -> bool:
    """Whether a published folder says that it is of the local model; its files are not checked."""
    if folder.name.removeprefix("revision=").isdecimal():
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return bool(json.loads((folder / "audit.json").read_bytes()).get("model") == "local")
    return False


def holds_local(store: Store, release: str) -> bool:
    """Whether any period of a release is of the local model."""
    return any(map(is_local, store.public.glob(f"{release}/period=*/revision=*")))


def finish_withdrawals(store: Store, ledger: Ledger) -> None:
    """Marks what the ledger says is withdrawn and whose audit does not say so yet: somebody was killed in between.

    Raises:
        PublishedFilesDamaged: of one that is damaged, after all the others are marked.
    """
    damaged = None
    for key, note in ledger.withdrawals():
        folder = store.published(Key(*key))
        try:
            if folder.exists() and not is_marked(folder):
                said = {"reason": note.text, "at": note.made_at, "entry": note.number}
                with store.building(), store.run(Key(*key)) as scratch:
                    mark_withdrawn(folder, said, scratch)
        except PublishedFilesDamaged as error:
            damaged = error
    if damaged is not None:
        raise damaged
