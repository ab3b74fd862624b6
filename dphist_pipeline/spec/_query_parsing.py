"""Reads the file of a query, parses it with DuckDB, and writes a parse as SQL again.

Messages about a file that does not parse as one SELECT quote nothing of it: it may be any file.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from dphist_pipeline.spec._query_reach import SOURCE, Node, NotAccepted
from dphist_pipeline.spec._text_files import content_of, decode

LARGEST_FILE = 1 << 15  # joined texts grow with it, some 30 bytes a part
ENDING = ".sql"


def content_of_query(file: Path, called: str) -> bytes:
    """The content of the file of a query, whose name, links followed, ends in .sql: text in UTF-8."""
    try:
        if {file.suffix.lower(), file.resolve().suffix.lower()} != {ENDING}:
            raise ValueError(f"must end in {ENDING}, links followed: it names the file of a query")
        content = content_of(file, LARGEST_FILE, "a query")
        decode(content)
    except (OSError, RuntimeError, ValueError) as error:
        problem = str(error) if type(error) is ValueError else "cannot be read"
    else:
        return content
    raise ValueError(f"{called} {problem}")


def line_of(sql: str, offset: int) -> int:
    """The number, from 1, of the line at an offset in bytes of UTF-8."""
    return sql.encode()[:offset].count(b"\n") + 1


def open_parser() -> Any:
    """Opens a DuckDB without access to files or networks, to parse queries.

    To start DuckDB takes longer than all that is asked of it, and a project may have hundreds of queries.
    """
    return _start_parser(os.getpid()).cursor()


@cache
def _start_parser(process: int) -> Any:
    """Starts a DuckDB that holds nothing; a process that was forked starts its own."""
    import duckdb

    settings: dict[str, Any] = {"enable_external_access": False, "autoload_known_extensions": False, "threads": 1}
    return duckdb.connect(config=settings)


def select_of(parser: Any, sql: str) -> Node:
    """The one SELECT of a text, which may be anything.

    Raises:
        NotAccepted: it does not parse, or is not one SELECT.
    """
    import duckdb

    try:
        (parsed,) = parser.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone()
        read = json.loads(parsed)
    except (duckdb.Error, RecursionError, ValueError):
        read = {"error": True}
    if read["error"]:
        other = read.get("error_type") == "not implemented"
        problem = "it is not a SELECT" if other else "it does not parse"
        offset = int(read.get("position", -1))
        raise NotAccepted(f"{problem}; write one SELECT over {SOURCE}", {"query_location": offset})
    statements = read["statements"]
    if len(statements) != 1:
        problem = "it holds no statement" if not statements else "it holds several statements"
        raise NotAccepted(f"{problem}; write one SELECT over {SOURCE}")
    node: Node = statements[0]["node"]
    return node


def text_of(parser: Any, node: Node) -> str:
    """SQL of a parse, which must read back as the same."""
    import duckdb

    statements = {"error": False, "statements": [{"node": node}]}
    try:
        (text,) = parser.execute(
            "SELECT json_deserialize_sql($node::JSON)", {"node": json.dumps(statements)}
        ).fetchone()
        (again,) = parser.execute(
            "SELECT json_deserialize_sql(json_serialize_sql($sql)::JSON)", {"sql": text}
        ).fetchone()
    except duckdb.Error:
        text, again = "", None
    if text != again:
        raise NotAccepted("DuckDB cannot write it back as it reads it; write it more plainly")
    return str(text)
