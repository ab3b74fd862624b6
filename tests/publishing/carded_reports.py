"""Releases of the local model for tests: reports that say on the dot what so many values make them say on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from carded import Read

from dphist_pipeline.answering import building
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.randomized_response import odds
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import CountedReports, estimate_of, publish_collection
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.publishing._card import release_card
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.collection import CollectionSpec

ATTRIBUTES: dict[str, Any] = {
    **{"collection": "ages", "value": "age", "start": 0, "stop": 100, "protocol": "chp", "encoding": "symmetric"},
    "consumers": [
        {"name": "city", "epsilon": 1, "width": 5},
        {"name": "schools", "epsilon": 2, "edges": [0, 7, 18, 100]},
    ],
}
ALONE: dict[str, Any] = {"protocol": "shp", "consumers": ATTRIBUTES["consumers"][:1]}
SAMPLED: dict[str, Any] = {"protocol": "sampled", "participation": "0.8"}
REFUSED = {"unreadable": 0, "other question": 17, "wrong length": 0, "malformed": 23, "duplicate": 31}
REPORTS = 20_000


@dataclass(frozen=True, eq=False)
class Made:
    """A release of the local model, published, and what its card is made of."""

    folder: Path
    estimate: Estimate
    audit: dict[str, Any]

    def card(self, **changes: Any) -> str:
        """Its card, with some facts changed."""
        return release_card(self.estimate, {**self.audit, **changes})

    def text(self, **changes: Any) -> str:
        """The words of its card."""
        return Read(self.card(**changes)).text


def made(store: Path, refused: Mapping[str, int] = REFUSED, consumer: int = 0, **changes: Any) -> Made:
    """Publishes a collection, of which no catalogue is made, and gives back the release of a consumer.

    Args:
        store: to be made, unless it is there.
        refused: how many reports were, by reason.
        consumer: its number.
        changes: to `ATTRIBUTES`.
    """
    spec = CollectionSpec.from_attributes({**ATTRIBUTES, **changes}, store.parent)
    opened = Store.open(store) if store.exists() else Store.create(store)
    counted = CountedReports(_tally(spec), dict(refused))
    with patch.object(building, "build_apart"):
        folder = publish_collection(spec, opened, counted)[consumer].path
    return Made(folder, estimate_of(spec, counted, consumer), read_audit(folder))


def _tally(spec: CollectionSpec) -> Tally:
    question = question_of(spec)
    tally = Tally(question, REPORTS)
    for number, part in enumerate(question.parts):
        # Values lie below 60, as thick everywhere; the rest is empty, and some reports say a little less than nothing.
        lengths = np.array(
            [float(min(high, Fraction(60)) - min(low, Fraction(60))) for low, high in pairwise(part.edges)]
        )
        values = tally.vectors * lengths / 60 - 40.0 * (np.arange(part.intervals) % 3)
        chances = odds(part.encoding, part.intervals, part.epsilon)
        tally.ones[number] = np.round(values * chances.gap + tally.vectors * chances.elsewhere).astype(np.int64)
    return tally
