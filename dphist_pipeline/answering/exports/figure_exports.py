"""The declared figures of a release as a file: the lines of `latest/figures.*`, for each period's latest revision.

A PX file holds one figure, since it has every combination of values. In SDMX-CSV `_Z` stands for an axis that a figure
does not have.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dphist_pipeline.answering.exports.px import UNKNOWN, keyword, long_text
from dphist_pipeline.answering.exports.xlsx import AS_TEXT, add_figures
from dphist_pipeline.errors import Refused, did_you_mean
from dphist_pipeline.publishing.figure_files import NUMBERS, for_people, lines_of, places_of, used_columns
from dphist_pipeline.spec.published_figures import COLUMNS

Line = Mapping[str, Any]
INTERVALS = "ci_lower and ci_upper are the ends of the 95 % interval, which covers the noise alone."


def lines_to_export(release: Path, figure: str = "", period: str | None = None) -> list[dict[str, Any]]:
    """The lines of a release by its public folder, or those of one figure or period.

    Raises:
        Refused: it has no figures, or none of that name.
    """
    lines = lines_of(release, period)
    if not lines:
        raise Refused(
            f"'{release.name}' has no figures{f' in {period}' if period else ''}: `figures` in its spec declares them.",
            code="no_figures",
        )
    names = [*dict.fromkeys(str(line["figure"]) for line in lines)]
    if figure and figure not in names:
        raise Refused(f"'{release.name}' has no figure {figure!r}. {did_you_mean(figure, names)}", code="no_figures")
    return [line for line in lines if figure in ("", line["figure"])]


def write_figures(lines: Sequence[Line], to: str, file: Path) -> None:
    """Writes lines as a file of a format.

    Raises:
        ValueError: the format has no figures, or holds one alone.
        ImportError: the package that writes it is not installed.
    """
    writers: dict[str, Callable[[Sequence[Line], Path], None]] = {
        "csv": _csv,
        "parquet": _parquet,
        "xlsx": _xlsx,
        "px": _px,
        "sdmx-csv": _sdmx,
    }
    if to not in writers:
        raise ValueError(f"figures are written as {', '.join(writers)}; {to} describes the cells")
    writers[to](lines, file)


def _table(lines: Sequence[Line]) -> pa.Table:
    names = used_columns(lines)
    return pa.Table.from_pylist([{name: line[name] for name in names} for line in lines])


def _csv(lines: Sequence[Line], file: Path) -> None:
    options = pyarrow.csv.WriteOptions(quoting_header="none")
    pyarrow.csv.write_csv(_table([for_people(line) for line in lines]), file, options)


def _parquet(lines: Sequence[Line], file: Path) -> None:
    pq.write_table(_table(lines), file, compression="zstd", version="2.6")


def _xlsx(lines: Sequence[Line], file: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(str(file), AS_TEXT) as book:
        book.set_properties({"title": str(lines[0]["release"]), "created": datetime(2000, 1, 1)})
        add_figures(book, lines)


def _keys(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The values of the period and of each axis of a figure, in order; a bin is one value."""
    return {name: [*dict.fromkeys(_key(line, name) for line in lines)] for name in ["period", *_axes(lines)]}


def _axes(lines: Sequence[Line]) -> list[str]:
    used = [name for name in used_columns(lines) if name not in COLUMNS]
    binned = {name.removesuffix("_lower") for name in used if name.endswith("_lower")}
    return [
        *dict.fromkeys(next((one for one in binned if name in (f"{one}_lower", f"{one}_upper")), name) for name in used)
    ]


def _key(line: Line, name: str) -> str:
    """The value of an axis in a line as a code: `_Z` where its figure has no such axis."""
    if name in line:
        return "_Z" if line[name] is None else str(line[name])
    lower, upper = (line.get(f"{name}_{end}") for end in ("lower", "upper"))
    if lower is None and upper is None:
        return "_Z"
    ends = [f"{end:.15g}" if isinstance(end, float) else str(end) for end in (lower, upper) if end is not None]
    return f"LT_{ends[0]}" if lower is None else f"GE_{ends[0]}" if upper is None else "_".join(ends)


def _text(line: Line, name: str) -> str:
    """A number of a line with the decimals that its noise justifies; empty where there is none."""
    return "" if line[name] is None else f"{line[name]:.{places_of(line) or 0}f}"


def _px(lines: Sequence[Line], file: Path) -> None:
    names = [*dict.fromkeys(str(line["figure"]) for line in lines)]
    if len(names) > 1:
        raise ValueError(f"a PX file holds one figure; name one of {', '.join(names)} with --figures")
    keys, first = _keys(lines), lines[0]
    cells = {tuple(_key(line, name) for name in keys): line for line in lines}
    decimals = max(places_of(line) or 0 for line in lines)
    with file.open("w", encoding="utf-8", newline="") as opened:
        head = [keyword("CHARSET", "ANSI"), keyword("AXIS-VERSION", "2013"), keyword("CODEPAGE", "utf-8")]
        head += [keyword("LANGUAGE", "en"), f"DECIMALS={min(decimals, 15)};", f"SHOWDECIMALS={min(decimals, 6)};"]
        head += [keyword("MATRIX", f"{first['release']}_{names[0]}"), "AGGREGALLOWED=NO;"]
        head += [keyword("SUBJECT-CODE", "DP"), keyword("SUBJECT-AREA", "Published figures")]
        head += [keyword("TITLE", f"{first['release']}: {names[0]} by {', '.join([*keys, 'content'])}")]
        head += [keyword("CONTENTS", names[0]), keyword("UNITS", str(first["unit"]))]
        head += [keyword("STUB", *keys), keyword("HEADING", "content")]
        head += [keyword("VALUES", *values, of=(name,)) for name, values in keys.items()]
        head += [keyword("VALUES", *NUMBERS, of=("content",))]
        notes = dict.fromkeys(note for line in lines if (note := str(line["note"] or "")))
        head += [long_text("NOTEX", "#".join([INTERVALS, *notes]))]
        opened.writelines(f"{line}\n" for line in [*head, "DATA="])
        for key in product(*keys.values()):
            line = cells.get(key)
            opened.write(" ".join((line and _text(line, name)) or UNKNOWN for name in NUMBERS) + " \n")
        opened.write(";\n")


def _sdmx(lines: Sequence[Line], file: Path) -> None:
    axes = _axes(lines)
    attributes = ["CI_LOWER", "CI_UPPER", "UNIT_MEASURE", "COMMENT"]
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        dimensions = ["FIGURE", *(name.upper() for name in axes), "TIME_PERIOD"]
        writer.writerow(
            ["STRUCTURE", "STRUCTURE_ID", "ACTION", *dimensions, "OBS_VALUE", "OBS_STATUS", "REVISION", *attributes]
        )
        for line in lines:
            structure = ["dataflow", f"DPHIST:{line['release']}_figures(1.0)", "I"]
            where = [line["figure"], *(_key(line, name) for name in axes), line["period"]]
            status = "M" if line["value"] is None else "A"  # missing, or normal
            texts = [_text(line, name) for name in NUMBERS]
            writer.writerow(
                [*structure, *where, texts[0], status, line["revision"], *texts[1:], line["unit"], line["note"]]
            )
