"""A module or folder whose name begins with `_` is imported by its own folder alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dphist_pipeline

PACKAGE = Path(dphist_pipeline.__file__).parent


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name of the package that code imports, with its modules before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def private_of_others(tree: ast.AST, folder: str) -> list[str]:
    """What code below a folder of the package imports of private modules or folders of another one."""
    others = [name.split(".") for name in imported(tree) if name.startswith("dphist_pipeline.")]
    return [".".join(name) for name in others if name[1] != folder and any(part.startswith("_") for part in name[1:])]


@pytest.mark.slow
def test_what_is_private_to_a_folder_is_imported_by_it_alone() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0]
        found += [(path.name, name) for name in private_of_others(ast.parse(path.read_text("utf-8")), folder)]
    assert found == []


def test_a_private_module_of_another_folder_would_be_noticed() -> None:
    lines = ("from dphist_pipeline.answering._macros import MACROS", "import dphist_pipeline.answering._macros.MACROS")
    for line in lines:
        assert private_of_others(ast.parse(line), "publishing") and not private_of_others(ast.parse(line), "answering")
