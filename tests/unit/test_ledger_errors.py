"""Errors of the ledger have templates as messages: what is raised fills them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import dphist_pipeline
from dphist_pipeline.ledger import errors as ledger_errors
from dphist_pipeline.ledger import witness_errors

PACKAGE = Path(dphist_pipeline.__file__).parent
TEMPLATES = {
    name: kind.message
    for name, kind in {**vars(ledger_errors), **vars(witness_errors)}.items()
    if isinstance(kind, type) and issubclass(kind, ledger_errors.LedgerError) and "__init__" not in vars(kind)
}


def found() -> Iterator[tuple[str, set[str | None], str]]:
    """Every call of a class with a template: its name, what it is given by name, and where."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if any(name in text for name in TEMPLATES) else ()
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                name = "NotAllowed" if name == "cls" and path.name == "errors.py" else name
                if name in TEMPLATES:
                    assert not node.args, f"{path}:{node.lineno}"
                    yield name, {keyword.arg for keyword in node.keywords}, f"{path}:{node.lineno}"


@cache  # not as the module is collected, which every process does
def raised() -> list[tuple[str, set[str | None], str]]:
    return list(found())


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_what_is_raised_fills_the_template_of_its_message(name: str) -> None:
    fields = {str(field).partition(".")[0] for _, field, _, _ in Formatter().parse(TEMPLATES[name]) if field}
    assert fields and all(fields <= given for of, given, where in raised() if of == name)


def test_no_error_is_left_that_nothing_raises() -> None:
    assert {name for name, _, _ in raised()} == TEMPLATES.keys()
