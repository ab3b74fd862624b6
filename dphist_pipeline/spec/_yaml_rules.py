"""YAML by the rules of Dagster's loader, and stricter where a mistake or an attack could hide.

The rules: safe YAML 1.1, except that dates stay text. Stricter: one document, no key twice, keys are text, no
tags of its own, no alias that contains itself, and a bound on how far aliases may unfold.

Long texts are parsed by libyaml where PyYAML has it, in a quarter of the time, if they hold nothing that the two parse
differently: libyaml takes tabs and `?` where PyYAML refuses them, and refuses colons within words that PyYAML takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from dphist_pipeline.spec.mistakes import SpecError, echo, one_line

MOST_NODES = 1_000_000
MOST_LEVELS = 50
LONGEST_NUMBER = 100
LONG = 100_000  # characters
_LIBYAML: Any = yaml.cyaml.CParser if yaml.__with_libyaml__ else object  # type: ignore[attr-defined]
_READ_DIFFERENTLY = re.compile(r"[^\n\x20-\x3e\x40-\x7e]|:(?![ \n])")

_CORE = "tag:yaml.org,2002:"
_MERGE = f"{_CORE}merge"
_TEXT = f"{_CORE}str"
_SCALARS = frozenset(_CORE + kind for kind in ("str", "int", "float", "bool", "null", "merge"))


def read_yaml(text: str) -> object:
    """The one document of the text as plain values, or None where it is empty.

    Raises:
        SpecError: naming line and column of what cannot be read.
    """
    if yaml.__with_libyaml__ and len(text) > LONG and not _READ_DIFFERENTLY.search(text):
        return _read(_QuickLoader(text))
    return _read(_loader(text))


def _read(loader: _Strict) -> object:
    try:
        return loader.only_document()
    except yaml.MarkedYAMLError as error:
        problem = _problem(error)
    except (ValueError, OverflowError):
        # PyYAML makes numbers of what escapes and directives say, and does not look at how large they are.
        where = _line(loader.get_mark()) if isinstance(loader, _StrictLoader) else ""
        problem = (where, "holds an escape or a directive that is no number in range; mend it")
    finally:
        loader.dispose()
    raise SpecError([problem])


def _loader(text: str) -> _StrictLoader:
    """A loader that has looked at every character of the text."""
    try:
        return _StrictLoader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
    raise SpecError([(f"line {line}", "holds a control character that YAML does not allow; remove it")])


class _Strict(Composer, SafeConstructor, Resolver):
    """Weighs every node as it is composed, so that aliases are counted without unfolding them."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way to declare them
        first: [rule for rule in rules if rule[0] != f"{_CORE}timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    peek_event: Callable[[], yaml.Event]  # the parser's
    dispose: Callable[[], None]

    def __init__(self) -> None:
        self._level = self._composed = 0
        self._weights: dict[int, tuple[int, int]] = {}

    def only_document(self) -> object:
        if not self.check_node():
            return None
        node = self.get_node()
        if self.check_node():
            second = self.peek_event()
            _refuse(second, "begins a second document; keep one spec in a file")
        return self.construct_document(node)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        self._level += 1
        if self._level > MOST_LEVELS:
            _refuse(event, f"is nested more than {MOST_LEVELS} levels deep")
        self._composed += 1
        if self._composed > MOST_NODES:  # before it takes gigabytes
            _refuse(event, f"is one of more than {MOST_NODES:,} values; keep fewer in a file")
        node = super().compose_node(parent, index)
        self._level -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._weights:
                _refuse(event, f"the alias *{one_line(str(event.anchor))} contains itself; write it out")
        elif node is not None:
            self._weights[id(node)] = self._weigh(node)
        return node

    def _weigh(self, node: yaml.Node) -> tuple[int, int]:
        """Number of values and of levels below a node, aliases unfolded; checks the node itself."""
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node)
            return 1, 0
        children = node.value
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [part for pair in node.value for part in pair]
        if node.tag != _CORE + ("map" if isinstance(node, yaml.MappingNode) else "seq"):
            _refuse(node, f"the tag {echo(node.tag)} is not allowed; remove it")
        weights = [self._weights[id(child)] for child in children]
        values, levels = (
            1 + sum(size for size, _ in weights),
            1 + max((deep for _, deep in weights), default=0),
        )
        if values > MOST_NODES:
            _refuse(node, f"unfolds to more than {MOST_NODES:,} values; repeat less with aliases")
        if levels > MOST_LEVELS:
            _refuse(node, f"is nested more than {MOST_LEVELS} levels deep")
        return values, levels

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        if node.tag == f"{_CORE}value":
            _refuse(node, 'YAML gives a lone = a meaning of its own; quote it: "="')
        if node.tag not in _SCALARS:
            _refuse(node, f"the tag {echo(node.tag)} is not allowed; remove it")
        if node.tag in {_TEXT, _MERGE}:
            return
        if len(node.value) > LONGEST_NUMBER:
            _refuse(node, f"holds a number of more than {LONGEST_NUMBER} characters; shorten or quote it")
        try:
            self.construct_object(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            readable = False
        else:
            readable = True
        if not readable:
            _refuse(node, f"{echo(node.value)} is not what its form or tag says; quote it")


class _StrictLoader(_Strict, yaml.SafeLoader):
    """Reads by PyYAML alone."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Strict.__init__(self)


class _QuickLoader(_Strict, _LIBYAML):  # type: ignore[misc]
    """Reads what libyaml parses; nodes are composed and weighed as those of PyYAML."""

    def __init__(self, text: str) -> None:
        _LIBYAML.__init__(self, text)
        for part in (Composer, SafeConstructor, Resolver, _Strict):
            part.__init__(self)


def _check_keys(node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in {_TEXT, _MERGE}:
            name = echo(key.value) if isinstance(key, yaml.ScalarNode) else "made of several values"
            _refuse(key, f"the key {name} is not text; quote it")
        line = key.start_mark.line + 1
        if key.value in seen:
            _refuse(key, f"the key {echo(key.value)} was already given in line {seen[key.value]}; keep one")
        seen[key.value] = line


def _refuse(spot: yaml.Node | yaml.Event, problem: str) -> NoReturn:
    raise SpecError([(_line(spot.start_mark), problem)])


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _problem(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    mark = error.problem_mark or error.context_mark
    problem = one_line(str(error.problem or "cannot be read"), 120)
    mend = "indent with spaces, not tabs" if r"'\t'" in problem else "check indentation, quotes, colons and brackets"
    return (_line(mark) if mark is not None else "", f"is not valid YAML: {problem}; {mend}")
