"""A first spec from column names and types: what a person must decide stands as TO_DECIDE, which `check` refuses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from dphist_pipeline.errors import DphistError
from dphist_pipeline.planning.columns import Column, Layout
from dphist_pipeline.spec import sources, words
from dphist_pipeline.spec.loading import COMPONENT, project_folder, spec_from_attributes
from dphist_pipeline.spec.refusals import SpecError, shortened, shown
from dphist_pipeline.spec.words import published_name
from dphist_pipeline.spec.yaml_rules import read_yaml

OPEN = "TO_DECIDE"
MOST_AXES = 4
MOST_COLUMNS = 200
LONGEST_NAME_SHOWN = 40

_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_UNIT = re.compile(
    r"(^|[_ ])(id|uuid|person|patient|pid|household|resident|client|member|subject|ssn|nhs)([_ ]|$)", re.I
)
_DATE = re.compile(r"(^|[_ ])(date|day|time|timestamp|datetime|on|at|when)([_ ]|$)|date$", re.I)


class NotDrafted(DphistError):
    """A draft that cannot be written."""

    def __init__(self, what: str, problem: str) -> None:
        self.what, self.problem = what, problem
        super().__init__(f"{shortened(what, 300)}: {problem}")


def draft(release: str, output: Path, named: str | None, layout: Layout | None) -> str:
    """The text of a spec, as YAML with comments.

    Args:
        release: a release's name, checked.
        output: where it will be written: a source's path starts at its project.
        named: the source as it was named on the command line.
        layout: its columns; without one, everything is left to a person.
    """
    usable, odd = _sorted_out(layout.columns if layout else ())
    ids = [column for column in usable if _UNIT.search(column.name)]
    dates = [column for column in usable if column not in ids and _is_date(column, layout)]
    others = [column for column in usable if column not in ids and column not in dates]
    lines = [
        *_opening(layout),
        f"type: {COMPONENT}",
        "attributes:",
        f"  release: {release}",
        _field("title", '""', "for people; may change at any time"),
        *_source(output, named, layout),
        *_promise(ids),
        *_axes(others, dates, layout),
        *_left_out(odd),
        *_period(dates),
    ]
    text = "\n".join(lines) + "\n"
    read_yaml(text)
    return text


def still_open(text: str, output: Path) -> list[str]:
    """The places of a draft that `check` refuses, as it names them."""
    content = read_yaml(text)
    attributes = content.get("attributes") if isinstance(content, dict) else None
    try:
        spec_from_attributes(attributes or {}, project_folder(output))
    except SpecError as error:
        return [place.removeprefix("attributes.") for place, _ in error.problems]
    return []


def write_draft(text: str, output: Path) -> None:
    """Writes a new file; never over one.

    Raises:
        NotDrafted: where something is there already, or nothing can be written.
    """
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        problem = "is there already, and is left as it is; name another file with --output"
    except FileNotFoundError:
        problem = "its folder does not exist; make it first"
    except (OSError, ValueError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or 'its name is not valid'}"
    else:
        return
    raise NotDrafted(str(output), problem)


def _opening(layout: Layout | None) -> list[str]:
    of = ""
    if layout is not None:
        of = f": {_safe(layout.file.name)} gave the names and types of its columns, no value was read"
    lines = [
        f"# A draft{of}.",
        f"# Replace every {OPEN} (and the empty lists); until then `dphist check` refuses this file and says where.",
        "# Bins, bounds and categories come from what is publicly known (a code book, a law, a map), never from the",
        "# records: a bound that was read off the records tells of the person at the bound.",
        "# Then: dphist check, dphist rehearse (invented records), dphist forecast (expected errors), dphist release.",
    ]
    if layout is not None and layout.delimiter:
        lines.append(
            "# Are the columns' names somebody's data? Then the file has no header line: add one, delete this draft."
        )
    return lines


def _field(name: str, value: str, comment: str) -> str:
    return f"{f'  {name}: {value}':<31} # {comment}"


def _source(output: Path, named: str | None, layout: Layout | None) -> list[str]:
    if named is None or layout is None:
        return [_field("source", OPEN, "files, as in data/*.parquet; relative to the project's folder")]
    written = _relative(named, output)
    try:
        sources.source(written)
        if _TEMPLATE.search(written):
            raise ValueError("holds a template sign, {{, {% or {#; rename the file")
    except ValueError as error:
        problem = str(error)
    else:
        lines = [f"  source: {_quoted(written)}"]
        if layout.delimiter:
            lines.append(_field("csv_delimiter", _quoted(layout.delimiter), "as the header line parts its names"))
            lines.append(_field("csv_quote", _quoted(layout.quote), "'\"' where fields are quoted"))
        return lines
    raise NotDrafted(named, f"cannot be a source: {problem}")


def _relative(named: str, output: Path) -> str:
    """The source as a spec in that place names it."""
    base = str(Path.cwd() if project_folder(output) == Path.cwd() else project_folder(output))
    whole = os.path.normpath(Path.cwd() / named)
    return os.path.relpath(whole, base) if whole.startswith(f"{base}{os.sep}") else whole


def _promise(ids: list[Column]) -> list[str]:
    hint = f"; perhaps {_listed(ids)}" if ids else ""
    return [
        "",
        f"  # Whose privacy is protected: the column that names a person{hint}.",
        "  # Several columns as a list; `row` (and no max_rows_per_unit) only where every row is another person.",
        _field("privacy_unit", "[]", OPEN),
        _field("max_rows_per_unit", OPEN, "at most this many rows of a person count in a period; noise grows with it"),
        _field("neighbours", OPEN, "add_remove: hide that a person is there at all; substitute: what they hold"),
        _field("epsilon", OPEN, "per period; `dphist forecast` shows what each one does to the errors"),
        _field("account", OPEN, "who pays: opened with `dphist ledger open`"),
        _field("mechanism", "geometric", "plain noise; `dphist mechanisms` and `dphist forecast` show others"),
    ]


def _axes(others: list[Column], dates: list[Column], layout: Layout | None) -> list[str]:
    lines = [
        "",
        "  # The grid: every cell is published, zeros and all, and cells multiply. Keep the axes that readers need.",
        "  # below, above: cells for what lies outside the bins; other: for null and all else. Without them, such rows",
        "  # are dropped.",
    ]
    if layout is not None and layout.delimiter:
        lines.append("  # A CSV file has no types. An axis of numbers: {column: X, start: 0, stop: 100, width: 5, …}")
    axes = [_axis(column) for column in others]
    calendars = [_axis(column, calendar=True) for column in dates]
    shown = axes or calendars
    spare = [*shown[MOST_AXES:], *(calendars if axes else [])]
    if not shown:
        return [
            *lines,
            _field("axes", "[]", f"{OPEN}, as [{{column: ward, values: [surgery, medicine]}}]"),
        ]
    lines += ["  axes:", *(f"    - {axis}" for axis in shown[:MOST_AXES])]
    if spare:
        lines += ["    # More columns that could be axes:", *(f"    # - {axis}" for axis in spare)]
    return lines


def _axis(column: Column, calendar: bool = False) -> str:
    fields = [f"column: {_quoted(column.name)}", *_name(column.name)]
    if calendar:
        fields += ["calendar: month", f"start: {OPEN}", f"stop: {OPEN}", "other: true"]
    elif column.kind == "number":
        fields += [f"{key}: {OPEN}" for key in ("start", "stop", "width")]
        fields += ["below: true", "above: true", "other: true"]
    elif column.kind == "boolean":
        fields += ['values: ["false", "true"]', "other: true"]
    else:
        fields += [f"values: {OPEN}", "other: true"]
    return f"{{{', '.join(fields)}}}"


def _name(column: str) -> list[str]:
    """The published name, where the column's own does not serve."""
    for name in (column, words.suggestion(column)):
        try:
            published_name(name)
        except ValueError:
            continue
        return [] if name == column else [f"name: {name}"]
    return [f"name: {OPEN}"]


def _period(dates: list[Column]) -> list[str]:
    if not dates:
        return ["", _field("period", "none", "or week, month, quarter, year, with a period_column of dates")]
    more = f"; also {_listed(dates[1:])}" if dates[1:] else ""
    return [
        "",
        _field("period", OPEN, "week, month, quarter or year; none (without period_column) for a single table"),
        _field("period_column", _quoted(dates[0].name), f"when a row happened{more}"),
        _field("time_zone", "UTC", "cuts the periods, as in Europe/Brussels"),
    ]


def _left_out(odd: list[str]) -> list[str]:
    return ["", "  # Left out:", *(f"  #   {reason}" for reason in odd)] if odd else []


def _sorted_out(columns: Iterable[Column]) -> tuple[list[Column], list[str]]:
    """The columns that a spec can name, and why it cannot name the others."""
    usable, odd, seen = list[Column](), list[str](), set[str]()
    for number, column in enumerate(columns):
        name = _safe(column.name)
        if number >= MOST_COLUMNS:
            odd.append(f"columns after the first {MOST_COLUMNS}")
            break
        try:
            words.text(column.name)
        except ValueError as error:
            odd.append(f"column {name}, whose name {error}")
            continue
        if _TEMPLATE.search(column.name):
            odd.append(f"column {name}, whose name holds a template sign")
        elif column.name.lower() in seen:
            odd.append(f"column {name}, a second one of that name")
        elif column.kind == "useless":
            odd.append(f"column {name}, whose type {_safe(column.type)} no axis and no period takes{_mend(column)}")
        else:
            usable.append(column)
        seen.add(column.name.lower())
    return usable, odd


def _mend(column: Column) -> str:
    return "; write micro- or nanoseconds" if column.type.startswith("timestamp") else ""


def _is_date(column: Column, layout: Layout | None) -> bool:
    """By type; in CSV, which has none, by name."""
    by_name = layout is not None and bool(layout.delimiter) and bool(_DATE.search(column.name))
    return column.kind == "date" or by_name


def _listed(columns: Iterable[Column]) -> str:
    return ", ".join(_safe(column.name) for column in columns)


def _safe(text: str) -> str:
    """Text that stands in a comment: one line, nothing hidden, not long."""
    return shown(text[:LONGEST_NAME_SHOWN]) if not _PLAIN.fullmatch(text) else text[:LONGEST_NAME_SHOWN]


def _quoted(text: str) -> str:
    """Text as YAML reads it back, letter by letter."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    inside = "".join(_escaped(letter) for letter in text)
    return f'"{inside}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
