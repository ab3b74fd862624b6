"""A grammar of whole releases as an attacker would write them: specs, queries and code lists that look valid.

Every field is drawn from values that an attacker would choose. Most of a spec stays as its account allows it, so that
many specs get as far as a release. Nothing here holds a canary: what is found of one was told by the office.
"""

from __future__ import annotations

import random

from attacked_accounts import CLINIC, HEALTH, MONTHLY, PAIRS, ROWS
from spec_changes import CHANGES, LISTS
from spec_parts import PERIOD, Attack, Choice, any_axis, plain_fields, with_declared, with_period, with_query

HOW_OFTEN = {
    "query": 0.3,
    "period": 0.25,
    "quality": 0.15,
    "tables": 0.12,
    "workload": 0.04,
    "loop": 0.05,
}
DECLARED_SEED, DECLARED_SHARE = 3000, 0.25


def attack(choice: Choice, number: int) -> Attack:
    """A release of the name `r<number>`: one that its account allows, with some fields drawn from an attacker's."""
    allowed = choice.choice([HEALTH, HEALTH, HEALTH, CLINIC, CLINIC, MONTHLY, PAIRS, ROWS])
    made = Attack({"release": f"r{number}", **allowed.fields, **plain_fields(choice)})
    if allowed is ROWS:
        made.spec.pop("max_rows_per_unit")
    if allowed is MONTHLY:
        made.words = ["--period", PERIOD]
    wanted = {name for name, share in HOW_OFTEN.items() if choice.random() < share}
    if "query" in wanted:
        with_query(choice, made, judged=choice.random() < 0.5)
    if "period" in wanted and allowed is not MONTHLY:
        with_period(choice, made)
    for name, change in {"tables": _with_tables, "workload": _with_workload, "quality": _with_quality}.items():
        if name in wanted:
            change(choice, made)
    for _ in range(choice.choice([0, 0, 0, 0, 1, 1, 1, 1, 2, 3])):
        choice.choice(CHANGES)(choice, made)
    if "loop" in wanted:
        made.variable = ("release", *choice.sample(sorted(made.spec.keys() - {"release"}), 2))
        made.others = choice.choice([0, 0, 1])
    # Drawn apart: the specs by which planted leaks are found stay what they are.
    apart = random.Random(DECLARED_SEED + number)
    if apart.random() < DECLARED_SHARE:
        with_declared(apart, made)
    return made


def _with_tables(choice: Choice, made: Attack) -> None:
    """A family of tables on two axes or three, by levels, with weights, and with public figures."""
    columns = choice.sample(["age", "ward", "day", "visit"], choice.choice([2, 2, 3]))
    axes = [any_axis(choice, column) for column in columns]
    named = [str(axis["column"]) for axis in axes]
    levels = [level for axis in axes for level in axis.get("levels", ())]
    tables: dict[str, object] = {"all": choice.choice([1, 2])} if choice.random() < 0.6 else {}
    if not tables or choice.random() < 0.4:
        every = [*named, *levels]
        tables["list"] = [choice.sample(every, choice.choice([1, 1, 2])) for _ in range(choice.choice([1, 2, 3]))]
    if choice.random() < 0.2:
        # A table of the first axis alone is not always there.
        tables["weights"] = {named[0]: choice.choice([1e-9, 1, 1e6])}
    if choice.random() < 0.2:
        tables["invariants"] = choice.choice(["codes/figures.csv", choice.choice(LISTS)])
        wards = {"column": "ward", "values": ["surgery", "medicine"]}
        axes = [wards if axis["column"] == "ward" else axis for axis in axes]
    if choice.random() < 0.1:
        tables["targets"] = {named[0]: choice.choice([1, 1e12])}
    made.spec |= {"axes": axes, "mechanism": "tables", "tables": tables}
    made.spec.pop("settings", None)


def _with_workload(choice: Choice, made: Attack) -> None:
    """The mechanism whose queries are in a file."""
    queries = choice.choice(["codes/queries.csv", choice.choice(LISTS)])
    made.spec |= {"mechanism": "workload", "settings": {"workload": "file", "queries": queries}}
    made.spec |= {"axes": [{"column": "ward", "values": ["surgery", "medicine"]}]}
    made.spec["axes"].append({"column": "age", "start": 0, "stop": 100, "width": 25})


def _with_quality(choice: Choice, made: Attack) -> None:
    """A quality table of rows that the bound cuts."""
    by_row, bound = made.spec["privacy_unit"] == "row", made.spec.get("max_rows_per_unit", 1)
    quality: dict[str, object] = {"share": choice.choice(["1/20", "1/3", "0.999"])} if choice.random() < 0.6 else {}
    if not by_row:
        quality["rows"] = choice.choice([bound + 1, 45, 60, 400])
        by = [str(axis["column"]) for axis in made.spec["axes"]]
        quality["by"] = choice.sample(by, choice.randrange(min(len(by), 2) + 1))
    made.spec["quality"] = quality
