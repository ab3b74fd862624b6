"""Builds nodes of DuckDB's parse, and walks through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dphist_pipeline.spec._row_functions import Kind

Node = dict[str, Any]

YEARS = ("0001-01-01", "9999-12-31")


def cast_to(child: Node, kind: Kind) -> Node:
    """TRY_CAST of a part to one of DuckDB's types; the cast takes the part's place in the text."""
    type_expr = {"class": "TYPE", "type": "TYPE", "type_name": kind}
    cast = {"class": "CAST", "type": "OPERATOR_CAST", "child": child, "try_cast": True, "type_expr": type_expr}
    return cast if offset_of(child) < 0 else {**cast, "query_location": offset_of(child)}


def call_of(name: str, arguments: Iterable[Node]) -> Node:
    """A call of a function, named in lower case, or of an operator, named by its sign."""
    return {
        **{"class": "FUNCTION", "type": "FUNCTION", "function_name": name},
        "order_bys": {"type": "ORDER_MODIFIER", "orders": []},
        "is_operator": not name[0].isalpha(),
        "arguments": [{"name": "", "expression": argument} for argument in arguments],
    }


def within_calendar(called: Node, moment: Node, kind: Kind) -> Node:
    """The call if its moment lies in the years 1 to 9999, else null: beyond these years it could raise.

    TRY would not serve: DuckDB moves subexpressions that several expressions share out of TRY, never out of CASE.
    """
    lower, upper = (cast_to(constant("STRING", end), kind) for end in YEARS)
    within = {"class": "BETWEEN", "type": "COMPARE_BETWEEN", "input": moment, "lower": lower, "upper": upper}
    check = {"when_expr": within, "then_expr": called}
    otherwise = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "NULL_LITERAL"}}
    return {"class": "CASE", "type": "CASE_EXPR", "case_checks": [check], "else_expr": otherwise}


def constant(kind: str, text: str) -> Node:
    """A constant, as a query writes it without quotes; `kind` is one of the literals of DuckDB's parser."""
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": kind, "text": text}}


def in_try(node: Node) -> Node:
    """TRY of an expression (not of a whole query): null for each row for which it raises."""
    return {"class": "OPERATOR", "type": "OPERATOR_TRY", "children": [node]}


def nodes_of(node: Any) -> Iterator[Node]:
    """The node and all mappings below it, from above."""
    if isinstance(node, Mapping):
        yield dict(node)
        for value in node.values():
            yield from nodes_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from nodes_of(value)


def offset_of(node: Mapping[str, Any]) -> int:
    """Where a part stands in the text of its query, in bytes; -1 where unknown, as for what was rebuilt."""
    offset = node.get("query_location", -1)
    return offset if isinstance(offset, int) and offset < 1 << 63 else -1


class NotAccepted(ValueError):
    """A part of a query that is not accepted as it stands.

    Attributes:
        offset: where it stands in the query, in bytes; -1 where unknown.
        allowable: whether an operator's decision would let it pass.
    """

    def __init__(self, problem: str, node: Mapping[str, Any] | None = None, allowable: bool = True) -> None:
        self.problem, self.allowable, self.offset = problem, allowable, offset_of(node or {})
        super().__init__(problem)
