"""What a run did for each period, and how Dagster is told: one result for all of them, or each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import dagster as dg

from dphist_pipeline.integrations.dagster.checks import Found, check_results
from dphist_pipeline.integrations.dagster.periods import partitions_of
from dphist_pipeline.integrations.dagster.tables import table_results
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.model import ReleaseSpec

GATE = "releasable"


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
        """The assets that exist once every door has answered."""
        return [self.records, self.cube, self.sanitized]


@dataclass(frozen=True)
class Outcome:
    """What a run did for one period.

    Attributes:
        key: of the partition; None where there are none.
        version: of what was drawn: the hash of the charge. No digest of the values: they may wait for a person, or be
            rejected, and few values could be found from it.
        found: what the check found; None where nothing was drawn.
        made: the publication, where there is one.
        statement: of the account, right after it.
        store: where it is.
        shown: the metadata of the publication.
        checks: what the checks of the publication found.
        problem: why it stopped, in our own words; None if it did not.
    """

    key: str | None
    version: str = ""
    found: Mapping[str, bool] | None = None
    made: Release | None = None
    statement: Statement | None = None
    store: Store | None = None
    shown: Mapping[str, Any] | None = None
    checks: Mapping[str, Found] = field(default_factory=dict)
    problem: str | None = None


def told(
    spec: ReleaseSpec,
    context: dg.AssetExecutionContext,
    parts: Parts,
    outcomes: Sequence[Outcome],
    publishes: bool,
) -> Iterator[Any]:
    """Tells Dagster what was done; a run some of whose periods stopped fails, and says which and why.

    Args:
        spec: checked; see `load_spec`.
        context: of the step that made all of this.
        parts: the assets of the release.
        outcomes: one for each period of the run, in the order of its partitions; at least one.
        publishes: whether this step publishes, too; otherwise a person approves first.
    """
    stopped = [outcome for outcome in outcomes if outcome.problem is not None]
    drawn = [outcome for outcome in outcomes if outcome.found is not None]
    apart = (stopped and len(outcomes) > 1) or not offered(spec, outcomes)
    if apart:
        for outcome in drawn:
            _log_alone(spec, context, parts, outcome)
    elif drawn:
        versions = _one_version([outcome.version for outcome in drawn])
        marks = [f"{spec.digest[:16]}-{outcome.key or 'all'}" for outcome in drawn]
        for asset in (parts.records, parts.cube):
            yield dg.MaterializeResult(asset_key=asset.key, data_version=_one_version(marks))
        yield dg.MaterializeResult(asset_key=parts.sanitized.key, data_version=versions)
    if drawn:
        found = {name: all((outcome.found or {})[name] for outcome in drawn) for name in drawn[0].found or {}}
        yield dg.AssetCheckResult(
            passed=all(found.values()), asset_key=parts.sanitized.key, check_name=GATE, metadata=found
        )
    if stopped:
        single = len(outcomes) == 1
        named = [str(outcome.problem) if single else f"{outcome.key}: {outcome.problem}" for outcome in stopped]
        many = "" if single else f"{len(stopped)} of {len(outcomes)} periods were not released\n"
        raise dg.Failure(many + "\n".join(named), allow_retries=False)
    if publishes and not apart:
        yield from publication(context, parts, outcomes)
    if publishes:
        yield from check_results(parts.published.key, outcomes[-1].checks)


def offered(spec: ReleaseSpec, outcomes: Sequence[Outcome]) -> bool:
    """Whether Dagster's set of partitions holds the periods; of others it would forget which they are.

    Args:
        spec: checked; without periods every outcome is offered.
        outcomes: one for each period of a run.
    """
    partitions = partitions_of(spec)
    return partitions is None or all(partitions.has_partition_key(str(outcome.key)) for outcome in outcomes)


def publication(
    context: dg.AssetExecutionContext, parts: Parts, outcomes: Sequence[Outcome]
) -> Iterator[dg.MaterializeResult[Any]]:
    """One result for all periods, and one for each table; each partition has metadata of its own.

    Args:
        context: of the step that published.
        parts: the assets of the release.
        outcomes: one for each period of the run, all of which were published; at least one.
    """
    asset = parts.published
    for outcome in outcomes:
        if outcome.key is not None:
            context.add_asset_metadata(outcome.shown or {}, asset.key, outcome.key)
    digests = [outcome.made.audit["values_digest"] for outcome in outcomes if outcome.made is not None]
    metadata = outcomes[0].shown if outcomes[0].key is None else None
    yield dg.MaterializeResult(asset_key=asset.key, data_version=_one_version(digests), metadata=metadata)
    made = [(outcome.key, outcome.made) for outcome in outcomes if outcome.made is not None]
    yield from table_results(context, parts.tables, made)


def _log_alone(spec: ReleaseSpec, context: dg.AssetExecutionContext, parts: Parts, outcome: Outcome) -> None:
    """Records what was done for one period where no output may speak for all: others failed, or it is not offered."""
    done: list[tuple[dg.AssetSpec, Mapping[str, Any] | None]] = [(asset, None) for asset in parts.drawn]
    done += [(parts.published, outcome.shown)] * (outcome.made is not None)
    for asset, shown in done:
        context.log_event(alone(spec, asset, outcome, shown))


def alone(
    spec: ReleaseSpec, asset: dg.AssetSpec, outcome: Outcome, shown: Mapping[str, Any] | None
) -> dg.AssetMaterialization:
    """What was done for one asset and period, told apart from an output.

    Args:
        spec: checked; its digest is the code version.
        asset: one of the release's, be it confidential or public.
        outcome: of one period.
        shown: metadata for the page; None where there is none.
    """
    version = outcome.version or (outcome.made.audit["ledger"]["hash"] if outcome.made else "")
    tags = {"dagster/code_version": spec.digest, "dagster/data_version": version[:32]}
    return dg.AssetMaterialization(asset.key, partition=outcome.key, metadata=shown, tags=tags)


def _one_version(versions: Sequence[str]) -> dg.DataVersion:
    """The data version of several periods together; of one, its own."""
    if len(versions) == 1:
        return dg.DataVersion(versions[0][:32])
    return dg.DataVersion(sha256("\n".join(versions).encode()).hexdigest()[:32])
