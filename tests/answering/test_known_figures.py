"""Public figures of a family are told as known wherever they are asked for, and no other number contradicts them."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families_by_hand import publish_family
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.base.domain import Domain, Figures, finest, texts_at
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.estimate import answer_box
from dphist_pipeline.estimates.known_figures import KnownFigures, known_figures, limited, limited_interval
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

pytestmark = pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/")
AGE: dict[str, Any] = {"column": "age", "edges": [0, 18, 65], "below": True}
SEX: dict[str, Any] = {"column": "sex", "values": ["f", "m"]}
STATES = ["b", "a", "b", "c", "a"]
COUNTY: dict[str, Any] = {
    "column": "county",
    "values": [f"c{number}" for number in range(len(STATES))],
    "other": True,
    "levels": {"state": STATES, "region": ["N" if state in "ab" else "S" for state in STATES]},
}
AXES = [AGE, SEX, COUNTY]
TABLES = [["county", "sex"], ["state", "age"], ["region"], ["age", "sex"]]
FIGURES = {"b": 801, "a": 655, "c": 350, "other": 303}
MET = {"level": "state", "counts": "persons", "figures": FIGURES}
WEEKS = ("2026-03-02", "2026-03-09")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("known")


@cache
def published(folder: Path) -> dict[str, dict[str, Release]]:
    """A family in two periods, each with figures of its own, by the first day."""
    public = folder / "public"
    public.mkdir()
    (folder / "scratch").mkdir()
    made = {}
    for number, week in enumerate(WEEKS):
        met = {**MET, "figures": {value: figure + 7 * number for value, figure in FIGURES.items()}}
        made[week] = publish_family(public, AXES, TABLES, period=week, seed=number, invariants=met)
    build_catalogue(public, folder / "scratch")
    return made


def table_of(folder: Path, name: str, week: str = WEEKS[0]) -> Publication:
    return Publication.read(published(folder)[week][name].path)


def test_a_known_count_is_told_without_noise_and_others_within_what_it_leaves(folder: Path) -> None:
    table = table_of(folder, "county_sex")
    known = table.answer({"state": "a"})
    assert (known.estimate, known.unbiased, known.ci_lower, known.ci_upper) == (655.0,) * 4
    assert (known.basis, known.noise_error, known.note, known.reliability) == ("known", 0.0, notes.KNOWN, "good")
    assert table.answer({}).estimate == sum(FIGURES.values()) and table.answer({}).basis == "known"
    part = table.answer({"state": "a", "sex": "f"})
    assert part.basis == "linear" and part.ci_upper <= 655 and part.ci_lower <= part.estimate <= part.ci_upper
