"""`{{ env.X }}` in a spec: taken from the environment, never echoed. Other templates are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from dphist_pipeline.spec.refusals import FromEnvironment, Location, shortened

_ENV = re.compile(r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}", re.ASCII)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def resolve_templates(
    value: object, environment: Mapping[str, str] | None = None
) -> tuple[object, list[tuple[Location, str]]]:
    """A copy of lists, mappings and texts with every `{{ env.X }}` replaced.

    A text stays text (Dagster's own resolution would turn "1" into a number), as `FromEnvironment`.

    Returns:
        The copy, and the location and message of every template that could not be resolved.
    """
    found: list[tuple[Location, str]] = []
    return _resolve(value, (), os.environ if environment is None else environment, found), found


def _resolve(value: object, at: Location, environment: Mapping[str, str], found: list[tuple[Location, str]]) -> object:
    if isinstance(value, str):
        return _resolve_text(value, at, environment, found)
    if isinstance(value, Mapping):
        return {key: _resolve(item, (*at, str(key)), environment, found) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, (*at, number), environment, found) for number, item in enumerate(value)]
    return value


def _resolve_text(value: str, at: Location, environment: Mapping[str, str], found: list[tuple[Location, str]]) -> str:
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
