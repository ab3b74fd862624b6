"""A value column has one description, which files, reserved names and Dagster read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import pyarrow.parquet as pq
import pytest
from office import AGE, WARD

from dphist_pipeline.answering import _views, latest_cells
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.base.published_columns import VALUE_COLUMNS, ValueColumn
from dphist_pipeline.integrations.dagster._shown import table_schema
from dphist_pipeline.publishing import parquet_tables
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.axes import domain_of

NEWER = [column.name for column in VALUE_COLUMNS if not column.is_digested]
WEEKS = ("2026-03-02", "2026-03-09")
QUESTIONS = ("dph_total('weekly')", "dph_band('weekly')", "dph_whole('weekly')", "dph_marginal('weekly', ['ward'])")


@pytest.mark.parametrize("column", VALUE_COLUMNS, ids=lambda column: column.name)
def test_a_value_column_is_described_everywhere(column: ValueColumn) -> None:
    assert column.name in fields.OUR_COLUMNS
    assert _views._COMMENTS[column.name] == column.in_views != ""


def test_files_and_dagster_have_the_same_value_columns(tmp_path: Path) -> None:
    described = [(column.name, column.kind) for column in VALUE_COLUMNS]
    parquet_tables.write_histogram(by_hand.estimate([AGE, WARD]), tmp_path / "histogram.parquet")
    fields_of_file = list(pq.read_schema(tmp_path / "histogram.parquet"))[-len(described) :]
    assert [(field.name, str(field.type)) for field in fields_of_file] == described
    shown = table_schema(domain_of([AGE, WARD])).columns[-len(described) :]
    assert [(column.name, column.type) for column in shown] == described
    assert [column.description for column in shown] == [column.meaning for column in VALUE_COLUMNS]


def older(public: Path, week: str, column: str) -> None:
    """A publication as a version wrote it whose files lacked a column; an empty name stands for none."""
    kinds = {name: kind for name, kind in parquet_tables.KINDS_OF_VALUES.items() if name != column}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_tables, "KINDS_OF_VALUES", kinds)
        by_hand.publish(public, by_hand.estimate([AGE, WARD]), [AGE, WARD], period=week)


def opened(public: Path, scratch: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the catalogue of a public folder, whose other files are written, too."""
    DerivedFiles(public).write_current_files(scratch)
    latest_cells.write_latest_cells(public, scratch)
    connection = duckdb.connect()
    create_tables(connection, Catalogue(public).publications(), macros={one.partition("(")[0] for one in QUESTIONS})
    return connection


@dataclass(frozen=True)
class Told:
    """What two weeks tell, whose files may lack a column.

    Attributes:
        answers: the rows of each question.
        filled: whether each week has numbers in each column.
        read: the columns for readers of files.
    """

    answers: list[list[tuple[Any, ...]]]
    filled: dict[str, list[bool]]
    read: set[str]


def told(folder: Path, *lacking: str) -> Told:
    for week, lacks in zip(WEEKS, lacking, strict=True):
        older(public := folder / "public", week, lacks)
    (scratch := folder / "scratch").mkdir()
    counts = ", ".join(f"count({column}) > 0" for column in NEWER)
    with opened(public, scratch) as connection:
        answers = [connection.execute(f"FROM {question}").fetchall() for question in QUESTIONS]
        weeks = connection.execute(f"SELECT {counts} FROM weekly GROUP BY period ORDER BY period").fetchall()
    read = pq.ParquetFile(public / "weekly/latest/cells.parquet").schema_arrow.names
    filled = dict(zip(NEWER, map(list, zip(*weeks, strict=True)), strict=True))
    return Told(answers, filled, set(read))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told(tmp_path_factory.mktemp("whole"), "", "")


@pytest.mark.slow
@pytest.mark.parametrize("column", NEWER)
@pytest.mark.parametrize("grown", [False, True])
def test_a_store_whose_older_files_lack_a_column_opens_and_answers(
    column: str, grown: bool, whole: Told, tmp_path: Path
) -> None:
    found = told(tmp_path, column, "" if grown else column)
    assert found.answers == whole.answers
    assert found.filled == {**whole.filled, column: [False, grown]}
    assert all(all(weeks) for weeks in whole.filled.values())
    assert found.read == whole.read, "the columns of files are the same, empty where a period lacks them"


def test_only_columns_of_the_first_version_are_digested() -> None:
    assert {column.since for column in VALUE_COLUMNS if column.is_digested} == {"0.1.0"}
