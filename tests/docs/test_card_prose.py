"""Mechanisms' cards on pages: no word is lost, and Markdown finds nothing that a card did not mean."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest
from docs.pages import PROJECT

from dphist_pipeline import mechanisms


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("card_prose", PROJECT / "docs/card_prose.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(text: str) -> list[str]:
    """The words of a card or of its prose, without marks of Markdown."""
    plain = re.sub(r"\\([\\*_<\[\]#|])", r"\1", re.sub(r"\*\*([A-Z][a-z]+):\*\*", r"\1:", text))
    return plain.replace("```text", "").replace("```", "").split()


@pytest.mark.parametrize("name", mechanisms.names())
def test_a_card_in_prose_has_every_word_and_five_paragraphs(prose: ModuleType, name: str) -> None:
    card = mechanisms.reference(name)
    told = prose.in_prose(card)
    assert words_of(told) == words_of(card) and "```" not in told
    labels = re.findall(r"^\*\*(\w+):\*\* ", told, re.MULTILINE)
    assert {"Paper", "Privacy", "Domain", "Cost", "Bars"} <= set(labels)


def test_what_markdown_would_take_for_its_own_is_escaped(prose: ModuleType) -> None:
    told = prose.in_prose("```text\nA_b: x * y <b> [c]\n\nPaper:    one `a_b*`\n          two\nlast\n```\n\n| table |")
    assert told == "A\\_b: x \\* y \\<b> \\[c\\]\n\n**Paper:** one `a_b*` two last\n\n| table |"
