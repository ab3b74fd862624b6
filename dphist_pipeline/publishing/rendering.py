"""Jinja2's templates of pages and pictures: every value is escaped, but in plain texts and YAML."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_eval_context
from jinja2.nodes import EvalContext
from markupsafe import Markup, escape

from dphist_pipeline.base.compiled_templates import compiled_templates
from dphist_pipeline.base.languages.texts import ENGLISH, days_text, language, number_text, translate, whole
from dphist_pipeline.publishing.formatting import visible


@cache
def _environment() -> Environment:
    folder = Path(__file__).with_name("templates")
    environment = Environment(
        loader=FileSystemLoader(folder),
        bytecode_cache=compiled_templates(folder),
        autoescape=lambda name: name is None or not name.endswith((".txt.j2", ".yaml.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible_text,
        extensions=["jinja2.ext.i18n"],
    )
    environment.newstyle_gettext = True  # type: ignore[attr-defined]  # values are escaped by the functions below
    environment.globals |= {"gettext": _gettext, "pgettext": _pgettext, "ngettext": _ngettext, "spoken": language}
    environment.filters |= {
        "whole": whole,
        "number": number_text,
        "days": days_text,
        "translated": translate,
        "english": _in_english,
    }
    environment.filters["bdi"] = _isolate
    environment.filters["columns"] = _columns
    environment.filters["unbroken"] = _unbroken
    environment.filters["in_css"] = _in_css
    environment.filters["pixels"] = lambda number: f"{number:.1f}".removesuffix(".0")
    environment.filters["quoted"] = lambda text: yaml.safe_dump(str(text), default_style='"', width=math.inf).strip()
    return environment


def _visible_text(value: object) -> object:
    return visible(value) if type(value) is str else value


def _fill(context: EvalContext, text: str, values: Mapping[str, Any]) -> str:
    """A text of ours, which may hold elements of HTML, with values that are escaped where the template escapes."""
    texts = {name: _visible_text(value) for name, value in values.items()}
    return Markup(text) % texts if context.autoescape else Markup(text % texts)  # whole: `visible` keeps its lines


@pass_eval_context
def _gettext(context: EvalContext, message: str, /, **values: Any) -> str:
    return _fill(context, translate(message), values)


@pass_eval_context
def _pgettext(context: EvalContext, msgctxt: str, message: str, /, **values: Any) -> str:
    return _fill(context, translate(message, msgctxt), values)


@pass_eval_context
def _ngettext(context: EvalContext, one: str, several: str, number: float, /, **values: Any) -> str:
    return _fill(context, translate(one, "", several, number), values)


def _isolate(text: object) -> Markup:
    """A name from outside: whichever way its letters run, the sentence around it keeps its order."""
    text = text if isinstance(text, Markup) else escape(visible(str(text)))
    runs_left = any(unicodedata.bidirectional(letter) in {"R", "AL", "AN"} for letter in text)
    return Markup("<bdi>{}</bdi>").format(text) if runs_left else text


def _in_english(text: str) -> str:
    """A text that came from elsewhere in English, such as the card of a mechanism: its translation, else marked."""
    if language() is ENGLISH:
        return text
    translation = translate(text)
    return translation if translation != text else Markup('<span lang="en">{}</span>').format(_visible_text(text))


def _unbroken(text: str) -> str:
    """A text whose lines break neither before a percent sign nor behind ±."""
    unbroken = re.sub(r"(?<=\d) (?=%)|(?<=±) (?=\d)", "\u00a0", text)
    return Markup(unbroken) if isinstance(text, Markup) else unbroken


def _in_css(text: str) -> Markup:
    """A text between quotes of a style sheet: letters that could end it, the sheet or the element become numbers."""
    return Markup(re.sub(r"[^\w ,.:-]", lambda letter: f"\\{ord(letter[0]):x} ", visible(text), flags=re.ASCII))


def _columns(rows: Iterable[Mapping[str, Any]], *names: str) -> list[list[Any]]:
    """Some columns of a list of rows; a list within a row becomes one text."""
    cells = [[row[name] for name in names] for row in rows]
    return [["; ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row] for row in cells]


def render(template: str, **values: Any) -> str:
    """A page or text from a file in `templates`; a value that the template names and nobody gives is an error.

    Values are escaped but in plain texts and YAML, whose own filter quotes them.
    """
    return _environment().get_template(template).render(values)
