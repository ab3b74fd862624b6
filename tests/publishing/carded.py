"""Release cards for tests: made from a publication by hand, and read as a browser's parser reads them."""

from __future__ import annotations

from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import by_hand
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimate import Estimate
from dphist_pipeline.privacy.noisy import NoisyCells
from dphist_pipeline.publishing.card import release_card
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
