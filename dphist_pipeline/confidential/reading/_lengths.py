"""How long a text may be: its length in bytes decides what it is read as, and never whether reading fails.

Every limit is fixed, looks at one value alone, and leaves all text below it as it is.

- A category is a text no longer than the longest declared one; what is longer matches none of them.
  Where texts are tidied first, one of more than `LONGEST_VALUE` bytes before that matches none.
- A number, a day or a time stamp stands in at most `LONGEST_VALUE` bytes of text; what is longer does not parse.
- A unit's name of more than `LONGEST_NAME` bytes, once it is normalised, becomes a digest, so that what is staged,
  grouped and sorted stays short. A name of more than `LONGEST_TEXT` bytes is not normalised first: its digest is taken
  as it stands, so that two spellings of such a name are two units.
- A query sees null in place of a text of more than `LONGEST_TEXT` bytes, but for unit columns that it passes on.
"""

from __future__ import annotations

from dphist_pipeline.base.sql_files import identifier

# All digits of any double take 1,077 bytes at most, 4 for an exponent with them; blanks and zeros may stand before.
LONGEST_VALUE = 4096
LONGEST_NAME = 64
LONGEST_TEXT = 1 << 20
# Longer than any name that is left as it is, and of two kinds: no name is the digest of another.
NAME_DIGEST = "'sha256:'"
TEXT_DIGEST = "'sha256 of the text:'"
TEXT = ("VARCHAR", "ENUM")


def at_most(text: str, size: int) -> str:
    """SQL of a text, null where it has more than `size` bytes of UTF-8; no copy is made of a long one."""
    return f"CASE WHEN strlen({text}) > {size} THEN NULL ELSE {text} END"


def value_of(column: str, kind: str) -> str:
    """SQL of an unquoted column that gives numbers, days or time stamps, or text of those.

    `kind` is its DuckDB type, without parameters; text longer than `LONGEST_VALUE` bytes becomes null.
    """
    name = identifier(column)
    return at_most(f"TRY_CAST({name} AS VARCHAR)", LONGEST_VALUE) if kind in (*TEXT, "NULL") else name


def short_name(name: str) -> str:
    """SQL of a unit's name as staged, from SQL of the normalised text; two share one only if SHA-256 collides."""
    return f"CASE WHEN strlen({name}) > {LONGEST_NAME} THEN {NAME_DIGEST} || sha256({name}) ELSE {name} END"
