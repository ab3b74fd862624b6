"""Row queries: one SELECT over `source`, in a file, that gives at most one row for each row, whatever other rows hold.

Judged on DuckDB's own parse, node by node (`row_expressions`): what runs is written back from what was judged, never
the text of the file. A judged query passes the columns that name a privacy unit through bare, under their own names.
Every other query over `source` alone (`query_reach`) needs an operator's decision, by the digest of its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline.spec import _row_expressions as row_expressions
from dphist_pipeline.spec._query_parsing import content_of_query, error_of, line_of, opened_parser, select_of, text_of
from dphist_pipeline.spec._query_reach import SOURCE, check_reach
from dphist_pipeline.spec._row_expressions import Judged, as_kind, check_plain, judge_expression, with_default_type
from dphist_pipeline.spec._row_nodes import Node, NotAccepted, in_try, nodes_of, offset_of
from dphist_pipeline.spec.mistakes import shortened, shown
from dphist_pipeline.sql_files import identifier

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


@dataclass(frozen=True)
class _Items:
    """What a query gives: the parse of its items, and of RowQuery `outputs`, `bare` and `excluded`."""

    nodes: list[Node]
    outputs: dict[str, frozenset[str]]
    bare: dict[str, str]
    excluded: frozenset[str]


@dataclass(frozen=True)
class RowQuery:
    """A query that may run: judged row by row, or once an operator has allowed it.

    Attributes:
        text: the SELECT that runs, over a table `source`.
        sha256: of the file.
        columns: of the source that it reads, as written; none are told of a query that was not judged.
        outputs: for each column it gives the columns of the source it is made of; `*` stands for all that are left.
        bare: those of its columns that are columns of the source as they are.
        excluded: what `*` leaves out.
        needs_decision: why an operator must allow it, with the line of the file; nothing where it was judged.
    """

    text: str
    sha256: str
    columns: frozenset[str]
    outputs: Mapping[str, frozenset[str]]
    bare: Mapping[str, str]
    excluded: frozenset[str]
    needs_decision: str = ""

    @property
    def trusted(self) -> bool:
        """Whether it runs by an operator's decision, because it was not judged row by row."""
        return bool(self.needs_decision)


def read_row_query(file: Path, called: str, unit: Collection[str] = ()) -> RowQuery:
    """Reads and judges the query in a file whose name, links followed, ends in .sql.

    A judged query passes the columns of `unit` through bare. Of a file that does not parse as one SELECT, messages say
    the line and quote nothing, since it may be any file.

    Raises:
        ValueError: saying what is wrong on which line, for what no decision of an operator lets pass.
    """
    name = shortened(called, 300)
    content = content_of_query(file, name)
    sql = content.decode("utf-8-sig")
    try:
        return judged_query(sql, hashlib.sha256(content).hexdigest(), unit)
    except NotAccepted as error:
        refused = error
    raise ValueError(f"{name}, {_refusal_in_words(sql, refused)}")


def _refusal_in_words(sql: str, refusal: NotAccepted) -> str:
    line = f"line {line_of(sql, refusal.offset)}: " if refusal.offset >= 0 else ""
    return f"{line}{refusal.problem.rstrip('. ')}"


def judged_query(sql: str, sha256: str, unit: Collection[str] = ()) -> RowQuery:
    """The query in a text, one SELECT, which passes the columns of `unit` through bare.

    Raises:
        NotAccepted: naming the part that no decision of an operator lets pass.
    """
    with opened_parser() as parser:
        node = select_of(parser, sql)
        check_reach(node)
        try:
            runs, items, columns = _by_row(node)
            _check_constants(parser, runs, columns)
            _check_unit(items, unit)
            return RowQuery(text_of(parser, runs), sha256, columns, items.outputs, items.bare, items.excluded)
        except NotAccepted as error:
            if not error.allowable:
                raise
            reason = _refusal_in_words(sql, error)
        return RowQuery(text_of(parser, node), sha256, frozenset(), {}, {}, frozenset(), reason)


def _by_row(node: Node) -> tuple[Node, _Items, frozenset[str]]:
    """The parse of the query that runs, its items, and the columns that it reads."""
    if node.get("type") != "SELECT_NODE":
        raise NotAccepted("UNION and the like put tables together")
    for part, problem in _PARTS.items():
        if node.get(part) not in (None, [], {"map": []}):
            raise NotAccepted(problem)
    if node.get("aggregate_handling") != "STANDARD_HANDLING":
        raise NotAccepted("GROUP BY ALL puts rows together")
    check_plain(node, *_PARTS, "select_list", "from_table", "where_clause", "aggregate_handling")
    _check_table(node.get("from_table") or {})
    count = [0]
    items = _items(node["select_list"], count)
    read = frozenset[str]().union(*items.outputs.values())
    where = None
    if node.get("where_clause"):
        condition = as_kind(judge_expression(node["where_clause"], count), "BOOLEAN", "WHERE")
        where, read = kept_from_raising(condition.node), read | condition.columns
    table = {"type": "BASE_TABLE", "table_name": SOURCE}
    runs = {
        **{"type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "aggregate_handling": "STANDARD_HANDLING"},
        **{"group_expressions": [], "group_sets": [], "select_list": items.nodes},
        **{"from_table": table, "where_clause": where},
    }
    return runs, items, read


def _check_table(table: Node) -> None:
    if table.get("type") != "BASE_TABLE":
        raise NotAccepted(_TABLES.get(table.get("type", ""), "this FROM is not known"), table)
    if table.get("sample"):
        raise NotAccepted("a sample is drawn anew every time", table)
    name = table.get("table_name", "")
    if name.lower() != SOURCE or table.get("schema_name") or table.get("catalog_name"):
        raise NotAccepted(f"there is no table {shown(name)}: the records are `FROM {SOURCE}`", table)
    if table.get("alias", "").lower() not in ("", SOURCE) or table.get("column_name_alias"):
        raise NotAccepted(f"leave the table's name as it is, `FROM {SOURCE}`", table)
    check_plain(table, "table_name")


def _items(select_list: list[Node], count: list[int]) -> _Items:
    nodes: list[Node] = []
    outputs: dict[str, frozenset[str]] = {}
    bare: dict[str, str] = {}
    excluded: frozenset[str] | None = None
    for item in select_list:
        if item.get("class") == "STAR":
            if excluded is not None:
                raise NotAccepted("`*` stands once", item)
            excluded = _star(item)
            nodes.append(item)
            continue
        expression = with_default_type(judge_expression(item, count))
        name = _output_name(item, expression)
        if name.lower() in map(str.lower, outputs):
            raise NotAccepted(
                f"two of its columns are called {shown(name)}; give one another name", item, allowable=False
            )
        if expression.kind == row_expressions.COLUMN:
            bare[name] = next(iter(expression.columns))
            nodes.append({**expression.node, "alias": name})
        else:
            nodes.append({**kept_from_raising(expression.node), "alias": name})
        outputs[name] = expression.columns
    if excluded is not None:
        outputs["*"] = frozenset()
    return _Items(nodes, outputs, bare, excluded or frozenset())


def _check_unit(items: _Items, unit: Collection[str]) -> None:
    """Refuses a query that computes, renames or drops a column of the privacy unit."""
    for column in unit:
        outputs = [name for name in items.outputs if name.lower() == column.lower()]
        left_out = column.lower() in map(str.lower, items.excluded)
        bare = outputs == [column] and items.bare.get(column) == column
        starred = "*" in items.outputs and not left_out and not outputs
        if not starred and not (bare and (left_out or "*" not in items.outputs)):
            item = next((node for node in items.nodes if str(node.get("alias", "")).lower() == column.lower()), {})
            problem = (
                f"the column {shown(column)} names a privacy unit; a query passes it through bare, once and under its "
                "own name"
            )
            placed = next((part for part in nodes_of(item) if offset_of(part) >= 0), item)
            raise NotAccepted(problem, placed)


def _star(item: Node) -> frozenset[str]:
    for part, problem in {
        "columns": "COLUMNS(…) is not judged",
        "replace_list": "`* REPLACE` is not judged; use EXCLUDE and an item of its own",
        "rename_list": "`* RENAME` is not judged; use EXCLUDE and an item of its own",
        "expr": "`*` with a pattern is not judged",
    }.items():
        if item.get(part) not in (None, [], False):
            raise NotAccepted(problem, item)
    if str(item.get("relation_name", "")).lower() not in ("", SOURCE):
        raise NotAccepted("`*` stands alone, or as `source.*`", item)
    check_plain(item, "relation_name", "exclude_list")
    left_out = item.get("exclude_list", [])
    if not all(isinstance(name, str) for name in left_out):
        raise NotAccepted("EXCLUDE takes plain names", item)
    return frozenset(left_out)


def _output_name(item: Node, expression: Judged) -> str:
    name = str(item.get("alias") or "")
    if not name and expression.kind == row_expressions.COLUMN:
        name = next(iter(expression.columns))
    if not name:
        raise NotAccepted("an item that is no plain column needs a name: `… AS name`", item)
    if name == "*":
        raise NotAccepted("a column cannot be called *", item)
    return name


def kept_from_raising(node: Node) -> Node:
    """A whole item or condition within TRY. Accepted expressions do not raise; TRY is a second line of defence."""
    return in_try(node)


def _check_constants(parser: Any, node: Node, columns: frozenset[str]) -> None:
    """Refuses constants that are not what they are cast to, and patterns and formats that DuckDB does not take."""
    for cast in _constant_casts(node):
        alone = {**node, "select_list": [{**cast, "alias": "x"}], "from_table": {"type": "EMPTY"}, "where_clause": None}
        if parser.execute(text_of(parser, alone)).fetchone() == (None,):
            type_name = cast["type_expr"]["type_name"]
            raise NotAccepted(f"{shown(cast['child']['literal'].get('text'))} is no {type_name}", cast, allowable=False)
    left_out = [name for item in node["select_list"] for name in item.get("exclude_list", [])]
    names = dict.fromkeys(name.lower() for name in (*sorted(columns), *left_out))
    made_up = ", ".join(f"unnest([NULL, '', '0']) AS {identifier(name)}" for name in (*names, "one more"))
    plain = text_of(parser, _untried(node))
    error = error_of(parser, f"WITH {SOURCE} AS NOT MATERIALIZED (SELECT {made_up}) {plain}")
    if error:
        raise NotAccepted(f"DuckDB refuses it ({error} error); check its patterns and formats", allowable=False)


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


def _constant_casts(node: Any) -> Iterator[Node]:
    for below in nodes_of(node):
        constant = below.get("class") == "CAST" and below["child"]["class"] == "CONSTANT"
        if constant and below["child"]["literal"]["kind"] != "NULL_LITERAL":
            yield below
