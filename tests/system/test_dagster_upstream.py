"""Upstream assets: lineage, and no charge before every partition that overlaps the period is materialized."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from office import RECORDS, Office
from system.orchestrated import charges, defined, key, said

from dphist_pipeline.integrations.dagster import _upstream_assets as upstream

pytestmark = [pytest.mark.outside, pytest.mark.draws_alike]

VISITS = dg.AssetKey(["raw", "visits"])
DAYS = dg.DailyPartitionsDefinition("2026-01-01")
WEEK = "2026-03-02"
WEEKLY = {
    "period": "week",
    "period_column": "admitted_on",
    "period_format": "iso",
    "first_period": "2026-01-05",
    "deps": ["raw/visits"],
}


def project(office: Office, partitions: dg.PartitionsDefinition | None, **changes: Any) -> dg.Definitions:
    """The office's release beside the asset that its records come from."""
    office.write_records({**RECORDS, "admitted_on": [date(2026, 3, 3)] * 4})
    raw = dg.AssetSpec(VISITS, partitions_def=partitions)
    return dg.Definitions.merge(defined(office, **{**WEEKLY, **changes}), dg.Definitions(assets=[raw]))


def ran(definitions: dg.Definitions, instance: dg.DagsterInstance, week: str | None = WEEK) -> Any:
    job = definitions.resolve_job_def("wards_job")
    return job.execute_in_process(partition_key=week, instance=instance, raise_on_error=False)


def materialize(instance: dg.DagsterInstance, *partitions: str | None) -> None:
    for partition in partitions:
        instance.report_runless_asset_event(dg.AssetMaterialization(VISITS, partition=partition))


def refused(office: Office, definitions: dg.Definitions, instance: dg.DagsterInstance, **more: Any) -> str:
    before = office.state()
    run = ran(definitions, instance, **more)
    assert not run.success and office.state() == before
    return said(run)


def test_each_missing_day_is_named_and_the_week_is_charged_once_all_are_there(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = project(office.opened(), DAYS)
    days = [f"2026-03-{day:02}" for day in range(2, 9)]
    materialize(instance, "2026-03-01", *days[:4], "2026-03-09")
    told = refused(office, definitions, instance)
    assert all(f"raw/visits {day}" in told for day in days[4:])
    assert not any(f"raw/visits {day}" in told for day in ("2026-03-01", *days[:4], "2026-03-09"))
    materialize(instance, *days[4:])
    assert ran(definitions, instance).success and charges(office) == 1
    (records,) = [spec for spec in definitions.resolve_all_asset_specs() if spec.key == key("records")]
    assert [dep.asset_key for dep in records.deps] == [VISITS]


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"source": "data/admissions/*.parquet"}, "data/admissions"),
        ({"source": "data/{year}-{week}.csv"}, "data/year-week.csv"),
        ({"source": "data/north/**/*.csv"}, "data/north"),
        ({"source": "*.parquet"}, "source"),
        ({"source": "/srv/è ü/a b.csv"}, "srv/a_b.csv"),
        ({"source": "wards/records/*.parquet"}, "wards/records/source"),
        ({"source": "data/a.duckdb", "source_table": "main.visits"}, "data/a.duckdb/main.visits"),
        ({"source": "s3://bucket/visits/*.parquet"}, "s3/bucket/visits"),
        ({"source": "frame:visits"}, "frame/visits"),
    ],
)
def test_without_deps_the_source_is_an_external_asset_that_is_named_after_it(
    office: Office, source: dict[str, str], named: str
) -> None:
    definitions = dg.Definitions.merge(
        defined(office, **{**WEEKLY, "deps": [], **source}),
        defined(office, **{**WEEKLY, "deps": [], **source, "release": "again"}),
    )
    upstream_keys = {
        (dep.asset_key, spec.key.path[0])
        for spec in definitions.resolve_all_asset_specs()
        for dep in spec.deps
        if spec.key.path[-1] == "records"
    }
    asset = dg.AssetKey(named.split("/"))
    others = {(dg.AssetKey(["wards", "records"]), "again")} if named.startswith("wards") else {(asset, "again")}
    assert upstream_keys == {(asset, "wards")} | others
    graph = definitions.resolve_asset_graph()
    assert graph.get(asset).is_external and not graph.get(asset).is_materializable


def test_what_the_environment_gives_is_no_part_of_a_key(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISITS", "s3cr3t/place")
    (records,) = [
        spec
        for spec in defined(
            office, **{**WEEKLY, "deps": [], "source": "{{ env.VISITS }}/a.parquet"}
        ).resolve_all_asset_specs()
        if spec.key == key("records")
    ]
    assert [dep.asset_key for dep in records.deps] == [dg.AssetKey(["env.VISITS", "a.parquet"])]


def test_a_release_without_deps_runs_beside_its_source(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(office.opened(), None, deps=[])
    assert ran(definitions, instance).success and charges(office) == 1


def test_a_month_that_overlaps_a_week_is_needed_whole(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(office.opened(), dg.MonthlyPartitionsDefinition("2026-01-01"))
    told = refused(office, definitions, instance, week="2026-03-30")
    assert "raw/visits 2026-03-01, raw/visits 2026-04-01" in told
    materialize(instance, "2026-03-01", "2026-04-01")
    assert ran(definitions, instance, "2026-03-30").success


def test_partitions_that_begin_within_the_period_are_not_enough(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(office.opened(), dg.DailyPartitionsDefinition("2026-03-04"))
    materialize(instance, *(f"2026-03-{day:02}" for day in range(4, 9)))
    assert "raw/visits begins after 2026-03-02" in refused(office, definitions, instance)


def test_an_asset_without_partitions_must_be_newer_than_the_period(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = project(office.opened(), None)
    assert "raw/visits (not since the end of the period, 2026-03-09)" in refused(office, definitions, instance)
    materialize(instance, None)
    assert ran(definitions, instance).success


def test_what_was_made_before_the_end_of_the_period_is_not_enough(
    instance: dg.DagsterInstance,
) -> None:
    materialize(instance, None)
    now = datetime.now(UTC)
    assert upstream._seen_after(instance, VISITS, now - timedelta(hours=1))
    assert not upstream._seen_after(instance, VISITS, now + timedelta(hours=1))


def test_partitions_that_are_not_of_time_must_all_be_newer(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(office.opened(), dg.StaticPartitionsDefinition(["north", "south"]), require="partitions")
    materialize(instance, "north")
    told = refused(office, definitions, instance)
    assert "raw/visits south" in told and "north" not in told
    materialize(instance, "south")
    assert ran(definitions, instance).success


def test_of_two_dimensions_the_overlapping_times_are_needed_in_every_value(
    office: Office, instance: dg.DagsterInstance
) -> None:
    two = dg.MultiPartitionsDefinition({"day": DAYS, "region": dg.StaticPartitionsDefinition(["n", "s"])})
    definitions = project(office.opened(), two)
    keys = [dg.MultiPartitionKey({"day": f"2026-03-{day:02}", "region": at}) for day in range(2, 9) for at in "ns"]
    materialize(instance, *keys[:-1])
    assert "raw/visits 2026-03-08|s" in refused(office, definitions, instance)
    materialize(instance, keys[-1])
    assert ran(definitions, instance).success


def test_without_a_requirement_there_is_lineage_alone(office: Office, instance: dg.DagsterInstance) -> None:
    assert ran(project(office.opened(), DAYS, require="none"), instance).success


def test_what_is_published_needs_no_upstream_any_more(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(office.opened(), DAYS)
    office.released("--period", WEEK, "--upstream-checked", "seen by hand")
    assert ran(definitions, instance).success and charges(office) == 1
