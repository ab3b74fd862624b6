"""Every mutation in the lists still fits the code; `mutations.py` tries them.

`make test` runs the first test, which compiles nothing: who changes a line that a mutation replaces writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutation_report import MEASURED, PAGE, page
from mutations import (
    PROJECT,
    Mutation,
    MutationOutdated,
    Part,
    mutated,
    parts,
    selected,
)


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
def test_the_page_of_mutations_shows_the_kept_figures_and_they_are_of_these_lists() -> None:
    held = json.loads((PROJECT / MEASURED).read_text(encoding="utf-8"))
    text = (PROJECT / PAGE).read_text(encoding="utf-8")
    assert page(text, held) == text
    listed = {(part.file, one.old, one.new) for part in selected("") for one in part.mutations}
    assert {(one["file"], one["old"], one["new"]) for one in held["unnoticed"]} <= listed
