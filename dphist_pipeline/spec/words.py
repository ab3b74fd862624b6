"""Texts of a spec: names that are published, columns that are read, categories that are counted."""

from __future__ import annotations

import re
import unicodedata

from dphist_pipeline.spec.refusals import Location, MistakesError, shown
from dphist_pipeline.spec.sql_words import SQL_WORDS

LONGEST_NAME = 63
LONGEST_TEXT = 200

# Columns that every published table has, and the folders that a store keeps for itself.
OUR_COLUMNS = frozenset(
    [
        *("estimate", "unbiased_estimate", "ci_lower", "ci_upper", "group_id"),
        *("release", "period", "revision", "cell_number"),
    ]
)
OUR_FOLDERS = frozenset({"catalog", "journal"})
OUR_TABLES = "dph_"

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MARKUP = re.compile(r"<[A-Za-z/!?]|&#?\w+;")
_TURNS_TEXT = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def text(value: object) -> str:
    """Non-empty text of at most 200 characters, all of which can be seen or written.

    Raises:
        ValueError: for anything else; what YAML took for another type is asked to be quoted.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be text, but arrived as {shown(value)}: quote it")
    if not value.strip():
        raise ValueError("is empty; give some text")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"is longer than {LONGEST_TEXT} characters; shorten it")
    if any(map(_is_hidden, value)):
        raise ValueError("holds a control character or half a character; remove it")
    return value


def name(value: object) -> str:
    """A name that stands in SQL and in a path without quotes.

    Raises:
        ValueError: for other characters, more than 63 of them, and SQL words.
    """
    word = text(value)
    if not is_plain(word):
        raise ValueError(
            f"{shown(word)} is not a plain name: use lower-case letters, digits and _, "
            f"begin with a letter, at most {LONGEST_NAME} characters"
        )
    if word in SQL_WORDS:
        raise ValueError(f"{shown(word)} is an SQL word and would need quotes in every query; choose another name")
    return word


def release_name(value: object) -> str:
    """A release's name: a plain name that is neither one of our columns nor one of our folders."""
    word = name(value)
    if word in OUR_COLUMNS | OUR_FOLDERS or word.startswith(OUR_TABLES):
        raise ValueError(f"{shown(word)} is a name that every store uses itself; choose another name")
    return word


def is_plain(word: str) -> bool:
    """Whether SQL and file systems take the word as it is, leaving SQL words aside."""
    return len(word) <= LONGEST_NAME and _NAME.fullmatch(word) is not None


def suggestion(column: str) -> str:
    """A plain name that resembles a column's name, for a message; nothing where none is left."""
    plain = re.sub(r"[^a-z0-9]+", "_", unicodedata.normalize("NFKD", column).casefold()).strip("_0123456789")
    return plain[:LONGEST_NAME] if is_plain(plain[:LONGEST_NAME]) and plain not in SQL_WORDS else "…"


def category(value: object) -> str:
    """One declared category, safe wherever it is printed; SQL words are fine, since categories are data.

    Raises:
        ValueError: if it did not arrive as text, or holds quotes, markup, paths or stray blanks.
    """
    if not isinstance(value, str):
        raise ValueError(f'arrived as {shown(value)}, not as text: quote it as it stands in the data, as in "NO"')
    word = text(value)
    problem = problem_of_category(word)
    if problem:
        raise ValueError(f"{shown(word)} {problem}")
    return word


def problem_of_category(word: str) -> str:
    """What keeps a text from being a category, without the text; nothing for a category."""
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
    """A category as it is compared with others: two that differ in case or in how letters are made are one."""
    return unicodedata.normalize("NFC", word).casefold()


def categories(value: object) -> tuple[str, ...]:
    """The declared categories in their order.

    Raises:
        MistakesError: for every bad one by position, and for those equal to an earlier one, case ignored.
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list such as [surgery, medicine], not {shown(value)}")
    if not value:
        raise ValueError("is an empty list; name at least one category")
    found: list[tuple[Location, str]] = []
    seen: dict[str, int] = {}
    for number, item in enumerate(value):
        try:
            key = comparable(category(item))
        except ValueError as error:
            found.append(((number,), str(error)))
            continue
        if seen.setdefault(key, number) != number:
            found.append(((number,), _repeats(item, value[seen[key]], f"values[{seen[key]}]")))
    if found:
        raise MistakesError(found)
    return tuple(value)


def _repeats(item: str, earlier: str, called: str) -> str:
    ignoring = "" if item == earlier else ", case ignored"
    return f"{shown(item)} repeats {called}{ignoring}; keep one of them"


def _is_hidden(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in _TURNS_TEXT


def _has_quoting_apostrophe(word: str) -> bool:
    around = f" {word} "
    return any(
        sign == "'" and not (around[number - 1].isalpha() and around[number + 1].isalpha())
        for number, sign in enumerate(around)
    )
