"""Published releases as files of other systems: one file for each format, and the columns that all formats have.

`formats.py` has the table of formats, `columns.py` that of columns; `rows.py` reads what is published. No page is here.
"""
