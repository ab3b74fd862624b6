"""Reads a PX file as its specification says, and refuses everything that is not in it: tests need no other reader."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import product

TEXT = r'"[^"\n]*"'
_KEYWORD = re.compile(rf"([A-Z][A-Z0-9-]*)(?:\(({TEXT}(?:,{TEXT})*)\))?=", re.ASCII)
_VALUES = re.compile(rf"(?:YES|NO|[0-9]+|TLIST\([AHQMW]1\)(?:,{TEXT})+|{TEXT}(?:(?:,\n?|\n){TEXT})*);\n", re.ASCII)
_CELL = re.compile(r'-?[0-9]+(?:\.[0-9]+)?|"\.{1,6}"|"-"', re.ASCII)
MANDATORY = {
    *("AXIS-VERSION", "CHARSET", "CODEPAGE", "CONTENTS", "DECIMALS", "HEADING", "MATRIX", "STUB", "SUBJECT-AREA"),
    *("SUBJECT-CODE", "TITLE", "UNITS"),
}


@dataclass(frozen=True)
class Px:
    """What a file says.

    Attributes:
        keywords: by name and by what they are about; the texts within quotation marks, or the word without them.
        cells: by the values of the variables, those of the stub first; dots as text.
    """

    keywords: dict[tuple[str, ...], list[str]]
    cells: dict[tuple[str, ...], float | str]


def read(text: str) -> Px:
    """The content of a file; AssertionError if it is none."""
    keywords, place = dict[tuple[str, ...], list[str]](), 0
    while not text.startswith("DATA=\n", place):
        name = _KEYWORD.match(text, place)
        assert name, text[place : place + 80]
        values = _VALUES.match(text, name.end())
        assert values, text[name.end() : name.end() + 80]
        key = (name[1], *re.findall(r'"([^"]*)"', name[2] or ""))
        assert key not in keywords, key
        keywords[key] = re.findall(r'"([^"]*)"', values[0]) or [values[0].removesuffix(";\n")]
        assert all(len(one) <= 256 for one in keywords[key])
        place = values.end()
    assert {key[0] for key in keywords} >= MANDATORY
    names = [*keywords["STUB",], *keywords["HEADING",]]
    values_of = [keywords["VALUES", name] for name in names]
    for name, found in zip(names, values_of, strict=True):
        assert len(set(found)) == len(found) == len(keywords["CODES", name])
    data, end = text[place + len("DATA=\n") :].split(";")
    assert end == "\n" and "\n " not in data
    written = data.split()
    assert all(_CELL.fullmatch(cell) for cell in written)
    assert len(written) == math.prod(map(len, values_of))
    cells = [cell.strip('"') if cell.startswith('"') else float(cell) for cell in written]
    return Px(keywords, dict(zip(product(*values_of), cells, strict=True)))
