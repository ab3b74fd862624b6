"""Row queries: one SELECT over `source`, in a file, that gives for each row at most one row, whatever the others are.

Judged on DuckDB's own parse, node by node (`row_expressions`): what runs is written back from what was judged, never
the text of the file. With `trusted_sql: true` any one SELECT over `source` is taken, and the promise rests on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline.spec import row_expressions
from dphist_pipeline.spec.refusals import shortened, shown
from dphist_pipeline.spec.row_expressions import Judged, NotByRow, as_kind, check_plain, judge_expression, settled
from dphist_pipeline.spec.row_nodes import Node, nodes_of, tried

LARGEST_FILE = 1 << 15  # joined texts grow with it, some 30 bytes a part
SOURCE = "source"

_WAY_OUT = (
    "Write it row by row, or add `trusted_sql: true`: then nothing checks that one person's rows leave others alone, "
    "the promise rests on the query, and the audit says so."
)
_PARTS = {
    "modifiers": "DISTINCT, ORDER BY and LIMIT look at other rows",
    "cte_map": "WITH makes other tables",
    "group_expressions": "GROUP BY puts rows together",
    "group_sets": "GROUP BY puts rows together",
    "having": "HAVING puts rows together",
    "sample": "a sample is drawn anew every time",
    "qualify": "QUALIFY looks at other rows",
}
_TABLES = {
    "JOIN": "a join makes rows depend on others",
    "SUBQUERY": "a subquery reads other rows",
    "TABLE_FUNCTION": "table functions read something else",
    "PIVOT": "PIVOT and UNPIVOT make more rows of one",
    "EXPRESSION_LIST": "VALUES are no records",
    "SHOW_REF": "DESCRIBE and SHOW tell of columns, not of records",
    "EMPTY": "there is no FROM",
}
_HARMLESS_FUNCTIONS = ("range", "generate_series", "unnest")


@dataclass(frozen=True)
class _Items:
    """What a query gives: the parse of its items, and of RowQuery `outputs`, `bare` and `excluded`."""

    nodes: list[Node]
    outputs: dict[str, frozenset[str]]
    bare: dict[str, str]
    excluded: frozenset[str]


@dataclass(frozen=True)
class RowQuery:
    """An accepted query.

    Attributes:
        text: the SELECT that runs, over a table `source`.
        sha256: of the file.
        columns: of the source that it reads, as written; none are told of a trusted query.
        outputs: for each column it gives the columns of the source it is made of; `*` stands for all that are left.
        bare: those of its columns that are columns of the source as they are.
        excluded: what `*` leaves out.
        trusted: whether it was taken as it is.
    """

    text: str
    sha256: str
    columns: frozenset[str]
    outputs: Mapping[str, frozenset[str]]
    bare: Mapping[str, str]
    excluded: frozenset[str]
    trusted: bool = False
    needs_decision: str = ""


def read_row_query(file: Path, trusted: bool, called: str) -> RowQuery:
    """Reads and judges a query.

    Args:
        file: with one SELECT.
        trusted: whether to take any.
        called: the file's name in messages.

    Raises:
        ValueError: saying what is wrong on which line, and the way out.
    """
    content = _content(file, shortened(called, 300))
    sql = content.decode("utf-8-sig")
    try:
        return judged_query(sql, hashlib.sha256(content).hexdigest(), trusted)
    except NotByRow as error:
        refused = error
    line = f"line {_line(sql, refused.offset)}: " if refused.offset >= 0 else ""
    way_out = "" if trusted or not refused.trusted else f". {_WAY_OUT}"
    raise ValueError(f"{shortened(called, 300)}, {line}{refused.problem.rstrip('. ')}{way_out}")


def _content(file: Path, called: str) -> bytes:
    problem = ""
    try:
        if not file.exists():
            problem = "there is no such file; the path starts at the project's folder"
        elif not file.is_file():
            problem = "is not a file; name a file with one SELECT"
        elif file.stat().st_size > LARGEST_FILE:
            problem = f"is larger than {LARGEST_FILE >> 10} kB, too large for a query"
        else:
            content = file.read_bytes()
            content.decode("utf-8-sig")
            if b"\0" not in content:
                return content
            problem = "holds a NUL byte; save the file as UTF-8 text"
    except UnicodeDecodeError:
        problem = "is not valid UTF-8; save the file as UTF-8 text"
    except (OSError, ValueError):
        problem = "cannot be read"
    raise ValueError(f"{called} {problem}")


def _line(sql: str, offset: int) -> int:
    return sql.encode()[:offset].count(b"\n") + 1


def judged_query(sql: str, sha256: str, trusted: bool) -> RowQuery:
    """The query in a text.

    Raises:
        NotByRow: naming the part that is refused.
    """
    import duckdb

    settings: dict[str, Any] = {"enable_external_access": False, "autoload_known_extensions": False, "threads": 1}
    with duckdb.connect(config=settings) as parser:
        node = _select(parser, sql)
        if trusted:
            _check_reach(node, frozenset())
            text = _written(parser, node)
            return RowQuery(
                text, sha256, frozenset(), {}, {}, frozenset(), trusted=True, needs_decision="it is taken as it is"
            )
        runs, items, columns = _by_row(node)
        _check_constants(parser, runs, columns)
        return RowQuery(_written(parser, runs), sha256, columns, items.outputs, items.bare, items.excluded)


def _select(parser: Any, sql: str) -> Node:
    """The one SELECT of a text."""
    import duckdb

    try:
        (parsed,) = parser.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone()
        read = json.loads(parsed)
    except (duckdb.Error, RecursionError, ValueError):
        read = {"error": True}
    if read["error"]:
        other = read.get("error_type") == "not implemented"
        what = "it is not a SELECT" if other else "it does not parse"
        offset = int(read.get("position", -1))
        raise NotByRow(f"{what}; write one SELECT over {SOURCE}", {"query_location": offset}, trusted=False)
    statements = read["statements"]
    if len(statements) != 1:
        what = "it holds no statement" if not statements else "it holds several statements"
        raise NotByRow(f"{what}; write one SELECT over {SOURCE}", trusted=False)
    node: Node = statements[0]["node"]
    return node


def _written(parser: Any, node: Node) -> str:
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
        raise NotByRow("DuckDB cannot write it back as it reads it; write it more plainly", trusted=False)
    return str(text)


def _by_row(node: Node) -> tuple[Node, _Items, frozenset[str]]:
    """What runs, what it gives, and the columns that it reads."""
    if node.get("type") != "SELECT_NODE":
        raise NotByRow("UNION and the like put tables together")
    for part, problem in _PARTS.items():
        if node.get(part) not in (None, [], {"map": []}):
            raise NotByRow(problem)
    if node.get("aggregate_handling") != "STANDARD_HANDLING":
        raise NotByRow("GROUP BY ALL puts rows together")
    check_plain(node, *_PARTS, "select_list", "from_table", "where_clause", "aggregate_handling")
    _check_table(node.get("from_table") or {})
    counted = [0]
    items = _items(node["select_list"], counted)
    read = frozenset[str]().union(*items.outputs.values())
    where = None
    if node.get("where_clause"):
        judged = as_kind(judge_expression(node["where_clause"], counted), "BOOLEAN", "WHERE")
        where, read = kept_from_raising(judged.node), read | judged.columns
    table = {"type": "BASE_TABLE", "table_name": SOURCE}
    runs = {
        **{"type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "aggregate_handling": "STANDARD_HANDLING"},
        **{
            "group_expressions": [],
            "group_sets": [],
            "select_list": items.nodes,
            "from_table": table,
            "where_clause": where,
        },
    }
    return runs, items, read


def _check_table(table: Node) -> None:
    if table.get("type") != "BASE_TABLE":
        raise NotByRow(_TABLES.get(table.get("type", ""), "this FROM is not known"), table)
    if table.get("sample"):
        raise NotByRow("a sample is drawn anew every time", table)
    name = table.get("table_name", "")
    if name.lower() != SOURCE or table.get("schema_name") or table.get("catalog_name"):
        raise NotByRow(f"there is no table {shown(name)}: the records are `FROM {SOURCE}`", table, trusted=False)
    if table.get("alias", "").lower() not in ("", SOURCE) or table.get("column_name_alias"):
        raise NotByRow(f"leave the table's name as it is, `FROM {SOURCE}`", table)
    check_plain(table, "table_name")


def _items(select_list: list[Node], counted: list[int]) -> _Items:
    nodes: list[Node] = []
    outputs: dict[str, frozenset[str]] = {}
    bare: dict[str, str] = {}
    excluded: frozenset[str] | None = None
    for item in select_list:
        if item.get("class") == "STAR":
            if excluded is not None:
                raise NotByRow("`*` stands once", item)
            excluded = _star(item)
            nodes.append(item)
            continue
        judged = settled(judge_expression(item, counted))
        name = _output_name(item, judged)
        if name.lower() in map(str.lower, outputs):
            raise NotByRow(f"two of its columns are called {shown(name)}; give one another name", item, trusted=False)
        if judged.kind == row_expressions.COLUMN:
            bare[name] = next(iter(judged.columns))
            nodes.append({**judged.node, "alias": name})
        else:
            nodes.append({**kept_from_raising(judged.node), "alias": name})
        outputs[name] = judged.columns
    if excluded is not None:
        outputs["*"] = frozenset()
    return _Items(nodes, outputs, bare, excluded or frozenset())


def _star(item: Node) -> frozenset[str]:
    for part, problem in {
        "columns": "COLUMNS(…) is not judged",
        "replace_list": "`* REPLACE` is not judged; use EXCLUDE and an item of its own",
        "rename_list": "`* RENAME` is not judged; use EXCLUDE and an item of its own",
        "expr": "`*` with a pattern is not judged",
    }.items():
        if item.get(part) not in (None, [], False):
            raise NotByRow(problem, item)
    if str(item.get("relation_name", "")).lower() not in ("", SOURCE):
        raise NotByRow("`*` stands alone, or as `source.*`", item)
    check_plain(item, "relation_name", "exclude_list")
    left_out = item.get("exclude_list", [])
    if not all(isinstance(name, str) for name in left_out):
        raise NotByRow("EXCLUDE takes plain names", item)
    return frozenset(left_out)


def _output_name(item: Node, judged: Judged) -> str:
    name = str(item.get("alias") or "")
    if not name and judged.kind == row_expressions.COLUMN:
        name = next(iter(judged.columns))
    if not name:
        raise NotByRow("an item that is no plain column needs a name: `… AS name`", item, trusted=False)
    if name == "*":
        raise NotByRow("a column cannot be called *", item, trusted=False)
    return name


def kept_from_raising(node: Node) -> Node:
    """A whole item or condition that gives null where it raises: what is accepted does not, so far as we know."""
    return tried(node)


def _check_constants(parser: Any, node: Node, columns: frozenset[str]) -> None:
    """Refuses constants that are not what they are cast to, and patterns and formats that DuckDB does not take."""
    import duckdb

    for cast in _constant_casts(node):
        alone = {**node, "select_list": [{**cast, "alias": "x"}], "from_table": {"type": "EMPTY"}, "where_clause": None}
        if parser.execute(_written(parser, alone)).fetchone() == (None,):
            wanted = cast["type_expr"]["type_name"]
            raise NotByRow(f"{shown(cast['child']['literal'].get('text'))} is no {wanted}", cast, trusted=False)
    left_out = [name for item in node["select_list"] for name in item.get("exclude_list", [])]
    names = dict.fromkeys(name.lower() for name in (*sorted(columns), *left_out))
    made_up = ", ".join(f"unnest([NULL, '', '0']) AS {_quoted(name)}" for name in (*names, "one more"))
    plain = _written(parser, _untried(node))
    try:
        parser.execute(f"WITH {SOURCE} AS NOT MATERIALIZED (SELECT {made_up}) {plain}").fetchall()
    except duckdb.Error as error:
        said = type(error).__name__.removesuffix("Exception").lower()
    else:
        return
    raise NotByRow(f"DuckDB does not take it ({said} error); check its patterns and formats", trusted=False)


def _untried(node: Any) -> Any:
    """The same without TRY."""
    if isinstance(node, list):
        return [_untried(below) for below in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "OPERATOR_TRY":
        (child,) = node["children"]
        return _untried({**child, "alias": node.get("alias", "")})
    return {key: _untried(below) for key, below in node.items()}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _constant_casts(node: Any) -> Iterator[Node]:
    for below in nodes_of(node):
        constant = below.get("class") == "CAST" and below["child"]["class"] == "CONSTANT"
        if constant and below["child"]["literal"]["kind"] != "NULL_LITERAL":
            yield below


def _check_reach(node: Node, tables: frozenset[str]) -> None:
    """Refuses a trusted query that reads anything but `source` and tables of its own making, or takes parameters."""
    nodes = list(nodes_of(node))
    made = {entry["key"].lower() for part in nodes for entry in (part.get("cte_map") or {}).get("map", [])}
    read = set()
    for part in nodes:
        kind = part.get("class") or part.get("type")
        if kind == "PARAMETER":
            raise NotByRow("there is nothing to fill in a parameter", part)
        if kind in ("TABLE_FUNCTION", "SHOW_REF"):
            function = (part.get("function") or {}).get("function_name", "DESCRIBE")
            if function not in _HARMLESS_FUNCTIONS:
                raise NotByRow(f"a query reads `{SOURCE}` alone, not {shown(function)}", part)
        if kind == "BASE_TABLE":
            name = part.get("table_name", "").lower()
            read.add(name)
            if name not in made | {SOURCE} or part.get("schema_name") or part.get("catalog_name"):
                raise NotByRow(f"there is no table {shown(name)}: the records are `FROM {SOURCE}`", part)
    if SOURCE not in read or SOURCE in made:
        raise NotByRow(f"a query reads its records `FROM {SOURCE}`, and makes no other table of that name")
