"""Compiled templates are kept beside their sources, and compiled anew whenever that cannot be trusted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader
from jinja2.compiler import CodeGenerator

from dphist_pipeline.publishing.compiled_templates import KeptBytecode


@pytest.fixture(autouse=True)
def _keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The names of the templates that are compiled, one after the other."""
    names: list[str | None] = []
    visit = CodeGenerator.visit_Template

    def noted(self: CodeGenerator, *given: object) -> None:
        names.append(self.name)
        visit(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(CodeGenerator, "visit_Template", noted)
    return names


def page(folder: Path) -> str:
    settings = folder / "settings.py"
    settings.touch()
    kept = KeptBytecode(folder, settings)
    return Environment(loader=FileSystemLoader(folder), bytecode_cache=kept).get_template("page").render(name="x")


def test_a_template_is_compiled_once(tmp_path: Path, compiled: list[str | None]) -> None:
    (tmp_path / "page").write_text("Hello {{ name }}")
    assert page(tmp_path) == page(tmp_path) == "Hello x"
    assert compiled == ["page"]
    (kept,) = (tmp_path / "__pycache__").iterdir()
    assert sys.implementation.cache_tag in kept.name


def test_changed_text_and_settings_are_compiled_anew(tmp_path: Path, compiled: list[str | None]) -> None:
    (tmp_path / "page").write_text("Hello {{ name }}")
    page(tmp_path)
    (tmp_path / "page").write_text("Bye {{ name }}")
    assert page(tmp_path) == "Bye x"
    (tmp_path / "settings.py").write_text("# others")
    assert page(tmp_path) == "Bye x"
    assert len(compiled) == 3


def test_a_damaged_file_is_compiled_anew(tmp_path: Path, compiled: list[str | None]) -> None:
    (tmp_path / "page").write_text("Hello {{ name }}")
    page(tmp_path)
    (kept,) = (tmp_path / "__pycache__").iterdir()
    for damaged in (b"", kept.read_bytes()[:20], b"something else"):
        kept.write_bytes(damaged)
        assert page(tmp_path) == "Hello x"
    assert len(compiled) == 4


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("Hello {{ name }}")
    (tmp_path / "__pycache__").write_text("a file in its place")
    assert page(tmp_path) == page(tmp_path) == "Hello x"


def test_who_keeps_no_compiled_modules_keeps_no_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "page").write_text("Hello {{ name }}")
    assert page(tmp_path) == "Hello x"
    assert not (tmp_path / "__pycache__").exists()
