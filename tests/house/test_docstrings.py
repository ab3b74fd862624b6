"""Docstrings of public functions say of every argument what it is: its shape, its unit, where it comes from."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("dphist_pipeline", "dagster_project") for path in (PROJECT / folder).rglob("*.py")]
FOLDERS = sorted({str(path.parent.relative_to(PROJECT)) for path in FILES})


def is_command(function: ast.FunctionDef) -> bool:
    """Whether a function is a command: its parameters are options, whose help says what they are."""
    written = [ast.unparse(argument.annotation) for argument in function.args.args if argument.annotation]
    return any("typer." in text or text.endswith(("Option", "Argument")) for text in written)


def untold(tree: ast.Module) -> list[str]:
    """The arguments of public functions, commands apart, that no `Args:` names."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or is_command(node):
            continue
        # Not those of a lambda that is a default.
        given = [argument.arg for argument in ast.iter_child_nodes(node.args) if isinstance(argument, ast.arg)]
        _, _, told = (ast.get_docstring(node) or "").partition("\nArgs:\n")
        lines = re.findall(r"^    ([\w*][\w*, ]*):", told.partition("\n\n")[0], re.MULTILINE)
        names = {name.lstrip("*") for line in lines for name in line.split(", ")}
        found += [f"{node.name}: {name}" for name in given if name not in names]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_public_functions_say_what_their_arguments_are(folder: str) -> None:
    files = (PROJECT / folder).glob("*.py")
    assert [text for path in files for text in untold(ast.parse(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("def sums(cells): ...", ["sums: cells"]),
        ("def sums(cells, *, scale):\n    '''Sums.\n\n    Args:\n        cells: shape (n,).\n    '''", ["sums: scale"]),
        ("def sums(low, high):\n    '''Sums.\n\n    Args:\n        low, high: in rows.\n    '''", []),
        ("def sums(*cells):\n    '''Sums.\n\n    Args:\n        *cells: in rows.\n    '''", []),
        ("def sums(cells):\n    '''Sums.\n\n    Raises:\n        cells: never.\n    '''", ["sums: cells"]),
        ("def _sums(cells): ...", []),
        ("def show(store: StoreOption = None): ...", []),
        ("def show(rows: Annotated[int, typer.Option(help='How many.')] = 1): ...", []),
    ],
)
def test_an_argument_that_is_not_told_would_be_noticed(code: str, missing: list[str]) -> None:
    assert untold(ast.parse(code)) == missing
