"""The suite itself: it tries the program as shipped, and every test that it leaves out or keeps is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from processor_seconds import MOST_KEPT, kept_tests, slow_tests

TESTS = Path(__file__).parents[1]
PARTS = {"catalogue", "pictures"}
RELEASES = re.compile(r"\breleased?\(|\"release\"|\bpublish\(|materializ|\brehears")


def stand_ins() -> dict[Path, ast.Call]:
    """The call of the marker `stand_in` of each module that has one."""
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    calls = {
        path: node
        for path, text in texts.items()
        if "stand_in" in text  # to parse all of them takes two seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stand_in"
    }
    return calls


def test_a_stand_in_says_what_and_why_and_few_modules_have_one() -> None:
    found = stand_ins()
    for path, call in found.items():
        parts = {argument.value for argument in call.args if isinstance(argument, ast.Constant)}
        why = [keyword.value for keyword in call.keywords if keyword.arg == "why"]
        assert parts and parts <= PARTS and len(parts) == len(call.args), path
        assert why and isinstance(why[0], ast.Constant) and len(str(why[0].value)) > 10, path
    releasing = {path for path in TESTS.rglob("test_*.py") if RELEASES.search(path.read_text(encoding="utf-8"))}
    assert found.keys() <= releasing
    assert 4 * len(found) <= len(releasing), (len(found), len(releasing))


def test_what_is_tried_does_not_depend_on_the_words_or_the_name_of_a_test_file() -> None:
    conftest = (TESTS / "conftest.py").read_text(encoding="utf-8")
    assert not re.search(r"read_text|re\.search|\.path\.", conftest)
    assert "fsync" not in conftest.replace("fence, fsync,", "")


def test_tests_that_are_left_out_or_kept_are_there() -> None:
    kept = kept_tests()
    assert all(is_there(name) for name in (*slow_tests(), *kept)), "a test of these lists was renamed or deleted"
    assert len(kept) <= MOST_KEPT and all(len(promise) > 10 for promise in kept.values())
    assert not slow_tests() & kept.keys()


def is_there(name: str) -> bool:
    file, _, test = name.partition("[")[0].partition("::")
    path = TESTS.parent / file
    return path.is_file() and f"def {test}(" in path.read_text(encoding="utf-8")


def test_no_two_test_files_have_one_name() -> None:
    # pytest imports them by it: with two of them a whole run would collect nothing.
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
