"""The boxes of a question in SQL: their arguments, and the text that reads them without DuckDB's extension `json`."""

from __future__ import annotations

from collections.abc import Mapping

from dphist_pipeline.sql_files import literal, statement

# The boxes of a macro: by their names in its query, the arguments that give them. Others have one, `box`.
ONE_BOX = {"box": "box"}
_TWO_BOXES = {"first": "first_box", "second": "second_box"}
BOXES: Mapping[str, Mapping[str, str]] = {
    "dph_total": {},
    "dph_share": {"whole": "whole", "part": "part"},
    "dph_difference": _TWO_BOXES,
    "dph_ratio": _TWO_BOXES,
}
WITHOUT_BOXES = ("dph_whole", "dph_distances", "dph_quality")
# A box as text has words, each in quotes of SQL or JSON or without. With `s` for each word, a box is of this form.
_WORD = r"""'(?:[^'\\]|\\(?s:.))*'|"(?:[^"\\]|\\(?s:.))*"|[^\s,{}\[\]:='"][^,{}\[\]:='"]*"""
_ESCAPE = r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]+"
_MEMBERS = r"(?:s|\[(?:s(?:,s)*)?\])"
_OBJECT = rf"\{{(?:s[:=]{_MEMBERS}(?:,s[:=]{_MEMBERS})*)?\}}"
_SHAPE = rf"s[:=](?:{_MEMBERS}|{_OBJECT})"
_FORM = rf"\{{(?:{_SHAPE}(?:,{_SHAPE})*)?\}}"


def asked_boxes(boxes: Mapping[str, str]) -> str:
    """SQL for the boxes of a question, and their conditions.

    Args:
        boxes: the arguments that give them as SQL, each a struct, a map or JSON text, by the names of the boxes.
    """
    patterns = {"word": _WORD, "escape": _ESCAPE, "form": _FORM, "shape": _SHAPE}
    return piece(
        "asked_boxes",
        sources=", ".join(map(literal, boxes)),
        texts=", ".join(f"CAST({given} AS VARCHAR)" for given in boxes.values()),
        json=", ".join(f"typeof({given}) IN ('VARCHAR', 'JSON')" for given in boxes.values()),
        **{name: literal(pattern) for name, pattern in patterns.items()},
    )


def piece(name: str, **parts: str) -> str:
    """The SQL of a piece, without its opening comment."""
    lines = statement(f"answering/pieces/{name}", **parts).splitlines()
    while lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines)
