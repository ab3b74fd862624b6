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

from dphist_pipeline.answering.exports.codes import NOT_APPLICABLE, OTHER, Code, codes_for, free_name
from dphist_pipeline.answering.exports.px import UNKNOWN, keyword, long_text
from dphist_pipeline.answering.exports.sdmx import MISSING, NORMAL, VERSION, StructureMessage, agency, dimensions
from dphist_pipeline.answering.exports.xlsx import AS_TEXT, add_figures
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.domain import OTHER as OTHER_VALUE
from dphist_pipeline.base.languages.texts import LANGUAGES, gettext, in_language, language, pgettext, translate
from dphist_pipeline.errors import Refused, did_you_mean
from dphist_pipeline.publishing.figure_files import NUMBERS, for_people, lines_of, places_of, used_columns
from dphist_pipeline.publishing.formatting import visible
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.spec.published_figures import COLUMNS

Line = Mapping[str, Any]
ATTRIBUTES = ("CI_LOWER", "CI_UPPER", "UNIT_MEASURE", "COMMENT")


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


def write_figures(lines: Sequence[Line], to: str, release: Path, file: Path, structure: Path | None = None) -> None:
    """Writes lines as a file of a format, PX and SDMX in the language of the release.

    Args:
        release: its public folder.
        structure: where the structure of SDMX goes.

    Raises:
        ValueError: the format has no figures, or holds one alone.
        ImportError: the package that writes it is not installed.
    """
    writers: dict[str, Callable[[Sequence[Line], Path], None]] = {"csv": _csv, "parquet": _parquet, "xlsx": _xlsx}
    if to in writers:
        writers[to](lines, file)
        return
    last, about = max(lines, key=lambda line: line["period"]), About.of(release.parent)
    audit = read_audit(release / f"period={last['period']}" / f"revision={last['revision']}")
    spoken = about.language_of(audit)
    with in_language(spoken if spoken in LANGUAGES else ""):
        if to == "px":
            _px(lines, file, about, audit)
        elif to == "sdmx-csv":
            _sdmx(lines, file, about)
            assert structure is not None
            structure.write_text(_structure(lines, about, audit), encoding="utf-8", newline="")
        else:
            raise ValueError(
                f"figures are written as {', '.join([*writers, 'px', 'sdmx-csv'])}; {to} describes the cells"
            )


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
    """The value of an axis in a line: SDMX's code for other, and where its figure has no such axis."""
    if name in line:
        return NOT_APPLICABLE if line[name] is None else OTHER if line[name] == OTHER_VALUE else str(line[name])
    lower, upper = (line.get(f"{name}_{end}") for end in ("lower", "upper"))
    if lower is None and upper is None:
        return NOT_APPLICABLE
    ends = [f"{end:.15g}" if isinstance(end, float) else str(end) for end in (lower, upper) if end is not None]
    return f"LT_{ends[0]}" if lower is None else f"GE_{ends[0]}" if upper is None else "_".join(ends)


def _text(line: Line, name: str) -> str:
    """A number of a line with the decimals that its noise justifies; empty where there is none."""
    return "" if line[name] is None else f"{line[name]:.{places_of(line) or 0}f}"


def _label(key: str) -> str:
    """What a value of `_keys` is called."""
    return {OTHER: pgettext("category", "other"), NOT_APPLICABLE: "–"}.get(key, key)


def _meanings() -> dict[str, str]:
    """What the numbers of a line are called."""
    return {
        "value": gettext("Value"),
        "ci_lower": translate("Lower end of the 95 % interval"),
        "ci_upper": translate("Upper end of the 95 % interval"),
    }


def _px(lines: Sequence[Line], file: Path, about: About, audit: Mapping[str, Any]) -> None:
    names = [*dict.fromkeys(str(line["figure"]) for line in lines)]
    if len(names) > 1:
        raise ValueError(f"a PX file holds one figure; name one of {', '.join(names)} with --figures")
    keys, first = _keys(lines), lines[0]
    cells = {tuple(_key(line, name) for name in keys): line for line in lines}
    decimals = max(places_of(line) or 0 for line in lines)
    labels = audit.get("axis_labels") or {}
    called = {name: gettext("period") if name == "period" else str(labels.get(name, name)) for name in keys}
    contents = free_name(gettext("content"), called.values())
    title = str(audit.get("title") or first["release"])
    with file.open("w", encoding="utf-8", newline="") as opened:
        head = [keyword("CHARSET", "ANSI"), keyword("AXIS-VERSION", "2013"), keyword("CODEPAGE", "utf-8")]
        head += [
            keyword("LANGUAGE", language().code),
            f"DECIMALS={min(decimals, 15)};",
            f"SHOWDECIMALS={min(decimals, 6)};",
        ]
        head += [keyword("MATRIX", f"{first['release']}_{names[0]}"), "AGGREGALLOWED=NO;"]
        head += [
            keyword("SUBJECT-CODE", "DP"),
            keyword("SUBJECT-AREA", about.publisher or gettext("Published tables")),
        ]
        axes = ", ".join([*called.values(), contents])
        head += [keyword("TITLE", gettext("%(title)s by %(axes)s", title=f"{title}: {names[0]}", axes=axes))]
        head += [keyword("CONTENTS", names[0]), keyword("UNITS", str(first["unit"]))]
        head += [keyword("STUB", *called.values()), keyword("HEADING", contents)]
        head += [keyword("VALUES", *map(_label, values), of=(called[name],)) for name, values in keys.items()]
        head += [keyword("VALUES", *_meanings().values(), of=(contents,))]
        head += [keyword("CODES", *codes_for(values).values(), of=(called[name],)) for name, values in keys.items()]
        head += [keyword("CODES", *NUMBERS, of=(contents,))]
        notes = dict.fromkeys(note for line in lines if (note := str(line["note"] or "")))
        head += [long_text("NOTEX", "#".join([gettext("The interval is that of the noise alone."), *notes]))]
        opened.writelines(f"{line}\n" for line in [*head, "DATA="])
        for key in product(*keys.values()):
            line = cells.get(key)
            opened.write(" ".join((line and _text(line, name)) or UNKNOWN for name in NUMBERS) + " \n")
        opened.write(";\n")


def _flow(lines: Sequence[Line]) -> str:
    return f"{lines[0]['release']}_figures"


def _dimensions(lines: Sequence[Line]) -> dict[str, dict[str, str]]:
    """The codes of each dimension but time, by its values."""
    figures = [*dict.fromkeys(str(line["figure"]) for line in lines)]
    keys = {"figure": figures, **_keys(lines)}
    return {name: codes_for(values) for name, values in keys.items() if name != "period"}


def _sdmx(lines: Sequence[Line], file: Path, about: About) -> None:
    codes = _dimensions(lines)
    has_time = lines[0]["period"] != "all"
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        identifiers, time = dimensions(codes, ATTRIBUTES).values(), ["TIME_PERIOD"] if has_time else []
        head = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *identifiers, *time]
        writer.writerow([*head, "OBS_VALUE", "OBS_STATUS", "REVISION", *ATTRIBUTES])
        for line in lines:
            structure = ["dataflow", f"{agency(about)}:{_flow(lines)}({VERSION})", "I"]
            where = [of_axis[_key(line, name)] for name, of_axis in codes.items()]
            when = [line["period"]] if has_time else []
            status = MISSING if line["value"] is None else NORMAL
            texts = [_text(line, name) for name in NUMBERS]
            beside = [status, line["revision"], *texts[1:], line["unit"], line["note"]]
            writer.writerow([*structure, *where, *when, texts[0], *beside])


def _structure(lines: Sequence[Line], about: About, audit: Mapping[str, Any]) -> str:
    """The structure of the file that `_sdmx` writes, as XML."""
    codes, called, labels = _dimensions(lines), _meanings(), audit.get("axis_labels") or {}
    axes = {
        name: (str(labels.get(name, name)), [Code(code, _label(value), value) for value, code in of_axis.items()])
        for name, of_axis in codes.items()
    }
    return StructureMessage(
        release=_flow(lines),
        agency=agency(about),
        title=visible(f"{audit.get('title') or lines[0]['release']}: {', '.join(codes['figure'])}"),
        day=str((audit.get("ledger") or {}).get("charged_at") or "2000-01-01")[:10],
        dimensions={identifier: axes[name] for name, identifier in dimensions(codes, ATTRIBUTES).items()},
        has_time=lines[0]["period"] != "all",
        value=("value", called["value"]),
        statuses=(NORMAL, MISSING),
        attributes={
            "CI_LOWER": ("ci_lower", called["ci_lower"], "double"),
            "CI_UPPER": ("ci_upper", called["ci_upper"], "double"),
            "UNIT_MEASURE": ("unit", gettext("what the value is a number of"), "string"),
            "COMMENT": ("note", gettext("what to know about the value, in English"), "string"),
        },
    ).text()
