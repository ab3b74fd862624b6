"""The commands by which people decide about a publication: `dphist publish` and `dphist withdraw`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli_options import JsonOption, StoreOption
from dphist_pipeline.spec.loading import load_spec, project_folder
from dphist_pipeline.store import Store, store_folder
from dphist_pipeline.terminal import out, print_json, print_release, progress

if TYPE_CHECKING:
    from dphist_pipeline.approvals import AwaitsApproval


def publish(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The release's YAML file, with `publish: manual`.")],
    approved_by: Annotated[str, typer.Option(metavar="NAME", help="Who approves; ledger and audit say so for good.")],
    period: Annotated[str | None, typer.Option(metavar="DAY", help="Its first day. Default: the latest.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publishes what a release of `publish: manual` holds back. Spends nothing and reads no record."""
    from dphist_pipeline import pipeline

    checked = load_spec(spec)
    opened = Store.open(store_folder(store, checked.base))
    with progress(as_json) as step:
        made = pipeline.publish(checked, opened, approved_by, period, progress=step)
    if as_json:
        kept = ("release", "period", "revision", "approved")
        print_json({**{name: made.audit.get(name) for name in kept}, "path": str(made.path)})
        return
    print_release(made.audit, made.replayed, made.path, opened.ledger().statement(checked.account))


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
    from dphist_pipeline import pipeline

    opened = Store.open(store_folder(store, project_folder(Path.cwd() / "spec.yaml")))
    folders = pipeline.withdraw(opened, release, period, reason)
    if as_json:
        print_json({"release": release, "period": period, "reason": reason, "paths": list(map(str, folders))})
        return
    out.print(f"[green]✓[/] Withdrawn: {escape(release)}, period {escape(period)}")
    for folder in folders:
        out.print(f"  marked: {escape(str(folder))}")
    out.print("  The catalogue has it no more. What it spent stays spent.")


def print_waiting(waiting: AwaitsApproval, as_json: bool) -> None:
    """Says that a release was drawn and waits: nothing failed."""
    if as_json:
        key = waiting.key
        print_json({"release": key.release, "period": key.period, "revision": key.revision, "awaits_approval": True})
    else:
        out.print(f"[green]✓[/] {escape(str(waiting))}")
