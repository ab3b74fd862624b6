"""One description of how a source is read: its options, its words and its facts go with its fields."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from shlex import split
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.reading import OPTIONS, Reading
from dphist_pipeline.cli.operate.ledger import ReadingOptions, with_reading_options
from dphist_pipeline.releasing.store_decisions import StoreDecisions
from dphist_pipeline.spec.sources import RecordSource

CSV = Reading("data/*.csv", None, "csv", unit=("patient_id",), lines=True)
# Another value of each option than its default.
OTHERS: dict[str, Any] = {
    **{"source_table": "visits", "csv_delimiter": "\t", "csv_quote": "", "csv_encoding": "windows-1252", "hive": True},
    **{"decimal_comma": True, "thousands": " ", "unit_normalise": ("trim_all", "fold")},
}
# As entries of version 0.3.0 hold them.
OLD_FACTS = (
    '{"address":"data/*.csv","csv_delimiter":",","csv_quote":"\\"","decimal_comma":false,"folder":null,"format":"csv",'
    '"hive":false,"lines":true,"table":null,"unit":["patient_id"],"unit_kinds":[],"unit_normalise":[]}'
)


def as_read(monkeypatch: pytest.MonkeyPatch, options: str, unit: str) -> Reading:
    """The reading that a command line gives."""
    app = typer.Typer()
    readings: list[Reading | None] = []

    def checked(self: object, base: Path, account: str, also_of: object, source: str, **ways: Any) -> Reading:
        return RecordSource.model_validate({"source": source, **ways}, context={"base": base}).reading

    @app.command()
    @with_reading_options
    def command(read: ReadingOptions) -> None:
        readings.append(read.reading(StoreDecisions(None, None), "health", unit))  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(StoreDecisions, "reading", checked)
        result = CliRunner().invoke(app, split(options), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (reading,) = readings
    assert reading is not None
    return reading


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_a_refusal_writes_give_the_reading_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = name == "source_table"
    asked = replace(CSV, address="a.duckdb", format="duckdb", csv_quote="", lines=False) if database else CSV
    asked = replace(asked, **{OPTIONS[name].name: OTHERS[name]})
    assert replace(as_read(monkeypatch, asked.options, "patient_id"), folder=None) == asked
    assert asked.options != replace(asked, **{OPTIONS[name].name: OPTIONS[name].default}).options


@pytest.mark.parametrize("name", OPTIONS)
def test_an_operator_reads_each_way_in_words_and_each_difference(name: str) -> None:
    way = OPTIONS[name].name
    other = replace(CSV, **{way: OTHERS[name]})
    assert other.in_words != CSV.in_words and other.called != CSV.called
    assert CSV.differences(other) == [way]
    assert CSV.difference_in_words(way, other).startswith(f"{way} is ")


def test_entries_of_before_are_read_and_keep_their_bytes() -> None:
    assert canonical_json(CSV.facts()) == OLD_FACTS
    assert Reading.of_facts(CSV.facts()) == CSV
    later = replace(CSV, csv_encoding="latin-1", thousands=".")
    assert set(later.facts()) - set(CSV.facts()) == {"csv_encoding", "thousands"}
    assert Reading.of_facts(later.facts()) == later
    with pytest.raises(ValueError):
        Reading.of_facts({**CSV.facts(), "csv_encoding": "utf-8"})


def test_every_field_that_a_spec_writes_is_an_option() -> None:
    written = set(RecordSource.model_fields) - {"source", "privacy_unit"}
    assert written == set(OPTIONS)
    assert {field.name for field in fields(Reading)} - {field.name for field in OPTIONS.values()} == {
        *("address", "folder", "format", "unit", "unit_kinds", "lines"),
    }
