"""A value column has one description, which files, reserved names and Dagster read."""

from __future__ import annotations

import json
from pathlib import Path

import by_hand
import duckdb
import pyarrow.parquet as pq
import pytest
from office import AGE, WARD

from dphist_pipeline.answering import _views
from dphist_pipeline.answering.catalogue import list_publications
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.answering.croissant import write_croissant
from dphist_pipeline.integrations.dagster._shown import table_schema
from dphist_pipeline.published_columns import VALUE_COLUMNS, ValueColumn
from dphist_pipeline.publishing import latest_cells, parquet_tables
from dphist_pipeline.publishing.current_files import write_current_files
from dphist_pipeline.spec import words
from dphist_pipeline.spec.axes import domain_of

WEEKS = ("2026-03-02", "2026-03-09")
QUESTIONS = ("dph_total('weekly')", "dph_band('weekly')", "dph_whole('weekly')", "dph_marginal('weekly', ['ward'])")


@pytest.mark.parametrize("column", VALUE_COLUMNS, ids=lambda column: column.name)
def test_a_value_column_is_described_everywhere(column: ValueColumn) -> None:
    assert column.name in words.OUR_COLUMNS
    assert _views._COMMENTS[column.name] == column.in_views != ""
    assert latest_cells.ABOUT[column.name] == column.in_latest != ""


def test_files_and_dagster_have_the_same_value_columns() -> None:
    described = [(column.name, column.kind) for column in VALUE_COLUMNS]
    assert [(field.name, str(field.type)) for field in parquet_tables._value_fields()] == described
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
    write_current_files(public, scratch)
    latest_cells.write_latest_cells(public, scratch)
    write_croissant(public, scratch)
    connection = duckdb.connect()
    create_tables(connection, list_publications(public), macros={one.partition("(")[0] for one in QUESTIONS})
    return connection


@pytest.mark.parametrize("column", [column.name for column in VALUE_COLUMNS if not column.is_digested])
def test_a_store_whose_older_files_lack_a_column_opens_and_answers(column: str, tmp_path: Path) -> None:
    answers = {}
    for name, lacking in (("whole", ("", "")), ("older", (column, column)), ("grown", (column, ""))):
        for week, lacks in zip(WEEKS, lacking, strict=True):
            older(tmp_path / name, week, lacks)
        (scratch := tmp_path / f"{name}_scratch").mkdir()
        with opened(tmp_path / name, scratch) as connection:
            answers[name] = [connection.execute(f"FROM {question}").fetchall() for question in QUESTIONS]
            asked = f"SELECT count({column}) > 0 FROM weekly GROUP BY period ORDER BY period"
            assert connection.execute(asked).fetchall() == [(not lacks,) for lacks in lacking]
        readers = pq.ParquetFile(tmp_path / name / "weekly/latest/cells.parquet").schema_arrow.names
        described = json.loads((tmp_path / name / "croissant.json").read_bytes())["recordSet"][0]["field"]
        assert (column in readers) == (name != "older")
        assert (f"weekly/{column}" in {field["name"] for field in described}) == (name != "older")
    assert answers["older"] == answers["grown"] == answers["whole"]


def test_only_columns_of_the_first_version_are_digested() -> None:
    assert {column.since for column in VALUE_COLUMNS if column.is_digested} == {"0.1.0"}
    assert [
        column.name for column in VALUE_COLUMNS if column.null and not column.null.startswith("the mechanism")
    ] == []
