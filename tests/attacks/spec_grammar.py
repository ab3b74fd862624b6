"""A grammar of whole releases as an attacker would write them: specs, queries and code lists that look valid.

Every field is drawn from values that an attacker would choose. Most of a spec stays as its account allows it, so that
many specs get as far as a release. Nothing here holds a canary: what is found of one was told by the office.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dphist_pipeline import mechanisms
from dphist_pipeline.errors import DphistError

Choice = random.Random

# What operators decided, by account: the fields of a spec that decisions fix.
HEALTH = {
    "account": "health",
    "source": "data/health.parquet",
    "privacy_unit": "patient",
    "neighbours": "add_remove",
}
CLINIC = {
    "account": "clinic",
    "source": "data/clinic.csv",
    "csv_quote": '"',
    "unit_normalise": ["trim", "lower"],
    "privacy_unit": "person",
    "neighbours": "substitute",
}
ALLOWED_QUERY = (
    "SELECT patient, max(age) AS age, any_value(ward) AS ward, min(day) AS day, count(*) AS visit\n"
    "FROM source GROUP BY patient\n"
)
ALLOWED_QUERY_FILE = "sql/allowed.sql"
PERIOD = "2026-10-01"


@dataclass
class Attack:
    """What an attacker writes for one release.

    Attributes:
        spec: its fields, as in YAML.
        query: the content of `sql/query.sql`, where the spec names that.
        words: more of `dphist release`.
    """

    spec: dict[str, Any]
    query: str = ""
    words: list[str] = field(default_factory=list)


def attack(choice: Choice, number: int) -> Attack:
    """A release of the name `r<number>`: one that its account allows, with some fields drawn from an attacker's."""
    allowed = choice.choice([HEALTH, HEALTH, CLINIC])
    made = Attack({"release": f"r{number}", **allowed, **_plain_fields(choice)})
    if choice.random() < 0.3:
        _with_query(choice, made, judged=choice.random() < 0.5)
    if choice.random() < 0.25:
        _with_period(choice, made)
    for _ in range(choice.choice([0, 0, 1, 1, 1, 1, 2, 3])):
        choice.choice(_CHANGES)(choice, made)
    return made


def _plain_fields(choice: Choice) -> dict[str, Any]:
    """Fields that are a spec writer's to choose."""
    made: dict[str, Any] = {
        "max_rows_per_unit": choice.choice([1, 1, 2, 3, 7, 40]),
        "epsilon": choice.choice(["1e-6", 0.001, "1/3", 0.5, 1, "7/2", 10, 50, "0.017", 2]),
        "axes": [
            _axis(choice, column) for column in choice.sample(["age", "ward", "day", "visit"], choice.choice([1, 1, 2]))
        ],
        "mechanism": "geometric",
    }
    if choice.random() < 0.4:
        made["mechanism"] = choice.choice(mechanisms.names())
        fitting = [some for some in _SETTINGS if _takes(made["mechanism"], some)]
        made["settings"] = choice.choice(fitting) if fitting and choice.random() < 0.6 else {}
    return made


def _takes(mechanism: str, settings: dict[str, Any]) -> bool:
    try:
        mechanisms.build(mechanism, settings)
    except DphistError:
        return False
    return True


_SETTINGS: list[dict[str, Any]] = [
    {"penalty": "bic"},
    {"score": "squared", "buckets": 2},
    {"count_ceiling": 1},
    {"structure_share": "0.999999"},
    {"structure_share": "1e-9"},
    {"branching": 3},
    {"depth": 2},
    {"group_size": 1},
    {"order": "exponential"},
    {"threshold": 0},
    {"epsilon": 100},
    {"sensitivity": 0},
    {"noise": "none"},
]


def _axis(choice: Choice, column: str) -> dict[str, Any]:
    kinds: dict[str, list[dict[str, Any]]] = {
        "age": [
            {"start": 0, "stop": 100, "width": 25},
            {"edges": [0, 18, 65, 100], "closed": "right"},
            {"edges": [-1e14, 73.8203124, 73.8203126, 1e14]},
            {"start": 70, "stop": 80, "width": "0.5"},
        ],
        "visit": [{"start": 0, "stop": 4, "width": 1}, {"edges": [0, 30_000, 60_000, 1e9]}],
        "ward": [
            {"values": ["surgery", "medicine"]},
            {"values": ["surgery", "guessed", "SURGERY?"], "labels": ["s", "", "count(*)"]},
            {"values": ["guessed", "no such ward"], "levels": {"site": ["all", "all"]}},
            {"values_from": "codes/wards.csv", "values_column": "code", "levels": ["site"], "label_column": "title"},
            {"values_from": "codes/tree.csv", "values_column": "code", "parent_column": "above", "levels": ["top"]},
        ],
        "day": [
            {"calendar": "month", "start": "2026-09-01", "stop": "2026-12-01"},
            {"calendar": "day", "start": "2026-10-05", "stop": "2026-10-09"},
        ],
    }
    made = {"column": column, "other": choice.random() < 0.5, **choice.choice(kinds[column])}
    if column in ("age", "visit"):
        made |= {"below": choice.random() < 0.5, "above": choice.random() < 0.5}
    return made


def _with_period(choice: Choice, made: Attack) -> None:
    made.spec |= {"period": choice.choice(["month", "month", "week", "quarter", "year"]), "period_column": "day"}
    named = {
        "month": PERIOD,
        "week": choice.choice(["2026-10-05", "2026-W41"]),
        "quarter": "2026-07-01",
        "year": "2025-01-01",
    }
    if choice.random() < 0.8:
        made.words += ["--period", named[made.spec["period"]]]


# Queries.


def _with_query(choice: Choice, made: Attack, judged: bool) -> None:
    unit = made.spec.get("privacy_unit", "patient")
    if choice.random() < 0.2:
        made.spec["source_sql"], made.query = ALLOWED_QUERY_FILE, ""
        return
    made.spec["source_sql"] = "sql/query.sql"
    made.query = _judged_query(choice, str(unit)) if judged else _query(choice, str(unit))


def _judged_query(choice: Choice, unit: str) -> str:
    """One that passes, most of the time."""
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
    listed = f"{unit}, day, visit, {age} AS age, {ward} AS ward"
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


def _query(choice: Choice, unit: str) -> str:
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


# Changes of single fields.


def _set(name: str, *values: Any) -> Callable[[Choice, Attack], None]:
    def change(choice: Choice, made: Attack) -> None:
        made.spec[name] = choice.choice(values)

    return change


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
SECRET_LISTS = ["data/secret.parquet", "data/link.parquet", "codes/../data/secret.parquet", "codes/link/secret.parquet"]
LISTS = [
    *(SECRET_LISTS * 3),
    *(
        "data/clinic.csv",
        "data/health.parquet",
        "data/secret.parquet",
        "data/link.parquet",
        "codes/../data/secret.parquet",
        "codes/link.csv",
    ),
    *(
        "codes/hard.csv",
        "codes/link/clinic.csv",
        "codes/link/secret.parquet",
        "codes/nothing.csv",
        "store/ledger.sqlite",
        "spec.yaml",
        "codes",
    ),
    *("codes/wards.csv", "codes/tree.csv", "codes/broken.csv", "/proc/self/environ", "/dev/stdin", "sql/query.sql"),
    *("store/public/r1/period=all/revision=1/histogram.parquet", "data/zy*.csv", "{{ env.FOLDER }}/secret.parquet"),
]
_LIST_COLUMNS = ["patient", "person", "ward", "age", "code", "title", "site", "above", "day", "visit", "nothing", ""]
TEXTS = [
    *(
        "{{ env.CANARY }}",
        "T {{ env.FOLDER }}",
        "{% raw %}x{% endraw %}",
        "{{ 7 * 7 }}",
        "<script>alert(1)</script>",
        "x" * 150,
    ),
    *(
        "[bold red]error:[/]",
        "\N{RIGHT-TO-LEFT OVERRIDE}abc",
        "${CANARY}",
        "$CANARY",
        "%(CANARY)s",
        "team:a",
        "a.b@c.example",
    ),
]


def _list_axis(choice: Choice, made: Attack) -> None:
    axis: dict[str, Any] = {"column": choice.choice(["ward", "age", "day"]), "values_from": choice.choice(LISTS)}
    for name in ("values_column", "label_column", "parent_column"):
        if choice.random() < (0.9 if name == "values_column" else 0.3):
            axis[name] = choice.choice(_LIST_COLUMNS)
    if choice.random() < 0.4:
        axis["levels"] = choice.sample(_LIST_COLUMNS[:-1], 2)
    if axis["values_from"].startswith(("data", "codes/.", "codes/link", "codes/hard")) and choice.random() < 0.8:
        unit = "patient" if axis["values_from"].endswith(".parquet") else "person"
        axis = {"column": "ward", "values_from": axis["values_from"], "values_column": unit}
    made.spec["axes"] = [axis]


def _odd_axis(choice: Choice, made: Attack) -> None:
    columns = [
        "patient",
        "person",
        "age",
        "ward",
        "visit",
        "day",
        "headre",
        "rowid",
        "filename",
        "ward; DROP",
        "{{ env.CANARY }}",
    ]
    made.spec["axes"] = [
        {"column": choice.choice(columns), **_without_column(_axis(choice, choice.choice(["age", "ward", "day"])))}
    ]
    if choice.random() < 0.4:
        made.spec["axes"][0]["name"] = choice.choice([*TEXTS, "estimate", "count", "patient", "Q"])


def _without_column(axis: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in axis.items() if name != "column"}


def _labelled_axis(choice: Choice, made: Attack) -> None:
    values = ["surgery", choice.choice(TEXTS), choice.choice(["", "Surgery", "guessed", "medicine"])]
    made.spec["axes"] = [{"column": "ward", "values": values, "labels": [choice.choice(TEXTS) for _ in values]}]


def _own_unit(choice: Choice, made: Attack) -> None:
    """A query that looks judged, but for the column of the unit."""
    unit = str(made.spec.get("privacy_unit", "patient"))
    own = choice.choice(
        [
            "visit",
            "TRY_CAST(visit AS VARCHAR)",
            f"concat(TRY_CAST({unit} AS VARCHAR), TRY_CAST(visit AS VARCHAR))",
            "TRY_CAST(day AS VARCHAR)",
        ]
    )
    made.spec["source_sql"] = "sql/query.sql"
    made.query = choice.choice(
        [
            f"SELECT * EXCLUDE ({unit}), {own} AS {unit} FROM source",
            f"SELECT {own} AS {unit}, age, ward, day, visit FROM source",
        ]
    )


def _other_query(choice: Choice, made: Attack) -> None:
    _with_query(choice, made, judged=False)


def _file_as_query(choice: Choice, made: Attack) -> None:
    files = [
        "data/clinic.csv",
        "data/health.parquet",
        "sql/link.sql",
        "store/ledger.sqlite",
        "codes/wards.csv",
        "/etc/hostname",
        "sql",
    ]
    made.spec["source_sql"] = choice.choice([*files, "sql/nothing.sql", "{{ env.FOLDER }}/x.sql"])


def _other_account(choice: Choice, made: Attack) -> None:
    made.spec["account"] = choice.choice(["clinic", "health", "nobody", "*", "HEALTH", "health ", "{{ env.CANARY }}"])


def _other_period(choice: Choice, made: Attack) -> None:
    _with_period(choice, made)
    made.spec["period_column"] = choice.choice(["day", "ward", "patient", "visit", "nothing", "age"])
    if choice.random() < 0.4:
        made.spec["period_format"] = choice.choice(["%Y-%m-%d", "%d/%m/%Y", "%Y", "%"])
    if choice.random() < 0.4:
        made.spec["time_zone"] = choice.choice(
            ["Europe/Brussels", "UTC", "/etc/localtime", "../data/clinic", "Asia/Kolkata"]
        )


def _earlier_name(choice: Choice, made: Attack) -> None:
    made.spec["release"] = choice.choice(["r0", "r1", "r2", "r3", "R1", "../r1", "public", "select"])


def _left_out(choice: Choice, made: Attack) -> None:
    made.spec.pop(choice.choice(sorted(made.spec)))


_CHANGES: Sequence[Callable[[Choice, Attack], None]] = [
    _set("source", *SOURCES),
    _set("source", *SOURCES),
    _other_query,
    _other_query,
    *[_own_unit] * 5,
    _file_as_query,
    *[_list_axis] * 5,
    _odd_axis,
    _labelled_axis,
    _other_account,
    _other_period,
    _earlier_name,
    _left_out,
    _set(
        "privacy_unit",
        "visit",
        "row",
        "ward",
        "PATIENT",
        ["patient"],
        ["patient", "visit"],
        "patient,visit",
        ["person", "visit"],
    ),
    _set(
        "unit_normalise",
        [],
        ["lower"],
        ["trim"],
        ["nfc"],
        ["lower", "trim"],
        ["trim", "lower", "nfc"],
        ["trim", "lower"],
    ),
    _set("neighbours", "add_remove", "substitute", "replace_one", "none"),
    _set("csv_quote", "", "'", '"'),
    _set("csv_delimiter", ",", ";", "\t", "|", "z"),
    _set("decimal_comma", True, False),
    _set("hive", True, False),
    _set("source_table", "main.admissions", "ledger_entry"),
    _set("trusted_sql", True),
    _set("title", *TEXTS, "A plain title", ""),
    _set("owners", ["{{ env.CANARY }}"], ["a.b@c.example", "team:{{ env.CANARY }}"], ["team:statistics"], ["<b>@x.y"]),
    _set("epsilon", 1e-9, 51, "1/7", "0.5", -1, 0, "1e9", 1e-6, ".nan", "{{ env.CANARY }}", True, 3.0000000001),
    _set("max_rows_per_unit", 0, 1, 10**6, 10**9, -1, None, "3", 1.0, 50),
    _set("mechanism", "exact", "dphist_pipeline.mechanisms.geometric", *mechanisms.names()),
    _set("settings", *_SETTINGS),
    _set("max_cells", 1, 10, 10**7),
    _set("publish", "manual", "automatic"),
    _set("first_period", "2026-01-05", "x"),
    _set("schedule", "* * * * *", "{{ env.CANARY }}"),
    _set("release_delay_days", 0, 36_500, -1),
    _set("store", "elsewhere"),
    _set("ledger", {"allow": "data/secret.parquet"}),
]
