"""The `derive` and `keep` that say the same as a query: what `dphist check` writes, and what the two count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from source_scenario import counted, spec, written

from dphist_pipeline.spec._declared_instead import declared_instead
from dphist_pipeline.spec.signed_queries import query_of

BOTH = """
SELECT person, TRY_CAST(age AS DOUBLE) AS age, left(TRY_CAST(icd AS VARCHAR), 2) AS icd2,
    coalesce(TRY_CAST(day AS DATE), TRY_CAST(try_strptime(TRY_CAST(day AS VARCHAR), '%d.%m.%Y') AS DATE)) AS day,
    month(TRY_CAST(day AS DATE)) AS month, date_diff('day', TRY_CAST(first AS DATE), TRY_CAST(last AS DATE)) AS stay
FROM source
WHERE person IS NOT NULL AND TRY_CAST(age AS DOUBLE) >= 0 AND TRY_CAST(age AS DOUBLE) < 120 AND kind IN ('in', 'no')
"""
RECORDS = pa.table(
    {
        "person": ["a", "b", "c", None, "d", "e"],
        "age": ["5", "15", "-3", "7", "119.5", "x"],
        "icd": ["A00", "B1", "é", "A0", None, "A0"],
        "day": ["2026-03-02", "03.03.2026", "31.02.2026", "2026-03-02", None, "x"],
        "first": ["2026-03-01", "2026-03-01", "x", None, "2024-02-28", "2026-03-01"],
        "last": ["2026-03-05", "x", "2026-03-05", None, "2024-03-01", "2026-03-01"],
        "kind": ["in", "no", "in", "in", "in", None],
    }
)


def instead_of(sql: str) -> Any:
    return declared_instead(query_of(sql, "").text, ["person"])


def test_what_is_written_counts_what_the_query_counts() -> None:
    instead = instead_of(BOTH)
    assert instead is not None and instead.renamed == {"day": "day_read"}
    declared = {
        name: yaml.safe_load(text) for name, _, text in (one.partition(": ") for one in instead.lines.split("; "))
    }
    axes = [
        {"column": "age", "start": 0, "stop": 120, "width": 10, "other": True},
        {"column": "icd2", "values": ["A0", "B1", "é"], "other": True},
        {"column": "month", "edges": [1, 3, 4, 13], "other": True},
        {"column": "stay", "edges": [0, 1, 3, 5], "other": True},
    ]
    by_query = {"source_sql": "q.sql", "period": "week", "period_column": "day", "at": "2026-03-02"}
    by_spec = {**declared, "period": "week", "period_column": "day_read", "at": "2026-03-02"}
    files = {"people.parquet": RECORDS, "q.sql": BOTH.encode()}
    assert counted(files, axes=axes, **by_spec) == counted(files, axes=axes, **by_query)
    assert sum(counted(files, axes=axes, **by_spec)) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT person, lower(ward) AS ward FROM source",
        "SELECT person, ward AS place FROM source",
        "SELECT person FROM source WHERE age > 3",
        "SELECT person FROM source WHERE TRY_CAST(age AS DOUBLE) <= 3",
        "SELECT person FROM source WHERE TRY_CAST(age AS DOUBLE) >= 3 AND TRY_CAST(age AS DOUBLE) >= 5",
        "SELECT person FROM source WHERE kind = 'a' OR kind = 'b'",
        "SELECT person FROM source WHERE ward IS NOT NULL",
        "SELECT DISTINCT person FROM source",
        "SELECT person FROM source LIMIT 3",
        "SELECT person, count(*) AS n FROM source GROUP BY person",
        "SELECT person FROM source JOIN source AS s USING (person)",
        "WITH a AS (FROM source) SELECT person FROM a",
        "SELECT * FROM source TABLESAMPLE 10 ROWS",
        "SELECT * REPLACE (1 AS person) FROM source",
        "SELECT person, left(TRY_CAST(icd AS VARCHAR), -2) AS icd FROM source",
        "SELECT person, substring(TRY_CAST(icd AS VARCHAR), 2, 2) AS icd FROM source",
        "SELECT person, CAST(day AS DATE) AS day2 FROM source",
        "SELECT person FROM source UNION ALL SELECT person FROM source",
    ],
)
def test_of_other_queries_nothing_is_said(sql: str) -> None:
    assert instead_of(sql) is None


def test_check_says_it_beside_the_signature_that_is_needed(tmp_path: Path) -> None:
    written(tmp_path, {"q.sql": b"SELECT *, hour(TRY_CAST(seen AS TIMESTAMP)) AS hour FROM source"})
    said = spec(tmp_path, source_sql="q.sql").remarks
    assert any("dphist ledger allow tests --query q.sql --reason TEXT" in one for one in said)
    assert any("`derive: [{column: hour, part: hour, of: seen}]`" in one for one in said)
    written(tmp_path, {"q.sql": b"SELECT * FROM source"})
    assert any("says nothing that the spec does not" in one for one in spec(tmp_path, source_sql="q.sql").remarks)
