"""Specs as YAML of a Dagster project: `dg check yaml` points at mistakes, and variables and loops make releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from fuzzing.spec_seeds import BODIES, COMMON
from jsonschema import Draft202012Validator
from office import SPEC, WARD, Office

from dphist_pipeline import HistogramRelease
from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
]

SPEC_YAML = """\
type: dphist_pipeline.HistogramRelease
attributes:
  release: wards
  source: data/admissions.parquet
  privacy_unit: patient
  max_rows_per_unit: 2
  neighbours: add_remove
  epsilon: 0.5
  account: health
  mechanism: geometric
  axes:
    - column: age
      start: 0
      stop: 100
      width: 25
    - {column: ward, values: [surgery, medicine], other: true}
  period: week
  period_column: admitted_on
  first_period: "2026-01-05"
  schedule: "0 6 * * MON"
  owners: ["team:statistics"]
"""
# What somebody wrote, what it should have been, and the line of it.
MISTAKES = [
    ("epsilom: 0.5", "epsilon: 0.5", 8),
    ("epsilon: 0", "epsilon: 0.5", 8),
    ("", "  account: health\n", 2),
    ("release: Ward-Visits", "release: wards", 3),
    ("max_rows_per_unit: 2.5", "max_rows_per_unit: 2", 6),
    ("neighbours: add", "neighbours: add_remove", 7),
    ("mechanism: geometrik", "mechanism: geometric", 10),
    ("widht: 25", "width: 25", 15),
    ("[surgery, NO]", "[surgery, medicine]", 16),
    ("period: weekly", "period: week", 17),
    ("first_period: 5 January", 'first_period: "2026-01-05"', 19),
    ('schedule: "0 6 * *"', 'schedule: "0 6 * * MON"', 20),
    ("owners: statistics", 'owners: ["team:statistics"]', 21),
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file into a Dagster project, whose folder is the working one."""
    package = f"project_{uuid4().hex}"  # Python imports a module of one name once
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{package}"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def written(text: str, name: str, file: str = "defs.yaml") -> Path:
        folder = tmp_path / package / "defs" / name
        folder.mkdir(parents=True, exist_ok=True)
        for parent in (folder.parent, folder.parents[1]):
            (parent / "__init__.py").touch()
        (folder / file).write_text(text, encoding="utf-8")
        return folder / file

    return written


def test_dg_points_at_the_line_of_each_common_mistake(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dagster_dg_core.check import check_yaml
    from dagster_dg_core.context import DgContext

    project = DgContext.for_project_environment(tmp_path, {})
    assert check_yaml(project, [write(SPEC_YAML, "right").parent], False), capsys.readouterr().out
    for number, (wrong, right, line) in enumerate(MISTAKES):
        assert right in SPEC_YAML
        file = write(SPEC_YAML.replace(right, wrong), f"wrong{number}")
        capsys.readouterr()
        assert not check_yaml(project, [file.parent], False), wrong
        told = [row for row in capsys.readouterr().out.splitlines() if row.startswith(str(file))]
        assert len(told) == 1 + (wrong == "epsilom: 0.5") and any(f"{file}:{line} " in row for row in told), told


def test_loading_tells_the_mistakes_of_all_files_with_their_lines(write: Write) -> None:
    files = [write(SPEC_YAML.replace(right, wrong), f"wrong{line}") for wrong, right, line in MISTAKES[1:5]]
    write(SPEC_YAML, "right")
    told = loading(files[0].parents[1])
    for file, (_, _, line) in zip(files, MISTAKES[1:5], strict=True):
        assert f"{file}: 1 mistake" in told and f"  line {line}, attributes" in told.split(str(file))[1]
    assert "right" not in told.split("mistakes in specs:")[1]


def loading(folder: Path) -> str:
    """What stops a project whose definitions are in this folder."""
    with pytest.raises(ComponentTreeException) as caught:
        dg.load_from_defs_folder(path_within_project=folder.parent)
    return f"{caught.value.__cause__}" or str(caught.value)


def test_the_schema_takes_all_that_the_spec_takes() -> None:
    judge = Draft202012Validator(HistogramRelease.get_model_cls().model_json_schema())
    documented = yaml.safe_load((Path(__file__).parents[2] / "docs/reference/spec.yaml").read_text())["attributes"]
    attributes = [yaml.safe_load(COMMON + body) for body in BODIES] + [SPEC, documented]
    for given in attributes:
        assert [error.message for error in judge.iter_errors(given)] == []
        templates = dict.fromkeys(given, "{{ anything }}")
        assert [error.message for error in judge.iter_errors(templates)] == []


REGIONS = """\
type: dphist_pipeline.HistogramRelease
template_vars_module: .regions
attributes:
  for_each: {region: "{{ regions }}"}
  release: wards_{{ region.code }}
  title: Wards of {{ region.name }}
  source: data/{{ region.code }}.csv
  privacy_unit: patient
  max_rows_per_unit: 3
  neighbours: add_remove
  epsilon: "1/3"
  account: health
  mechanism: geometric
  axes: "{{ axes }}"
  translation: {group: regions, tags: {region: "{{ region.code }}"}}
"""
MODULE = """
import dagster as dg


@dg.template_var
def regions():
    return [{"code": f"r{number}", "name": f"Region {number}"} for number in range(50)]


@dg.template_var
def axes(context):
    return [{"column": "ward", "values": ["1", "2.0", "true"], "other": True}]
"""


def test_a_dozen_lines_make_a_release_for_each_of_fifty_regions(write: Write) -> None:
    write(MODULE, "regions", "regions.py")
    definitions = dg.load_from_defs_folder(path_within_project=write(REGIONS, "regions").parents[2])
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    assert len(specs) == 250 and len(list(definitions.jobs or [])) == 50
    published = specs[dg.AssetKey(["wards_r7", "published"])]
    assert (published.group_name, published.tags["region"]) == ("regions", "r7")
    assert "Wards of Region 7" in str(published.description) and "epsilon 1/3" in str(published.description)


def test_what_a_projects_variable_gives_is_judged_and_the_environment_stays_away(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cr3t")
    write(MODULE.replace('"true"]', "True]"), "regions", "regions.py")
    title = REGIONS.replace("title: Wards of {{ region.name }}", 'title: "{{ env.SECRET }}"')
    told = loading(write(title, "regions").parents[1])
    assert "line 14, attributes.axes[0].values[2]: must be text, but arrived as true: quote it" in told
    assert "line 6, attributes.title: holds a template" in told and "s3cr3t" not in told
    assert "where region" not in told  # as it holds for all of them


COUNTY = {"column": "ward", "values_from": "codes/codes.csv", "values_column": "code", "other": True}


def test_code_lists_of_a_resources_store_are_that_operators_to_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, other = Office(tmp_path / "office").opened(), Office(tmp_path / "other").opened()
    monkeypatch.chdir(office.folder)
    monkeypatch.setenv("DPHIST_STORE", str(other.store))
    (office.folder / "codes").mkdir()
    (office.folder / "codes" / "codes.csv").write_text("code\n01\n02\n")
    attributes: dict[str, Any] = {**SPEC, "axes": [COUNTY, WARD | {"name": "w"}], "store_resource": "office"}

    class OfOffice(HistogramRelease):
        @classmethod
        def store_of(cls, resource: str) -> Store:
            assert resource == "office"
            return Store.open(office.store)

    def problems(component: type[HistogramRelease]) -> str:
        wrong = component.from_attributes_dict(attributes=json.loads(json.dumps(attributes))).wrong
        return str(wrong or "")

    # The default store's operator allows the folder, and has no say.
    assert other.run("ledger", "allow", "--code-lists", office.folder / "codes").code == 0
    assert "when there is no resource `office` yet" in problems(HistogramRelease)
    assert "below a folder that the ledger declares public" in problems(OfOffice)
    assert office.run("ledger", "allow", "--code-lists", "codes", "--store", office.store).code == 0
    assert problems(OfOffice) == "" and "when there is no resource" in problems(HistogramRelease)
    del attributes["store_resource"]
    assert problems(HistogramRelease) == ""
