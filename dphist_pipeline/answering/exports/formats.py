"""The formats of `dphist export`: one table, to which other packages add, and how a file of one is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist_pipeline.base.languages.texts import in_language
from dphist_pipeline.errors import Refused, did_you_mean, how_to_install

if TYPE_CHECKING:
    from dphist_pipeline.answering.exports.rows import Exported

GROUP = "dphist.exports"


@dataclass(frozen=True)
class Format:
    """A format of exported files.

    Attributes:
        ending: of the file's name, with its point.
        summary: for whom it is, as `dphist export --help` says it.
        write: writes the file; raises ValueError with a problem in words where the format cannot hold the release, and
            ImportError where a package is missing.
        beside: the ending of a file that describes it, and its text, from what is exported, the name of the data's file
            and a draft of it that can be read; None where the file describes itself.
        speaks: whether its texts are in the language of the release, else in English.
    """

    ending: str
    summary: str
    write: Callable[[Exported, Path], None]
    beside: tuple[str, Callable[[Exported, str, Path], str]] | None = None
    speaks: bool = False


def _of(module: str, function: str = "write") -> Any:
    """A function of a file here, which is loaded when it is called: help lists formats, and needs none of them."""

    def called(*arguments: Any) -> Any:
        return getattr(import_module(f"dphist_pipeline.answering.exports.{module}"), function)(*arguments)

    return called


OWN = {
    "csv": Format(
        ".csv",
        "for spreadsheets and statistical programs, with a data package that says what its columns mean",
        _of("csv"),
        (".datapackage.json", _of("datapackage", "datapackage")),
    ),
    "xlsx": Format(".xlsx", "a workbook with a sheet of data and a sheet of notes", _of("xlsx")),
    "parquet": Format(
        ".parquet", "for programs: every digit, and what the columns mean in its metadata", _of("parquet")
    ),
    "px": Format(".px", "for PxWeb", _of("px"), speaks=True),
    "sdmx-csv": Format(
        ".sdmx.csv", "SDMX-CSV 2.0 with its structure", _of("sdmx"), (".xml", _of("sdmx", "sdmx_structure")), True
    ),
    "dcat-ap": Format(
        ".dcat-ap.jsonld", "a record for portals of data; needs publisher and address in about.json", _of("dcat")
    ),
    "healthdcat-ap": Format(
        ".healthdcat-ap.jsonld",
        "a record for portals of health data; needs more in about.json",
        _of("dcat", "write_for_health"),
    ),
    "croissant": Format(
        ".croissant.json", "a description for search engines of data sets and data loaders", _of("croissant")
    ),
}


@cache
def _points() -> dict[str, list[EntryPoint]]:
    """What installed packages add, by name; none takes the name of a format of ours."""
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in OWN:
            points.setdefault(point.name, []).append(point)
    return points


def names() -> list[str]:
    """The names of all formats: ours, then those of other packages."""
    return [*OWN, *sorted(_points())]


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        Refused: there is none, or the package that brings it cannot be loaded.
    """
    if name in OWN:
        return OWN[name]
    if name not in _points():
        raise Refused(f"there is no format {name!r}. {did_you_mean(name, names())}", code="no_format")
    places = sorted({point.value for point in _points()[name]})
    problem = "several packages bring it" if len(places) > 1 else "what it names is no Format"
    try:
        found = _points()[name][0].load() if len(places) == 1 else None
    except Exception as error:  # of somebody else's package: anything
        found, problem = None, type(error).__name__
    if isinstance(found, Format):
        return found
    raise Refused(
        f"the format {name!r} cannot be loaded from {' and '.join(places)}: {problem}. Mend or remove a package that "
        "brings it.",
        code="no_format",
    )


def summary_of(name: str) -> str:
    """What help says of a format; of one that cannot be loaded, that."""
    try:
        return format_named(name).summary
    except Refused:
        return f"cannot be loaded from {_points()[name][0].value}"


def cannot_export(file: Path, problem: str) -> Refused:
    """A file that cannot be written."""
    return Refused(f"{file} cannot be written: {problem}.", code="cannot_export")


def write_export(exported: Exported, to: str, file: Path, *, overwrite: bool = False) -> list[Path]:
    """Writes a release into a file, and what describes the file beside it: all of them whole, or none.

    Gives the files that were written, the one with the data first.

    Raises:
        Refused: there is no such format, a file is there already, the folder is missing or read-only, the file would be
            too large for its format, the package that writes it is not installed, or `about.json` lacks what the format
            needs.
    """
    made = format_named(to)
    files = [file, *([file.with_suffix(made.beside[0])] if made.beside else [])]
    if len(set(files)) < len(files):
        raise cannot_export(file, "its description would have the same name; choose another --output")

    def write(*drafts: Path) -> None:
        with in_language(exported.language if made.speaks else ""):
            made.write(exported, drafts[0])
            if made.beside is not None:
                text = made.beside[1](exported, file.name, drafts[0])
                drafts[1].write_text(text, encoding="utf-8", newline="")

    return written_whole(write, *files, overwrite=overwrite)


def written_whole(write: Callable[..., None], *files: Path, overwrite: bool) -> list[Path]:
    """Writes files by their drafts: all of them whole, or none; see `write_export`."""
    file = files[0]
    if there := next((path for path in files if path.exists() and not overwrite), None):
        raise cannot_export(there, "it is there already; choose another --output, or say --overwrite")
    drafts = [path.with_name(f".{path.name}.{os.getpid()}") for path in files]
    try:
        write(*drafts)
        for draft, path in zip(drafts, files, strict=True):
            draft.replace(path)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else "the disk refused it"
    except ImportError as error:
        problem = f"the package {error.name} is missing"
        if error.name == "xlsxwriter":
            problem += f". To install it: {how_to_install('export')}"
    except ValueError as error:
        problem = str(error)
    else:
        return [*files]
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    raise cannot_export(file, problem)
