"""Changes of single fields of a spec, as an attacker would make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attack_queries import SOURCES
from spec_parts import SETTINGS, Attack, Choice, any_axis, with_period, with_query

from dphist_pipeline import mechanisms


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


NAMES = [
    *(
        "estimate",
        "count",
        "patient",
        "Q",
        "unbiased_estimate",
        "ci_lower",
        "group_id",
        "release",
        "period",
        "revision",
    ),
    *(
        "cell_number",
        "whole_count",
        "basis",
        "note",
        "cells",
        "reliability",
        "capped",
        "noise_error",
        "records",
        "cube",
    ),
    *("period_start", "is_latest", "catalog", "dph_x", "x_all", "select", "a" * 63, "a" * 64, "zähler", "TO_DECIDE"),
]
# Categories that a reader could take for something else.
CATEGORIES = [
    *("other", "Other", "OTHER", "null", "NULL", "NaN", "true", "0", "-1", "1e5", "2026-10-05", "a,b", "a;b", "a\tb"),
    *("=1+1", "@x", "+x", "-x", "a/b", "../a", "a'b", "'", '"', "`", "\\", "a|b", "{x}", "{{x}}", "%s", "$1", "<b>"),
    *(
        "\u200b",
        "a\u202eb",
        "e\u0301",
        "\u00e9",
        "\U0001f600",
        "\x00",
        "\x1b[31m",
        "\n",
        "x" * 200,
        "x" * 201,
        "TO_DECIDE",
    ),
]


def _strange_categories(choice: Choice, made: Attack) -> None:
    values = ["surgery", *choice.sample(CATEGORIES, choice.randint(1, 3))]
    made.spec["axes"] = [{"column": "ward", "values": values, "other": choice.random() < 0.5}]
    if choice.random() < 0.3:
        made.spec["axes"][0]["levels"] = {choice.choice(NAMES): [choice.choice(CATEGORIES) for _ in values]}


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
        {"column": choice.choice(columns), **_without_column(any_axis(choice, choice.choice(["age", "ward", "day"])))}
    ]
    if choice.random() < 0.4:
        made.spec["axes"][0]["name"] = choice.choice([*TEXTS, *NAMES])


def _without_column(axis: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in axis.items() if name != "column"}


def _labelled_axis(choice: Choice, made: Attack) -> None:
    values = ["surgery", choice.choice(TEXTS), choice.choice(["", "Surgery", "guessed", "medicine"])]
    made.spec["axes"] = [{"column": "ward", "values": values, "labels": [choice.choice(TEXTS) for _ in values]}]


def _own_unit(choice: Choice, made: Attack) -> None:
    """A query that looks judged, but for the column of the unit."""
    unit = made.units[-1]
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
    with_query(choice, made, judged=False)


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
    made.spec["account"] = choice.choice(
        ["clinic", "health", "pairs", "nobody", "*", "HEALTH", "health ", "{{ env.CANARY }}"]
    )


def _other_period(choice: Choice, made: Attack) -> None:
    with_period(choice, made)
    made.spec["period_column"] = choice.choice(["day", "ward", "patient", "visit", "nothing", "age"])
    if choice.random() < 0.4:
        made.spec["period_format"] = choice.choice(["%Y-%m-%d", "%d/%m/%Y", "%Y", "%"])
    if choice.random() < 0.4:
        made.spec["time_zone"] = choice.choice(
            ["Europe/Brussels", "UTC", "/etc/localtime", "../data/clinic", "Asia/Kolkata"]
        )


def _around(choice: Choice, made: Attack) -> None:
    made.around = choice.choice(
        [
            {"type": "dphist_pipeline.LocalCollection"},
            {"type": "{{ env.CANARY }}"},
            {"template_vars_module": ".office"},
            {"requirements": {"env": ["CANARY"]}},
            {"post_processing": {"assets": [{"target": "*", "attributes": {"tags": {"x": "{{ env.CANARY }}"}}}]}},
            {"{{ env.CANARY }}": 1},
        ]
    )


def _spelled(choice: Choice, made: Attack) -> None:
    made.spelled = choice.choice([{"neighbours": "neighbors"}, {"epsilon": "Epsilon"}, {"release": "name"}])


def _earlier_name(choice: Choice, made: Attack) -> None:
    made.spec["release"] = choice.choice(["r0", "r1", "r2", "r3", "R1", "../r1", "public", "select"])


def _left_out(choice: Choice, made: Attack) -> None:
    made.spec.pop(choice.choice(sorted(made.spec)))


CHANGES: Sequence[Callable[[Choice, Attack], None]] = [
    _set("source", *SOURCES),
    _set("source", *SOURCES),
    _other_query,
    _other_query,
    *[_own_unit] * 5,
    _file_as_query,
    *[_list_axis] * 5,
    _odd_axis,
    _labelled_axis,
    *[_strange_categories] * 2,
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
    _set("thousands", ".", ",", " ", "'"),
    _set("hive", True, False),
    _set("source_table", "main.admissions", "ledger_entry"),
    _set("trusted_sql", True),
    _set("title", *TEXTS, "A plain title", ""),
    _set("owners", ["{{ env.CANARY }}"], ["a.b@c.example", "team:{{ env.CANARY }}"], ["team:statistics"], ["<b>@x.y"]),
    _set("epsilon", 1e-9, 51, "1/7", "0.5", -1, 0, "1e9", 1e-6, ".nan", "{{ env.CANARY }}", True, 3.0000000001),
    _set("max_rows_per_unit", 0, 1, 10**6, 10**9, -1, None, "3", 1.0, 50),
    _set("mechanism", "exact", "dphist_pipeline.mechanisms.geometric", *mechanisms.names()),
    _set("settings", *SETTINGS),
    _set("max_cells", 1, 10, 10**7),
    _set("quality", {}, {"share": "1/3", "rows": 60}, {"rows": 2}, {"by": ["{{ env.CANARY }}"]}, {"share": 1}, True),
    _set("tables", {"all": 1}, {"all": 4}, {"list": [["nothing"]]}, {"invariants": "data/secret.parquet"}, {}, []),
    _set("week_starts", "sunday", "monday", "{{ env.CANARY }}"),
    _set("quarter_starts", "april", "october", "x"),
    _set("deps", ["raw/x"], ["{{ env.CANARY }}"], [], ["../x"]),
    _set("require", "files", "partitions", "none", "{{ env.CANARY }}"),
    _set("automation", "eager", "on_cron", "{{ env.CANARY }}"),
    _set("freshness", 0, 3, -1),
    _set(
        "translation", {"key": "a/b"}, {"key": "{{ env.CANARY }}"}, {"tags": {"dp/x": "y"}}, {"description": "$CANARY"}
    ),
    _set("store_resource", "office", "{{ env.CANARY }}"),
    _set("engine", "duckdb", "spark", "{{ env.CANARY }}"),
    _set("{{ env.CANARY }}", 1),
    _set("for_each", {"x": [1, 2]}, {"env": ["CANARY"]}, {"x": "{{ env.CANARY }}"}, {"x": []}),
    _around,
    _spelled,
    _set("publish", "manual", "automatic"),
    _set("first_period", "2026-01-05", "x"),
    _set("last_period", "2026-01-05", "x"),
    _set("schedule", "* * * * *", "{{ env.CANARY }}"),
    _set("release_delay_days", 0, 36_500, -1),
    _set("store", "elsewhere"),
    _set("ledger", {"allow": "data/secret.parquet"}),
]
