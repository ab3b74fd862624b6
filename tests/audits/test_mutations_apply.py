"""Every mutation in the lists still fits the code; `mutations.py` tries them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import PROJECT, Mutation, MutationOutdated, Part, failing_test, mutated, selected

pytestmark = pytest.mark.audit


def test_every_mutation_replaces_text_that_occurs_once_and_names_tests_that_exist() -> None:
    tried = [(part, mutation) for part in selected("") for mutation in part.mutations]
    assert len(tried) >= 200
    for part, mutation in tried:
        assert mutated(part, mutation) != (PROJECT / part.file).read_text(encoding="utf-8")
    assert all((PROJECT / "tests" / test.partition("::")[0]).is_file() for part, _ in tried for test in part.tests)


def test_a_mutation_that_no_longer_fits_says_where_and_what(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("one = 1\ntwo = 1\n")
    for old, times in (("1", 2), ("3", 0)):
        with pytest.raises(MutationOutdated, match=f"code.py: .* occurs {times} times"):
            mutated(Part("code.py", (), ()), Mutation(old, "2", "wrong"), tmp_path)
    with pytest.raises(SyntaxError):
        mutated(Part("code.py", (), ()), Mutation("two = 1", "two = ", "no Python"), tmp_path)


def test_a_failing_test_is_named_and_passing_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q -ra"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_code.py").write_text("def test_good(): pass\ndef test_bad(): assert 1 == 2\n")
    (tmp_path / "tests" / "test_fine.py").write_text("def test_good(): pass\n")
    assert failing_test(tmp_path, ["test_fine.py"]) == ""
    assert failing_test(tmp_path, ["test_fine.py", "test_code.py"]) == "test_code.py::test_bad"
