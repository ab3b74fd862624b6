"""Lays tables out for a terminal: no number and no name breaks; columns without room beside the others stand below.

Only words of sentences go on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = "  "  # between two columns
_SIGNS = ("%", "±", "~", "!")


@dataclass(frozen=True)
class _Column:
    """A column with its head first, each text as its pieces that must not break, line by line."""

    texts: tuple[tuple[tuple[str, ...], ...], ...]

    @property
    def natural(self) -> int:
        """The width without any break."""
        return max(cell_len(" ".join(line)) for text in self.texts for line in text)

    @property
    def least(self) -> int:
        """The width of the longest piece."""
        return max((cell_len(piece) for text in self.texts for line in text for piece in line), default=0)


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, keys: int = 1
) -> list[tuple[list[str], list[str]]]:
    """The lines of a table, in parts that stand below each other.

    Args:
        header: name of each column.
        rows: text of each cell.
        width: of the terminal, in letters.
        keys: so many columns, the first ones, name a row, and stand in every part.

    Returns:
        For each part the lines of its heads, and the lines of its rows, without blanks at their ends. If the terminal
        has no room for the name of a row and a number beside it, one part without heads.
    """
    columns = [_column([head, *(row[place] for row in rows)]) for place, head in enumerate(header)]
    name = sum(column.least + len(GAP) for column in columns[:keys])
    if name + max((column.least for column in columns[keys:]), default=0) > width:
        return [([], _one_by_one(header, rows, keys, width))]
    return [_drawn([columns[place] for place in part], width) for part in _parts(columns, width, keys)]


def _one_by_one(header: Sequence[str], rows: Sequence[Sequence[str]], keys: int, width: int) -> list[str]:
    """A line for the name of each row, and below it one for each number: for the narrowest terminals."""
    heads = max(map(cell_len, header[keys:]), default=0)
    lines = []
    for row in rows:
        lines.append(" ".join(filter(None, (text.strip() for text in row[:keys]))))
        for head, text in zip(header[keys:], row[keys:], strict=True):
            start = f"{GAP}{head.strip():<{heads}}{GAP}"
            for part in _wrapped([_pieces(text.strip())], width - len(start)):
                lines.append(f"{start}{part}".rstrip())
                start = " " * len(start)
    return lines


def _column(texts: Sequence[str]) -> _Column:
    return _Column(tuple(tuple(_pieces(line) for line in text.split("\n")) for text in texts))


def _pieces(line: str) -> tuple[str, ...]:
    """A line in pieces; "± 2,996", "0 to under 20", "4.1 %" and "367 (348 to 386) ~" are one each.

    Blanks at its beginning, which align numbers, stay with the first piece.
    """
    words = line.split()
    found: list[str] = words[:1]
    for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False):
        goes_on = (word == "to" and (after == "under" or _has_digit(after))) or re.match(r"\([0-9−-]", word)
        of_number = _has_digit(before) and (word.startswith(_SIGNS) or goes_on)
        if of_number or (before, word) == ("to", "under") or (before in ("±", "to", "under") and _has_digit(word)):
            found[-1] = f"{found[-1]} {word}"
        else:
            found.append(word)
    start = line[: len(line) - len(line.lstrip())]
    return (start + found[0], *found[1:]) if found else ("",)


def _has_digit(word: str) -> bool:
    return any(sign.isdigit() for sign in word)


def _parts(columns: Sequence[_Column], width: int, keys: int) -> list[list[int]]:
    """The columns of each part, by their places; every part has one that is no key, if there is one."""
    named = list(range(min(keys, len(columns))))
    taken = sum(columns[place].least + len(GAP) for place in named)
    parts, left = [list(named)], width - taken + len(GAP)
    for place in range(len(named), len(columns)):
        needed = columns[place].least + len(GAP)
        if needed > left and len(parts[-1]) > len(named):
            parts.append(list(named))
            left = width - taken + len(GAP)
        parts[-1].append(place)
        left -= needed
    return parts


def _drawn(columns: Sequence[_Column], width: int) -> tuple[list[str], list[str]]:
    widths = _widths(columns, width - len(GAP) * (len(columns) - 1))
    heads: list[str] = []
    below: list[str] = []
    for place, row in enumerate(zip(*(column.texts for column in columns), strict=True)):
        lines = below if place else heads
        cells = [list(_wrapped(text, most)) for text, most in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            padded = [part + " " * (most - cell_len(part)) for part, most in zip(parts, widths, strict=True)]
            lines.append(GAP.join(padded).rstrip())
    return heads, below


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The least width of each column, and of what is left as much as it can use, an equal part for each."""
    widths = [column.least for column in columns]
    left = max(0, room - sum(widths))
    wishes = sorted(range(len(columns)), key=lambda place: columns[place].natural - widths[place])
    for number, place in enumerate(wishes):
        more = min(columns[place].natural - widths[place], left // (len(wishes) - number))
        widths[place] += more
        left -= more
    return widths


def _wrapped(text: Sequence[Sequence[str]], most: int) -> Iterator[str]:
    for pieces in text:
        line = pieces[0]
        for piece in pieces[1:]:
            if cell_len(line) + 1 + cell_len(piece) > most:
                yield line
                line = piece
            else:
                line = f"{line} {piece}"
        yield line
