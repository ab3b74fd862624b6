"""Texts of a draft: its fields with comments, names and paths as YAML, and its source."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from dphist_pipeline.csv_text import UTF_8
from dphist_pipeline.errors import Refused
from dphist_pipeline.planning.columns import Column, Layout
from dphist_pipeline.spec import fields, sources
from dphist_pipeline.spec.fields import OPEN, published_name
from dphist_pipeline.spec.loading import folder_of_spec
from dphist_pipeline.spec.mistakes import shortened, shown

LONGEST_NAME_SHOWN = 40
TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def draft_refused(what: str, problem: str) -> Refused:
    """The draft of a spec cannot be written."""
    return Refused(f"{shortened(what, 300)}: {problem}", code="draft_refused")


def field(name: str, value: str, comment: str) -> str:
    """A line of a spec with a comment, aligned with others."""
    return f"{f'  {name}: {value}':<31} # {comment}"


def source_lines(output: Path, named: str | None, layout: Layout | None) -> list[str]:
    """The fields that say what is read and how.

    Raises:
        Refused: a spec cannot name the source.
    """
    if named is None or layout is None:
        return [field("source", OPEN, "files, as in data/*.parquet; relative to the project's folder")]
    written = _source_path(named, output)
    try:
        sources.source(written)
        if TEMPLATE.search(written):
            raise ValueError("holds a template sign, {{, {% or {#; rename the file")
    except ValueError as error:
        problem = str(error)
    else:
        lines = [f"  source: {yaml_text(written)}"]
        if layout.delimiter:
            lines.append(field("csv_delimiter", yaml_text(layout.delimiter), "as in the header line"))
            lines.append(
                field("csv_quote", _quote_text(layout.quote), "'\"' where fields are quoted, as by spreadsheets")
            )
        if layout.encoding != UTF_8 or not layout.says_encoding:
            lines.append(field("csv_encoding", layout.encoding, _of_encoding(layout)))
        if layout.delimiter == ";":
            lines.append(field("decimal_comma", OPEN, "true where numbers are written 3,5; false for 3.5"))
        return lines
    raise draft_refused(named, f"cannot be a source: {problem}")


def _of_encoding(layout: Layout) -> str:
    if layout.encoding != UTF_8:
        return "by the bytes of the header line; see that its names are right below"
    return "windows-1252 where a spreadsheet on Windows wrote the file: the header line has no letter that tells"


def _quote_text(quote: str) -> str:
    return f"'{quote}'" if quote == '"' else yaml_text(quote)


def _source_path(named: str, output: Path) -> str:
    """The path of the source, as a spec at `output` must write it."""
    base = str(Path.cwd() if folder_of_spec(output) == Path.cwd() else folder_of_spec(output))
    whole = os.path.normpath(Path.cwd() / named)
    return os.path.relpath(whole, base) if whole.startswith(f"{base}{os.sep}") else whole


def name_field(column: str) -> list[str]:
    """The field `name` of an axis, if the column's own name cannot be published."""
    for name in (column, fields.suggestion(column)):
        try:
            published_name(name)
        except ValueError:
            continue
        return [] if name == column else [f"name: {name}"]
    return [f"name: {OPEN}"]


def listed_names(columns: Iterable[Column]) -> str:
    """Names of columns, safe in a comment."""
    return ", ".join(comment_text(column.name) for column in columns)


def comment_text(text: str) -> str:
    """Text that is safe in a comment: one short line with visible characters only."""
    return shown(text[:LONGEST_NAME_SHOWN]) if not _PLAIN.fullmatch(text) else text[:LONGEST_NAME_SHOWN]


def yaml_text(text: str) -> str:
    """Text as a YAML scalar that reads back unchanged."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    inside = "".join(_escaped(letter) for letter in text)
    return f'"{inside}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
