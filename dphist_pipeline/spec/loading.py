"""Reading a spec from its file: the same file that Dagster reads as `defs.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec.code_list_files import Decided
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.refusals import SpecError, place, shown
from dphist_pipeline.spec.templates import resolve_templates, templates_around
from dphist_pipeline.spec.text_files import content_of, decoded
from dphist_pipeline.spec.yaml_rules import read_yaml

COMPONENT = "dphist_pipeline.HistogramRelease"
COLLECTION = "dphist_pipeline.LocalCollection"
LARGEST_FILE = 10_000_000
ADDRESSES = ("source",)

_OURS = "dphist_pipeline."
_NAMES_OURS = re.compile(rb"""type["']? *: *["']?dphist_pipeline\.""")
_TOP_LEVEL = ("type", "attributes", "requirements", "post_processing")
_OTHERS = {
    COMPONENT: "this is the spec of a release: use the commands without `local`",
    COLLECTION: "this is the spec of a collection: use `dphist local check` and its like",
}

Problems = list[tuple[str, str]]
Spec = TypeVar("Spec")
Build = Callable[[Mapping[str, object], Path], Spec]


def load_spec(path: Path | str, code_lists: Decided | None = None) -> ReleaseSpec:
    """The release spec in a YAML file, checked whole; no data is opened.

    Args:
        path: of the file.
        code_lists: gives the folders that an operator declared public; without it no code list is read.

    Raises:
        SpecError: with every mistake that was found, its place in the file and its mend.
    """
    return from_file(path, COMPONENT, "release", _release(code_lists), ADDRESSES)


def _release(code_lists: Decided | None) -> Build[ReleaseSpec]:
    return lambda attributes, base: ReleaseSpec.from_attributes(attributes, base, code_lists=code_lists)


def from_file(
    path: Path | str, component: str, of_what: str, build: Build[Spec], addresses: Collection[str] = ()
) -> Spec:
    """The spec in a YAML file, of a release or of a collection; see `check_document` and `from_templates`."""
    try:
        file = Path(path)
        document = _document(content_of(file, LARGEST_FILE, "a spec, usually defs.yaml"), component, of_what)
        problems = check_document(document, component, of_what)
        attributes = document.get("attributes") if isinstance(document, Mapping) else None
        if not isinstance(attributes, Mapping):
            raise SpecError(problems)
        return from_templates(build, attributes, project_folder(file), problems, of_what, addresses)
    except SpecError as error:
        problems = list(error.problems)
    except ValueError as error:
        problems = [("", str(error))]
    raise SpecError(problems, path, of_what)


def project_folder(spec: Path | str) -> Path:
    """The folder that relative paths start from: the nearest one above the spec with a pyproject.toml, else its own."""
    folder = Path(spec).resolve().parent
    return next((parent for parent in (folder, *folder.parents) if (parent / "pyproject.toml").is_file()), folder)


def spec_from_attributes(
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]] = (),
    code_lists: Decided | None = None,
) -> ReleaseSpec:
    """The release spec in a mapping whose templates are not resolved yet; see `from_templates` and `load_spec`."""
    return from_templates(_release(code_lists), attributes, base, problems, addresses=ADDRESSES)


def from_templates(
    build: Build[Spec],
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]] = (),
    of_what: str = "release",
    addresses: Collection[str] = (),
) -> Spec:
    """The spec in a mapping whose templates are not resolved yet.

    Args:
        build: makes it of the resolved mapping.
        base: folder that relative paths start from.
        problems: mistakes found before, to be named in the same message.
        of_what: it is a spec.
        addresses: fields in which `{{ env.X }}` is resolved.

    Raises:
        SpecError: with every mistake that was found.
    """
    resolved, unresolved = resolve_templates(attributes, addresses)
    problems = [*problems, *((place("attributes", at), what) for at, what in unresolved)]
    spec = None
    try:
        spec = build(resolved, base)
    except SpecError as error:
        known = {where for where, _ in problems}
        problems += [problem for problem in error.problems if problem[0] not in known]
    if spec is None or problems:
        raise SpecError(problems, of_what=of_what)
    return spec


def check_document(document: object, component: str, of_what: str = "release") -> Problems:
    """The mistakes of a spec's file outside of `attributes`.

    Args:
        component: the type that it must name.
        of_what: it is a spec.

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
