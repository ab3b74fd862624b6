"""The commands by which people decide about a publication: `dphist publish`, `dphist reject`, `dphist withdraw`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_release, progress
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    from dphist_pipeline.releasing.release import AwaitsApproval


def publish(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="The release's YAML file, with `publish: manual` or `if_plausible`.")
    ],
    approved_by: Annotated[str, typer.Option(metavar="NAME", help="Who approves; ledger and audit say so for good.")],
    period: Annotated[str | None, typer.Option(metavar="DAY", help="Its first day. Default: the latest.")] = None,
    revision: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Its number. Default: the latest of the period.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publishes what `publish: manual` or `if_plausible` holds back. Spends nothing and reads no record.

    Where something else waits as well, period and revision must be named; the
    refusal lists what waits.
    """
    from dphist_pipeline.answering.past_periods import PeriodComparison
    from dphist_pipeline.releasing import release as verbs

    checked = load_spec(spec, store)
    opened_store = Store.open_named(store)
    with progress(as_json) as step:
        publication = verbs.publish_approved(
            checked, opened_store, approved_by, period, revision=revision, progress=step
        )
    if as_json:
        names = ("release", "period", "revision", "approved")
        print_json({**{name: publication.audit.get(name) for name in names}, "path": str(publication.path)})
        return
    statement = Statement.of(opened_store.ledger(), checked.account)
    says, copied_to = PeriodComparison.of_audit(publication.audit).says, opened_store.public_address
    print_release(
        publication.audit,
        publication.replayed,
        publication.path,
        statement,
        charged=False,
        copied_to=copied_to,
        says=says,
    )


def reject(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a release that waits.")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="Its key: the first day, or `all`.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the ledger.")],
    revision: Annotated[int | None, typer.Option(metavar="NUMBER", help="Which one, where several wait.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Says that a release that waits will not be published, and deletes what was drawn for it.

    It waits no more, and nobody can approve it. What it spent stays spent;
    the period can be released anew, at its price, with --revise.
    """
    from dphist_pipeline.releasing import release as verbs

    opened_store = Store.open_named(store)
    key = verbs.reject(opened_store, release, period, reason, revision)
    if as_json:
        print_json({"release": release, "period": period, "revision": key.revision, "reason": reason})
        return
    out.print(f"[green]✓[/] Rejected: {escape(release)}, period {escape(period)}, revision {key.revision}")
    out.print("  It will not be published, and what was drawn for it is deleted. What it spent stays spent.")


def withdraw(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a published release.")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="Its key: the first day, or `all`.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in ledger and audit, for everybody.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Takes back a published period, all its revisions: out of the catalogue, marked in its audit.

    Copies that people have made cannot be taken back, and neither can the
    epsilon: the files stay where they are, marked.
    """
    from dphist_pipeline.releasing import release as verbs

    opened_store = Store.open_named(store)
    folders = verbs.withdraw(opened_store, release, period, reason)
    damaged = verbs.damaged_folders(opened_store, release, period)
    if as_json:
        facts = {"release": release, "period": period, "reason": reason, "paths": list(map(str, folders))}
        print_json({**facts, **({"damaged": list(map(str, damaged))} if damaged else {})})
        return
    out.print(f"[green]✓[/] Withdrawn: {escape(release)}, period {escape(period)}")
    for folder in folders:
        out.print(f"  marked: {escape(str(folder))}")
    for folder in damaged:
        out.print(f"  was damaged, so it bears no mark, and is no publication any more: {escape(str(folder))}")
    if damaged and opened_store.public_address:
        place = f"{opened_store.public_address}/{release}/period={period}/"
        out.print(f"  Its files stay in the bucket without a mark; delete them there: {escape(place)}")
    if folders and opened_store.public_address:
        out.print(f"  marked in {escape(opened_store.public_address)}, too")
    out.print("  It is no longer in the catalogue. What it spent stays spent.")
    if period != "all":
        anew = f"`dphist store pages {escape(release)}` renders that one anew, at no cost."
        out.print(f"  The card of the period after it may compare with it: {anew}")


def print_waiting(waiting: AwaitsApproval, as_json: bool) -> None:
    """Says that a release was drawn and waits: nothing failed."""
    if as_json:
        key = waiting.key
        facts = {"release": key.release, "period": key.period, "revision": key.revision, "awaits_approval": True}
        print_json(facts | ({"why": waiting.remark} if waiting.remark else {}))
    else:
        out.print(f"[green]✓[/] {escape(str(waiting))}")
