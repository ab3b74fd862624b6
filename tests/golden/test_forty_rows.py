"""Counts of forty rows by a fixed key stay: another engine, or another way to count, keeps the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist_pipeline.confidential import cube, row_tables
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

RECORDED = Path(__file__).with_name("forty_rows.json")
ROWS = 40
WIDE = 24  # axes of eight categories, which take two words of 64 bits
PEOPLE: dict[str, Callable[[int], int]] = {
    "few above": lambda row: 0 if row % 3 == 0 else row,
    "many above": lambda row: row % 7,
    "all above": lambda row: row % 4,
    "none above": lambda row: row,
    "one person": lambda row: 0,
}
AGE: dict[str, Any] = {"column": "age", "start": 0, "stop": 60, "width": 20, "above": True}
WARD: dict[str, Any] = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
KIND: dict[str, Any] = {"column": "kind", "values": ["new"]}  # drops every fifth row
WIDE_AXES = [{"column": f"wide_{number}", "values": [f"value {value}" for value in range(8)]} for number in range(WIDE)]
FIELDS: dict[str, Any] = {
    **{"release": "forty", "source": "rows.parquet", "privacy_unit": "person", "max_rows_per_unit": 3},
    **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric"},
    "axes": [AGE, WARD, KIND],
}
FAMILY: dict[str, Any] = {"mechanism": "tables", "tables": {"list": [["age", "ward"]], "all": 1}}
WIDE_FAMILY = {"mechanism": "tables", "tables": {"list": [["wide_0", "wide_23"], ["wide_1"]]}, "axes": WIDE_AXES}
QUALITY: dict[str, Any] = {"quality": {"share": "1/20", "rows": 6}}
SHAPES: dict[str, dict[str, Any]] = {
    "grid": {},
    "grid, whole numbers": {"privacy_unit": "number"},
    "grid, two columns": {"privacy_unit": ["person", "number"], "max_rows_per_unit": 1},
    "grid, rows": {"privacy_unit": "row", "max_rows_per_unit": ...},
    "quality": QUALITY,
    "quality, rows": {"quality": {"share": "1/20"}, "privacy_unit": "row", "max_rows_per_unit": ...},
    "one word": FAMILY,
    "one word, rows": {**FAMILY, "privacy_unit": "row", "max_rows_per_unit": ...},
    "one word, quality": {**FAMILY, **QUALITY},
    "two words": WIDE_FAMILY,
    "two words, quality": {**WIDE_FAMILY, **QUALITY},
}


def table(people: Callable[[int], int]) -> pa.Table:
    """Forty rows, some of which are equal."""
    number = np.array([people(row) for row in range(ROWS)])
    row = np.arange(ROWS)
    columns: dict[str, Any] = {
        "person": [f"person {one} é" for one in number],
        "number": number - 2,
        "age": row * 7 % 5 * 20,
        "ward": np.array(["surgery", "medicine", "elsewhere"])[row * 5 % 7 % 3],
        "kind": np.where(row % 5 == 4, "old", "new"),
    }
    wide = {f"wide_{axis}": [f"value {one * (axis + 3) % 5 % 8}" for one in row] for axis in range(WIDE)}
    return pa.table({**columns, **wide})


def counted(people: str, shape: str) -> Iterator[tuple[str, list[int]]]:
    """All that is counted of forty rows, by name; zeros at the end of long arrays and all."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table(PEOPLE[people]), folder / "rows.parquet")
        fields = {field: value for field, value in {**FIELDS, **SHAPES[shape]}.items() if value is not ...}
        spec = ReleaseSpec.from_attributes(fields, folder)
        plan = plan_of(spec, spec.period_named("all"))
        run = folder / "run"
        run.mkdir()
        with patch.object(cube, "secrets", SimpleNamespace(token_bytes=lambda size: bytes(range(size)))):
            yield "counts", cube.load_cube(cube.write_cube(plan, stage_rows(plan, run), run)).tolist()
        if plan.rows_seen is not None:
            for held, numbers in vars(row_tables.load(run)).items():
                yield held, np.ravel(numbers).tolist()


def all_counts() -> dict[str, dict[str, list[int]]]:
    return {f"{shape}: {people}": dict(counted(people, shape)) for shape in SHAPES for people in PEOPLE}


SLOW = [pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES if "words" in shape or "word, quality" in shape]
QUICK = [shape for shape in SHAPES if "words" not in shape and "word, quality" not in shape]


@pytest.mark.parametrize("shape", [*QUICK, *SLOW])
def test_counts_of_forty_rows_by_a_fixed_key_stay(shape: str) -> None:
    recorded = json.loads(RECORDED.read_text())
    for people in PEOPLE:
        assert dict(counted(people, shape)) == recorded[f"{shape}: {people}"], people


if __name__ == "__main__":  # `PYTHONPATH=tests python tests/golden/test_forty_rows.py`, where counts are meant to move
    lines = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in all_counts().items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
