"""How to install the program is told in a way that is true: no public index of packages has it, so no text asks one."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from bundle.__main__ import PARTS
from dphist_pipeline.errors import IN_THE_ARCHIVE

PROJECT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
# A requirement in `pyproject.toml` is met by what is installed; a path in a checkout or the archive may hold the name.
FROM_AN_INDEX = re.compile(r"\binstall\b[^\n;|]*[\s'\"]dphist[-_]pipeline\b(?![-\w]*\.whl)|dphist[-_]pipeline\[")


def texts() -> list[tuple[str, str]]:
    """Every file of the repository that is text, tests and lists of requirements apart."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith("tests/")]
    read = [(name, (PROJECT / name).read_bytes()) for name in names if Path(name).name != "pyproject.toml"]
    return [(name, content.decode("utf-8", "ignore")) for name, content in read if b"\0" not in content[:1000]]


def test_no_text_asks_an_index_for_our_package() -> None:
    found = [f"{name}: {told[0]}" for name, text in texts() for told in FROM_AN_INDEX.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install dphist-pipeline",
        "pip install -c constraints.txt 'dphist-pipeline[bucket]'",
        "needs dphist-pipeline[learn]",
        "pip install --upgrade dphist_pipeline",
    ],
)
def test_a_text_that_asks_one_would_be_noticed(text: str) -> None:
    assert FROM_AN_INDEX.search(text)


@pytest.mark.slow
def test_every_extra_that_a_message_names_is_there() -> None:
    files = (PROJECT / "dphist_pipeline").rglob("*.py")
    calls = [
        node
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "how_to_install"
    ]
    named = {ast.literal_eval(argument) for call in calls for argument in call.args}
    assert {"export", "learn", "postgresql", "bucket"} <= named <= EXTRAS.keys()


def test_messages_know_which_extras_the_archive_has() -> None:
    assert set(PARTS["office"]) == IN_THE_ARCHIVE
