"""`{{ env.X }}` in a spec: resolved in the address of a source and in no other field; for variables, see `unfolding`.

A value of the environment may be a secret, and other fields are published: titles, categories, names, owners. So the
environment is not even looked at for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping

from dphist_pipeline.spec.mistakes import FromEnvironment, Location, place, shortened

_ENV = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}", re.ASCII)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def resolve_templates(
    attributes: Mapping[str, object], addresses: Collection[str], environment: Mapping[str, str] | None = None
) -> tuple[dict[str, object], list[tuple[Location, str]]]:
    """A copy of the attributes with `{{ env.X }}` replaced in those that are addresses.

    A text stays text (Dagster's own resolution would turn "1" into a number), as `FromEnvironment`.

    Args:
        addresses: fields that may hold `{{ env.X }}`.
        environment: by default the process's own.

    Returns:
        The copy, and the location and message of every template that was not resolved.
    """
    found: list[tuple[Location, str]] = []
    resolved = {str(field): value for field, value in attributes.items()}
    for field, value in resolved.items():
        if field in addresses and isinstance(value, str):
            resolved[field] = _resolved(value, (field,), os.environ if environment is None else environment, found)
        else:
            found += [((field, *at), _elsewhere(addresses)) for at in template_places(value)]
    return resolved, found


def templates_around(document: Mapping[str, object]) -> list[tuple[str, str]]:
    """The templates of a file outside of its attributes, where Dagster would resolve and publish them.

    Args:
        document: the whole file, as written.

    Returns:
        The place and message of every template.
    """
    what = "holds a template; outside of `attributes` none is resolved, so write the value itself"
    return [
        (place("", (key, *at)).lstrip("."), what)
        for key, value in document.items()
        if key != "attributes"
        for at in template_places(value)
    ]


def template_places(value: object) -> Iterator[Location]:
    """The locations of all texts and keys that hold a template of any kind.

    Args:
        value: a mapping, a list or a plain value, as YAML gave it.
    """
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


def _resolved(value: str, at: Location, environment: Mapping[str, str], found: list[tuple[Location, str]]) -> str:
    if not _TEMPLATE.search(value):
        return value
    if _TEMPLATE.search(_ENV.sub("", value)):
        found.append((at, "holds a template other than {{ env.NAME }}, which is the only one allowed here"))
        return value
    missing = sorted({name for name in _ENV.findall(value) if name not in environment})
    if missing:
        names = shortened(", ".join(missing))
        found.append((at, f"needs the environment variable {names}, which is not set; set it and run again"))
        return value
    return FromEnvironment(_ENV.sub(lambda match: environment[match[1]], value), value)
