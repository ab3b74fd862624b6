"""A text of a workbook that a spreadsheet could take for a formula is marked as a person's apostrophe marks it."""

from __future__ import annotations

import openpyxl
import pytest
from office import Office


@pytest.mark.slow
def test_texts_that_begin_as_formulas_do_bear_the_mark_of_an_apostrophe(office: Office) -> None:
    wards = ["＝SUM(A1)", "＋1x", "－x", "＠x", "=1+1", "surgery"]
    office.opened().write_records()
    office.write_spec(axes=[{"column": "ward", "values": wards}])
    office.released("--store", str(office.store))
    file = office.folder / "x.xlsx"
    exported = office.run("export", "wards", "--to", "xlsx", "--output", str(file), "--store", office.store)
    assert exported.code == 0, exported.err
    cells = [row[2] for row in openpyxl.load_workbook(file)["data"].iter_rows(min_row=2)]
    assert [cell.value for cell in cells] == wards and {cell.data_type for cell in cells} == {"s"}
    assert [bool(cell._style.quotePrefix) for cell in cells] == [True] * 5 + [False]
