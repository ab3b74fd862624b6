"""SQL that splits lines of CSV files into fields: what a line means depends on that line alone.

Fields are separated by the delimiter. A field has no quote, or begins with it, ends with it, and has only doubled ones
between (RFC 4180). A line of another form, or with another number of fields than the header, is unreadable: it gives no
row. An empty field is null.

Where every field is quoted (`all`), a field without quotes makes its line unreadable, a field of nothing but quotes and
delimiters is null, and a line of nothing but those is no record. So no line within somebody's text of several lines can
be a record. For it starts inside a quoted field, and each quote that is read turns inside to outside in both readings,
the true one and that of the line alone: what the line alone takes for the text of a field lies between two fields in
truth, and there are only delimiters, and quotes.

A line holds no line feed and no carriage return, so the first stands for a delimiter inside quotes while it is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dphist_pipeline.base.csv_text import BOM, MARK, MARKED_CR, MARKED_MARK, MARKED_NUL, sign_of
from dphist_pipeline.base.reading import QUOTE_ALL
from dphist_pipeline.base.sql_files import identifier, literal

LINE = '"=line"'  # no folder `column=value` gives such a name
FIELDS = '"=fields"'
_DELIMITER_INSIDE = "chr(10)"
BOM_SQL = literal(BOM)


@dataclass(frozen=True)
class LineForm:
    """The form of lines of a CSV file: splits a line into fields.

    Attributes:
        marked: whether lines may hold what `csv_text.mark_line_ends` writes for signs that end a line or a text in
            DuckDB.
    """

    delimiter: str
    quote: str  # a quotation mark; empty where there are none; `all` where every field is quoted
    marked: bool

    def rows(self, lines: str, names: Sequence[str], more: Sequence[str]) -> str:
        """SQL of the readable lines, with a column of text for each field.

        Args:
            lines: SQL that gives `LINE`.
            names: of the header line.
            more: further columns of `lines`.
        """
        kept = "".join(f", {identifier(name)}" for name in more)
        columns = ", ".join(
            f"{self._value(f'{FIELDS}[{place}]')} AS {identifier(name)}" for place, name in enumerate(names, 1)
        )
        # Not by WHERE: DuckDB would push that, and each later condition, below the split, and split twice.
        readable = f"unnest(CASE WHEN len({FIELDS}) = {len(names)} THEN [{FIELDS}] ELSE [] END) AS {FIELDS}"
        return f"SELECT {columns}{kept} FROM (SELECT {readable}{kept} FROM ({self._split(lines, kept)}))"

    def unreadable(self, lines: str, fields: int) -> str:
        """SQL of the unreadable lines, whose columns are of no use."""
        condition = f"{LINE} IS NOT NULL AND len({FIELDS}) IS DISTINCT FROM {fields}"
        return f"SELECT {LINE} FROM ({self._split(lines)}) WHERE {condition}"

    def _split(self, lines: str, kept: str = "") -> str:
        """SQL of lines with their fields as written; null for a line that is no record, and for unreadable fields."""
        # A file that was joined to another may have begun with a mark of its encoding.
        line = f"CASE WHEN starts_with({LINE}, {BOM_SQL}) THEN nullif(ltrim({LINE}, {BOM_SQL}), '') ELSE {LINE} END"
        if self.quote == QUOTE_ALL:
            nothing = literal(BOM + sign_of(self.quote) + self.delimiter)
            line = f"CASE WHEN trim({LINE}, {nothing}) = '' THEN NULL ELSE {line} END"
        return f"SELECT {LINE}, {self._fields()} AS {FIELDS}{kept} FROM (SELECT {line} AS {LINE}{kept} FROM ({lines}))"

    def _fields(self) -> str:
        delimiter, quote = literal(self.delimiter), literal(sign_of(self.quote))
        plain = f"string_split({LINE}, {delimiter})"
        refused = f"WHEN contains({LINE}, {literal(MARKED_NUL)}) THEN NULL " if self.marked else ""
        if not self.quote:
            begins = f"starts_with({LINE}, {quote}) OR contains({LINE}, {literal(self.delimiter + sign_of(''))})"
            return f"CASE {refused}WHEN {begins} THEN NULL ELSE {plain} END"
        inside = f"CASE WHEN place % 2 = 0 THEN replace(piece, {delimiter}, {_DELIMITER_INSIDE}) ELSE piece END"
        pieces = f"list_transform(string_split({LINE}, {quote}), lambda piece, place: {inside})"
        quoted = f"string_split(array_to_string({pieces}, {quote}), {delimiter})"
        unquoted = "" if self.quote == QUOTE_ALL else f"WHEN NOT contains({LINE}, {quote}) THEN {plain} "
        return f"CASE {refused}{unquoted}WHEN regexp_full_match({LINE}, {literal(self._pattern())}) THEN {quoted} END"

    def _pattern(self) -> str:
        delimiter, quote = (f"\\x{ord(sign):02x}" for sign in (self.delimiter, sign_of(self.quote)))
        field = f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}"
        if self.quote != QUOTE_ALL:
            field = f"(?:{field}|[^{quote}{delimiter}]*)"
        return f"{field}(?:{delimiter}{field})*"

    def _value(self, field: str) -> str:
        """SQL of a field's text, without quotes; null if it is empty."""
        text = field
        if self.quote:
            quote = literal(sign_of(self.quote))
            text = f"replace(substr({field}, 2, length({field}) - 2), {literal(2 * sign_of(self.quote))}, {quote})"
            text = f"replace({text}, {_DELIMITER_INSIDE}, {literal(self.delimiter)})"
            if self.quote != QUOTE_ALL:
                text = f"CASE WHEN starts_with({field}, {quote}) THEN {text} ELSE {field} END"
        if self.marked:
            text = f"replace(replace({text}, {literal(MARKED_CR)}, chr(13)), {literal(MARKED_MARK)}, {literal(MARK)})"
        if self.quote == QUOTE_ALL:
            nothing = literal(sign_of(self.quote) + self.delimiter)
            return f"CASE WHEN trim({text}, {nothing}) = '' THEN NULL ELSE {text} END"
        return f"nullif({text}, '')"
