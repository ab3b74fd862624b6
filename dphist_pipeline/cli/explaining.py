"""What a spec declares, told before any data is opened: the grid, the columns, the sensitivity, the account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from dphist_pipeline.cli.terminal import out, per_period, print_facts, print_table
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Statement, UnknownAccount, as_text
from dphist_pipeline.publishing.tables import OUR_COLUMNS
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.model import ReleaseSpec

MOST_EXAMPLES = 3


def explained(spec: ReleaseSpec, store: Path | None) -> dict[str, Any]:
    """Everything that can be said of a release before it is made, as JSON values; `store` as on the command line."""
    return {
        "release": spec.release,
        "axes": [_axis(axis) for axis in spec.domain.axes],
        "cells": spec.domain.cells,
        "columns": [*(column for axis in spec.axes for column in axis.columns), *OUR_COLUMNS],
        "privacy_unit": spec.privacy_unit,
        "sensitivity": spec.sensitivity,
        "sensitivity_because": _because(spec),
        "mechanism": spec.mechanism,
        "settings": spec.normalised()["settings"],
        "epsilon": str(spec.epsilon),
        "period": spec.period,
        "digest": spec.digest,
        **({"remarks": spec.remarks} if spec.remarks else {}),
        "account": _account(spec, store),
    }


def print_explained(spec: ReleaseSpec, facts: dict[str, Any]) -> None:
    """The same for people: a table of the axes, then what a release costs and publishes."""
    rows: list[tuple[str, ...]] = [
        (str(axis["name"]), str(axis["column"]), f"{axis['cells']:,}", _in_full(axis)) for axis in facts["axes"]
    ]
    print_table(["axis", "column", "cells", "declared"], rows)
    account, each = facts["account"], per_period(spec)
    left = (
        f"{account['left_in_words']} left: {account['releases_left']:,} more"
        if account["known"]
        else account["because"]
    )
    out.print()
    print_facts(
        {
            "cells": f"{facts['cells']:,}, every one of them published for each {each}",
            "columns": ", ".join(facts["columns"]),
            "sensitivity": f"{facts['sensitivity']}: {facts['sensitivity_because']}",
            "mechanism": ", ".join(
                [facts["mechanism"], *(f"{name} {value}" for name, value in facts["settings"].items())]
            ),
            "epsilon": f"{as_text(spec.epsilon)} for each {each}",
            "account": f"{account['name']}: {left}",
            "digest": facts["digest"],
        }
    )
    for remark in spec.remarks:
        out.print(escape(remark))


def _in_full(axis: dict[str, Any]) -> str:
    levels = ", ".join(f"{name} ({groups:,})" for name, groups in axis.get("levels", {}).items())
    return f"{axis['bins']}; levels {levels}" if levels else str(axis["bins"])


def _axis(axis: Axis) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": axis.name, "column": axis.column, "cells": axis.size, "bins": _bins(axis)}
    if not isinstance(axis, BinnedAxis) and axis.levels:
        facts["levels"] = {name: len(set(groups)) for name, groups in axis.levels.items()}
    return facts


def _bins(axis: Axis) -> str:
    """The cells of an axis in words, the first and the last of them spelled out."""
    if isinstance(axis, CalendarAxis):
        days = axis.first_days
        named = [f"from {days[0]} up to {days[-1]}"]
    elif isinstance(axis, BinnedAxis):
        ends = ("[", ")") if axis.closed == "left" else ("(", "]")
        pairs = list(zip(axis.edges, axis.edges[1:], strict=False))
        spelled = [f"{ends[0]}{low:g}, {high:g}{ends[1]}" for low, high in (pairs[0], pairs[-1])]
        named = [" … ".join(dict.fromkeys(spelled))]
        named += ["everything below"] * axis.below + ["everything above"] * axis.above
    else:
        shown = ", ".join(axis.values[:MOST_EXAMPLES])
        named = [shown if len(axis.values) <= MOST_EXAMPLES else f"{shown}, … {axis.values[-1]}"]
    return "; ".join([*named, *(["other: null, unreadable and undeclared values"] if axis.other else [])])


def _because(spec: ReleaseSpec) -> str:
    """How the sensitivity comes about."""
    unit = "each row is another unit" if spec.privacy_unit == "row" else f"one {spec.privacy_unit}"
    rows = f"{unit}: 1 row" if spec.max_rows_per_unit == 1 else f"{unit}: at most {spec.max_rows_per_unit} rows"
    per = "" if spec.period == "none" else f" a {spec.period}"
    if spec.neighbours == "add_remove":
        return f"{rows}{per} come or go together (add_remove)"
    return f"{rows}{per} leave their cells and as many others take their place (substitute)"


def _account(spec: ReleaseSpec, store: Path | None) -> dict[str, Any]:
    """What the account holds, where there is a store that has it; asking charges nothing."""
    try:
        statement: Statement = Store.open(store_folder(store)).ledger().statement(spec.account)
    except DphistError as error:
        told = error.on_terms(spec.privacy_unit, spec.neighbours) if isinstance(error, UnknownAccount) else error
        return {"name": spec.account, "known": False, "because": str(told)}
    protected = (statement.account.privacy_unit, statement.account.neighbours)
    if protected != (spec.privacy_unit, spec.neighbours):
        because = f"protects {protected[0]} ({protected[1]}), so a release by this spec would be refused"
        return {"name": spec.account, "known": False, "because": because}
    releases = int(statement.left / spec.epsilon)
    return {
        "name": spec.account,
        "known": True,
        "total": str(statement.total),
        "left": str(statement.left),
        "left_in_words": f"{as_text(statement.left)} of {as_text(statement.total)}"
        + (" this year" if statement.account.renews else ""),
        "releases_left": releases,
    }
