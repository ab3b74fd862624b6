"""Changes to the structure of a YAML document: values replaced, moved, doubled, wrapped and taken out."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml
from byte_mutations import Change

from dphist_pipeline.errors import DphistError
from dphist_pipeline.spec._yaml_rules import read_yaml

LARGEST = 20_000

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 10**15, 10**59, 10**61, 0.1, 1e-300, 1e300, float("inf"), float("nan")),
    *("", " ", "row", "x", "1/3", "1e-999", "NO", "é" * 199, "y" * 300, "../x", "\x07", "\ud800", [], {}, [[]], [None]),
    *([1, 2, 3], ["a", "b"], ["a", "A"], {"a": ["x"]}, {"column": "age"}, {1: 2}, "2026-01-05", "codes.csv"),
    [str(number) for number in range(60)],
]
Spot = tuple[Any, Any]


def structure_change(keys: Sequence[str]) -> Change:
    """A change of a document's structure; `keys` are those that its mappings know."""

    def change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
        document = _document(content)
        spots = list(_spots(document))
        if not spots:
            return content
        _EDITS[choice.randrange(len(_EDITS))](choice, *choice.choice(spots), spots, keys)
        return _written(choice, document)

    return change


def _document(content: bytes) -> Any:
    """A document of its own, without shared parts; nothing where it cannot be read."""
    if len(content) > LARGEST:
        return None
    try:
        # By JSON, so that what aliases share is told apart.
        return json.loads(json.dumps(read_yaml(content.decode())))
    except (DphistError, UnicodeError, ValueError, TypeError, RecursionError):
        return None


def _written(choice: random.Random, document: Any) -> bytes:
    if choice.random() < 0.5:
        return json.dumps(document, ensure_ascii=choice.random() < 0.5).encode("utf-8", "surrogatepass")
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")


def _spots(value: Any) -> Iterator[Spot]:
    """Every (container, key) below a value."""
    entries: Iterator[Any] = iter(())
    if isinstance(value, dict):
        entries = iter(value.items())
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, item in entries:
        yield value, key
        yield from _spots(item)


def _replace(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    within[key] = copy.deepcopy(choice.choice(VALUES))


def _move(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    other, at = choice.choice(spots)
    within[key] = copy.deepcopy(other[at])


def _remove(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    del within[key]


def _double(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    if isinstance(within, list):
        within[key:key] = [copy.deepcopy(within[key]) for _ in range(choice.choice([1, 1, 2, 49]))]
    else:
        within[choice.choice(keys)] = copy.deepcopy(within[key])


def _add(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    value = copy.deepcopy(choice.choice(VALUES))
    if isinstance(within, list):
        within.insert(key, value)
    else:
        within[choice.choice(keys)] = value


def _wrap(choice: random.Random, within: Any, key: Any, spots: list[Spot], keys: Sequence[str]) -> None:
    inner = within[key]
    within[key] = choice.choice([[inner], {choice.choice(keys): inner}, str(inner)])


_EDITS: list[Callable[[random.Random, Any, Any, list[Spot], Sequence[str]], None]]
_EDITS = [_replace, _replace, _move, _remove, _double, _add, _add, _wrap]
