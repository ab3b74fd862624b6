"""The command `dphist release`: publishes a period of a release, or all that are due, of one spec or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.publishing.statements import Statement


def release(
    specs: Annotated[
        list[Path],
        typer.Argument(metavar="SPEC", help="A release's YAML file, or several; with `for_each`, FILE#RELEASE."),
    ],
    period: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="First day of the period, or 2026-W10. Default: the latest finished one."),
    ] = None,
    all_due: Annotated[
        bool,
        typer.Option(
            "--all-due",
            help="Every finished period that is neither published nor waived, oldest first, from `first_period` on; "
            "without it, after the first charged one.",
        ),
    ] = False,
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
    """Publishes a period of a release, or all that are due.

    Charges its account once. After a crash, run the same command again to
    finish. For a published period, the command spends nothing, reads no
    record and shows the publication.

    With several specs or --all-due each period is charged and published by
    itself. One that fails stops no other spec, and the command exits with 1
    at the end. Where an account is used up, the rest of its spec waits.
    """
    if revise != bool(reason.strip()):
        raise typer.BadParameter("a revision is charged anew: give --revise and --reason TEXT together")
    several = all_due or len(specs) > 1
    if several and (period is not None or revise):
        raise typer.BadParameter("--period and --revise are for one period of one SPEC, without --all-due")
    if several:
        _release_several(specs, all_due, store, upstream_checked.strip(), as_json)
    else:
        _release(specs[0], period, store, reason.strip(), upstream_checked.strip(), as_json)


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
    opened_store = Store.open_named(store)
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


def _release_several(
    paths: list[Path], all_due: bool, store: Path | None, upstream_checked: str, as_json: bool
) -> None:
    # Imported here: a wrong usage needs none of these.
    from rich.markup import escape

    from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas
    from dphist_pipeline.cli.failures import TRY_AGAIN, failure_of, without_control
    from dphist_pipeline.cli.terminal import err, out, print_json, progress
    from dphist_pipeline.errors import DphistError
    from dphist_pipeline.ledger.epsilon_text import as_text
    from dphist_pipeline.publishing.statements import Statement
    from dphist_pipeline.releasing.release import AwaitsApproval, release_several
    from dphist_pipeline.releasing.release_spec import ReleaseSpec
    from dphist_pipeline.releasing.spec_check import SpecCheck, load_spec
    from dphist_pipeline.releasing.store import Store

    opened_store = Store.open_named(store)
    specs: list[ReleaseSpec] = []
    codes: list[int] = []
    facts: dict[str, list[dict[str, Any]]] = {"published": [], "waiting": [], "failed": []}

    def fail(what: dict[str, str], error: Exception, remaining: tuple[str, ...] = ()) -> None:
        message, code, of_error = failure_of(error)
        message = without_control(message)
        codes.append(code)
        facts["failed"].append({**what, "error": {"message": message, **of_error}, "remaining": list(remaining)})
        title = ", period ".join(filter(None, (what.get("release"), what.get("period"))))
        err.print(f"[bold red]error:[/] {escape(f'{title}: ' * bool(title) + message)}")
        if remaining:
            periods = "1 more due period" if len(remaining) == 1 else f"{len(remaining)} more due periods"
            ends = " to ".join(dict.fromkeys((remaining[0], remaining[-1])))
            err.print(f"  {periods} of {escape(what['release'])} not tried: {ends}")

    for path in paths:
        try:
            specs.append(load_spec(path, store))
        except Exception as error:
            fail({"spec": str(path)}, error)
    if all(spec.engine == "duckdb" for spec in specs):  # the client of Spark has frames of pandas
        arrow_without_pandas()
    for spec in specs:
        if changed := SpecCheck(spec, opened_store).changed_since_signed():
            err.print(f"[yellow]![/] {escape(changed)}")
    begun = set[str]()

    def first(name: str) -> None:
        if name not in begun:  # the steps of one period tell those of all
            step(name)
        begun.add(name)

    with progress(as_json) as step:
        try:
            for outcome in release_several(
                specs, opened_store, all_due=all_due, upstream_checked=upstream_checked, progress=first
            ):
                key = {"release": outcome.release, "period": outcome.period}
                title = escape(outcome.release) + ("" if outcome.period == "all" else f", period {outcome.period}")
                if (publication := outcome.publication) is not None:
                    of_audit = {name: publication.audit[name] for name in ("revision", "epsilon")}
                    done = {"replayed": publication.replayed, "path": str(publication.path)}
                    facts["published"].append({**key, **of_audit, **done})
                    if not as_json:
                        out.print(
                            f"[green]✓[/] {'Already published' if publication.replayed else 'Published'}: {title}"
                        )
                elif isinstance(outcome.error, AwaitsApproval):
                    facts["waiting"].append({**key, "revision": outcome.error.key.revision})
                    if not as_json:
                        out.print(f"[green]✓[/] {escape(str(outcome.error))}")
                elif outcome.error is not None:
                    fail(key, outcome.error, outcome.remaining)
        except DphistError as error:  # of the catalogue or the bucket; what is published stays published
            fail({}, error)
    if as_json:
        print_json(facts)
    else:
        if not any(facts.values()):
            out.print("Nothing is due.")
        for account in dict.fromkeys(spec.account for spec in specs):
            statement = Statement.of(opened_store.ledger(), account)
            out.print(f"  account {account} has {as_text(statement.left)} left of {as_text(statement.total)}")
    if codes:
        raise typer.Exit(TRY_AGAIN if set(codes) == {TRY_AGAIN} else 1)


def _older_card(path: Path, audit: dict[str, Any]) -> str:
    """What to do where the card of a later period tells the figure that a revision replaced; empty if none does."""
    later = [folder for folder in path.parents[1].glob("period=*") if folder.name > path.parent.name]
    if audit["revision"] == 1 or not later:
        return ""
    return (
        "The card of the period after it may tell the figure of the revision before: "
        f"`dphist store pages {audit['release']}` renders that card anew, at no cost."
    )
