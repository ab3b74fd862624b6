"""Reading a spec from its file: the same file that Dagster reads as `defs.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.files import project_folder
from dphist_pipeline.spec._text_files import content_of, decoded
from dphist_pipeline.spec.code_list_files import Decided
from dphist_pipeline.spec.mistakes import SpecError, place, shown
from dphist_pipeline.spec.templates import resolve_templates, templates_around
from dphist_pipeline.spec.unfolding import Part, merged, unfolded
from dphist_pipeline.spec.yaml_rules import read_yaml

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

MOST_NAMED = 5

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
        path: of the file; relative paths in it start from its project, see `folder_of_spec`.
        component: the type that the file must name.
        of_what: it is a spec: 'release' or 'collection'.
        build: makes a spec of the resolved mapping.
        addresses: fields in which `{{ env.X }}` is resolved.
        variables: that a project declares; with None there are neither variables nor loops.

    Raises:
        SpecError: with every mistake that was found.
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

    Args:
        spec: its file, which may not exist yet.
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
        build: makes one of the resolved mapping.
        attributes: fields of the spec by name.
        base: folder that relative paths start from.
        problems: mistakes found before, to be named in the same message.
        addresses: fields in which `{{ env.X }}` is resolved.
        variables: that a project declares for `{{ NAME }}`; with None there are neither variables nor loops.

    Raises:
        SpecError: with every mistake that was found.
    """
    parts, wrong = ([Part(attributes)], []) if variables is None else unfolded(attributes, variables)
    specs, found = [], []
    for part in parts:
        spec, mistakes = _judged(build, part.attributes, base, part.problems, addresses)
        specs.append(spec)
        found.append(mistakes)
    problems = [*problems, *wrong, *merged(parts, found)]
    made = [spec for spec in specs if spec is not None]
    if not problems and (twice := _twice(made, of_what)):
        what = f"is {shown(twice)} for two items of `for_each`; put the variable in"
        problems.append((f"attributes.{of_what}", what))
    if problems:
        raise SpecError(problems, of_what=of_what)
    return made


def _judged(
    build: Build[Spec],
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]],
    addresses: Collection[str],
) -> tuple[Spec | None, Problems]:
    """One spec, or its mistakes: those of templates first, and of each place once."""
    resolved, unresolved = resolve_templates(attributes, addresses)
    found = dict(problems)
    for at, what in unresolved:
        found.setdefault(place("attributes", at), what)
    mistakes = list(found.items())
    try:
        return build(resolved, base), mistakes
    except SpecError as error:
        return None, mistakes + [problem for problem in error.problems if problem[0] not in found]


def _twice(specs: Sequence[object], of_what: str) -> str:
    """The first name that two specs have; empty where none is."""
    names = [str(getattr(spec, of_what)) for spec in specs]
    return next((name for number, name in enumerate(names) if name in names[:number]), "")


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
        problems.append(("type", f"must be {component}, not {shown(kind)}"))
    if not isinstance(document.get("attributes"), Mapping):
        given = f"not {shown(document['attributes'])}" if "attributes" in document else "and is missing"
        problems.append(("attributes", f"must be a mapping with the fields of the {of_what}, {given}"))
    return problems


def _document(content: bytes, component: str, of_what: str) -> object:
    """The content of the YAML. Its mistakes are quoted only if it names a type of ours: another file may be data."""
    try:
        return read_yaml(decoded(content))
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
