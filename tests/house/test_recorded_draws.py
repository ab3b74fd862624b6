"""No test is a lottery: draws are recorded, and what draws really bounds its chance to fail."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numpy as np
import pytest
from recorded_draws import MOST, RECORDED

from dphist_pipeline.confidential import cube
from dphist_pipeline.random_words import random_words

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shared() -> int:
    return int(random_words(1)[0])


def test_draws_follow_from_the_name_of_a_test(request: pytest.FixtureRequest) -> None:
    first, key = random_words(4), cube.secrets.token_bytes(8)  # type: ignore[attr-defined]
    RECORDED.start(request.node.nodeid)
    assert np.array_equal(first, random_words(4)) and key == RECORDED(8)
    assert not np.array_equal(first, random_words(4))
    assert first[0] == 4999826746502652623  # in every run


def test_a_fixture_that_tests_share_draws_the_same_whoever_asks_first(shared: int) -> None:
    assert shared == 10624209808185627083  # in every run


@pytest.mark.draws("uniform words: two keys of 320 bits are equal", 2.0**-320)
def test_a_test_that_says_so_draws_from_the_operating_system(request: pytest.FixtureRequest) -> None:
    drawn = random_words(4)
    RECORDED.start(request.node.nodeid)
    assert not np.array_equal(drawn, random_words(4))
    assert RECORDED.process == os.getpid()


def test_whoever_draws_really_names_a_law_and_a_bound() -> None:
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "draws":
                law, bound = node.args
                assert isinstance(law, ast.Constant) and len(str(law.value)) > 10, (path, node.lineno)
                assert 0 <= eval(ast.unparse(bound)) <= MOST, (path, node.lineno)
