"""Collects the texts of pages from templates and modules, and writes them into the file of each language.

Run this file after texts changed: translations of texts that stayed are kept, those of others go, and new texts are
empty until somebody translates them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2.ext import extract_from_ast

import dphist_pipeline
from dphist_pipeline.base.languages.texts import Texts, on_one_line, read_texts
from dphist_pipeline.publishing._card import mechanism_card
from dphist_pipeline.publishing.rendering import _environment

PACKAGE = Path(dphist_pipeline.__file__).parent
TEMPLATES = PACKAGE / "publishing" / "templates"
FUNCTIONS = ("gettext", "ngettext", "pgettext", "mark_text")
HEAD = """msgid ""
msgstr ""
"Language: {code}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural={plural};\\n"
"""
PLURALS = {"de": "(n != 1)", "fr": "(n > 1)"}
Message = tuple[str, tuple[str, ...]]  # the context, and the text or both forms of a plural


def in_templates() -> Iterator[tuple[str, Message]]:
    """The texts of templates, each with the name of its file."""
    for path in sorted(TEMPLATES.glob("*.j2")):
        source = path.read_text(encoding="utf-8")
        found = extract_from_ast(_environment().parse(source), FUNCTIONS)
        for _, function, texts in found:
            yield path.name, message(function, tuple(text for text in as_tuple(texts) if text is not None), path)


def as_tuple(texts: str | tuple[str | None, ...] | None) -> tuple[str | None, ...]:
    return texts if isinstance(texts, tuple) else (texts,)


def in_modules() -> Iterator[tuple[str, Message]]:
    """The texts of modules, each with the path of its file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "languages.texts import" not in source and path.name != "texts.py":
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
                texts = tuple(one.value for one in node.args if isinstance(one, ast.Constant))
                yield path.relative_to(PACKAGE).as_posix(), message(node.func.id, texts, path)


def in_mechanisms() -> Iterator[tuple[str, Message]]:
    """What a card says of each mechanism in words for readers: its first line, and what its intervals cover."""
    for path in sorted((PACKAGE / "mechanisms").glob("[a-z]*.py")):
        what, said = mechanism_card(path.stem)
        for text in filter(None, (what, said.get("Bars"))):
            yield path.relative_to(PACKAGE).as_posix(), message("gettext", (text,), path)


def message(function: str, texts: tuple[str, ...], path: Path) -> Message:
    assert len(texts) == {"ngettext": 2, "pgettext": 2}.get(function, 1), f"{path}: {function} of {texts}"
    context, forms = (texts[0], texts[1:]) if function == "pgettext" else ("", texts)
    return context, tuple(map(on_one_line, forms))


@cache
def collected() -> dict[Message, list[str]]:
    """Every text, with the files in which it stands; in the order of the files."""
    found: dict[Message, list[str]] = {}
    for name, told in [*in_templates(), *in_modules(), *in_mechanisms()]:
        places = found.setdefault(told, [])
        places += [name] if name not in places else []
    return found


def written(code: str, known: Texts) -> str:
    """The file of a language with its translations."""
    blocks = [HEAD.format(code=code, plural=PLURALS[code]).rstrip()]
    for (context, forms), places in collected().items():
        translated = known.get((context, forms[0]), ("",) * len(forms))
        lines = [f"#: {' '.join(places)}"]
        lines += [f"msgctxt {quoted(context)}"] if context else []
        lines += [f"msgid {quoted(forms[0])}", *(f"msgid_plural {quoted(one)}" for one in forms[1:])]
        if len(forms) == 1:
            lines.append(f"msgstr {quoted(translated[0])}")
        else:
            lines += [f"msgstr[{number}] {quoted(one)}" for number, one in enumerate(translated)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def path_of(code: str) -> Path:
    return PACKAGE / "base" / "languages" / f"{code}.po"


def main() -> None:
    for code in PLURALS:
        path = path_of(code)
        path.write_text(written(code, read_texts(path) if path.exists() else {}), encoding="utf-8")


if __name__ == "__main__":
    main()
