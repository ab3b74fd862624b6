"""The command `dphist answer`: a count, or a table of counts, from a publication."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_table
from dphist_pipeline.releasing.store import Store, store_folder

if TYPE_CHECKING:
    from dphist_pipeline.answering.answers import Answer, Quantile
    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.answering.chosen_cells import Condition
    from dphist_pipeline.domain import BinnedAxis


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
    quantile: Annotated[
        str,
        typer.Option(
            metavar="AXIS=Q,Q", help='Quantiles of a binned axis: "age=0.25,0.5"; their intervals hold together.'
        ),
    ] = "",
    mean: Annotated[str, typer.Option(metavar="AXIS", help="The mean of a binned axis over the rows.")] = "",
    total: Annotated[str, typer.Option("--sum", metavar="AXIS", help="The sum of a binned axis over the rows.")] = "",
    low: Annotated[str | None, typer.Option(metavar="END", help="No value lies below it; for means and sums.")] = None,
    high: Annotated[str | None, typer.Option(metavar="END", help="No value lies above it; for means and sums.")] = None,
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
    if quantile:
        rows = _quantiles(publication, quantile, box, as_json)
        _show_rows(rows, {**facts, "quantile": quantile}, as_json)
        return
    if mean or total:
        moment = (publication.mean if mean else publication.sum)(mean or total, low, high, box)
        asked = {"mean": mean} if mean else {"sum": total}
        _show_rows([_moment_row(publication, mean or total, moment, as_json)], {**facts, **asked}, as_json)
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


def _as_json(found: Answer | Quantile) -> dict[str, Any]:
    """An answer as JSON values: null for nan and for an empty note."""
    facts = asdict(found) | {"note": found.note or None}
    del facts["capped"]  # of shares and changes
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts.items()}


def _quantiles(
    publication: Publication, asked: str, box: Mapping[str, Condition], as_json: bool
) -> list[dict[str, Any]]:
    from dphist_pipeline.answering.chosen_cells import QuestionRefused

    name, _, listed = asked.partition("=")
    try:
        shares = [float(share) for share in listed.split(",")]
    except ValueError:
        raise QuestionRefused(
            "", f"--quantile takes an axis and shares, as in age=0.25,0.5, not {asked!r:.60}"
        ) from None
    found = publication.quantiles(name.strip(), shares, box)
    rows = [{"q": share, **_as_json(one)} for share, one in zip(shares, found, strict=True)]
    return rows if as_json else [_in_axis_units(publication, name.strip(), row) for row in rows]


def _in_axis_units(publication: Publication, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row as texts, days on a calendar axis."""
    from dphist_pipeline.answering.chosen_cells import written_end

    axis = cast("BinnedAxis", next(axis for axis in publication.domain.axes if axis.name == name))
    in_units = ("estimate", "ci_lower", "ci_upper", "bin_lower", "bin_upper")
    known = {column: row[column] for column in in_units if row.get(column) is not None}
    return {**row, **{column: written_end(axis, float(f"{value:.6g}")) for column, value in known.items()}}


def _moment_row(publication: Publication, name: str, found: Answer, as_json: bool) -> dict[str, Any]:
    return _as_json(found) if as_json else _in_axis_units(publication, name, _as_json(found))


def _show_table(
    publication: Publication, by: list[str], box: Mapping[str, Condition], facts: dict[str, Any], as_json: bool
) -> None:
    """Prints the estimated counts by some axes."""
    _show_rows(publication.marginal(by, box).to_pylist(), {**facts, "by": by}, as_json)


def _show_rows(rows: list[dict[str, Any]], facts: dict[str, Any], as_json: bool) -> None:
    """Prints rows of answers; their notes stand below, by numbers."""
    if as_json:
        infinite = {math.inf: None, -math.inf: None}
        rows = [{name: infinite.get(value, value) for name, value in row.items()} for row in rows]
        print_json({**facts, "rows": rows})
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
    if isinstance(value, str) and column != "note":
        return value
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
