"""Builds what is made from all publications; a process of its own writes the catalogue.

A DuckDB file has padding bytes that contain old memory of its process. A process that has read records could leak parts
of them there, so one that has read none writes the file; see `catalogue_process`. All other files are written byte for
byte by this one.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import duckdb

from dphist_pipeline.answering.catalogue import Connect, build_catalogue, kept_empty, one_thread
from dphist_pipeline.answering.catalogue_process import ProcessEnded, catalogue_process
from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas
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
    """Writes `latest/` of every release, `catalog.duckdb` and `index.html`; see `build`.

    `anew` reads every publication again for `latest/` and pages, whatever is there.

    Raises:
        PublishedFilesDamaged: of one publication.
        CatalogueNotBuilt: it says why.
    """
    arrow_without_pandas()
    with catalogue_process() as process:
        connect = partial(process.connect, scratch)
        try:
            build(public, scratch, anew, partial(kept_empty, connect=connect), connect)
            return
        except DphistError as error:
            if isinstance(error, PublishedFilesDamaged):
                raise
            problem = str(error)
        except ProcessEnded as error:
            problem = str(error)
        except (OSError, duckdb.Error) as error:
            problem = _full_disk(error, [public, scratch]) or f"it failed with {type(error).__name__}."
    raise CatalogueNotBuilt(problem)


def build(
    public: Path,
    scratch: Path,
    anew: bool = False,
    empty: Callable[[Path], Path] | None = None,
    connect: Connect = one_thread,
) -> None:
    """Writes the catalogue, the latest cells of every release as files, what pages read, and last the pages."""
    # Loaded here: most commands need none of it.
    from dphist_pipeline.answering._picker_files import write_picker
    from dphist_pipeline.answering.figure_lines import update_figures, write_figures
    from dphist_pipeline.answering.latest_cells import write_latest_cells
    from dphist_pipeline.publishing.derived_files import DerivedFiles

    _remove_links(public)
    derived = DerivedFiles(public)
    derived.set_notices(scratch)

    def read(connection: duckdb.DuckDBPyConnection) -> None:
        write_figures(public, update_figures(connection, public), scratch)
        write_picker(connection, public, scratch)

    build_catalogue(public, scratch, read, empty, connect)
    write_latest_cells(public, scratch, anew)
    derived.write_index(scratch, anew)


def _remove_links(public: Path) -> None:
    """Removes links in the place of folders that are made here, else files would be written outside of `public`."""
    for name in ("latest", "picker"):
        for folder in public.glob(f"*/{name}"):
            for path in [folder, *folder.rglob("*")]:
                if path.is_symlink():
                    path.unlink()


def _full_disk(error: Exception, folders: Sequence[Path]) -> str:
    """The message for a disk that had no room, by its folder; empty for another error."""
    if getattr(error, "errno", None) not in FULL and not any(os.strerror(number) in str(error) for number in FULL):
        return ""
    folder = min(folders, key=lambda folder: shutil.disk_usage(folder).free)
    disk = next(above for above in (folder, *folder.parents) if above.is_mount())
    return f"the disk at {disk} is full, or its quota is used up, and {folder} lies on it. Free space there."
