"""Loads the SQL statements of this package: one statement per file, in the folder `sql/`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# The folder is beside the package in a checkout, and inside the package in a wheel.
FOLDER = next(folder for folder in (_PACKAGE / "sql", _PACKAGE.parent / "sql") if folder.is_dir())


@cache
def _text(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def statement(name: str, **parts: str) -> str:
    """The statement `sql/<name>.sql` with its `{parts}`, SQL text by name, filled in.

    Names from users must be quoted by `identifier` or `literal`.
    """
    # One pass, so that a part whose text contains braces is not searched again.
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], _text(name))


def identifier(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def schema_prefix(schema: str | None) -> str:
    """What stands before a name to place it in a schema; nothing for the current schema of the connection."""
    return "" if schema is None else f"{identifier(schema)}."


def literal(text: str) -> str:
    """A text as a quoted SQL string, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"
