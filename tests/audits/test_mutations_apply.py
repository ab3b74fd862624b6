"""Every mutation in the lists still fits the code; `mutations.py` tries them.

`make test` runs the first test, which compiles nothing: who changes a line that a mutation replaces writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from mutation_report import MEASURED, PAGE, VERDICTS, page, summary
from mutations import (
    PROJECT,
    ROOMS,
    Mutation,
    MutationOutdated,
    Part,
    Ran,
    mutated,
    parts,
    run_tests,
    selected,
    survivors,
)
from reached import First, Seen, chosen


@pytest.fixture(scope="module")
def ran_apart() -> Iterator[Callable[..., Ran]]:
    """`run_tests` of a process of its own, which it forks: libraries that other tests loaded here may not bear that."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield lambda *given, **named: pool.submit(run_tests, *given, **named).result()


def test_every_mutation_replaces_text_that_occurs_once_and_names_tests_that_exist() -> None:
    tried = [(part, mutation) for part in parts() for mutation in part.mutations]
    texts = {file: (PROJECT / file).read_text(encoding="utf-8") for file in {part.file for part, _ in tried}}
    times = [(part.file, mutation.old, texts[part.file].count(mutation.old)) for part, mutation in tried]
    assert [str(MutationOutdated(*one)) for one in times if one[2] != 1] == []
    named = {test for part in parts() for test in part.tests}
    assert [test for test in named if not is_there(*test.partition("::")[::2])] == []


def is_there(file: str, test: str) -> bool:
    path = PROJECT / "tests" / file
    return path.is_file() and (not test or f"def {test.partition('[')[0]}(" in path.read_text(encoding="utf-8"))


@pytest.mark.audit
def test_every_mutation_is_python_that_differs_and_none_is_listed_twice() -> None:
    tried = [(part.file, one, mutated(part, one)) for part in parts() for one in part.mutations]
    assert all(text != (PROJECT / file).read_text(encoding="utf-8") for file, _, text in tried)
    assert len({(file, text) for file, _, text in tried}) == len(tried)


@pytest.mark.audit
def test_a_mutation_that_no_longer_fits_says_where_and_what(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("one = 1\ntwo = 1\n")
    for old, times in (("1", 2), ("3", 0)):
        with pytest.raises(MutationOutdated, match=f"code.py: .* occurs {times} times"):
            mutated(Part("code.py", (), ()), Mutation(old, "2", "wrong"), tmp_path)
    with pytest.raises(SyntaxError):
        mutated(Part("code.py", (), ()), Mutation("two = 1", "two = ", "no Python"), tmp_path)


@pytest.mark.audit
def test_a_run_tests_is_named_and_passing_ones_are_not(tmp_path: Path, ran_apart: Callable[..., Ran]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q -ra"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_code.py").write_text("def test_good(): pass\ndef test_bad(): assert 1 == 2\n")
    (tmp_path / "tests" / "test_fine.py").write_text("def test_good(): pass\n")
    (tmp_path / "tests" / "test_long.py").write_text("def test_long():\n    while True: pass\n")
    assert ran_apart(tmp_path, ["test_fine.py"]).failed == ""
    assert ran_apart(tmp_path, ["test_fine.py", "test_code.py"]).failed == "test_code.py::test_bad"
    assert ran_apart(tmp_path, ["test_long.py"], within=1).failed == "no test within 1 seconds"


@pytest.mark.audit
def test_tests_that_reach_a_mutation_run_first_the_quickest_of_a_file_at_its_head(
    tmp_path: Path, ran_apart: Callable[..., Ran]
) -> None:
    called = frozenset({"code.py:one"})
    seen = {
        "tests/a.py::slow": Seen(3, called),
        "tests/a.py::quick": Seen(1, called),
        "tests/b.py::it": Seen(2, called),
    }
    assert chosen(seen, ["b.py", "a.py"], "code.py", "one") == [
        "tests/a.py::quick",
        "tests/a.py::slow",
        "tests/b.py::it",
    ]
    assert chosen(seen, ["a.py::slow"], "code.py", None) == ["tests/a.py::slow"]
    assert chosen(seen, ["a.py"], "code.py", "two") == []
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q -ra"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_code.py").write_text("def test_one(): assert 0\ndef test_two(): assert 0\n")
    first = First(["tests/test_code.py::test_two"])
    assert ran_apart(tmp_path, ["test_code.py"], [first]).failed == "test_code.py::test_two"


@pytest.mark.audit
def test_the_page_of_mutations_shows_the_kept_figures_and_they_are_of_these_lists() -> None:
    held = json.loads((PROJECT / MEASURED).read_text(encoding="utf-8"))
    text = (PROJECT / PAGE).read_text(encoding="utf-8")
    assert page(text, held) == text
    listed = {(part.file, one.old, one.new) for part in selected("") for one in part.mutations}
    assert {(one["file"], one["old"], one["new"]) for one in held["unnoticed"]} <= listed


@pytest.mark.audit
def test_a_run_may_be_of_rooms_or_of_what_survived() -> None:
    sizes = [sum(len(part.mutations) for part in selected("", [room])) for room in ROOMS]
    assert min(sizes) > 0 and sum(sizes) == sum(len(part.mutations) for part in selected(""))
    (part, *_) = selected("", ["reading"])
    name = f"{part.file}: {part.mutations[0].why}"
    asked = [(one.file, one.mutations) for one in selected("", among={name})]
    assert asked == [(part.file, part.mutations[:1])]
    told = {f"{one.file}: {mutation.why}" for one in selected("", among=survivors()) for mutation in one.mutations}
    assert told == survivors()


@pytest.mark.audit
def test_a_summary_counts_every_mutation_once_and_lists_what_no_test_noticed() -> None:
    row = {"file": "a.py", "why": "w", "old": "o", "new": "n", "equivalent": "", "cpu": 2.0, "date": "2026-01-01"}
    late = "no test within 1 seconds"
    rows = [row | {"noticed_by": "test_x"}, row | {"noticed_by": ""}, row | {"noticed_by": late}, None]
    rows.append(row | {"noticed_by": "", "equivalent": "e"})
    rows += [row | {"noticed_by": test, "before": True} for test in ("test_x", "")]  # of another version
    held = summary(rows, ["a.py"] * 7)
    assert held["files"] == {"a.py": dict.fromkeys([*VERDICTS, "not tried"], 1)}
    assert [one["verdict"] for one in held["unnoticed"]] == [
        *("survived", "not within the limit", "equivalent", "survived before"),
    ]
