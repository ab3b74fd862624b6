"""What readers call an axis: its label stands on pages and in pictures, its name in files, questions and digests."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from carded import Read
from office import AGE, Office

pytestmark = pytest.mark.stand_in("pictures", why="the numbers beside a picture have its words")
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}


@pytest.fixture
def labelled(office: Office) -> Office:
    """An office that published wards, of which one axis has a label."""
    return office.with_release(
        axes=[AGE, {**WARD, "label": "kind of ward"}], quality={"share": "1/20", "rows": 10, "by": ["ward"]}
    )


@pytest.mark.slow
def test_pages_and_the_picker_tell_the_label_and_files_the_name(labelled: Office) -> None:
    published, release = labelled.published(), labelled.store / "public" / "wards"
    card = Read((published / "card.html").read_text(encoding="utf-8")).text
    assert "by age and kind of ward" in card and "all of kind of ward, one cell" in card
    assert "kind of ward ( ward )" in card and "Counts by kind of ward" in card
    told = json.loads((release / "picker/release.js").read_text().partition("\n")[2].removesuffix(");\n"))
    assert [(axis["name"], axis["called"]) for axis in told["tables"][0]["axes"]] == [
        ("age", "age"),
        ("ward", "kind of ward"),
    ]
    assert "ward" in pq.read_table(published / "histogram.parquet").column_names
    assert "'ward': " in card  # a question in SQL


@pytest.mark.slow
def test_another_label_is_no_other_release(labelled: Office) -> None:
    digest = json.loads((labelled.published() / "audit.json").read_bytes())["spec_digest"]
    quality = {"share": "1/20", "rows": 10, "by": ["ward"]}
    for axis in (WARD, {**WARD, "label": "another"}):
        labelled.write_spec(axes=[AGE, axis], quality=quality)
        assert "Already published" in labelled.released().out
    labelled.released("--revise", "--reason", "words")
    audit = json.loads((labelled.published(revision=2) / "audit.json").read_bytes())
    assert audit["spec_digest"] == digest and audit["axis_labels"] == {"ward": "another"}
    assert all("label" not in axis for axis in audit["axes"])


@pytest.mark.parametrize("label", ["age", "years"])
def test_two_axes_are_not_called_alike(office: Office, label: str) -> None:
    office.write_spec(axes=[{**AGE, "label": "years"}, {**WARD, "label": label}])
    ran = office.run("check", "spec.yaml")
    assert ran.code == 1 and "is what another axis is called" in ran.err + ran.out
