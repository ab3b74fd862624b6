"""The command `dphist forecast`: expected errors, and the remaining releases of the account, from a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Annotated

import typer

from dphist_pipeline.cli.options import (
    DecimalsOption,
    JsonOption,
    MechanismsOption,
    ServesOption,
    SpecArgument,
    StoreOption,
)
from dphist_pipeline.cli.prepare.compare import EPSILON
from dphist_pipeline.cli.terminal import print_json, print_lines, print_tables, progress_bar
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.spec.fields import parse_epsilon
from dphist_pipeline.workbench.planning.serving import Serves, Serving, mechanism_for

MOST_RECORDS = 10**12
MOST_REPEATS = 1000


def forecast(
    spec: SpecArgument,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(EPSILON, metavar="NUMBERS", help="One or several, as in 1 0.1 1/3. Default: the spec's."),
    ] = None,
    mechanism: MechanismsOption = None,
    stand_in: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Public counts of this grid, as `dphist compare` takes them, or the name of a published release. "
            "Default: the latest publication of this release or of a related one, else invented shapes of --records.",
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Questions to recommend a mechanism for, as in `dphist compare`: `prefixes`, `windows:7`. Repeat it.",
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(metavar="RECORDS", help="Also find the smallest epsilon at which a cell's error is at most this."),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_RECORDS,
            help="Records that a period will hold: an order of magnitude, from public knowledge. Needed where errors "
            "follow from the counts and nothing stands in for them.",
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_REPEATS, help="Simulated releases of each table. Default: 1; up to 5 of a stand-in."
        ),
    ] = None,
    units_by_rows: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Public counts of units, to compare bounds: place 0 is how many hold 1 row, place 1 how many hold "
            "2. Default: a quality table.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=RECORDS", help="For `tables:`: the wanted error of a cell of one table. Repeat it."
        ),
    ] = None,
    serves: ServesOption = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show every mechanism, not the spec's and the best three alone; other epsilons, bounds and periods.",
        ),
    ] = False,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecasts errors, and how long the account lasts, before records are read.

    Errors are root mean squared errors, in records. They are exact if
    they follow from the noise law, else simulated on a stand-in or on
    invented shapes. Where a published quality table, or a file, tells
    how many rows units hold, bounds are compared: bias against noise.
    """
    checked = load_spec(spec, store)
    if target_error is not None and not 0 < target_error < float("inf"):
        raise typer.BadParameter("--target-error takes a number of records above 0")
    epsilons = [parse_epsilon(text) for text in epsilon or []]
    serving = _serving(checked, serves, epsilons, records) if serves is not None else None
    if serving is not None and not as_json:
        is_own = (serving.mechanism, dict(serving.settings)) == (checked.mechanism, dict(checked.settings))
        own = "which is the spec's" if is_own else f"the spec has `{checked.mechanism}`"
        print_lines([f"To serve {serves}: `{serving.written}` ({own}). {serving.because}.", ""])
    if checked.family is not None:
        _print_family(checked, epsilons, _targets(target or []), target_error, records, as_json, decimals)
        return
    if target:
        raise typer.BadParameter("--target names tables, and this spec has no `tables:`; use --target-error")
    if checked.domain.amount is not None:
        _print_amount(checked, epsilons, as_json)
        return
    from dphist_pipeline.workbench.planning.forecast import prepare

    study = prepare(
        *(checked, epsilons, mechanism or [], stand_in, target_error, records, repeat, store, units_by_rows),
        workloads=workload or [],
        whole=every,
    )
    with progress_bar(study.steps, as_json, lines=True) as step:
        result = study.run(step)
    if as_json:
        print_json(result.facts() | ({"serves": asdict(serving)} if serving else {}))
        return
    print_lines([*result.opening(), *result.decision()])
    print_tables(result.tables(decimals))
    print_lines(["", *result.notes()])


def _print_amount(spec: ReleaseSpec, epsilons: Sequence[Fraction], as_json: bool) -> None:
    """The errors of rows, sum and mean of an amount, at the spec's epsilon or some others."""
    from dphist_pipeline.workbench.planning.amount_forecast import amount_in_words, amount_of

    tried = {epsilon: spec.model_copy(update={"epsilon": epsilon}) for epsilon in epsilons or [spec.epsilon]}
    if as_json:
        print_json([{"epsilon": str(epsilon), **amount_of(one)} for epsilon, one in tried.items()])
        return
    print_lines([f"epsilon {as_text(epsilon)}: {amount_in_words(one)['amount']}" for epsilon, one in tried.items()])


def _serving(spec: ReleaseSpec, serves: Serves, epsilons: list[Fraction], records: int | None) -> Serving:
    if (serves == "tables") != (spec.family is not None):
        have = "has `tables:`, which `tables` alone serves" if spec.family else "has no `tables:` to serve"
        raise typer.BadParameter(f"--serves {serves}: this spec {have}")
    epsilon = min(epsilons, default=spec.epsilon) / spec.sensitivity
    known = None if records is None else float(records * epsilon / spec.domain.cells)
    return mechanism_for(serves, len(spec.domain.shape), known)


def _targets(options: Sequence[str]) -> dict[str, float]:
    errors = {}
    for text in options:
        name, _, number = text.partition("=")
        try:
            errors[name.strip()] = float(number)
        except ValueError:
            errors[name.strip()] = 0.0
        if not 0 < errors[name.strip()] < float("inf"):
            raise typer.BadParameter("--target takes a table and a number of records above 0, as in age_sex=20")
    return errors


def _print_family(
    spec: ReleaseSpec,
    epsilons: Sequence[Fraction],
    targets: Mapping[str, float],
    every: float | None,
    records: int | None,
    as_json: bool,
    decimals: int | None,
) -> None:
    """The errors of a family of tables, which follow from the noise law alone."""
    from dphist_pipeline.workbench.planning.family_forecast import forecast_family

    result = forecast_family(spec, epsilons, targets, every, records)
    if as_json:
        print_json(result.facts())
        return
    print_tables([result.table(decimals)])
    print_lines(["", *result.notes()])
