"""A release as CSV: UTF-8, a header line, texts in quotes, numbers with the decimals that their noise justifies."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exports.rows import Exported, masks_of, places_of
from dphist_pipeline.base.shown_below import limit_of, words_for
from dphist_pipeline.publishing.formatting import FORMULA, NO_FORMULA

_FORMULA = f"^([{re.escape(''.join(FORMULA))}])"


def write(exported: Exported, file: Path) -> None:
    """Writes the file, a publication after the other."""
    with file.open("wb") as opened:
        opened.write(header(exported))
        for one, rows in zip(exported.publications, exported.tables(), strict=True):
            opened.write(lines(exported, one, rows))


def header(exported: Exported) -> bytes:
    """The first line."""
    return (",".join(exported.columns) + "\n").encode()


def lines(exported: Exported, one: Publication, rows: pa.Table) -> bytes:
    """The lines of one publication, by its rows of `Exported.tables`."""
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(_for_people(exported, one, rows), text, pyarrow.csv.WriteOptions(include_header=False))
    return bytes(text.getvalue())


def plain_lines(table: pa.Table) -> bytes:
    """The lines of a table of numbers and texts as they are, but for texts that a spreadsheet takes for formulas."""
    for place, field in enumerate(table.schema):
        if field.type == pa.string():
            chunks = [_marked(chunk.dictionary_encode()) for chunk in table[field.name].chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, pa.string()))
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, text, pyarrow.csv.WriteOptions(include_header=False))
    return bytes(text.getvalue())


def _for_people(exported: Exported, one: Publication, rows: pa.Table) -> pa.Table:
    """The rows as spreadsheets take them: without infinity, with words in place of figures that are hidden.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets hide.
    """
    places, shown = places_of(exported, rows), rows
    for place, field in enumerate(rows.schema):
        column = rows[field.name]
        if field.type == pa.string():
            # The few distinct texts of labels are looked at once each.
            chunks = [chunk.dictionary_encode() for chunk in column.chunks]
            column = pa.chunked_array([_marked(chunk) for chunk in chunks], pa.string())
        elif pa.types.is_floating(field.type):
            column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type))
            if field.name in places:
                column = pc.add(pc.round(column, places[field.name]), 0.0)  # no negative zero
        shown = shown.set_column(place, field.name, column)
    words = words_for(limit_of(one.audit) or 0)
    for name, hidden in masks_of(one, rows).items():
        low, out = (pa.array(mask) for mask in hidden)
        texts = pc.if_else(out, pa.scalar(None, pa.string()), shown[name].cast(pa.string()))
        shown = shown.set_column(shown.column_names.index(name), name, pc.if_else(low, words, texts))
    return shown


def _marked(texts: pa.DictionaryArray) -> pa.Array:
    distinct = texts.dictionary
    quoted = pc.replace_substring_regex(distinct, _FORMULA, r"'\1")
    harmless = pc.if_else(pc.match_substring_regex(distinct, f"^({NO_FORMULA})$"), distinct, quoted)
    return pa.DictionaryArray.from_arrays(texts.indices, harmless).cast(pa.string())
