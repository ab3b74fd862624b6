"""The command `dphist check`: checks a spec without reading any record.

With `--explain` it prints the grid, the columns, the sensitivity and the account, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.base.about_publisher import faults
from dphist_pipeline.base.domain import AmountAxis, Axis, BinnedAxis, CalendarAxis
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES
from dphist_pipeline.base.zone_data import MEND, zone_difference
from dphist_pipeline.cli.options import JsonOption, SpecArgument, StoreOption
from dphist_pipeline.cli.terminal import (
    err,
    out,
    per_period,
    print_facts,
    print_json,
    print_lines,
    print_table,
    print_warning,
    promise,
)
from dphist_pipeline.errors import DphistError, first_of
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.mechanisms.tables import shares_for
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.quality_queries import half_widths
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.spec_check import ColumnComparison, SpecCheck, load_spec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import WhichSpec
from dphist_pipeline.spec.model import UNSEEN_CUT
from dphist_pipeline.spec.sources import AN_ISO_DATE, ISO
from dphist_pipeline.spec.unit_axes import in_words
from dphist_pipeline.workbench.planning.amount_forecast import amount_in_words, amount_of
from dphist_pipeline.workbench.planning.expected_quality import (
    quality_left_out,
    rows_for_quality,
    say_quality,
    small_share,
)
from dphist_pipeline.workbench.planning.expected_reliability import middle_table, rows_for_reliability, say_rows
from dphist_pipeline.workbench.planning.family_forecast import advice_on_known, errors_of_tables

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
    and compares none. The exit code is 1, too, where a file of the source is
    missing, empty or damaged. Run it after every change of a spec;
    `rehearse` then shows what the release will look like.
    """
    try:
        checked = load_spec(spec, store)
    except WhichSpec as several:
        if several.wanted:
            raise
        _print_several(spec, several.names, as_json)
        return
    opened = _opened_once(store)
    beside = SpecCheck(checked, opened)
    beside.refuse_taken_view()
    if period is not None:
        checked.period_named(period)  # refused by name, before anything is opened
    compared = beside.columns(datetime.now(UTC), period)
    columns = f"not compared with the source: {compared.problem}" if compared.problem else "found in the source"
    from dphist_pipeline.workbench.planning.column_readings import column_readings, encoding_in_words, lines_in_words
    from dphist_pipeline.workbench.planning.unit_names import doubt_of_axes, unit_doubt

    beside.refuse_undeclared_dates(compared.types)
    types = {**checked.declared_types, **compared.types}
    encoding, lines = encoding_in_words(checked), lines_in_words(checked)
    readings = column_readings(checked, types)
    doubts = [
        unit_doubt(
            checked.privacy_unit.columns, [*types, *(column for axis in checked.axes for column in axis.columns)]
        ),
        doubt_of_axes(checked),
        _zone_doubt(checked.time_zone),
        _doubt_of_persons(checked),
        advice_on_known(checked),
    ]
    individual, lacking = individual_account(checked, opened), list[str]()
    if checked.figures:
        from dphist_pipeline.releasing.declared_figures import refuse_untold_figures

        lacking = refuse_untold_figures(checked)
    warnings = [
        *filter(None, [*doubts, _change_remark(beside)]),
        *faults(Store.folder(store) / "public"),
        *individual[1:],
    ]
    warnings += lacking
    if explain:
        explanation = explain_spec(checked, opened)
        if as_json:
            print_json(explanation)
        else:
            print_explanation(checked, explanation)
            for text in warnings:
                print_warning(text)
        _refuse_unreadable(compared)
        return

    bucket = beside.public_address
    facts = {
        "release": checked.release,
        "mechanism": checked.mechanism,
        "axes": {axis.name: axis.size for axis in checked.domain.axes},
        "cells": checked.cells,
        **tables_of(checked),
        **reliability_of(checked),
        **quality_of(checked),
        **({"figures": [figure.name for figure in checked.figures]} if checked.figures else {}),
        "privacy_unit": checked.privacy_unit,
        "neighbours": checked.neighbours,
        "sensitivity": checked.sensitivity,
        "epsilon": str(checked.epsilon),
        "account": checked.account,
        **({"individual": individual[0]} if individual else {}),
        "period": checked.period,
        "digest": checked.digest,
        "source_columns": columns,
        **({"encoding_read": encoding, "lines_read": lines} if encoding else {}),
        **({"columns_read": [{**vars(reading)} for reading in readings]} if readings else {}),
        **declared_of(checked),
        **({"warnings": warnings} if warnings else {}),
        **({"copied_to": bucket} if bucket else {}),
        **({"remarks": remarks} if (remarks := remarks_of(checked, opened)) else {}),
    }
    if as_json:
        print_json(facts)
        _refuse_unreadable(compared)
        return
    out.print(f"[green]✓[/] {escape(str(spec))} is a valid spec")
    for text in warnings:
        print_warning(text)
    shape = " × ".join(f"{axis.name} ({axis.size})" for axis in checked.domain.axes)
    size = {"cells": f"{checked.domain.cells:,} = {shape}"} if checked.family is None else tables_in_words(checked)
    print_facts(
        {
            "release": checked.release,
            **size,
            "protects": promise(checked),
            "mechanism": f"{checked.mechanism}, epsilon {as_text(checked.epsilon)} per {per_period(checked)}",
            **reliability_in_words(checked),
            **amount_in_words(checked),
            **quality_in_words(checked),
            **declared_in_words(checked),
            **({"figures": ", ".join(figure.in_words for figure in checked.figures)} if checked.figures else {}),
            "account": ": ".join([checked.account, *individual[:1]]),
            "columns": columns,
            **({"copied to": bucket} if bucket else {}),
        }
    )
    print_lines(
        [
            *(["How columns are read, by their types:"] if readings else []),
            *(f"  {sentence}" for sentence in [encoding, lines, *(reading.says for reading in readings)] if sentence),
        ]
    )
    print_lines(remarks)
    _refuse_unreadable(compared)


def _opened_once(store: Path | None) -> Store | Path | None:
    """The store, whose ledger is then opened once; its name where it cannot be opened, which whoever needs it says."""
    with suppress(DphistError):
        return Store.open_named(store)
    return store


def _refuse_unreadable(compared: ColumnComparison) -> None:
    if compared.unreadable:
        err.print(f"[bold red]error:[/] the spec is valid, and its source cannot be read: {escape(compared.problem)}")
        raise typer.Exit(1)


def _zone_doubt(zone: str) -> str:
    """A warning where a year of the zone is not the same for schedules as for records; else empty."""
    difference = zone_difference(zone, datetime.now(UTC)) if zone != "UTC" else None
    return f"{difference.says[0].upper()}{difference.says[1:]}. {MEND}." if difference is not None else ""


def _doubt_of_persons(spec: ReleaseSpec) -> str:
    """A warning where a sum over cells counts a person twice; else empty."""
    if not spec.counts_person_cells:
        return ""
    return (
        f"`take: one_per_cell` counts each {spec.privacy_unit} once in up to {spec.max_rows_per_unit} cells, so a sum "
        "over cells counts it once in each of them: person-cells, not persons. With `max_rows_per_unit: 1` cells add "
        "up to persons."
    )


def _change_remark(beside: SpecCheck) -> str:
    """What `release` would say of a spec that an operator did not sign for as it is; empty without a store."""
    with suppress(DphistError):
        return beside.changed_since_signed()
    return ""


def _print_several(spec: Path, names: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json({"releases": list(names)})
        return
    out.print(
        f"[green]✓[/] {escape(str(spec))} makes {len(names):,} valid specs: {escape(first_of(names, MOST_NAMED))}"
    )
    print_lines([f"For one of them, and its source: dphist check '{spec}#{names[0]}'"])


MOST_EXAMPLES, MOST_TABLES, MOST_MEASURED = 3, 12, 6
NO_DRIFT = (
    "Nothing will tell how many units are left out, and how far counts drift within a year: the account was opened "
    "without `--left-out`."
)
# What a quality table counts, in the words of a terminal; undeclared values are known as well as unparsed ones.
QUALITY_NUMBERS = {
    "cut": "rows cut",
    "misfiled": "rows in files of another period",
    "rows": "rows outside declared cells",
    "unparsed": "values that failed",
    "units": "units by rows",
}


def explain_spec(spec: ReleaseSpec, store: Store | Path | None) -> dict[str, Any]:
    """The facts of a release before it is made, as JSON values."""
    return {
        "release": spec.release,
        "axes": [_axis(axis) for axis in spec.domain.axes],
        "cells": spec.cells,
        **tables_of(spec),
        **reliability_of(spec),
        **amount_of(spec),
        **quality_of(spec),
        **declared_of(spec),
        "columns": [*(column for axis in spec.axes for column in axis.columns), *KINDS_OF_VALUES],
        "privacy_unit": spec.privacy_unit,
        "sensitivity": spec.sensitivity,
        "sensitivity_because": _reason_of_sensitivity(spec),
        "mechanism": spec.mechanism,
        "settings": spec.as_json()["settings"],
        "epsilon": str(spec.epsilon),
        "period": spec.period,
        "digest": spec.digest,
        **({"remarks": remarks} if (remarks := remarks_of(spec, store)) else {}),
        "account": _account(spec, store),
    }


def tables_of(spec: ReleaseSpec) -> dict[str, Any]:
    """For a family its tables with their cells, and what is measured for them with which shares; as JSON values.

    With them the standard error of a cell of each table, in rows, and the mean of these; every table counts alike.
    """
    if spec.family is None:
        return {}
    family, shares = spec.family, shares_for(spec.family)
    axes = [axis.name for axis in family.domain.axes]
    measured = [[axes[number] for number in sorted(marginal)] for marginal in shares.marginals]
    errors = errors_of_tables(spec)
    return {
        "tables": {name: family.grid(table).cells for name, table in zip(family.names, family.tables, strict=True)},
        "measured": [{"axes": of, "share": str(share)} for of, share in zip(measured, shares.parts, strict=True)],
        "error_of_a_cell": round(math.fsum(errors.values()) / len(errors), 3),
        "errors_of_cells": {name: round(error, 3) for name, error in errors.items()},
        "variance_over_lower_bound": None if shares.bound is None else round(shares.mean_variance / shares.bound, 3),
    }


def tables_in_words(spec: ReleaseSpec) -> dict[str, str]:
    """The tables of a family for a terminal."""
    tables = tables_of(spec)
    sizes = first_of([f"{name} ({cells:,})" for name, cells in tables["tables"].items()], MOST_TABLES)
    errors: Mapping[str, float] = tables["errors_of_cells"]
    worst = max(errors, key=errors.__getitem__)
    return {
        "tables": f"{len(tables['tables']):,} with {spec.cells:,} cells: {sizes}",
        "measured": _measured_marginals(tables["measured"]),
        "error": f"standard error of a cell: in the worst table, {worst}, {errors[worst]:,.1f} rows, "
        f"in the mean of all tables {tables['error_of_a_cell']:,.1f}",
    }


def reliability_of(spec: ReleaseSpec) -> dict[str, Any]:
    """From how many rows on cells are not poor, as JSON values; of one grid under plain noise."""
    if spec.family is not None:
        errors = errors_of_tables(spec)
        noisy = any(errors.values())  # known tables are never poor
        sizes = {
            name: spec.family.grid(table).cells
            for name, table in zip(spec.family.names, spec.family.tables, strict=True)
            if errors[name] or not noisy
        }
        return {"reliability": rows_for_reliability(sizes, errors)}
    scale, draws = spec.sensitivity / spec.mechanism_epsilon, 1 if spec.domain.amount is None else 2
    error = math.sqrt(draws * noise_law(scale, spec.parts).variance)
    return {"reliability": rows_for_reliability({spec.release: spec.domain.of_rows.cells}, {spec.release: error})}


def reliability_in_words(spec: ReleaseSpec) -> dict[str, str]:
    """When the average cell is poor, for a terminal."""
    plain = "" if spec.family is not None or spec.mechanism == "geometric" else " (by plain noise)"
    return {"reliability": say_rows(reliability_of(spec)["reliability"], per_period(spec)) + plain}


def _measured_marginals(marginals: Sequence[Mapping[str, Any]]) -> str:
    """How many marginals are measured; few of them with their shares of epsilon, the largest first."""
    if len(marginals) > MOST_MEASURED:
        return f"{len(marginals):,} marginals"
    ordered = sorted(marginals, key=lambda one: -Fraction(one["share"]))
    shares = [
        f"{' × '.join(one['axes']) or 'the total'} with {100 * float(Fraction(one['share'])):.1f} %" for one in ordered
    ]
    return f"{', '.join(shares)} of the mechanism's epsilon"


def quality_of(spec: ReleaseSpec) -> dict[str, Any]:
    """How far off the numbers of the quality table will be, by what they count; as JSON values.

    Half widths of 95 % intervals, and the rows of a period below which the table tells nothing; none without one.
    """
    widths = half_widths(spec)
    return {"quality_half_widths": widths, "quality_tells_from": rows_for_quality(spec)} if widths else {}


def declared_of(spec: ReleaseSpec) -> dict[str, Any]:
    """What each derived column holds, and which rows count, as JSON values; none where nothing is declared."""
    derived = {one.column: one.says for one in spec.derive} | in_words([axis.as_json() for axis in spec.axes])
    kept = [one.says for one in spec.keep]
    take = {} if spec.take == "all" else {"take": spec.take}
    return {**({"derived": derived} if derived else {}), **({"kept": kept} if kept else {}), **take}


def declared_in_words(spec: ReleaseSpec) -> dict[str, str]:
    """The derived columns and the rows that count, for a terminal."""
    declared = declared_of(spec)
    words = {f"derived {name}": says for name, says in declared.get("derived", {}).items()}
    patterns = {pattern for one in spec.derive for pattern in one.dates.values()}
    if patterns & {None, ISO}:
        others = ", where no `format` says otherwise" if patterns - {None, ISO} else ""
        words["their dates"] = f"in text: ISO dates, as {AN_ISO_DATE}{others}"
    if spec.take in ("first", "last"):
        words["counts"] = f"the {spec.take} row of each {spec.privacy_unit} and period, in the order of time"
    if spec.take == "one_per_cell":
        words["counts"] = f"each {spec.privacy_unit} once in a cell, however many rows it has there"
    return words | ({"rows that count": "; ".join(declared["kept"])} if "kept" in declared else {})


def remarks_of(spec: ReleaseSpec, store: Store | Path | None) -> list[str]:
    """What to know of a spec before it is released, its quality table included."""
    statement = AccountRunway.statement(spec, store)
    if not isinstance(statement, str) and statement.account.is_individual:  # it pays for no quality table
        return [remark for remark in spec.remarks if remark != UNSEEN_CUT]
    rows, per = middle_table(reliability_of(spec)["reliability"]), per_period(spec)
    return [*spec.remarks, *quality_left_out(spec, per), *small_share(spec, rows, per)]


def individual_account(spec: ReleaseSpec, store: Store | Path | None) -> list[str]:
    """What a release can count by its account, where each unit pays for its own rows, and then what to beware of."""
    statement = AccountRunway.statement(spec, store)
    if isinstance(statement, str) or not statement.account.is_individual:
        return []
    if statement.most_rows(spec.epsilon, spec.max_rows_per_unit) == 0:
        return ["a release would count nobody", f"Account '{spec.account}' cannot pay for one row at this price."]
    return [
        AccountRunway.by_statement(spec, statement, datetime.now(UTC)).says,
        "Units with many rows are left out in the course of a year and counted again from 1 January. Changes "
        "within a year mix the world with that; a revision counts fewer units than what it replaces; a period that is "
        "released late uses up the year of its release.",
        *([] if statement.account.left_out else [NO_DRIFT]),
    ]


def quality_in_words(spec: ReleaseSpec) -> dict[str, str]:
    """The quality table, if there is one, for a terminal: what it costs, and how far off its numbers will be."""
    if spec.quality is None:
        return {}
    widths = half_widths(spec)
    widths_in_words = [
        f"{called} ± {widths[statistic]:,}" for statistic, called in QUALITY_NUMBERS.items() if statistic in widths
    ]
    tells = say_quality(spec, per_period(spec))
    return {"quality": f"{spec.quality.share} of epsilon; {tells}. 95 % intervals: {', '.join(widths_in_words)}"}


def print_explanation(spec: ReleaseSpec, facts: dict[str, Any]) -> None:
    """Prints a table of the axes, and what a release costs and publishes."""
    rows = [
        (str(axis["name"]), str(axis["column"]), f"{axis['cells']:,}", _bins_and_levels(axis)) for axis in facts["axes"]
    ]
    print_table(["axis", "column", "cells", "declared"], rows)
    account, each = facts["account"], per_period(spec)
    lasting = account["lasts"] if account["known"] else account["because"]
    out.print()
    print_facts(
        {
            "cells": f"{facts['cells']:,}, every one of them published for each {each}",
            **({} if spec.family is None else tables_in_words(spec)),
            **declared_in_words(spec),
            "columns": ", ".join(facts["columns"]),
            "sensitivity": f"{facts['sensitivity']}: {facts['sensitivity_because']}",
            "mechanism": ", ".join(
                [facts["mechanism"], *(f"{name} {value}" for name, value in facts["settings"].items())]
            ),
            "epsilon": f"{as_text(spec.epsilon)} for each {each}",
            **reliability_in_words(spec),
            **amount_in_words(spec),
            **quality_in_words(spec),
            "account": f"{account['name']}: {lasting}",
            "digest": facts["digest"],
        }
    )
    print_lines(facts.get("remarks", ()))


def _bins_and_levels(axis: dict[str, Any]) -> str:
    levels = ", ".join(f"{name} ({groups:,})" for name, groups in axis.get("levels", {}).items())
    return f"{axis['bins']}; levels {levels}" if levels else str(axis["bins"])


def _axis(axis: Axis) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": axis.name, "column": axis.column, "cells": axis.size, "bins": _bins(axis)}
    if not isinstance(axis, BinnedAxis) and axis.levels:
        facts["levels"] = {name: len(set(groups)) for name, groups in axis.levels.items()}
    return facts


def _bins(axis: Axis) -> str:
    """The cells of an axis in words, with the first and the last bin or category."""
    if isinstance(axis, CalendarAxis):
        days = axis.first_days
        phrases = [f"from {days[0]} up to {days[-1]}"]
    elif isinstance(axis, BinnedAxis):
        ends = ("[", ")") if axis.closed == "left" else ("(", "]")
        pairs = list(zip(axis.edges, axis.edges[1:], strict=False))
        spelled = [ends[0] + ", ".join(map(axis.written, pair)) + ends[1] for pair in (pairs[0], pairs[-1])]
        phrases = [" … ".join(dict.fromkeys(spelled))]
        phrases += ["everything below"] * axis.below + ["everything above"] * axis.above
    elif isinstance(axis, AmountAxis):
        phrases = [f"an amount from {axis.written(axis.low)} to {axis.written(axis.high)}; what lies beyond is cut"]
    else:
        examples = ", ".join(axis.values[:MOST_EXAMPLES])
        phrases = [examples if len(axis.values) <= MOST_EXAMPLES else f"{examples}, … {axis.values[-1]}"]
    return "; ".join([*phrases, *(["other: null, unreadable and undeclared values"] if axis.other else [])])


def _reason_of_sensitivity(spec: ReleaseSpec) -> str:
    unit = "each row is a different unit" if spec.privacy_unit == "row" else f"one {spec.privacy_unit}"
    rows = f"{unit}: {'' if spec.max_rows_per_unit == 1 else 'at most '}{spec.bound_in_words}"
    per = "" if spec.period == "none" else f" a {spec.period}"
    if spec.neighbours == "add_remove":
        return f"{rows}{per} come or go together (add_remove)"
    return f"{rows}{per} leave their cells and as many others take their place (substitute)"


def _account(spec: ReleaseSpec, store: Store | Path | None) -> dict[str, Any]:
    """The rest of the spec's account, or why the spec cannot use it. Charges nothing."""
    statement = AccountRunway.statement(spec, store)
    if isinstance(statement, str):
        return {"name": spec.account, "known": False, "because": statement}
    if statement.account.is_individual:
        says = AccountRunway.by_statement(spec, statement, datetime.now(UTC)).says
        facts = {
            "accounting": "individual",
            "left_in_words": f"{as_text(statement.total)} a year for the rows of a unit",
        }
        return {"name": spec.account, "known": True, "total": str(statement.total), **facts, "lasts": says}
    return {
        "name": spec.account,
        "known": True,
        "total": str(statement.total),
        "left": str(statement.left),
        "left_in_words": statement.rest,
        "releases_left": int(statement.left / spec.epsilon),
        "lasts": AccountRunway.by_statement(spec, statement, datetime.now(UTC)).says,
    }
