"""How the numbers were made: the mechanism with its card and paper, and its settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from dphist_pipeline.publishing.card_pieces.facts import Facts, entries
from dphist_pipeline.publishing.plots_drawing import xml

# Read as text: the card is a file's docstring, and what is public loads no mechanism.
_MECHANISMS = Path(__file__).parents[2] / "mechanisms"
_FIELD = re.compile(r"([A-Z][a-z]+):\s+(.*)")


def method(facts: Facts) -> str:
    """The section on the mechanism."""
    name = str(facts.audit["mechanism"])
    what, fields = card_of(name)
    shown = {"Mechanism": f"<code>{xml(name)}</code>{f': {xml(what)}' if what else ''}"}
    settings: Mapping[str, object] = facts.audit.get("settings") or {}
    if settings:
        shown["Settings"] = ", ".join(f"{xml(key)}: {xml(str(value))}" for key, value in settings.items())
    shown |= {xml(field): xml(text).replace("`", "") for field, text in fields.items()}
    shown["Noise"] = xml(f"{facts.audit['noise']}. Drawn exactly, in whole numbers, from the operating system’s "
                         "cryptographic source.")  # fmt: skip
    return entries(shown)


def card_of(mechanism: str) -> tuple[str, dict[str, str]]:
    """A mechanism's first line without its name, and the fields of its card; empty where it has no file."""
    file = _MECHANISMS / f"{mechanism}.py"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", mechanism) or not file.is_file():
        return "", {}
    about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    head, _, rest = about.partition("\n")
    fields = dict[str, str]()
    last = ""
    for line in rest.splitlines():
        found = _FIELD.match(line)
        if found:
            last = found[1]
            fields[last] = found[2]
        elif last and line.strip():
            fields[last] += f" {line.strip()}"
    return head.partition(": ")[2], fields
