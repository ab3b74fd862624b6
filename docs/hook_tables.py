"""Tables and numbers as Markdown, for the generated parts of pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def shown(value: Any) -> str:
    """A value of a JSON file, in few digits."""
    if isinstance(value, dict) and set(value) == {"mean", "standard_error"}:
        return f"{value['mean']:.4g} ± {value['standard_error']:.2g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(held)}" for key, held in value.items())
    if isinstance(value, list):
        return " × ".join(map(shown, value))
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = [name.replace("_", " ") for name in head]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
