"""Dagster: a component that turns one release spec into assets, a check, a job and a schedule.

    records → cube → sanitized → published         all in the group of the release
    └ confidential ┘ └───── public ──────┘

The steps are the same functions that `dphist release` runs. Confidential steps give Dagster nothing that depends on
records: no counts, no samples, no engine's message. Running a partition again replays what was published. The ledger,
not Dagster, says what was spent.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations import dagster_base as base
from dphist_pipeline.releasing import handover, stages
from dphist_pipeline.releasing.allowing import declared_code_lists
from dphist_pipeline.spec.loading import spec_from_attributes
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import MONTHS

WITHHELD = (
    "Confidential: row counts, samples, statistics and engine messages are withheld, because they depend on records "
    "that nothing has been paid for yet."
)
HELD = "values from records"
FIRST_PERIOD = "2020-01-01"
MONTHS_BETWEEN = {"month": 1, "quarter": 3, "year": 12}

# Two may be missing in a file: `neighbors` is another spelling, and a bound has no use where every row is a unit.
_MAY_BE_MISSING = ("neighbours", "max_rows_per_unit")
_REQUIRED = [
    name for name, field in ReleaseSpec.model_fields.items() if field.is_required() and name not in _MAY_BE_MISSING
]


class HistogramRelease(base.SpecComponent):
    """One differentially private release: records → cube → sanitized → published, with a job and a schedule.

    Subclass it and override `get_asset_spec` to change how its assets look.
    """

    attributes = base.attributes_model(
        "HistogramRelease",
        ReleaseSpec,
        also=["neighbors"],
        required=_REQUIRED,
        anyOf=[{"required": ["neighbours"]}, {"required": ["neighbors"]}],
    )

    @classmethod
    def checked(cls, attributes: Mapping[str, Any], folder: Path, problems: base.Problems) -> ReleaseSpec:
        """The release spec; its code lists may lie where an operator allowed it."""
        return spec_from_attributes(attributes, folder, problems, declared_code_lists())

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, the check that gates publishing, one job and one schedule."""
        return release_definitions(self.spec, self.get_asset_spec)


class PartitionMissing(DphistError):
    """A release with periods was run without saying which."""

    def __init__(self, release: str) -> None:
        self.release = release
        super().__init__(f"release '{release}' has periods: choose one, as a partition; nothing was read or spent")


def release_definitions(
    spec: ReleaseSpec, change: Callable[[dg.AssetSpec], dg.AssetSpec] = lambda asset: asset
) -> dg.Definitions:
    """The assets, check, job and schedule of a release, without a component.

    Args:
        spec: checked; see `load_spec`.
        change: is given every AssetSpec and returns the one to use.
    """
    group = base.Group(spec.release, spec, change, partitions_of(spec))
    private, public = (
        {"dp/zone": "confidential"},
        {"dp/zone": "public", "dp/epsilon": base.rounded_epsilon(spec.epsilon)},
    )
    records = group.asset("records", "duckdb", f"Rows of one period in declared cells. {WITHHELD}", None, private)
    cube_text = f"Bounded counts of all {spec.domain.cells:,} declared cells. {WITHHELD}"
    cube = group.asset("cube", "polars", cube_text, "records", private)
    sanitized_text = (
        f"What the doors answered, for epsilon {spec.epsilon} of account '{spec.account}', by {spec.mechanism}. "
        "Drawn once and kept in the journal."
    )
    sanitized = group.asset("sanitized", "python", sanitized_text, "cube", public)
    published_text = f"{spec.title or spec.release}: histogram, groups and audit, and the catalogue for SQL."
    published = group.table("published", spec.domain, published_text, "sanitized", public, spec.release)
    # With `publish: manual` the last step waits for `dphist publish`.
    steps = [records, cube, sanitized] + [published] * (spec.publish == "automatic")
    job = group.job(steps, f"Releases {spec.release}: charged once, whatever happens.")
    return dg.Definitions(
        assets=[
            _count_step(spec, records, cube),
            _sanitize_step(spec, sanitized),
            base.publish_step(
                f"{spec.release}_publish",
                published,
                HELD,
                lambda context: handover.publish_answers(_attempt(spec, context)),
            ),
        ],
        jobs=[job],
        schedules=[_schedule(spec, job)] if spec.schedule else [],
    )


def partitions_of(spec: ReleaseSpec) -> dg.TimeWindowPartitionsDefinition | None:
    """The periods as Dagster partitions, keyed by their first day; None for `period: none`."""
    if spec.period == "none":
        return None
    start = spec.first_period or FIRST_PERIOD
    return dg.TimeWindowPartitionsDefinition(
        start=start, fmt="%Y-%m-%d", cron_schedule=_cron(spec), timezone=str(spec.time_zone)
    )


def _cron(spec: ReleaseSpec) -> str:
    """When periods start, at local midnight."""
    if spec.period == "week":
        return f"0 0 * * {0 if spec.week_starts == 'sunday' else 1}"
    first = MONTHS.index(spec.quarter_starts)
    months = sorted((first + passed) % 12 + 1 for passed in range(0, 12, MONTHS_BETWEEN[spec.period]))
    return f"0 0 1 {'*' if len(months) == 12 else ','.join(map(str, months))} *"


def _count_step(spec: ReleaseSpec, records: dg.AssetSpec, cube: dg.AssetSpec) -> dg.AssetsDefinition:
    def work(context: dg.AssetExecutionContext) -> base.Done:
        attempt = _attempt(spec, context)
        handover.count_records(attempt, context.run.run_id)
        return base.Done(f"{spec.digest[:16]}-{attempt.key.period}")

    return base.step(f"{spec.release}_count", [records, cube], "counting records", HELD, work)


def _sanitize_step(spec: ReleaseSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    def work(context: dg.AssetExecutionContext) -> base.Done:
        digest = handover.sanitize_cube(_attempt(spec, context), context.run.run_id)
        attempt = _attempt(spec, context)
        waiting = handover.what_it_waits_for(attempt)
        if waiting is not None:
            context.log.info(waiting)
        # No digest of the values: they may wait for a person, or be rejected, and few values could be found from it.
        charged = attempt.charge.hash if attempt.charge else ""
        return base.Done(charged, found=handover.releasable(attempt, digest))

    text = "Every declared cell has an estimate, the ledger holds the charge, and the digest matches."
    return base.step(f"{spec.release}_sanitize", [asset], "sanitizing", HELD, work, ("releasable", text))


def _schedule(spec: ReleaseSpec, job: Any) -> dg.ScheduleDefinition:
    def latest(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if spec.period == "none":
            return dg.RunRequest()
        key = spec.latest_period(context.scheduled_execution_time).key
        if key < (spec.first_period or FIRST_PERIOD):
            return dg.SkipReason("the first period is not over yet, or too recently")
        return dg.RunRequest(partition_key=key)

    return dg.ScheduleDefinition(
        name=f"{spec.release}_schedule",
        job=job,
        cron_schedule=str(spec.schedule),
        execution_timezone=str(spec.time_zone),
        default_status=dg.DefaultScheduleStatus.STOPPED,
        execution_fn=latest,
        description="Releases the latest finished period; one that was released already is replayed for nothing.",
    )


def _attempt(spec: ReleaseSpec, context: dg.AssetExecutionContext) -> stages.Attempt:
    if spec.period != "none" and not context.has_partition_key:
        # Else records would be counted, and a later step, which Dagster itself stops, would leave their cube behind.
        raise PartitionMissing(spec.release)
    period = context.partition_key if context.has_partition_key else None
    return stages.begin(spec, base.open_store(), period, datetime.now(UTC))
