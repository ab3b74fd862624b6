"""Every error that a docstring names exists."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("dphist_pipeline", "dagster_project") for path in (PROJECT / folder).rglob("*.py")]
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
