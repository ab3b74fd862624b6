"""Dagster: a component that turns a collection under local privacy into assets, a check and a job.

    queries → partition → reports → <collection>_<consumer>, one for each        all in the group of the collection

Nothing here is confidential: contributors perturb their values before they send anything, and every step reads only
what was sent. Still, no step shows an id or the body of a report. Running a step again gives the same bytes. With more
reports the consumers' assets refuse, until `dphist local publish --revise --reason TEXT` has made new revisions.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from dphist_pipeline.base.published_columns import VALUE_COLUMNS
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.integrations.dagster import _components as components
from dphist_pipeline.integrations.dagster._shown import records_table
from dphist_pipeline.local import rounds
from dphist_pipeline.local.costs import collection_facts
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import publish_collection
from dphist_pipeline.local.reports import NAMED
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.collection import CollectionSpec, Consumer
from dphist_pipeline.spec.fields import digits
from dphist_pipeline.spec.mistakes import SpecError

HELD = "parts of reports"
NO_REPORTS = (
    "attributes.reports",
    "is required in a Dagster project: Parquet files of this machine, such as reports/*.parquet. Without it, publish "
    "with `dphist local publish SPEC FILES`",
)
MEANINGS = {column.name: column.local_meaning for column in VALUE_COLUMNS if column.local_meaning}


class LocalCollection(components.SpecComponent):
    """One collection under local privacy: queries → partition → reports → a histogram for every consumer, with a job.

    Subclass it and override `get_asset_spec` to change how its assets look.
    """

    attributes = components.attributes_model(
        "LocalCollection",
        CollectionSpec,
        (),
        lambda: {"required": ["collection", "value", "start", "stop", "consumers", "protocol", "reports"]},
    )

    @classmethod
    def checked(
        cls,
        attributes: Mapping[str, Any],
        folder: Path,
        problems: Sequence[tuple[str, str]],
        variables: Mapping[str, object],
    ) -> Sequence[CollectionSpec]:
        """The spec of the collection, which must say where the reports are; variables are not resolved in it."""
        missing = [NO_REPORTS] if attributes.get("reports") is None else []
        return [CollectionSpec.of_fields(attributes, folder, [*problems, *missing])]

    def definitions_of(self, spec: CollectionSpec) -> dg.Definitions:
        """Assets, the check that gates publishing, and one job."""
        return collection_definitions(spec, self.get_asset_spec)


def collection_definitions(
    spec: CollectionSpec, change: Callable[[dg.AssetSpec], dg.AssetSpec] = lambda asset: asset
) -> dg.Definitions:
    """The assets, check and job of a collection, without a component.

    Args:
        change: is given every AssetSpec and returns the one to use.

    Raises:
        SpecError: the spec does not say where reports are.
    """
    if spec.reports is None:
        raise SpecError([NO_REPORTS], of_what="collection")
    group, title = base.Group(str(spec.collection), spec, change), spec.title or spec.collection
    tags = {"dp/zone": "public", "dp/model": "local", "dp/epsilon": base.rounded_epsilon(spec.epsilon)}
    readers = f"{len(spec.consumers)} consumer{'s' if len(spec.consumers) > 1 else ''}"
    queries = group.asset("queries", "yaml", f"{title}: the histograms that {readers} want.", None, tags)
    partition_text = (
        f"What every contributor is asked, by {spec.protocol}, for epsilon {spec.epsilon}: a file to give to them. "
        "A round never asks anything else."
    )
    partition = group.asset("partition", "json", partition_text, "queries", tags)
    reports_text = "What contributors sent, counted. Rows that are no report to this question are refused and counted."
    reports = group.asset("reports", "parquet", reports_text, "partition", tags)
    meanings = MEANINGS | {f"{spec.value}_upper": "upper end of the bin; of the last one it is included"}
    published = {
        consumer: group.table(
            spec.release_of(consumer),
            spec.domain_of(consumer),
            f"{title}, for {consumer.name}: histogram, audit and card, and the catalogue for SQL.",
            "reports",
            tags,
            spec.release_of(consumer),
            meanings,
        )
        for consumer in spec.consumers
    }
    steps = [_queries_step(spec, queries), _partition_step(spec, partition), _reports_step(spec, reports)]
    steps += [_publish_step(spec, consumer, asset) for consumer, asset in published.items()]
    text = f"Publishes what the reports of {spec.collection} say, to every consumer."
    job = group.job([queries, partition, reports, *published.values()], text)
    return dg.Definitions(assets=steps, jobs=[job])


def _queries_step(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    def work(context: dg.AssetExecutionContext) -> base.Done:
        metadata = {
            "consumers": records_table(collection_facts(spec, question_of(spec))["consumers"]),
            "value": f"{spec.value}, from {digits(spec.start)} up to and with {digits(spec.stop)}",
            "epsilon": str(spec.epsilon),
        }
        return base.Done(spec.digest, metadata)

    return base.step(f"{spec.collection}_queries", [asset], "describing the queries", HELD, work)


def _partition_step(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    def work(context: dg.AssetExecutionContext) -> base.Done:
        store = base.open_store()
        question = rounds.ask(spec, store)
        parts = [
            {"part": number, "intervals": part.intervals, "encoding": part.encoding, "epsilon": str(part.epsilon)}
            for number, part in enumerate(question.parts)
        ]
        metadata = {
            "question": dg.MetadataValue.path(str(rounds.file_of(spec, store, rounds.QUESTION))),
            "digest": question.digest,
            "epsilon": str(question.epsilon),
            "bits_per_contributor": question.contributor_bits,
            "bytes_per_contributor": question.contributor_bytes,
            "parts": records_table(parts),
        }
        return base.Done(question.digest, metadata)

    return base.step(f"{spec.collection}_partition", [asset], "asking", HELD, work)


def _reports_step(spec: CollectionSpec, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    def work(context: dg.AssetExecutionContext) -> base.Done:
        store = base.open_store()
        count, digest = rounds.count(spec, store)
        metadata = {
            "accepted": count.tally.reports,
            "refused": sum(count.refused.values()),
            "refusals": records_table({"why": reason, "reports": number} for reason, number in count.refused.items()),
            "question": count.tally.question.digest[:NAMED],  # as reports name it
        }
        return base.Done(digest, metadata, rounds.publishable(spec, store))

    text = "Every interval of every consumer has an estimate, and the reports answer the question that was asked."
    name = f"{spec.collection}_reports"
    return base.step(name, [asset], "counting reports", HELD, work, ("publishable", text))


def _publish_step(spec: CollectionSpec, consumer: Consumer, asset: dg.AssetSpec) -> dg.AssetsDefinition:
    def publish(context: dg.AssetExecutionContext) -> Release:
        store = base.open_store()
        (publication,) = publish_collection(spec, store, rounds.read_tally(spec, store), only=consumer.name)
        return publication

    return base.publish_step(f"{spec.release_of(consumer)}_publish", asset, HELD, publish)
