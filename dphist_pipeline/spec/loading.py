"""Reading specs from a file, the same that Dagster reads as `defs.yaml`: its templates, variables and loops.

`{{ env.X }}` is resolved in the address of a source and in no other field. A value of the environment may be a secret,
and other fields are published: titles, categories, names, owners. So the environment is not even looked at for them.

A variable is `{{ region }}`, a loop `for_each: {region: [north, east]}`. A variable is looked up by name, key or
number, and nothing is run: no filter, no call, no attribute of an object. What comes out stands where a person would
have written it, and is judged by the same rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dphist_pipeline.base.files import project_folder
from dphist_pipeline.errors import did_you_mean, first_of
from dphist_pipeline.spec._text_files import content_of, decode
from dphist_pipeline.spec._yaml_rules import MOST_LEVELS, MOST_NODES, read_yaml
from dphist_pipeline.spec.mistakes import FromEnvironment, Location, SpecError, echo, one_line, place
from dphist_pipeline.spec.sources import Decided

FOR_EACH = "for_each"
MOST_ITEMS = 1_000
MOST_ITEMS_NAMED = 3

_STEP = r"(?:\.[A-Za-z_]\w{0,62}|\[\d{1,4}\])"
_VARIABLE = re.compile(rf"\{{\{{\s*(?!env\b)([A-Za-z_]\w{{0,62}}{_STEP}{{0,8}})\s*\}}\}}", re.ASCII)
_FROM_ENVIRONMENT = re.compile(r"\{\{\s*env\b[^{}]*\}\}")
_EXAMPLE = "{region: [north, east]}"

Problem = tuple[str, str]
Found = list[tuple[Location, str]]


@dataclass(frozen=True)
class SpecPart:
    """One spec of a file, with variables filled in.

    `item`: what the loop gave, as messages call it; empty without a loop. `problems`: of its variables.
    """

    attributes: Mapping[str, object]
    item: str = ""
    problems: tuple[Problem, ...] = ()


def unfold(attributes: Mapping[str, object], variables: Mapping[str, object]) -> tuple[list[SpecPart], list[Problem]]:
    """Makes the specs of attributes: one, or one for each item of `for_each`; and what is wrong with the loop.

    There are no specs where the loop is wrong. `variables` are those that a project declares.
    """
    if FOR_EACH not in attributes:
        return [_fill(attributes, variables) if variables else SpecPart(attributes)], []
    body = {field: value for field, value in attributes.items() if field != FOR_EACH}
    try:
        name, items = _loop(attributes[FOR_EACH], variables)
        if _weight(body) * len(items) > MOST_NODES:
            raise _LoopWrong(f"unfolds to more than {MOST_NODES:,} values; repeat less")
    except _LoopWrong as wrong:
        return [], [(place("attributes", (FOR_EACH, *wrong.at)), wrong.what)]
    return [_fill(body, {**variables, name: item}, _name_of_item(name, item)) for item in items], []


def merge_mistakes(parts: Sequence[SpecPart], problems_by_part: Sequence[Iterable[Problem]]) -> list[Problem]:
    """Merges mistakes of several specs: each is told once, with the items that it concerns where they are not all."""
    concerned: dict[Problem, list[str]] = {}
    for part, problems in zip(parts, problems_by_part, strict=True):
        for problem in dict.fromkeys(problems):
            concerned.setdefault(problem, []).append(part.item)
    return [
        (where, problem if len(items) == len(parts) else f"{problem} (where {first_of(items, MOST_ITEMS_NAMED)})")
        for (where, problem), items in concerned.items()
    ]


def plain_problem(value: object, level: int = 0) -> str:
    """Why a variable is no value that a file could hold; empty if it is one. `level`: how deep it lies."""
    if level > MOST_LEVELS:
        return f"is nested more than {MOST_LEVELS} levels deep"
    if value is None or isinstance(value, str | bool | int | float):
        return ""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "has a key that is not text"
        return next(filter(None, (plain_problem(item, level + 1) for item in value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (plain_problem(item, level + 1) for item in value)), "")
    return f"is a {one_line(type(value).__name__)}, which no file could hold; give text, numbers, lists or mappings"


class _LoopWrong(Exception):
    """A loop that cannot be run."""

    def __init__(self, what: str, *at: str | int) -> None:
        self.at, self.what = at, what


def _loop(written: object, variables: Mapping[str, object]) -> tuple[str, Sequence[object]]:
    if not isinstance(written, Mapping) or len(written) != 1:
        raise _LoopWrong(f"must be a mapping of one name to a list, such as {_EXAMPLE}, not {echo(written)}")
    ((name, listed),) = written.items()
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w{0,62}", name, re.ASCII) or name == "env":
        raise _LoopWrong(f"{echo(name)} is no name of a variable; use letters, digits and _, and not env")
    if name in variables:
        raise _LoopWrong("is a variable of the project already; choose another name", name)
    problems: Found = []
    items = _fill_in(listed, (name,), variables, problems)
    if problems:
        raise _LoopWrong(problems[0][1], *problems[0][0])
    if not isinstance(items, list | tuple) or not items:
        raise _LoopWrong(f"must be a list of at least one item, not {echo(items)}", name)
    if len(items) > MOST_ITEMS:
        raise _LoopWrong(f"has more than {MOST_ITEMS:,} items; use several files", name)
    return name, items


def _weight(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_weight, value.values()))
    return 1 + sum(map(_weight, value)) if isinstance(value, list | tuple) else 1


def _name_of_item(name: str, item: object) -> str:
    title = item.get("name") if isinstance(item, Mapping) else item
    return f"{name} is {echo(title)}"


def _fill(attributes: Mapping[str, object], variables: Mapping[str, object], item: str = "") -> SpecPart:
    problems: Found = []
    filled = {str(field): _fill_in(value, (str(field),), variables, problems) for field, value in attributes.items()}
    return SpecPart(filled, item, tuple((place("attributes", at), problem) for at, problem in problems))


def _fill_in(value: object, at: Location, variables: Mapping[str, object], problems: Found) -> Any:
    """A copy with variables filled in; texts that the variables gave are not looked at again."""
    if isinstance(value, Mapping):
        return {key: _fill_in(item, (*at, str(key)), variables, problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill_in(item, (*at, number), variables, problems) for number, item in enumerate(value)]
    return _text(value, at, variables, problems) if isinstance(value, str) else value


def _text(text: str, at: Location, variables: Mapping[str, object], problems: Found) -> object:
    if list(template_places(_FROM_ENVIRONMENT.sub("", _VARIABLE.sub("", text)))):
        problems.append(
            (
                at,
                f"holds a template that names no variable; {_known_variables(variables)}, and no other template is "
                "resolved",
            )
        )
        return text
    whole = _VARIABLE.fullmatch(text)
    try:
        if whole is not None:
            return _look_up(whole[1], variables)
        return _VARIABLE.sub(lambda match: _as_text(match[1], _look_up(match[1], variables)), text)
    except _LoopWrong as wrong:
        problems.append((at, wrong.what))
    return text


def _look_up(path: str, variables: Mapping[str, object]) -> object:
    """What a path such as `region.codes[0]` names: keys of mappings and numbers of lists, never attributes."""
    name, *steps = list(_steps(path))
    if name not in variables:
        raise _LoopWrong(f"there is no variable {echo(name)}. {did_you_mean(str(name), list(variables))}".strip())
    value = variables[str(name)]
    for step in steps:
        items: Any = dict(enumerate(value)) if isinstance(value, list | tuple) else value
        if not isinstance(items, Mapping) or step not in items:
            raise _LoopWrong(f"there is no {echo(step)} in `{path}`, which is looked up by key or number alone")
        value = items[step]
    if problem := plain_problem(value):
        raise _LoopWrong(f"the variable `{path}` {problem}")
    return value


def _steps(path: str) -> Iterator[str | int]:
    for word, number in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", path, re.ASCII):
        yield word or int(number)


def _as_text(path: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _LoopWrong(f"the variable `{path}` is {echo(value)}, which cannot be a part of a text; quote it")
    return str(value)


def _known_variables(variables: Mapping[str, object]) -> str:
    names = first_of([f"{{{{ {name} }}}}" for name in variables], MOST_ITEMS_NAMED)
    return f"there are {names}" if len(variables) > 1 else f"there is {names}"


_ENV = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}", re.ASCII)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def resolve_templates(
    attributes: Mapping[str, object], addresses: Collection[str], environment: Mapping[str, str] | None = None
) -> tuple[dict[str, object], list[tuple[Location, str]]]:
    """A copy of the attributes with `{{ env.X }}` replaced in those of `addresses`, and what was not resolved.

    A text stays text (Dagster's own resolution would turn "1" into a number), as `FromEnvironment`. By default the
    environment is the process's own. Of every template that is left come location and message.
    """
    mistakes: list[tuple[Location, str]] = []
    resolved = {str(field): value for field, value in attributes.items()}
    for field, value in resolved.items():
        if field in addresses and isinstance(value, str):
            resolved[field] = _resolve_value(
                value, (field,), os.environ if environment is None else environment, mistakes
            )
        else:
            mistakes += [((field, *at), _elsewhere(addresses)) for at in template_places(value)]
    return resolved, mistakes


def templates_around(document: Mapping[str, object]) -> list[tuple[str, str]]:
    """Place and message of each template of a whole file outside its attributes: Dagster would publish those."""
    problem = "holds a template; outside of `attributes` none is resolved, so write the value itself"
    return [
        (place("", (key, *at)).lstrip("."), problem)
        for key, value in document.items()
        if key != "attributes"
        for at in template_places(value)
    ]


def template_places(value: object) -> Iterator[Location]:
    """The locations of all texts and keys that hold a template of any kind."""
    if isinstance(value, str) and _TEMPLATE.search(value):
        yield ()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str) and _TEMPLATE.search(key):
                yield (key,)
            yield from ((str(key), *at) for at in template_places(item))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from ((number, *at) for at in template_places(item))


def _elsewhere(addresses: Collection[str]) -> str:
    if not addresses:
        return "holds a template, and none is resolved here; write the value itself"
    names = " and ".join(f"`{name}`" for name in addresses)
    return f"holds a template; `{{{{ env.NAME }}}}` is resolved in {names} alone, so write the value itself"


def _resolve_value(
    value: str, at: Location, environment: Mapping[str, str], problems: list[tuple[Location, str]]
) -> str:
    if not _TEMPLATE.search(value):
        return value
    if _TEMPLATE.search(_ENV.sub("", value)):
        problems.append((at, "holds a template other than {{ env.NAME }}, which is the only one allowed here"))
        return value
    missing = sorted({name for name in _ENV.findall(value) if name not in environment})
    if missing:
        names = one_line(", ".join(missing))
        problems.append((at, f"needs the environment variable {names}, which is not set; set it and run again"))
        return value
    return FromEnvironment(_ENV.sub(lambda match: environment[match[1]], value), value)


COMPONENT = "dphist_pipeline.HistogramRelease"
COLLECTION = "dphist_pipeline.LocalCollection"
LARGEST_FILE = 1_000_000  # takes two seconds to judge, seven if all of it is wrong
ADDRESSES = ("source",)
SHORTER = "; long lists of categories go into files, which `values_from` names"

_OURS = "dphist_pipeline."
_NAMES_OURS = re.compile(rb"""type["']? *: *["']?dphist_pipeline\.""")
_TOP_LEVEL = ("type", "attributes", "requirements", "post_processing")
PYTHON_VARIABLES = (
    "is Python, which only Dagster runs; for the command line write the values into the file, for instance by "
    "`for_each`"
)
_OTHERS = {
    COMPONENT: "this is the spec of a release: use the commands without `local`",
    COLLECTION: "this is the spec of a collection: use `dphist local check` and its like",
}


Problems = list[tuple[str, str]]
Spec = TypeVar("Spec")
Build = Callable[[Mapping[str, object], Path], Spec]
CodeListsOf = Callable[[Mapping[str, object]], Decided | None]


def from_file(
    path: Path | str,
    component: str,
    of_what: str,
    build: Build[Spec],
    addresses: Collection[str] = (),
    variables: Mapping[str, object] | None = None,
) -> list[Spec]:
    """The specs in a YAML file, of releases or of collections; see `check_document`.

    Args:
        of_what: 'release' or 'collection', by which messages call it.
        build: makes a spec of the resolved mapping.
        addresses: fields in which `{{ env.X }}` is resolved.
        variables: that a project declares; with None there are neither variables nor loops.
    """
    try:
        file = Path(path)
        document = _document(content_of(file, LARGEST_FILE, "a spec, usually defs.yaml", SHORTER), component, of_what)
        problems = check_document(document, component, of_what)
        attributes = document.get("attributes") if isinstance(document, Mapping) else None
        if not isinstance(attributes, Mapping):
            raise SpecError(problems)
        return from_templates(build, attributes, folder_of_spec(file), problems, of_what, addresses, variables)
    except SpecError as error:
        problems = list(error.problems)
    except ValueError as error:
        problems = [("", str(error))]
    raise SpecError(problems, path, of_what)


def folder_of_spec(spec: Path | str) -> Path:
    """The folder that relative paths of a spec start from: the nearest project above it, else its own folder.

    The spec may not exist yet.
    """
    return project_folder(Path(spec).resolve().parent)


def from_templates(
    build: Build[Spec],
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]] = (),
    of_what: str = "release",
    addresses: Collection[str] = (),
    variables: Mapping[str, object] | None = None,
) -> list[Spec]:
    """The specs in a mapping whose templates are not resolved yet: one, or one for each item of `for_each`.

    Args:
        variables: that a project declares for `{{ NAME }}`; with None there are neither variables nor loops.
    """
    parts, loop_problems = ([SpecPart(attributes)], []) if variables is None else unfold(attributes, variables)
    specs, faults = [], []
    for part in parts:
        spec, mistakes = _validate(build, part.attributes, base, part.problems, addresses)
        specs.append(spec)
        faults.append(mistakes)
    problems = [*problems, *loop_problems, *merge_mistakes(parts, faults)]
    readable = [spec for spec in specs if spec is not None]
    names = [str(getattr(spec, of_what)) for spec in readable]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), "")
    if twice and not problems:
        problem = (
            f"is {echo(twice)} for two items of `for_each`; write the variable into it, so that each item has its own"
        )
        problems.append((f"attributes.{of_what}", problem))
    if problems:
        raise SpecError(problems, of_what=of_what)
    return readable


def _validate(
    build: Build[Spec],
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]],
    addresses: Collection[str],
) -> tuple[Spec | None, Problems]:
    """One spec, or its mistakes: those of templates first, and of each place once."""
    resolved, unresolved = resolve_templates(attributes, addresses)
    problem_of_item = dict(problems)
    for at, what in unresolved:
        problem_of_item.setdefault(place("attributes", at), what)
    mistakes = list(problem_of_item.items())
    try:
        return build(resolved, base), mistakes
    except SpecError as error:
        return None, mistakes + [problem for problem in error.problems if problem[0] not in problem_of_item]


def check_document(document: object, component: str, of_what: str = "release") -> Problems:
    """The mistakes of a spec's file outside of `attributes`.

    Raises:
        SpecError: it is a spec of the other kind, or of nothing, and every other mistake would mislead.
    """
    if document is None:
        return [("", f"the file is empty; it needs `type: {component}` and `attributes:`")]
    kind = document.get("type") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not str(kind).startswith(_OURS):
        raise _no_spec(component, of_what)
    if kind != component and str(kind) in _OTHERS:
        raise SpecError([("type", _OTHERS[str(kind)])])
    problems = templates_around(document)
    if document.get("template_vars_module") is not None:
        problems.append(("template_vars_module", PYTHON_VARIABLES))
    problems += [
        (place("", (key,)).lstrip("."), f"unknown field. {did_you_mean(str(key)[:60], _TOP_LEVEL)}")
        for key in document
        if key not in (*_TOP_LEVEL, "template_vars_module")
    ]
    if kind != component:
        problems.append(("type", f"must be {component}, not {echo(kind)}"))
    if not isinstance(document.get("attributes"), Mapping):
        instead = f"not {echo(document['attributes'])}" if "attributes" in document else "and is missing"
        problems.append(("attributes", f"must be a mapping with the fields of the {of_what}, {instead}"))
    return problems


def _document(content: bytes, component: str, of_what: str) -> object:
    """The content of the YAML. Its mistakes are quoted only if it names a type of ours: another file may be data."""
    try:
        return read_yaml(decode(content))
    except (SpecError, ValueError) as error:
        ours, problem = _NAMES_OURS.search(content), error
    if not ours:
        raise _no_spec(component, of_what)
    raise problem if isinstance(problem, SpecError) else SpecError([("", str(problem))])


def _no_spec(component: str, of_what: str) -> SpecError:
    problem = (
        f"this is no YAML spec of a {of_what}, which is UTF-8 text with `type: {component}` and `attributes:`. Name "
        "the spec's file, usually defs.yaml, or write both into it. Nothing of the file is shown: it may hold data"
    )
    return SpecError([("", problem)])


def attributes_in(text: str) -> Mapping[str, object]:
    """The attributes in the text of a spec's file, as written; empty where it has none.

    Raises:
        SpecError: the text is no YAML, with line and column.
    """
    content = read_yaml(text)
    attributes = content.get("attributes") if isinstance(content, Mapping) else None
    return attributes if isinstance(attributes, Mapping) else {}
