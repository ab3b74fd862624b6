"""`--decimals` of every command that prints numbers with noise, or errors of noise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from office import Office
from system.test_families import FAMILY

pytestmark = pytest.mark.stand_in("catalogue", why="commands read the published files")
ASKED = {
    "answer": ["answer", "wards", "--by", "ward"],
    "quality": ["quality", "wards"],
    "plot": ["plot", "wards", "--output", "picture.html", "--overwrite"],
    "export": ["export", "wards", "--to", "csv", "--output", "picture.html", "--overwrite"],
    "forecast": ["forecast", "spec.yaml", "--mechanism", "geometric", "--epsilon", "1/2"],
    "forecast of a family": ["forecast", "family.yaml", "--epsilon", "1/2"],
    "compare": ["compare", "wards", "--epsilon", "1", "--mechanism", "geometric", "--repeat", "1"],
}
THREE = re.compile(r"\d\.\d{3}\b")


@pytest.fixture
def office(office: Office) -> Office:
    return office.prepared(with_quality)


def with_quality(office: Office) -> None:
    office.write_spec(**FAMILY)
    (office.folder / "spec.yaml").rename("family.yaml")
    office.write_spec(quality={"share": "1/2", "rows": 3}, epsilon=9)
    rows = 3_000
    held = {"patient": [f"p{row // 3}" for row in range(rows)], "age": [30.0] * rows, "ward": ["surgery"] * rows}
    office.write_records(held)
    office.released()


@pytest.mark.slow
@pytest.mark.parametrize("words", ASKED.values(), ids=ASKED)
def test_a_command_shows_as_many_decimals_as_it_is_asked_for(office: Office, words: list[str]) -> None:
    shown = []
    for more in ([], ["--decimals", "3"]):
        ran = office.run(*words, *more)
        assert ran.code == 0, ran.err
        file = Path(words[words.index("--output") + 1]) if "--output" in words else None
        shown.append(file.read_text(encoding="utf-8") if file else ran.out)
    plain, asked = ([*THREE.findall(text)] for text in shown)
    assert len(asked) > len(plain) + 2, shown
