"""Code lists that an attacker would name: to read records, the store, or any file of the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attacked import VALID
from declared_lists import below
from office import Office

from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing.release_spec import ReleaseSpec, load_spec, spec_from_attributes
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec import code_list_files
from dphist_pipeline.spec.code_list_files import CodeListFolders, Decided
from dphist_pipeline.spec.mistakes import SpecError

CANARY = "c4n4ry"
LIST = f"code\n{CANARY}1\n{CANARY}2\n"
AXIS = {"column": "x", "values_column": "code"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a public folder of code lists, records outside it, and a store."""
    for folder in ("codes", "data", "store"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "list.csv").write_text(LIST)
    return tmp_path


def declared(project: Path, name: str, decided: Decided | None) -> ReleaseSpec:
    return spec_from_attributes({**VALID, "axes": [{**AXIS, "values_from": name}]}, project, code_lists=decided)


def refused(project: Path, name: str, decided: Decided | None) -> str:
    with pytest.raises(SpecError) as caught:
        declared(project, name, decided)
    message = str(caught.value)
    assert CANARY not in message and "dphist ledger allow --code-lists FOLDER" in message
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return message.replace(name, "NAME")


def test_a_list_below_a_declared_folder_is_read(project: Path):
    (project / "codes" / "deep").mkdir()
    (project / "codes" / "deep" / "link.csv").symlink_to("../list.csv")
    for name in ("codes/list.csv", "codes/../codes/list.csv", str(project / "codes/list.csv"), "codes/deep/link.csv"):
        assert declared(project, name, below(project / "codes")).domain.cells == 2
    (project / "link").symlink_to("codes")
    assert declared(project, "codes/list.csv", below(project / "link")).domain.cells == 2


OUTSIDE = ["data/list.csv", "store/list.csv", "../list.csv", "codes/../data/list.csv", "codes2/list.csv", "list.csv"]


@pytest.mark.parametrize(
    "name", [*OUTSIDE, "codes/none.csv", "none.csv", "codes/folder.csv", "/etc/none.csv", "a\0.csv"]
)
def test_no_message_tells_a_file_that_is_there_from_one_that_is_not(project: Path, name: str):
    (project / "codes" / "folder.csv").mkdir()
    (project / "codes2").mkdir()
    (project / "codes2" / "list.csv").write_text(LIST)
    missing = refused(project, "nowhere.csv", below(project / "codes"))
    if "\0" not in name:
        assert refused(project, name, below(project / "codes")) == missing
        assert refused(project, str(project / name), below(project / "codes")) == missing
    with pytest.raises(SpecError):
        declared(project, name, below(project / "codes"))


def test_without_a_decision_no_list_is_read(project: Path, tmp_path: Path):
    missing = refused(project, "nowhere.csv", None)
    assert refused(project, "codes/list.csv", None) == missing
    assert refused(project, "codes/list.csv", below()) == missing
    assert refused(project, "codes/list.csv", below(project / "nowhere")) == missing
    spec = {**VALID, "axes": [{**AXIS, "values_from": "codes/list.csv"}]}
    (project / "pyproject.toml").touch()
    (project / "defs.yaml").write_text(f"type: dphist_pipeline.HistogramRelease\nattributes: {json.dumps(spec)}\n")
    with pytest.raises(SpecError, match="is no file below a folder"):
        load_spec(project / "defs.yaml")
    assert load_spec(project / "defs.yaml", below(project / "codes")).domain.cells == 2


def test_a_link_out_of_a_declared_folder_is_followed_before_it_is_judged(project: Path):
    missing = refused(project, "codes/nowhere.csv", below(project / "codes"))
    (project / "codes" / "link.csv").symlink_to(project / "data" / "list.csv")
    (project / "codes" / "folder").symlink_to(project / "data")
    (project / "codes" / "loop.csv").symlink_to("loop.csv")
    for name in ("codes/link.csv", "codes/folder/list.csv", "codes/loop.csv"):
        assert refused(project, name, below(project / "codes")) == missing


def test_what_is_never_a_list_is_not_opened_even_below_a_declared_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    records = project / "codes" / "list.csv"
    (project / "codes" / "link.csv").symlink_to("list.csv")
    asked: list[Path] = []

    def forbidden(path: Path) -> bool:
        asked.append(path)
        return path == records

    def opened(*given: object) -> int:
        raise AssertionError("it was opened")

    monkeypatch.setattr(os, "open", opened)
    for name in ("codes/list.csv", "codes/link.csv"):
        refused(project, name, lambda: CodeListFolders((project,), forbidden))
    assert asked == [records, records]


@pytest.mark.parametrize("descriptors", [True, False])
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_that_is_put_in_after_the_judgement_is_not_followed(
    project: Path, monkeypatch: pytest.MonkeyPatch, descriptors: bool, swapped: str
):
    (project / "codes" / "deep").mkdir()
    (project / "codes" / "deep" / "list.csv").write_text("code\nharmless\n")
    (project / "data" / "list.csv").write_text(LIST)
    if not descriptors:
        monkeypatch.setattr(code_list_files, "_DESCRIPTORS", project / "nowhere")

    def swap(path: Path) -> bool:
        """The last thing that is asked before the file is opened."""
        if swapped == "file":
            path.unlink()
            path.symlink_to(project / "data" / "list.csv")
        else:
            path.parent.rename(project / "codes" / "moved")
            path.parent.symlink_to(project / "data")
        return False

    refused(project, "codes/deep/list.csv", lambda: CodeListFolders((project / "codes",), swap))


def test_a_pipe_is_no_list_and_is_not_waited_for(project: Path):
    os.mkfifo(project / "codes" / "pipe.csv")
    refused(project, "codes/pipe.csv", below(project / "codes"))


WRONG: list[Callable[[str], str]] = [
    lambda rows: "code\n" + "".join(f"{row}\n{row}\n" for row in rows.split()),
    lambda rows: "code\n" + "".join(f"{row}\n{row.upper()}\n" for row in rows.split()),
    lambda rows: "code\n" + rows.replace("1", "<b>"),
    lambda rows: "code\n" + rows.replace("1", '"x'),
    lambda rows: "code\n" + rows.replace("1", "x" * 300),
    lambda rows: rows,
    lambda rows: f"{rows}code\n",
    lambda rows: f"code\n{rows},\0\n",
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_mistake_in_a_list_tells_nothing_of_what_it_holds(project: Path, wrong: Callable[[str], str]):
    rows = "".join(f"{CANARY}{number}1\n" for number in range(731))
    (project / "codes" / "list.csv").write_text(wrong(rows))
    with pytest.raises(SpecError) as caught:
        declared(project, "codes/list.csv", below(project / "codes"))
    message = str(caught.value)
    assert CANARY not in message.lower()
    assert not any(count in message for count in ("731", "730", "1462", "732", "733"))


@pytest.mark.parametrize("command", ["check", "release"])
def test_the_records_of_another_release_are_not_published_as_categories(tmp_path: Path, command: str):
    office = Office(tmp_path / "office").opened()
    (office.folder / "adm.csv").write_text("visit,patient,ward\nv1,c4n4ry-ann,surgery\nv2,c4n4ry-bob,medicine\n")
    taken = {
        "column": "ward",
        "name": "x",
        "values_from": "adm.csv",
        "values_column": "visit",
        "label_column": "patient",
    }
    office.write_spec(axes=[{**taken, "levels": ["ward"]}], epsilon="0.000001")
    ran = office.run(command, office.folder / "spec.yaml", *(["--explain"] if command == "check" else []))
    assert ran.code == 1 and "is no file below a folder" in ran.err and CANARY not in ran.out + ran.err
    assert not list((office.store / "public").rglob("*.parquet"))


def test_a_folder_with_the_store_in_it_or_in_the_store_is_not_declared_public(office: Office):
    office.opened()
    before = office.entries()
    for folder in (office.folder, office.store / "public"):
        ran = office.run("ledger", "allow", "--code-lists", folder, "--reason", "codes")
        assert ran.code == 1 and "holds the store, or lies in it" in ran.err
    assert office.entries() == before


def test_records_in_a_folder_that_was_declared_public_are_no_source(office: Office):
    office.opened()
    (office.folder / "codes").mkdir()
    office.write_records(name="codes/records.parquet")
    assert office.run("ledger", "allow", "--code-lists", "codes", "--reason", "codes").code == 0
    before = office.entries()
    ran = office.run("ledger", "allow", "health", "--source", "codes/*.parquet")
    assert ran.code == 1 and "has files in codes, a folder that was declared public" in ran.err
    assert office.entries() == before


def test_a_file_of_the_store_is_no_code_list_though_its_folder_was_declared(office: Office):
    office.opened()
    (office.store / "list.csv").write_text(LIST)
    with office.witnessed():
        folder = {"code_lists": {"name": "office", "folder": str(office.folder)}}
        Store.open(office.store).ledger().allow(EVERYWHERE, folder, Operator.load(), "codes")
    office.write_spec(axes=[{"column": "ward", "values_from": "store/list.csv", "values_column": "code"}])
    ran = office.run("check", "spec.yaml", "--explain")
    assert ran.code == 1 and "is no file below a folder" in ran.err and CANARY not in ran.out + ran.err
    (office.folder / "list.csv").write_text(LIST)
    office.write_spec(axes=[{"column": "ward", "values_from": "list.csv", "values_column": "code"}])
    assert office.run("check", "spec.yaml", "--explain").code == 0, "a file beside the store is one"


def test_where_open_files_have_no_path_a_list_is_read_all_the_same(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(code_list_files, "_DESCRIPTORS", project / "nowhere")
    assert declared(project, "codes/list.csv", below(project / "codes")).domain.cells == 2
