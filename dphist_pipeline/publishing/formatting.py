"""Numbers and names as pages and pictures show them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dphist_pipeline.base.languages.texts import gettext, number_text

# How a cell begins that a spreadsheet takes for a formula; those of East Asia do so at full-width signs, too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Numbers, and bins in words (-5 to 0), begin alike and are no formulas; for the engines of Python and of Arrow.
_NUMBER, _WORD = r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?", "[A-Za-zÀ-ÿ]+"
NO_FORMULA = f"{_NUMBER}( {_WORD} ({_WORD}|{_NUMBER}))?"
MOST_DECIMALS = 15  # a double has no more
HIDDEN = {"Cc", "Cs", "Cn", "Zl", "Zp"}
TURNS_TEXT = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text for a formula."""
    return text.startswith(FORMULA) and re.fullmatch(NO_FORMULA, text) is None


def visible(text: str) -> str:
    """Text in which the replacement character stands for control characters and for marks that turn text round."""
    if text.isprintable():  # as nearly every text is: it holds none of them
        return text
    return "".join("\ufffd" if unicodedata.category(sign) in HIDDEN or sign in TURNS_TEXT else sign for sign in text)


def shortened_text(text: str, most: int) -> str:
    """Text of at most `most` letters, cut off with an ellipsis; Chinese, Japanese and Korean letters count twice."""
    widths = np.cumsum([2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text[: most + 1]])
    return (
        text if len(text) <= most and widths[-1:].sum() <= most else f"{text[: int((widths < most).sum())].rstrip()}…"
    )


def shortened_inside(text: str, most: int) -> str:
    """Text of at most `most` letters; its middle is cut out, because names often differ at their end."""
    if shortened_text(text, most) == text:
        return text
    end = shortened_text(text[::-1], most // 3 + 1)[:-1][::-1].lstrip()
    return shortened_text(text, most - most // 3) + end


def told_apart(texts: Sequence[str], most: int) -> list[str]:
    """The same texts; those above `most` letters without the words that all of these begin and end with."""
    long = [text.split() for text in texts if shortened_text(text, most) != text]
    first, last = _shared_words(long), _shared_words([words[::-1] for words in long])
    shortened_texts = []
    for text in texts:
        words = text.split()
        if shortened_text(text, most) == text or first + last >= min(map(len, long)):
            shortened_texts.append(text)
        else:
            inner = " ".join(words[first : len(words) - last])
            shortened_texts.append(f"{'…' * (first > 0)}{inner}{'…' * (last > 0)}")
    return shortened_texts


def _shared_words(texts: Sequence[Sequence[str]]) -> int:
    """The number of words that all texts begin with; 0 for less than two texts."""
    if len(texts) < 2:
        return 0
    places = zip(*texts, strict=False)
    return next((number for number, words in enumerate(places) if len(set(words)) > 1), min(map(len, texts)))


def decimals_of(error: float) -> int:
    """The number of decimals that a number deserves: none is finer than the first digit of its standard deviation.

    A number without noise, or of unknown noise, gets none.
    """
    if not 0 < error < 1:
        return 0
    return min(MOST_DECIMALS, -math.floor(math.log10(error)))


def in_decimals(value: float, decimals: int) -> str:
    """A number with commas and some decimals; 0 never has a sign."""
    text = f"{value:,.{decimals}f}"
    return number_text(text if text.strip("-0.") else text.removeprefix("-"))


def shown_number(value: float, decimals: int | None = None) -> str:
    """A finite number for a page, with a typographic minus.

    Without decimals, as for a width, it is whole, or has one digit after the point if it is small and not whole.
    """
    if abs(value) >= 1e15:
        return number_text(f"{value:.6g}")
    if decimals is None:
        decimals = 0 if abs(value) >= 100 or value == int(value) or abs(value) < 0.05 else 1
    return in_decimals(value, decimals).replace("-", "−")


def signed_number(value: float) -> str:
    """A whole number for a page, with its sign."""
    text = shown_number(value, 0)
    return f"+{text}" if value > 0 and text != "0" else text


def comma_list(names: Sequence[str]) -> str:
    """At least one name; commas and an `and` stand between several."""
    return f"{', '.join(names[:-1])}{gettext(' and ') if names[1:] else ''}{names[-1]}"


def epsilon_text(value: Fraction) -> str:
    """An epsilon, or a scale of noise: all decimals if they are at most 6, else a fraction with the first ones."""
    places = next((places for places in range(7) if (value * 10**places).denominator == 1), None)
    if places is not None:
        return number_text(f"{float(value):.{places}f}")
    if value.denominator >= 10**6:
        return gettext("about %(number)s", number=number_text(f"{float(value):.6g}"))
    about = gettext("about %(number)s", number=number_text(f"{float(value):.4g}"))
    return f"{value.numerator}/{value.denominator} ({about})"


def likelihood_ratio(epsilon: Fraction) -> str:
    """e^epsilon, rounded up; a power of ten if it is large."""
    power = float(epsilon)
    if power > 13:
        return f"10{str(math.ceil(power / math.log(10))).translate(SUPERSCRIPT)}"
    digits = 2 if math.exp(power) < 10 else 0
    return number_text(f"{math.ceil(math.exp(power) * 10**digits - 1e-9) / 10**digits:,.{digits}f}")


def posterior_odds(epsilon: Fraction) -> tuple[str, str]:
    """The least and the greatest probability that somebody who gave even odds may believe afterwards."""
    most = 1 / (1 + math.exp(-float(epsilon)))
    if most > 0.9999:
        return gettext("below 0.01 %%"), gettext("above 99.99 %%")
    digits = 0 if most < 0.98 else 2
    high = math.ceil(most * 100 * 10**digits - 1e-9) / 10**digits
    return number_text(f"{100 - high:.{digits}f} %"), number_text(f"{high:.{digits}f} %")


def percent(chance: float) -> str:
    """A probability in percent, with enough digits to tell it from 0 and from 1."""
    per_cent = 100 * chance
    if per_cent > 99.99:
        return gettext("above 99.99 %%")
    text = f"{per_cent:.2g}" if per_cent < 0.01 else f"{per_cent:.{2 if min(per_cent, 100 - per_cent) < 10 else 1}f}"
    return f"{number_text(text)} %"


def rough_number(amount: float) -> str:
    """A large finite amount that is known only roughly, to three digits."""
    return number_text(f"{float(f'{amount:.3g}'):,.0f}")
