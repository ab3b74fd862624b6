"""Docstrings say what a caller cannot see: the shape of every array, and never only what a name says already."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("dphist_pipeline", "dagster_project") for path in (PROJECT / folder).rglob("*.py")]
# Where users and researchers read the docstrings themselves, an entry may be short.
FOR_RESEARCHERS = ("mechanisms", "evaluation", "groups", "trees", "boxes", "tables", "cells", "whole_counts", "solvers")
PUBLIC_INTERFACE = {"releases.py", "contributor.py", "polars.py", "duckdb.py", "doors.py"}
FOLDERS = sorted({str(path.parent.relative_to(PROJECT)) for path in FILES})


# Annotations of arrays, and the names that modules give them.
ARRAY = re.compile(r"\b(NDArray|Reals|Numbers|Counts|Flags)\b")
# An entry of at most so many words says something if it holds a number, a bound, a unit, an order or a condition.
FEW_WORDS = 6
SAYS = re.compile(
    r"\d|\b(shape|rows|records|units?|squared|probability|variances?|deviations?|percent|share|nan|null|None|True|False|JSON|UTC"
    r"|rising|falling|sorted|ascending|order|distinct|positions|relative|absolute|letters|empty|whole|default"
    r"|latest|above|below|least|most|before|after|inclusive|exclusive|private|public|synthetic|verified|glob"
    r"|may|never|no|not|if|unless|only|one|both|each|all|with|without|which|by|per|what|told|called|same)\b"
)


def entries(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """The entries of a function's `Args:`, by the names that they stand for."""
    _, _, told = (ast.get_docstring(function) or "").partition("\nArgs:\n")
    found = re.findall(r"^    ([\w*][\w*, ]*): (.*(?:\n {5,}.*)*)", told.partition("\n\n")[0], re.MULTILINE)
    return {names: " ".join(text.split()) for names, text in found}


def untold(tree: ast.Module) -> list[str]:
    """The arrays that public functions take and no `Args:` names: their shape cannot be seen."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        # Not those of a lambda that is a default.
        given = [argument for argument in ast.iter_child_nodes(node.args) if isinstance(argument, ast.arg)]
        arrays = [one.arg for one in given if one.annotation and ARRAY.search(ast.unparse(one.annotation))]
        names = {name.lstrip("*") for line in entries(node) for name in line.split(", ")}
        found += [f"{node.name}: {name}" for name in arrays if name not in names]
    return found


def says_nothing(text: str) -> bool:
    """Whether an entry adds nothing to the name and the type of an argument."""
    pointer = re.fullmatch(r"(as )?(see|as for|as in) \S+", text) is not None
    return pointer or (len(text.split()) <= FEW_WORDS and SAYS.search(text) is None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_public_functions_say_what_shape_their_arrays_have(folder: str) -> None:
    files = (PROJECT / folder).glob("*.py")
    assert [text for path in files for text in untold(ast.parse(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if not folder.endswith(FOR_RESEARCHERS)])
def test_no_entry_says_only_what_its_name_says(folder: str) -> None:
    found = []
    for path in (PROJECT / folder).glob("*.py"):
        if path.name in PUBLIC_INTERFACE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found += [
                    f"{node.name}: {names}: {text}" for names, text in entries(node).items() if says_nothing(text)
                ]
    assert found == []


# Errors of packages that are imported late.
OF_OTHERS = {"ClickException", "BadParameter"}
RAISES = re.compile(r"^( +)Raises:\n((?:\1 {4}.*\n)+)", re.MULTILINE)


def raised(code: str) -> list[str]:
    """The exceptions that `Raises:` of a module's docstrings name."""
    lines = [
        line for indent, told in RAISES.findall(code) for line in re.findall(rf"^{indent} {{4}}(\w.*)", told, re.M)
    ]
    named = [found[1] for line in lines if (found := re.match(r"([\w.]+(?:, [\w.]+)*):(?:\s|$)", line))]
    return [name.rpartition(".")[2] for names in named for name in names.split(", ")]


def test_errors_that_docstrings_name_are_there_to_be_caught() -> None:
    """One that became a code of another error is named by that error."""
    code = {path: path.read_text(encoding="utf-8") for path in FILES}
    known = {name for text in code.values() for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)}
    known |= set(dir(builtins)) | OF_OTHERS
    told = [(path.name, name) for path, text in code.items() for name in raised(text)]
    assert len(told) > 250
    assert [one for one in told if one[1] not in known] == []


def test_every_error_that_a_docstring_names_is_found() -> None:
    told = ["def f():", '    """F.', "", "    Raises:", "        One, a.Two: if so,", "            Then: no."]
    code = "\n".join([*told, "        Three: `x`.", '    """', ""])
    assert raised(code) == ["One", "Two", "Three"]


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("def sums(cells: Reals): ...", ["sums: cells"]),
        ("def sums(cells: Reals):\n    '''Sums.\n\n    Args:\n        cells: shape (n,).\n    '''", []),
        ("def sums(low: Reals, high: Reals):\n    '''Sums.\n\n    Args:\n        low, high: in rows.\n    '''", []),
        ("def sums(*cells: NDArray[int]):\n    '''Sums.\n\n    Args:\n        *cells: in rows.\n    '''", []),
        ("def sums(cells: Reals):\n    '''Sums.\n\n    Raises:\n        cells: never.\n    '''", ["sums: cells"]),
        ("def sums(scale: float): ...", []),
        ("def _sums(cells: Reals): ...", []),
    ],
)
def test_an_array_that_is_not_told_would_be_noticed(code: str, missing: list[str]) -> None:
    assert untold(ast.parse(code)) == missing


def test_what_says_nothing_would_be_noticed() -> None:
    assert [says_nothing(text) for text in ("checked.", "its name.", "see `load_spec`.", "of the release.")] == [
        True
    ] * 4
    assert not any(says_nothing(text) for text in ("shape (n,).", "1 to 2000 characters.", "private.", "None for all."))
