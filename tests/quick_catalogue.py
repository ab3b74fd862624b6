"""A catalogue that is built anew is added to a copy of an empty one: to create the macros takes half a second of CPU.

`answering/test_catalogue_growing.py` shows that a catalogue that grew has the rows of one that is built anew.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest.mock import patch

import duckdb

from dphist_pipeline.answering import catalogue


class _Anew(Exception):
    """The file that is there cannot be added to."""


def build_catalogue(
    public: Path,
    scratch: Path,
    read: Callable[[duckdb.DuckDBPyConnection], None] = lambda connection: None,
    empty: object = None,
    connect: catalogue.Connect = catalogue.one_thread,
) -> Path:
    """As `catalogue.build_catalogue`, which adds to the file that is there, or to an empty one in its place."""
    place(public)
    empty_catalogue()
    try:
        with patch.object(catalogue, "create_tables", side_effect=_Anew):
            return catalogue.build_catalogue(public, scratch, read, connect=connect)
    except _Anew:
        (scratch / catalogue.NAME).unlink(missing_ok=True)
        copy = shutil.copy2(empty_catalogue(), public / f".{catalogue.NAME}.empty")
        Path(copy).replace(public / catalogue.NAME)
    return catalogue.build_catalogue(public, scratch, read, connect=connect)


def place(public: Path) -> None:
    """Copies an empty catalogue to where there is none."""
    if not (public / catalogue.NAME).exists():
        # With its time, which says that nobody wrote to it since.
        shutil.copy2(empty_catalogue(), public / catalogue.NAME)


@cache
def empty_catalogue() -> Path:
    """Made before the first test, whose temporary folder, clock or audit hooks may be its own."""
    folder = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "scratch").mkdir()
    return catalogue.build_catalogue(folder, folder / "scratch")
