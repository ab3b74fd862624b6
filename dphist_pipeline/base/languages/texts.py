"""Texts, numbers and days in the language of the page that is being made.

An English text stands where it is used and is the key of its translations. Outside of `in_language` all is English, so
commands, files and audits need not think of languages.

Translations stand in `*.po` files, as gettext has them: what runs needs no tool of translators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

Code = Literal["en", "de", "fr"]
Texts = dict[tuple[str, str], tuple[str, ...]]
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]\])?) )?("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class Language:
    """How a language writes numbers and days; its code is as in `lang` of HTML.

    `decimal` and `thousands` are signs before decimals and between groups of three digits. `between` parts numbers in a
    row, and must not look like decimals. `day` and `month` are for `str.format`. `plural`: which form of a plural a
    number takes.
    """

    code: Code
    decimal: str
    thousands: str
    between: str
    day: str
    month: str
    plural: Callable[[float], int]


def _plural_unless_one(number: float) -> int:
    return 0 if number == 1 else 1


def _plural_from_two(number: float) -> int:
    return 0 if abs(number) < 2 else 1


ENGLISH = Language("en", ".", ",", ", ", "{:%Y-%m-%d}", "{:%Y-%m}", _plural_unless_one)
LANGUAGES = {
    entry.code: entry
    for entry in (
        ENGLISH,
        Language("de", ",", ".", "; ", "{:%d.%m.%Y}", "{:%m.%Y}", _plural_unless_one),
        Language("fr", ",", "\u202f", "\u202f; ", "{:%d/%m/%Y}", "{:%m/%Y}", _plural_from_two),
    )
}
_SPOKEN: ContextVar[Language] = ContextVar("language", default=ENGLISH)
_DAY = re.compile(r"\b([0-9]{4})-([0-9]{2})(?:-([0-9]{2}))?(?![0-9-])")


@contextmanager
def in_language(code: str) -> Iterator[None]:
    """Makes the texts within a `with` in a language; one that is empty, or that nobody knows, is told in English."""
    before = _SPOKEN.set(LANGUAGES.get(code, ENGLISH))  # type: ignore[call-overload]
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def language() -> Language:
    """The language of the page that is being made."""
    return _SPOKEN.get()


@cache
def _translations(code: Code) -> Texts:
    return read_texts(Path(__file__).with_name(f"{code}.po"))


def translate(message: str, context: str = "", plural: str = "", number: float = 1) -> str:
    """A text in the language of the page, with its places for values and the blanks around it as they are.

    `context` tells apart what English says by one word. `plural`: the message for other numbers than one.
    """
    spoken = _SPOKEN.get()
    own = plural if plural and spoken.plural(number) else message
    if spoken is ENGLISH:
        return own
    forms = _translations(spoken.code).get((context, on_one_line(message)))
    if forms is None:
        return own
    blanks = re.fullmatch(r"(\s*)(.*?)(\s*)", own, re.DOTALL)
    assert blanks is not None
    return f"{blanks[1]}{forms[spoken.plural(number) if len(forms) > 1 else 0]}{blanks[3]}"


def gettext(message: str, /, **values: Any) -> str:
    """A text in the language of the page, with its values; a percent sign is written twice."""
    return translate(message) % values


def pgettext(context: str, message: str, /, **values: Any) -> str:
    """A text that depends on where it stands, in the language of the page."""
    return translate(message, context) % values


def ngettext(one: str, several: str, number: float, /, **values: Any) -> str:
    """A text in the form that a number takes; the number itself is among the values, as it is to be shown."""
    return translate(one, "", several, number) % values


def mark_text(message: str) -> str:
    """The same text: marks one that `translate` tells where it is shown, for the tool that collects texts."""
    return message


def number_text(text: str) -> str:
    """A number that is written in English, with the signs of the language."""
    spoken = _SPOKEN.get()
    return text if spoken is ENGLISH else text.translate({ord(","): spoken.thousands, ord("."): spoken.decimal})


def whole(number: int) -> str:
    """A whole number with a sign between groups of three digits."""
    return number_text(f"{number:,}")


def days_text(text: str) -> str:
    """A text of ours whose days and months are written as 2026-03-02 and 2026-03, as the language writes them."""
    spoken = _SPOKEN.get()
    if spoken is ENGLISH:
        return text

    def written(match: re.Match[str]) -> str:
        try:
            day = date(int(match[1]), int(match[2]), int(match[3] or 1))
        except ValueError:
            return match[0]
        return (spoken.day if match[3] else spoken.month).format(day)

    return _DAY.sub(written, text).replace(" to ", pgettext("days", " to "))


def read_texts(path: Path) -> Texts:
    """The translations in a file, by context (empty for most) and English text; several are those of a plural.

    Blanks and line breaks of an English text count as one blank: templates break their lines anywhere.

    Raises:
        ValueError: a line is none of such a file.
    """
    texts: Texts = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        entry = _entry(block)
        forms = tuple(text for name, text in entry.items() if name.startswith("msgstr"))
        if entry.get("msgid") and all(forms):
            texts[entry.get("msgctxt", ""), on_one_line(entry["msgid"])] = forms
    return texts


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
