"""What the Dagster components share: loading a spec, assets with one look, steps whose errors leak nothing, metadata.

Everything that Dagster is shown is public: Dagster keeps what it is told, unencrypted, in its run database.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, create_model

from dphist_pipeline.answering.row_quality import say_of_rows
from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing.parquet_tables import OUR_COLUMNS, axis_columns
from dphist_pipeline.publishing.plot import release_svg
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.loading import project_folder
from dphist_pipeline.spec.templates import templates_around

T = TypeVar("T")
Problems = list[tuple[str, str]]

MEANINGS = {
    "estimate": "the released count: the one to use",
    "unbiased_estimate": "the exact count plus noise, or a linear estimate of it, where the mechanism paid for such",
    "ci_lower": "95 % interval of the true bounded count, lower end",
    "ci_upper": "95 % interval of the true bounded count, upper end",
    "group_id": "cells that were measured together, where the mechanism makes groups",
}


class SpecComponent(dg.Component):
    """A component that is made of one spec: the attributes of a `defs.yaml`, checked whole when it is loaded."""

    attributes: ClassVar[type[BaseModel]]

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    @classmethod
    def checked(cls, attributes: Mapping[str, Any], base: Path, problems: Problems) -> Any:
        """The spec in a mapping whose templates are not resolved yet.

        Args:
            attributes: as they stand in the file.
            base: folder that relative paths start from.
            problems: mistakes around the attributes, for the same message.

        Raises:
            SpecError: with every mistake.
        """
        raise NotImplementedError

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes that a `defs.yaml` may hold; `load` checks them."""
        return cls.attributes

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Any:
        """Checks the whole spec; a mistake stops the code location with one message for all of them."""
        given = attributes.model_dump(exclude_unset=True) if attributes else {}
        # Dagster would resolve `{{ env.X }}` in `post_processing` and publish it in tags and metadata. The document is
        # checked as Dagster read it, before it resolves anything; a component made in Python has none.
        document = getattr(context.component_decl, "component_file_model", None)
        problems = templates_around(document.model_dump()) if isinstance(document, BaseModel) else []
        return cls(cls.checked(given, project_folder(Path(context.path) / "defs.yaml"), problems))

    def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        """A hook for subclasses: the asset as it will be defined."""
        return spec


def attributes_model(component: str, spec: type[BaseModel], also: Sequence[str] = (), **schema: Any) -> type[BaseModel]:
    """The attributes of a component as Dagster reads them: any value, as it stands in the file.

    The spec's own rules resolve templates and keep "1" text, so nothing is checked here. Only the JSON schema is
    strict, for editors and `dg check yaml`.

    Args:
        component: its name.
        spec: whose fields the attributes are.
        also: other spellings of fields.
        schema: what the JSON schema says besides.
    """
    fields: dict[str, Any] = {
        name: (Any, Field(None, description=f"See the spec reference: {name}")) for name in (*spec.model_fields, *also)
    }
    strict = {"additionalProperties": False, **schema}
    config = ConfigDict(extra="allow", json_schema_extra=lambda made: made.update(strict))
    made: type[BaseModel] = create_model(f"{component}Attributes", __config__=config, **fields)
    return made


@dataclass(frozen=True)
class Group:
    """The group of assets of one release or collection.

    Attributes:
        spec: has `digest` and `owners`.
        change: applied to every AssetSpec; see `SpecComponent.get_asset_spec`.
    """

    name: str
    spec: Any
    change: Callable[[dg.AssetSpec], dg.AssetSpec]
    partitions: dg.PartitionsDefinition | None = None

    def asset(
        self, name: str, kind: str, text: str, after: str | None, tags: Mapping[str, str], **more: Any
    ) -> dg.AssetSpec:
        """An asset of the group.

        Args:
            name: last part of its key.
            kind: of the tool that makes it.
            text: its description.
            after: the asset of the group that it depends on.
            tags: of the asset.
            more: what `AssetSpec` takes.
        """
        made = dg.AssetSpec(
            dg.AssetKey([self.name, name]),
            deps=[dg.AssetKey([self.name, after])] if after else [],
            kinds={kind},
            tags=tags,
            description=text,
            group_name=self.name,
            owners=list(self.spec.owners),
            code_version=self.spec.digest,
            partitions_def=self.partitions,
            **more,
        )
        return self.change(made)

    def table(
        self, name: str, domain: Domain, text: str, after: str, tags: Mapping[str, str], table: str, **meanings: str
    ) -> dg.AssetSpec:
        """An asset that is a published histogram; `meanings` of columns that mean something else than usual."""
        schema = dg.TableSchema(columns=_columns(domain, {**MEANINGS, **meanings}))
        metadata = {"dagster/column_schema": schema, "dagster/table_name": table}
        return self.asset(name, "parquet", text, after, tags, metadata=metadata)

    def job(self, assets: Iterable[dg.AssetSpec], text: str) -> Any:
        """The job that makes the assets, in one process.

        A component cannot set a project's executor; in one process a release takes a second instead of half a minute.
        """
        selection = dg.AssetSelection.assets(*(asset.key for asset in assets))
        executor = dg.in_process_executor
        return dg.define_asset_job(f"{self.name}_job", selection, description=text, executor_def=executor)


@dataclass(frozen=True)
class Done:
    """What a step did.

    Attributes:
        version: the data version of its assets; Dagster gets the first 32 characters.
        metadata: of its assets.
        found: what its check found; the check passes if everything holds.
    """

    version: str
    metadata: Mapping[str, Any] | None = None
    found: Mapping[str, bool] | None = None


def step(
    name: str,
    assets: Sequence[dg.AssetSpec],
    doing: str,
    held: str,
    work: Callable[[dg.AssetExecutionContext], Done],
    check: tuple[str, str] | None = None,
) -> dg.AssetsDefinition:
    """One step, which makes some assets together; of its errors only our own messages reach Dagster.

    Args:
        name: of the step.
        assets: that it makes.
        doing: what it does, for the message of an error.
        held: what the message of an engine might hold.
        work: does it.
        check: name and description of the check that stops later steps.
    """
    key = assets[0].key
    checks = [dg.AssetCheckSpec(check[0], asset=key, blocking=True, description=check[1])] if check else []

    @dg.multi_asset(name=name, specs=assets, check_specs=checks, partitions_def=assets[0].partitions_def)
    def run(context: dg.AssetExecutionContext) -> Any:
        done = withheld(doing, lambda: work(context), held)
        version = dg.DataVersion(done.version[:32])
        for asset in assets:
            yield dg.MaterializeResult(asset_key=asset.key, data_version=version, metadata=done.metadata)
        found = dict(done.found or {})
        for gate in checks:
            yield dg.AssetCheckResult(passed=all(found.values()), asset_key=key, check_name=gate.name, metadata=found)

    return run


def publish_step(
    name: str, asset: dg.AssetSpec, held: str, publish: Callable[[dg.AssetExecutionContext], Release]
) -> dg.AssetsDefinition:
    """The step that publishes a release and shows it."""

    def work(context: dg.AssetExecutionContext) -> Done:
        made = publish(context)
        return Done(made.audit["values_digest"], _published_metadata(made))

    return step(name, [asset], "publishing", held, work)


def open_store() -> Store:
    """The store of the project that Dagster runs in; see `store_folder`."""
    return Store.open(store_folder(None))


def rounded_epsilon(epsilon: Fraction) -> str:
    """Up to six decimals for a tag, never below the true one."""
    return f"{math.ceil(epsilon * 10**6) / 10**6:.6f}".rstrip("0").rstrip(".")


def withheld(doing: str, work: Callable[[], T], held: str) -> T:
    """Lets only our own messages through to Dagster, which stores what it is told; a retry would not help.

    Not a context manager: an exception raised in one carries the first exception along, and Dagster stores that, too.

    Args:
        doing: what is done, for the message.
        work: does it.
        held: what an engine's message might hold.
    """
    try:
        return work()
    except DphistError as error:
        message = str(error)
    except Exception as error:
        message = f"{doing} failed with {type(error).__name__} (message withheld: it may hold {held})"
    raise dg.Failure(message, allow_retries=False)


def records_table(rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Rows as a table in Dagster's page."""
    return dg.MetadataValue.table(records=[dg.TableRecord(row) for row in rows])


def _columns(domain: Domain, meanings: Mapping[str, str]) -> list[dg.TableColumn]:
    """The published histogram's columns: name, type, meaning."""
    columns = [
        dg.TableColumn(name, str(kind), meanings.get(name) or _meaning(axis, name))
        for axis in domain.axes
        for name, kind in axis_columns(axis).items()
    ]
    kinds = {name: "int64" if name == "group_id" else "double" for name in OUR_COLUMNS}
    return columns + [dg.TableColumn(name, kind, meanings[name]) for name, kind in kinds.items()]


def _meaning(axis: Axis, column: str) -> str:
    if isinstance(axis, BinnedAxis):
        end = "lower" if column == f"{axis.name}_lower" else "upper"
        included = (axis.closed == "left") == (end == "lower")
        return f"{end} end of the bin, {'included' if included else 'not included'}; null where there is none"
    meanings = {axis.name: "category", f"{axis.name}_label": "what the category is called"}
    what = meanings.get(column, "what the category lies in")
    return f"{what}; null for all others" if axis.other else what


def _published_metadata(made: Release) -> dict[str, Any]:
    """Epsilon, the audit as a table, where the files and their card are, and the picture that the card shows."""
    audit, card = made.audit, made.path / "card.html"
    picture = base64.b64encode(release_svg(made.path).encode()).decode()
    return {
        "epsilon": dg.MetadataValue.text(audit["epsilon"]),
        "replayed": dg.MetadataValue.bool(made.replayed),
        "protects": dg.MetadataValue.text(_protected(audit)),
        **({"reports": dg.MetadataValue.int(audit["reports"]["accepted"])} if "reports" in audit else {}),
        "audit": records_table(
            {name: row[name] for name in ("step", "epsilon", "noise_scale")} for row in audit["charges"]
        ),
        **({"rows": dg.MetadataValue.text(told)} if (told := " ".join(say_of_rows(made.path, audit))) else {}),
        "files": dg.MetadataValue.path(str(made.path)),
        **({"card": dg.MetadataValue.path(str(card))} if card.exists() else {}),
        "picture": dg.MetadataValue.md(f"![{audit['release']}](data:image/svg+xml;base64,{picture})"),
    }


def _protected(audit: Mapping[str, Any]) -> str:
    """In few words, since Dagster cuts off what is longer than its column."""
    unit, most, neighbours = audit["privacy_unit"], audit["max_rows_per_unit"], audit["neighbours"]
    if unit == "row":
        return f"each row ({neighbours})"
    what = "value" if audit.get("model") == "local" else "row"
    return f"each {unit} with up to {most} {what}{'' if most == 1 else 's'} ({neighbours})"
