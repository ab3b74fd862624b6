"""The forms in which names of units are compared: one function in Python and one SQL for each, with the same results.

Each is a function of one text alone, fails on none, and never changes: accounts and decisions of years rest on it.

- trim, lower, nfc: as DuckDB does them; they stay for specs that have them.
- trim_all: without the signs of `SURROUNDING` at either end.
- fold: normal form C, full case folding by `folded_letters.txt`, normal form C. In a text with a sign that Unicode 14
  does not know, or one of `NOT_COMPOSED`, accents are not put together.
- number: a text that is a decimal number becomes its shortest form: 007, +7, 7.0, 7e0 and ` 7 ` become 7. Powers of ten
  have up to three digits. No number is ever made of the text, so no digit is lost.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from dphist_pipeline.base.sql_files import literal

NormalForm = Literal["trim", "lower", "nfc", "trim_all", "fold", "number"]
FORMS: tuple[NormalForm, ...] = get_args(NormalForm)

BYTE_ORDER_MARK = "\ufeff"
# Blanks, signs without a width, marks of direction and fillers, as (first, last).
SURROUNDING = (
    *((0x00, 0x20), (0x7F, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x1680, 0x1680)),
    *((0x17B4, 0x17B5), (0x180B, 0x180E), (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x2800, 0x2800)),
    *((0x3000, 0x3000), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB)),
)
# DuckDB's normal form C cuts a text off at the first, and drops the second.
NOT_COMPOSED = "\0\u11a7"
_BLANKS = "".join(chr(sign) for first, last in SURROUNDING for sign in range(first, last + 1))
_TRIM_BLANKS = "chr(32) || chr(9) || chr(10) || chr(13) || chr(160)"
_DOTTED_I = "i\u0307"
_FREQUENT = "\u00df\u03c2\u0131\u0130"  # sharp s, final sigma, I with and without a dot
_IN_PYTHON, _IN_SQL = "\\U{:08x}", "\\x{{{:x}}}"  # a sign in a regular expression


def _class(ranges: tuple[tuple[int, int], ...], form: str) -> str:
    """Ranges of signs inside the brackets of a regular expression, each sign written by a form."""
    return "".join(f"{form.format(first)}-{form.format(last)}" for first, last in ranges)


@cache
def _table() -> tuple[dict[str, str], dict[str, str], tuple[tuple[int, int], ...]]:
    """Letters that `lower` rewrites, letters that are rewritten after it, and signs that Unicode 14 does not know."""
    lower: dict[str, str] = {}
    other: dict[str, str] = {}
    unknown = [(ord(sign), ord(sign)) for sign in NOT_COMPOSED]
    for line in Path(__file__).with_name("folded_letters.txt").read_text(encoding="ascii").splitlines():
        kind, first, last = line.split(" ", 2)
        if kind == "unknown":
            unknown.append((int(first, 16), int(last, 16)))
        elif kind != "#":
            letters = lower if kind == "lower" else other
            letters[chr(int(first, 16))] = "".join(chr(int(sign, 16)) for sign in last.split("+"))
    return lower, other, tuple(unknown)


def trim_all(text: str) -> str:
    """The text by `trim_all`."""
    return text.strip(_BLANKS)


def fold_text(text: str) -> str:
    """The text by `fold`."""
    if text.isascii():
        return text.lower()
    known = _unknown_letters().search(text) is None
    text = unicodedata.normalize("NFC", text) if known else text
    text = text.translate(_letters()).replace(_DOTTED_I, "i")
    return unicodedata.normalize("NFC", text) if known else text


@cache
def _unknown_letters() -> re.Pattern[str]:
    return re.compile(f"[{_class(_table()[2], _IN_PYTHON)}]")


@cache
def _letters() -> dict[int, str]:
    lower, other, _ = _table()
    capitals = {chr(sign): chr(sign + 32) for sign in range(ord("A"), ord("Z") + 1)}
    return str.maketrans(capitals | lower | other)


def _number_pattern(point: str, form: str) -> str:
    blanks = f"[{_class(SURROUNDING, form)}]*"
    return f"^{blanks}([+-]?)([0-9]*)(?:[{point}]([0-9]*))?(?:[eE]([+-]?[0-9]{{1,3}}))?{blanks}$"


@cache
def _number(point: str) -> re.Pattern[str]:
    return re.compile(_number_pattern(point, _IN_PYTHON).removesuffix("$") + r"\Z")


def as_number(text: str, point: str = ".") -> str:
    """The text by `number`; `point`: the sign before decimals."""
    match = _number(point).match(text)
    if match is None or not (match[2] or match[3]):
        return text
    whole, part, power = match[2], match[3] or "", int(match[4] or 0)
    digits = (whole + part).lstrip("0")
    kept = digits.rstrip("0")
    places = power - len(part) + len(digits) - len(kept)  # that the point lies behind the last of `kept`
    if not kept:
        return "0"
    if places < 0:
        kept = kept.rjust(1 - places, "0")
        kept = f"{kept[:places]}.{kept[places:]}"
    return ("-" if match[1] == "-" else "") + kept + "0" * max(places, 0)


def form_steps(form: str, column: str, point: str = ".") -> list[str]:
    """SQL of a form, as expressions that take the place of a column of text one after the other; null where no name is
    left. One statement would repeat the first inside the last.

    Args:
        column: as in SQL; of a bounded length.
        point: the sign before decimals.
    """
    match form:
        case "trim":
            return [f"nullif(trim({column}, {_TRIM_BLANKS}), '')"]
        case "lower":
            return [f"lower({column})"]
        case "nfc":
            return [f"CASE WHEN contains({column}, chr(0)) THEN NULL ELSE nfc_normalize({column}) END"]
        case "trim_all":
            ends = f"[{_class(SURROUNDING, _IN_SQL)}]"
            return [f"nullif(regexp_replace({column}, {literal(f'^{ends}+|{ends}+$')}, '', 'g'), '')"]
        case "fold":
            return _fold_steps(column)
        case "number":
            return [_number_sql(column, point)]
    raise ValueError(f"no form {form}")


def _fold_steps(column: str) -> list[str]:
    lower, others, unknown = _table()
    other = dict(others)
    ascii_only = f"strlen({column}) = length({column})"
    has_unknown = f"regexp_matches({column}, {literal(f'[{_class(unknown, _IN_SQL)}]')})"
    letters = {ord(key): value for key, value in lower.items()}
    capitals = "".join(map(chr, [*range(ord("A"), ord("Z") + 1), *letters]))
    small = "".join([*map(chr, range(ord("a"), ord("z") + 1)), *letters.values()])
    steps = [
        f"CASE WHEN {ascii_only} THEN lower({column}) "
        f"WHEN {has_unknown} THEN translate({column}, {literal(capitals)}, {literal(small)}) "
        f"ELSE lower(nfc_normalize({column})) END"
    ]
    frequent = {letter: other.pop(letter) for letter in _FREQUENT}
    for rules in (frequent, {**other, _DOTTED_I: "i"}):  # a rare letter costs as much as a hundred of them
        rewritten, signs = column, "".join(letter[-1] for letter in rules)
        for letter, text in rules.items():
            rewritten = f"replace({rewritten}, {literal(letter)}, {literal(text)})"
        matches = f"regexp_matches({column}, {literal(f'[{signs}]')})"
        steps.append(f"CASE WHEN {ascii_only} OR NOT {matches} THEN {column} ELSE {rewritten} END")
    return [*steps, f"CASE WHEN {ascii_only} OR {has_unknown} THEN {column} ELSE nfc_normalize({column}) END"]


def _number_sql(column: str, point: str) -> str:
    pattern = literal(_number_pattern(point, _IN_SQL))
    groups = "['sign', 'whole', 'part', 'power']"
    # Each lambda names values that the next one uses more than once.
    found = f"list_transform([regexp_extract({column}, {pattern}, {groups})], lambda found: {{ \
'sign': found.sign, 'digits': ltrim(found.whole || found.part, '0'), \
'places': coalesce(TRY_CAST(found.power AS INTEGER), 0) - strlen(found.part)}})"
    kept = f"list_transform({found}, lambda given: {{'sign': CASE WHEN given.sign = '-' THEN '-' ELSE '' END, \
'kept': rtrim(given.digits, '0'), 'places': given.places + strlen(given.digits) - strlen(rtrim(given.digits, '0'))}})"
    padded = "repeat('0', greatest(1 - given.places - strlen(given.kept), 0)) || given.kept"
    text = f"list_transform({kept}, lambda given: CASE WHEN given.kept = '' THEN '0' \
WHEN given.places >= 0 THEN given.sign || given.kept || repeat('0', given.places) \
ELSE given.sign || left({padded}, given.places) || '.' || right({padded}, -given.places) END)[1]"
    plain = f"regexp_full_match({column}, '-?[1-9][0-9]*|0')"
    begins = literal(f"^[{_class(SURROUNDING, _IN_SQL)}]*[+-]?[{point}]?[0-9]")
    is_number = f"regexp_matches({column}, {begins}) AND regexp_matches({column}, {pattern})"
    return f"CASE WHEN {plain} OR NOT ({is_number}) THEN {column} ELSE {text} END"
