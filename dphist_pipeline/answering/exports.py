"""Writes a release in the formats that people ask for; each format's writer lies in a file of its own."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from dphist_pipeline.answering._export_sdmx import sdmx_lines
from dphist_pipeline.answering.exported_rows import Exported, in_places, places_of
from dphist_pipeline.errors import Refused
from dphist_pipeline.publishing.formatting import FORMULA

Format = Literal["csv", "xlsx", "sdmx-csv"]
ENDINGS: dict[Format, str] = {"csv": ".csv", "xlsx": ".xlsx", "sdmx-csv": ".sdmx.csv"}


def cannot_export(file: Path, problem: str) -> Refused:
    """A file that cannot be written."""
    return Refused(f"{file} cannot be written: {problem}.", code="cannot_export")


def write_export(exported: Exported, to: Format, file: Path, *, overwrite: bool = False) -> None:
    """Writes a release into a file, whole or not at all.

    Args:
        exported: what to write.
        overwrite: replace the file if it is there.

    Raises:
        Refused: the file is there already, the folder is missing or read-only, the file would be too large for
            its format, or the package that writes it is not installed.
    """
    if file.exists() and not overwrite:
        raise cannot_export(file, "it is there already; choose another --output, or say --overwrite")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if to == "xlsx":
            from dphist_pipeline.answering._export_xlsx import write_xlsx

            write_xlsx(exported, draft)
        else:
            lines = csv_lines(exported) if to == "csv" else sdmx_lines(exported)
            with draft.open("w", encoding="utf-8", newline="") as opened:
                csv.writer(opened, lineterminator="\n").writerows(lines)
        draft.replace(file)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else "the disk refused it"
    except ImportError:
        problem = "the package xlsxwriter is missing; install it with pip install 'dphist-pipeline[export]'"
    except ValueError as error:
        problem = str(error)
    else:
        return
    finally:
        draft.unlink(missing_ok=True)
    raise cannot_export(file, problem)


def csv_lines(exported: Exported) -> Iterator[list[Any]]:
    """The header and the rows of a CSV file.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets hide.

    Args:
        exported: every cell of each period, read while lines are taken.
    """
    yield list(exported.columns)
    for table in exported.tables():
        places = places_of(exported, table)
        decimals = [places.get(name) for name in table.column_names]
        for batch in table.to_batches(max_chunksize=1 << 16):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield [in_places(_harmless(value), most) for value, most in zip(row, decimals, strict=True)]


def _harmless(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
