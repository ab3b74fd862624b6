"""What a caller does with releases: publish a period, approve what is held back, reject, withdraw; see `run.Run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing._approvals import AwaitsApproval as AwaitsApproval
from dphist_pipeline.releasing._approvals import damaged_folders as damaged_folders
from dphist_pipeline.releasing._approvals import nothing_to_decide
from dphist_pipeline.releasing._approvals import reject as reject
from dphist_pipeline.releasing.declared_figures import keep_figures
from dphist_pipeline.releasing.due import Due
from dphist_pipeline.releasing.frames import Frame
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.run import Run, marking_uncharged, resolve_period
from dphist_pipeline.releasing.store import Key, Store


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
    run, publication = _publish_run(spec, store, period, frame, reason, upstream_checked, now, progress)
    with run.marking_charges():
        run.refresh_catalogue()
    return publication


def _publish_run(
    spec: ReleaseSpec,
    store: Store | Path | str,
    period: str | None,
    frame: Frame | None,
    reason: str,
    upstream_checked: str,
    now: datetime | None,
    progress: Progress,
) -> tuple[Run, Release]:
    """A period that is published, and not in the catalogue yet."""
    with marking_uncharged():
        if not isinstance(spec, ReleaseSpec):
            raise TypeError(f"release takes a spec, as load_spec(path) gives it, not a {type(spec).__name__}")
        store = store if isinstance(store, Store) else Store.open(Path(store))
        now = now or datetime.now(UTC)
        run = Run.begin(spec, store, period, now, reason, progress, upstream_checked=upstream_checked)
    run.draw(run.refuse_unchecked, frame)
    return run, run.publish()


@dataclass(frozen=True)
class Outcome:
    """The outcome of one period of a spec in a call for several.

    Attributes:
        period: its key; empty where it was not known which period is meant.
        publication: None where the error says why there is none; `AwaitsApproval` is one.
        remaining: later due periods that were not tried, since the error stops them, too.
    """

    release: str
    period: str
    publication: Release | None = None
    error: Exception | None = None
    remaining: tuple[str, ...] = ()


def release_several(
    specs: Sequence[ReleaseSpec],
    store: Store,
    *,
    all_due: bool = False,
    upstream_checked: str = "",
    now: datetime | None = None,
    progress: Progress = lambda step: None,
) -> Iterator[Outcome]:
    """Publishes a period of each spec, or all that are due, each by itself as `release` does; then one catalogue.

    What goes wrong with one period stops no other spec, and no other period of its own, unless the ledger refuses what
    was not charged (its budget is used up, or its source not allowed), nobody needs to mend anything, or nobody knows
    what went wrong. A call that is killed anywhere is finished by the same call, the catalogue included.

    Args:
        all_due: every period of `Due.of_spec`, oldest first; otherwise the latest finished one.

    Raises:
        CatalogueNotBuilt: all is published.
        NotCopied: all is published, and the catalogue is built.
    """
    now, made = now or datetime.now(UTC), list[Path]()
    for spec in specs:
        try:
            ledger = store.ledger()
            due = Due.of_spec(spec, store, ledger, now) if all_due else Due((spec.latest_period(now).key,))
        except DphistError as error:
            yield Outcome(spec.release, "", error=error)
            continue
        for number, key in enumerate(due.keys, 1):
            try:
                _, publication = _publish_run(spec, store, key, None, "", upstream_checked, now, progress)
            except Exception as error:
                refused = isinstance(error, LedgerError) and key not in due.unfinished
                stops = refused or not isinstance(error, DphistError) or error.try_again
                remaining = tuple(due.keys[number:]) if stops else ()
                yield Outcome(spec.release, key, error=error, remaining=remaining)
                if stops:
                    break
            else:
                made += [] if publication.replayed else [publication.path]
                yield Outcome(spec.release, key, publication)
    public = PublicFolder(store)
    changed = [spec.release for spec in specs if keep_figures(store, spec)]
    public.refresh_releases([spec.release for spec in specs], made, progress)
    for name in changed:
        public.render(name, progress)  # pages of periods that were there before have the lines, too


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
    key = None if unnamed else resolve_period(spec, period, now).key
    key, revision = approvals.period_and_revision(spec, store, store.ledger(), key, revision)
    run = Run.begin(spec, store, key, now, progress=progress, revision=revision)
    if not run.rule.may_wait(run.charge):
        raise nothing_to_decide(run.key, "it publishes by itself; `publish: manual` in its spec would hold it back")
    if not run.resume() or run.charge is None:
        raise nothing_to_decide(
            run.key, "its numbers were not drawn yet, or not all of them; run `dphist release` first"
        )
    if run.was_published and "approved" not in run.ledger.notes(run.charge):
        raise nothing_to_decide(run.key, f"it was published before `publish: {run.rule.publish}` held it back")
    run.ledger.note(run.charge, "approved", approved_by)
    if not run.was_published:  # a ledger that is put back to before the approval is noticed
        store.witness(run.ledger).note_head(store.id, *run.ledger.head())
    publication = run.publish()
    run.refresh_catalogue()
    return publication


def withdraw(store: Store | Path | str, name: str, period: str, reason: str) -> list[Path]:
    """Takes back all publications of a release's period; see `_approvals.withdraw`. The catalogue has them no more."""
    store = store if isinstance(store, Store) else Store.open(Path(store))
    folders = approvals.withdraw(store, name, period, reason)
    PublicFolder(store).refresh(Key(name, period, 1))
    return folders
