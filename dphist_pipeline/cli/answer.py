"""The command `dphist answer`: a count, or a table of counts, from a publication."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_table
from dphist_pipeline.releasing.store import Store, store_folder

if TYPE_CHECKING:
    from dphist_pipeline.answering.answers import Answer
    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.answering.chosen_cells import Condition


def answer(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a published release.")],
    where: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Conditions on axes, joined by `and`: \"age in [60, 80) and ward = 'surgery'\"; also !=, and "
            "`or` on one axis. All cells without it.",
        ),
    ] = "",
    by: Annotated[
        str, typer.Option(metavar="AXIS,AXIS", help="A table by these axes or levels, instead of one number.")
    ] = "",
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimates a count from a publication, with its 95 % interval. Spends nothing."""
    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.answering.grammar import parse_where
    from dphist_pipeline.answering.published import latest_revision

    box = parse_where(where) if where.strip() else {}
    opened = Store.open(store_folder(store))
    folder = latest_revision(opened.public, release, period)
    period, revision = folder.parent.name.removeprefix("period="), int(folder.name.removeprefix("revision="))
    facts = {"release": release, "period": period, "revision": revision, "where": where}
    publication = Publication.read(folder)
    if by.strip():
        _show_table(publication, [name.strip() for name in by.split(",")], box, facts, as_json)
        return
    found = publication.answer(box)
    if as_json:
        print_json({**facts, **_as_json(found)})
        return
    counted, true = _unit_in_words(publication.audit)
    cells = "1 cell" if found.cells == 1 else f"{found.cells:,} cells"
    which = f"{release}, period {period}, revision {revision}"
    out.print(f"[bold]{found.estimate:,.0f}[/] {counted}, estimated over {cells}: {which}")
    if found.basis != "noise_only":
        out.print(f"  95 % interval of the {true}: {found.ci_lower:,.0f} to {found.ci_upper:,.0f}")
        if round(found.unbiased) != round(found.estimate):
            out.print(f"  The interval belongs to the unbiased estimate, {found.unbiased:,.0f}.")
    if found.note:
        out.print(f"  {found.note}")
    if "reports" in publication.audit:
        accepted = publication.audit["reports"]["accepted"]
        out.print(f"  Estimated from {accepted:,} reports; an estimate may exceed their number.")


def _unit_in_words(audit: Mapping[str, Any]) -> tuple[str, str]:
    """The unit of the estimate, and of the number that the interval holds; only rows are bounded."""
    if audit.get("model") != "local":
        return "records", "true (bounded) count"
    return "contributors" if audit["max_rows_per_unit"] == 1 else "values of contributors", "true number"


def _as_json(found: Answer) -> dict[str, Any]:
    """An answer as JSON values: null for nan and for an empty note."""
    facts = asdict(found) | {"note": found.note or None}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts.items()}


def _show_table(
    publication: Publication, by: list[str], box: Mapping[str, Condition], facts: dict[str, Any], as_json: bool
) -> None:
    """Prints the estimated counts by some axes."""
    rows = publication.marginal(by, box).to_pylist()
    if as_json:
        infinite = {math.inf: None, -math.inf: None}
        rows = [{name: infinite.get(value, value) for name, value in row.items()} for row in rows]
        print_json({**facts, "by": by, "rows": rows})
        return
    notes = list(dict.fromkeys(row["note"] for row in rows if row["note"]))
    hidden = {"unbiased", "noise_error", "basis", *(() if notes else ("note",))}
    header = [name for name in (rows[0] if rows else {}) if name not in hidden]
    print_table(header, [tuple(_cell_text(row, name, notes) for name in header) for row in rows])
    for number, note in enumerate(notes, 1):
        out.print(f"({number}) {note}")


def _cell_text(row: Mapping[str, Any], column: str, notes: list[str]) -> str:
    """The text of a column in a row; notes are shown as their numbers in the list of notes."""
    value = row[column]
    if column == "note":
        return f"({notes.index(value) + 1})" if value else ""
    if column in ("estimate", "unbiased", "ci_lower", "ci_upper", "cells"):
        return "" if value is None else f"{round(value):,}"
    if value is None:
        return _text_of_null(row, column)
    return f"{value:,}".removesuffix(".0") if isinstance(value, float) else str(value)


def _text_of_null(row: Mapping[str, Any], column: str) -> str:
    """The text of a column that is null: `other`, once for an axis; empty for open ends and labels."""
    stem, _, part = column.rpartition("_")
    open_end = part == "lower" and row.get(f"{stem}_upper") is not None
    second = (part == "upper" and f"{stem}_lower" in row) or (part == "label" and stem in row)
    return "" if open_end or second else "other"
