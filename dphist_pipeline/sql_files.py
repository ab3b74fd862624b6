"""Loads the SQL that this package ships: one statement a file, under `sql/`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
# In a checkout the folder lies beside the package, in a wheel inside it.
_FOLDER = next(folder for folder in (_PACKAGE / "sql", _PACKAGE.parent / "sql") if folder.is_dir())


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def statement(name: str, **parts: str) -> str:
    """The statement `sql/<name>.sql` with its `{parts}` filled in.

    Args:
        name: folder and file, without the ending.
        parts: SQL text; names from outside must have gone through `identifier` or `literal`.
    """
    # In one pass: what is filled in is not searched for further parts, whatever a column is called.
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], _text(name))


def identifier(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL string, for the few places that take no parameter."""
    return "'" + text.replace("'", "''") + "'"
