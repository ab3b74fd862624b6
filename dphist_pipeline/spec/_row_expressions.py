"""Expressions of a row query, judged on DuckDB's own parse: accepted node by node. An unknown node is refused.

Every accepted expression has one kind, and operands have the same one: no cast is left to DuckDB that could raise, and
with it show the value. Columns enter by TRY_CAST alone, because their types are known only with the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dphist_pipeline.spec import _row_functions as known
from dphist_pipeline.spec._row_functions import FUNCTIONS, KINDS, Constant, Function, Kind
from dphist_pipeline.spec._row_nodes import (
    Node,
    NotAccepted,
    call_of,
    cast_to,
    constant,
    nodes_of,
    offset_of,
    within_calendar,
)
from dphist_pipeline.spec.mistakes import shown

MOST_NODES = 2000
MOST_LEVELS = 100
MOST_DIGITS = 18
# A text that is joined with others is cut to this many characters, so that no row grows without bound.
LONGEST_PART = 1_000
ALLOWED_CASTS = ", ".join(KINDS)

_SPELLINGS = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ", "TEXT": "VARCHAR"}
_EMPTY: tuple[object, ...] = (None, "", False, [], {}, {"map": []}, {"type": "ORDER_MODIFIER", "orders": []})
_PLACES = frozenset({"query_location", "query_location_length", "qualified_name", "class", "type", "alias"})
_REFUSED = {
    "SUBQUERY": "a subquery reads other rows",
    "WINDOW": "a window function reads other rows",
    "LAMBDA": "functions of one's own are not judged",
    "STAR": "`*` stands only as an item of its own",
    "PARAMETER": "a query takes no parameters; write the value itself",
    "POSITIONAL_REFERENCE": "columns are named, not numbered; write the column's name",
    "COLLATE": "collations are not judged",
    "DEFAULT": "DEFAULT has no meaning in a query",
}


@dataclass(frozen=True)
class Judged:
    """An accepted expression.

    `node` is what runs: the parse, with constants cast to the kind they are used as. `kind` is of its values: for
    constants what they could become, for a bare column unknown. `columns` are the source's, as written. `joins`: it is
    texts joined, each of them cut already.
    """

    node: Node
    kind: Kind | str
    columns: frozenset[str] = frozenset()
    joins: bool = False


# Kinds of what has none yet.
COLUMN, NOTHING, WHOLE, DECIMAL = "a column", "NULL", "a whole number", "a decimal number"


def judge_expression(node: Node, seen: list[int] | None = None, level: int = 0) -> Judged:
    """The expression with its kind.

    Raises:
        NotAccepted: for a node that is not known to be a function of one row that cannot raise.
    """
    count = [0] if seen is None else seen
    count[0] += 1
    if count[0] > MOST_NODES or level > MOST_LEVELS:
        raise NotAccepted(f"it has more than {MOST_NODES:,} parts or {MOST_LEVELS} levels; shorten it")
    if level and node.get("alias"):
        raise NotAccepted("only a whole item of SELECT is given a name by AS", node)
    judge = _JUDGES.get(node.get("class", ""))
    if judge is None:
        raise NotAccepted(_REFUSED.get(node.get("class", ""), f"{_named(node)} is not known to work row by row"), node)
    try:
        return judge(node, lambda below: judge_expression(below, count, level + 1))
    except NotAccepted as error:
        # What was rebuilt has no place in the file: its nearest surroundings that have one tell the line.
        if error.offset < 0:
            error.offset = offset_of(node)
        raise


Walk = Callable[[Node], Judged]


def as_kind(expression: Judged, kind: Kind, where: str) -> Judged:
    """The expression as one of `KINDS`; only constants are cast for it. `where` takes it, for the message."""
    if expression.kind == kind:
        return expression
    fits = {NOTHING: KINDS, WHOLE: ("BIGINT", "DOUBLE"), DECIMAL: ("DOUBLE",)}.get(expression.kind, ())
    if kind in fits:
        return replace(expression, node=cast_to(expression.node, kind), kind=kind)
    raise NotAccepted(f"{where} takes {kind}, not {_described(expression, kind)}", expression.node)


def with_default_type(expression: Judged) -> Judged:
    """The expression with a kind; a constant without one gets its default kind."""
    kinds: dict[str, Kind] = {NOTHING: "VARCHAR", WHOLE: "BIGINT", DECIMAL: "DOUBLE"}
    return as_kind(expression, kinds[expression.kind], "this") if expression.kind in kinds else expression


def check_plain(node: Node, *handled: str) -> None:
    """Refuses a node with keys that the caller does not look at, unless they hold only what is empty."""
    for key, value in node.items():
        if key not in handled and key not in _PLACES and value not in _EMPTY:
            raise NotAccepted(f"{key.replace('_', ' ')} is not known to work row by row", node)


def _alike(parts: list[Judged], where: str) -> list[Judged]:
    """All parts as one kind."""
    kinds = {part.kind for part in parts} - {NOTHING, WHOLE, DECIMAL}
    if len(kinds) > 1:
        raise NotAccepted(f"{where} has {' and '.join(sorted(kinds))}; {_mend_of(parts)}", parts[0].node)
    adaptable = {part.kind for part in parts}
    kind = next(iter(kinds), "DOUBLE" if DECIMAL in adaptable else "BIGINT" if WHOLE in adaptable else "VARCHAR")
    if kind not in KINDS:
        raise NotAccepted(f"{where} {_mend_of(parts)}", parts[0].node)
    return [as_kind(part, _as_known(kind), where) for part in parts]


def _booleans(parts: list[Judged], where: str) -> list[Judged]:
    return [as_kind(part, "BOOLEAN", where) for part in parts]


def _of_any_kind(parts: list[Judged], where: str) -> list[Judged]:
    return [with_default_type(part) for part in parts]


def _columns(parts: Iterable[Judged]) -> frozenset[str]:
    return frozenset[str]().union(*(part.columns for part in parts))


def _mend_of(parts: list[Judged]) -> str:
    bare = next((part for part in parts if part.kind == COLUMN), None)
    return f"needs {_mend(bare)}" if bare else "use TRY_CAST to make them one"


def _as_known(kind: str) -> Kind:
    return next(known_kind for known_kind in KINDS if known_kind == kind)


def _described(expression: Judged, kind: str) -> str:
    if expression.kind == COLUMN:
        return f"a column as it is: write {_mend(expression, kind)}"
    return f"{expression.kind}; write TRY_CAST(… AS {kind})"


def _mend(expression: Judged, kind: str = "") -> str:
    column = shown(expression.node["column_names"][-1])[1:-1]
    return f'TRY_CAST("{column}" AS {kind or "…"}), since a column may hold anything'


def _judge_column(node: Node, walk: Walk) -> Judged:
    check_plain(node, "column_names")
    names = node["column_names"]
    if len(names) == 2 and names[0].lower() == "source":
        names = names[1:]
    if len(names) != 1:
        raise NotAccepted("a column is named alone, or after `source.`; parts of structs are not read", node)
    if names[0].lower() in known.SQL_VALUES:
        raise NotAccepted(f"{shown(names[0])} is no column of a record", node)
    return Judged({**node, "column_names": names}, COLUMN, frozenset(names))


def _judge_constant(node: Node, walk: Walk) -> Judged:
    check_plain(node, "literal")
    literal = node["literal"]
    kind, text = literal.get("kind"), literal.get("text", "")
    if kind == "INTEGER" and text.lstrip("-").isdigit() and len(text.lstrip("-")) <= MOST_DIGITS:
        return Judged(node, WHOLE)
    if kind in ("INTEGER", "NUMERIC") and len(text) <= 40 and "_" not in text:
        return Judged(node, DECIMAL)
    kinds: dict[str, str] = {"STRING": "VARCHAR", "BOOLEAN": "BOOLEAN", "NULL_LITERAL": NOTHING}
    if kind in kinds and len(text) <= LONGEST_PART:
        return Judged(node, kinds[kind])
    raise NotAccepted("this constant is too long, or of a kind that is not known", node)


def _judge_cast(node: Node, walk: Walk) -> Judged:
    check_plain(node, "child", "try_cast", "type_expr")
    name = str(node["type_expr"].get("type_name", "")).upper()
    kind = _SPELLINGS.get(name, name)
    if kind not in KINDS:
        raise NotAccepted(f"casts to {shown(name)} are not known; cast to one of {ALLOWED_CASTS}", node)
    check_plain(node["type_expr"], "type_name")
    child = walk(node["child"])
    constant = child.node["class"] == "CONSTANT"
    if not node.get("try_cast") and not constant and child.kind != kind:
        raise NotAccepted("CAST and :: raise where a value does not parse; write TRY_CAST", node)
    cast = cast_to(child.node, _as_known(kind))
    if offset_of(node) >= 0:
        cast["query_location"] = offset_of(node)
    return Judged(cast, kind, child.columns)


def _judge_form(node: Node, walk: Walk) -> Judged:
    """A comparison, BETWEEN, IN, AND, OR, NOT, IS NULL or COALESCE."""
    parts = _PARTS.get(node["class"], ("children",))
    check_plain(node, *parts)
    form = _FORMS.get((node["class"], node["type"]))
    if form is None:
        raise NotAccepted(f"{_named(node)} is not known to work row by row", node)
    where, takes, gives = form
    listed = parts == ("children",)
    operands = takes([walk(child) for child in (node["children"] if listed else [node[part] for part in parts])], where)
    below = [part.node for part in operands]
    children = {"children": below} if listed else dict(zip(parts, below, strict=True))
    return Judged({**node, **children}, gives or operands[0].kind, _columns(operands))


def _judge_case(node: Node, walk: Walk) -> Judged:
    check_plain(node, "case_checks", "else_expr")
    for check in node["case_checks"]:
        check_plain(check, "when_expr", "then_expr")
    whens = [as_kind(walk(check["when_expr"]), "BOOLEAN", "WHEN") for check in node["case_checks"]]
    thens = [walk(check["then_expr"]) for check in node["case_checks"]]
    *thens, otherwise = _alike([*thens, walk(node["else_expr"])], "CASE")
    checks = [{"when_expr": when.node, "then_expr": then.node} for when, then in zip(whens, thens, strict=True)]
    columns = _columns((*whens, *thens, otherwise))
    return Judged({**node, "case_checks": checks, "else_expr": otherwise.node}, otherwise.kind, columns)


def _judge_function(node: Node, walk: Walk) -> Judged:
    check_plain(node, "function_name", "arguments", "is_operator")
    name = str(node["function_name"]).lower()
    arguments = node["arguments"]
    if any(argument.get("name") for argument in arguments):
        raise NotAccepted("arguments are not named", node)
    parts = [walk(argument["expression"]) for argument in arguments]
    columns = _columns(parts)
    if name in known.JOINING and parts:
        return Judged(call_of(name, [_cut(part, name) for part in parts]), "VARCHAR", columns, joins=True)
    if name in known.ALIKE and len(parts) >= 2:
        operands = _alike(parts, name)
        return Judged(call_of(name, [part.node for part in operands]), operands[0].kind, columns)
    function = known.TRUNCATION if name == known.TRUNCATING else FUNCTIONS.get(name)
    if function is None:
        raise NotAccepted(_unknown(name), node)
    called = call_of(name, _arguments(name, function, parts, node))
    if function.raises:
        if any(below.get("function_name") in known.RAISING for below in nodes_of(parts[-1].node)):
            raise NotAccepted(f"{', '.join(known.RAISING)} do not stand inside each other", node)
        called = within_calendar(called, parts[-1].node, _as_known(parts[-1].kind))
    gives = parts[1].kind if name == known.TRUNCATING and parts[1].kind == "TIMESTAMPTZ" else function.gives
    return Judged(called, gives, columns)


def _unknown(name: str) -> str:
    if name in known.CHANGING:
        return f"{name}() gives something else every time"
    return f"the function {shown(name)} is not known to work row by row without raising"


def _cut(part: Judged, name: str) -> Node:
    text = as_kind(part, "VARCHAR", name)
    if text.joins or text.node["class"] == "CONSTANT":
        return text.node
    longest = constant("INTEGER", str(LONGEST_PART))
    return call_of("left", [text.node, longest])


def _arguments(name: str, function: Function, parts: list[Judged], node: Node) -> list[Node]:
    least, most = len(function.takes) - function.optional, len(function.takes)
    if not least <= len(parts) <= most:
        count = f"{most}" if least == most else f"{least} or {most}"
        raise NotAccepted(f"{name} takes {count} arguments", node)
    arguments = [_argument(name, part, takes, node) for part, takes in zip(parts, function.takes, strict=False)]
    if name == "replace" and len(_text(parts[2]).encode()) > len(_text(parts[1]).encode()):
        raise NotAccepted(
            "replace may not make a text longer: give it at most as many characters as it takes away", node
        )
    return arguments


def _argument(name: str, part: Judged, takes: tuple[Kind, ...] | Constant, node: Node) -> Node:
    if isinstance(takes, Constant):
        kind = {"VARCHAR": "VARCHAR", "BIGINT": WHOLE}[takes.kind]
        if part.node["class"] != "CONSTANT" or part.kind != kind or not takes.fits(_text(part)):
            raise NotAccepted(f"{name} takes {takes.what} here, as a constant", node)
        return part.node
    if part.kind in takes:
        return part.node
    if len(takes) > 1:
        raise NotAccepted(f"{name} takes {' or '.join(takes)}, not {_described(part, takes[0])}", node)
    return as_kind(part, takes[0], name).node


def _text(part: Judged) -> str:
    return str(part.node["literal"].get("text", ""))


def _named(node: Node) -> str:
    words = str(node.get("type") or node.get("class") or "this").removeprefix("OPERATOR_").removeprefix("COMPARE_")
    return words.replace("_", " ").lower()


# By class and type of the parse: how messages call it, what its parts must be, and the kind of its result, or None
# where it is the kind of its parts.
_PARTS = {"COMPARISON": ("left", "right"), "BETWEEN": ("input", "lower", "upper")}
_FORMS: dict[tuple[str, str], tuple[str, Callable[[list[Judged], str], list[Judged]], Kind | None]] = {
    **{
        ("COMPARISON", f"COMPARE_{kind}"): ("a comparison", _alike, "BOOLEAN")
        for kind in (
            *("EQUAL", "NOTEQUAL", "LESSTHAN", "GREATERTHAN", "LESSTHANOREQUALTO", "GREATERTHANOREQUALTO"),
            *("DISTINCT_FROM", "NOT_DISTINCT_FROM"),
        )
    },
    ("BETWEEN", "COMPARE_BETWEEN"): ("BETWEEN", _alike, "BOOLEAN"),
    ("CONJUNCTION", "CONJUNCTION_AND"): ("AND and OR", _booleans, "BOOLEAN"),
    ("CONJUNCTION", "CONJUNCTION_OR"): ("AND and OR", _booleans, "BOOLEAN"),
    ("OPERATOR", "OPERATOR_NOT"): ("NOT", _booleans, "BOOLEAN"),
    ("OPERATOR", "OPERATOR_IS_NULL"): ("IS NULL", _of_any_kind, "BOOLEAN"),
    ("OPERATOR", "OPERATOR_IS_NOT_NULL"): ("IS NOT NULL", _of_any_kind, "BOOLEAN"),
    ("OPERATOR", "COMPARE_IN"): ("IN", _alike, "BOOLEAN"),
    ("OPERATOR", "OPERATOR_COALESCE"): ("COALESCE", _alike, None),
}
_JUDGES: dict[str, Callable[[Node, Walk], Judged]] = {
    **dict.fromkeys(("COMPARISON", "BETWEEN", "CONJUNCTION", "OPERATOR"), _judge_form),
    "COLUMN_REF": _judge_column,
    "CONSTANT": _judge_constant,
    "CAST": _judge_cast,
    "CASE": _judge_case,
    "FUNCTION": _judge_function,
}
