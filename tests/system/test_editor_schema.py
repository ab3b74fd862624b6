"""The schema for editors and the spec's model, compared field by field and type by type.

For every field there is a value that the spec takes. Of each type of JSON many values are written into the field: the
schema takes all that the spec takes, and it takes no value of a type of which the spec takes none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from declared_lists import below
from jsonschema import Draft202012Validator

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import _editor_schema
from dphist_pipeline.spec.mistakes import SpecError

WARD = {"column": "ward", "values": ["surgery", "medicine"]}
BASE: dict[str, Any] = {
    **{"release": "wards", "source": "data/*.parquet", "privacy_unit": "patient", "max_rows_per_unit": 2},
    **{"neighbours": "add_remove", "epsilon": 0.5, "account": "health", "mechanism": "geometric", "axes": [WARD]},
}
WEEKS = {"period": "week", "period_column": "day"}
FAMILY: dict[str, Any] = {
    "mechanism": "tables",
    "axes": [WARD, {"column": "age", "edges": [0, 18, 65]}],
    "tables": {"all": 1},
}
DERIVED: list[dict[str, Any]] = [
    {"column": "age", "years_between": ["born", "day"]},
    {"column": "age", "days_between": ["born", "day"]},
    {"column": "age", "part": "hour", "of": "day"},
    {"column": "age", "first_letters": 3, "of": "code"},
    {"column": "age", "first_of": [{"column": "day", "format": "iso"}, {"column": "noted", "format": "%d.%m.%Y"}]},
]
KEPT: list[dict[str, Any]] = [
    *({"column": "age", "is": ["1"]}, {"column": "age", "from": 0, "to": 1.5}, {"column": "age", "from": "1/3"}),
    {"column": "age", "to": "2026-01-05"},
]
RATE: dict[str, Any] = {"name": "rate", "rate": {"population": "codes/people.csv", "per": 1000}, "by": ["ward"]}
FIGURES: list[dict[str, Any]] = [
    *(RATE, {"name": "part", "share": {"ward": ["surgery"]}}, {"name": "mean_age", "mean": "age"}),
    {"name": "mean_age", "mean": {"axis": "age", "low": 0}, "by": ["ward"]},
]
# A right value of each field, and what it needs beside it.
FIELDS: dict[str, list[tuple[Any, dict[str, Any]]]] = {
    "source": [("data/*.csv", {})],
    "csv_delimiter": [(";", {}), ("\t", {})],
    "csv_quote": [('"', {})],
    "csv_encoding": [("windows-1252", {}), ("latin-1", {})],
    "source_table": [("clinic.visits", {"source": "data/visits.duckdb"}), (None, {})],
    "hive": [(True, {})],
    "decimal_comma": [(True, {})],
    "thousands": [(",", {}), (".", {"decimal_comma": True}), (None, {})],
    "privacy_unit": [("row", {"max_rows_per_unit": 1}), (["hospital", "patient"], {})],
    "unit_normalise": [(["trim", "lower", "nfc"], {})],
    "deps": [(["raw/visits"], {})],
    "required_checks": [(["raw/visits:complete"], {"deps": ["raw/visits"], "require": "checks"}), ([], {})],
    "require": [("partitions", {"deps": ["raw/visits"]}), ("none", {})],
    "engine": [("spark", {})],
    "release": [("visits", {})],
    "title": [("Visits", {})],
    "counted": [("visits", {})],
    "unit_label": [("patient", {})],
    "language": [("de", {}), (None, {})],
    "show_below": [(10, {}), (None, {})],
    "trusted_sql": [(True, {"source_sql": "query.sql"})],
    "source_sql": [("query.sql", {})],
    "derive": [([form], {}) for form in DERIVED],
    "keep": [([condition], {}) for condition in KEPT],
    "max_rows_per_unit": [(3, {})],
    "neighbours": [("substitute", {}), ("replace_one", {})],
    "epsilon": [("1/3", {}), (2, {})],
    "account": [("other", {})],
    "mechanism": [("boost", {})],
    "settings": [({}, {})],
    "max_cells": [(100, {})],
    "tables": [({"list": [["ward"]]}, FAMILY), (None, {})],
    "axes": [([WARD], {})],
    "take": [("one_per_cell", {})],
    "quality": [({"rows": 10}, {})],
    "figures": [([RATE], {}), ([], {})],
    "period": [(length, {"period_column": "day"}) for length in ("week", "month", "quarter", "year")],
    "period_column": [("day", WEEKS), (None, {})],
    "period_format": [("%d/%m/%Y", WEEKS)],
    "files_before": [(1, {**WEEKS, "source": "data/{period}.csv"})],
    "files_after": [(1, {**WEEKS, "source": "data/{period}.csv"})],
    "week_starts": [("sunday", {})],
    "quarter_starts": [("april", {})],
    "time_zone": [("Europe/Paris", {})],
    "release_delay_days": [(7, {})],
    "first_period": [("2026-01-05", WEEKS)],
    "last_period": [("2026-01-05", WEEKS)],
    "schedule": [("0 6 * * MON", {})],
    "automation": [("eager", {**WEEKS, "first_period": "2026-01-05"})],
    "freshness": [(3, WEEKS)],
    "publish": [("manual", {}), ("if_plausible", {})],
    "store_resource": [("office", {})],
    "translation": [({"group": "health"}, {})],
    "owners": [(["team:statistics", "a.b@c.example"], {})],
}
BINNED = {"column": "age", "start": 0, "stop": 90, "width": 1}
CALENDAR = {"column": "day", "calendar": "day", "start": "2026-01-05", "stop": "2026-01-12"}
BANDED = {"column": "age", "bands": {"0-9": 0, "10 or more": 10}}
AMOUNT = {"column": "cost", "amount": [0, 20000]}
LISTED = {"column": "ward", "values_from": "codes.csv", "values_column": "code"}
OF_UNIT = {"name": "visit", "of_unit": "number", "within": "period", "start": 1, "stop": 5, "width": 1}
SHARED = {"column": ["other_column"], "name": ["another"], "other": [True], "label": ["a word"]}
# The same of axes, on top of the axis that stands first.
AXES: list[tuple[dict[str, Any], dict[str, list[Any]]]] = [
    (
        BINNED,
        {
            **SHARED,
            "start": ["1e1", 10.0, -10],
            "stop": [100, 9.0, "1/1"],
            "width": [5, 0.5, "0.5"],
            "closed": ["right"],
        },
    ),
    (BINNED, {name: [True] for name in ("below", "above", "whole")} | {"unit": ["days", "hours", None]}),
    (
        {**BINNED, "below": True, "above": True},
        {"lowest": [-1000, -1000.5, "-1e3", None], "highest": [1000, 1000.5, "1e3", None]},
    ),
    (BINNED, {"edges": [None]}),
    ({"column": "age"}, {"edges": [[0, 0.5, "1e3"], ["0", 0.5], [0.5, 1]]}),
    ({"column": "age", "edges": [0, 1]}, {name: [None] for name in ("start", "stop", "width")}),
    (CALENDAR, {**SHARED, "calendar": ["day"], "start": ["2026-01-06"], "stop": ["2026-01-13"]}),
    (
        BANDED,
        {
            **SHARED,
            "bands": [{"0-9": 0, "ten": "10", "20+": 20.5}, {"0-9": "0", "10+": "10"}],
            "whole": [True],
            "tidy": [["trim"]],
        },
    ),
    (BANDED, {"stop": [20, "20.5", None]}),
    (OF_UNIT, {"name": ["another"], "within": ["30 days"], "stop": [6, "7"], "other": [True], "above": [True]}),
    (
        AMOUNT,
        {
            **{name: values for name, values in SHARED.items() if name != "other"},
            "amount": [[-1, "0.5"], [1e3, 2000], ["0", "0.5"]],
            "measured_in": ["EUR", ""],
        },
    ),
    (CALENDAR, {"format": ["%Y%m%d"]}),
    (WARD, {**SHARED, "values": [["1", "2"], {"1": "one", "2": None}], "levels": [{"region": ["north", "south"]}]}),
    (WARD, {"labels": [["Surgery", None]]}),
    (WARD, {"tidy": [["trim", "lower", "nfc"]], "spellings": ["spellings.csv", {"7": WARD["values"][0]}]}),
    (LISTED, {"values_from": ["codes.csv"], "values_column": ["region"], "label_column": ["word"], "other": [True]}),
    (LISTED, {"parent_column": ["parent"], "levels": [["region"]]}),
]
QUALITY = {"share": ["1/10", 0.25], "rows": [20], "by": [["ward"]]}
TABLES = {
    **{"list": [[["ward", "age"]]], "all": [2]},
    **{name: [{"ward": 2}, {"ward": 0.5}, {"ward": "2"}] for name in ("weights", "targets")},
    "invariants": ["figures.csv", ["figures.csv"]],
}
TRANSLATION = {
    **{"key": ["stats/visits"], "group": ["health"], "tags": [{"domain": "health"}], "owners": [["team:data"]]},
    "description": ["For nurses"],
}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 7, -3, 10**12, 0.5, -2.5, "", "x", "a b", "2026-01-05", "12", "'", "{", "x" * 201),
    *([], {}, [None, None], ["x", "y"], [1, 2], [True, False], [["x"], ["y"]], [{"x": 1}, {"x": 2}]),
    *({"x": None}, {"x": 1}, {"x": "y"}, {"x": True}, {"x": ["y"]}, {"x": {"y": 1}}, {"ward": None}, {"ward": True}),
]
# What these mappings hold depends on another field; and of a figure's three, two may be null where the third is not.
LOOSE = {("settings",), *(("figures", 0, kind) for kind in ("rate", "share", "mean"))}

Place = tuple[str | int, ...]


def cases() -> Iterator[tuple[Place, dict[str, Any], list[Any]]]:
    """A field by its place, a spec in which it is right, and values."""
    for name, right in FIELDS.items():
        for value, others in right:
            yield (name,), {**BASE, **others, name: value}, [value]
    for axis, fields in AXES:
        for name, values in fields.items():
            yield from (
                (
                    ("axes", 0, name),
                    {
                        **BASE,
                        **(WEEKS if "of_unit" in axis else {}),
                        "axes": [{**axis, name: value}, *([WARD] if "amount" in axis else [])],
                    },
                    [value],
                )
                for value in values
            )
    for within, judged in (("quality", QUALITY), ("tables", TABLES), ("translation", TRANSLATION)):
        around = {**BASE, **(FAMILY if within == "tables" else {})}
        first = {"all": 1} if within == "tables" else {}
        yield (within,), {**around, within: first}, []
        for name, values in judged.items():
            yield from (((within, name), {**around, within: {**first, name: value}}, [value]) for value in values)
    for within, items in (("derive", DERIVED), ("keep", KEPT)):
        for item in items:
            for name, value in item.items():
                yield (within, 0, name), {**BASE, within: [item]}, [value]
    for item in FIGURES:
        for name, value in item.items():
            yield ("figures", 0, name), {**BASE, "axes": [WARD, BINNED], "figures": [item]}, [value]
    yield ("tables", "all"), {**BASE, **FAMILY, "tables": {"list": [["ward"]]}}, [None]


def kind_of(value: object) -> str:
    """The type of JSON, of lists and mappings with that of their first item."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return f"{type(value).__name__} {kind_of(inner[0]) if inner else ''}" if inner is not None else type(value).__name__


def put(attributes: dict[str, Any], place: Place, value: object) -> dict[str, Any]:
    changed = deepcopy(attributes)
    inside: Any = changed
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    return changed


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "query.sql").write_text("SELECT patient, ward FROM source")
    (folder / "codes.csv").write_text("code,region,word,parent\nc1,r1,one,\nc2,r2,two,\n")
    (folder / "spellings.csv").write_text(f"spelling,value\n7,{WARD['values'][0]}\n")
    (folder / "figures.csv").write_text("level,value,rows\nward,surgery,10\nward,medicine,20\n")
    return folder


def refusal(attributes: dict[str, Any], base: Path) -> str:
    try:
        ReleaseSpec.from_attributes(attributes, base, code_lists=below(base))
    except SpecError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_the_schema_and_the_spec_take_the_same_types_in_every_field(base: Path) -> None:
    forms = ReleaseSpec.editor_schema()["properties"]
    judges = {name: Draft202012Validator(form) for name, form in forms.items()}
    taken, shown = defaultdict[tuple[Place, str], set[str]](set), defaultdict[tuple[Place, str], set[str]](set)
    stricter = []
    for place, attributes, right in cases():
        assert refusal(attributes, base) == "", place
        for value in [*right, *VALUES]:
            changed, key = put(attributes, place, value), (place, kind_of(value))
            is_right, is_shown = not refusal(changed, base), judges[place[0]].is_valid(changed[place[0]])
            stricter += [(place, value)] * (is_right and not is_shown)
            taken[key] |= {repr(value)} if is_right else set()
            shown[key] |= {repr(value)} if is_shown else set()
    assert stricter == [], "the schema refuses what the spec takes"
    looser = {key: values for key, values in shown.items() if values and not taken[key] and key[0] not in LOOSE}
    assert looser == {}, "the schema takes a type of which the spec takes nothing"


def test_a_field_whose_form_nobody_said_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {name: ReleaseSpec.model_fields[name] for name in ("title", "epsilon")}
    with pytest.raises(ValueError, match="without a form for editors, or forms without a field: epsilon"):
        _editor_schema._forms(fields, {})
    with pytest.raises(ValueError, match="forms without a field: epsilom"):
        _editor_schema._forms(fields, {"epsilon": {"type": "number"}, "epsilom": {"type": "number"}})
