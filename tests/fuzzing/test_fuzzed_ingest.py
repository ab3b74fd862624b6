"""Any file of records gives a cube or a refusal of the file: nothing out of a record, and nothing because of one."""

from __future__ import annotations

import json
import random
import secrets
import shutil
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from byte_mutations import after_head, byte_change, mixed, token_change
from canary import TOKENS, chain
from guided_loop import Mutate, Report, fuzz
from hostile_files import (
    CSV_HEAD,
    CSV_SEEDS,
    CSV_TOKENS,
    PARQUET_SEEDS,
    PERIODS,
    QUERY,
    Files,
    Hostile,
    csv_files,
    parquet_files,
)
from spec_seeds import PROJECT

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading import ingest as ingest_module
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

pytestmark = pytest.mark.slow

WATCHED = [PROJECT / "dphist_pipeline" / "confidential" / "reading"]
NOT_TO_ITS_END = "could not be read to its end"
Reading = Callable[[bytes], tuple[dict[str, Any], Hostile]]

csv_change = after_head(CSV_HEAD, mixed(byte_change, token_change(CSV_TOKENS)))


def parquet_change(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
    """Other choices: some bytes drawn anew, or taken from another input."""
    changed = bytearray(content.ljust(400, b"\0"))
    other = choice.choice(corpus).ljust(400, b"\0")
    for _ in range(choice.choice([1, 2, 4, 30])):
        place = choice.randrange(choice.choice([12, 60, 400]))
        changed[place] = choice.choice([choice.randrange(256), choice.randrange(16), other[place]])
    return bytes(changed)


class Ingest:
    """A folder where files are read as a spec says, and what came of it."""

    def __init__(self, folder: Path, said: Callable[[], str]) -> None:
        self.folder, self._source, self._run, self._said = folder, folder / "office", folder / "run", said
        self._source.mkdir()
        self._run.mkdir()
        (self._source / "query.sql").write_text(QUERY)
        self._specs: dict[str, ReleaseSpec] = {}
        self._of_twins: dict[Any, Hashable] = {}
        self.cubes = 0

    def check(self, attributes: dict[str, Any], hostile: Hostile) -> set[Hashable]:
        """What came of hostile files, which must be what comes of their twin."""
        outcome, cells = self._outcome(attributes, hostile.files, hostile.rows)
        if hostile.twin is not None:
            twin = (json.dumps(attributes), *hostile.twin.items())
            if twin not in self._of_twins:
                self._of_twins[twin], _ = self._outcome(attributes, hostile.twin, hostile.rows + 1)
            assert outcome == self._of_twins[twin], (outcome, self._of_twins[twin])
            assert NOT_TO_ITS_END not in str(outcome)
        self.cubes += bool(cells)
        return {outcome, cells}

    def _outcome(self, attributes: dict[str, Any], files: Files, rows: int) -> tuple[Hashable, tuple[int, ...]]:
        """How reading ended, and which cells were found."""
        spec = self._written(attributes, files)
        outcome, cells = ("a cube", ""), tuple[int, ...]()
        try:
            cube = read_and_count(plan_of(spec, spec.period_named(PERIODS[spec.period])), self._run)
        except (SourceRefused, ColumnRefused) as error:
            assert error.__cause__ is None and error.__context__ is None
            outcome = (type(error).__name__, str(error))
            check_says_nothing(chain(error))
        else:
            assert cube.shape == (spec.domain.cells,) and cube.dtype == np.int64
            assert cube.min() >= 0 and cube.sum() <= rows
            cells = tuple(map(int, np.flatnonzero(cube)[:20]))
        check_says_nothing(self._said())
        return outcome, cells

    def staged(self, attributes: dict[str, Any], files: Files) -> list[str]:
        """The staged rows, sorted; or what refuses the files."""
        spec = self._written(attributes, files)
        try:
            rows = ingest_module.stage_rows(plan_of(spec, spec.period_named(PERIODS[spec.period])), self._run)
        except (SourceRefused, ColumnRefused) as error:
            return [str(error)]
        return sorted(map(str, pq.read_table(rows).to_pylist()))

    def _written(self, attributes: dict[str, Any], files: Files) -> ReleaseSpec:
        """The spec over these files, which are the only ones there."""
        for path in [*self._source.glob("*.csv*"), *self._source.glob("*.parquet"), *self._run.iterdir()]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, content in files.items():
            (self._source / name).write_bytes(content)
        source = f"*.{next(iter(files)).partition('.')[2]}"
        key = json.dumps([source, attributes])
        if key not in self._specs:
            self._specs[key] = ReleaseSpec.from_attributes({**attributes, "source": source}, self._source)
        return self._specs[key]


def check_says_nothing(text: str) -> None:
    """No token of a record is told."""
    assert [token for token in TOKENS if token in text] == []


@pytest.fixture
def ingest(tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Ingest:
    def said() -> str:
        captured = capfd.readouterr()
        return captured.out + captured.err + caplog.text

    return Ingest(tmp_path, said)


def check_forced(ingest: Ingest, reading: Reading, content: bytes) -> None:
    """Rows that are read one batch after the other are those that one statement stages, without a query."""
    try:
        attributes, hostile = reading(content)
    except pa.ArrowException:
        return
    if "source_sql" in attributes:
        return
    usual = ingest.staged(attributes, hostile.files)
    failing = Mock(side_effect=duckdb.InternalException("as an engine says"))
    with patch.object(ingest_module, "_stage", failing):
        assert ingest.staged(attributes, hostile.files) == usual


def run(ingest: Ingest, reading: Reading, seeds: Sequence[bytes], change: Mutate, inputs: int, seed: int) -> Report:
    def check(content: bytes) -> set[Hashable]:
        try:
            attributes, hostile = reading(content)
        except pa.ArrowException:
            return set()  # Arrow does not write it
        return ingest.check(attributes, hostile)

    folder = ingest.folder
    report = fuzz(check, seeds, change, inputs=inputs, seed=seed, watched=WATCHED, folder=folder)
    print(f"\n{reading.__name__}: {report}; {ingest.cubes:,} cubes with rows")
    assert report.outcomes > 5 and ingest.cubes > inputs / 10
    return report


def test_any_text_gives_a_cube_or_a_refusal_of_the_file(ingest: Ingest):
    run(ingest, csv_files, CSV_SEEDS[::3], csv_change, 30, seed=1)


def test_any_parquet_file_gives_a_cube_or_a_refusal_of_the_file(ingest: Ingest):
    run(ingest, parquet_files, PARQUET_SEEDS[::2], parquet_change, 40, seed=1)


def test_any_file_gives_the_same_rows_where_the_engine_is_said_to_fail(ingest: Ingest):
    for content in CSV_SEEDS[::6]:
        check_forced(ingest, csv_files, content)
    for content in PARQUET_SEEDS[::4]:
        check_forced(ingest, parquet_files, content)


@pytest.mark.soak
def test_any_file_gives_the_same_rows_where_the_engine_is_said_to_fail_in_long_runs(ingest: Ingest):
    choice = random.Random(secrets.randbits(32))
    for _ in range(1_000):
        check_forced(ingest, csv_files, csv_change(choice, choice.choice(CSV_SEEDS), CSV_SEEDS))
        check_forced(ingest, parquet_files, parquet_change(choice, choice.choice(PARQUET_SEEDS), PARQUET_SEEDS))


@pytest.mark.soak
def test_any_text_gives_a_cube_or_a_refusal_in_long_runs(ingest: Ingest):
    run(ingest, csv_files, CSV_SEEDS, csv_change, 4_000, secrets.randbits(32))


@pytest.mark.soak
def test_any_parquet_file_gives_a_cube_or_a_refusal_in_long_runs(ingest: Ingest):
    run(ingest, parquet_files, PARQUET_SEEDS, parquet_change, 3_000, secrets.randbits(32))
