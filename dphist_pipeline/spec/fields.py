"""Kinds of fields that the parts of a spec share: flags, lists, numbers and texts, and the marks of the digest.

Numbers, epsilon among them, are read exactly by their decimal digits. Texts are names that are published, columns that
are read, categories that are counted.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticKnownError

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.spec.mistakes import Location, MistakesError, checker, echo, read_words


def spec_field(*, digest: bool, later: bool = False, **more: Any) -> Any:
    """A field, marked as part of the spec's digest or not.

    Args:
        later: added after specs were in use: out of the digest while it has its default, or else every period that was
            released before would ask for `--revise`.
    """
    return Field(json_schema_extra={"digest": digest, "later": later}, validate_default=True, **more)


def digest_fields_of(spec: BaseModel, normalised: Mapping[str, object]) -> dict[str, object]:
    """The fields that are part of the digest, as JSON values, of all fields as JSON values."""
    of, fields = type(spec), type(spec).model_fields
    unused = {
        name for name, field in fields.items() if _marks(of, name)["later"] and getattr(spec, name) == field.default
    }
    return {name: value for name, value in normalised.items() if in_digest(of, name) and name not in unused}


def digest_of(spec: BaseModel, normalised: Mapping[str, object]) -> str:
    """SHA-256, in hex, of the canonical JSON of all fields that are part of the digest."""
    return sha256(digest_fields_of(spec, normalised))


def in_digest(spec: type[BaseModel], field: str) -> bool:
    """Whether a field is part of the digest of its spec.

    Raises:
        KeyError: for a field without a mark, see `spec_field`.
    """
    return bool(_marks(spec, field)["digest"])


def _marks(spec: type[BaseModel], field: str) -> dict[str, Any]:
    marks = spec.model_fields[field].json_schema_extra
    if not isinstance(marks, dict):
        raise KeyError(field)
    return marks


LARGEST_SHOWN_BELOW = 1000
Flag = Annotated[bool, Field(strict=True)]
# A rule of an office about what it prints: the numbers stay as they are.
ShowBelow = Annotated[int | None, Field(strict=True, ge=2, le=LARGEST_SHOWN_BELOW), spec_field(digest=False)]


@dataclass(frozen=True)
class Listed(BeforeValidator):
    """How a list becomes a tuple of at least and at most so many items; `most` is None for any number."""

    least: int = 0
    most: int | None = None


def tuple_of(least: int = 0, most: int | None = None) -> Listed:
    """Lists as tuples; sets are refused, since they have no order. Stands last in a type."""

    def as_tuple(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise PydanticKnownError("tuple_type")
        size = {"field_type": "Tuple", "actual_length": len(value)}
        if len(value) < least:
            raise PydanticKnownError("too_short", {**size, "min_length": least})
        if most is not None and len(value) > most:
            raise PydanticKnownError("too_long", {**size, "max_length": most})
        return tuple(value)

    return Listed(as_tuple, least=least, most=most)


def no_flag(value: object) -> object:
    """The value of a number's field: `true` and `false` are no numbers, though Python takes them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {echo(value)}")
    return value


def whole(value: object, least: int, most: int | None = None) -> int:
    """A whole number within bounds.

    Raises:
        ValueError: for everything else, text and 3.0 included.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"must be a whole number, not {echo(value)}")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least:,}" if most is None else f"between {least:,} and {most:,}"
        raise ValueError(f"must be {bounds}, not {echo(value)}")
    return value


MOST_FLOAT_DIGITS = 15
LARGEST_EDGE = 10**15
LONGEST_NUMBER = 60
LARGEST_DENOMINATOR = 10**30

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?\d+/\d+", re.ASCII)


def exact(value: object) -> Fraction:
    """The number that the digits say: 0.1 is one tenth, "1/3" a third.

    NumPy's numbers count as what they hold. A float32 holds 0.1 as 0.10000000149011612, which has too many digits.

    Raises:
        ValueError: for what is not a finite number, or a float with more digits than a double surely keeps.
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bool):  # which is an int
        raise ValueError(_no_number(value))
    if isinstance(value, Decimal):
        return _from_text(str(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        if abs(value) >= 10**LONGEST_NUMBER:
            raise ValueError("is a number of more than 60 digits; give a shorter one")
        return Fraction(int(value))
    if isinstance(value, Real):
        return _from_float(value)
    raise ValueError(_no_number(value))


def edge(value: object) -> Fraction:
    """A bin edge or a bin width in the unit of its axis: exact, and at most 10^15 away from zero.

    Raises:
        ValueError: as `exact`, and beyond 10^15, where doubles no longer tell neighbouring edges apart.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be finite; for an open end write `below: true` or `above: true`")
    number = exact(value)
    if abs(number) > LARGEST_EDGE:
        raise ValueError("lies beyond 10^15, where doubles become too coarse; use a larger unit on this axis")
    return number


def digits(number: Fraction) -> str:
    """A fraction as short text for messages: decimal digits if they are exact, else a ratio or an approximation."""
    if number.denominator == 1:
        return str(number.numerator)
    near = repr(float(number))
    ratio = f"{number.numerator}/{number.denominator}"
    return near if Fraction(near) == number else ratio if len(ratio) <= LONGEST_NUMBER else f"about {near}"


def _no_number(value: object) -> str:
    return f'must be a number such as 0.5, or text such as "1/3", not {echo(value)}'


def _from_text(value: str) -> Fraction:
    if len(value) > LONGEST_NUMBER:
        raise ValueError("is a number of more than 60 characters; give a shorter one")
    word = value.strip()
    if _DECIMAL.fullmatch(word):
        return Fraction(word)
    if _RATIO.fullmatch(word) and int(word.partition("/")[2]):
        return Fraction(word)
    raise ValueError(f'must be a number such as 0.5 or "1/3", not {echo(value)}')


def _from_float(value: Real) -> Fraction:
    number = float(value)  # NumPy's float64 is a float that writes itself otherwise
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, not {number!r}")
    if number != value:
        raise ValueError("has more digits than a double keeps; quote them")
    digits_text = repr(number)
    mantissa = digits_text.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    if len(mantissa) > MOST_FLOAT_DIGITS:
        raise ValueError(f'has more than 15 digits, which a double rounds; quote it, as in "{digits_text}"')
    return Fraction(digits_text)


def parse_epsilon(value: object) -> Fraction:
    """The epsilon of one release, within [10^-6, 50].

    Raises:
        Refused: for other numbers and for what is no number.
    """
    try:
        return checked_epsilon(value)
    except ValueError as error:
        problem = str(error)
    raise Refused(f"epsilon {problem}", code="epsilon_error")


def checked_epsilon(value: object) -> Fraction:
    """As `parse_epsilon`, for the spec, which adds the place.

    Raises:
        ValueError: for other numbers, for a denominator of more than 30 digits, and for what is no number.
    """
    number = exact(value)
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise ValueError(f"must lie between 10^-6 and 50, not {echo(value)}")
    if number.denominator > LARGEST_DENOMINATOR:
        raise ValueError("needs a denominator of more than 30 digits; give fewer digits")
    return number


Edge = Annotated[Fraction, BeforeValidator(edge)]
Epsilon = Annotated[Fraction, BeforeValidator(checked_epsilon)]


OPEN = "TO_DECIDE"  # what drafts of specs hold where a person must decide
LONGEST_NAME = 63
LONGEST_TEXT = 200
SQL_WORDS = read_words("sql_words")

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
FIGURES = "_figures"  # after a release's name: the catalogue's view of its figures

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_MARKUP = re.compile(r"<[A-Za-z/!?]|&#?\w+;")
_TURNS_TEXT = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def remarks_of_name(release: str) -> list[str]:
    """What to know before a release has this name; mostly nothing."""
    endings = {EVERY_REVISION: "every revision", FIGURES: "the figures"}
    return [
        f"'{release}' is what the view of {what} of a release '{short}' is called: once this one is published, no "
        f"release can have the name '{short}' in this store."
        for end, what in endings.items()
        if (short := release.removesuffix(end)) not in ("", release)
    ]


def _visible(value: str) -> str:
    """Text without characters that cannot be seen or written."""
    if value and not value.strip():
        raise ValueError("is empty; give some text")
    if any(map(_is_hidden, value)):
        raise ValueError("holds a control character, or a piece of a broken one; remove it")
    return value


def _plain(word: str) -> str:
    if word == OPEN:
        raise ValueError(f"is still {OPEN}: give a plain name of lower-case letters, digits and _, and no SQL word")
    if not is_plain(word):
        such_as = f", such as {suggestion(word)}" if suggestion(word) else ""
        form = f"use lower-case letters, digits and _, begin with a letter, at most {LONGEST_NAME} characters"
        raise ValueError(f"{echo(word)} is not a plain name{such_as}: {form}")
    if word in SQL_WORDS:
        raise ValueError(f"{echo(word)} is an SQL word and would need quotes in every query; choose another name")
    return word


def _not_ours(word: str) -> str:
    if word in OUR_COLUMNS:
        raise ValueError(f"{echo(word)} is a column that every release has; choose another name")
    return word


def _no_store_name(word: str) -> str:
    if word in OUR_COLUMNS | OUR_FOLDERS or word.startswith(OUR_TABLES):
        raise ValueError(f"{echo(word)} is a name that every store uses itself; choose another name")
    return word


def _harmless(word: str) -> str:
    if problem := problem_of_category(word):
        raise ValueError(f"{echo(word)} {problem}")
    return word


def is_plain(word: str) -> bool:
    """Whether a word needs no quotes in SQL and paths; SQL words are not looked at."""
    return len(word) <= LONGEST_NAME and _NAME.fullmatch(word) is not None


def suggestion(column: str) -> str:
    """A plain name that resembles a column's name, for a message; an empty text where none is left."""
    plain = re.sub(r"[^a-z0-9]+", "_", unicodedata.normalize("NFKD", column).casefold()).strip("_0123456789")
    return plain[:LONGEST_NAME] if is_plain(plain[:LONGEST_NAME]) and plain not in SQL_WORDS else ""


def problem_of_category(word: str) -> str:
    """Why a `Text` cannot be a category, without quoting it; an empty text if it can."""
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
    mistakes: list[tuple[Location, str]] = []
    seen: dict[str, int] = {}
    for number, value in enumerate(values):
        earlier = seen.setdefault(comparable(value), number)
        if earlier != number:
            ignoring = "" if value == values[earlier] else ", case and hidden signs ignored"
            mistakes.append(((number,), f"{echo(value)} repeats values[{earlier}]{ignoring}; keep one of them"))
    if mistakes:
        raise MistakesError(mistakes)
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
Categories = Annotated[tuple[Category, ...], AfterValidator(_distinct), tuple_of(1)]

# An e-mail address or the name of a team.
Owner = Annotated[Text, Field(pattern=r"^(team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$")]
Owners = Annotated[
    tuple[Owner, ...],
    tuple_of(),
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
