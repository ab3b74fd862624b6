"""Parts of whole releases as an attacker would write them: fields, axes, settings, queries and periods."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from attack_queries import any_query, judged_query

from dphist_pipeline import mechanisms
from dphist_pipeline.errors import DphistError

Choice = random.Random

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
        spec: its fields, with all that a loop fills in.
        query: the content of `sql/query.sql`, where the spec names that.
        words: more of `dphist release`.
        variable: fields that the file fills in from a loop of one item or of two.
        others: how many more releases the file makes.
        spelled: fields by other names, and more of the file beside its attributes.
    """

    spec: dict[str, Any]
    query: str = ""
    words: list[str] = field(default_factory=list)
    variable: tuple[str, ...] = ()
    others: int = 0
    spelled: dict[str, str] = field(default_factory=dict)
    around: dict[str, Any] = field(default_factory=dict)

    @property
    def release(self) -> str:
        """The name of the release."""
        return str(self.spec.get("release", "nothing"))

    @property
    def named(self) -> str:
        """What follows the name of the file, which may make several releases."""
        return f"#{self.release}" if self.others else ""

    @property
    def document(self) -> dict[str, Any]:
        """The content of the spec's file."""
        fields = dict(self.spec)
        if self.variable:
            looped = {name: fields[name] for name in self.variable if name in fields}
            items = [looped, *({**looped, "release": f"{self.release}_{more}"} for more in range(self.others))]
            fields |= {name: f"{{{{ one.{name} }}}}" for name in looped} | {"for_each": {"one": items}}
        attributes = {self.spelled.get(name, name): value for name, value in fields.items()}
        return {"type": "dphist_pipeline.HistogramRelease", "attributes": attributes, **self.around}

    @property
    def units(self) -> list[str]:
        """The columns of the unit, as a query may name them."""
        unit = self.spec.get("privacy_unit", "patient")
        return [str(column).replace("row", "visit") for column in (unit if isinstance(unit, list) and unit else [unit])]


def plain_fields(choice: Choice) -> dict[str, Any]:
    """Fields that are a spec writer's to choose."""
    made: dict[str, Any] = {
        "max_rows_per_unit": choice.choice([1, 1, 2, 3, 7, 40]),
        "epsilon": choice.choice(["1e-6", 0.001, "1/3", 0.5, 1, "7/2", 10, 50, "0.017", 2]),
        "axes": [
            any_axis(choice, column)
            for column in choice.sample(["age", "ward", "day", "visit"], choice.choice([1, 1, 2]))
        ],
        "mechanism": "geometric",
    }
    if choice.random() < 0.4:
        made["mechanism"] = choice.choice(mechanisms.names())
        fitting = [some for some in SETTINGS if _takes(made["mechanism"], some)]
        made["settings"] = choice.choice(fitting) if fitting and choice.random() < 0.6 else {}
    return made


def _takes(mechanism: str, settings: dict[str, Any]) -> bool:
    try:
        mechanisms.build(mechanism, settings)
    except DphistError:
        return False
    return True


SETTINGS: list[dict[str, Any]] = [
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
    {"objective": "relative"},
    {"workload": "windows", "length": 2},
    {"workload": "prefixes"},
    {"workload": "boxes"},
    {"workload": "file", "queries": "codes/queries.csv"},
    {"total_share": "1/3"},
    {"estimation": "least_squares", "threshold": "pruned"},
    {"search": "exact", "eta": 0},
    {"joining": 100, "fading": "1e-9"},
]


def any_axis(choice: Choice, column: str) -> dict[str, Any]:
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
            {"calendar": "week", "start": "2026-09-28", "stop": "2026-11-02"},
            {"calendar": "year", "start": "2020-01-01", "stop": "2028-01-01"},
            {"values": ["2026-10-05", "2026-10-07"]},
        ],
    }
    made = {"column": column, "other": choice.random() < 0.5, **choice.choice(kinds[column])}
    if column in ("age", "visit"):
        made |= {"below": choice.random() < 0.5, "above": choice.random() < 0.5}
    return made


def with_declared(choice: Choice, made: Attack) -> None:
    """Derived columns, some named as those of the unit or of the source; and conditions on rows."""
    unit = made.units[0]
    taken = choice.random() < 0.25
    name = choice.choice([unit.lower(), unit.upper(), "age", "ward", "visit", "rowid"]) if taken else "made"
    inputs = ["age", "ward", "day", "visit", unit, "made", "secret", "{{ env.CANARY }}", 'a"b', "{0}"]
    forms: list[dict[str, Any]] = [
        {"years_between": choice.sample(inputs, 2)},
        {"days_between": ["day", choice.choice(inputs)]},
        {"part": choice.choice(["year", "weekday", "hour"]), "of": choice.choice(["day", "day", *inputs])},
        {"first_letters": choice.choice([1, 3, 100]), "of": choice.choice(["ward", unit, *inputs])},
        {"first_of": [{"column": choice.choice(inputs), "format": "%Y"}, {"column": "day"}]},
    ]
    made.spec["derive"] = [{"column": name, **choice.choice(forms)}]
    conditions: list[dict[str, Any]] = [
        *({"column": "age", "from": 0, "to": 73.8}, {"column": name, "from": 1}, {"column": "ward", "is": ["surgery"]}),
        *(
            {"column": unit, "is": ["guessed"]},
            {"column": "day", "from": "2026-10-05"},
            {"column": name, "is": ["gue"]},
        ),
    ]
    if choice.random() < 0.5:
        made.spec["keep"] = [choice.choice(conditions)]
    if choice.random() < 0.7:
        axes: list[dict[str, Any]] = [
            {"edges": [-1e14, 0, 1, 12, 60, 1e14]},
            {"values": ["gue", "sur", "s", "1"], "other": True},
            {"calendar": "year", "start": "2020-01-01", "stop": "2028-01-01"},
        ]
        made.spec["axes"] = [{"column": name, "name": "made", **choice.choice(axes)}]
    if choice.random() < 0.1:
        made.spec["privacy_unit"] = choice.choice([name, [unit, name]])


def with_period(choice: Choice, made: Attack) -> None:
    made.spec |= {"period": choice.choice(["month", "month", "week", "quarter", "year"]), "period_column": "day"}
    named = {
        "month": PERIOD,
        "week": choice.choice(["2026-10-05", "2026-W41"]),
        "quarter": "2026-07-01",
        "year": "2025-01-01",
    }
    if choice.random() < 0.8:
        made.words += ["--period", named[made.spec["period"]]]


def with_query(choice: Choice, made: Attack, judged: bool) -> None:
    if choice.random() < 0.2:
        made.spec["source_sql"], made.query = ALLOWED_QUERY_FILE, ""
        return
    made.spec["source_sql"] = "sql/query.sql"
    *others, unit = made.units
    made.query = (
        judged_query(choice, unit, "".join(f"{other}, " for other in others)) if judged else any_query(choice, unit)
    )
