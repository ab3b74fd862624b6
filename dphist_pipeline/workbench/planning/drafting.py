"""Drafts a spec from column names and types. Decisions of a person are marked TO_DECIDE, which `check` refuses."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dphist_pipeline.base.reading import UTF_8, quote_in_words
from dphist_pipeline.errors import Refused, did_you_mean
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import fields, sources
from dphist_pipeline.spec.declared_columns import DERIVE_EXAMPLE
from dphist_pipeline.spec.loading import attributes_in, folder_of_spec
from dphist_pipeline.spec.mistakes import echo, one_line
from dphist_pipeline.spec.sources import ISO
from dphist_pipeline.workbench.planning import unit_names
from dphist_pipeline.workbench.planning.columns import FileColumn, FileLayout, read_layout
from dphist_pipeline.workbench.planning.serving import Serving

LONGEST_NAME_SHOWN = 40
TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def draft_refused(subject: str, problem: str) -> Refused:
    """The draft of a spec cannot be written."""
    return Refused(f"{one_line(subject, 300)}: {problem}", code="draft_refused")


def field(name: str, value: str, comment: str) -> str:
    """A line of a spec with a comment, aligned with others."""
    return f"{f'  {name}: {value}':<31} # {comment}"


def _with_advice(advice: str, *lines: str, page: str) -> list[str]:
    """Lines of a spec below the advice on them, which ends with the page to read."""
    text = f"{advice} docs, *{page}*"
    # What is to be typed or looked up stands on one line.
    unbroken = re.sub(r"`[^`]*`|docs, \*.*", lambda match: match[0].replace(" ", "\u00a0"), text)
    wrapped = textwrap.wrap(unbroken, 116, break_on_hyphens=False)
    return ["", *(f"  # {line}".replace("\u00a0", " ") for line in wrapped), *lines]


def _path_in_spec(output: Path, file: str) -> str:
    """The path of a file as a spec names it: from the spec's project, if the file lies there."""
    base = str(Path.cwd() if folder_of_spec(output) == Path.cwd() else folder_of_spec(output))
    whole = os.path.normpath(Path.cwd() / file)
    return os.path.relpath(whole, base) if whole.startswith(f"{base}{os.sep}") else whole


def _source(output: Path, source: str | None, layout: FileLayout | None) -> list[str]:
    """The fields that say what is read and how."""
    if source is None or layout is None:
        return [field("source", fields.OPEN, "files, as in data/*.parquet; relative to the project's folder")]
    path = _path_in_spec(output, source)
    try:
        sources.source(path)
        if TEMPLATE.search(path):
            raise ValueError("holds a template sign, {{, {% or {#; rename the file")
    except ValueError as error:
        problem = str(error)
    else:
        lines = [f"  source: {yaml_text(path)}"]
        if layout.delimiter:
            lines.append(field("csv_delimiter", yaml_text(layout.delimiter), "as in the header line"))
            lines += _with_advice(
                "`all` if every field is in quotes, the safest: then no line of a text is another person's "
                "record. `none` if no field ever is; else `rfc`.",
                f"  csv_quote: {quote_in_words(layout.quote)}",
                page="Threat model",
            )
        if layout.encoding != UTF_8:
            comment = "by the bytes of the header line; see that its names are right below"
            lines.append(field("csv_encoding", layout.encoding, comment))
        elif not layout.says_encoding:
            comment = "windows-1252 where a spreadsheet on Windows wrote the file: the header line does not tell"
            lines.append(field("csv_encoding", layout.encoding, comment))
        if layout.delimiter == ";":
            lines.append(field("decimal_comma", fields.OPEN, "true where numbers are written 3,5; false for 3.5"))
        return lines
    raise draft_refused(source, f"cannot be a source: {problem}")


def name_field(column: str) -> list[str]:
    """The field `name` of an axis, if the column's own name cannot be published."""
    for name in (column, fields.suggestion(column)):
        try:
            fields.published_name(name)
        except ValueError:
            continue
        return [] if name == column else [f"name: {name}"]
    return [f"name: {fields.OPEN}"]


def listed_names(columns: Iterable[FileColumn]) -> str:
    """Names of columns, safe in a comment."""
    return ", ".join(comment_text(column.name) for column in columns)


def comment_text(text: str) -> str:
    """Text that is safe in a comment: one short line with visible characters only."""
    return echo(text[:LONGEST_NAME_SHOWN]) if not _PLAIN.fullmatch(text) else text[:LONGEST_NAME_SHOWN]


def yaml_text(text: str) -> str:
    """Text as a YAML scalar that reads back unchanged."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    letters = "".join(_escape(letter) for letter in text)
    return f'"{letters}"'


def _escape(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


MOST_AXES = 4
MOST_COLUMNS = 200
TAKEN = "is there already, and is left as it is; name another file with --output"
NO_FOLDER = "its folder does not exist; make it first"

_PERSON = re.compile(
    rf"(^|_)(({unit_names.PEOPLE})(id|nr|nbr|no|key)?|uuid|guid|pid|ssn|nhs|mrn|"
    r"(record|case|chart|file|policy|account)_(no|nr|nbr|num|number|key)|"
    r"(personen|patienten|kunden?|leser|mitglieds?|haushalts?|versicherten)_?(nummer|nr|id))(_|$)"
)
_ID = re.compile(r"(^|_)id(_|$)")
# What is said of a unit, as `household_size`, or a code that many share, as `admission_type_id`.
_SHARED = re.compile(
    r"(^|_)(type|kind|class|category|group|status|level|source|reason|disposition|code|specialty|size|count|age|sex|"
    r"gender|race|income|language|ward|unit|department|hospital|site|region|county|state|country|area|municipality)(_|$)"
)
_DATE = re.compile(r"(^|[_ ])(date|timestamp|datetime|datum|fecha)([_ ]|$)|(date|datum|fecha)$", re.I)
_TIME = re.compile(r"(^|[_ ])(day|time|on|at|when)([_ ]|$)", re.I)
# `time_in_hospital` and `day_of_week` are numbers.
_NUMBER_OF = re.compile(
    r"(^|[_ ])(in|to|since|until|days|hours|minutes|number|num|count|length|duration|of[_ ](week|month|year))([_ ]|$)",
    re.I,
)


# What a bound on rows selects on, where it makes people come again: `quality.by` shows how far its shares are moved.
_OUTCOME = re.compile(
    r"(^|[_ ])(readmi\w*|outcome|result|died|dead|death|deceased|mortality|discharge\w*|disposition|relapse\w*|"
    r"recidiv\w*|status|success|failed|failure|diagnosis)([_ ]|$)",
    re.I,
)


@dataclass(frozen=True)
class Roles:
    """The columns of a file, by what a spec can take them for."""

    ids: list[FileColumn]  # that seem to name a unit
    codes: list[FileColumn]  # of something that many units share
    dates: list[FileColumn]  # those that have the type of a date come first
    others: list[FileColumn]
    odd: list[str]  # why a spec cannot use the rest


def draft(
    release: str,
    output: Path,
    named: str | None,
    layout: FileLayout | None,
    mechanism: str = "adaptive",
    settings: Mapping[str, object] | None = None,
    serving: Serving | None = None,
    code_lists: Mapping[str, str] | None = None,
) -> str:
    """The text of a draft, as YAML with comments.

    Args:
        output: path of the spec; paths of sources are relative to its project.
        named: the source as given on the command line; None if none was given.
        layout: columns of the source; None if no source was given.
        serving: the rule that named the mechanism; None if a person did.
        code_lists: public files of categories, by the column of the source whose axis they are for.
    """
    lists = {column: _axis_of_list(column, file, output) for column, file in (code_lists or {}).items()}
    roles = roles_of(layout, lists)
    ids, codes, dates, others = roles.ids, roles.codes, roles.dates, roles.others
    lines = [
        *_opening(layout),
        f"type: {ReleaseSpec.component}",
        "attributes:",
        f"  release: {release}",
        *_with_advice(
            "Words for readers, in no digest; also `counted: loans`, `unit_label: reader`, `language: de`, and "
            "an axis's `label`.",
            '  title: ""',
            page="Publish in your language",
        ),
        *_source(output, named, layout),
        *_privacy_fields([*ids, *codes], _outcome_of(others)),
        *_mechanism(mechanism, settings or {}, serving),
        *_axes(others, ids, codes, dates, layout, lists),
        *(["", "  # Left out:", *(f"  #   {reason}" for reason in roles.odd)] if roles.odd else []),
        *_period(dates),
        *_with_advice(
            "Numbers as if nothing had been read (3,5 for 3.5, a wrong encoding) wait for a person. With "
            "`manual` all wait, with `automatic` none.",
            "  publish: if_plausible",
            page="Approval: `publish: manual`",
        ),
    ]
    text = "\n".join(lines) + "\n"
    attributes_in(text)  # refused unless it is YAML
    return text


def drafted_readings(layout: FileLayout, listed: Collection[str]) -> list[str]:
    """How the columns that a draft names will be read, a sentence each: by header and types alone."""
    roles = roles_of(layout, listed)
    doubts = [(column, "perhaps names the unit; names are compared as they are written") for column in roles.ids]
    for column in roles.dates[:1]:
        reading = "dates, as `period_format` will say; what does not parse falls into no period"
        doubts.append((column, reading if column.kind == "text" else "a row without it falls into no period"))
    words = {
        "number": "numbers, in bins by `start`, `stop` and `width`; or codes, by `values`",
        "boolean": "the categories false and true",
        "text": "categories by `values`, compared letter by letter; or, by `start`, `stop` and `width`, "
        "numbers written 3.5 (with `decimal_comma: true` 3,5)",
    }
    doubts += [(column, words.get(column.kind, words["text"])) for column in roles.others[:MOST_AXES]]
    columns_by_reading: dict[tuple[str, str], list[FileColumn]] = {}
    for column, reading in doubts:
        kind = "text" if column.kind == "text" else f"of type {comment_text(column.type)}"
        columns_by_reading.setdefault((kind, reading), []).append(column)
    return [
        f"{listed_names(columns)} {'are' if len(columns) > 1 else 'is'} {kind}: {how}"
        for (kind, how), columns in columns_by_reading.items()
    ]


def roles_of(layout: FileLayout | None, listed: Collection[str] = ()) -> Roles:
    """What a spec can take columns for; those with a code list are axes, before all others."""
    columns = layout.columns if layout else [FileColumn(name, "text") for name in listed]
    usable, problems = _split_columns(columns)
    names = [column.name for column in usable]
    for name in listed:
        if name not in names:
            raise draft_refused(name, f"is no column that can be an axis. {did_you_mean(name, names)}".strip())
    free = [column for column in usable if column.name not in listed]
    shared_columns = [column for column in free if _says(_SHARED, column)]
    ids = [
        column
        for column in free
        if column not in shared_columns
        and (_says(_ID, column) or _says(_PERSON, column) or unit_names.names_person(column.name))
    ]
    codes = [column for column in shared_columns if _says(_ID, column)]
    rest = [column for column in free if column not in (*ids, *codes)]
    dates = sorted((column for column in rest if _is_date(column, layout)), key=lambda column: column.kind != "date")
    others = [column for column in usable if column.name in listed]
    others += [column for column in rest if column not in dates]
    return Roles(ids, codes, dates, others, problems)


def write_draft(text: str, output: Path) -> None:
    """Writes a new file; never overwrites one."""
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        problem = TAKEN
    except FileNotFoundError:
        problem = NO_FOLDER
    except (OSError, ValueError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or 'its name is not valid'}"
    else:
        return
    raise draft_refused(str(output), problem)


def _opening(layout: FileLayout | None) -> list[str]:
    origin = (
        ""
        if layout is None
        else f" from the column names and types of {comment_text(layout.file.name)}; no value was read"
    )
    lines = [
        f"# A draft{origin}.",
        f"# Replace every {fields.OPEN} (and the empty lists); "
        "until then `dphist check` refuses this file and says where.",
        "# Take bins, bounds and categories from public knowledge (a code book, a law, a map), never from the records:",
        "# a bound that is taken from the records reveals the value of the person at the bound.",
        "# Then: dphist check, rehearse (invented records), forecast --records N (errors), ledger open, look, release.",
    ]
    if layout is not None and layout.delimiter:
        lines.append(
            "# If a column name is data of a person, the file has no header line: add one and delete this draft."
        )
    return lines


def _outcome_of(others: list[FileColumn]) -> str:
    """The published name of the first axis that is an outcome, by its name; empty if none is."""
    for column in others[:MOST_AXES]:
        if _OUTCOME.search(column.name):
            name_lines = name_field(column.name)
            name = name_lines[0].removeprefix("name: ") if name_lines else column.name
            return "" if name == fields.OPEN else name
    return ""


def _privacy_fields(ids: list[FileColumn], outcome: str) -> list[str]:
    # Names that speak of persons come first.
    likely = sorted(ids, key=lambda column: not _says(_PERSON, column))
    return [
        *_with_advice(
            "What names a person (a household, if rows speak of several people), and not a visit; several columns as a "
            "list. `row`, without the next two fields, only if nobody has two rows.",
            *([f"  # perhaps {listed_names(likely)}"] if ids else []),
            field("privacy_unit", "[]", fields.OPEN),
            page="The privacy promise",
        ),
        *_with_advice(
            "For ids in text: those that differ in case, blanks or invisible signs are one person. `number` "
            "adds: 7, 7.0 and 007 are one.",
            "  # unit_normalise: [trim_all, fold]",
            page="Steps of `unit_normalise`",
        ),
        *_with_advice(
            "Rows of a unit that count in a period: what most people stay below by the rules of the service. "
            "More are cut at random; noise grows with the bound.",
            f"  max_rows_per_unit: {fields.OPEN}",
            page="See what the bound cuts",
        ),
        field("neighbours", fields.OPEN, "add_remove hides whether a person is present; substitute hides their values"),
        *_with_advice(
            "Of one period, and all add up: 53 weeks of 0.1 are 5.3. At most 1 for all that is ever said is strict; "
            "`dphist forecast` shows errors.",
            f"  epsilon: {fields.OPEN}",
            page="How to choose ε",
        ),
        field("account", fields.OPEN, "who pays: one for all tables about the same people, as health, library"),
        *_with_advice(
            "Buys a table of what the bound cuts; `by`: at most two axes that are an outcome (readmitted, died), whose "
            "shares it moves. With few rows leave it out: `check` says.",
            f"  quality: {{share: 1/20, rows: 10, by: [{yaml_text(outcome) if outcome else ''}]}}",
            page="See what the bound cuts",
        ),
    ]


def _mechanism(name: str, settings: Mapping[str, object], serving: Serving | None) -> list[str]:
    lines = []
    if serving is not None:
        rule = textwrap.wrap(f"To serve {serving.serves}: `{serving.written}`. {serving.because}.", 110)
        lines += [f"  # {line}" for line in rule]
        if serving.serves in ("ranges", "prefixes", "boxes"):
            lines.append(
                f"  # Once axes and epsilon are decided: dphist forecast SPEC --serves {serving.serves} --records N"
            )
    says = "for cells; `dphist new --serves ranges` chooses for ranges, `geometric` is plain noise"
    lines.append(field("mechanism", name, says if name == "adaptive" else f"dphist mechanisms {name}"))
    if name == "tables":
        lines.append(field("tables", "{all: 2}", "every pair of axes; or list: [[age, ward], [ward]]"))
    if settings:
        settings_text = ", ".join(f"{setting}: {yaml_text(str(value))}" for setting, value in settings.items())
        lines.append(f"  settings: {{{settings_text}}}")
    return lines


def _says(words: re.Pattern[str], column: FileColumn) -> bool:
    """Whether some words stand in the name of a column."""
    return words.search(unit_names.as_words(column.name)) is not None


def _axes(
    others: list[FileColumn],
    ids: list[FileColumn],
    codes: list[FileColumn],
    dates: list[FileColumn],
    layout: FileLayout | None,
    lists: Mapping[str, str],
) -> list[str]:
    doubtful = unit_names.of_other_rows([], [column.name for column in others])
    lines = [
        *_with_advice(
            "Columns made of others row by row (an age, a stay, a weekday): `derive`; which rows count: `keep`.",
            f"  # derive: [{DERIVE_EXAMPLE}]",
            page="Derived columns: `derive` and `keep`",
        ),
        *_with_advice(
            "Cells multiply, and each has its own noise: two or three axes, 20 rows a cell. Without `below`, `above`, "
            "`other`, rows outside count nowhere.",
            page="Declare the grid without looking at the records",
        ),
        *_with_advice(
            'Codes: `values: ["1", "2"]`; uneven bins: `edges: [0, 18]`; text bands: `bands: {"0-17": 0, "18+": 18}`; '
            "a file: `dphist new --code-list FILE --column NAME`.",
            page="Code lists",
        ),
        *_with_advice(
            "Texts count letter by letter, unless `tidy: [trim, lower, nfc]`; `spellings: {novels: Novel}` "
            "adds others.",
            page="Texts that differ",
        ),
        *_with_advice(
            "No column that is made of other people's rows (a household's size, a rank, a weight): epsilon "
            "does not cover it.",
            *([f"  # perhaps {', '.join(map(comment_text, doubtful))}"] if doubtful else []),
            page="Columns made of other people's rows",
        ),
    ]
    reason = "which seems to name a unit: its cells would publish who is in the records."
    lines += [f"  # No axis: {comment_text(column.name)}, {reason}" for column in ids]
    if layout is not None and layout.delimiter:
        lines.append("  # A CSV file has no types. An axis of numbers: {column: X, start: 0, stop: 100, width: 5, …}")
    axes = [lists.get(column.name) or _axis(column) for column in others]
    calendars = [_axis(column, calendar=True) for column in dates]
    candidates = axes or calendars
    spare = [
        *candidates[MOST_AXES:],
        *(_axis(replace(column, kind="text")) for column in codes),
        *(calendars if axes else []),
    ]
    if not candidates:
        return [*lines, field("axes", "[]", f"{fields.OPEN}, as [{{column: ward, values: [surgery, medicine]}}]")]
    lines += ["  axes:", *(f"    - {axis}" for axis in candidates[:MOST_AXES])]
    if spare:
        lines += ["    # More columns that could be axes:", *(f"    # - {axis}" for axis in spare)]
    return lines


def _axis(column: FileColumn, calendar: bool = False) -> str:
    parts = [f"column: {yaml_text(column.name)}", *name_field(column.name)]
    if calendar:
        parts += ["calendar: month", f"start: {fields.OPEN}", f"stop: {fields.OPEN}", "other: true"]
        parts += [f"format: {fields.OPEN}"] if column.kind == "text" else []
    elif column.kind == "number":
        parts += [f"{key}: {fields.OPEN}" for key in ("start", "stop", "width")]
        parts += ["below: true", "above: true", "other: true"]
        parts += ["whole: true"] if column.type.removeprefix("u").startswith("int") else []
    elif column.kind == "boolean":
        parts += ['values: ["false", "true"]', "other: true"]
    else:
        parts += [f"values: {fields.OPEN}", "other: true"]
    return f"{{{', '.join(parts)}}}"


def _axis_of_list(column: str, file: str, output: Path) -> str:
    """An axis whose categories a code list has; where its header does not tell the column of codes, that is open."""
    layout = read_layout(file)
    names = [one.name for one in layout.columns]
    if layout.delimiter not in ("", ",") and len(names) > 1:
        raise draft_refused(file, f"fields of a code list are parted by commas, and not by {echo(layout.delimiter)}")
    path = _path_in_spec(output, file)
    of_codes = "" if column in names else names[0] if len(names) == 1 else fields.OPEN
    if TEMPLATE.search(f"{path} {of_codes}"):
        raise draft_refused(file, "its name, or that of its column, holds a template sign, {{, {% or {#; rename it")
    parts = [f"column: {yaml_text(column)}", *name_field(column), f"values_from: {yaml_text(path)}"]
    parts += [f"values_column: {yaml_text(of_codes)}"] if of_codes else []
    hint = f"  # {fields.OPEN}: one of {listed_names(layout.columns)}" if of_codes == fields.OPEN else ""
    return f"{{{', '.join([*parts, 'other: true'])}}}{hint}"


def _period(dates: list[FileColumn]) -> list[str]:
    if not dates:
        return [
            "",
            field("period", "none", "or week, month, quarter, year, with a period_column of dates, and"),
            '  # period_format: "%d.%m.%Y" where they are text such as 14.09.2026, iso for 2026-09-14',
        ]
    column = dates[0]
    if column.kind == "date":
        form = field("period_format", ISO, f"for text alone; the column is of type {comment_text(column.type)}")
    else:
        form = field(
            "period_format", fields.OPEN, 'iso for 2026-09-14, "%d.%m.%Y" for 14.09.2026; others: in no period'
        )
    return [
        *_with_advice(
            "week, month, quarter or year, as long as readers can wait: longer ones have more rows, and the "
            "same noise. none: one table, without the next three.",
            f"  period: {fields.OPEN}",
            page="What adds up",
        ),
        *_with_advice(
            "The day on which something happened, not that of its entry. A text's form is looked up in a code book.",
            *([f"  # also {listed_names(dates[1:])}"] if dates[1:] else []),
            f"  period_column: {yaml_text(column.name)}",
            form,
            page="Dates in text",
        ),
        field("time_zone", "UTC", "where periods begin and end, as Europe/Brussels; docs, *Local days*"),
    ]


def _split_columns(columns: Iterable[FileColumn]) -> tuple[list[FileColumn], list[str]]:
    """The columns that a spec can use, and the reasons why it cannot use the others."""
    usable, problems, names = list[FileColumn](), list[str](), set[str]()
    for number, column in enumerate(columns):
        name = comment_text(column.name)
        if number >= MOST_COLUMNS:
            problems.append(f"columns after the first {MOST_COLUMNS}")
            break
        try:
            fields.text(column.name)
        except ValueError as error:
            problems.append(f"column {name}, whose name {error}")
            continue
        if TEMPLATE.search(column.name):
            problems.append(f"column {name}, whose name holds a template sign")
        elif column.name.lower() in names:
            problems.append(f"column {name}, because another column has that name")
        elif column.kind == "useless":
            mend = "; write micro- or nanoseconds" if column.type.startswith("timestamp") else ""
            problems.append(f"column {name}, whose type {comment_text(column.type)} serves no axis and no period{mend}")
        else:
            usable.append(column)
        names.add(column.name.lower())
    return usable, problems


def _is_date(column: FileColumn, layout: FileLayout | None) -> bool:
    """Whether a column holds dates: by its type, or where it is text by its name."""
    if column.kind == "text" and _DATE.search(column.name):
        return True
    is_time = _TIME.search(column.name) and not _NUMBER_OF.search(column.name)
    return column.kind == "date" or (layout is not None and bool(layout.delimiter) and bool(is_time))
