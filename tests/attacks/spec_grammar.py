"""A grammar of whole releases as an attacker would write them: specs, queries and code lists that look valid.

Every field is drawn from values that an attacker would choose. Most of a spec stays as its account allows it, so that
many specs get as far as a release. Nothing here holds a canary: what is found of one was told by the office.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from attack_queries import SOURCES, any_query, judged_query

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
    made.query = judged_query(choice, str(unit)) if judged else any_query(choice, str(unit))


# Changes of single fields.


def _set(name: str, *values: Any) -> Callable[[Choice, Attack], None]:
    def change(choice: Choice, made: Attack) -> None:
        made.spec[name] = choice.choice(values)

    return change


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
    _set("quality", {}, {"share": "1/3", "rows": 60}, {"rows": 2}, {"by": ["{{ env.CANARY }}"]}, {"share": 1}, True),
    _set("publish", "manual", "automatic"),
    _set("first_period", "2026-01-05", "x"),
    _set("schedule", "* * * * *", "{{ env.CANARY }}"),
    _set("release_delay_days", 0, 36_500, -1),
    _set("store", "elsewhere"),
    _set("ledger", {"allow": "data/secret.parquet"}),
]
