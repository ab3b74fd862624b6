"""The command `dphist check`: checks a spec without reading any record."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.about_publisher import faults
from dphist_pipeline.cli.options import JsonOption, SpecArgument, StoreOption
from dphist_pipeline.cli.terminal import out, per_period, print_facts, print_json, print_lines, print_warning, promise
from dphist_pipeline.errors import DphistError, first_of
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.releasing.spec_check import SpecCheck, load_spec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import WhichSpec

MOST_NAMED = 10


def check(
    spec: SpecArgument,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the declared grid, the published columns and the rest of the account."),
    ] = False,
    period: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="Whose files are looked at: its first day. Default: the latest finished one."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Checks a spec without reading any record, and describes its release.

    Compares the columns that it names with those of its source, if the
    ledger allows that source: their names and types alone are read. Of a
    file with `for_each`, FILE#RELEASE is one release; FILE checks them all,
    and compares none. Run it after every change of a spec; `rehearse` then
    shows what the release will look like.
    """
    try:
        checked = load_spec(spec, store)
    except WhichSpec as several:
        if several.wanted:
            raise
        _print_several(spec, several.names, as_json)
        return
    beside = SpecCheck(checked, store)
    beside.refuse_taken_view()
    if period is not None:
        checked.period_named(period)  # refused by name, before anything is opened
    compared = beside.columns(datetime.now(UTC), period)
    columns = f"not compared with the source: {compared.problem}" if compared.problem else "found in the source"
    from dphist_pipeline.planning.column_readings import column_readings, encoding_in_words
    from dphist_pipeline.planning.unit_names import unit_doubt

    types = {**checked.declared_types, **compared.types}
    encoding = encoding_in_words(checked)
    readings, warning = column_readings(checked, types), checked.unsaid_dates(types)
    doubt = unit_doubt(
        checked.privacy_unit.columns, [*types, *(column for axis in checked.axes for column in axis.columns)]
    )
    warnings = [*filter(None, [warning, doubt, _changed(beside)]), *faults(Store.folder(store) / "public")]
    if explain:
        from dphist_pipeline.cli.prepare._explaining import explain_spec, print_explanation

        explanation = explain_spec(checked, store)
        if as_json:
            print_json(explanation)
        else:
            print_explanation(checked, explanation)
            for one in warnings:
                print_warning(one)
        return
    from dphist_pipeline.cli.prepare._explaining import (
        quality_in_words,
        quality_of,
        reliability_in_words,
        reliability_of,
        remarks_of,
        tables_in_words,
        tables_of,
    )

    bucket = beside.public_address
    facts = {
        "release": checked.release,
        "mechanism": checked.mechanism,
        "axes": {axis.name: axis.size for axis in checked.domain.axes},
        "cells": checked.cells,
        **tables_of(checked),
        **reliability_of(checked),
        **quality_of(checked),
        "privacy_unit": checked.privacy_unit,
        "neighbours": checked.neighbours,
        "sensitivity": checked.sensitivity,
        "epsilon": str(checked.epsilon),
        "account": checked.account,
        "period": checked.period,
        "digest": checked.digest,
        "source_columns": columns,
        **({"encoding_read": encoding} if encoding else {}),
        **({"columns_read": [{**vars(one)} for one in readings]} if readings else {}),
        **({"warnings": warnings} if warnings else {}),
        **({"copied_to": bucket} if bucket else {}),
        **({"remarks": remarks} if (remarks := remarks_of(checked)) else {}),
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"[green]✓[/] {escape(str(spec))} is a valid spec")
    for one in warnings:
        print_warning(one)
    shape = " × ".join(f"{axis.name} ({axis.size})" for axis in checked.domain.axes)
    made = {"cells": f"{checked.domain.cells:,} = {shape}"} if checked.family is None else tables_in_words(checked)
    print_facts(
        {
            "release": checked.release,
            **made,
            "protects": promise(checked),
            "mechanism": f"{checked.mechanism}, epsilon {as_text(checked.epsilon)} per {per_period(checked)}",
            **reliability_in_words(checked),
            **quality_in_words(checked),
            "account": checked.account,
            "columns": columns,
            **({"copied to": bucket} if bucket else {}),
        }
    )
    print_lines(
        [
            *(["How columns are read, by their types:"] if readings else []),
            *(f"  {one}" for one in [encoding, *(one.says for one in readings)] if one),
        ]
    )
    print_lines(remarks)


def _changed(beside: SpecCheck) -> str:
    """What `release` would say of a spec that an operator did not sign for as it is; empty without a store."""
    with suppress(DphistError):
        return beside.changed_since_signed()
    return ""


def _print_several(spec: Path, names: Sequence[str], as_json: bool) -> None:
    """What a file with `for_each` makes."""
    if as_json:
        print_json({"releases": list(names)})
        return
    out.print(
        f"[green]✓[/] {escape(str(spec))} makes {len(names):,} valid specs: {escape(first_of(names, MOST_NAMED))}"
    )
    print_lines([f"For one of them, and its source: dphist check '{spec}#{names[0]}'"])
