"""Finds the `derive` and `keep` that say the same as a query, which then needs no operator's signature.

Known are the queries that specs wrote before there were declared columns: columns as they are, dates and numbers by
TRY_CAST, parts of dates, first letters, days between dates, and conditions that AND puts together. Of any other query
nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from dphist_pipeline.spec._query_parsing import open_parser, select_of
from dphist_pipeline.spec._query_reach import SOURCE, Node, NotAccepted

_PARTS = {name: name for name in ("year", "quarter", "month", "week", "day", "hour")} | {"isodow": "weekday"}
_ENDS = {"COMPARE_GREATERTHANOREQUALTO": "from", "COMPARE_LESSTHAN": "to"}
_MOMENTS = ("DATE", "TIMESTAMP")
_ONLY = frozenset(("select_list", "from_table", "where_clause", "aggregate_handling", "type"))
_NOTHING: tuple[object, ...] = (None, "", False, [], {}, {"map": []})


@dataclass
class Instead:
    """What a spec would declare in the place of its query; `renamed`: columns that need a name of their own."""

    derive: list[dict[str, Any]] = field(default_factory=list)
    keep: list[dict[str, Any]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> str:
        """As YAML of a spec, on one line each."""
        fields = {"derive": self.derive, "keep": self.keep}
        return "; ".join(f"{name}: {_yaml(listed)}" for name, listed in fields.items() if listed)


class _Unknown(Exception):
    """No known `derive` and `keep` say the same as the query."""


def declared_instead(sql: str, unit: Collection[str]) -> Instead | None:
    """What says the same as a query over a table `source`; None where nothing known does.

    Args:
        unit: the columns that name a privacy unit, of which a row without one is left out anyway.
    """
    try:
        with open_parser() as parser:
            return _read(select_of(parser, sql), unit)
    except (_Unknown, NotAccepted):
        return None


def _read(node: Node, unit: Collection[str]) -> Instead:
    more = [key for key, value in node.items() if key not in _ONLY and value not in _NOTHING]
    table = node.get("from_table") or {}
    plain = (node.get("type"), node.get("aggregate_handling"), table.get("type")) == (
        *("SELECT_NODE", "STANDARD_HANDLING", "BASE_TABLE"),
    )
    if more or not plain or str(table.get("table_name")).lower() != SOURCE or table.get("sample"):
        raise _Unknown
    instead, read = Instead(), []
    for item in node["select_list"]:
        derived = _item(item)
        if derived is not None:
            read += [name for key, value in derived.items() if key not in ("column", "part") for name in _names(value)]
            instead.derive.append(derived)
    for derived in instead.derive:
        name = derived["column"]
        if name in read:  # the source has a column of this name, and nothing of it is shadowed
            derived["column"] = instead.renamed[name] = f"{name}_read"
    ends: dict[str, dict[str, Any]] = {}
    for condition in _conditions(node.get("where_clause")):
        column, key, value = _condition(condition, unit)
        if key == "is":
            instead.keep.append({"column": column, "is": value})
        elif key:
            if key in ends.setdefault(column, {}):
                raise _Unknown
            ends[column][key] = value
    instead.keep += [{"column": column, **both} for column, both in ends.items()]
    return instead


def _item(item: Node) -> dict[str, Any] | None:
    """A derived column; None for what needs none: `*`, a column as it is, or its number."""
    if item.get("class") == "STAR":
        if any(item.get(part) not in _NOTHING for part in ("columns", "replace_list", "rename_list", "expr")):
            raise _Unknown
        return None
    name = str(item.get("alias") or "")
    column = _column(item) or _cast(item, ("DOUBLE",))
    if column is not None:
        if name not in ("", column):
            raise _Unknown
        return None
    if not name:
        raise _Unknown
    function, arguments = _call(item)
    constants = [_constant(argument) for argument in arguments]
    if function == "date_part" and len(arguments) == 2 and isinstance(constants[0], str):
        function, arguments = constants[0].lower(), arguments[1:]
    if function in _PARTS and len(arguments) == 1:
        return {"column": name, "part": _PARTS[function], "of": _moment(arguments[0])}
    if function in ("left", "substring", "substr"):
        places = constants[1:] if function == "left" else constants[2:]
        begins = function == "left" or constants[1:2] == [1]
        of = _cast(arguments[0], ("VARCHAR",)) or _column(arguments[0])
        if begins and of is not None and len(places) == 1 and isinstance(places[0], int) and places[0] > 0:
            return {"column": name, "first_letters": places[0], "of": of}
    if function in ("date_diff", "datediff") and len(arguments) == 3 and constants[0] == "day":
        return {"column": name, "days_between": [_moment(arguments[1]), _moment(arguments[2])]}
    several = item["children"] if item.get("type") == "OPERATOR_COALESCE" else [item]
    return {"column": name, "first_of": [_date_column(one) for one in several]}


def _date_column(node: Node) -> dict[str, str]:
    """A column of dates and how they are written: TRY_CAST(c AS DATE), or try_strptime(c, format), maybe as a DATE."""
    column = _cast(node, _MOMENTS)
    if column is not None:
        return {"column": column}
    inner = node["child"] if node.get("class") == "CAST" and _kind(node) in _MOMENTS else node
    function, arguments = _call(inner)
    if function != "try_strptime" or len(arguments) != 2:
        raise _Unknown
    column, pattern = _cast(arguments[0], ("VARCHAR",)) or _column(arguments[0]), _constant(arguments[1])
    if column is None or not isinstance(pattern, str):
        raise _Unknown
    return {"column": column, "format": pattern}


def _conditions(node: Node | None) -> Iterator[Node]:
    if node and node.get("type") == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _conditions(child)
    elif node:
        yield node


def _condition(node: Node, unit: Collection[str]) -> tuple[str, str, Any]:
    """The column, `is`, `from` or `to`, and with what it is compared; no word where the condition says nothing new."""
    kind = str(node.get("type"))
    if kind == "OPERATOR_IS_NOT_NULL" and (column := _column(node["children"][0])) in unit:
        return str(column), "", None
    if kind in ("COMPARE_EQUAL", "COMPARE_IN"):
        first, *others = node["children"] if kind == "COMPARE_IN" else (node["left"], node["right"])
        column, values = _cast(first, ("VARCHAR",)) or _column(first), [_constant(other) for other in others]
        if column is not None and all(isinstance(value, str) for value in values):
            return column, "is", values
    elif kind in _ENDS:
        column, end = _cast(node["left"], ("DOUBLE",)), _constant(node["right"])
        if column is not None and isinstance(end, int | float):
            return column, _ENDS[kind], end
    raise _Unknown


def _column(node: Node) -> str | None:
    names = [str(name) for name in node.get("column_names", ())] if node.get("class") == "COLUMN_REF" else []
    names = names[1:] if len(names) == 2 and names[0].lower() == SOURCE else names
    return names[0] if len(names) == 1 else None


def _kind(node: Node) -> str:
    return str(node["type_expr"].get("type_name", "")).upper() if node.get("try_cast") else ""


def _cast(node: Node, kinds: Collection[str]) -> str | None:
    """The column that TRY_CAST makes one of these types of."""
    return _column(node["child"]) if node.get("class") == "CAST" and _kind(node) in kinds else None


def _moment(node: Node) -> str:
    column = _cast(node, _MOMENTS)
    if column is None:
        raise _Unknown
    return column


def _call(node: Node) -> tuple[str, list[Node]]:
    if node.get("class") != "FUNCTION":
        return "", []
    return str(node["function_name"]).lower(), [argument["expression"] for argument in node["arguments"]]


def _constant(node: Node) -> str | int | float | None:
    literal = node.get("literal") or {}
    kind, text = literal.get("kind"), str(literal.get("text", ""))
    if node.get("class") != "CONSTANT" or kind not in ("STRING", "INTEGER", "NUMERIC"):
        return None
    return text if kind == "STRING" else int(text) if text.lstrip("-").isdigit() else float(text)


def _names(value: object) -> Iterator[str]:
    """The columns that a field of a derived column names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)
    elif isinstance(value, dict):
        yield value["column"]


def _yaml(value: object) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_yaml(one)}' for key, one in value.items())}}}"
    text = str(value)
    plain = text.replace("_", "").isalnum() and text[0].isalpha() and text.lower() not in _WORDS
    return text if plain or not isinstance(value, str) else "'" + text.replace("'", "''") + "'"


_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
