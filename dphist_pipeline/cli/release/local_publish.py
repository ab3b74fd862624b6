"""`dphist local publish`: the curator's side of a collection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.release.local import local_app
from dphist_pipeline.cli.release.local_encode import encode
from dphist_pipeline.cli.terminal import out, print_json, print_table, progress
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.collection import CollectionSpec, load_collection

if TYPE_CHECKING:
    from dphist_pipeline.local.publication import Counted
    from dphist_pipeline.releasing.releases import Release

STANDARD_INPUT = Path("-")


def publish(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The collection's YAML file.")],
    reports: Annotated[
        list[Path] | None,
        typer.Argument(metavar="REPORTS", help="Parquet files of reports; - for lines on standard input."),
    ] = None,
    store: StoreOption = None,
    revise: Annotated[bool, typer.Option("--revise", help="Publish anew, at no cost; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, such as: late reports.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Counts reports and publishes every consumer's histogram.

    Reports that are malformed, of another question or there twice are
    refused and counted. Run it again: it gives back what was published.
    """
    from dphist_pipeline.local.publication import publish_collection

    if revise != bool(reason.strip()):
        raise typer.BadParameter("give --revise and --reason TEXT together")
    checked = load_collection(spec)
    opened = Store.named(store)
    with progress(as_json) as step:
        step("counting reports")
        counted = _counted(checked, opened, reports or [])
        made = publish_collection(checked, opened, counted, reason=reason.strip(), progress=step)
    if as_json:
        print_json(_as_json(counted, made))
    else:
        _print(counted, made)


def _counted(spec: CollectionSpec, store: Store, named: list[Path]) -> Counted:
    """Counts the reports in the files that are named, else in those that the spec names."""
    from dphist_pipeline.local.publication import count_reports, report_files
    from dphist_pipeline.local.reports import keep_lines

    named = named or report_files(spec)
    if STANDARD_INPUT not in named:
        return count_reports(spec, named)
    with store.run(Key(spec.release_of(spec.consumers[0]), spec.round, 1)) as scratch:
        kept = scratch / "reports.parquet"
        left_out = keep_lines(question_of(spec), sys.stdin.buffer, kept)
        return count_reports(spec, [kept, *(path for path in named if path != STANDARD_INPUT)], left_out)


def _as_json(counted: Counted, made: list[Release]) -> dict[str, object]:
    releases = [
        {name: release.audit[name] for name in ("release", "period", "revision")}
        | {"replayed": release.replayed, "path": str(release.path)}
        for release in made
    ]
    epsilon = str(counted.tally.question.epsilon)
    return {"accepted": counted.tally.reports, "refused": counted.refused, "epsilon": epsilon, "releases": releases}


def _print(counted: Counted, made: list[Release]) -> None:
    refused = ", ".join(f"{number:,} {reason}" for reason, number in counted.refused.items() if number)
    out.print(f"{counted.tally.reports:,} reports counted; refused: {refused or 'none'}")
    rows: list[tuple[str, ...]] = []
    for release in made:
        names = (str(release.audit[name]) for name in ("release", "period", "revision"))
        rows.append(("already published" if release.replayed else "published", *names, f"{release.audit['cells']:,}"))
    print_table(["", "release", "period", "revision", "cells"], rows)
    spent = as_text(counted.tally.question.epsilon)
    out.print(f"Each contributor has spent epsilon {spent} by answering; publishing spends nothing more.")
    out.print(f"\nAsk it:  dphist answer {escape(str(made[0].audit['release']))}")


for command in (encode, publish):
    local_app.command()(command)
