"""Dagster: a component that turns one release spec into assets, a check, a job and a schedule.

    records → cube → sanitized → published         all in the group of the release
    └ confidential ┘ └───── public ──────┘

The steps are the same functions that `dphist release` runs. Confidential steps give Dagster nothing that depends on
records: no counts, no samples, no engine's message. Running a partition again replays what was published; what was
spent is the ledger's to say, not Dagster's.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, create_model

from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations.dagster_views import columns_of, published_metadata, rounded_epsilon
from dphist_pipeline.integrations.dagster_views import withheld as _withheld
from dphist_pipeline.releasing import handover, stages
from dphist_pipeline.releasing.allowing import declared_code_lists
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.loading import project_folder, spec_from_attributes
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import MONTHS
from dphist_pipeline.spec.templates import templates_around

WITHHELD = (
    "Confidential: row counts, samples, statistics and engine messages are withheld, because they depend on records "
    "that nothing has been paid for yet."
)
FIRST_PERIOD = "2020-01-01"
STEPS = ("records", "cube", "sanitized", "published")
MONTHS_BETWEEN = {"month": 1, "quarter": 3, "year": 12}

_REQUIRED = [name for name, field in ReleaseSpec.model_fields.items() if field.is_required()]


def _strict(schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = False
    schema["required"] = [name for name in _REQUIRED if name != "neighbours"]
    schema["anyOf"] = [{"required": ["neighbours"]}, {"required": ["neighbors"]}]


def attributes_model(
    component: str, descriptions: Mapping[str, str], strict: Callable[[dict[str, Any]], None]
) -> type[BaseModel]:
    """What a component takes in a `defs.yaml`.

    Every value is taken as it stands in the file: templates are resolved by the spec's own rules, which keep "1" text.
    Only the schema is strict, for editors and `dg check yaml`: when it is loaded, one message names every mistake.

    Args:
        component: its name.
        descriptions: of its fields.
        strict: makes the schema so.
    """
    fields: dict[str, Any] = {name: (Any, Field(None, description=text)) for name, text in descriptions.items()}
    config = ConfigDict(extra="allow", json_schema_extra=strict)
    made: type[BaseModel] = create_model(f"{component}Attributes", __config__=config, **fields)
    return made


def described_fields(spec: type[BaseModel]) -> dict[str, str]:
    """Every field of a spec, and where it is explained."""
    return {name: f"See the spec reference: {name}" for name in spec.model_fields}


def around_attributes(context: dg.ComponentLoadContext) -> list[tuple[str, str]]:
    """What is wrong with the component's document in its `defs.yaml`, around the attributes.

    Dagster would resolve `{{ env.X }}` in `post_processing`, and make tags and metadata of it, which are published.
    What is looked at is the document as Dagster read it, before it resolves anything; a component made in Python has
    none.
    """
    document = getattr(context.component_decl, "component_file_model", None)
    return templates_around(document.model_dump()) if isinstance(document, BaseModel) else []


_Attributes = attributes_model(
    "HistogramRelease", described_fields(ReleaseSpec) | {"neighbors": "Another spelling of neighbours"}, _strict
)


class HistogramRelease(dg.Component):
    """One differentially private release: records → cube → sanitized → published, with a job and a schedule.

    Subclass it and override `get_asset_spec` to change how its assets look.
    """

    def __init__(self, spec: ReleaseSpec) -> None:
        self.spec = spec

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes that a `defs.yaml` may hold; they are checked by `load`."""
        return _Attributes

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> "HistogramRelease":
        """Checks the whole spec; a mistake stops the code location with one message for all of them."""
        given = attributes.model_dump(exclude_unset=True) if attributes else {}
        return cls(
            spec_from_attributes(
                given,
                project_folder(Path(context.path) / "defs.yaml"),
                around_attributes(context),
                declared_code_lists(),
            )
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, the check that gates publishing, one job and one schedule."""
        return release_definitions(self.spec, self.get_asset_spec)

    def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        """A hook: the asset as it will be defined."""
        return spec


class PartitionMissing(DphistError):
    """A release with periods was run without saying which."""

    def __init__(self, release: str) -> None:
        self.release = release
        super().__init__(f"release '{release}' has periods: choose one, as a partition; nothing was read or spent")


def release_definitions(spec: ReleaseSpec, change: Any = lambda asset: asset) -> dg.Definitions:
    """The same without a component: a plain factory.

    Args:
        spec: checked; see `load_spec`.
        change: is given every AssetSpec and returns the one to use.
    """
    specs = {name: change(asset) for name, asset in _asset_specs(spec).items()}
    partitions = partitions_of(spec)
    assets = [
        _confidential(spec, specs, partitions),
        _sanitized(spec, specs, partitions),
        _published(spec, specs, partitions),
    ]
    job = dg.define_asset_job(
        name=f"{spec.release}_job",
        selection=dg.AssetSelection.assets(*(asset.key for name, asset in specs.items() if name in _steps(spec))),
        description=f"Releases {spec.release}: charged once, whatever happens.",
        # A component cannot set a project's executor; in one process a release takes a second instead of half a minute.
        executor_def=dg.in_process_executor,
    )
    schedules = [_schedule(spec, job)] if spec.schedule else []
    return dg.Definitions(assets=assets, jobs=[job], schedules=schedules)


def _steps(spec: ReleaseSpec) -> tuple[str, ...]:
    """What the job runs: with `publish: manual`, all but the last step, which waits for `dphist publish`."""
    return STEPS if spec.publish == "automatic" else STEPS[:-1]


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


def _asset_specs(spec: ReleaseSpec) -> dict[str, dg.AssetSpec]:
    epsilon = rounded_epsilon(spec.epsilon)
    shared: dict[str, Any] = {
        "group_name": spec.release,
        "owners": list(spec.owners),
        "code_version": spec.digest,
        "partitions_def": partitions_of(spec),
    }

    def asset(name: str, zone: str, kinds: set[str], text: str, deps: list[str], **more: Any) -> dg.AssetSpec:
        tags = {"dp/zone": zone} | ({"dp/epsilon": epsilon} if zone == "public" else {})
        keys = [dg.AssetKey([spec.release, dep]) for dep in deps]
        key = dg.AssetKey([spec.release, name])
        return dg.AssetSpec(key, deps=keys, kinds=kinds, tags=tags, description=text, **shared, **more)

    title = spec.title or spec.release
    schema = dg.TableSchema(columns=columns_of(spec.domain))
    return {
        "records": asset(
            "records", "confidential", {"duckdb"}, f"Rows of one period in declared cells. {WITHHELD}", []
        ),
        "cube": asset(
            "cube",
            "confidential",
            {"polars"},
            f"Bounded counts of all {spec.domain.cells:,} declared cells. {WITHHELD}",
            ["records"],
        ),
        "sanitized": asset(
            "sanitized",
            "public",
            {"python"},
            f"What the doors answered, for epsilon {spec.epsilon} of account '{spec.account}', by {spec.mechanism}. "
            "Drawn once and kept in the journal.",
            ["cube"],
        ),
        "published": asset(
            "published",
            "public",
            {"parquet"},
            f"{title}: histogram, groups and audit, and the catalogue for SQL.",
            ["sanitized"],
            metadata={"dagster/column_schema": schema, "dagster/table_name": spec.release},
        ),
    }


def _confidential(spec: ReleaseSpec, specs: Mapping[str, dg.AssetSpec], partitions: Any) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=f"{spec.release}_count",
        specs=[specs["records"], specs["cube"]],
        can_subset=False,
        partitions_def=partitions,
    )
    def count(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        def work() -> str:
            attempt = _attempt(spec, context)
            handover.count_records(attempt, context.run.run_id)
            return attempt.key.period

        version = dg.DataVersion(f"{spec.digest[:16]}-{_withheld('counting records', work)}")
        for name in ("records", "cube"):
            yield dg.MaterializeResult(asset_key=specs[name].key, data_version=version)

    return count


def _sanitized(spec: ReleaseSpec, specs: Mapping[str, dg.AssetSpec], partitions: Any) -> dg.AssetsDefinition:
    gate = dg.AssetCheckSpec(
        "releasable",
        asset=specs["sanitized"].key,
        blocking=True,
        description="Every declared cell has an estimate, the ledger holds the charge, and the digest matches.",
    )

    @dg.multi_asset(
        name=f"{spec.release}_sanitize", specs=[specs["sanitized"]], check_specs=[gate], partitions_def=partitions
    )
    def sanitize(context: dg.AssetExecutionContext) -> Iterator[Any]:
        def work() -> tuple[str, str | None, dict[str, bool]]:
            digest = handover.sanitize_cube(_attempt(spec, context), context.run.run_id)
            attempt = _attempt(spec, context)
            charged = attempt.charge.hash if attempt.charge else ""
            return charged, handover.what_it_waits_for(attempt), handover.releasable(attempt, digest)

        # No digest of values: they may wait for a person, or be rejected, and few of them could be found from it.
        charged, waiting, found = _withheld("sanitizing", work)
        if waiting is not None:
            context.log.info(waiting)
        yield dg.MaterializeResult(asset_key=specs["sanitized"].key, data_version=dg.DataVersion(charged[:32]))
        yield dg.AssetCheckResult(
            passed=all(found.values()), asset_key=specs["sanitized"].key, check_name=gate.name, metadata=dict(found)
        )

    return sanitize


def _published(spec: ReleaseSpec, specs: Mapping[str, dg.AssetSpec], partitions: Any) -> dg.AssetsDefinition:
    @dg.multi_asset(name=f"{spec.release}_publish", specs=[specs["published"]], partitions_def=partitions)
    def publish(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        made = _withheld("publishing", lambda: handover.publish_answers(_attempt(spec, context)))
        return dg.MaterializeResult(
            asset_key=specs["published"].key,
            data_version=dg.DataVersion(made.audit["values_digest"][:32]),
            metadata=published_metadata(made),
        )

    return publish


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
        # Else records would be counted, and a later step, which Dagster itself stops, would leave their cube lying.
        raise PartitionMissing(spec.release)
    period = context.partition_key if context.has_partition_key else None
    return stages.begin(spec, Store.open(store_folder(None)), period, datetime.now(UTC))
