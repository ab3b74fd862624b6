"""Variables and loops of a spec: `{{ region }}` in attributes, and `for_each: {region: [north, east]}`.

A variable is looked up by name, key or number, and nothing is run: no filter, no call, no attribute of an object. What
comes out stands where a person would have written it, and is judged by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dphist_pipeline.errors import did_you_mean, first_of
from dphist_pipeline.spec.mistakes import Location, place, shortened, shown
from dphist_pipeline.spec.templates import template_places
from dphist_pipeline.spec.yaml_rules import MOST_LEVELS, MOST_NODES

FOR_EACH = "for_each"
MOST_ITEMS = 1_000
MOST_NAMED = 3

_STEP = r"(?:\.[A-Za-z_]\w{0,62}|\[\d{1,4}\])"
_VARIABLE = re.compile(rf"\{{\{{\s*(?!env\b)([A-Za-z_]\w{{0,62}}{_STEP}{{0,8}})\s*\}}\}}", re.ASCII)
_FROM_ENVIRONMENT = re.compile(r"\{\{\s*env\b[^{}]*\}\}")
_EXAMPLE = "{region: [north, east]}"

Problem = tuple[str, str]
Found = list[tuple[Location, str]]


@dataclass(frozen=True)
class Part:
    """One spec of a file.

    Attributes:
        attributes: with variables filled in.
        item: what the loop gave, as messages call it; empty without a loop.
        problems: of its variables, each with its place.
    """

    attributes: Mapping[str, object]
    item: str = ""
    problems: tuple[Problem, ...] = ()


def unfolded(attributes: Mapping[str, object], variables: Mapping[str, object]) -> tuple[list[Part], list[Problem]]:
    """The specs that attributes make: one, or one for each item of `for_each`.

    Args:
        variables: that a project declares, by name.

    Returns:
        The specs, and what is wrong with the loop itself; no specs where that is not empty.
    """
    if FOR_EACH not in attributes:
        return [_filled(attributes, variables) if variables else Part(attributes)], []
    body = {field: value for field, value in attributes.items() if field != FOR_EACH}
    try:
        name, items = _loop(attributes[FOR_EACH], variables)
        _refuse_large(body, len(items))
    except _LoopWrong as wrong:
        return [], [(place("attributes", (FOR_EACH, *wrong.at)), wrong.what)]
    return [_filled(body, {**variables, name: item}, _called(name, item)) for item in items], []


def merged(parts: Sequence[Part], found: Sequence[Iterable[Problem]]) -> list[Problem]:
    """The mistakes of several specs, each told once, with the items that it concerns where they are not all.

    Args:
        found: the mistakes of each.
    """
    concerned: dict[Problem, list[str]] = {}
    for part, problems in zip(parts, found, strict=True):
        for problem in dict.fromkeys(problems):
            concerned.setdefault(problem, []).append(part.item)
    return [
        (where, what if len(items) == len(parts) else f"{what} (where {first_of(items, MOST_NAMED)})")
        for (where, what), items in concerned.items()
    ]


def plain_problem(value: object, level: int = 0) -> str:
    """Why a variable is no value that a file could hold; empty if it is one.

    Args:
        value: a variable, as a program gave it.
        level: how deep it lies within the variable, 0 for the variable itself.
    """
    if level > MOST_LEVELS:
        return f"is nested more than {MOST_LEVELS} levels deep"
    if value is None or isinstance(value, str | bool | int | float):
        return ""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "has a key that is not text"
        return next(filter(None, (plain_problem(held, level + 1) for held in value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (plain_problem(held, level + 1) for held in value)), "")
    return f"is a {shortened(type(value).__name__)}, which no file could hold; give text, numbers, lists or mappings"


class _LoopWrong(Exception):
    """A loop that cannot be run."""

    def __init__(self, what: str, *at: str | int) -> None:
        self.at, self.what = at, what


def _loop(written: object, variables: Mapping[str, object]) -> tuple[str, Sequence[object]]:
    if not isinstance(written, Mapping) or len(written) != 1:
        raise _LoopWrong(f"must be a mapping of one name to a list, such as {_EXAMPLE}, not {shown(written)}")
    ((name, listed),) = written.items()
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w{0,62}", name, re.ASCII) or name == "env":
        raise _LoopWrong(f"{shown(name)} is no name of a variable; use letters, digits and _, and not env")
    if name in variables:
        raise _LoopWrong("is a variable of the project already; choose another name", name)
    found: Found = []
    items = _resolved(listed, (name,), variables, found)
    if found:
        raise _LoopWrong(found[0][1], *found[0][0])
    if not isinstance(items, list | tuple) or not items:
        raise _LoopWrong(f"must be a list of at least one item, not {shown(items)}", name)
    if len(items) > MOST_ITEMS:
        raise _LoopWrong(f"has more than {MOST_ITEMS:,} items; use several files", name)
    return name, items


def _refuse_large(body: Mapping[str, object], items: int) -> None:
    if _weight(body) * items > MOST_NODES:
        raise _LoopWrong(f"unfolds to more than {MOST_NODES:,} values; repeat less")


def _weight(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_weight, value.values()))
    return 1 + sum(map(_weight, value)) if isinstance(value, list | tuple) else 1


def _called(name: str, item: object) -> str:
    named = item.get("name") if isinstance(item, Mapping) else item
    return f"{name} is {shown(named)}"


def _filled(attributes: Mapping[str, object], variables: Mapping[str, object], item: str = "") -> Part:
    found: Found = []
    filled = {str(field): _resolved(value, (str(field),), variables, found) for field, value in attributes.items()}
    return Part(filled, item, tuple((place("attributes", at), what) for at, what in found))


def _resolved(value: object, at: Location, variables: Mapping[str, object], found: Found) -> Any:
    """A copy with variables filled in; texts that the variables gave are not looked at again."""
    if isinstance(value, Mapping):
        return {key: _resolved(held, (*at, str(key)), variables, found) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(held, (*at, number), variables, found) for number, held in enumerate(value)]
    return _text(value, at, variables, found) if isinstance(value, str) else value


def _text(text: str, at: Location, variables: Mapping[str, object], found: Found) -> object:
    if list(template_places(_FROM_ENVIRONMENT.sub("", _VARIABLE.sub("", text)))):
        found.append((at, f"holds a template that names no variable; {_known(variables)}, and nothing else is run"))
        return text
    whole = _VARIABLE.fullmatch(text)
    try:
        if whole is not None:
            return _looked_up(whole[1], variables)
        return _VARIABLE.sub(lambda match: _as_text(match[1], _looked_up(match[1], variables)), text)
    except _LoopWrong as wrong:
        found.append((at, wrong.what))
    return text


def _looked_up(path: str, variables: Mapping[str, object]) -> object:
    """What a path such as `region.codes[0]` names: keys of mappings and numbers of lists, never attributes."""
    name, *steps = list(_steps(path))
    if name not in variables:
        raise _LoopWrong(f"there is no variable {shown(name)}. {did_you_mean(str(name), list(variables))}".strip())
    value = variables[str(name)]
    for step in steps:
        held: Any = dict(enumerate(value)) if isinstance(value, list | tuple) else value
        if not isinstance(held, Mapping) or step not in held:
            raise _LoopWrong(f"there is no {shown(step)} in `{path}`, which is looked up by key or number alone")
        value = held[step]
    if problem := plain_problem(value):
        raise _LoopWrong(f"the variable `{path}` {problem}")
    return value


def _steps(path: str) -> Iterator[str | int]:
    for word, number in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", path, re.ASCII):
        yield word or int(number)


def _as_text(path: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _LoopWrong(f"the variable `{path}` is {shown(value)}, which cannot be a part of a text; quote it")
    return str(value)


def _known(variables: Mapping[str, object]) -> str:
    named = first_of([f"{{{{ {name} }}}}" for name in variables], MOST_NAMED)
    return f"there are {named}" if len(variables) > 1 else f"there is {named}"
