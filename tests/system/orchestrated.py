"""The small office under Dagster: its spec as definitions, and runs of its assets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from typing import Any

import dagster as dg
from dagster.components.testing.utils import create_defs_folder_sandbox
from office import DERIVED, SPEC, Office

from dphist_pipeline import HistogramRelease
from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import FOLDER

NAMES = ("records", "cube", "sanitized", "published")
logging.getLogger("dagster").setLevel(logging.CRITICAL)


def key(name: str, release: str = "wards") -> dg.AssetKey:
    """The key of one of a release's assets."""
    return dg.AssetKey([release, name])


def defined(office: Office, **changes: Any) -> dg.Definitions:
    """What the plain factory makes of the office's spec."""
    office.write_spec(**changes)
    return release_definitions(ReleaseSpec.load(office.folder / "spec.yaml"))


def from_attributes(attributes: Mapping[str, Any]) -> dg.Definitions:
    """What the component makes of its attributes; paths start at the working directory's project."""
    component = HistogramRelease.from_attributes_dict(attributes=dict(attributes))
    return component.build_defs(dg.ComponentTree.for_test().load_context)


@contextmanager
def from_folder(attributes: Mapping[str, Any]) -> Iterator[tuple[HistogramRelease, dg.Definitions]]:
    """What a project with these attributes in a `defs.yaml` loads."""
    contents = {"type": "dphist_pipeline.HistogramRelease", "attributes": dict(attributes)}
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=HistogramRelease, defs_path="wards", defs_yaml_contents=contents
        )
        with sandbox.load_component_and_build_defs(folder) as (component, definitions):
            assert isinstance(component, HistogramRelease)
            yield component, definitions


def people_in(rows: Mapping[str, int]) -> dict[str, list[Any]]:
    """So many people in each week, all in one cell."""
    days = [date.fromisoformat(week) for week, count in rows.items() for _ in range(count)]
    who = [f"p{number}" for number in range(len(days))]
    return {"patient": who, "age": [30.0] * len(days), "ward": ["surgery"] * len(days), "admitted_on": days}


def outside(office: Office) -> dict[str, Any]:
    """The spec's attributes for a project elsewhere."""
    return {**SPEC, "source": str(office.folder / SPEC["source"])}


def materialized(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *names: str, partition: str | None = None
) -> dg.ExecuteInProcessResult:
    """A run of these assets of `wards`, or of all, whatever its end."""
    return dg.materialize(
        list(definitions.assets or []),
        selection=[key(name) for name in names or NAMES],
        instance=instance,
        partition_key=partition,
        raise_on_error=False,
    )


def said(run: dg.ExecuteInProcessResult) -> str:
    """What the steps that failed told Dagster."""
    failures = [event.step_failure_data for event in run.all_events if event.is_step_failure]
    return "\n".join(
        str(failure.user_failure_data.description if failure.user_failure_data else failure.error)
        for failure in failures
    )


def shown(run: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    """The metadata of an asset, as plain values."""
    (event,) = (made for made in events(run) if made.asset_key == key(name))
    return {label: value.value for label, value in event.metadata.items()}


def events(run: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    """The materializations of a run."""
    return [event.materialization for event in run.get_asset_materialization_events()]


def public_files(office: Office) -> dict[str, bytes]:
    """Every published file but those that are made from them."""
    public = office.store / "public"
    files = [path for path in sorted(public.rglob("*")) if path.is_file() and path.name not in DERIVED]
    return {str(path.relative_to(public)): path.read_bytes() for path in files}


def leftovers(office: Office) -> list[str]:
    """Files of the confidential store that are not answers of measurements."""
    confidential = office.store / "confidential"
    found = [path.relative_to(confidential) for path in confidential.rglob("*") if path.is_file()]
    return [str(path) for path in found if path.parts[0] not in ("journal", FOLDER)]


def charges(office: Office) -> int:
    """How many charges the ledger holds."""
    return [entry[1] for entry in office.entries()].count("charged")


def audit(office: Office, **where: Any) -> dict[str, Any]:
    """The audit of a published release."""
    content: dict[str, Any] = json.loads((office.published(**where) / "audit.json").read_bytes())
    return content
