"""Which letters a text of the ledger may not hold, and which say nothing: by a fixed table, the same for every Python.

From `unicodedata` at Unicode 14.0.0, that of Python 3.11. A later Unicode counts more letters as formatting; an entry
that one host took would be damage on another one with a newer Python. A server's rules are made from the same table.
"""

from __future__ import annotations

import re

Ranges = tuple[tuple[int, int], ...]

# fmt: off
# Control and formatting characters, surrogates, separators of lines and paragraphs: categories Cc, Cf, Cs, Zl, Zp.
DISGUISES: Ranges = (
    (0x0000, 0x001F), (0x007F, 0x009F), (0x00AD, 0x00AD), (0x0600, 0x0605), (0x061C, 0x061C), (0x06DD, 0x06DD),
    (0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E),
    (0x2060, 0x2064), (0x2066, 0x206F), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0x110BD, 0x110BD),
    (0x110CD, 0x110CD), (0x13430, 0x13438), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
)
# Blanks: category Zs.
BLANKS: Ranges = (
    (0x0020, 0x0020), (0x00A0, 0x00A0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),
)
# Letters that show nothing, and that no category tells: joiners, fillers, vowels without a form, selectors of variants.
INVISIBLE: Ranges = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0),
)
# fmt: on


def is_disguised(text: str) -> bool:
    """Whether a text holds a letter that could disguise a message."""
    quickly_told = text.isascii() and text.isprintable()
    return not quickly_told and _DISGUISED.search(text) is not None


def is_blank(text: str) -> bool:
    """Whether a text, without disguises, says nothing."""
    return _SAYING.search(text) is None


def without_invisible(text: str) -> str:
    """A text without letters that show nothing; its blanks stay."""
    return _INVISIBLE.sub("", text)


def in_brackets(ranges: Ranges) -> str:
    r"""The letters as a regular expression's brackets hold them, for Python and for a server: `\u0020-\u0020…`.

    A server's text holds neither U+0000 nor surrogates.
    """
    return "".join(
        f"{_escape_sequence(max(first, 1))}-{_escape_sequence(last)}"
        for first, last in ranges
        if not 0xD800 <= first <= 0xDFFF
    )


def _escape_sequence(letter: int) -> str:
    return f"\\u{letter:04x}" if letter < 0x10000 else f"\\U{letter:08x}"


_DISGUISED = re.compile(f"[\\x00\\ud800-\\udfff{in_brackets(DISGUISES)}]")
_INVISIBLE = re.compile(f"[{in_brackets(INVISIBLE)}]")
_SAYING = re.compile(f"[^{in_brackets(BLANKS)}]")
