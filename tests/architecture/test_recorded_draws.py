"""No lottery: a test's draws are recorded, or its marker says by which law and how seldom it fails by chance."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from recorded_draws import law_and_bound

pytest_plugins = ["pytester"]

TESTS = Path(__file__).resolve().parents[1]
# A module of `confidential` that draws on its own; a test by examples, a fixture, a plain test that write their draws.
INNER = """
import os, types
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from dphist_pipeline.base.random_words import random_words

room = types.ModuleType("dphist_pipeline.confidential.other")
exec("import os, secrets\\ndef keys(): return os.urandom(8), secrets.token_bytes(8)", room.__dict__)

def say(who, words):
    with open("said", "a") as said:
        print(who, *words, file=said)

@pytest.fixture(scope="module")
def shared():
    return random_words(2)

def test_one(shared):
    say("one", random_words(2))
    say("shared", shared)

def test_two(shared):
    say("two", random_words(2))
    say("shared", shared)

@settings(max_examples=2, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(strategies.integers(0, 1))
def test_examples(tmp_path, number):
    say(f"example {number}", random_words(2))

def test_reaches_the_source():
    room.keys()

def test_other_ids_are_real():
    say("id", [os.urandom.__wrapped__(8).hex()])
"""
MARKED = """
@pytest.mark.draws("uniform words, 1e-12")
def test_marked():
    room.keys()
    say("marked", random_words(2))
"""


def inner_run(pytester: pytest.Pytester, *chosen: str, text: str = INNER + MARKED) -> pytest.RunResult:
    pytester.makepyfile(test_inner=text)
    asked = chosen or ("test_inner.py",)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "recorded_draws", *asked)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *filter(None, sys.path)]))


def said(pytester: pytest.Pytester) -> list[str]:
    return (pytester.path / "said").read_text().splitlines()


def test_a_test_without_marker_that_reaches_the_source_of_noise_fails(pytester: pytest.Pytester) -> None:
    result = inner_run(pytester)
    result.assert_outcomes(passed=5, failed=1)
    told = "\n".join(result.outlines)
    assert "dphist_pipeline.confidential.other asked the operating system for random bytes" in told
    assert 'mark the test @pytest.mark.draws("LAW, BOUND")' in told


@pytest.mark.slow
def test_draws_are_the_same_in_every_run_and_order_and_those_of_marked_tests_are_not(pytester: pytest.Pytester) -> None:
    inner_run(pytester)
    first = said(pytester)
    (pytester.path / "said").unlink()
    names = ("marked", "examples", "two", "one")
    inner_run(pytester, *[f"test_inner.py::test_{name}" for name in names])
    again = said(pytester)
    assert again[0].startswith("marked") and again[-1].startswith("shared")  # the other way round

    def recorded(lines: list[str]) -> set[str]:
        return {line for line in lines if not line.startswith(("marked", "id"))}

    assert recorded(first) == recorded(again) and len(recorded(again)) == 5
    assert not {*first} & {line for line in again if line.startswith("marked")}
    assert len({line.split(maxsplit=1)[1] for line in first if not line.startswith(("shared", "example"))}) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "marker",
    ["two-sided geometric", "1e-9", "two-sided geometric, 1e-6", "two-sided geometric, 0", "binomial, few", ""],
)
def test_a_marker_without_law_or_with_a_bound_that_is_too_large_is_refused(
    marker: str, pytester: pytest.Pytester
) -> None:
    with pytest.raises(ValueError, match="law"):
        law_and_bound(marker)
    if marker.endswith("1e-6"):
        result = inner_run(pytester, text=(INNER + MARKED).replace("uniform words, 1e-12", marker))
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "bound of at most 1e-07" in "\n".join([*result.errlines, *result.outlines])


@pytest.mark.slow
def test_no_generator_of_a_test_starts_from_a_seed_that_nobody_recorded() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    calls = [
        (path.name, node)
        for path, text in texts.items()
        if "default_rng" in text  # to parse all of them takes two seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("random.default_rng")
    ]
    assert calls and [(name, call.lineno) for name, call in calls if not call.args] == []
