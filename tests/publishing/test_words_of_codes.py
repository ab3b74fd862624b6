"""Codes that a spec lists with words: every page and table tells the words, and other words cost nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from carded import Read, made
from office import AGE, Office

from dphist_pipeline.publishing._card import quality_facts

pytestmark = [
    pytest.mark.stand_in("pictures", why="the numbers beside a picture have its words"),
    pytest.mark.draws_alike,
]
WORDS = {"surgery": "Operations", "medicine": "Internal medicine", "x": ""}
WARD: dict[str, Any] = {"column": "ward", "values": WORDS, "other": True}


@pytest.fixture
def coded(office: Office) -> Office:
    """An office that published wards by codes with words."""
    return office.with_release(axes=[AGE, WARD])


@pytest.mark.slow
def test_words_stand_on_the_card_in_the_terminal_and_in_files(coded: Office) -> None:
    card = Read((coded.published() / "card.html").read_text(encoding="utf-8")).text
    assert "surgery Operations" in card and "medicine Internal medicine" in card
    assert "medicine (Internal medicine)" in card
    pivot = coded.run("answer", "wards", "--by", "age", "--pivot", "ward").out
    assert "Operations" in pivot.partition("0 to under 25")[0]
    cells = pyarrow.csv.read_csv(coded.store / "public" / "wards" / "latest" / "cells.csv")
    assert set(cells["ward_label"].to_pylist()) == {"Operations", "Internal medicine", "x", "other"}
    assert coded.run("export", "wards", "--to", "sdmx-csv", "--output", "x.csv").code == 0
    assert "Internal medicine" in Path("x.xml").read_text(encoding="utf-8")
    answered = [coded.run("answer", "wards", "--where", f"ward = '{name}'") for name in ("surgery", "Operations")]
    assert answered[0] == answered[1] and answered[0].code == 0


@pytest.mark.slow
def test_other_words_are_no_other_release_and_stand_in_the_next_revision(coded: Office) -> None:
    spent = coded.run("ledger", "show", "health", "--json").json
    coded.write_spec(axes=[AGE, {**WARD, "values": {**WORDS, "x": "Unknown"}}])
    again = coded.released()
    assert "Already published" in again.out
    assert coded.run("ledger", "show", "health", "--json").json == spent
    coded.released("--revise", "--reason", "words")
    assert "Unknown" in pq.read_table(coded.published(revision=2) / "histogram.parquet")["ward_label"].to_pylist()


def test_what_the_bound_cut_is_told_with_words() -> None:
    table = made([AGE, {"column": "ward", "values": list(WORDS), "labels": list(WORDS.values()), "other": True}])
    row = {"statistic": "cut", "axis": None, "position": None, "category": None, "noise_scale": 1.0}
    rows = [
        {**row, "estimate": 900.0, "ci_lower": 890.0, "ci_upper": 910.0},
        {**row, "axis": "ward", "position": 0, "category": "surgery", "estimate": 800.0, "ci_lower": 0, "ci_upper": 0},
    ]
    facts = quality_facts([table], rows, {"max_rows_per_unit": 2, "privacy_unit": "patient"})
    assert facts is not None and facts["tables"][0]["rows"][0][0] == "surgery Operations"
