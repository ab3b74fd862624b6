"""What Dagster shows of publications: numbers over time, checks with numbers, links, resources; nothing of records."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import canary
import dagster as dg
import duckdb
import pytest
from answering.answering_scenario import published_once
from office import WARD, Office
from system.orchestrated import defined, events, key, people_in, said, shown

from dphist_pipeline.answering.cells_beyond_chance import CellsAboveZero
from dphist_pipeline.estimates.notes import CHANCE_LEFT_OUT, CHANCE_NEVER
from dphist_pipeline.integrations.dagster import DphistStore, PublishedTable
from dphist_pipeline.integrations.dagster import _checks as checks_module
from dphist_pipeline.integrations.dagster._checks import AssetCheckOutcome, Totals
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.releasing.releases import Release

pytestmark = [pytest.mark.outside, pytest.mark.draws_alike]

WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
WEEKLY = {
    "period": "week",
    "period_column": "admitted_on",
    "period_format": "iso",
    "first_period": WEEKS[0],
    "epsilon": "2",
}


COST = {"column": "age", "name": "cost", "amount": [0, 100], "measured_in": "EUR"}
OF_PERSONS: list[dict[str, Any]] = [{"take": "one_per_cell"}, {"axes": [WARD, COST]}]


@pytest.mark.parametrize("changes", OF_PERSONS, ids=["take", "amount"])
def test_persons_and_amounts_are_released_and_an_amount_shows_its_figures(
    office: Office, instance: dg.DagsterInstance, changes: dict[str, Any]
) -> None:
    definitions = defined(office.opened(), **changes)
    run = ran(definitions, instance, None)
    told = shown(run, "published").get("figures")
    assert (told is not None) == ("axes" in changes)
    if told is not None:
        records = [record.data for record in told.value.records]
        assert {(record["figure"], record["unit"]) for record in records} >= {("mean_cost", "EUR"), ("rows", "rows")}
        rows = next(record for record in records if record["figure"] == "rows")
        half = (rows["ci_upper"] - rows["ci_lower"]) / 2
        assert shown(run, "published")["cell_half_interval"] == pytest.approx(half, abs=0.1)  # as people read it
        (published,) = [spec for spec in definitions.resolve_all_asset_specs() if spec.key == key("published")]
        assert "by ward? What are the sum and the mean of cost?" in str(published.description)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def ran(definitions: dg.Definitions, instance: dg.DagsterInstance, week: str | None) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_job_def("wards_job")
    run = job.execute_in_process(instance=instance, partition_key=week, raise_on_error=False)
    assert run.success, said(run)
    return run


def checks(run: dg.ExecuteInProcessResult) -> dict[str, tuple[bool, dict[str, Any], str]]:
    """Each check of a run: whether it passed, its numbers, what it said."""
    return {
        found.check_name: (
            found.passed,
            {name: value.value for name, value in found.metadata.items()},
            found.description or "",
        )
        for found in run.get_asset_check_evaluations()
    }


def test_the_page_gets_numbers_to_plot_and_short_markdown_to_unfold(
    office: Office, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = defined(office.opened(), deps=["raw/visits"], require="none")
    found = shown(ran(definitions, instance, None), "published")
    numbers = {name for name, value in found.items() if type(value) in (int, float)}
    wanted = {"total", "total_ci_lower", "total_ci_upper", "total_noise_error", "bytes"}
    assert next(name for name, value in found.items() if type(value) in (int, float)) == "total"
    assert wanted | {"account_spent", "account_left", "cell_half_interval", "dagster/row_count"} <= numbers
    assert (found["epsilon"], found["account_left"], found["cells"]) == ("1/2", 9.5, "21")
    assert found["dagster/row_count"] == 21 and found["bytes"] > 10_000
    for unfolded in ("essence", "overview"):
        assert 0 < len(found[unfolded]) < 1000, "the page folds longer Markdown away"
    # A long path would make the page's table wider than the page, which then cuts off `essence`.
    assert found["card"] == "public/wards/period=all/revision=1/card.html" and "dagster/uri" not in found
    assert str(office.folder) not in repr(found)
    lineage = found["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key.to_user_string(), dep.column_name) for dep in lineage["age_lower"]] == [
        ("raw/visits", "age")
    ]
    monkeypatch.setenv("DPHIST_PUBLIC_URL", "https://office.example/public/")
    found = shown(ran(definitions, instance, None), "published")
    assert found["card"] == "https://office.example/public/wards/period=all/revision=1/card.html"
    assert found["dagster/uri"] == "https://office.example/public/wards/period=all/revision=1/histogram.parquet"
    (published,) = [spec for spec in definitions.resolve_all_asset_specs() if spec.key == key("published")]
    assert "How many rows are there by age, ward" in str(published.description)
    sql = str(published.description).partition("```sql")[2].partition("```")[0]
    attach, *queries = [part for part in sql.split(";") if part.strip()]
    with duckdb.connect() as connection:  # it can be copied
        connection.execute(attach.replace("catalog.duckdb", str(office.store / "public" / "catalog.duckdb")))
        assert [len(connection.execute(query).fetchall()) for query in queries] == [1, 21]


def test_declared_figures_are_a_table_whose_columns_all_lines_have(
    office: Office, instance: dg.DagsterInstance
) -> None:
    office.opened().write_records(people_in({WEEKS[0]: 400, WEEKS[1]: 400}))
    figures = [{"name": "operated", "share": {"ward": "surgery"}}]
    figures.append({"name": "operated_by_age", "share": {"ward": "surgery"}, "by": ["age"]})
    for week in WEEKS[:2]:
        found = shown(ran(defined(office, **WEEKLY, figures=figures), instance, week), "published")
        first, *by_age = [record.data for record in found["figures"].records]
        columns = ["figure", "age_lower", "age_upper", "value", "ci_lower", "ci_upper", "unit", "note"]
        assert [*first] == columns == [column.name for column in found["figures"].schema.columns]
        # All are operated, so noise brings the share above 1 in one of two weeks: the line stays a share.
        assert first["figure"] == "operated" and 0.9 < first["ci_lower"] < first["value"] <= first["ci_upper"] <= 1
        assert len(by_age) > 2 and {line["figure"] for line in by_age} == {"operated_by_age"}
        assert any(line["value"] == "" and "noise" in str(line["note"]) for line in by_age)


def test_totals_are_those_that_the_macro_tells_for_every_kind_of_noise() -> None:
    for period, asked_of in published_once().releases.items():
        made = Release(asked_of.path, read_audit(asked_of.path), replayed=False)
        told, asked = vars(Totals().of(made)), vars(made.answer())
        for name in ("estimate", "unbiased", "ci_lower", "ci_upper", "noise_error"):
            assert told[name] == pytest.approx(asked[name], rel=1e-12, nan_ok=True), (period, name)
        assert (told["basis"], told["cells"], told["note"]) == (asked["basis"], asked["cells"], asked["note"]), period


def test_a_text_column_as_period_is_refused_where_its_format_is_not_said(
    office: Office, instance: dg.DagsterInstance
) -> None:
    office.opened()
    records = people_in({WEEKS[0]: 20})
    office.write_records({**records, "admitted_on": [day.isoformat() for day in records["admitted_on"]]})
    unsaid = defined(office, **{**WEEKLY, "period_format": None}).resolve_job_def("wards_job")
    refused = unsaid.execute_in_process(instance=instance, partition_key=WEEKS[0], raise_on_error=False)
    assert not refused.success and "Write `period_format: iso`" in said(refused)
    assert shown(ran(defined(office, **WEEKLY), instance, WEEKS[0]), "published")


def test_a_first_run_warns_of_what_changed_in_the_spec_since_it_was_signed(
    office: Office, instance: dg.DagsterInstance
) -> None:
    """Before the charge, as `dphist release` does; a second week has been charged for the same spec."""
    office.opened().write_records(people_in({WEEKS[0]: 20, WEEKS[1]: 20}))
    source = office.folder / "data" / "others.parquet"
    shutil.copy(office.folder / "data" / "admissions.parquet", source)
    office.write_attributes_alone(**WEEKLY, source=str(source))  # something to sign, for the spec is allowed already
    sign = ("ledger", "allow", "--for", "spec.yaml")
    digest = office.run(*sign, "--json").json["digest"]
    assert office.run(*sign, "--yes", digest).code == 0
    changed = "changed since an operator signed for it: `max_rows_per_unit` was 2 and is 3."
    definitions = defined(office, **WEEKLY, source=str(source), max_rows_per_unit=3)

    def told(week: str) -> list[int]:
        entries = instance.all_logs(ran(definitions, instance, week).run_id)
        return [one.level for one in entries if changed in one.user_message]

    assert told(WEEKS[0]) == [logging.WARNING]
    assert told(WEEKS[0]) == told(WEEKS[1]) == []


def test_checks_warn_with_numbers_of_what_a_person_should_look_at(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened()
    office.write_records(people_in({WEEKS[0]: 1000, WEEKS[1]: 1100, WEEKS[3]: 150}))
    definitions = defined(office, **WEEKLY)
    first = checks(ran(definitions, instance, WEEKS[0]))
    assert all(passed for passed, _, _ in first.values()) and set(first) == {
        "releasable",
        "copied",
        "account_lasts",
        "cells_tell_something",
        "total_like_last_period",
        "values_like_past",
        "no_period_missing",
    }
    made = ran(definitions, instance, WEEKS[1])
    assert shown(made, "published")["chance"] == CHANCE_LEFT_OUT
    second = checks(made)
    passed, numbers, _ = second["total_like_last_period"]
    assert passed and numbers["total"] > 1000 and numbers["last_total"] > 900
    assert numbers["chance"] == CHANCE_NEVER
    passed, numbers, told = second["account_lasts"]
    assert not passed and (numbers["releases_left"], numbers["left"]) == (3, 6.0) and numbers["last_due"] in told
    empty = checks(ran(definitions, instance, WEEKS[2]))
    passed, _, told = empty["total_like_last_period"]
    assert not passed and "are all records there?" in told
    passed, numbers, told = empty["cells_tell_something"]
    assert not passed and numbers["cells_above_zero"] < 3 and told.endswith("are there any records?")
    assert empty["no_period_missing"][0]
    passed, _, told = checks(ran(definitions, instance, WEEKS[3]))["total_like_last_period"]
    assert not passed and "was anything delivered twice" in told


def test_a_check_that_fails_is_a_warning_unless_it_says_otherwise() -> None:
    failed = AssetCheckOutcome(False)
    assert failed.result(key("published"), "total").severity == dg.AssetCheckSeverity.WARN
    assert failed.evaluation(key("published"), "total", None).severity == dg.AssetCheckSeverity.WARN


def test_cells_that_noise_alone_makes_fail_their_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_module, "cells_above_zero", lambda tables: CellsAboveZero(20, 1, 0.5, tell=False))
    made: Any = SimpleNamespace(tables={}, audit={"cells": 20})
    passed, numbers, told = checks_module.cells_tell_something(made)
    assert not passed and numbers["cells_above_zero"] == 1 and told.endswith("are there any records?")


def test_a_week_that_nobody_released_is_named(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened()
    office.write_records(people_in(dict.fromkeys(WEEKS, 100)))
    definitions = defined(office, **WEEKLY)
    ran(definitions, instance, WEEKS[0])
    assert office.run("withdraw", "wards", WEEKS[0], "--reason", "wrong").code == 0  # and so it is not missing
    found = checks(ran(definitions, instance, WEEKS[3]))
    passed, numbers, told = found["no_period_missing"]
    assert not passed and numbers["missing"] == 2 and told == f"missing: {WEEKS[1]}, {WEEKS[2]}"


def test_two_stores_serve_one_process_by_resources(
    office: Office, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    office.opened().write_spec(store_resource="office")
    other = office.copied_to(tmp_path / "other")
    definitions = defined(office, store_resource="office")
    for each in (office, other):
        resource = DphistStore(folder=str(each.store), witness=str(each.witness))
        merged = dg.Definitions.merge(definitions, dg.Definitions(resources={"office": resource}))
        run = merged.resolve_job_def("wards_job").execute_in_process(instance=instance, raise_on_error=False)
        if each is office:
            assert run.success, said(run)
            assert office.published().is_dir() and not other.published().exists()
    with pytest.raises(dg.DagsterInvalidDefinitionError):
        definitions.get_repository_def()


def test_assets_below_read_the_published_table(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = defined(office.opened())
    ran(definitions, instance, None)
    read: dict[str, Any] = {}

    @dg.asset(deps=[key("published")])
    def report(wards: PublishedTable) -> None:
        read["frame"] = wards.frame()
        read["total"] = wards.published().answer().estimate
        with duckdb.connect() as connection:
            read["rows"] = len(wards.relation(connection).fetchall())

    table = PublishedTable(release="wards", folder=str(office.store))
    assert dg.materialize([report], resources={"wards": table}, instance=instance).success
    assert read["frame"].height == read["rows"] == 21
    assert read["total"] == pytest.approx(read["frame"]["estimate"].sum())


def test_checks_and_metadata_hold_nothing_of_the_records(
    office: Office, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist_pipeline.confidential import noise

    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: canary.frozen_noise(size))
    office.opened().write_spec(**canary.CHANGES)
    office.write_records(canary.records())
    from dphist_pipeline.integrations.dagster import release_definitions
    from dphist_pipeline.releasing.release_spec import ReleaseSpec

    run = ran(release_definitions(ReleaseSpec.load(office.folder / "spec.yaml")), instance, None)
    told = "\n".join(str(event) for event in (*run.all_events, *events(run), *run.get_asset_check_evaluations()))
    assert canary.leaks(office, said=told) == []


def test_sanitized_shows_its_measurements_and_what_paid_for_them_and_no_answer(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = defined(office.opened())
    for answers in ("drawn, and kept for good", "published before"):
        found = shown(ran(definitions, instance, None), "sanitized")
        assert [row.data for row in found.pop("measurements").records] == [
            {"step": "counts", "epsilon": "1/2", "noise_scale": "4"}
        ]
        (charge,) = (entry for entry in office.entries() if entry[1] == "charged")
        assert found.pop("ledger_entry") == f"{charge[0]}, {charge[-1][:16]}"
        found = {name: value for name, value in found.items() if not name.startswith("dagster/")}
        assert found == {"mechanism": "geometric", "epsilon": "1/2", "account": "health", "answers": answers}


def test_descriptions_say_what_a_click_costs(office: Office) -> None:
    definitions = defined(office.opened(), **WEEKLY, schedule="0 6 * * MON")
    (published,) = [spec for spec in definitions.resolve_all_asset_specs() if spec.key == key("published")]
    assert "10 of them cost 20 of account 'health'" in str(published.description)
    job = definitions.resolve_job_def("wards_job")
    schedule = definitions.resolve_schedule_def("wards_schedule")
    for text in (job.description, schedule.description):
        assert "epsilon 2 of account 'health'" in str(text)


def test_an_account_that_pays_for_a_census_once_lasts(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = defined(office.opened(), epsilon="8")
    assert checks(ran(definitions, instance, None))["account_lasts"][0]
