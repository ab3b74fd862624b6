"""Digests of specs stay: one that moved would ask for a revision of every period that was charged by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dphist_pipeline as dph

RECORDED = Path(__file__).with_name("spec_digests.json")
AGE: dict[str, Any] = {"column": "age", "start": 0, "stop": 64, "width": 1, "above": True}
WARD: dict[str, Any] = {"column": "ward", "values": ["a", "b"], "other": True}
DAY: dict[str, Any] = {"column": "day", "calendar": "month", "start": "2026-01-01", "stop": "2027-01-01"}
PLAIN: dict[str, Any] = {
    **{"release": "r", "source": "data/*.parquet", "privacy_unit": "p", "max_rows_per_unit": 2, "epsilon": "1/2"},
    **{"account": "a", "neighbours": "add_remove", "mechanism": "geometric", "axes": [AGE]},
}
WEEKLY = {"period": "week", "period_column": "day"}
CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "each row a unit": {"privacy_unit": "row", "max_rows_per_unit": ...},
    "two columns name a unit": {"privacy_unit": ["p", "q"], "unit_normalise": ["trim", "lower", "nfc"]},
    "substitute": {"neighbours": "substitute"},
    "edges": {"axes": [{"column": "dose", "edges": [0, 0.1, 1.5], "closed": "right", "below": True, "other": True}]},
    "categories": {"axes": [WARD]},
    "two axes": {"axes": [AGE, WARD]},
    "calendar": {"axes": [DAY]},
    "calendar of text": {"axes": [{**DAY, "format": "%d.%m.%Y"}]},
    "numbers in categories": {"axes": [{"column": "code", "values": ["1", "2"]}]},
    "levels": {"axes": [{**WARD, "levels": {"part": ["x", "y"]}}]},
    "week": WEEKLY,
    "week from Sunday": {**WEEKLY, "week_starts": "sunday"},
    "month in a zone": {"period": "month", "period_column": "day", "time_zone": "America/New_York"},
    "quarter": {"period": "quarter", "period_column": "day", "quarter_starts": "april"},
    "year of text": {"period": "year", "period_column": "day", "period_format": "%d/%m/%Y"},
    "files of months": {"source": "data/{year}-{month}.parquet", "period": "month", "period_column": "day"},
    "folders": {"source": "data/*/*.parquet", "hive": True},
    "database": {"source": "office.duckdb", "source_table": "main.t"},
    "server": {"source": "postgres:{{ env.HOME }}", "source_table": "t"},
    "bucket": {"source": "s3://bucket/x/*.parquet"},
    "quality": {"quality": {"share": "1/20", "rows": 10}},
    "published by hand": {"publish": "manual"},
    "hidden below": {"show_below": 10},
    "csv without quotes": {"source": "x.csv", "csv_quote": ""},
    "csv with quotes": {"source": "x.csv", "csv_quote": '"'},
    "csv of semicolons": {"source": "x.csv.gz", "csv_delimiter": ";", "csv_quote": '"', "decimal_comma": True},
    "csv of windows": {"source": "x.csv", "csv_quote": '"', "csv_encoding": "windows-1252"},
    **{
        f"by {name}": {"mechanism": name}
        for name in (
            *(
                "adaptive",
                "adaptive_boxes",
                "ahp",
                "bayes",
                "boost",
                "cnfg",
                "dawa",
                "dphr",
                "grouping_smoothing",
                "ihp",
            ),
            *("kd_hierarchy", "multiscale", "noise_first", "p_hpartition", "privelet", "sreb_gca", "structure_first"),
            *("workload",),
        )
    },
    "dpcube of two axes": {"mechanism": "dpcube", "axes": [AGE, WARD]},
    "adaptive_grid of two axes": {"mechanism": "adaptive_grid", "axes": [AGE, {**AGE, "column": "b"}]},
    "settings": {"mechanism": "noise_first", "settings": {"penalty": "bic"}},
    "epsilon of a float": {"epsilon": 0.1},
    "derived columns": {
        "derive": [
            {"column": "years", "years_between": ["born", "day"]},
            {
                "column": "noted",
                "first_of": [{"column": "day", "format": "iso"}, {"column": "d", "format": "%d.%m.%Y"}],
            },
        ],
        "keep": [{"column": "years", "from": "0.50", "to": 120}, {"column": "kind", "is": ["x"]}],
    },
}


def digest_of(folder: Path, changes: dict[str, Any]) -> str:
    attributes = {name: value for name, value in {**PLAIN, **changes}.items() if value is not ...}
    path = folder / "spec.yaml"
    path.write_text(f"type: dphist_pipeline.HistogramRelease\nattributes: {json.dumps(attributes)}\n")
    return dph.load_spec(path).digest


@pytest.mark.parametrize("name", CHANGES)
def test_the_digest_of_a_spec_is_the_one_that_was_recorded(name: str, tmp_path: Path) -> None:
    """Recorded by the program of 28 November 2026. Words for ways that it had then, such as `rfc`, change none."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert digest_of(tmp_path, CHANGES[name]) == recorded[name]
    ways = {"": "none", '"': "rfc"}
    if (quote := CHANGES[name].get("csv_quote")) is not None:
        assert digest_of(tmp_path, {**CHANGES[name], "csv_quote": ways[quote]}) == recorded[name]
    if "period_column" in CHANGES[name] and "period_format" not in CHANGES[name]:
        assert digest_of(tmp_path, {**CHANGES[name], "period_format": "iso"}) == recorded[name]


def test_fifty_specs_were_recorded() -> None:
    assert len(CHANGES) >= 50 and CHANGES.keys() == json.loads(RECORDED.read_text(encoding="utf-8")).keys()
