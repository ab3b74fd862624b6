"""The tree of errors: every error stands below a branch, and one that has no class of its own has a code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dphist_pipeline
from dphist_pipeline.errors import AfterCharge, DphistError, Halted, Refused, TryAgain

PACKAGE = Path(dphist_pipeline.__file__).parent
BRANCHES = {kind.__name__ for kind in (AfterCharge, Halted, Refused, TryAgain)}
# What a broken rule says becomes part of a `LedgerAltered`, and leaves its file in no other way.
BESIDE = {"AfterCharge", "Halted", "Refused", "_BrokenRule"}


def beside_the_branches(tree: ast.AST) -> list[str]:
    """Classes right below `DphistError`."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [kind.name for kind in classes if "DphistError" in map(ast.unparse, kind.bases) and kind.name not in BESIDE]


def without_a_code(tree: ast.AST) -> list[str]:
    """Errors made of a branch, or of `DphistError`, that programs could not tell from others."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in {*BRANCHES, "DphistError"}]
    return [ast.unparse(call) for call in made if "code" not in {word.arg for word in call.keywords}]


def test_every_error_stands_below_a_branch_and_has_a_code() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    assert [name for tree in trees for name in (*beside_the_branches(tree), *without_a_code(tree))] == []


@pytest.mark.parametrize("line", ["class Mine(DphistError): pass", "raise Refused('no')", "raise DphistError('no')"])
def test_an_error_beside_the_tree_would_be_noticed(line: str) -> None:
    tree = ast.parse(line)
    assert beside_the_branches(tree) or without_a_code(tree)


def test_only_try_again_says_that_the_same_call_may_be_tried_again() -> None:
    assert [kind.try_again for kind in (DphistError, Refused, AfterCharge, Halted, TryAgain)] == [False] * 4 + [True]
