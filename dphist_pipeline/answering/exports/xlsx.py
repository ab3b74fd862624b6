"""A release as a workbook: a sheet of data, and a sheet of notes that says what the columns and words mean."""

from __future__ import annotations

import math
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphist_pipeline.answering.exports.rows import Exported, facts_of, places_of, title_of, with_words
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.formatting import is_formula

MOST_ROWS = 1_048_576
# A text is never taken for a formula, an address or a number, whatever it begins with.
AS_TEXT = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "constant_memory": True}


def write(exported: Exported, file: Path) -> None:
    """Writes the workbook.

    Raises:
        ImportError: xlsxwriter is not installed.
        ValueError: there are more rows than a sheet can hold.
    """
    import xlsxwriter

    cells = sum(one.domain.of_rows.cells for one in exported.publications)
    if cells >= MOST_ROWS:
        raise ValueError(f"{cells:,} rows are more than a sheet holds; choose a period with --period, or --to csv")
    with xlsxwriter.Workbook(str(file), AS_TEXT) as book:
        # So that the same release gives the same file.
        book.set_properties({"title": title_of(exported), "created": datetime(2000, 1, 1)})
        bold = book.add_format({"bold": True})
        _write_data(book, book.add_worksheet("data"), exported, bold)
        _write_notes(book.add_worksheet("notes"), exported, bold)


def _write_data(book: Any, sheet: Any, exported: Exported, bold: Any) -> None:
    sheet.freeze_panes(1, 0)
    for place, name in enumerate(exported.columns):
        sheet.write_string(0, place, name, bold)
    number = 0
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        places = places_of(exported, table)
        # Cells keep the full numbers, and show the decimals that their noise justifies.
        numbers = {name: "#,##0" + (f".{'0' * shown}" if shown else "") for name, shown in places.items()}
        days = {field.name: "yyyy-mm-dd" for field in table.schema if pa.types.is_date(field.type)}
        told = {**numbers, **days}
        formats = [book.add_format({"num_format": told[name]}) if name in told else None for name in table.column_names]
        # As a person's apostrophe before a text: whoever edits the cell gets no formula.
        apostrophe = book.add_format({"quote_prefix": True})
        for row in zip(*with_words(one, table, lambda name, value: value).values(), strict=True):
            number += 1
            for place, value in enumerate(row):
                if value is not None:
                    shown = apostrophe if isinstance(value, str) and is_formula(value) else formats[place]
                    _write(sheet, number, place, value, shown)
    sheet.autofilter(0, 0, number, len(exported.columns) - 1)


def _write(sheet: Any, row: int, place: int, value: Any, shown: Any) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    elif isinstance(value, str):
        sheet.write_string(row, place, value, shown)
    elif isinstance(value, date):
        sheet.write_datetime(row, place, value, shown)
    elif math.isfinite(value):  # sheets know no infinity: the cell of an open end is empty
        sheet.write_number(row, place, value, shown)


def _write_notes(sheet: Any, exported: Exported, bold: Any) -> None:
    sheet.set_column(0, 0, 26)
    sheet.set_column(1, 1, 100)
    parts = {
        "About": facts_of(exported),
        "Columns of the sheet data": list(exported.columns.items()),
        "Words in the column reliability": [(word or "(empty)", about) for word, about in RELIABILITY.legend.items()],
    }
    row = 0
    for heading, lines in parts.items():
        sheet.write_string(row, 0, heading, bold)
        for row, (name, text) in enumerate(lines, row + 1):  # noqa: B020
            sheet.write_string(row, 0, name)
            sheet.write_string(row, 1, text)
        row += 2
