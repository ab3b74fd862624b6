"""Who only asks published tables needs less than half of the program's packages: the other half is never loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import by_hand
import pytest

AXES = [{"column": "ward", "values": ["surgery", "medicine"]}]
# The packages that `docs/decisions/dependencies.md` leaves out for a reader, by the names of their modules.
ONLY_FOR_RELEASES = {"altair", "llvmlite", "narwhals", "numba", "polars", "vl_convert"}
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not here", name=name)
_, blocked, store, *commands = sys.argv
BLOCKED = set(blocked.split(","))
sys.meta_path.insert(0, Blocked())
from dphist_pipeline.cli.app import main
for command in commands:
    sys.argv = ["dphist", *command.split(), "--store", store]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (command, end.code)
"""


def asking(store: Path, *commands: str, blocked: set[str] = ONLY_FOR_RELEASES) -> subprocess.CompletedProcess[str]:
    """Runs commands in a process that has not loaded anything, one after another while they succeed."""
    words = [sys.executable, "-c", BLOCKED, ",".join(sorted(blocked)), str(store), *commands]
    return subprocess.run(words, cwd=store.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_asking_and_exporting_load_nothing_that_only_releases_need(tmp_path: Path) -> None:
    store = tmp_path / "store"
    done = asking(store, "init")
    assert done.returncode == 0, done.stderr
    by_hand.publish(store / "public", by_hand.estimate(AXES), AXES)
    done = asking(store, "answer weekly --where ward=surgery", "export weekly --to csv", "export weekly --to px")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert asking(store, "answer weekly", blocked={"pyarrow"}).returncode != 0, "nothing was blocked"
