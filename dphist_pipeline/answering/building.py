"""Builds the catalogue in a separate process.

A DuckDB file has padding bytes that contain old memory of its process. A process that has read records could leak parts
of them there, so a process that reads only the public folder writes the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.errors import DphistError

REFUSED = 3


class CatalogueNotBuilt(DphistError):
    """The catalogue could not be built; the published files stay published."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the catalogue for SQL could not be built: {problem} The release stays published; run the same "
            "command again to build the catalogue, which spends nothing."
        )


def build_apart(public: Path, scratch: Path) -> None:
    """Writes `catalog.duckdb` in a separate process; see `build_catalogue`.

    Args:
        public: the store's public folder.
        scratch: a private folder on the same file system, for the draft.

    Raises:
        CatalogueNotBuilt: with the message of the other process.
    """
    command = [sys.executable, "-m", "dphist_pipeline.answering.building", str(public), str(scratch)]
    # The environment is also part of the process's memory, so it gets no credentials.
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
    done = subprocess.run(command, env=environment, check=False, **pipes)
    if done.returncode:
        said = done.stdout.strip() if done.returncode == REFUSED else f"its process ended with {done.returncode}."
        raise CatalogueNotBuilt(said)


def main() -> None:
    """Runs in the separate process: builds the catalogue, and prints why it cannot."""
    try:
        build_catalogue(Path(sys.argv[1]), Path(sys.argv[2]))
    except DphistError as error:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        sys.stdout.write(str(error))
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
