"""Reads the files of translations, `*.po` as gettext has them: what runs needs no tool of translators."""

from __future__ import annotations

import json
import re
from pathlib import Path

Texts = dict[tuple[str, str], tuple[str, ...]]
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]\])?) )?("(?:[^"\\]|\\.)*")')


def read(path: Path) -> Texts:
    """The translations in a file, by context (empty for most) and English text; several are those of a plural.

    Blanks and line breaks of an English text count as one blank: templates break their lines anywhere.

    Raises:
        ValueError: a line is none of such a file.
    """
    found: Texts = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        entry = _entry(block)
        made = tuple(text for name, text in entry.items() if name.startswith("msgstr"))
        if entry.get("msgid") and all(made):
            found[entry.get("msgctxt", ""), on_one_line(entry["msgid"])] = made
    return found


def _entry(block: str) -> dict[str, str]:
    entry: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        if line.startswith("#") or not line:
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"no line of a file of translations: {line}")
        name = match[1] or name
        entry[name] = entry.get(name, "") + json.loads(match[2])
    return entry


def on_one_line(text: str) -> str:
    """A text with single blanks in the place of blanks and line breaks; blanks that keep words together stay."""
    return re.sub(r"[ \n]+", " ", text).strip()
