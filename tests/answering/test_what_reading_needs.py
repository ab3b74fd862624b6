"""Who only asks published tables needs less than half of the program's packages: the other half is never loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import by_hand

AXES = [{"column": "ward", "values": ["surgery", "medicine"]}]
# The packages that `docs/decisions/dependencies.md` leaves out for a reader, by the names of their modules.
ONLY_FOR_RELEASES = {"altair", "llvmlite", "narwhals", "numba", "polars", "vl_convert"}
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not here", name=name)
BLOCKED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Blocked())
sys.argv[0] = "dphist"
from dphist_pipeline.cli.app import main
sys.exit(main())
"""


def asking(store: Path, *words: str, blocked: set[str] = ONLY_FOR_RELEASES) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED, ",".join(sorted(blocked)), *words, "--store", str(store)]
    return subprocess.run(command, cwd=store.parent, capture_output=True, text=True, check=False)


def test_asking_and_exporting_load_nothing_that_only_releases_need(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert asking(store, "init").returncode == 0
    by_hand.publish(store / "public", by_hand.estimate(AXES), AXES)
    for words in (
        ("answer", "weekly", "--where", "ward = surgery"),
        ("export", "weekly", "--to", "csv"),
        ("export", "weekly", "--to", "px"),
    ):
        done = asking(store, *words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    assert asking(store, "answer", "weekly", blocked={"pyarrow"}).returncode != 0, "nothing was blocked"
