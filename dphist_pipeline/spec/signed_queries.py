"""Queries over the records: one SELECT over `source`, in a file, that an operator signs by the digest of its text.

A query may join, count and compute units, so the promise rests on whoever signed it. What it may reach is no matter of
trust: see `_query_reach`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline.spec._query_parsing import content_of_query, line_of, open_parser, select_of, text_of
from dphist_pipeline.spec._query_reach import AGGREGATES, Node, NotAccepted, check_reach
from dphist_pipeline.spec.mistakes import one_line

# What TRY cannot hold: what reads other rows, or makes several of one.
_OF_MORE_ROWS = frozenset(("SUBQUERY", "WINDOW", "STAR", "POSITIONAL_REFERENCE"))
_NEVER_RAISES = frozenset(("COLUMN_REF", "CONSTANT"))


@dataclass(frozen=True)
class SignedQuery:
    """A query that runs once an operator has signed its text.

    Attributes:
        text: the SELECT as it is in the file, over a table `source`.
        tried: the same with null in place of an item's error, row by row; what runs where the decision says so.
        sha256: of the file.
    """

    text: str
    tried: str
    sha256: str


def read_query_file(file: Path, called: str) -> SignedQuery:
    """Reads the query in a file whose name, links followed, ends in .sql.

    Of a file that does not parse as one SELECT, messages say the line and quote nothing, since it may be any file.

    Raises:
        ValueError: saying what is wrong on which line.
    """
    name = one_line(called, 300)
    content = content_of_query(file, name)
    sql = content.decode("utf-8-sig")
    try:
        return query_of(sql, hashlib.sha256(content).hexdigest())
    except NotAccepted as error:
        line = f"line {line_of(sql, error.offset)}: " if error.offset >= 0 else ""
        problem = error.problem.rstrip(". ")
    raise ValueError(f"{name}, {line}{problem}")


def query_of(sql: str, sha256: str) -> SignedQuery:
    """The query in a text, one SELECT.

    Raises:
        NotAccepted: naming the part that reaches too far.
    """
    with open_parser() as parser:
        node = select_of(parser, sql)
        check_reach(node)
        return SignedQuery(text_of(parser, node), text_of(parser, _query_with_try(node)), sha256)


def _query_with_try(node: Node) -> Node:
    """The query with TRY around each named item that looks at one row alone; conditions and joins still raise."""
    if node.get("type") != "SELECT_NODE":
        return node
    return {**node, "select_list": [_item_tried(item) for item in node["select_list"]]}


def _item_tried(item: Node) -> Node:
    # Without a name an item is called after its text, which TRY would change.
    if not item.get("alias") or item.get("class") in _NEVER_RAISES or any(map(_reads_more, _nodes_of(item))):
        return item
    tried = {"class": "OPERATOR", "type": "OPERATOR_TRY", "children": [{**item, "alias": ""}]}
    return {**tried, "alias": item["alias"]}


def _reads_more(node: Node) -> bool:
    name = str(node.get("function_name", "")).lower()
    return node.get("class") in _OF_MORE_ROWS or name in AGGREGATES or name == "unnest"


def _nodes_of(node: Any) -> Iterator[Node]:
    """The node and all mappings below it, from above."""
    if isinstance(node, Mapping):
        yield dict(node)
        for value in node.values():
            yield from _nodes_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from _nodes_of(value)
