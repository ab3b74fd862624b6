"""Addresses and queries as an attacker would write them: some are judged row by row, many of a whole grammar."""

from __future__ import annotations

import random

Choice = random.Random

# Addresses that are allowed for one account or the other, spelled in other ways, and others.
SOURCES = [
    *(
        "./data/health.parquet",
        "data//health.parquet",
        "data/../data/health.parquet",
        "data/h*.parquet",
        "data/*.parquet",
    ),
    *("DATA/health.parquet", "data/health.PARQUET", "data/clinic.csv", "data/health.parquet", "data/secret.parquet"),
    *(
        "data/*/secret.parquet",
        "data/link.parquet",
        "links/health.parquet",
        "**/*.parquet",
        "data/clini[c].csv",
        "data/*.csv",
    ),
    *(
        "store/public/**/*.parquet",
        "store/confidential/**/*.parquet",
        "codes/wards.csv",
        "codes/*.csv",
        "sql/query.csv",
    ),
    *("{{ env.FOLDER }}/secret.parquet", "{{ env.CANARY }}.csv", "{{ env.DATA }}/health.parquet", "nothing.parquet"),
    *(
        "s3://bucket/health.parquet",
        "postgres:{{ env.CANARY }}",
        "frame:health",
        "data/health.duckdb",
        "/etc/passwd.csv",
    ),
]


def judged_query(choice: Choice, unit: str, others: str = "") -> str:
    """One that passes, most of the time.

    Args:
        choice: draws it.
        unit: the last column that names a unit.
        others: the columns before it, each with its comma.
    """
    age = choice.choice(["TRY_CAST(age AS DOUBLE) / 2", "round(TRY_CAST(age AS DOUBLE))", "TRY_CAST(visit AS DOUBLE)"])
    ward = choice.choice(
        ["lower(TRY_CAST(ward AS VARCHAR))", f"left(TRY_CAST({unit} AS VARCHAR), 3)", "TRY_CAST(day AS VARCHAR)"]
    )
    where = choice.choice(
        [
            "",
            " WHERE TRY_CAST(age AS DOUBLE) > 70",
            f" WHERE {unit} IS NOT NULL",
            " WHERE TRY_CAST(visit AS BIGINT) % 2 = 0",
        ]
    )
    starred = f"* EXCLUDE (age, ward), {age} AS age, {ward} AS ward"
    listed = f"{others}{unit}, day, visit, {age} AS age, {ward} AS ward"
    return f"SELECT {choice.choice([starred, listed, '*'])} FROM source{where}\n"


_TABLES = [
    *("source", "source", "source", "source AS s", "source s, source t", "source JOIN source o USING (visit)", "made"),
    *(
        "source, range(1000)",
        "source, generate_series(1, 50)",
        "source, unnest([1, 2, 3]) AS u(k)",
        "'data/clinic.csv'",
    ),
    *("'data/secret.parquet'", "source, 'data/health.parquet' AS h", "read_csv('data/clinic.csv')", "glob('**')"),
    *("read_text('store/ledger.sqlite')", "source, duckdb_settings()", "query('FROM source')", "(FROM source) AS s"),
    *(
        "source POSITIONAL JOIN source o",
        "source TABLESAMPLE 10 ROWS",
        "source, (SELECT 1 AS one)",
        "(VALUES (1)) v(x), source",
    ),
    *(
        "source, (WITH made AS (FROM source) FROM made)",
        "source, LATERAL (SELECT visit + 1)",
        "main.source",
        "source.x",
    ),
    *(
        "information_schema.tables",
        "source, sqlite_scan('store/ledger.sqlite', 'ledger_entry')",
        "(PIVOT source ON ward)",
    ),
]
_SCALARS = [
    *("{c}", "{c}", "TRY_CAST({c} AS VARCHAR)", "CAST({c} AS INTEGER)", "{c}::DATE", "upper(TRY_CAST({c} AS VARCHAR))"),
    *("concat({c}, {d})", "{c} || {d}", "hash({c})", "md5({c})", "uuid()", "random()", "now()", "getenv('CANARY')"),
    *(
        "current_setting('temp_directory')",
        "error({c})",
        "CASE WHEN {c} = {d} THEN {c} ELSE {d} END",
        "coalesce({c}, {d})",
    ),
    *(
        "row_number() OVER ()",
        "row_number() OVER (PARTITION BY {c} ORDER BY {d})",
        "count(*) OVER ()",
        "sum(visit) OVER (ORDER BY visit)",
    ),
    *(
        "lag({c}) OVER (ORDER BY {d})",
        "(SELECT max({c}) FROM source)",
        "(SELECT count(*) FROM source)",
        "max({c})",
        "count(*)",
    ),
    *(
        "unnest([{c}, {d}])",
        "list_transform([{c}], lambda y: y)",
        "struct_pack(a := {c})",
        "[{c}, {d}][1]",
        "nullif({c}, {d})",
    ),
    *(
        "write_log({c})",
        "nextval('s')",
        "version()",
        "current_user",
        "regexp_replace(TRY_CAST({c} AS VARCHAR), '.', 'x')",
    ),
    *(
        "repeat({c}, 1000000)",
        "TRY_CAST({c} AS DOUBLE) / 0",
        "ln(TRY_CAST(visit AS DOUBLE))",
        "1",
        "'everybody'",
        "NULL",
    ),
    *(
        "left({c}, 3)",
        "COLUMNS(*)",
        "{c} COLLATE NOCASE",
        "TRY({c})",
        "date_trunc('day', TRY_CAST(day AS TIMESTAMP))",
        "$1",
    ),
]
_NAMES = [
    "patient",
    "person",
    "PATIENT",
    '"Patient"',
    "age",
    "ward",
    "day",
    "visit",
    "row",
    "source",
    '"*"',
    "unit",
    "code",
]
_COLUMNS = ["patient", "person", "age", "ward", "day", "visit", "source.visit", "s.age", "rowid", "filename", "nothing"]


def any_query(choice: Choice, unit: str) -> str:
    """A query of the whole grammar, in which the unit may be anything."""

    def scalar() -> str:
        text: str = choice.choice(_SCALARS)
        return text.replace("{c}", choice.choice(_COLUMNS)).replace("{d}", choice.choice(_COLUMNS))

    items = [f"{scalar()} AS {choice.choice(_NAMES)}" for _ in range(choice.randrange(3))]
    unit_item = choice.choice(
        [
            unit,
            unit,
            f"visit AS {unit}",
            f"{scalar()} AS {unit}",
            f'visit AS "{unit.upper()}"',
            f"{unit}, visit AS {unit}",
        ]
    )
    starred = [
        *(
            "*",
            f"* EXCLUDE ({unit}), {unit_item}",
            f"* REPLACE (visit AS {unit})",
            f"* RENAME (visit AS {unit})",
            "s.*",
        ),
        *(f"*, {unit_item}", f"{unit_item}, age, ward, day, visit", f"DISTINCT {unit_item}, age, ward, day, visit"),
    ]
    made = f"SELECT {', '.join([choice.choice(starred), *items])} FROM {choice.choice(_TABLES)}"
    made += choice.choice(
        [
            "",
            "",
            "",
            f" WHERE {scalar()} = {scalar()}",
            f" GROUP BY {unit}",
            " GROUP BY ALL",
            " LIMIT 7",
            " ORDER BY visit",
        ]
    )
    made += choice.choice(
        [""] * 6
        + [" QUALIFY row_number() OVER () < 9", f" UNION ALL {made}", " UNION ALL FROM source", "; DROP TABLE source"]
    )
    before = choice.choice(
        [""] * 6
        + [
            "WITH made AS (FROM source) ",
            "WITH RECURSIVE made AS (FROM source UNION ALL FROM made) ",
            "WITH source AS (SELECT 1) ",
            "COPY ",
        ]
    )
    return f"{before}{made}\n"
