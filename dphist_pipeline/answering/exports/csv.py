"""A release as CSV: UTF-8, a header line, texts in quotes, numbers with the decimals that their noise justifies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exports.rows import Exported, masks_of, places_of
from dphist_pipeline.base.shown_below import limit_of, words_for
from dphist_pipeline.publishing.formatting import FORMULA, NO_FORMULA, is_formula
from dphist_pipeline.publishing.parquet_tables import FEW, texts

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
            table = table.set_column(place, field.name, _texts_without_formulas(table[field.name]))
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
            column = _texts_without_formulas(column)
        elif pa.types.is_floating(field.type):
            values = column.to_numpy()
            known = np.isfinite(values)
            if field.name in places:
                values = _decimals(np.where(known, values, 0.0), places[field.name])
            column = pa.array(values, field.type, mask=~known)
        shown = shown.set_column(place, field.name, column)
    hidden_by_column = masks_of(one, rows)
    if not hidden_by_column:
        return shown
    import pyarrow.compute as pc  # takes long beside a small release

    words = words_for(limit_of(one.audit) or 0)
    for name, hidden in hidden_by_column.items():
        low, out = (pa.array(mask) for mask in hidden)
        texts = pc.if_else(out, pa.scalar(None, pa.string()), shown[name].cast(pa.string()))
        shown = shown.set_column(shown.column_names.index(name), name, pc.if_else(low, words, texts))
    return shown


def _decimals(values: NDArray[np.float64], places: int) -> NDArray[np.float64]:
    """Finite numbers with some decimals, halves to the even one, and no negative zero.

    As Arrow rounds up to 10 places; of more, its last digits are wrong.
    """
    scaled = values * 10.0**places
    return np.where(scaled == np.floor(scaled), values, np.rint(scaled) / 10.0**places) + 0.0


def _texts_without_formulas(column: pa.ChunkedArray) -> Any:
    """Texts, with an apostrophe before those that a spreadsheet would take for a formula."""
    if len(column) <= FEW:
        return texts([f"'{text}" if text and is_formula(text) else text for text in column.to_pylist()])
    import pyarrow.compute as pc  # takes long beside a small release

    marked = []
    for chunk in column.chunks:  # the few distinct texts of labels are looked at once each
        encoded = chunk.dictionary_encode()
        distinct = encoded.dictionary
        quoted = pc.replace_substring_regex(distinct, _FORMULA, r"'\1")
        harmless = pc.if_else(pc.match_substring_regex(distinct, f"^({NO_FORMULA})$"), distinct, quoted)
        marked.append(pa.DictionaryArray.from_arrays(encoded.indices, harmless).cast(pa.string()))
    return pa.chunked_array(marked, pa.string())
