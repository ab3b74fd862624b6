"""The form of a box as text: patterns by which macros read it without DuckDB's extension `json`."""

from __future__ import annotations

# A box as text has words, each in quotes of SQL or JSON or without. With `s` for each word, a box is of this form.
_WORD = r"""'(?:[^'\\]|\\(?s:.))*'|"(?:[^"\\]|\\(?s:.))*"|[^\s,{}\[\]:='"][^,{}\[\]:='"]*"""
_ESCAPE = r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]+"
_MEMBERS = r"(?:s|\[(?:s(?:,s)*)?\])"
_OBJECT = rf"\{{(?:s[:=]{_MEMBERS}(?:,s[:=]{_MEMBERS})*)?\}}"
_SHAPE = rf"s[:=](?:{_MEMBERS}|{_OBJECT})"
_FORM = rf"\{{(?:{_SHAPE}(?:,{_SHAPE})*)?\}}"
PATTERNS = {"word": _WORD, "escape": _ESCAPE, "form": _FORM, "shape": _SHAPE}
