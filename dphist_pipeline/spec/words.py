"""Texts of a spec: names that are published, columns that are read, categories that are counted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from dphist_pipeline.published_columns import KINDS_OF_VALUES
from dphist_pipeline.spec.fields import listed
from dphist_pipeline.spec.mistakes import checker
from dphist_pipeline.spec.refusals import Location, MistakesError, listed_words, shown

OPEN = "TO_DECIDE"  # what drafts of specs hold where a person must decide
LONGEST_NAME = 63
LONGEST_TEXT = 200
SQL_WORDS = listed_words("sql_words")

# Columns that every published table has, and the folders that a store keeps for itself.
OUR_COLUMNS = frozenset(
    [
        *KINDS_OF_VALUES,
        *("release", "period", "revision", "cell_number", "whole_count"),
    ]
)
# Columns that answers have beside those of the axes.
ANSWER_COLUMNS = ("unbiased", "noise_error", "basis", "cells", "note", "reliability", "capped")
OUR_FOLDERS = frozenset({"catalog", "journal"})
OUR_TABLES = "dph_"
EVERY_REVISION = "_all"  # after a release's name: the catalogue's view of every revision

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MARKUP = re.compile(r"<[A-Za-z/!?]|&#?\w+;")
_TURNS_TEXT = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def remarks_of_name(release: str) -> list[str]:
    """What to know before a release has this name; mostly nothing."""
    short = release.removesuffix(EVERY_REVISION)
    if short in ("", release):
        return []
    return [
        f"'{release}' is what the view of every revision of a release '{short}' is called: once this one is published, "
        f"no release can have the name '{short}' in this store."
    ]


def _visible(value: str) -> str:
    """Text without characters that cannot be seen or written."""
    if value and not value.strip():
        raise ValueError("is empty; give some text")
    if any(map(_is_hidden, value)):
        raise ValueError("holds a control character or half a character; remove it")
    return value


def _plain(word: str) -> str:
    if word == OPEN:
        raise ValueError(f"is still {OPEN}: give a plain name of lower-case letters, digits and _, and no SQL word")
    if not is_plain(word):
        such_as = f", such as {suggestion(word)}" if suggestion(word) else ""
        form = f"use lower-case letters, digits and _, begin with a letter, at most {LONGEST_NAME} characters"
        raise ValueError(f"{shown(word)} is not a plain name{such_as}: {form}")
    if word in SQL_WORDS:
        raise ValueError(f"{shown(word)} is an SQL word and would need quotes in every query; choose another name")
    return word


def _not_ours(word: str) -> str:
    if word in OUR_COLUMNS:
        raise ValueError(f"{shown(word)} is a column that every release has; choose another name")
    return word


def _no_store_name(word: str) -> str:
    if word in OUR_COLUMNS | OUR_FOLDERS or word.startswith(OUR_TABLES):
        raise ValueError(f"{shown(word)} is a name that every store uses itself; choose another name")
    return word


def _harmless(word: str) -> str:
    if problem := problem_of_category(word):
        raise ValueError(f"{shown(word)} {problem}")
    return word


def is_plain(word: str) -> bool:
    """Whether a word needs no quotes in SQL and paths; SQL words are not looked at."""
    return len(word) <= LONGEST_NAME and _NAME.fullmatch(word) is not None


def suggestion(column: str) -> str:
    """A plain name that resembles a column's name, for a message; an empty text where none is left.

    Args:
        column: the name as a file has it, any text.
    """
    plain = re.sub(r"[^a-z0-9]+", "_", unicodedata.normalize("NFKD", column).casefold()).strip("_0123456789")
    return plain[:LONGEST_NAME] if is_plain(plain[:LONGEST_NAME]) and plain not in SQL_WORDS else ""


def problem_of_category(word: str) -> str:
    """Why a text cannot be a category, without quoting it; an empty text if it can.

    Args:
        word: text of a spec or code list, with its length and signs checked; see `Text`.
    """
    if word != word.strip():
        return "begins or ends with a blank; remove it"
    for sign in '"`\\':
        if sign in word:
            return f"holds {sign}, which categories may not; clean the source or use `other`"
    if "../" in word:
        return "holds ../, which looks like a path; clean the source or use `other`"
    if _MARKUP.search(word):
        return "looks like HTML; clean the source or use `other`"
    if _has_quoting_apostrophe(word):
        return "holds an apostrophe that is not between letters; clean the source or use `other`"
    return ""


def comparable(word: str) -> str:
    """A category as it is compared with others: two that differ in case, in how letters are made, or in signs that
    nobody sees, are one.
    """
    if not word.isascii():
        word = "".join(sign for sign in unicodedata.normalize("NFC", word) if unicodedata.category(sign) != "Cf")
    return word.casefold()


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """Categories none of which equals an earlier one, case ignored."""
    found: list[tuple[Location, str]] = []
    seen: dict[str, int] = {}
    for number, value in enumerate(values):
        earlier = seen.setdefault(comparable(value), number)
        if earlier != number:
            ignoring = "" if value == values[earlier] else ", case and hidden signs ignored"
            found.append(((number,), f"{shown(value)} repeats values[{earlier}]{ignoring}; keep one of them"))
    if found:
        raise MistakesError(found)
    return values


def _is_hidden(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in _TURNS_TEXT


def _has_quoting_apostrophe(word: str) -> bool:
    around = f" {word} "
    return any(
        sign == "'" and not (around[number - 1].isalpha() and around[number + 1].isalpha())
        for number, sign in enumerate(around)
    )


Title = Annotated[str, Field(strict=True, max_length=LONGEST_TEXT), AfterValidator(_visible)]
# Text of a field: not empty, at most 200 characters, all of which can be seen or written.
Text = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_TEXT), AfterValidator(_visible)]
# A name that stands in SQL and in a path without quotes.
Name = Annotated[Text, AfterValidator(_plain)]
# A name of a published column, which no other column of a release has.
PublishedName = Annotated[Name, AfterValidator(_not_ours)]
ReleaseName = Annotated[Name, AfterValidator(_no_store_name)]
# A declared category, safe wherever it is printed; SQL words are fine, since categories are data.
Category = Annotated[Text, AfterValidator(_harmless)]
Categories = Annotated[tuple[Category, ...], AfterValidator(_distinct), listed(1)]

# An e-mail address or the name of a team.
Owner = Annotated[Text, Field(pattern=r"^(team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$")]
Owners = Annotated[
    tuple[Owner, ...],
    listed(),
    Field(description='an e-mail address, or a team such as "team:statistics"', examples=['["team:statistics"]']),
]

# The same checks as functions, which raise a ValueError in the words of a spec.
text: Callable[[object], str] = checker(Text)
name: Callable[[object], str] = checker(Name)
published_name: Callable[[object], str] = checker(PublishedName)
release_name: Callable[[object], str] = checker(ReleaseName)
category: Callable[[object], str] = checker(Category)

Label = Annotated[str, BeforeValidator(lambda word: "" if word in (None, "") else category(word))]
label: Callable[[object], str] = checker(Label)
