"""Writes `dphist_pipeline/base/folded_letters.txt`: how `fold` rewrites letters. It was run once: the table never
changes.

Run by the Python whose Unicode is `VERSION`: `python tests/unit/make_folded_letters.py`. Another table is another step.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

VERSION = "14.0.0"
FILE = Path(__file__).parents[2] / "dphist_pipeline" / "base" / "folded_letters.txt"
ALIKE = dict.fromkeys("\u0130\u0131", "i")  # with I and i they are one letter
HEADER = f"""\
# How the step `fold` of `unit_normalise` rewrites letters beyond ASCII: full case folding of Unicode {VERSION}, but
# that capital and small I are one letter with and without a dot, and Cherokee becomes small. It never changes.
# lower X Y: X becomes Y, as by DuckDB's own `lower`. else X Y: X becomes Y after that. unknown X Y: from X to Y no
# sign is known.
"""


def written() -> str:
    """The table, by the Unicode of the Python that runs."""
    lines, unknown = [], []
    for number in range(0x80, 0x110000):
        sign = chr(number)
        lower = sign.lower() if len(sign.lower()) == 1 else sign
        folded = ALIKE.get(sign, sign.casefold())
        if len(folded) == 1 and folded.lower() != folded:  # Cherokee
            folded = folded.lower()
        if folded != sign:
            lines.append(f"{'lower' if folded == lower else 'else'} {_hex(sign)} {_hex(folded)}")
        if unicodedata.category(sign) == "Cn":
            if unknown and unknown[-1][1] == number - 1:
                unknown[-1] = (unknown[-1][0], number)
            else:
                unknown.append((number, number))
    lines += [f"unknown {first:04X} {last:04X}" for first, last in unknown]
    return HEADER + "\n".join(lines) + "\n"


def _hex(text: str) -> str:
    return "+".join(f"{ord(sign):04X}" for sign in text)


if __name__ == "__main__":
    assert unicodedata.unidata_version == VERSION
    FILE.write_text(written(), encoding="ascii")
