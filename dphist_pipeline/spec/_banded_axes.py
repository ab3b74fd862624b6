"""Axes of numbers whose source holds text for each bin, such as `[70-80)`: the spec says where each band begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from dphist_pipeline.base.domain import Axis, BandedAxis
from dphist_pipeline.base.tidying import STEPS, Step, tidy
from dphist_pipeline.errors import first_of
from dphist_pipeline.spec._binned_axes import MOST_CELLS, NamedAxis
from dphist_pipeline.spec.fields import Category, Edge, Flag, digits, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo

BANDS = "bands"
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_MINUS = ("-", "\u2212")
# What stands between two ends: a sign or a word, as in `20 bis unter 40`, and the minus of the second.
_TO = re.compile(
    r"\s*(?:[-,;\u2010-\u2015\u2212]|\.{2,3}|\u2026|to|bis|à|a|tot)\s*(?:under|unter|less than|<)?\s*[-\u2212]?",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_THOUSANDS = re.compile(r"(?<=\d)[.,' \u00a0\u202f\u2019](?=\d{3}(?!\d))")
MOST_ODD = 3


class BandedAxisSpec(NamedAxis):
    """Bands that the source holds as text. Each ends where the next begins, the last at `stop`, or nowhere."""

    said_by: ClassVar[tuple[str, ...]] = (BANDS,)

    bands: dict[Category, Edge] = Field(
        description="each text of the source and the lower end of its band", examples=['{"0-17": 0, "18-64": 18}']
    )
    stop: Edge | None = Field(default=None, description="the upper end of the last band; open without it")
    whole: Flag = Field(default=False, description="values are whole numbers: bins are told as 0 to 17")
    tidy: Annotated[tuple[Step, ...], tuple_of(0, len(STEPS))] = Field(default=(), examples=["[trim, lower, nfc]"])

    @model_validator(mode="after")
    def _bands_are_apart(self) -> Self:
        mistakes = [*self._mistaken_ends(), *self._counted_twice()]
        mistakes = mistakes or list(self._other_ends())
        if mistakes:
            raise MistakesError(mistakes)
        return self

    @property
    def bins(self) -> int:
        """Number of bands with two ends."""
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.bins + (self.stop is None) + self.other

    @cached_property
    def axis(self) -> Axis:
        """The axis, its edges the lower ends, and for each text the cell that counts it."""
        cells = {end: cell for cell, end in enumerate(self._ends)}
        return BandedAxis(
            self.name,
            self.column,
            tuple(map(float, self._ends)),
            above=self.stop is None,
            other=self.other,
            whole=self.whole,
            bands={text: cells[end] for text, end in self.bands.items()},
            tidy=self.tidy,
        )

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, numbers as exact fractions; `stop`, `whole`, `tidy` only where used."""
        fields: dict[str, object] = {"column": self.column, "name": self.name, "other": self.other}
        fields[BANDS] = {text: str(end) for text, end in self.bands.items()}
        used = {"stop": None if self.stop is None else str(self.stop), "whole": self.whole, "tidy": list(self.tidy)}
        return fields | {name: value for name, value in used.items() if value}

    @property
    def remarks(self) -> list[str]:
        """A sentence on texts with two numbers that may not be the ends of their band; none where all fit."""
        uppers = dict(pairwise(self._ends))
        unclear = [
            text
            for text, lower in self.bands.items()
            if len(_NUMBER.findall(text)) == 2
            and not ((ends := _upper_ends(text, lower)) and lower in uppers and _fits(ends, uppers[lower]))
        ]
        if not unclear:
            return []
        return [
            f"Bands of axis '{self.name}': the numbers of {first_of([echo(text) for text in unclear], MOST_ODD)} are "
            "not the ends that `bands` and `stop` give. If they are ends, correct them: a table tells the "
            "declared ends."
        ]

    @property
    def _ends(self) -> list[Fraction]:
        """The ends of all bands, rising."""
        return sorted({*self.bands.values()} | ({self.stop} if self.stop is not None else set()))

    def _mistaken_ends(self) -> Iterator[tuple[Location, str]]:
        if not 2 <= len(self._ends) <= MOST_CELLS:
            yield (BANDS,), "needs at least two bands, or one and `stop`, such as {'0-17': 0, '18 or more': 18}"
        if self.stop is not None and self.bands and max(self.bands.values()) >= self.stop:
            yield ("stop",), f"{digits(self.stop)} must lie above the lower end of every band"
        for before, upper in pairwise(self._ends):
            if float(before) == float(upper):
                yield (BANDS,), f"{digits(upper)} is the same double as the end before it; use wider bands"
        for end in self._ends if self.whole else ():
            if end.denominator != 1:
                yield (BANDS,), f"{digits(end)} is not a whole number, as `whole: true` says; leave `whole` out"

    def _other_ends(self) -> Iterator[tuple[Location, str]]:
        """Texts such as `[20-40)` that say another upper end than their band has: a band between is missing."""
        uppers = dict(pairwise(self._ends))
        for number, (text, lower) in enumerate(self.bands.items()):
            upper, ends = uppers.get(lower), _upper_ends(text, lower)
            if upper is None or not ends or _fits(ends, upper):
                continue
            mend = (
                "Correct `stop`, or the text's lower end"
                if upper == self.stop
                else "Name every band between, also one that the source lacks"
            )
            yield (
                (BANDS, number),
                f"{echo(text)} says that it ends at {digits(ends[0][0])}, but its band goes from {digits(lower)} to "
                f"{digits(upper)}. {mend}",
            )

    def _counted_twice(self) -> Iterator[tuple[Location, str]]:
        if len(set(self.tidy)) < len(self.tidy):
            yield ("tidy",), "names a step twice; name each once"
        ends: dict[str, Fraction] = {}
        for number, (text, end) in enumerate(self.bands.items()):
            if ends.setdefault(tidy(text, self.tidy), end) != end:
                yield (BANDS, number), "is the same as an earlier one once both are tidied; keep one of them"


def _upper_ends(text: str, lower: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The upper end that a text such as `[20-40)` says beside its lower one, and the step of its last digit.

    Several where a comma may be of a decimal or between thousands; none where the text is no pair of rising numbers.
    """
    ends = []
    for read in dict.fromkeys((text, _DECIMAL_COMMA.sub(".", text), _THOUSANDS.sub("", text))):
        numbers = list(_NUMBER.finditer(read))
        if len(numbers) != 2 or not _TO.fullmatch(read[numbers[0].end() : numbers[1].start()]):
            continue
        first, second = (_signed_number(read, number) for number in numbers)
        if first == lower < second:
            ends.append((second, Fraction(1, 10 ** len(numbers[1][0].partition(".")[2]))))
    return ends


def _fits(ends: Iterable[tuple[Fraction, Fraction]], upper: Fraction) -> bool:
    """Whether a text says an upper end: as it is, or as the last value before it, such as 39 before 40."""
    return any(upper in (end, end + step) for end, step in ends)


def _signed_number(text: str, number: re.Match[str]) -> Fraction:
    """A number of a text; a dash before it is a minus unless a digit stands before the dash."""
    before = text[: number.start()]
    minus = before.endswith(_MINUS) and not before[:-1].rstrip()[-1:].isdigit()
    return -Fraction(number[0]) if minus else Fraction(number[0])
