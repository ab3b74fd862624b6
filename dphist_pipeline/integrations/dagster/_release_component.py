"""Dagster: a component that turns one release spec into assets, checks, a job and a schedule.

    deps → records → cube → sanitized → published         all but `deps`, or the source, in the group of the release
           └ confidential ┘ └───── public ──────┘

One step makes all four, by the functions that `dphist release` runs: a step of its own for each would start a process
for each wherever a project's executor does that, and a run that was killed could not go on from its middle, because the
cube is gone by then. Confidential assets give Dagster nothing that depends on records: no counts, no samples, no
engine's message. Running a partition again replays what was published. The ledger, not Dagster, says what was spent.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from dphist_pipeline.answering.catalogue_process import catalogue_process
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.integrations.dagster import _components as components
from dphist_pipeline.integrations.dagster._checks import (
    Totals,
    check_spec,
    check_specs,
    checks_table,
    copied_of,
    findings,
)
from dphist_pipeline.integrations.dagster._outcomes import GATE, AssetOutcome, Parts, report_outcomes
from dphist_pipeline.integrations.dagster._partitions import condition_of, partitions_of, schedule_of
from dphist_pipeline.integrations.dagster._scaffolding import ReleaseScaffolder
from dphist_pipeline.integrations.dagster._scheduled_checks import due_check, latest_check
from dphist_pipeline.integrations.dagster._shown import asset_description, drawn_metadata, published_metadata
from dphist_pipeline.integrations.dagster._table_assets import table_assets
from dphist_pipeline.integrations.dagster._upstream_assets import (
    RANGE_END,
    RANGE_START,
    refuse_failed_checks,
    refuse_missing,
    sources_of,
)
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.public_folder import NotCopied
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import Run, marking_uncharged
from dphist_pipeline.releasing.spec_check import SpecCheck, declared_code_lists
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import one_line
from dphist_pipeline.spec.sources import Decided

WITHHELD = (
    "Confidential: row counts, samples, statistics and engine messages are withheld, because they depend on records "
    "that nothing has been paid for yet."
)
HELD = "values from records"
FEW_PERIODS = 3
JOB_TEXT = (
    "Releases {}. Each {} costs epsilon {} of account '{}', once, whatever happens; so does each missing one that a "
    "backfill or a schedule asks for. Running a released one again costs nothing."
)
GATE_TEXT = "Every declared cell has an estimate, the ledger holds the charge, and the digest matches."


@dg.scaffold_with(ReleaseScaffolder)
class HistogramRelease(components.SpecComponent):
    """Differentially private releases: records → cube → sanitized → published, with a job and a schedule.

    Subclass it and override `get_asset_spec` to change how its assets look, or `store_of` for code lists of another
    store than the project's own.
    """

    attributes = components.attributes_model(
        "HistogramRelease", ReleaseSpec, ReleaseSpec.other_names, ReleaseSpec.editor_schema
    )

    @classmethod
    def store_of(cls, resource: str) -> Store:
        """A hook for subclasses: the store of a `store_resource`, whose operator says which code lists are public.

        Code lists are read while definitions are loaded, when there are no resources yet.
        """
        raise ValueError(
            f"is read while definitions are loaded, when there is no resource `{one_line(resource)}` yet: write "
            "`values`, or say in a subclass of HistogramRelease, by `store_of`, whose operator decides"
        )

    @classmethod
    def checked(
        cls,
        attributes: Mapping[str, Any],
        folder: Path,
        problems: Sequence[tuple[str, str]],
        variables: Mapping[str, object],
    ) -> Sequence[ReleaseSpec]:
        """The release specs; their code lists may lie where the operator of their store allowed it."""

        def code_lists_of(fields: Mapping[str, object]) -> Decided:
            resource = fields.get("store_resource")
            return declared_code_lists(None if resource is None else partial(cls.store_of, str(resource)))

        return ReleaseSpec.all_of_fields(attributes, folder, problems, code_lists_of, variables)

    def definitions_of(self, spec: ReleaseSpec) -> dg.Definitions:
        """Assets, the check that gates publishing, one job and one schedule."""
        return release_definitions(spec, self.get_asset_spec)


def release_definitions(
    spec: ReleaseSpec, change: Callable[[dg.AssetSpec], dg.AssetSpec] = lambda asset: asset
) -> dg.Definitions:
    """The assets, checks, job and schedule of a release, without a component.

    Args:
        change: is given every AssetSpec and returns the one to use.
    """
    parts, storage = _parts(spec, change), base.Storage(spec.store_resource)
    group = base.Group(spec.release, spec, change, partitions_of(spec))
    # With `publish: manual` the last asset waits for `dphist publish`, and is made by a step of its own.
    by_hand = spec.publish == "manual"
    steps = [_step(spec, storage, parts, publishes=not by_hand)] + [_publishing(spec, storage, parts)] * by_hand
    assets = parts.drawn if by_hand else [*parts.drawn, *parts.public]
    checks = [latest_check(spec, storage, parts.published.key)]
    checks += [] if spec.period == "none" else [due_check(spec, storage, parts.published.key)]
    alone = [key for check in checks for key in check.check_keys]
    period = "release" if spec.period == "none" else spec.period
    text = JOB_TEXT.format(spec.release, period, spec.epsilon, spec.account)
    job = group.job(assets, text, without=alone)
    # A condition asks for periods itself; a schedule beside it would ask twice.
    scheduled = spec.schedule and not spec.automation
    schedules = [schedule_of(spec, job, storage)] if scheduled else []
    return dg.Definitions(assets=steps, jobs=[job], schedules=schedules, asset_checks=checks)


def _published_asset(spec: ReleaseSpec, group: base.Group, tags: Mapping[str, str]) -> dg.AssetSpec:
    """The asset of a publication; of a family, its tables have columns and addresses, and this one has none."""
    text = asset_description(spec)
    if spec.family is not None:
        return group.asset("published", "parquet", text, "sanitized", tags, skippable=True)
    return group.table("published", spec.first_grid, text, "sanitized", tags, spec.release, skippable=True)


def _parts(spec: ReleaseSpec, change: Callable[[dg.AssetSpec], dg.AssetSpec]) -> Parts:
    group, condition = base.Group(spec.release, spec, change, partitions_of(spec)), condition_of(spec)
    private = {"dp/zone": "confidential"}
    public = {"dp/zone": "public", "dp/epsilon": base.rounded_epsilon(spec.epsilon), **_mechanism_tags(spec)}
    sanitized = (
        f"What the measurements answered, for epsilon {spec.epsilon} of account '{spec.account}', by {spec.mechanism}. "
        "Drawn once and kept in the journal."
    )
    cells_text = f"all {spec.cells:,} declared" if spec.family is None else "the measured marginals, not of the grid's"
    texts = {
        "records": f"Rows of one period in declared cells. {WITHHELD}",
        "cube": f"Bounded counts of {cells_text} cells. {WITHHELD}",
    }
    sources = sources_of(spec, group.prefix)
    options: dict[str, Any] = {"automation_condition": condition, "skippable": True}
    return Parts(
        records=group.asset("records", "duckdb", texts["records"], None, private, deps=sources, **options),
        cube=group.asset("cube", "polars", texts["cube"], "records", private, skippable=True),
        sanitized=group.asset("sanitized", "python", sanitized, "cube", public, skippable=True),
        published=_published_asset(spec, group, public),
        tables=table_assets(spec, group, public),
    )


def _mechanism_tags(spec: ReleaseSpec) -> dict[str, str]:
    """The mechanism and its settings as tags to filter by, such as `dp/setting.structure_share: 1-2`.

    The value of a tag holds letters, digits, `_`, `.` and `-`; anything else in a setting becomes `-`.
    """
    written = {"dp/mechanism": spec.mechanism}
    for name, value in spec.registry.settings_of(spec.built_mechanism).items():
        if value is not None:
            text = (
                " ".join(f"{rule} {number}" for rule, number in value.items())
                if isinstance(value, dict)
                else str(value)
            )
            written[f"dp/setting.{name}"] = text
    return {name: re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63] for name, text in written.items()}


def _step(spec: ReleaseSpec, storage: base.Storage, parts: Parts, publishes: bool) -> dg.AssetsDefinition:
    """The step that makes everything, for one period or many."""
    assets = [*parts.drawn, *parts.public] if publishes else parts.drawn
    gate = check_spec(spec, GATE, parts.sanitized.key, GATE_TEXT, blocking=True)

    @dg.multi_asset(
        name=f"{spec.release}_release",
        specs=assets,
        check_specs=[gate, *(check_specs(spec, parts.published.key) if publishes else [])],
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=base.POOL,
        required_resource_keys=storage.keys,
    )
    def run(context: dg.AssetExecutionContext) -> Any:
        def release(key: str | None) -> AssetOutcome:
            return _release_period(spec, storage, context, key, publishes)

        yield from _outcomes_of_periods(spec, context, parts, release, publishes=publishes)

    return run


def _keys(spec: ReleaseSpec, context: dg.AssetExecutionContext) -> Sequence[str | None]:
    """The periods of a run; one that says none of a release that has them is refused."""
    if spec.period == "none":
        return [None]
    if not (context.has_partition_key or context.has_partition_key_range):
        base.never_run_again(context)
        raise dg.Failure(
            f"release '{spec.release}' has periods: choose one, as a partition; nothing was read or spent",
            allow_retries=False,
        )
    if context.has_partition_key:
        return [context.partition_key]
    tags = context.run.tags
    if tags.get(RANGE_START, "") > tags.get(RANGE_END, ""):
        base.never_run_again(context)
        raise dg.Failure(
            f"release '{spec.release}': the range of partitions begins with {tags[RANGE_START]} and ends before it, "
            f"with {tags[RANGE_END]}; swap them. Nothing was read or spent",
            allow_retries=False,
        )
    return list(context.partition_keys)


def _release_period(
    spec: ReleaseSpec,
    storage: base.Storage,
    context: dg.AssetExecutionContext,
    key: str | None,
    publishes: bool,
) -> AssetOutcome:
    """Draws, checks and publishes one period; what goes wrong is told in the outcome."""
    charged, conditions, measurements = "", None, None
    try:
        run = base.withheld("counting and sanitizing", lambda: _draw_period(spec, storage, context, key), HELD, context)
        charged, conditions, measurements = base.withheld("checking", lambda: _run_checks(context, run), HELD, context)
        if not all(conditions.values()):
            failed_conditions = ", ".join(name for name, holds in conditions.items() if not holds)
            problem = f"the check `{GATE}` failed: {failed_conditions}; nothing was published"
            return AssetOutcome(key, charged, conditions, measurements=measurements, problem=problem)
        if not publishes:
            return AssetOutcome(key, charged, conditions, measurements=measurements)
        publishing = lambda: _publish_period(run, key, charged, conditions)  # noqa: E731
        return replace(base.withheld("publishing", publishing, HELD, context), measurements=measurements)
    except dg.Failure as failure:
        return AssetOutcome(key, charged, conditions, measurements=measurements, problem=failure.description)


def _draw_period(spec: ReleaseSpec, storage: base.Storage, context: dg.AssetExecutionContext, key: str | None) -> Run:
    run = _begin_run(spec, storage, context, key)

    def refuse_charge() -> None:
        if changed := SpecCheck(spec, run.store).changed_since_signed():
            context.log.warning(changed)
        needed = spec.with_history(run.period)
        if "partitions" in spec.requires:
            refuse_missing(context, spec.release, spec.deps, needed)
        if "checks" in spec.requires:
            refuse_failed_checks(context, spec.release, spec.required_checks, needed)

    run.draw(refuse_charge)
    return run


def _run_checks(context: dg.AssetExecutionContext, run: Run) -> tuple[str, Mapping[str, bool], Mapping[str, Any]]:
    waiting = run.waits_for() if run.spec.publish == "manual" else None
    if waiting is not None:
        context.log.info(waiting)
    return run.charge.hash if run.charge else "", run.releasable(), drawn_metadata(run)


def _publish_period(
    run: Run, key: str | None, charged: str = "", conditions: Mapping[str, bool] | None = None
) -> AssetOutcome:
    publication = run.publish()
    try:
        base.with_retries(run.refresh_catalogue)
    except NotCopied as error:
        not_copied = error.told  # published all the same: the check `copied` says that the bucket lacks it
    else:
        not_copied = ""
    statement = Statement.of(run.ledger, run.spec.account)
    return AssetOutcome(key, charged, conditions, publication, statement, run.store, not_copied=not_copied)


def _outcomes_of_periods(
    spec: ReleaseSpec,
    context: dg.AssetExecutionContext,
    parts: Parts,
    work: Callable[[str | None], AssetOutcome],
    draws: bool = True,
    publishes: bool = True,
) -> Iterator[Any]:
    """Works on the periods of a step as `report_outcomes` does, with one process for their catalogue."""
    keys = _keys(spec, context)
    totals = Totals(many=len(keys) >= FEW_PERIODS)

    def work_with_numbers(key: str | None) -> AssetOutcome:
        return _with_numbers(spec, context, totals, work(key))

    with catalogue_process():
        yield from report_outcomes(spec, context, parts, keys, work_with_numbers, draws=draws, publishes=publishes)


def _with_numbers(
    spec: ReleaseSpec, context: dg.AssetExecutionContext, totals: Totals, outcome: AssetOutcome
) -> AssetOutcome:
    """The same outcome, with what Dagster shows of the publication, and what its checks found."""
    try:
        return base.withheld("answering", partial(_with_metadata, spec, outcome, totals), HELD, context)
    except dg.Failure as failure:
        return replace(outcome, problem=failure.description)


def _with_metadata(spec: ReleaseSpec, outcome: AssetOutcome, totals: Totals) -> AssetOutcome:
    publication, statement, store = outcome.publication, outcome.statement, outcome.store
    if publication is None or statement is None or store is None:
        return outcome
    checks = {"copied": copied_of(store, outcome.not_copied), **findings(spec, store, statement, publication, totals)}
    metadata = published_metadata(publication, totals.of(publication), statement, spec.deps)
    metadata["checks"] = checks_table(checks)
    return replace(outcome, metadata=metadata, checks=checks)


def _publish_approved(
    spec: ReleaseSpec, storage: base.Storage, context: dg.AssetExecutionContext, key: str | None
) -> AssetOutcome:
    try:
        publishing = lambda: _publish_period(_begin_run(spec, storage, context, key), key)  # noqa: E731
        return base.withheld("publishing", publishing, HELD, context)
    except dg.Failure as failure:
        return AssetOutcome(key, problem=failure.description)


def _begin_run(spec: ReleaseSpec, storage: base.Storage, context: dg.AssetExecutionContext, key: str | None) -> Run:
    with marking_uncharged():
        return Run.begin(spec, storage.open(context.resources), key, datetime.now(UTC))


def _publishing(spec: ReleaseSpec, storage: base.Storage, parts: Parts) -> dg.AssetsDefinition:
    """The step that publishes what a person approved."""

    @dg.multi_asset(
        name=f"{spec.release}_publish",
        specs=parts.public,
        check_specs=check_specs(spec, parts.published.key),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=base.POOL,
        required_resource_keys=storage.keys,
    )
    def run(context: dg.AssetExecutionContext) -> Any:
        def publish(key: str | None) -> AssetOutcome:
            return _publish_approved(spec, storage, context, key)

        yield from _outcomes_of_periods(spec, context, parts, publish, draws=False)

    return run
