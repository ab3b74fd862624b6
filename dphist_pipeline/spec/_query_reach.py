"""Checks that a query reads only its records and tables that it makes itself, and calls only listed functions.

The check works on DuckDB's parse, and holds whatever an operator signs. Names of tables
resolve by scope, as DuckDB resolves them: a table made by WITH is visible in later tables of the same WITH, in the body
of its query, and below. A part of the parse that is not known here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dphist_pipeline.spec.mistakes import echo, read_words

Node = dict[str, Any]

SOURCE = "source"
AGGREGATES = read_words("query_aggregates")
ALLOWED = read_words("query_functions") | AGGREGATES
# Refused with a reason of their own.
CHANGING = ("random", "uuid", "gen_random_uuid", "now", "get_current_timestamp", "today", "current_date", "nextval")
SQL_VALUES = frozenset(
    [
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "rowid"),
        *("current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"),
    ]
)
TABLE_FUNCTIONS = frozenset(("generate_series", "range", "unnest"))
MOST_LEVELS = 420  # of the parse, three of which are about one of the query

_QUERIES = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE")
_TABLES = ("JOIN", "SUBQUERY", "PIVOT", "EXPRESSION_LIST", "EMPTY")
_PARTS = frozenset(
    [
        *("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"),
        *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    ]
)
_EXPRESSIONS = frozenset(
    [
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
        *("LAMBDA", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"),
    ]
)
# A name that DuckDB can take for no file, no address and no qualified name.
_PLAIN = re.compile(r"\w[\w ]{0,62}")


class NotAccepted(ValueError):
    """A query that no decision of an operator lets pass; `offset`: where, in bytes, or -1 where that is unknown."""

    def __init__(self, problem: str, node: Mapping[str, Any] | None = None) -> None:
        offset = (node or {}).get("query_location", -1)
        self.problem, self.offset = problem, offset if isinstance(offset, int) and offset < 1 << 63 else -1
        super().__init__(problem)


def check_reach(node: Node) -> None:
    """Refuses a query that reads anything but `source` and tables of its own making, or takes parameters.

    Raises:
        NotAccepted: naming the part; no decision of an operator lets it pass.
    """
    reads = _Reads()
    _visit(node, frozenset(), reads)
    if not reads.source:
        raise NotAccepted(f"a query reads its records `FROM {SOURCE}`", node)


@dataclass
class _Reads:
    """Whether the records were read, and the depth of the part that is checked."""

    source: bool = False
    level: int = 0


def _visit(part: Any, visible: frozenset[str], reads: _Reads) -> None:
    """Checks a part of the parse and everything below it."""
    reads.level += 1
    if reads.level > MOST_LEVELS:
        raise NotAccepted("it is nested too deep; write it with fewer levels", {})
    if isinstance(part, list):
        for below in part:
            _visit(below, visible, reads)
    elif isinstance(part, dict) and part.get("type") in _QUERIES:
        _visit_query(part, visible, reads)
    elif isinstance(part, dict):
        _check(part, visible, reads)
        for below in part.values():
            _visit(below, visible, reads)
    reads.level -= 1


def _visit_query(node: Node, visible: frozenset[str], reads: _Reads) -> None:
    """Checks a query node; tables that its WITH makes are visible to later ones and to its body."""
    for entry in (node.get("cte_map") or {}).get("map", []):
        name = _created_table(entry["key"], node)
        _visit(entry["value"], visible, reads)
        visible |= {name}
    for key, below in node.items():
        if key == "right" and node["type"] == "RECURSIVE_CTE_NODE":
            _visit(below, visible | {_created_table(node["cte_name"], node)}, reads)
        elif key != "cte_map":
            _visit(below, visible, reads)


def _created_table(name: str, node: Node) -> str:
    """The name of a table that a query makes, in lower case."""
    if name.lower() == SOURCE:
        raise NotAccepted(f"`{SOURCE}` is the records; a query makes no other table of that name", node)
    if not _PLAIN.fullmatch(name):
        raise NotAccepted("a table that a query makes has a plain name of letters, digits and _", node)
    return _fold_case(name)


def _fold_case(name: str) -> str:
    """The name as DuckDB compares it: without regard to case, of ASCII letters alone."""
    return name.lower() if name.isascii() else name


def _check(part: Node, visible: frozenset[str], reads: _Reads) -> None:
    kind = part.get("class") or part.get("type")
    if "function_name" in part:
        _check_function(part)
    if not isinstance(kind, str):
        return
    if "class" in part:
        _check_expression(part, kind)
    elif kind == "BASE_TABLE":
        _check_table(part, visible, reads)
    elif kind == "TABLE_FUNCTION":
        name = str((part.get("function") or {}).get("function_name", ""))
        if name.lower() not in TABLE_FUNCTIONS:
            raise NotAccepted(f"a query reads `{SOURCE}` alone, not {echo(name)}", part)
    elif kind == "SHOW_REF":
        raise NotAccepted(f"a query reads `{SOURCE}` alone; DESCRIBE, SHOW and SUMMARIZE are no part of it", part)
    elif kind not in _TABLES and kind not in _PARTS:
        raise NotAccepted(f"{kind.replace('_', ' ').lower()} is not known", part)


def _check_expression(part: Node, kind: str) -> None:
    if kind == "PARAMETER":
        raise NotAccepted("a query takes no parameters; write the value itself", part)
    if kind not in _EXPRESSIONS:
        raise NotAccepted(f"{kind.replace('_', ' ').lower()} is not known", part)
    names = part.get("column_names") or []
    if kind == "COLUMN_REF" and len(names) == 1 and str(names[0]).lower() in SQL_VALUES:
        raise NotAccepted(f"{echo(names[0])} is no column of a record", part)


def _check_function(part: Node) -> None:
    name = str(part["function_name"])
    path = (part.get("qualified_name") or {}).get("path", [])
    if part.get("schema") or part.get("catalog") or len(path) > 1:
        raise NotAccepted("functions are named without a schema", part)
    if name.lower() in CHANGING:
        raise NotAccepted(f"{name.lower()}() gives something else every time", part)
    if name.lower() not in ALLOWED:
        near = get_close_matches(name[:60].lower(), ALLOWED, n=1, cutoff=0.8)
        hint = f". Did you mean {near[0]}?" if near else ""
        raise NotAccepted(f"the function {echo(name)} is not on the list of those that a query may call{hint}", part)


def _check_table(part: Node, visible: frozenset[str], reads: _Reads) -> None:
    name = str(part.get("table_name", ""))
    path = (part.get("qualified_name") or {}).get("path", [])
    qualified = part.get("schema_name") or part.get("catalog_name") or len(path) > 1
    if qualified or _fold_case(name) not in visible | {SOURCE}:
        raise NotAccepted(f"there is no table {echo(name)}: the records are `FROM {SOURCE}`", part)
    if part.get("at_clause"):
        raise NotAccepted("AT is not known", part)
    reads.source |= _fold_case(name) == SOURCE
