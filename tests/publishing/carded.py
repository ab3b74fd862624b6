"""Release cards for tests: made from a publication by hand, and read as a browser's parser reads them."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import by_hand
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.publishing._card import release_card
from dphist_pipeline.spec.axes import domain_of

FACTS: dict[str, Any] = {
    **{"format": 1, "release": "wards", "period": "2026-03-02", "revision": 1, "reason": "", "account": "health"},
    **{"period_start": "2026-03-02T00:00:00+01:00", "period_end": "2026-03-09T00:00:00+01:00"},
    **{"privacy_unit": "patient", "max_rows_per_unit": 3, "neighbours": "add_remove", "sensitivity": 3},
    **{"mechanism": "geometric", "settings": {}, "spec_digest": "5" * 64, "values_digest": "7" * 64},
    **{"epsilon": "1/2", "epsilon_double": 0.5, "unbiased_noise_scale": "6", "noise": "discrete Laplace"},
    "charges": [{"step": "counts", "epsilon": "1/2", "noise_scale": "6"}],
    "ledger": {"number": 9, "hash": "ab" * 32, "charged_at": "2026-03-17T06:00:00Z"},
    "versions": {"python": "3.11.7", "dphist-pipeline": "0.1.0"},
}
HOSTILE = "<script>alert('1')</script> \"q\" & </style></title>\u202etfel ot thgir\u202c \x07 " + "x" * 160
SHOWN_HOSTILE = "<script>alert('1')</script> \"q\" & </style></title>\ufffdtfel ot thgir\ufffd \ufffd xx"
BESIDE = ("../../index.html", "../../period=", "histogram.parquet", "audit.json")  # files that a card leads to
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Read(HTMLParser):
    """A page: its elements in order with their attributes, its words, and whether every element was closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """All words, blanks between them single."""
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


def made(axes: list[dict[str, Any]], values: NDArray[np.float64] | None = None, off: float = 0.0) -> Estimate:
    """Noisy cells and estimates `off` beside them, at the price that `FACTS` names."""
    found = by_hand.estimate(axes, values, Fraction(6), off)
    return Estimate(found.domain, found.values, (("counts", Fraction(1, 2)),), found.unbiased)


def without_bars(axes: list[dict[str, Any]]) -> Estimate:
    """Estimates of a mechanism that paid for no noisy cells."""
    found = by_hand.estimate(axes, scale=None)
    return Estimate(found.domain, found.values, (("counts", Fraction(1, 2)),))


def card(axes: list[dict[str, Any]], estimate: Estimate | None = None, **changes: Any) -> str:
    """The card of a publication with some facts changed."""
    made_here = estimate or made(axes)
    return release_card(made_here, {**FACTS, "axes": axes, "cells": made_here.domain.cells, **changes})


def noisy(axes: list[dict[str, Any]], values: NDArray[np.float64], scale: Fraction) -> Estimate:
    """Noisy cells of another scale."""
    cells = NoisyCells(values, scale)
    return Estimate(domain_of(axes), values, (("counts", 3 / scale),), cells)


def assert_fetches_and_runs_nothing(page: str) -> None:
    """Every element is closed, none can load or run anything, and links lead to the page and to files beside it."""
    read = Read(page)
    assert read.open == []
    assert not {"script", "link", "iframe", "img", "object", "form"} & {name for name, _ in read.elements}
    for name, attributes in read.elements:
        assert not any(key.startswith("on") or key in ("src", "srcset", "action") for key in attributes)
        if name == "a":
            assert str(attributes["href"]).startswith(("#", *BESIDE))
    assert not re.search(r"url\(|@import|https?://", page.replace("http-equiv", ""))


def assert_can_be_read_without_eyes_and_mouse(page: str) -> None:
    """Headings follow each other, landmarks are there once, pictures have words, what scrolls can be reached."""
    read = Read(page)
    headings = [int(name[1]) for name, _ in read.elements if re.fullmatch("h[1-6]", name)]
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(read.named(landmark)) == 1
    identifiers = [str(attributes["id"]) for _, attributes in read.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for link in read.named("a"):
        assert str(link["href"])[1:] in identifiers or str(link["href"]).startswith(BESIDE)
    pictures = read.named("svg")
    assert pictures and all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)
    assert len(read.named("details")) == len(pictures)
    for scrolled in [one for one in read.named("div") if str(one.get("class")).startswith("scroll")]:
        assert scrolled["tabindex"] == "0" and scrolled["role"] == "region" and scrolled["aria-label"]
    assert len(read.named("caption")) == len(read.named("table"))
    assert read.named("html")[0]["lang"] == "en"
