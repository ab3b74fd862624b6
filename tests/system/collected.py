"""A small collection under Dagster: the office that asks, the contributors who answer, and runs of its assets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
from office import DERIVED, Office

from dphist_pipeline import LocalCollection
from dphist_pipeline.integrations.dagster import collection_definitions
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.record_folder import RecordFolder
from dphist_pipeline.local.reports import report_file
from dphist_pipeline.spec.collection import CollectionSpec, load_collection

COLLECTION: dict[str, Any] = {
    "collection": "ages",
    "value": "age",
    "start": 0,
    "stop": 100,
    "consumers": [{"name": "city", "epsilon": 2, "width": 25}, {"name": "state", "epsilon": 1, "edges": [0, 65, 100]}],
    "protocol": "chp",
    "encoding": "symmetric",
    "reports": "reports/*.parquet",
}
CONSUMERS = ("ages_city", "ages_state")
ASSETS = ("queries", "partition", "reports", *CONSUMERS)


def key(name: str) -> dg.AssetKey:
    """The key of one of the collection's assets."""
    return dg.AssetKey(["ages", name])


class Collecting:
    """An office with a store, and the contributors' own folder beside it."""

    def __init__(self, office: Office) -> None:
        self.office = office
        (office.folder / "reports").mkdir()
        office.undecided()

    @property
    def spec_file(self) -> Path:
        return self.office.folder / "collection.yaml"

    @property
    def place(self) -> Path:
        """Where the question and the tally lie."""
        return self.office.store / "public" / "dph_collections" / "ages"

    def declared(self, **changes: Any) -> CollectionSpec:
        """The spec with some fields changed; `...` leaves a field out. JSON is YAML."""
        fields = {name: value for name, value in {**COLLECTION, **changes}.items() if value is not ...}
        attributes = json.dumps(fields)
        self.spec_file.write_text(f"type: dphist_pipeline.LocalCollection\nattributes: {attributes}\n")
        return load_collection(self.spec_file)

    def defined(self, **changes: Any) -> dg.Definitions:
        """What the plain factory makes of it."""
        return collection_definitions(self.declared(**changes))

    def answered(self, name: str = "first", people: int = 400, **changes: Any) -> Path:
        """A file with the reports of so many contributors of their own."""
        question = question_of(self.declared(**changes))
        contributors = RecordFolder.open(self.office.folder / "contributors", Fraction(50))
        names = [f"{name} {number}" for number in range(people)]
        answers = contributors.answer(question, names, np.linspace(0, 100, people))
        path = self.office.folder / "reports" / f"{name}.parquet"
        with report_file(question, path) as add:
            add(answers.ids, answers.bodies)
        return path

    def published_files(self) -> dict[str, bytes]:
        """Every public file but those that are made from them."""
        public = self.office.store / "public"
        files = [path for path in sorted(public.rglob("*")) if path.is_file() and path.name not in DERIVED]
        return {str(path.relative_to(public)): path.read_bytes() for path in files}

    def releases(self) -> dict[str, bytes]:
        """The same, of releases only."""
        return {name: content for name, content in self.published_files().items() if not name.startswith("dph_")}


def from_attributes(attributes: Mapping[str, Any]) -> dg.Definitions:
    """What the component makes of its attributes; paths start at the working directory's project."""
    component = LocalCollection.from_attributes_dict(attributes=dict(attributes))
    return component.build_defs(dg.ComponentTree.for_test().load_context)


def materialized(definitions: dg.Definitions, instance: dg.DagsterInstance, *names: str) -> dg.ExecuteInProcessResult:
    """A run of these assets of `ages`, or of all, whatever its end."""
    return dg.materialize(
        list(definitions.assets or []),
        selection=[key(name) for name in names or ASSETS],
        instance=instance,
        raise_on_error=False,
    )


def shown(run: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    """The metadata of an asset, as plain values."""
    made = [event.materialization for event in run.get_asset_materialization_events()]
    (event,) = (materialization for materialization in made if materialization.asset_key == key(name))
    return {label: value.value for label, value in event.metadata.items()}
