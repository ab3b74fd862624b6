"""Writes each part of a query that is read once at the place where it is read.

The files of macros name the parts of a query by WITH, from the first to the last. DuckDB 1.4 keeps a copy of all parts
with each of them: the time to attach a catalogue, or to plan a question, grows with the square of their number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

# A token, with the spaces and comments before it.
_TOKEN = re.compile(r"((?:\s+|--[^\n]*)*)('(?:[^']|'')*'|\"[^\"]*\"|\w+|[^\w\s]|\Z)")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_READING = frozenset({"FROM", "JOIN"})
_NOT_READING = frozenset({"SELECT", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "UNION"})
_BEFORE_TABLES = _READING | {",", "("}
_Tokens = list[tuple[str, str]]


def compact_statement(statement: str) -> str:
    """The statement of a macro: a part that is read once becomes a subquery there, one that nobody reads is left out.

    A part that is MATERIALIZED stays, and one that a text names, which the statement may ask as a query.
    """
    start = re.search(r"^WITH\s", statement, re.MULTILINE)
    if start is None:
        return statement
    parts, rest = _parts(_TOKEN.findall(statement, start.end()))
    every = [*(tokens for _, tokens in parts.values()), rest]
    readings = {id(tokens): _readings(tokens, parts) for tokens in every}
    texts = " ".join(token for tokens in every for _, token in tokens if token.startswith("'"))
    stay = {name for name, (opening, _) in parts.items() if "MATERIALIZED" in opening}
    stay |= parts.keys() & set(re.findall(r"\w+", texts))
    times = Counter(readings[id(rest)].values())
    for name, (_, tokens) in reversed(parts.items()):  # a part is read by later ones
        if times[name] or name in stay:
            times.update(readings[id(tokens)].values())
    stay |= {name for name in parts if times[name] > 1}

    def text(tokens: _Tokens) -> str:
        """The text of tokens, with the parts that only they read."""
        said, done = "", 0
        for place, name in readings[id(tokens)].items():
            if name not in stay:
                alias = "" if tokens[place + 1][1] == "AS" else f" AS {name}"
                said += _text_of_tokens(tokens[done:place]) + tokens[place][0] + text(parts[name][1]).lstrip() + alias
                done = place + 1
        return said + _text_of_tokens(tokens[done:])

    kept = [f"{name}{opening}{text(tokens)}" for name, (opening, tokens) in parts.items() if name in stay]
    named = "WITH\n{}".format(",\n".join(kept)) if kept else ""
    return statement[: start.start()] + named + text(rest)


def _text_of_tokens(tokens: _Tokens) -> str:
    return "".join([part for token in tokens for part in token])


def _parts(tokens: _Tokens) -> tuple[dict[str, tuple[str, _Tokens]], _Tokens]:
    """The parts of a WITH by name, each with the words before its parentheses and the tokens from one to the other.

    And the tokens of what follows.
    """
    parts, place = {}, 0
    while True:
        name = tokens[place][1]
        opening = next(at for at in range(place, len(tokens)) if tokens[at][1] == "(")
        closing, depth = opening, 1
        while depth:
            closing += 1
            depth += (tokens[closing][1] in _OPENING) - (tokens[closing][1] in _CLOSING)
        words = " ".join(token for _, token in tokens[place + 1 : opening])
        parts[name] = (f" {words}", tokens[opening : closing + 1])
        if tokens[closing + 1][1] != ",":
            return parts, tokens[closing + 1 :]
        place = closing + 2


def _readings(tokens: _Tokens, names: Collection[str]) -> dict[int, str]:
    """The places at which names stand for tables: where a FROM or its joins expect one."""
    places, before, lists_tables, outer = dict[int, str](), "", False, list[bool]()
    for place, (_, token) in enumerate(tokens):
        if token in _OPENING:
            outer.append(lists_tables)
            lists_tables = lists_tables and before in _BEFORE_TABLES
        elif token in _CLOSING:
            lists_tables = outer.pop()
        elif token in _READING:
            lists_tables = lists_tables or before != "DISTINCT"
        elif token in _NOT_READING:
            lists_tables = False
        elif token in names and lists_tables and before in _BEFORE_TABLES and tokens[place + 1][1] not in (".", "("):
            places[place] = token
        before = token
    return places
