"""Checks of a publication stand for every period: a later week, or a later failure, hides no bad one."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from dagster import AssetCheckKey
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.loader import LoadingContextForTest
from office import Office
from system.orchestrated import charges, defined, events, key, people_in, said

pytestmark = [pytest.mark.outside, pytest.mark.stand_in("catalogue", "pictures", why="checks and their records")]

WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
WEEKLY = {
    "period": "week",
    "period_column": "admitted_on",
    "period_format": "iso",
    "first_period": WEEKS[0],
    "epsilon": "1",
}
TOTAL = AssetCheckKey(key("published"), "total_like_last_period")


@pytest.fixture
def with_a_bad_week(office: Office) -> dg.Definitions:
    """A weekly release; the third of four weeks has a twentieth of its rows."""
    office.opened().write_records(people_in({WEEKS[0]: 2000, WEEKS[1]: 2000, WEEKS[2]: 100, WEEKS[3]: 110}))
    return defined(office, **WEEKLY)


def ranged(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """One run for all weeks, as an asset backfill makes it."""
    tags = {"dagster/asset_partition_range_start": WEEKS[0], "dagster/asset_partition_range_end": WEEKS[-1]}
    job = definitions.resolve_job_def("wards_job")
    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


def test_a_range_that_ends_before_it_begins_is_refused_with_what_to_do(
    with_a_bad_week: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    tags = {"dagster/asset_partition_range_start": WEEKS[1], "dagster/asset_partition_range_end": WEEKS[0]}
    job = with_a_bad_week.resolve_job_def("wards_job")
    run = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
    (failure, *_) = [event for event in run.all_events if event.is_step_failure]
    said = str(failure.event_specific_data.error)
    assert not run.success and f"begins with {WEEKS[1]} and ends before it, with {WEEKS[0]}; swap them" in said


def latest(instance: dg.DagsterInstance, check: AssetCheckKey, week: str | None = None) -> Any:
    """Dagster's newest record of a check, or that of one week."""
    only = None if week is None else PartitionKeyFilter(key=week)
    return instance.event_log_storage.get_latest_asset_check_execution_by_key([check], partition_filter=only)[check]


def status(instance: dg.DagsterInstance, check: AssetCheckKey, week: str | None = None) -> str:
    found: str = latest(instance, check, week).status.value
    return found


def test_a_backfill_checks_every_week_ends_with_what_failed_and_keeps_it(
    with_a_bad_week: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    run = ranged(with_a_bad_week, instance)
    assert run.success, said(run)
    assert [status(instance, TOTAL, week) for week in WEEKS] == ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    newest = latest(instance, TOTAL)
    assert newest.status.value == "FAILED", "a green last week hides the bad one"
    assert f"failed for 1 of 4 periods: {WEEKS[2]}: it fell" in newest.evaluation.description
    gate = AssetCheckKey(key("sanitized"), "releasable")
    assert [status(instance, gate, week) for week in WEEKS] == ["SUCCEEDED"] * 4
    assert status(instance, AssetCheckKey(key("published"), "no_period_missing")) == "SUCCEEDED"
    made = {event.partition: event for event in events(run) if event.asset_key == key("published")}
    for week, event in made.items():
        rows = {record.data["check"]: record.data for record in event.metadata["checks"].records}
        assert rows["total_like_last_period"]["passed"] is (week != WEEKS[2])
    assert "are all records there?" in str(made[WEEKS[2]].metadata["checks"])


def test_a_backfill_tells_of_each_week_before_the_next_and_calls_none_out_of_date(
    with_a_bad_week: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist_pipeline.releasing.run import Run

    seen = []
    begin = Run.begin

    def watched(spec: Any, store: Any, named: str, *more: Any) -> Any:
        try:
            checked = [week for week in WEEKS if status(instance, TOTAL, week) == "SUCCEEDED"]
        except KeyError:
            checked = []
        seen.append((sorted(instance.get_materialized_partitions(key("published"))), len(checked)))
        return begin(spec, store, named, *more)

    monkeypatch.setattr(Run, "begin", watched)
    assert ranged(with_a_bad_week, instance).success
    assert seen == [([], 0), (WEEKS[:1], 1), (WEEKS[:2], 2), (WEEKS[:3], 2)]
    graph = with_a_bad_week.resolve_asset_graph()
    stale = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    for name in ("records", "cube", "sanitized", "published"):
        for week in WEEKS:
            assert stale.get_status(key(name), week).value == "FRESH", (name, stale.get_stale_causes(key(name), week))


def test_a_later_failure_leaves_the_warning_of_the_week_before(
    office: Office, with_a_bad_week: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    job = with_a_bad_week.resolve_job_def("wards_job")
    for week in WEEKS[:3]:
        assert job.execute_in_process(instance=instance, partition_key=week).success
    (office.folder / "data" / "admissions.parquet").unlink()
    assert not job.execute_in_process(instance=instance, partition_key=WEEKS[3], raise_on_error=False).success
    assert status(instance, TOTAL, WEEKS[2]) == "FAILED"
    assert charges(office) == 3


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_a_report_in_the_same_backfill_still_runs_after_the_release(
    with_a_bad_week: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    (published,) = [spec for spec in with_a_bad_week.resolve_all_asset_specs() if spec.key == key("published")]
    told = []

    @dg.asset(
        deps=[key("published")],
        partitions_def=published.partitions_def,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def report() -> None:
        told.append("report")

    both = dg.Definitions(
        assets=[*(with_a_bad_week.assets or []), report],
        jobs=[dg.define_asset_job("both", "*", executor_def=dg.in_process_executor)],
    )
    tags = {"dagster/asset_partition_range_start": WEEKS[0], "dagster/asset_partition_range_end": WEEKS[-1]}
    run = both.resolve_job_def("both").execute_in_process(instance=instance, tags=tags, raise_on_error=False)
    assert run.success and told == ["report"], said(run)
