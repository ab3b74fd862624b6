"""Dagster: a component that turns a collection under local privacy into assets, a check and a job.

    queries → partition → reports → <collection>_<consumer>, one for each        all in the group of the collection

Nothing here is confidential: contributors perturb their values before they send anything, and every step reads only
what was sent. Still, no step says an id or the body of a report. Running a step again gives the same bytes; with more
reports, consumers' assets refuse, until `dphist local publish --revise --reason TEXT` has made new revisions.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel

from dphist_pipeline.integrations.dagster import around_attributes, attributes_model, described_fields
from dphist_pipeline.integrations.dagster_views import (
    LOCAL_MEANINGS,
    columns_of,
    published_metadata,
    rounded_epsilon,
    withheld,
)
from dphist_pipeline.local import handover
from dphist_pipeline.local.collection import CollectionSpec, collection_from_attributes
from dphist_pipeline.local.collection_consumers import Consumer
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.plan import Way, described
from dphist_pipeline.local.publication import Counted
from dphist_pipeline.local.reports import NAMED
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.loading import project_folder
from dphist_pipeline.spec.numbers import digits
from dphist_pipeline.spec.refusals import SpecError

STEPS = ("queries", "partition", "reports")
HELD = "parts of reports"
NO_REPORTS = (
    "attributes.reports",
    "is required in a Dagster project: Parquet files of this machine, such as reports/*.parquet. Without it, publish "
    "with `dphist local publish SPEC FILES`",
)
_REQUIRED = ["collection", "value", "start", "stop", "consumers", "protocol", "reports"]


def _strict(schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = False
    schema["required"] = _REQUIRED


_Attributes = attributes_model("LocalCollection", described_fields(CollectionSpec), _strict)


class LocalCollection(dg.Component):
    """One collection under local privacy: queries → partition → reports → a histogram for every consumer, with a job.

    Subclass it and override `get_asset_spec` to change how its assets look.
    """

    def __init__(self, spec: CollectionSpec) -> None:
        self.spec = spec

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes that a `defs.yaml` may hold; they are checked by `load`."""
        return _Attributes

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> "LocalCollection":
        """Checks the whole spec; a mistake stops the code location with one message for all of them."""
        given = attributes.model_dump(exclude_unset=True) if attributes else {}
        problems = around_attributes(context) + ([NO_REPORTS] if given.get("reports") is None else [])
        return cls(collection_from_attributes(given, project_folder(Path(context.path) / "defs.yaml"), problems))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, the check that gates publishing, and one job."""
        return collection_definitions(self.spec, self.get_asset_spec)

    def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        """A hook: the asset as it will be defined."""
        return spec


def collection_definitions(spec: CollectionSpec, change: Any = lambda asset: asset) -> dg.Definitions:
    """The same without a component: a plain factory.

    Args:
        spec: checked; see `load_collection`.
        change: is given every AssetSpec and returns the one to use.

    Raises:
        SpecError: the spec does not say where reports are.
    """
    if spec.reports is None:
        raise SpecError([NO_REPORTS], of_what="collection")
    specs = {name: change(asset) for name, asset in _asset_specs(spec).items()}
    assets = [
        _queries(spec, specs["queries"]),
        _partition(spec, specs["partition"]),
        _reports(spec, specs["reports"]),
        *(_published(spec, consumer, specs[spec.release_of(consumer)]) for consumer in spec.consumers),
    ]
    job = dg.define_asset_job(
        name=f"{spec.collection}_job",
        selection=dg.AssetSelection.assets(*(asset.key for asset in specs.values())),
        description=f"Publishes what the reports of {spec.collection} say, to every consumer.",
        # A component cannot set a project's executor; in one process this takes a second instead of half a minute.
        executor_def=dg.in_process_executor,
    )
    return dg.Definitions(assets=assets, jobs=[job])


def _asset_specs(spec: CollectionSpec) -> dict[str, dg.AssetSpec]:
    shared: dict[str, Any] = {
        "group_name": spec.collection,
        "owners": list(spec.owners),
        "code_version": spec.digest,
        "tags": {"dp/zone": "public", "dp/model": "local", "dp/epsilon": rounded_epsilon(spec.epsilon)},
    }

    def asset(name: str, kind: str, text: str, dep: str | None, **more: Any) -> dg.AssetSpec:
        deps = [dg.AssetKey([str(spec.collection), dep])] if dep else []
        key = dg.AssetKey([str(spec.collection), name])
        return dg.AssetSpec(key, deps=deps, kinds={kind}, description=text, **shared, **more)

    title = spec.title or spec.collection
    readers = f"{len(spec.consumers)} consumer{'s' if len(spec.consumers) > 1 else ''}"
    steps = {
        "queries": asset("queries", "yaml", f"{title}: the histograms that {readers} want.", None),
        "partition": asset(
            "partition",
            "json",
            f"What every contributor is asked, by {spec.protocol}, for epsilon {spec.epsilon}: a file to give to them. "
            "A round never asks anything else.",
            "queries",
        ),
        "reports": asset(
            "reports",
            "parquet",
            "What contributors sent, counted. Whatever is no report to this question is refused, and counted as such.",
            "partition",
        ),
    }
    meanings = LOCAL_MEANINGS | {f"{spec.value}_upper": "upper end of the bin; of the last one it is included"}
    return steps | {
        spec.release_of(consumer): asset(
            spec.release_of(consumer),
            "parquet",
            f"{title}, for {consumer.name}: histogram, audit and card, and the catalogue for SQL.",
            "reports",
            metadata={
                "dagster/column_schema": dg.TableSchema(columns=columns_of(spec.domain_of(consumer), meanings)),
                "dagster/table_name": spec.release_of(consumer),
            },
        )
        for consumer in spec.consumers
    }


def _queries(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    @dg.multi_asset(name=f"{spec.collection}_queries", specs=[asset])
    def queries() -> dg.MaterializeResult[Any]:
        wanted = described(spec, question_of(spec))["consumers"]
        return dg.MaterializeResult(
            asset_key=asset.key,
            data_version=dg.DataVersion(spec.digest[:32]),
            metadata={
                "consumers": _table(wanted),
                "value": f"{spec.value}, from {digits(spec.start)} up to and with {digits(spec.stop)}",
                "epsilon": str(spec.epsilon),
            },
        )

    return queries


def _partition(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    @dg.multi_asset(name=f"{spec.collection}_partition", specs=[asset])
    def partition() -> dg.MaterializeResult[Any]:
        store = _store(spec)
        question = withheld("asking", lambda: handover.ask(spec, store), HELD)
        way = Way(spec.protocol, question, ())
        parts = [
            {"part": number, "intervals": part.intervals, "encoding": part.encoding, "epsilon": str(part.epsilon)}
            for number, part in enumerate(question.parts)
        ]
        return dg.MaterializeResult(
            asset_key=asset.key,
            data_version=dg.DataVersion(question.digest[:32]),
            metadata={
                "question": dg.MetadataValue.path(str(handover.folder_of(spec, store) / handover.QUESTION)),
                "digest": question.digest,
                "epsilon": str(question.epsilon),
                "bits_per_contributor": way.bits,
                "bytes_per_contributor": way.bytes,
                "parts": _table(parts),
            },
        )

    return partition


def _reports(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    gate = dg.AssetCheckSpec(
        "publishable",
        asset=asset.key,
        blocking=True,
        description="Every interval of every consumer has an estimate, and the reports answer the question that was "
        "asked.",
    )

    @dg.multi_asset(name=f"{spec.collection}_reports", specs=[asset], check_specs=[gate])
    def reports() -> Iterator[Any]:
        def work() -> tuple[Counted, str, dict[str, bool]]:
            store = _store(spec)
            counted, digest = handover.count(spec, store)
            return counted, digest, handover.publishable(spec, store)

        counted, digest, found = withheld("counting reports", work, HELD)
        yield dg.MaterializeResult(
            asset_key=asset.key,
            data_version=dg.DataVersion(digest[:32]),
            metadata={
                "accepted": counted.tally.reports,
                "refused": sum(counted.refused.values()),
                "refusals": _table([{"why": why, "reports": number} for why, number in counted.refused.items()]),
                "question": counted.tally.question.digest[:NAMED],  # as reports name it
            },
        )
        yield dg.AssetCheckResult(
            passed=all(found.values()), asset_key=asset.key, check_name=gate.name, metadata=dict(found)
        )

    return reports


def _published(spec: CollectionSpec, consumer: Consumer, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    @dg.multi_asset(name=f"{spec.release_of(consumer)}_publish", specs=[asset])
    def publish() -> dg.MaterializeResult[Any]:
        made = withheld("publishing", lambda: handover.publish(spec, _store(spec), consumer.name), HELD)
        return dg.MaterializeResult(
            asset_key=asset.key,
            data_version=dg.DataVersion(made.audit["values_digest"][:32]),
            metadata=published_metadata(made),
        )

    return publish


def _store(spec: CollectionSpec) -> Store:
    return Store.open(store_folder(None))


def _table(rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(records=[dg.TableRecord(row) for row in rows])
