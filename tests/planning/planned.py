"""Specs of every kind that the tests of planning share."""

from __future__ import annotations

from typing import Any

from office import AGE, WARD

DAYS = {"column": "admitted", "name": "day", "calendar": "day", "start": "2026-01-01", "stop": "2027-01-01"}
DOSE = {"column": "dose", "edges": [0, 0.1, 0.5, 1], "closed": "right", "below": True, "above": True, "other": True}
CODES = "ward,region,title\nw1,north,First\nw2,north,Second\nw3,south,Third\n"
CODED = {"column": "ward", "values_from": "codes.csv", "levels": ["region"], "label_column": "title", "other": True}
BY_MONTH: dict[str, Any] = {"period": "month", "period_column": "admitted"}
TOWN = {"column": "a;b", "name": "town", "values": ["x;y", "z"]}
LINE = {"column": "age", "start": 0, "stop": 64, "width": 1}

# What a spec may say of its records, as changes to the office's spec.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "each row a unit": {"privacy_unit": "row", "max_rows_per_unit": ...},
    "several columns name a unit": {"privacy_unit": ["first", "last"], "unit_normalise": ["trim", "lower"]},
    "substitute": {"neighbours": "substitute"},
    "edges closed right": {"axes": [DOSE, WARD]},
    "code list": {"axes": [CODED]},
    "calendar": {"axes": [{**DAYS, "other": True}, WARD]},
    "periods": BY_MONTH,
    "period and calendar by one column": {**BY_MONTH, "axes": [DAYS, WARD]},
    "time zone": {**BY_MONTH, "time_zone": "America/New_York"},
    "one column in three places": {"privacy_unit": "age", "axes": [AGE, {**AGE, "name": "years"}]},
    "one column of days and of numbers": {
        "axes": [
            {**DAYS, "other": True, "format": "iso"},
            {"column": "admitted", "name": "number", "edges": [0, 1], "other": True},
        ]
    },
    "csv": {"source": "x/*.csv", **BY_MONTH, "axes": [AGE, WARD, {**DAYS, "other": True}]},
    "csv of one column": {"source": "x.csv", "privacy_unit": "row", "max_rows_per_unit": ..., "axes": [WARD]},
    "csv as written in France": {
        **{
            "source": "x.csv.gz",
            "csv_delimiter": ";",
            "csv_quote": '"',
            "decimal_comma": True,
            "csv_encoding": "windows-1252",
            **BY_MONTH,
        },
        **{
            "period_format": "%d/%m/%Y",
            "axes": [{**DOSE, "other": False}, {"column": "a;b", "name": "town", "values": ["Évry;y", "Orléans"]}],
        },
    },
    "parquet with dates as text": {**BY_MONTH, "period_format": "%d.%m.%y %H:%M"},
    "folders": {"source": "data/*/*.parquet", "hive": True},
    "database": {"source": "office.duckdb", "source_table": "main.admissions"},
    "published by hand": {"publish": "manual"},
    "derived columns": {
        "derive": [
            {"column": "hour", "part": "hour", "of": "seen"},
            {"column": "years", "years_between": ["born", "seen"]},
        ],
        "keep": [{"column": "years", "from": 0}],
        "axes": [{"column": "hour", "start": 0, "stop": 24, "width": 6}, {"column": "years", "edges": [0, 18, 65]}],
    },
    "server": {"source": "postgres:{{ env.OFFICE }}", "source_table": "admissions"},
    "query": {"source_sql": "rows.sql", "axes": [{"column": "town", "values": ["a", "b"]}, AGE]},
}
QUERY = "SELECT patient, age, lower(TRY_CAST(place AS VARCHAR)) AS town FROM source"
