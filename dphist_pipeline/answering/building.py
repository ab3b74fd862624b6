"""Builds what is made from all publications, the catalogue last, in a separate process.

A DuckDB file has padding bytes that contain old memory of its process. A process that has read records could leak parts
of them there, so a process that reads only the public folder writes the file.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import duckdb

from dphist_pipeline.answering.catalogue import build_catalogue, kept_empty
from dphist_pipeline.answering.catalogue_tables import version
from dphist_pipeline.base import early_processes
from dphist_pipeline.errors import DphistError, Halted
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged

FULL = (errno.ENOSPC, errno.EDQUOT)


class CatalogueNotBuilt(Halted):
    """The catalogue could not be built; the published files stay published."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the catalogue for SQL could not be built: {problem} The release stays published; run the same "
            "command again to build the catalogue, which spends nothing."
        )


def build_apart(public: Path, scratch: Path, anew: bool = False) -> None:
    """Writes `latest/` of every release, `catalog.duckdb` and `index.html` in a separate process; see `build`.

    `anew` reads every publication again for `latest/` and pages, whatever is there.

    Raises:
        PublishedFilesDamaged: of one publication.
        CatalogueNotBuilt: with the message of the other process.
    """
    early = early_processes.waiting(__name__)
    process = early or early_processes.start(__name__)
    said = early_processes.ask(process, [str(public), str(scratch), anew])
    if process is not early:
        early_processes.end(process)
    problem, folder = json.loads(said) if said else (f"its process ended with {process.returncode}.", "")
    if folder:
        raise PublishedFilesDamaged(Path(folder), problem)
    if problem:
        raise CatalogueNotBuilt(problem)


def build(public: Path, scratch: Path, anew: bool = False, empty: Callable[[Path], Path] | None = None) -> None:
    """Writes the catalogue, the latest cells of every release as files, what pages read, and last the pages."""
    # Loaded here: the process that releases starts this one, and needs none of it.
    from dphist_pipeline.answering._picker_files import write_picker
    from dphist_pipeline.answering.latest_cells import write_latest_cells
    from dphist_pipeline.publishing.derived_files import DerivedFiles

    _remove_links(public)
    derived = DerivedFiles(public)
    derived.set_notices(scratch)
    build_catalogue(public, scratch, lambda connection: write_picker(connection, public, scratch), empty)
    write_latest_cells(public, scratch, anew)
    derived.write_index(scratch, anew)


def _remove_links(public: Path) -> None:
    """Removes links in the place of folders that are made here, else files would be written outside of `public`."""
    for name in ("latest", "picker"):
        for folder in public.glob(f"*/{name}"):
            for path in [folder, *folder.rglob("*")]:
                if path.is_symlink():
                    path.unlink()


def main() -> None:
    """Runs in the separate process: builds the catalogue, and says why it cannot."""
    from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas

    arrow_without_pandas()
    version()  # reads the macros, which every build needs
    # Loaded while the release still counts.
    for name in ("answering._picker_files", "answering.latest_cells", "publishing._index_pages"):
        import_module(f"dphist_pipeline.{name}")
    for task in sys.stdin:
        public, scratch, anew = json.loads(task)
        problem = folder = ""
        try:
            build(Path(public), Path(scratch), anew, kept_empty)
        except PublishedFilesDamaged as error:
            problem, folder = error.problem, str(error.folder)
        except DphistError as error:
            problem = str(error)
        except (OSError, duckdb.Error) as error:
            problem = _full_disk(error, [Path(public), Path(scratch)])
            if not problem:
                raise
        sys.stdout.write(json.dumps([problem, folder]) + "\n")
        sys.stdout.flush()


def _full_disk(error: Exception, folders: Sequence[Path]) -> str:
    """What is said where a disk had no room for what was written, by its folder; empty for another error."""
    if getattr(error, "errno", None) not in FULL and not any(os.strerror(number) in str(error) for number in FULL):
        return ""
    folder = min(folders, key=lambda folder: shutil.disk_usage(folder).free)
    disk = next(above for above in (folder, *folder.parents) if above.is_mount())
    return f"the disk at {disk} is full, or its quota is used up, and {folder} lies on it. Free space there."


if __name__ == "__main__":
    main()
