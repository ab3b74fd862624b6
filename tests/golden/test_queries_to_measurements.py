"""Journals of released tables stay readable: mechanisms ask the same questions, and get the same answers, as before.

For each mechanism, `measurement_queries.json` holds digests of all its queries (step, measurement, epsilon, scale,
partition) and of the whole numbers that were answered, with noise made from recorded words. A query that changes makes
the journal of an unfinished release unreadable: change the file only with a decision about such releases. `make
record` writes what is missing, such as the cases of a new mechanism, and changes nothing that is there.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from recorded_words import RecordedWords

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget

FILE = Path(__file__).with_name("measurement_queries.json")
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
LINES, CUBE = [(7,), (12,)], (3, 4)
SETTINGS = [
    *[(name, {}) for name in mechanisms.names()],
    ("dphr", {"order": "exponential"}),
    ("ihp", {"centre": "mean", "depth": 3}),
    ("kd_hierarchy", {"depth": 3}),
    ("p_hpartition", {"centre": "mean", "depth": 2}),
    ("p_hpartition", {"depth": 3}),
    ("structure_first", {"buckets": 4}),
    ("structure_first", {"buckets": 3, "score": "squared", "count_ceiling": 9}),
]


def shapes(name: str) -> list[tuple[int, ...]]:
    """Two lines where a mechanism serves lines alone; else a line and a grid."""
    if name == "privelet":
        return [*LINES, CUBE]
    try:
        mechanisms.build(name, {}).check(Domain.from_shape(CUBE), 2, Fraction(3))
    except mechanisms.DomainRefused:
        return LINES
    return [LINES[0], CUBE]


CASES = [(name, settings, shape) for name, settings in SETTINGS for shape in shapes(name)]


class Kept:
    """A journal that draws, and keeps every question and answer."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, dict[str, str]]] = []
        self.answers: list[list[int]] = []

    def answer(self, step, question, draw):
        self.questions.append((step, dict(question)))
        drawn = draw()
        self.answers.append(drawn.tolist())
        return drawn


def digests(name: str, settings: dict[str, object], shape: tuple[int, ...]) -> dict[str, str]:
    journal, cells = Kept(), int(np.prod(shape))
    exact = np.arange(cells, dtype=np.int64) ** 2 % 23 * 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "random_words", RecordedWords())
        counts = PrivateCounts(Domain.from_shape(shape), 2, lambda: exact, journal)
        mechanisms.build(name, settings).release(counts, Budget(Fraction(3)))
    kept = {"questions": journal.questions, "answers": journal.answers}
    return {key: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest() for key, value in kept.items()}


def key(name: str, settings: dict[str, object], shape: tuple[int, ...]) -> str:
    return f"{name} {json.dumps(settings)} {list(shape)}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mechanism_asks_and_is_answered_as_recorded(case) -> None:
    assert digests(*case) == RECORDED[key(*case)]


def test_every_recorded_case_is_checked() -> None:
    assert set(RECORDED) == {key(*case) for case in CASES}


def record() -> None:
    """Writes the cases that are not recorded yet."""
    missing = {key(*case): digests(*case) for case in CASES if key(*case) not in RECORDED}
    text = json.dumps({**RECORDED, **missing}, indent=1, sort_keys=True, ensure_ascii=False)
    FILE.write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(missing)} new: {', '.join(missing) or 'every case is recorded'}")


if __name__ == "__main__":
    record()
