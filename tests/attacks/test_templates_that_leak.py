"""Templates that an attacker would write: to publish a secret that the service's environment holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attacked import VALID
from office import SPEC, WARD, Office

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import loading
from dphist_pipeline.spec.collection import CollectionSpec, load_collection
from dphist_pipeline.spec.mistakes import SpecError

# Dagster's own, when it reads a defs.yaml.
pytestmark = [pytest.mark.filterwarnings(f"ignore:.*{words}") for words in ("is deprecated", "in beta")]

SECRET = "s3cr3t-c4n4ry"
TEMPLATES = ["{{ env.SECRET }}", "x {{env.SECRET}}", "{{ env('SECRET') }}", "{{ env.SECRET | upper }}", "{% if env %}"]


class Untouched(Mapping[str, str]):
    """An environment that may not be looked at."""

    def __getitem__(self, name: str) -> str:
        raise AssertionError(name)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


def places(template: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a release, and parts of nested ones, with a template in it."""
    for field in [*ReleaseSpec.model_fields, "neighbors"]:
        if field not in ("source", "axes"):
            yield field, {field: template}
    yield "owners[1]", {"owners": ["team:a", template]}
    yield "privacy_unit[0]", {"privacy_unit": [template, "a"]}
    yield "settings.share", {"settings": {"share": template}}
    yield "source[0]", {"source": [template]}
    for key in ("column", "name", "values_from", "values_column", "label_column", "start", "calendar", "format"):
        yield f"axes[0].{key}", {"axes": [{**WARD, key: template}]}
    yield "axes[0].values[1]", {"axes": [{**WARD, "values": ["a", template]}]}
    yield "axes[0].labels[0]", {"axes": [{**WARD, "labels": [template, "b"]}]}
    yield "axes[0].levels.house[0]", {"axes": [{**WARD, "levels": {"house": [template, "b"]}}]}
    yield "axes[0].edges[0]", {"axes": [{"column": "x", "edges": [template, 1]}]}
    yield "axes", {"axes": template}


PLACES = [place for place, _ in places("")]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("place", PLACES)
def test_no_field_but_the_source_takes_a_value_from_the_environment(
    place: str, template: str, monkeypatch: pytest.MonkeyPatch
):
    change = dict(places(template))[place]
    with monkeypatch.context() as patch, pytest.raises(SpecError) as caught:
        patch.setattr(loading.os, "environ", Untouched())
        ReleaseSpec.of_fields({**VALID, **change}, Path("/srv/office"))
    assert SECRET not in str(caught.value)
    told = dict(caught.value.problems)
    assert "is resolved in `source` alone" in told[f"attributes.{place}"]


def test_a_key_takes_no_value_from_the_environment():
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.of_fields({**VALID, "settings": {"{{ env.SECRET }}": 1}, "{{ env.SECRET }}": 2}, Path("/srv"))
    assert SECRET not in str(caught.value) and "is resolved in `source` alone" in str(caught.value)


def test_the_source_takes_it_and_keeps_what_was_written(tmp_path: Path):
    made = ReleaseSpec.of_fields({**VALID, "source": "{{ env.SECRET }}/*.parquet"}, tmp_path)
    assert made.source_pattern == str(tmp_path / SECRET / "*.parquet")
    assert SECRET not in repr(made) + json.dumps(made.as_json())
    for template in TEMPLATES[2:]:
        with pytest.raises(SpecError, match="holds a template other than"):
            ReleaseSpec.of_fields({**VALID, "source": template}, tmp_path)


@pytest.mark.parametrize("field", ["collection", "title", "value", "start", "reports", "owners", "round", "consumers"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_no_field_of_a_collection_takes_a_value_from_the_environment(
    field: str, template: str, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch, pytest.raises(SpecError) as caught:
        patch.setattr(loading.os, "environ", Untouched())
        CollectionSpec.of_fields({field: [{"name": template}] if field == "consumers" else template}, Path("/srv"))
    assert SECRET not in str(caught.value) and "none is resolved here" in str(caught.value)


AROUND = [
    {"post_processing": {"assets": [{"attributes": {"tags": {"x": "{{ env.SECRET }}"}}}]}},
    {"post_processing": {"assets": [{"attributes": {"description": "{{ env('SECRET') }}"}}]}},
    {"post_processing": {"assets": [{"target": "{{ env.SECRET }}", "attributes": {"metadata": {"a": "b"}}}]}},
    {"post_processing": {"assets": [{"attributes": {"metadata": {"{{ env.SECRET }}": "x"}}}]}},
    {"post_processing": {"assets": [{"attributes": {"owners": ["team:{% if env %}a"]}}]}},
    {"post_processing": {"assets": "{{ [{'attributes': {'tags': {'x': env.SECRET}}}] }}"}},
    {"requirements": {"env": ["{{ env.SECRET }}"]}},
]
PYTHON = {"template_vars_module": ".template_vars"}


@pytest.mark.parametrize("around", [*AROUND, PYTHON])
@pytest.mark.parametrize("kind", ["HistogramRelease", "LocalCollection"])
def test_the_command_line_refuses_a_template_around_the_attributes(tmp_path: Path, around: dict[str, Any], kind: str):
    file = tmp_path / "defs.yaml"
    file.write_text(json.dumps({"type": f"dphist_pipeline.{kind}", "attributes": VALID, **around}))
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.load(file) if kind == "HistogramRelease" else load_collection(file)
    assert SECRET not in str(caught.value)
    assert any(what.startswith(("holds a template", "is Python, which only")) for _, what in caught.value.problems)


def test_no_secret_is_published_by_a_release(tmp_path: Path):
    office = Office(tmp_path / "office").opened()
    office.write_spec(title="T {{ env.SECRET }}", owners=["team:{{ env.SECRET }}"])
    for command in ("check", "release"):
        ran = office.run(command, office.folder / "spec.yaml")
        assert ran.code == 1 and SECRET not in ran.out + ran.err
    published = [path for path in (office.store / "public").rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in published)


COLLECTION = {
    **{"collection": "ages", "value": "age", "start": 0, "stop": 10, "protocol": "shp", "reports": "r/*.parquet"},
    "consumers": [{"name": "city", "epsilon": 1, "width": 5}],
}


@pytest.fixture(params=["HistogramRelease", "LocalCollection"])
def component(request: pytest.FixtureRequest) -> tuple[type, dict[str, Any]]:
    pytest.importorskip("dagster")
    import dphist_pipeline
    from dphist_pipeline.integrations.dagster import LocalCollection

    if request.param == "HistogramRelease":
        return dphist_pipeline.HistogramRelease, dict(SPEC)
    return LocalCollection, COLLECTION


def in_a_project(component: type, *documents: dict[str, Any]) -> str:
    """Everything that a Dagster project tells of these documents in one `defs.yaml`, or the error that stops it."""
    from dagster.components.testing.utils import create_defs_folder_sandbox

    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(component_cls=component, defs_path="ours", defs_yaml_contents=documents[0])
        (Path(folder) / "defs.yaml").write_text("\n---\n".join(map(json.dumps, documents)))
        (Path(folder) / "template_vars.py").write_text(
            "import dagster as dg, os\n@dg.template_var\ndef leaked():\n    return os.environ['SECRET']\n"
        )
        try:
            with sandbox.build_all_defs() as definitions:
                return repr([list(definitions.resolve_all_asset_specs()), definitions])
        except Exception as error:
            return chained(error)


def chained(error: BaseException | None) -> str:
    return "" if error is None else f"{error}\n{chained(error.__cause__ or error.__context__)}"


def document(component: tuple[type, dict[str, Any]], **around: Any) -> dict[str, Any]:
    return {"type": f"dphist_pipeline.{component[0].__name__}", "attributes": component[1], **around}


TAGGED = {"post_processing": {"assets": [{"attributes": {"tags": {"seen": "by-everybody"}}}]}}


def test_a_dagster_project_takes_post_processing_without_templates(component: tuple[type, dict[str, Any]]):
    told = in_a_project(component[0], document(component, **TAGGED))
    assert "by-everybody" in told


@pytest.mark.parametrize("around", AROUND)
def test_a_dagster_project_refuses_a_template_around_the_attributes(
    component: tuple[type, dict[str, Any]], around: dict[str, Any]
):
    told = in_a_project(component[0], document(component, **around))
    assert SECRET not in told
    assert "holds a template; outside of `attributes`" in told


def test_a_later_document_of_a_dagster_file_is_looked_at_too(component: tuple[type, dict[str, Any]]):
    field = "release" if "release" in component[1] else "collection"
    second = {**document(component, **AROUND[0]), "attributes": {**component[1], field: "other"}}
    told = in_a_project(component[0], document(component), second)
    assert SECRET not in told and "holds a template; outside of `attributes`" in told


@pytest.mark.parametrize(
    "change",
    [
        {"title": "{{ env.SECRET }}"},
        {"owners": ["team:{{ env.SECRET }}"]},
        {"title": "{{ env('SECRET') }}"},
        {"title": "{{ leaked }}"},
        {"axes": [{"column": "{{ env.SECRET }}", "values": ["{{ env.SECRET }}"], "labels": ["{{ env.SECRET }}"]}]},
        {"axes": [{"column": "x", "name": "{{ env.SECRET }}", "values": ["a"]}]},
        {"value": "{{ env.SECRET }}"},
        {"consumers": [{"name": "{{ env.SECRET }}", "epsilon": 1, "width": 5}]},
    ],
)
def test_a_dagster_project_shows_no_secret_that_attributes_ask_for(
    component: tuple[type, dict[str, Any]], change: dict[str, Any]
):
    told = in_a_project(component[0], document((component[0], {**component[1], **change})))
    assert SECRET not in told and "holds a template" in told
