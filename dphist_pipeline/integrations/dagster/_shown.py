"""What Dagster's page shows of a publication: numbers over time, links, a picture, and the query to copy.

Everything comes from published files, the ledger and the spec. Dagster keeps it, unencrypted, in its run database.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np

from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES, VALUE_COLUMNS
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.figure_files import for_people, lines_of, used_columns
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.declared_columns import source_columns

PUBLIC_URL = "DPHIST_PUBLIC_URL"
# The page unfolds Markdown below 1,000 characters; a picture of so few bars stays below.
MOST_BARS, MOST_LINES = 40, 100
WIDTH, HEIGHT = 240, 48
DECIMALS = 3  # of numbers in plots; what is constant is text, and makes no plot

MEANINGS = {column.name: column.meaning for column in VALUE_COLUMNS}


def table_schema(domain: Domain, **meanings: str) -> dg.TableSchema:
    """The published histogram's columns: name, type, meaning; some have `meanings` of their own."""
    column_meanings = {**MEANINGS, **meanings}
    columns = [
        dg.TableColumn(name, str(kind), column_meanings.get(name) or _meaning(axis, name))
        for axis in domain.axes
        for name, kind in ReaderAxis(axis).published.items()
    ]
    values = [dg.TableColumn(name, kind, column_meanings[name]) for name, kind in KINDS_OF_VALUES.items()]
    return dg.TableSchema(columns=columns + values)


def records_table(rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Rows of public values, with the same columns, as a table in Dagster's page."""
    return dg.MetadataValue.table(records=[dg.TableRecord(row) for row in rows])


def asset_description(spec: ReleaseSpec) -> str:
    """The description of the published asset: title, question, price, and SQL to copy; of a family for every table."""
    axes, amount = ", ".join(axis.name for axis in spec.domain.of_rows.axes), spec.domain.amount
    also = "" if amount is None else f" What are the sum and the mean of {spec.domain.axes[amount].name}?"
    grid, name = spec.first_grid, spec.release if spec.family is None else f"{spec.release}_{spec.family.names[0]}"
    when = "" if spec.period == "none" else f", for each {spec.period}"
    who = "each row" if spec.privacy_unit == "row" else f"each {spec.privacy_unit}"
    first = grid.of_rows.axes[0]
    if isinstance(first, CalendarAxis):
        box = ""
    elif isinstance(first, BinnedAxis):
        box = f"{{'{first.name}': [{first.edges[0]:g}, {first.edges[1]:g}]}}"
    elif isinstance(first, CategoricalAxis):
        box = f"{{'{first.name}': '{first.values[0]}'}}".replace("''", "'")
    each = [spec.release] if spec.family is None else [f"{spec.release}_{table}" for table in spec.family.names]
    tables = "\n".join(f"SELECT * FROM r.{one};" for one in each)
    many = f"so does each missing one: 10 of them cost {10 * spec.epsilon} of account '{spec.account}'."
    price = "" if spec.period == "none" else f" Each {spec.period} costs that, and {many}"
    call = f"r.dph_box('r.{name}', {box})" if box else f"r.dph_total('r.{name}')"
    return (
        f"**{spec.title or spec.release}**\n\n"
        f"How many rows are there by {axes}{when}?{also} Noisy counts of {spec.cells:,} cells, by {spec.mechanism}; "
        f"epsilon {spec.epsilon} protects {who}.{price} What the command line publishes is not told to Dagster: "
        "materialize it here, at no cost, and it shows.\n\n"
        "In DuckDB, with the store's `public/catalog.duckdb`:\n\n"
        "```sql\nATTACH 'catalog.duckdb' AS r (READ_ONLY);\n"
        f"SELECT * FROM {call};\n{tables}\n```"
    )


def public_address(folder: Path) -> str | None:
    """Where a publication's folder can be opened in a browser, by DPHIST_PUBLIC_URL; None where that is not set."""
    base = os.environ.get(PUBLIC_URL, "").rstrip("/")
    return f"{base}/{'/'.join(folder.parts[-3:])}" if base.startswith(("http://", "https://")) else None


def numbers_of(release: Release, total: Answer) -> dict[str, Any]:
    """The numbers of a publication that a plot over time shows; of a family, widths are those of its first table."""
    first = release.first_table
    table = first.arrow
    lower, upper = (table.column(name).to_numpy() for name in ("ci_lower", "ci_upper"))
    halves = (upper - lower)[np.isfinite(upper - lower)] / 2
    if "amount" in first.audit and (rows := published_estimate(first.path, first.audit).of_rows.unbiased) is not None:
        halves = rows.half_widths()
    numbers = {
        "total": HeadlineFigure.of(vars(total)).value,
        "total_ci_lower": total.ci_lower,
        "total_ci_upper": total.ci_upper,
        "total_noise_error": total.noise_error,
        "cell_half_interval": float(np.median(halves)) if halves.size else math.nan,
        "bytes": sum(file.stat().st_size for file in release.path.rglob("*") if file.is_file()),
    }
    return {name: round(number, DECIMALS) for name, number in numbers.items() if math.isfinite(number)}


def published_metadata(
    release: Release, total: Answer, statement: Statement | None = None, deps: Sequence[str] = ()
) -> dict[str, Any]:
    """What the published asset shows: numbers, the audit as a table, links, the card in short, pictures.

    `statement`: of the account that paid, if one did. `deps`: keys of the assets that the records come from.
    """
    audit, address = release.audit, public_address(release.path)
    charges = [{name: row[name] for name in ("step", "epsilon", "noise_scale")} for row in audit.get("charges", ())]
    one_table = release.first_table is release
    numbers = numbers_of(release, total)
    if statement is not None and not statement.account.is_individual:
        spent, rest = (round(float(amount), DECIMALS) for amount in (statement.spent, statement.left))
        numbers |= {"account_spent": spent, "account_left": rest}
    link = dg.MetadataValue.url if address else dg.MetadataValue.text
    # Below the store: a path from the root would make the table wider than the page, which then cuts off `essence`.
    place = address or "/".join(("public", *release.path.parts[-3:]))
    rows = " ".join(PublishedQuality(release.path, audit).sentences())
    lineage = _lineage(audit, deps)
    return {
        "essence": dg.MetadataValue.md(_essence(release, numbers, total.basis == "known")),
        **({"overview": dg.MetadataValue.md(small)} if (small := small_picture(release)) else {}),
        **numbers,
        "epsilon": dg.MetadataValue.text(audit["epsilon"]),
        "cells": dg.MetadataValue.text(str(audit["cells"])),
        "revision": dg.MetadataValue.text(str(audit["revision"])),
        "replayed": dg.MetadataValue.bool(release.replayed),
        "protects": dg.MetadataValue.text(protection_in_words(audit)),
        **({"reports": dg.MetadataValue.int(audit["reports"]["accepted"])} if "reports" in audit else {}),
        **({"figures": records_table(figures)} if (figures := _figures(release)) else {}),
        **({"audit": records_table(charges)} if "charges" in audit else {}),
        **({"rows": dg.MetadataValue.text(rows)} if rows else {}),
        # Its plots show changes from period to period.
        **({"chance": dg.MetadataValue.text(notes.CHANCE_LEFT_OUT)} if audit["period"] != "all" else {}),
        "files": link(place),
        **({"card": link(f"{place}/card.html")} if (release.path / "card.html").exists() else {}),
        **({} if one_table else {"tables": dg.MetadataValue.text(", ".join(release.tables))}),
        **({"dagster/row_count": int(audit["cells"])} if one_table else {}),
        **({"dagster/uri": f"{address}/histogram.parquet"} if one_table and address else {}),
        **({"dagster/column_lineage": lineage} if lineage and one_table else {}),
    }


def _figures(release: Release) -> list[dict[str, Any]]:
    """The first lines of the declared figures of a publication; Dagster's tables know no null."""
    folder, audit = PublishedFolder(release.path).release, release.audit
    lines = [for_people(line) for line in lines_of(folder, audit["period"], audit["revision"])][:MOST_LINES]
    names = [name for name in used_columns(lines) if name not in ("release", "period", "revision", "source_digest")]
    return [{name: "" if line[name] is None else line[name] for name in names} for line in lines]


def drawn_metadata(run: Run) -> dict[str, Any]:
    """What the sanitized asset shows: which measurements were made for which epsilon, and what paid; no answer."""
    spec, charge = run.spec, run.charge
    return {
        "measurements": records_table(run.measurements()),
        "mechanism": dg.MetadataValue.text(spec.mechanism),
        "epsilon": dg.MetadataValue.text(str(spec.epsilon)),
        "account": dg.MetadataValue.text(spec.account),
        **({"ledger_entry": dg.MetadataValue.text(f"{charge.number}, {charge.hash[:16]}")} if charge else {}),
        "answers": dg.MetadataValue.text(
            "published before" if run.publication is not None else "drawn, and kept for good"
        ),
    }


def small_picture(release: Release) -> str:
    """The counts along the first axis (of a family, of its first table) as a picture of few signs, shown unfolded."""
    release = release.first_table
    domain = domain_of(release.audit["axes"])
    counts = release.arrow.column("estimate").to_numpy().reshape(domain.shape)
    line = counts.reshape(counts.shape[0], -1).sum(axis=1)
    heights = np.array([part.sum() for part in np.array_split(line, min(len(line), MOST_BARS))]).clip(0)
    if not heights.max() > 0:
        return ""
    tops = HEIGHT - np.round(heights / heights.max() * (HEIGHT - 2)).astype(int)
    ends = np.round(np.linspace(0, WIDTH, len(tops) + 1)).astype(int)[1:]
    path = "".join(f"V{top}H{end}" for top, end in zip(tops, ends, strict=True))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<path fill="#4477aa" d="M0 {HEIGHT}{path}V{HEIGHT}z"/></svg>'
    )
    return f"![by {domain.axes[0].name}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def protection_in_words(audit: Mapping[str, Any]) -> str:
    """In few words, since Dagster cuts off what is longer than its column."""
    unit, most, neighbours = audit["privacy_unit"], audit["max_rows_per_unit"], audit["neighbours"]
    if unit == "row":
        return f"each row ({neighbours})"
    noun = "value" if audit.get("model") == "local" else "row"
    return f"each {unit} with up to {most} {noun}{'' if most == 1 else 's'} ({neighbours})"


def _essence(release: Release, numbers: Mapping[str, Any], is_known: bool) -> str:
    """The card in three sentences.

    `is_known`: whether the total is a public figure.
    """
    audit = release.audit
    if is_known:
        interval = " (known)"
    elif {"total_ci_lower", "total_ci_upper"} <= numbers.keys():
        interval = f" (95 %: {numbers['total_ci_lower']:,.0f} to {numbers['total_ci_upper']:,.0f})"
    else:
        interval = ""
    when = "" if audit["period"] == "all" else f", period {audit['period']}"
    rest = f"; the account has {numbers['account_left']:g} left" if "account_left" in numbers else ""
    return (
        f"**{numbers['total']:,.0f} rows**{interval} in {audit['cells']:,} cells{when}, revision {audit['revision']}. "
        f"Epsilon {audit['epsilon']} protects {protection_in_words(audit)}{rest}."
    )


def _lineage(audit: Mapping[str, Any], deps: Sequence[str]) -> dg.TableColumnLineage | None:
    """Which columns of the one upstream asset the published axes come from; unknown where there are several."""
    if len(deps) != 1:
        return None
    (dep,) = deps
    key = dg.AssetKey(dep.split("/"))
    return dg.TableColumnLineage(
        {
            name: [dg.TableColumnDep(key, column) for column in source_columns(audit.get("derive", ()), axis.column)]
            for axis in domain_of(audit["axes"]).axes
            for name in ReaderAxis(axis).published
        }
    )


def _meaning(axis: Axis, column: str) -> str:
    if isinstance(axis, BinnedAxis):
        end = "lower" if column == f"{axis.name}_lower" else "upper"
        included = (axis.closed == "left") == (end == "lower")
        return f"{end} end of the bin, {'included' if included else 'not included'}; null where there is none"
    meanings = {axis.name: "category", f"{axis.name}_label": "what the category is called"}
    meaning = meanings.get(column, "what the category lies in")
    return f"{meaning}; null for all others" if axis.other else meaning
