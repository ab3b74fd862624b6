"""Writes a release in the formats that people and portals ask for; each format's writer lies in a file of its own."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from dphist_pipeline.answering._export_datapackage import datapackage
from dphist_pipeline.answering._export_dcat import dcat_ap, health_dcat_ap
from dphist_pipeline.answering._export_px import px_lines
from dphist_pipeline.answering._export_sdmx import sdmx_lines
from dphist_pipeline.answering._export_structure import sdmx_structure
from dphist_pipeline.answering.exported_rows import Exported, in_places, places_of, with_words
from dphist_pipeline.errors import Refused, how_to_install
from dphist_pipeline.languages.texts import in_language
from dphist_pipeline.publishing.formatting import is_formula

Format = Literal["csv", "xlsx", "sdmx-csv", "px", "dcat-ap", "healthdcat-ap"]
ENDINGS: dict[Format, str] = {
    **{"csv": ".csv", "xlsx": ".xlsx", "sdmx-csv": ".sdmx.csv", "px": ".px"},
    **{"dcat-ap": ".dcat-ap.jsonld", "healthdcat-ap": ".healthdcat-ap.jsonld"},
}


def cannot_export(file: Path, problem: str) -> Refused:
    """A file that cannot be written."""
    return Refused(f"{file} cannot be written: {problem}.", code="cannot_export")


def write_export(exported: Exported, to: Format, file: Path, *, overwrite: bool = False) -> list[Path]:
    """Writes a release into a file, and what describes the file beside it: all of them whole, or none.

    Gives the files that were written, the one with the data first.

    Raises:
        Refused: a file is there already, the folder is missing or read-only, the file would be too large for its
            format, the package that writes it is not installed, or `about.json` lacks what the format needs.
    """
    files = [file, *([file.with_suffix(_BESIDE[to][0])] if to in _BESIDE else [])]
    if len(set(files)) < len(files):
        raise cannot_export(file, "its description would have the same name; choose another --output")
    if there := next((path for path in files if path.exists() and not overwrite), None):
        raise cannot_export(there, "it is there already; choose another --output, or say --overwrite")
    drafts = [path.with_name(f".{path.name}.{os.getpid()}") for path in files]
    try:
        with in_language(exported.language if to in TAGGED else ""):
            _WRITERS[to](exported, drafts[0])
            for draft in drafts[1:]:
                draft.write_text(_BESIDE[to][1](exported, file.name, drafts[0]), encoding="utf-8", newline="")
        for draft, path in zip(drafts, files, strict=True):
            draft.replace(path)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else "the disk refused it"
    except ImportError:
        problem = f"the package xlsxwriter is missing. To install it: {how_to_install('export')}"
    except ValueError as error:
        problem = str(error)
    else:
        return files
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    raise cannot_export(file, problem)


def csv_lines(exported: Exported) -> Iterator[list[Any]]:
    """The header and the rows of a CSV file; cells are read while lines are taken.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets hide.
    """
    yield list(exported.columns)
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        places = places_of(exported, table)

        def shown(name: str, value: Any, places: Mapping[str, int] = places) -> Any:
            return in_places(_harmless(value), places.get(name))

        for batch in table.to_batches(max_chunksize=1 << 16):
            columns = with_words(one, pa.Table.from_batches([batch]), shown)
            yield from (list(row) for row in zip(*columns.values(), strict=True))


def _harmless(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value


def _write_xlsx(exported: Exported, file: Path) -> None:
    from dphist_pipeline.answering._export_xlsx import write_xlsx

    write_xlsx(exported, file)


def _as_csv(lines: Callable[[Exported], Iterator[list[Any]]]) -> Callable[[Exported, Path], None]:
    def write(exported: Exported, file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="") as opened:
            csv.writer(opened, lineterminator="\n").writerows(lines(exported))

    return write


def _as_text(pieces: Callable[[Exported], Iterable[str]]) -> Callable[[Exported, Path], None]:
    def write(exported: Exported, file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="") as opened:
            opened.writelines(pieces(exported))

    return write


# Formats that say in which language their texts are.
TAGGED: tuple[Format, ...] = ("px", "sdmx-csv")
_WRITERS: dict[Format, Callable[[Exported, Path], None]] = {
    "csv": _as_csv(csv_lines),
    "xlsx": _write_xlsx,
    "sdmx-csv": _as_csv(sdmx_lines),
    "px": _as_text(px_lines),
    "dcat-ap": _as_text(dcat_ap),
    "healthdcat-ap": _as_text(health_dcat_ap),
}
# The file beside the data: its ending, and its text from what is exported, the name of the data's file, and its draft.
_BESIDE: dict[Format, tuple[str, Callable[[Exported, str, Path], str]]] = {
    "csv": (".datapackage.json", datapackage),
    "sdmx-csv": (".xml", sdmx_structure),
}
