"""What a run did for each period, and how Dagster is told: an only period by outputs, each of several by events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import dagster as dg

from dphist_pipeline.errors import first_of
from dphist_pipeline.integrations.dagster._checks import AssetCheckOutcome
from dphist_pipeline.integrations.dagster._partitions import partitions_of
from dphist_pipeline.integrations.dagster._table_assets import shown_of_table, table_results
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

GATE = "releasable"
MOST_NAMED = 10
CODE_VERSION, DATA_VERSION = "dagster/code_version", "dagster/data_version"
INPUT_VERSION, INPUT_EVENT = "dagster/input_data_version", "dagster/input_event_pointer"
INITIAL = "INITIAL"  # Dagster's version of what was never materialized
NO_EVENT = "NULL"


@dataclass(frozen=True)
class Parts:
    """The assets of a release."""

    records: dg.AssetSpec
    cube: dg.AssetSpec
    sanitized: dg.AssetSpec
    published: dg.AssetSpec
    tables: tuple[dg.AssetSpec, ...] = ()

    @property
    def public(self) -> list[dg.AssetSpec]:
        """The assets that exist once a release is published: the tables of a family are among them."""
        return [self.published, *self.tables]

    @property
    def drawn(self) -> list[dg.AssetSpec]:
        """The assets that exist once every measurement has answered."""
        return [self.records, self.cube, self.sanitized]


@dataclass(frozen=True)
class AssetOutcome:
    """What a run did for one period; most is None or empty where it did not come so far.

    `version`: of what was drawn: the hash of the charge. No digest of the values: they may wait for a person, or be
    rejected, and few values could be found from it. `conditions`: by the check that stops publishing; `checks`: by
    those of the publication. `statement`: of the account, right after it. `metadata`, `measurements`: metadata of the
    publication and of what was drawn. `not_copied`: why the store's bucket lacks the publication. `problem`: why the
    run stopped, in our own words.
    """

    key: str | None
    version: str = ""
    conditions: Mapping[str, bool] | None = None
    publication: Release | None = None
    statement: Statement | None = None
    store: Store | None = None
    metadata: Mapping[str, Any] | None = None
    checks: Mapping[str, AssetCheckOutcome] = field(default_factory=dict)
    not_copied: str = ""
    measurements: Mapping[str, Any] | None = None
    problem: str | None = None


def report_outcomes(
    spec: ReleaseSpec,
    context: dg.AssetExecutionContext,
    parts: Parts,
    keys: Sequence[str | None],
    work: Callable[[str | None], AssetOutcome],
    draws: bool = True,
    publishes: bool = True,
) -> Iterator[Any]:
    """Works on one period after the other, and tells Dagster of each before the next one begins.

    A run some of whose periods stopped fails at its end, and says which and why.

    Args:
        draws: whether this step counts and draws; otherwise it publishes what another one drew.
        publishes: whether this step publishes, too; otherwise a person approves first.
    """
    # One output speaks for one period, and only for one that the set of partitions holds.
    apart = len(keys) > 1 or not _are_offered(spec, keys)
    several, outcomes = len(keys) > 1, []
    for key in keys:
        outcome = work(key)
        outcomes.append(outcome)
        if apart:
            yield from _events(spec, context, parts, outcome, several)
        else:
            # As outputs: steps that depend on them go on in the same run.
            yield from _outputs(
                spec, context, parts, [outcome], outcome.conditions is not None, outcome.publication is not None
            )
            for asset, name, [(_, finding)] in _check_results(parts, [outcome]):
                yield finding.result(asset, name)
    if several:
        yield from _summaries(parts, outcomes)
    stopped = [outcome for outcome in outcomes if outcome.problem is not None]
    if stopped:
        problems = [f"{outcome.key}: {outcome.problem}" if several else str(outcome.problem) for outcome in stopped]
        many = "" if not several else f"{len(stopped)} of {len(outcomes)} periods were not released\n"
        raise dg.Failure(many + "\n".join(problems), allow_retries=False)
    # Other steps of this run may wait for an output of this one.
    downstream = context.job_def.graph.dependency_structure.output_to_downstream_inputs_for_node
    if apart and _are_offered(spec, keys) and downstream(context.op_execution_context.op.name):
        yield from _outputs(spec, context, parts, outcomes, draws, publishes)


def _are_offered(spec: ReleaseSpec, keys: Sequence[str | None]) -> bool:
    """Whether Dagster's set of partitions holds the periods; of others it would forget which they are."""
    partitions = partitions_of(spec)
    return partitions is None or all(partitions.has_partition_key(str(key)) for key in keys)


def _outputs(
    spec: ReleaseSpec,
    context: dg.AssetExecutionContext,
    parts: Parts,
    outcomes: Sequence[AssetOutcome],
    drawn: bool,
    published: bool,
) -> Iterator[dg.MaterializeResult[Any]]:
    """One result an asset for all periods; each partition has metadata of its own."""
    if drawn:
        marks = [_mark(spec, outcome) for outcome in outcomes]
        for asset in (parts.records, parts.cube):
            yield dg.MaterializeResult(asset_key=asset.key, data_version=_one_version(marks))
        versions = [outcome.version for outcome in outcomes]
        yield _result(
            context,
            parts.sanitized,
            _one_version(versions),
            [(outcome.key, outcome.measurements) for outcome in outcomes],
        )
    if not published:
        return
    digests = _one_version([_digest(outcome) for outcome in outcomes])
    yield _result(context, parts.published, digests, [(outcome.key, outcome.metadata) for outcome in outcomes])
    publications = [(outcome.key, outcome.publication) for outcome in outcomes if outcome.publication is not None]
    yield from table_results(context, parts.tables, publications)


def _result(
    context: dg.AssetExecutionContext,
    asset: dg.AssetSpec,
    version: dg.DataVersion,
    metadata_by_key: Sequence[tuple[str | None, Mapping[str, Any] | None]],
) -> dg.MaterializeResult[Any]:
    """The result of one asset; each partition has metadata of its own."""
    for key, metadata in metadata_by_key:
        if key is not None:
            context.add_asset_metadata(metadata or {}, asset.key, key)
    whole = metadata_by_key[0][1] if metadata_by_key[0][0] is None else None
    return dg.MaterializeResult(asset_key=asset.key, data_version=version, metadata=whole)


def _events(
    spec: ReleaseSpec, context: dg.AssetExecutionContext, parts: Parts, outcome: AssetOutcome, several: bool
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation | dg.AssetCheckResult]:
    """What was done for one of several periods, or for one that is not offered yet: events that name it."""
    versions: dict[dg.AssetKey, str] = {}
    done: list[tuple[dg.AssetSpec, str, Mapping[str, Any] | None]] = []
    if outcome.conditions is not None:
        done += [(part, _mark(spec, outcome), None) for part in (parts.records, parts.cube)]
        done += [(parts.sanitized, outcome.version, outcome.measurements)]
    if outcome.publication is not None:
        tables = outcome.publication.tables
        done += [(parts.published, _digest(outcome), outcome.metadata)]
        done += [(table, _digest(outcome), shown_of_table(tables[table.key.path[-1]])) for table in parts.tables]
    for asset, version, metadata in done:
        versions[asset.key] = version[:32]
        tags = {CODE_VERSION: spec.digest, DATA_VERSION: version[:32], **_inputs(context, asset, versions, outcome.key)}
        yield dg.AssetMaterialization(asset.key, partition=outcome.key, metadata=metadata, tags=tags)
    for key, name, [(_, finding)] in _check_results(parts, [outcome]):
        yield finding.evaluation(key, name, outcome.key) if several else finding.result(key, name)


def _summaries(parts: Parts, outcomes: Sequence[AssetOutcome]) -> Iterator[dg.AssetCheckResult]:
    """Each check for all periods of a run: one that failed for any of them ends as a failed one.

    Without a partition: Dagster would put a second evaluation of a partition in the place of the first, which is older
    than those of later periods.
    """
    for key, name, findings in _check_results(parts, outcomes):
        failed = [(outcome, one) for outcome, one in findings if not one.passed]
        summaries = [f"{outcome.key}{f': {one.problem}' if one.problem else ''}" for outcome, one in failed]
        problem = (
            f"failed for {len(failed)} of {len(findings)} periods: {first_of(summaries, MOST_NAMED)}" if failed else ""
        )
        numbers = {"failed": len(failed), "periods": len(findings)}
        yield AssetCheckOutcome(not failed, numbers, problem, findings[0][1].severity).result(key, name)


def _check_results(
    parts: Parts, outcomes: Sequence[AssetOutcome]
) -> Iterator[tuple[dg.AssetKey, str, list[tuple[AssetOutcome, AssetCheckOutcome]]]]:
    """Each check with what it found for each period; at least one."""
    gates = [(outcome, gate_of(outcome)) for outcome in outcomes if outcome.conditions is not None]
    if gates:
        yield parts.sanitized.key, GATE, gates
    for name in dict.fromkeys(name for outcome in outcomes for name in outcome.checks):
        yield (
            parts.published.key,
            name,
            [(outcome, outcome.checks[name]) for outcome in outcomes if name in outcome.checks],
        )


def gate_of(outcome: AssetOutcome) -> AssetCheckOutcome:
    """What the check that stops publishing found."""
    conditions = dict(outcome.conditions or {})
    return AssetCheckOutcome(all(conditions.values()), conditions, severity=dg.AssetCheckSeverity.ERROR, blocking=True)


def _inputs(
    context: dg.AssetExecutionContext, asset: dg.AssetSpec, versions: Mapping[dg.AssetKey, str], partition: str | None
) -> dict[str, str]:
    """The tags that say from which versions an asset was made; without them its page would call it out of date."""
    tags = {}
    for key in (dep.asset_key for dep in asset.deps):
        if key in versions:
            records_filter = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[str(partition)])
            (materialization,) = context.instance.fetch_materializations(records_filter, limit=1).records
            version, event = versions[key], materialization.storage_id
        else:
            version_info = context.get_step_execution_context().maybe_fetch_and_get_input_asset_version_info(key)
            version = version_info.data_version.value if version_info and version_info.data_version else INITIAL
            event = version_info.storage_id if version_info else None
        tags[f"{INPUT_VERSION}/{key.to_user_string()}"] = version
        tags[f"{INPUT_EVENT}/{key.to_user_string()}"] = NO_EVENT if event is None else str(event)
    return tags


def _mark(spec: ReleaseSpec, outcome: AssetOutcome) -> str:
    return f"{spec.digest[:16]}-{outcome.key or 'all'}"


def _digest(outcome: AssetOutcome) -> str:
    return str(outcome.publication.audit["values_digest"]) if outcome.publication is not None else ""


def _one_version(versions: Sequence[str]) -> dg.DataVersion:
    """The data version of several periods together; of one, its own."""
    if len(versions) == 1:
        return dg.DataVersion(versions[0][:32])
    return dg.DataVersion(sha256("\n".join(versions).encode()).hexdigest()[:32])
