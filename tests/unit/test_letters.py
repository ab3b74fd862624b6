"""Which letters a text of the ledger may hold is told by a fixed table, not by the Unicode of the Python that runs."""

from __future__ import annotations

import sys
import unicodedata

from dphist_pipeline.ledger.letters import BLANKS, DISGUISES, in_brackets, is_blank, is_disguised
from dphist_pipeline.ledger.limits import text_of

CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Formatting characters since Unicode 15.0, of which the table knows nothing.
LATER = {*range(0x13439, 0x13440)}


def test_the_table_is_that_of_unicode_14() -> None:
    told = {letter for letter in range(sys.maxunicode + 1) if unicodedata.category(chr(letter)) in CATEGORIES}
    table = {letter for letter in range(sys.maxunicode + 1) if is_disguised(chr(letter))}
    assert told - table == (set() if unicodedata.unidata_version == "14.0.0" else LATER) and table <= told
    assert table == {letter for first, last in DISGUISES for letter in range(first, last + 1)}


def test_a_blank_is_what_python_strips() -> None:
    letters = [chr(letter) for letter in range(sys.maxunicode + 1) if not is_disguised(chr(letter))]
    assert {letter for letter in letters if is_blank(letter)} == {letter for letter in letters if not letter.strip()}
    assert {ord(letter) for letter in letters if is_blank(letter)} == {
        letter for first, last in BLANKS for letter in range(first, last + 1)
    }


def test_a_letter_that_only_later_versions_call_formatting_is_taken_by_every_python() -> None:
    for letter in map(chr, LATER):
        assert text_of("name", f"a{letter}b") == f"a{letter}b"


def test_a_servers_text_holds_neither_zero_nor_surrogates() -> None:
    assert in_brackets(((0, 5), (0xD800, 0xDFFF), (0x1D173, 0x1D17A))) == r"\u0001-\u0005\U0001d173-\U0001d17a"
