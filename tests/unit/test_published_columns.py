"""A value column has one description, which files, reserved names and Dagster read."""

from __future__ import annotations

import pytest
from office import AGE, WARD

from dphist_pipeline.answering import _views
from dphist_pipeline.integrations.dagster._shown import table_schema
from dphist_pipeline.published_columns import VALUE_COLUMNS, ValueColumn
from dphist_pipeline.publishing import latest_cells, parquet_tables
from dphist_pipeline.spec import words
from dphist_pipeline.spec.axes import domain_of


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
