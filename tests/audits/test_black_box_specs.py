"""Whole specs, from files to noisy counts: under every way to name a unit, epsilon is no less than what was declared.

An attacker chooses both neighbours: up to 50 rows of one unit in any cells, spellings and files. Their exact counts
come from the real reading of real files, for several keys of bounding; outputs from many runs of the mechanism on each.
"""

from __future__ import annotations

import csv
import hashlib
import random
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from black_box import lower_bound, outputs
from grey_box import Audited, Counts
from one_engine import one_engine

from dphist_pipeline import mechanisms
from dphist_pipeline.base import unit_forms
from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential.reading import _units as units
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import mostly_audited

# Pairs of neighbours and runs for a way to name a unit: in ten minutes of `make audit`, and in `make soak`.
LENGTHS = [pytest.param(5, 10_000, marks=pytest.mark.audit), pytest.param(20, 100_000, marks=pytest.mark.soak)]
EPSILON = Fraction(1)
KEYS = [hashlib.sha256(bytes([number])).digest() for number in range(5)]
FILES, MOST_ROWS = 3, 50
FAR = range(5, 8)  # seeds whose neighbours lie as far apart as can be
WARDS: list[str | None] = ["a", "b", "c", "unknown", None]
LONG_NAME, LONGEST_NAME = "n" * 100, "m" * 1_200_000
LONG_DIGEST = "sha256:" + hashlib.sha256(LONG_NAME.encode()).hexdigest()
TEXT_DIGEST = "sha256 of the text:" + hashlib.sha256(LONGEST_NAME.encode()).hexdigest()
Name = Any
Row = tuple[Name, str | None]


@dataclass(frozen=True)
class Way:
    """A way to name a unit.

    Attributes:
        one: spellings of the attacker's unit, which are one unit as decided.
        others: names of other units; a row each or several.
        spec: fields that say so.
        query: over the source, if any.
        write: a file of rows.
        columns: of the unit, with their types.
    """

    one: list[Name]
    others: list[Name]
    spec: dict[str, Any] = field(default_factory=dict)
    query: str = ""
    write: Callable[[Path, Way, list[Row]], None] = lambda folder, way, rows: parquet(folder, way, rows)
    columns: tuple[tuple[str, Any], ...] = (("patient", pa.string()),)


def parquet(file: Path, way: Way, rows: list[Row]) -> None:
    table = {"ward": pa.array([ward for _, ward in rows], pa.string()), "visit": pa.array(range(len(rows)), pa.int64())}
    for number, (column, kind) in enumerate(way.columns):
        names = [name[number] if isinstance(name, tuple) else name for name, _ in rows]
        if kind == pa.string():
            raw = [name.encode() if isinstance(name, str) else name for name in names]
            table[column] = pa.array(raw, pa.binary()).cast(pa.string(), safe=False)
        else:
            table[column] = pa.array(names, kind)
    pq.write_table(pa.table(table), file.with_suffix(".parquet"))


def uuids(file: Path, way: Way, rows: list[Row]) -> None:
    parquet(file.with_name("text"), way, rows)
    text, target = file.with_name("text.parquet"), file.with_suffix(".parquet")
    duckdb.execute(f"COPY (SELECT * REPLACE (CAST(patient AS UUID) AS patient) FROM '{text}') TO '{target}'")
    text.unlink()


def quoted_csv(file: Path, way: Way, rows: list[Row]) -> None:
    with file.with_suffix(".csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerows([("patient", "ward", "visit"), *((*row, number) for number, row in enumerate(rows))])


def folders(file: Path, way: Way, rows: list[Row]) -> None:
    """A folder for every unit."""
    for name in {name for name, _ in rows}:
        folder = file.parent / f"patient={quote(name, safe='')}"
        folder.mkdir(exist_ok=True)
        held = [(name, ward) for other, ward in rows if other == name]
        pq.write_table(
            pa.table({"ward": pa.array([ward for _, ward in held], pa.string())}), folder / f"{file.name}.parquet"
        )


FORMS: dict[str, tuple[list[str], list[Name]]] = {
    "trim": (["trim"], ["ann", " ann", "ann\t", "\n ann\u00a0"]),
    "lower": (["lower"], ["ann é", "ANN É", "Ann é"]),
    "nfc": (["nfc"], ["ann \u00e9", "ann e\u0301"]),
    "all forms": (["trim", "lower", "nfc"], ["ann \u00e9", " ANN E\u0301", "Ann \u00c9\r", "ann e\u0301"]),
}
TEXT = ["bob", "cid", "ANN ", "\u212b", "", " ", None, LONG_NAME]
WAYS: dict[str, Way] = {
    "text": Way(["ann"], TEXT),
    "whole numbers": Way([2**62], [1, 2, -(2**62), None], columns=(("patient", pa.int64()),)),
    "small whole numbers": Way([7], [1, 2, None], columns=(("patient", pa.int8()),)),
    "large whole numbers": Way([2**64 - 1], [1, 2**63, None], columns=(("patient", pa.uint64()),)),
    "floats": Way([0.0, -0.0], [1.5, 5e-324, float("inf"), float("nan"), None], columns=(("patient", pa.float64()),)),
    "UUIDs": Way([str(uuid.UUID(int=5))], [str(uuid.UUID(int=6)), None], write=uuids),
    "several columns": Way(
        [("a", "b:c")],
        [("a:b", "c"), ("", "ab:c"), (None, "b:c"), ("a", None), ("1:a", "b")],
        {"privacy_unit": ["patient", "site"]},
        columns=(("patient", pa.string()), ("site", pa.string())),
    ),
    "several kinds": Way(
        [(1, "1"), (1, "1 ")],
        [(11, ""), (1, "11"), (None, "1"), (-1, "1")],
        {"privacy_unit": ["patient", "site"], "unit_normalise": ["trim"]},
        columns=(("patient", pa.int32()), ("site", pa.string())),
    ),
    "rows": Way(["ann"], ["bob", None], {"privacy_unit": "row", "max_rows_per_unit": 1}),
    "a query of all columns": Way(["ann"], TEXT, query="SELECT * FROM source"),
    "a query of some columns": Way(
        ["ann"],
        TEXT,
        query="SELECT patient, lower(TRY_CAST(ward AS VARCHAR)) AS ward FROM source WHERE patient IS NOT NULL",
    ),
    "a query and forms": Way(
        ["ann", "ANN"], TEXT[:2], {"unit_normalise": ["lower"]}, query="SELECT * EXCLUDE (visit) FROM source"
    ),
    "folders": Way(
        ["ann / é"], ["bob", "ANN / é", "%", "1"], {"hive": True, "source": "data/*/*.parquet"}, write=folders
    ),
    "folders and forms": Way(
        ["ann", "ANN"],
        ["bob", "1"],
        {"hive": True, "source": "data/*/*.parquet", "unit_normalise": ["lower"]},
        write=folders,
    ),
    "quoted CSV": Way(
        ['a "quoted", name\nof two lines'],
        ["bob", '"', "\n", ",", "'"],
        {"source": "data/*.csv", "csv_quote": '"'},
        write=quoted_csv,
    ),
    "CSV with bad bytes": Way(
        ["p\udcff", "p\udcfe"], ["p?", "p", "bob"], {"source": "data/*.csv", "csv_quote": '"'}, write=quoted_csv
    ),
    "nulls": Way([None], TEXT),
    "blanks": Way([""], [" ", "bob", None]),
    "blanks with forms": Way(["", " ", "\t"], ["bob", None], {"unit_normalise": ["trim"]}),
    "bad bytes": Way([b"p\xff"], [b"p\xfe", "p?", "p\ufffd", "bob"]),
    "bad bytes and forms": Way([b"p\xff", b"P\xff"], [b"p\xfe", "p?", "bob"], {"unit_normalise": ["lower", "nfc"]}),
    "NUL": Way(["a\0b"], ["a", "a\0c", "b"]),
    "NUL and forms": Way(["a\0b", "A\0B"], ["a", "a\0c", "b"], {"unit_normalise": ["trim", "lower", "nfc"]}),
    "names of a megabyte": Way([LONGEST_NAME], [LONGEST_NAME + "x", TEXT_DIGEST, "m"]),
    "names of a megabyte and forms": Way(
        [LONGEST_NAME], [LONGEST_NAME + "x", TEXT_DIGEST], {"unit_normalise": ["lower"]}
    ),
    "look-alikes of digests": Way([LONG_DIGEST], [LONG_NAME, LONG_DIGEST[:71] + "x", "bob"]),
    "names that digests stand for": Way([LONG_NAME], [LONG_DIGEST, LONG_NAME + "n", "bob"]),
    **{
        f"form {name}": Way(spelled, ["bob", "dan"], {"unit_normalise": forms})
        for name, (forms, spelled) in FORMS.items()
    },
}


def rows_of(choice: random.Random, names: list[Name]) -> list[Row]:
    """Up to 50 rows of one unit: in one cell, or in all; in one spelling, or in all."""
    wards = choice.choice([WARDS[:1], WARDS[:3], WARDS])
    many = choice.choice([1, 3, MOST_ROWS])
    return [(names[row % len(names)], choice.choice(wards)) for row in range(many)]


def others_of(choice: random.Random, way: Way) -> list[Row]:
    return [row for name in way.others for row in rows_of(choice, [name])[: choice.choice([1, 2, 5])]]


class Trial:
    """Both neighbours of a way, counted through the real reading.

    Attributes:
        here, there: exact counts, by key.
        sensitivity: as declared.
    """

    def __init__(self, folder: Path, way: Way, neighbours: str, seed: int) -> None:
        choice = random.Random(seed)
        bound = choice.choice([1, 2, 5])
        fields = {"privacy_unit": "patient", "max_rows_per_unit": bound, "source": "data/*.parquet", **way.spec}
        axes = [{"column": "ward", "values": ["a", "b", "c"], "other": True}]
        self.spec: dict[str, Any] = {
            **{"release": "r", "account": "a", "mechanism": "geometric", "epsilon": str(EPSILON), "axes": axes},
            **({"source_sql": "query.sql"} if way.query else {}),
            **{"neighbours": neighbours, **fields},
        }
        (folder / "query.sql").write_text(way.query)
        others, one = others_of(choice, way), rows_of(choice, way.one)
        if fields["privacy_unit"] == "row":
            one = one[:1]
        other = [] if neighbours == "add_remove" else rows_of(choice, way.one)[: len(one)]
        read = ReleaseSpec.from_attributes(self.spec, folder)
        self.sensitivity, self.bound, self.cells = read.sensitivity, read.max_rows_per_unit, read.domain.cells
        self.here, self.there = (self._counted(folder, way, read, choice, [*others, *rows]) for rows in (one, other))

    def _counted(
        self, folder: Path, way: Way, spec: ReleaseSpec, choice: random.Random, rows: list[Row]
    ) -> list[Counts]:
        shutil.rmtree(folder / "data", ignore_errors=True)
        (folder / "data").mkdir()
        choice.shuffle(rows)
        for number in range(FILES):
            way.write(folder / "data" / f"part{number}", way, rows[number::FILES])
        plan = plan_of(spec, spec.period_named("all"))
        with one_engine():
            staged = ingest.stage_rows(plan, folder)
            if plan.privacy_unit == "row":
                return [cube.count_rows(staged, self.cells) for _ in KEYS]
            return [cube.count_bounded(staged, self.cells, self.bound, key) for key in KEYS]

    @property
    def distances(self) -> list[int]:
        """How far one unit moves all counts together, for every key."""
        return [int(np.abs(here - there).sum()) for here, there in zip(self.here, self.there, strict=True)]

    def bound_on_epsilon(self, runs: int) -> float:
        """What outputs show of epsilon, for the key under which the neighbours lie farthest apart."""
        worst = int(np.argmax(self.distances))
        audited = Audited(mechanisms.build("geometric", {}), (self.cells,), self.sensitivity, EPSILON)
        return lower_bound(*(outputs(audited, exact[worst], runs) for exact in (self.here, self.there))).sure


def farthest(folder: Path, way: Way, neighbours: str, seeds: Iterable[int]) -> Trial:
    """Of several pairs of neighbours the one that lies farthest apart, for its sensitivity."""
    trials = [Trial(folder, way, neighbours, seed) for seed in seeds]
    return max(trials, key=lambda trial: max(trial.distances) / trial.sensitivity)


OF_EACH_KIND = (
    "text",
    "several columns",
    "rows",
    "a query of some columns",
    "folders",
    "quoted CSV",
    "blanks with forms",
    "bad bytes and forms",
    "NUL and forms",
    "names of a megabyte",
    "names that digests stand for",
)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", mostly_audited(["add_remove", "substitute"], [0]))
@pytest.mark.parametrize("name", mostly_audited(WAYS, [list(WAYS).index(name) for name in OF_EACH_KIND]))
def test_no_way_to_name_a_unit_moves_counts_further_than_declared(tmp_path: Path, name: str, neighbours: str) -> None:
    trial = farthest(tmp_path, WAYS[name], neighbours, range(2))
    assert max(trial.distances) <= trial.sensitivity
    assert trial.bound_on_epsilon(500) <= EPSILON


@pytest.mark.parametrize(("seeds", "runs"), LENGTHS)
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.parametrize("name", WAYS)
def test_no_way_to_name_a_unit_loses_more_than_epsilon(
    tmp_path: Path, name: str, neighbours: str, seeds: int, runs: int
) -> None:
    trial = farthest(tmp_path, WAYS[name], neighbours, range(seeds))
    assert max(trial.distances) <= trial.sensitivity
    assert trial.bound_on_epsilon(runs) <= EPSILON


@pytest.mark.slow
def test_some_neighbours_move_counts_as_far_as_declared(tmp_path: Path) -> None:
    for neighbours in ("add_remove", "substitute"):
        trial = farthest(tmp_path, WAYS["text"], neighbours, FAR)
        assert max(trial.distances) == trial.sensitivity
        assert trial.bound_on_epsilon(20_000) > 0.5


def unbounded(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool = False) -> Counts:
    return np.bincount(pl.read_parquet(staged)["code"], minlength=cells).astype(np.int64)


FAULTS: dict[str, tuple[Way, Callable[[], Any]]] = {
    "no bounding": (WAYS["text"], lambda: patch.object(cube, "count_bounded", unbounded)),
    "forms that are not applied": (
        WAYS["form all forms"],
        lambda: patch.object(unit_forms, "form_steps", lambda form, column, point: []),
    ),
    "zeros told apart by their sign": (
        WAYS["floats"],
        lambda: patch.object(units, "_text", lambda column, forms, source: f"CAST({column} AS VARCHAR)"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_a_planted_fault_is_found_by_distance_and_by_outputs(tmp_path: Path, name: str) -> None:
    way, planted = FAULTS[name]
    with planted():
        trial = farthest(tmp_path, way, "add_remove", FAR if name == "no bounding" else range(8))
    assert max(trial.distances) > trial.sensitivity
    assert trial.bound_on_epsilon(4000) > EPSILON
