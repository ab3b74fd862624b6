"""The command `dphist release`: publishes one period of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dphist_pipeline.base.early_processes import started_early
from dphist_pipeline.cli.commands import NEEDED_BY_RELEASE
from dphist_pipeline.cli.options import JsonOption, SpecArgument, StoreOption
from dphist_pipeline.publishing.statements import Statement


def release(
    spec: SpecArgument,
    period: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="First day of the period, or 2026-W10. Default: the latest finished one."),
    ] = None,
    store: StoreOption = None,
    revise: Annotated[
        bool, typer.Option("--revise", help="Release a period again, charged again; needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why it is revised. The same reason again changes nothing.")
    ] = "",
    upstream_checked: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Why `deps` are complete for the period, where only Dagster could tell; kept in the audit.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Publishes one period of a release.

    Charges its account once. After a crash, run the same command again to
    finish. For a published period, the command spends nothing, reads no
    record and shows the publication.
    """
    if revise != bool(reason.strip()):
        raise typer.BadParameter("a revision is charged anew: give --revise and --reason TEXT together")
    with started_early(NEEDED_BY_RELEASE):
        _release(spec, period, store, reason.strip(), upstream_checked.strip(), as_json)


def _release(
    spec: Path, period: str | None, store: Path | None, reason: str, upstream_checked: str, as_json: bool
) -> None:
    # Imported here: a wrong usage needs none of these.
    from rich.markup import escape

    from dphist_pipeline.answering.doubts import doubt_of_publication
    from dphist_pipeline.answering.past_periods import PeriodComparison
    from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas
    from dphist_pipeline.cli.release.decide import print_waiting
    from dphist_pipeline.cli.terminal import err, print_json, print_release, print_warning, progress, statement_facts
    from dphist_pipeline.releasing import release
    from dphist_pipeline.releasing.release import AwaitsApproval
    from dphist_pipeline.releasing.spec_check import SpecCheck, load_spec
    from dphist_pipeline.releasing.store import Store

    checked = load_spec(spec, store)
    if checked.engine == "duckdb":  # the client of Spark has frames of pandas
        arrow_without_pandas()
    opened_store = Store.named(store)
    beside = SpecCheck(checked, opened_store)
    changed = beside.changed_since_signed()
    if changed and not as_json:
        err.print(f"[yellow]![/] {escape(changed)}")
    try:
        with progress(as_json) as step:
            publication = release.release(
                checked, opened_store, period, reason=reason, upstream_checked=upstream_checked, progress=step
            )
    except AwaitsApproval as waiting:
        print_waiting(waiting, as_json)
        return
    older = "" if publication.replayed else _older_card(publication.path, publication.audit)
    statement, compared = (
        Statement.of(opened_store.ledger(), checked.account),
        PeriodComparison.of_audit(publication.audit),
    )
    if as_json:
        doubt = doubt_of_publication(publication.path, publication.audit)
        warnings = [warning_text for warning_text in (changed, older, doubt) if warning_text]
        print_json(
            {name: publication.audit[name] for name in ("release", "period", "revision", "epsilon")}
            | {"replayed": publication.replayed, "path": str(publication.path), "account": statement_facts(statement)}
            | ({"warnings": warnings} if warnings else {})
            | ({"total_holds_zero": True} if publication.audit.get("total_holds_zero") else {})
            | ({"compared": compared.facts} if compared.periods else {})
            | ({"copied_to": opened_store.public_address} if opened_store.public_address else {})
        )
        return
    says, copied_to = compared.says, opened_store.public_address
    print_release(
        publication.audit,
        publication.replayed,
        publication.path,
        statement,
        copied_to=copied_to,
        says=says,
    )
    print_warning(older)


def _older_card(path: Path, audit: dict[str, Any]) -> str:
    """What to do where the card of a later period tells the figure that a revision replaced; empty if none does."""
    later = [folder for folder in path.parents[1].glob("period=*") if folder.name > path.parent.name]
    if audit["revision"] == 1 or not later:
        return ""
    return (
        "The card of the period after it may tell the figure of the revision before: "
        f"`dphist store pages {audit['release']}` renders that card anew, at no cost."
    )
