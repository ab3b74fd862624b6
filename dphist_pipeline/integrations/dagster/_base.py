"""What the Dagster components share: assets with one look, steps whose errors leak nothing, metadata.

Everything that Dagster is shown is public: Dagster keeps what it is told, unencrypted, in its run database.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar

import dagster as dg

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations.dagster._shown import published_metadata, table_schema
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.model import Translation

T = TypeVar("T")
MAX_RETRIES = "dagster/max_retries"
POOL = "dphist"
WAITS = (2, 10, 60)  # seconds before the same call is tried again


@dataclass(frozen=True)
class Group:
    """The group of assets of one release or collection, whose spec has `digest` and `owners`.

    `change` is applied to every AssetSpec; see `components.SpecComponent.get_asset_spec`.
    """

    name: str
    spec: Any
    change: Callable[[dg.AssetSpec], dg.AssetSpec]
    partitions: dg.PartitionsDefinition | None = None

    @property
    def look(self) -> Translation | None:
        """How the spec says that its assets look."""
        translation: Translation | None = getattr(self.spec, "translation", None)
        return translation

    @property
    def prefix(self) -> str:
        """What the keys of the assets begin with."""
        return self.look.key if self.look and self.look.key else self.name

    def asset(
        self,
        name: str,
        kind: str,
        text: str,
        after: str | None,
        tags: Mapping[str, str],
        deps: Sequence[str] = (),
        skippable: bool = False,
        **more: Any,
    ) -> dg.AssetSpec:
        """An asset of the group.

        `after` is of the group, `deps` are keys outside of it. `skippable`: its step may leave it out. `more` is for
        `AssetSpec`.
        """
        look = self.look
        inside = [f"{self.prefix}/{after}"] if after else []
        spec = dg.AssetSpec(
            dg.AssetKey([*self.prefix.split("/"), name]),
            deps=[dg.AssetKey(dep.split("/")) for dep in [*inside, *deps]],
            kinds={kind},
            tags={**tags, **(look.tags if look else {})},
            description=f"{look.description}\n\n{text}" if look and look.description else text,
            group_name=look.group if look and look.group else self.name,
            owners=[*(look.owners if look and look.owners else self.spec.owners)],
            code_version=self.spec.digest,
            partitions_def=self.partitions,
            skippable=skippable,
            **more,
        )
        return self.change(spec)

    def table(
        self,
        name: str,
        domain: Domain,
        text: str,
        after: str,
        tags: Mapping[str, str],
        table: str,
        meanings: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> dg.AssetSpec:
        """An asset that is a published histogram; `meanings` of columns that mean something else than usual."""
        metadata = {"dagster/column_schema": table_schema(domain, **meanings), "dagster/table_name": table}
        return self.asset(name, "parquet", text, after, tags, metadata=metadata, **more)

    def job(self, assets: Iterable[dg.AssetSpec], text: str, without: Sequence[dg.AssetCheckKey] = ()) -> Any:
        """The job that makes the assets, in one process, but for checks that run on schedules of their own.

        A component cannot set a project's executor; in one process a release takes a second instead of half a minute.
        """
        selection: dg.AssetSelection = dg.AssetSelection.assets(*(asset.key for asset in assets))
        selection = selection - dg.AssetSelection.checks(*without) if without else selection
        executor = dg.in_process_executor
        return dg.define_asset_job(f"{self.name}_job", selection, description=text, executor_def=executor)


@dataclass(frozen=True)
class Done:
    """What a step did; Dagster gets the first 32 characters of the version.

    `conditions`: by its check, which passes if everything holds.
    """

    version: str
    metadata: Mapping[str, Any] | None = None
    conditions: Mapping[str, bool] | None = None


def step(
    name: str,
    assets: Sequence[dg.AssetSpec],
    doing: str,
    held: str,
    work: Callable[[dg.AssetExecutionContext], Done],
    check: tuple[str, str] | None = None,
) -> dg.AssetsDefinition:
    """One step, which makes some assets together; of its errors only our own messages reach Dagster.

    `doing` and `held`: see `withheld`. `check`: name and description of the check that stops later steps.
    """
    key = assets[0].key
    checks = [dg.AssetCheckSpec(check[0], asset=key, blocking=True, description=check[1])] if check else []

    @dg.multi_asset(name=name, specs=assets, check_specs=checks, pool=POOL)
    def run(context: dg.AssetExecutionContext) -> Any:
        done = withheld(doing, lambda: work(context), held, context)
        version = dg.DataVersion(done.version[:32])
        for asset in assets:
            yield dg.MaterializeResult(asset_key=asset.key, data_version=version, metadata=done.metadata)
        conditions = dict(done.conditions or {})
        for gate in checks:
            yield dg.AssetCheckResult(
                passed=all(conditions.values()), asset_key=key, check_name=gate.name, metadata=conditions
            )

    return run


def publish_step(
    name: str, asset: dg.AssetSpec, held: str, publish: Callable[[dg.AssetExecutionContext], Release]
) -> dg.AssetsDefinition:
    """The step that publishes a release and shows it; for `held` see `withheld`.

    The name is unique in a code location. `publish` gives the publication, new or as it was.
    """

    def work(context: dg.AssetExecutionContext) -> Done:
        publication = publish(context)
        return Done(publication.audit["values_digest"], published_metadata(publication, publication.answer()))

    return step(name, [asset], "publishing", held, work)


@dataclass(frozen=True)
class Storage:
    """Where a release's steps find their store: a resource of that key, or else the project's own store."""

    resource: str | None = None

    @property
    def keys(self) -> set[str]:
        """The resources that the steps require."""
        return {self.resource} if self.resource else set()

    def open(self, resources: Any) -> Store:
        """The store, whose ledger and witness may be the resource's, too."""
        if self.resource is None:
            return open_store()
        store: Store = getattr(resources, self.resource).store()
        return store


def open_store() -> Store:
    """The store of the project that Dagster runs in; see `Store.folder`."""
    return Store.open_named()


def rounded_epsilon(epsilon: Fraction) -> str:
    """An exact epsilon above 0 with up to six decimals for a tag, never below the true one."""
    return f"{math.ceil(epsilon * 10**6) / 10**6:.6f}".rstrip("0").rstrip(".")


def withheld(doing: str, work: Callable[[], T], held: str, context: dg.AssetExecutionContext | None = None) -> T:
    """Lets only our own messages through to Dagster, which stores what it is told; a retry would not help.

    Not a context manager: an exception raised in one carries the first exception along, and Dagster stores that, too.

    Args:
        doing: what is done, for the message.
        held: what an engine's message might hold.
    """
    try:
        return with_retries(work)
    except DphistError as error:
        message, is_refusal = error.told, True
    except Exception as error:
        message, is_refusal = (
            f"{doing} failed with {type(error).__name__} (message withheld: it may hold {held})",
            False,
        )
    if is_refusal and context is not None:
        never_run_again(context)
    raise dg.Failure(message, allow_retries=False)


def with_retries(work: Callable[[], T]) -> T:
    """Does something, and again after a while where its error says that the same call may be tried again.

    A lost connection or a bucket that has too much to do is worth that; a refusal never is. Within the step: a run that
    is started again waits in the queue, and the run's tag forbids it.
    """
    for seconds in WAITS:
        try:
            return work()
        except DphistError as error:
            if not error.try_again:
                raise
        time.sleep(seconds)
    return work()


def never_run_again(context: dg.AssetExecutionContext) -> None:
    """Keeps the retries of runs that an instance may make from running a refusal again; a crash is still run again.

    Dagster decides on them by the tags of the run that failed. A step alone can only speak for itself.
    """
    context.instance.add_run_tags(context.run.run_id, {MAX_RETRIES: "0"})
