"""What a collection under local privacy looks like to Dagster: the same assets however it is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing.utils import create_defs_folder_sandbox
from office import Office
from system.collected import ASSETS, COLLECTION, CONSUMERS, Collecting, from_attributes, key, materialized
from system.orchestrated import defined as release_defined
from system.orchestrated import said

from dphist_pipeline import LocalCollection
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.integrations.dagster import collection_definitions
from dphist_pipeline.local.rounds import FOLDER
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.mistakes import SpecError

pytestmark = [
    pytest.mark.outside,
    pytest.mark.stand_in("catalogue", "pictures", why="assets of collections"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),  # by Dagster, to read a defs.yaml
]

REQUIRED = ["collection", "value", "start", "stop", "consumers", "protocol", "reports"]


@pytest.fixture
def collecting(office: Office) -> Collecting:
    """An office that collects."""
    return Collecting(office)


@contextmanager
def in_a_project(attributes: Mapping[str, Any]) -> Iterator[dg.Definitions]:
    """What a project with these attributes in a `defs.yaml` loads."""
    contents = {"type": "dphist_pipeline.LocalCollection", "attributes": dict(attributes)}
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=LocalCollection, defs_path="ages", defs_yaml_contents=contents
        )
        with sandbox.load_component_and_build_defs(folder) as (component, definitions):
            assert isinstance(component, LocalCollection)
            yield definitions


@pytest.fixture(params=["factory", "attributes", "folder"])
def loaded(
    request: pytest.FixtureRequest, collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.Definitions]:
    """The same collection, loaded each way."""
    changes = {"owners": ["team:statistics"], "title": "Ages"}
    collecting.answered(**changes)
    monkeypatch.setenv("DPHIST_STORE", str(collecting.office.store))
    elsewhere = {**COLLECTION, **changes, "reports": str(collecting.office.folder / COLLECTION["reports"])}
    if request.param == "factory":
        yield collecting.defined(**changes)
    elif request.param == "attributes":
        yield from_attributes(elsewhere)
    else:
        with in_a_project(elsewhere) as definitions:
            yield definitions


def specs(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    found = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}
    assert set(found) == set(ASSETS)
    return found


def test_every_way_to_load_a_collection_gives_the_same_assets_and_publishes(
    loaded: dg.Definitions, collecting: Collecting
) -> None:
    found = specs(loaded)
    for name, kind in zip(ASSETS, ("yaml", "json", "parquet", "parquet", "parquet"), strict=True):
        spec = found[name]
        assert spec.key == key(name) and spec.group_name == "ages" and spec.kinds == {kind}
        assert spec.owners == ["team:statistics"]
        tags = {label: value for label, value in spec.tags.items() if label.startswith("dp/")}
        assert tags == {"dp/zone": "public", "dp/model": "local", "dp/epsilon": "1"}
    chain = {name: [dep.asset_key for dep in spec.deps] for name, spec in found.items()}
    assert chain == {
        "queries": [],
        "partition": [key("queries")],
        "reports": [key("partition")],
        **{name: [key("reports")] for name in CONSUMERS},
    }
    with dg.DagsterInstance.ephemeral() as instance:
        run = materialized(loaded, instance)
    assert run.success, said(run)
    assert all(collecting.office.published(name).is_dir() for name in CONSUMERS)


def test_a_collection_brings_one_job_and_nothing_for_the_whole_project(loaded: dg.Definitions) -> None:
    assert [job.name for job in loaded.jobs or []] == ["ages_job"]
    assert loaded.resolve_job_def("ages_job").executor_def.name == "in_process"
    assert not loaded.schedules and not loaded.sensors and not loaded.resources and not loaded.loggers
    assert loaded.executor is None


def test_a_collection_stands_beside_releases_of_the_same_project(collecting: Collecting) -> None:
    central = release_defined(collecting.office, release="ages")
    merged = dg.Definitions.merge(
        collecting.defined(collection="years"), central, collecting.defined(collection="beds")
    )
    dg.Definitions.validate_loadable(merged)
    assert {spec.group_name for spec in merged.resolve_all_asset_specs()} == {
        "ages",
        "years",
        "beds",
        "default",
    }  # that of the source


def test_a_consumer_may_be_called_like_a_step(collecting: Collecting) -> None:
    consumers = [{"name": name, "epsilon": 1, "bins": 2} for name in ("queries", "reports", "city_publish")]
    definitions = collecting.defined(consumers=consumers)
    dg.Definitions.validate_loadable(definitions)
    assert len(list(definitions.resolve_all_asset_specs())) == 6


def test_the_column_schema_is_that_of_the_published_files(collecting: Collecting) -> None:
    collecting.answered()
    definitions = collecting.defined()
    with dg.DagsterInstance.ephemeral() as instance:
        run = materialized(definitions, instance)
    assert run.success, said(run)
    for name in CONSUMERS:
        metadata = specs(definitions)[name].metadata
        assert metadata["dagster/table_name"] == name
        columns = [(column.name, column.type) for column in metadata["dagster/column_schema"].columns]
        written = pq.read_schema(collecting.office.published(name) / "histogram.parquet")
        assert columns == [(field.name, str(field.type)) for field in written]
        described = {column.name: column.description for column in metadata["dagster/column_schema"].columns}
        assert "of the last one it is included" in described["age_upper"]
        assert all(described.values()) and "exact count" not in described["unbiased_estimate"]


@pytest.mark.parametrize("left_out", REQUIRED)
def test_every_required_field_is_asked_for_when_a_project_is_loaded(left_out: str) -> None:
    attributes = {name: value for name, value in COLLECTION.items() if name != left_out}
    with pytest.raises(SpecError) as refused:
        from_attributes(attributes)
    assert f"attributes.{left_out}: is required" in str(refused.value)
    assert sorted(LocalCollection.get_model_cls().model_json_schema()["required"]) == sorted(REQUIRED)


def test_a_collection_without_reports_is_refused_by_the_factory_too(collecting: Collecting) -> None:
    spec = collecting.declared(reports=...)
    with pytest.raises(
        SpecError, match=r"^collection spec: 1 mistake(.|\n)*attributes\.reports: is required in a Dagster"
    ):
        collection_definitions(spec)


def test_one_message_names_every_mistake_with_its_path() -> None:
    wrong = {**COLLECTION, "protocol": "shp", "epsilom": 1, "value": "{{ env.NOWHERE }}", "reports": None}
    with pytest.raises(SpecError) as refused:
        from_attributes(wrong)
    assert str(refused.value).startswith("collection spec: 4 mistakes")
    with pytest.raises(ComponentTreeException) as in_project, in_a_project(wrong):
        pass
    for message in (str(refused.value), _whole(in_project.value)):
        assert message.count("4 mistakes") == 1
        for path in ("protocol: ", "epsilom: ", "value: ", "reports: is required in a Dagster project"):
            assert f"attributes.{path}" in message


def _whole(error: BaseException | None) -> str:
    return "" if error is None else f"{error}\n{_whole(error.__cause__)}"


def test_a_subclass_may_change_how_assets_look() -> None:
    class Ours(LocalCollection):
        def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
            return spec.merge_attributes(tags={"ours": "yes"})

    component = Ours.from_attributes_dict(attributes=COLLECTION)
    found = specs(component.build_defs(dg.ComponentTree.for_test().load_context))
    assert all(spec.tags["ours"] == "yes" for spec in found.values())


def test_questions_and_tallies_lie_where_no_release_can_and_are_taken_for_none(collecting: Collecting) -> None:
    with pytest.raises(ValueError, match="every store uses itself"):
        fields.release_name(FOLDER)
    collecting.answered()
    with dg.DagsterInstance.ephemeral() as instance:
        assert materialized(collecting.defined(), instance).success
    store = collecting.office.store
    assert [audit["release"] for _, audit in Catalogue(store / "public").publications()] == list(CONSUMERS)
    assert sorted(path.name for path in (store / "public").iterdir()) == [
        *CONSUMERS,
        "catalog.duckdb",
        FOLDER,
    ]
    assert collecting.office.run("ledger", "verify", "--store", store).code == 0
    missing = collecting.office.run("answer", FOLDER, "--store", store)
    assert missing.code != 0 and "no release" in missing.err
