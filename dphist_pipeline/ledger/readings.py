"""How a source is read, as messages and the command line write it."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dphist_pipeline.ledger.decisions import SourceReading


def options_of(reading: SourceReading) -> str:
    """The options of `dphist ledger open` and `allow` that say how a source is read, quoted for a shell."""
    options = [f"--source {quote(reading.address)}"]
    if reading.table is not None:
        options.append(f"--source-table {quote(reading.table)}")
    if reading.format == "csv":
        options += [f"--csv-delimiter {quote(reading.csv_delimiter)}"] * (reading.csv_delimiter != ",")
        options += [f"--csv-quote {quote(reading.csv_quote or 'none')}"] * (reading.csv_quote != '"')
        options += [f"--csv-encoding {reading.csv_encoding}"] * (reading.csv_encoding != "utf-8")
    options += ["--hive"] * reading.hive + ["--decimal-comma"] * reading.decimal_comma
    options += [f"--thousands {quote(reading.thousands or '')}"] * bool(reading.thousands)
    options += [f"--unit-normalise {quote(','.join(reading.unit_normalise))}"] * bool(reading.unit_normalise)
    return " ".join(options)


LINE_BY_LINE = """
- Quotes are read: `csv_quote: rfc` is the default. Take `all` if every field is quoted, and `none` if none ever is.
- A line with another number of fields than the header, or with a quote out of place, is in no number: nobody's row.
- Text of several lines is cut into lines, and one within it may count as somebody's row. Only `all` rules that out.
"""


def read_as(reading: SourceReading) -> str:
    """The address, and the options that say how it is read: one file may be allowed in several ways."""
    before = " (as CSV was read before 0.3.0)" if reading.format == "csv" and not reading.lines else ""
    return reading.address + options_of(reading).removeprefix(f"--source {quote(reading.address)}") + before


def difference_in_words(field: str, allowed: SourceReading, reading: SourceReading) -> str:
    """How a field of a reading differs from the allowed one. No folder is shown: the environment may have given it."""
    if field == "folder":
        return "folder has moved: a link or a variable leads elsewhere than when it was allowed"
    if field == "lines":
        return f"it was allowed as CSV was read before 0.3.0, and CSV is read otherwise now:{LINE_BY_LINE}Allow it anew"
    if field == "csv_quote":
        return f"csv_quote is {_quoting(allowed.csv_quote)} there, {_quoting(reading.csv_quote)} here"
    return f"{field} is {_shown(getattr(allowed, field))} there, {_shown(getattr(reading, field))} here"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if value not in (None, "") else "nothing"


def _quoting(quote: str) -> str:
    """A way of quoting as specs write it."""
    return {"": "none", '"': "rfc"}.get(quote, quote)
