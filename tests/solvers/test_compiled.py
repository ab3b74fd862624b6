"""What Numba keeps on disk is used for the sources that it was made of, and for no others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dphist_pipeline.solvers import _compiled
from dphist_pipeline.solvers.trees import tree_consistency

CALLER = """
from dphist_pipeline.solvers._compiled import compile_function
from callee import step

@compile_function
def twice(number):
    return 2 * step(number)
"""
CALLEE = """
from dphist_pipeline.solvers._compiled import compile_function

@compile_function
def step(number):
    return number + {more}
"""


def test_what_is_kept_is_named_by_all_sources() -> None:
    kept = tree_consistency._downwards._cache._cache_file._index_name  # type: ignore[attr-defined]
    assert _compiled.digest(_compiled.SOLVERS) in kept


@pytest.mark.parametrize("change", ["content", "name", "a file more", "a file less"])
def test_any_change_of_any_source_is_another_digest(tmp_path: Path, change: str) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "boxes").mkdir(parents=True)
    for name in ("one.py", "boxes/two.py"):
        (before / name).write_text("x = 1\n")
    shutil.copytree(before, after)
    assert _compiled.digest(before) == _compiled.digest(after)
    _compiled.digest.cache_clear()
    if change == "content":
        (after / "boxes/two.py").write_text("x = 2\n")
    elif change == "name":
        (after / "boxes/two.py").rename(after / "boxes/_two.py")
    elif change == "a file more":
        (after / "three.py").touch()
    else:
        (after / "one.py").unlink()
    assert _compiled.digest(before) != _compiled.digest(after)


@pytest.mark.slow
def test_an_upgrade_of_another_file_is_seen(tmp_path: Path) -> None:
    """Numba's own cache gives 4 twice: the caller's file is as it was, and its code has the callee's old code in it."""
    (tmp_path / "caller.py").write_text(CALLER)
    run = (
        "from pathlib import Path; from dphist_pipeline.solvers import _compiled; "
        f"_compiled.SOLVERS = Path({str(tmp_path)!r}); import caller; print(caller.twice(1))"
    )
    seen = []
    for more in (1, 2):
        (tmp_path / "callee.py").write_text(CALLEE.format(more=more))
        found = subprocess.run(
            [sys.executable, "-B", "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        seen.append(found.stdout.strip())
    assert seen == ["4", "6"]
    assert len(list(tmp_path.rglob("*caller.twice*.nbi"))) == 2
