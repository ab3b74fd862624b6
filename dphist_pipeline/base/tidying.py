"""Tidies text before it is compared with categories, by steps whose results are the same in Python and in DuckDB.

Each step is a function of one text alone and fails on none.

- trim: without blanks at either end: spaces, tabs, ends of lines and non-breaking spaces.
- lower: each letter in lower case by itself, without rules that look at its neighbours.
- nfc: letters and their accents put together, the normal form C of Unicode. (DuckDB drops a lone sign U+11A7 after a
  Korean syllable, which Python keeps: such a text is counted as if it lacked the sign.)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, get_args

Step = Literal["trim", "lower", "nfc"]

STEPS: tuple[Step, ...] = get_args(Step)
BLANKS = " \t\n\v\f\r\u00a0"
DOTTED_I = "\u0130"  # Python makes two signs of it, and DuckDB an i


def tidy(text: str, steps: Iterable[str]) -> str:
    """A text after the declared steps, in their order."""
    for step in steps:
        text = _TIDYING[step](text)
    return text


def tidied_sql(text: str, steps: Sequence[str]) -> str:
    """SQL of a text of bounded length after the steps, as `tidy` in Python; null stays null, no text raises."""
    forms = {"trim": f"trim({{}}, '{BLANKS}')", "lower": "lower({})", "nfc": "nfc_normalize({})"}
    for step in steps:
        text = forms[step].format(text)
    return text


def _lower(text: str) -> str:
    return "".join("i" if sign == DOTTED_I else sign.lower() for sign in text)


_TIDYING: Mapping[str, Callable[[str], str]] = {
    "trim": lambda text: text.strip(BLANKS),
    "lower": _lower,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
}
