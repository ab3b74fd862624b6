"""Builds the catalogue in a process of its own.

A DuckDB file has some bytes of padding, which hold whatever lay in memory before. In a process that has read records
that may be a piece of one; so the file is written by a process that has seen nothing but the public folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.errors import DphistError

REFUSED = 3


class CatalogueNotBuilt(DphistError):
    """The catalogue could not be built; what was published stays published."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the catalogue for SQL could not be built: {problem} What was published stands; the same command builds "
            "the catalogue again and spends nothing."
        )


def build_apart(public: Path, scratch: Path) -> None:
    """Writes `catalog.duckdb`; see `build_catalogue`.

    Raises:
        CatalogueNotBuilt: with what the other process said.
    """
    command = [sys.executable, "-m", "dphist_pipeline.answering.building", str(public), str(scratch)]
    # Its environment lies in its memory, too: no credentials.
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        said = done.stdout.strip() if done.returncode == REFUSED else f"its process ended with {done.returncode}."
        raise CatalogueNotBuilt(said)


def main() -> None:
    """The other process."""
    try:
        build_catalogue(Path(sys.argv[1]), Path(sys.argv[2]))
    except DphistError as error:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        sys.stdout.write(str(error))
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
