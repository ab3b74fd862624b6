"""Errors of the ledger have templates as messages: what is raised fills them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import dphist_pipeline
from dphist_pipeline.ledger import errors

PACKAGE = Path(dphist_pipeline.__file__).parent
# Errors whose class gives their code.
OWN_CLASS = {
    name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.LedgerError) and "__init__" not in vars(kind)
    if name != "LedgerBusy"
}
BY_CODE = {"LedgerError", "LedgerBusy"}


def found() -> Iterator[tuple[str, set[str | None]]]:
    """Every call that makes an error of the ledger: its code, and what it is given by name."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if any(name in text for name in {*OWN_CLASS, *BY_CODE}) else ()
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in OWN_CLASS or name in BY_CODE:
                    [code] = [ast.literal_eval(word) for word in node.args] or [OWN_CLASS.get(name)]
                    yield str(code), {keyword.arg for keyword in node.keywords}


@cache  # not as the module is collected, which every process does
def raised() -> list[tuple[str, set[str | None]]]:
    return list(found())


@pytest.mark.parametrize("code", sorted(errors.MESSAGES))
def test_what_is_raised_fills_the_template_of_its_message(code: str) -> None:
    fields = {str(field).partition(".")[0] for _, field, _, _ in Formatter().parse(errors.MESSAGES[code]) if field}
    assert fields and all(fields <= given for of, given in raised() if of == code)


def test_no_message_is_left_that_nothing_raises_and_no_code_is_misspelt() -> None:
    assert {code for code, given in raised() if "problem" not in given} <= errors.MESSAGES.keys()
    assert errors.MESSAGES.keys() <= {code for code, _ in raised()}
