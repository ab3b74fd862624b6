"""When Dagster asks for a period: never too early, each once, also after a stop and where clocks change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from office import RECORDS, Office
from system.orchestrated import defined, key, materialized

from dphist_pipeline.integrations.dagster import _partitions as periods
from dphist_pipeline.integrations.dagster import partitions_of
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.due import Cadence
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import mostly_soaked

pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),  # of evaluating conditions
    pytest.mark.draws_alike,
]

VISITS = dg.AssetKey(["raw", "visits"])
WEEKLY = {
    "period": "week",
    "period_column": "admitted_on",
    "period_format": "iso",
    "first_period": "2026-01-05",
    "release_delay_days": 10,
}
FIRST = datetime(2026, 1, 5, tzinfo=UTC)


def spec_of(office: Office, **fields: Any) -> ReleaseSpec:
    office.write_spec(**{"period_column": "admitted_on", "period_format": "iso", **fields})
    return ReleaseSpec.load(office.folder / "spec.yaml")


def ready(spec: ReleaseSpec, key: str, now: datetime) -> bool:
    return key <= spec.latest_period(now).key


@pytest.mark.parametrize("zone", ["Europe/Madrid", "America/Havana"], ids=["madrid", "havana"])
@pytest.mark.parametrize("length", ["week", "month", "quarter", "year"])
@pytest.mark.parametrize("delay", mostly_soaked([0, 1, 7, 8, 30, 100], [1, 3]))
def test_partitions_end_where_releases_may_begin(office: Office, zone: str, length: str, delay: int) -> None:
    spec = spec_of(office, period=length, time_zone=zone, release_delay_days=delay, first_period="2024-01-01")
    partitions = partitions_of(spec)
    assert partitions is not None
    # Each hour around the changes of clocks and the ends of months, and every day of a year.
    moments = [datetime(2025, 3, 28, 22, tzinfo=UTC) + timedelta(hours=passed) for passed in range(96)]
    moments += [datetime(2025, 10, 25, 20, tzinfo=UTC) + timedelta(hours=passed) for passed in range(48)]
    moments += [datetime(2025, 1, 1, 0, 30, tzinfo=UTC) + timedelta(days=passed) for passed in range(400)]
    for now in moments[:: 3 if length == "week" else 7]:
        offered, latest = partitions.get_partition_keys(current_time=now), spec.latest_period(now)
        if offered:
            assert spec.period_before(spec.period_before(latest)).key <= offered[-1] <= latest.key, now


@pytest.mark.parametrize("delay", [0, 10])
def test_partitions_end_with_the_last_period_of_a_release(office: Office, delay: int) -> None:
    fields = {**WEEKLY, "release_delay_days": delay}
    ending = partitions_of(spec_of(office, **fields, last_period="2026-02-23"))
    going_on = partitions_of(spec_of(office, **fields))
    assert ending is not None and going_on is not None
    for now in (FIRST + timedelta(hours=passed) for passed in range(0, 80 * 24, 13)):
        offered = going_on.get_partition_keys(current_time=now)
        assert ending.get_partition_keys(current_time=now) == [week for week in offered if week <= "2026-02-23"], now


class Daemon:
    """Evaluates conditions as the daemon does, and materializes what they ask for."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
        self.definitions, self.instance = definitions, instance
        self.cursor: Any = None
        self.asked: Counter[str] = Counter()
        self.at: dict[str, datetime] = {}

    def tick(self, now: datetime, works: bool = True) -> None:
        """One evaluation; `works`: whether the runs that it asks for succeed."""
        result = dg.evaluate_automation_conditions(
            defs=self.definitions, instance=self.instance, cursor=self.cursor, evaluation_time=now
        )
        self.cursor = result.cursor
        for partition in sorted(result.get_requested_partitions(key("records"))):
            assert partition is not None
            self.asked[partition] += 1
            self.at.setdefault(partition, now)
            for name in ("records", "cube", "sanitized", "published") if works else ():
                event = dg.AssetMaterialization(key(name), partition=partition)
                self.instance.report_runless_asset_event(event)

    def visits(self, *days: datetime) -> None:
        for day in days:
            event = dg.AssetMaterialization(VISITS, partition=f"{day:%Y-%m-%d}")
            self.instance.report_runless_asset_event(event)


def project(office: Office, **fields: Any) -> dg.Definitions:
    raw = dg.AssetSpec(VISITS, partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
    release = defined(office, **{**WEEKLY, "deps": ["raw/visits"], **fields})  # or without any
    return dg.Definitions.merge(release, dg.Definitions(assets=[raw]))


def days_from(first: datetime, count: int) -> list[datetime]:
    return [first + timedelta(days=passed) for passed in range(count)]


AUTOMATION = [{"automation": "eager"}, {"automation": "on_cron", "schedule": "0 6 * * *"}]


@pytest.mark.parametrize("fields", [*AUTOMATION, *({**fields, "deps": []} for fields in AUTOMATION)])
def test_conditions_ask_for_each_week_once_and_never_too_early(
    office: Office, instance: dg.DagsterInstance, fields: dict[str, Any]
) -> None:
    daemon = Daemon(project(office, **fields), instance)
    spec = ReleaseSpec.load(office.folder / "spec.yaml")
    for day in days_from(FIRST, 45):
        daemon.visits(day - timedelta(days=1))
        daemon.tick(day + timedelta(hours=7))
    weeks = [f"{FIRST + timedelta(weeks=week):%Y-%m-%d}" for week in range(4)]
    assert daemon.asked == dict.fromkeys(weeks, 1)
    assert all(ready(spec, week, at) for week, at in daemon.at.items())


@pytest.mark.parametrize("fields", AUTOMATION)
def test_after_a_stop_each_missed_week_is_asked_for_once(
    office: Office, instance: dg.DagsterInstance, fields: dict[str, Any]
) -> None:
    daemon = Daemon(project(office, **fields), instance)
    daemon.visits(*days_from(FIRST, 70))
    for day in days_from(FIRST, 28):
        daemon.tick(day + timedelta(hours=7))
    assert daemon.asked == {"2026-01-05": 1}
    for day in days_from(FIRST + timedelta(days=63), 3):
        daemon.tick(day + timedelta(hours=7))
    weeks = [f"{FIRST + timedelta(weeks=week):%Y-%m-%d}" for week in range(7)]
    assert daemon.asked == dict.fromkeys(weeks, 1)


@pytest.mark.parametrize("fields", AUTOMATION)
def test_weeks_from_before_the_first_evaluation_are_asked_for_once(
    office: Office, instance: dg.DagsterInstance, fields: dict[str, Any]
) -> None:
    daemon = Daemon(project(office, **fields), instance)
    daemon.visits(*days_from(FIRST, 35))
    for day in days_from(FIRST + timedelta(days=34), 4):
        daemon.tick(day + timedelta(hours=7))
    weeks = [f"{FIRST + timedelta(weeks=week):%Y-%m-%d}" for week in range(3)]
    assert daemon.asked == dict.fromkeys(weeks, 1)


@pytest.mark.parametrize("fields", AUTOMATION)
def test_a_week_waits_for_its_last_day_upstream(
    office: Office, instance: dg.DagsterInstance, fields: dict[str, Any]
) -> None:
    daemon = Daemon(project(office, **fields), instance)
    days = days_from(FIRST, 7)
    daemon.visits(*days[:6])
    for day in days_from(FIRST, 30):
        daemon.tick(day + timedelta(hours=7))
    assert not daemon.asked
    daemon.visits(days[6])
    for day in days_from(FIRST + timedelta(days=31), 2):
        daemon.tick(day + timedelta(hours=7))
    assert daemon.asked == {"2026-01-05": 1}


def test_a_refused_week_is_not_asked_for_again_before_something_changes(
    office: Office, instance: dg.DagsterInstance
) -> None:
    daemon = Daemon(project(office, automation="eager"), instance)
    days = days_from(FIRST, 7)
    for day in days_from(FIRST, 25):
        daemon.visits(day - timedelta(days=1))
        daemon.tick(day + timedelta(hours=7), works=False)
    assert daemon.asked == {"2026-01-05": 1}
    daemon.visits(days[3])
    daemon.tick(FIRST + timedelta(days=25, hours=8))
    assert daemon.asked == {"2026-01-05": 2}


def test_automation_is_refused_where_nobody_named_the_first_period(office: Office) -> None:
    for fields, told in (
        ({"first_period": ...}, "every period from that one on is charged"),
        ({"period": "none", "period_column": ..., "release_delay_days": ...}, "has no use with `period: none`"),
        ({"automation": "on_cron"}, "needs `schedule`"),
    ):
        with pytest.raises(Exception, match=told):
            spec_of(office, **{**WEEKLY, "automation": "eager", **fields})


def looked(
    definitions: dg.Definitions, check: str = "nothing_due", instance: dg.DagsterInstance | None = None
) -> tuple[bool, str]:
    """What a check that no release waits for finds now."""
    name = dg.AssetCheckKey(key("published"), check)
    job = dg.define_asset_job("look", selection=dg.AssetSelection.checks(name), executor_def=dg.in_process_executor)
    both = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
    (found,) = both.resolve_job_def("look").execute_in_process(instance=instance).get_asset_check_evaluations()
    return found.passed, found.description or ""


def test_a_check_says_which_weeks_are_due_and_since_when(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    weekly = scheduled(office, monkeypatch)
    assert looked(weekly) == (True, ""), "nothing was ever charged"
    monday = date.today() - timedelta(days=date.today().weekday())
    weeks = [(monday - timedelta(weeks=back)).isoformat() for back in range(6, 0, -1)]
    office.released("--period", weeks[0])
    office.released("--period", weeks[2])
    passed, told = looked(weekly)
    since = date.fromisoformat(weeks[1]) + timedelta(days=17)
    assert not passed and f"due since {since}: {weeks[1]}" in told and weeks[2] not in told
    assert "nothing_due" not in str(weekly.resolve_job_def("wards_job").asset_layer.asset_graph.asset_check_keys)


def test_a_check_says_which_periods_are_shown_by_a_revision_not_in_force(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly, week = scheduled(office, monkeypatch), "2026-02-09"
    with dg.DagsterInstance.ephemeral() as instance:
        assert looked(weekly, "shows_latest", instance) == (True, "")
        materialized(weekly, instance, partition=week)
        assert looked(weekly, "shows_latest", instance) == (True, "")
        office.released("--period", week, "--revise", "--reason", "late files")
        assert looked(weekly, "shows_latest", instance) == (False, f"{week} shows revision 1, 2 is in force")
        materialized(weekly, instance, partition=week)
        assert looked(weekly, "shows_latest", instance) == (True, "")
        assert office.run("withdraw", "wards", week, "--reason", "wrong").code == 0
        assert looked(weekly, "shows_latest", instance) == (False, f"{week} shows revision 2, which was withdrawn")


def test_freshness_is_the_days_that_a_period_may_be_late(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled(office, monkeypatch)
    monday = date.today() - timedelta(days=date.today().weekday())
    office.released("--period", (monday - timedelta(weeks=4)).isoformat())
    days = (date.today() - (monday - timedelta(weeks=2))).days - 10  # the next week is due for so many days
    for freshness in (days, days - 1):
        weekly = defined(office, **WEEKLY, schedule="0 6 * * *", freshness=freshness)
        assert looked(weekly)[0] is (freshness == days)


@pytest.mark.parametrize(
    ("schedule", "days"),
    [(None, 7), ("0 6 * * *", 1), ("0 6 * * MON", 7), ("0 6 1 * *", 31), ("0 6 1 1 *", 366)],
)
def test_a_period_may_be_due_until_its_schedule_ticks(office: Office, schedule: str | None, days: int) -> None:
    fields = {} if schedule is None else {"schedule": schedule}
    assert Cadence.of(spec_of(office, **WEEKLY, **fields)).slack_days == days


def scheduled(office: Office, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    """A release on a schedule, with a store and records."""
    monkeypatch.setenv("DPHIST_STORE", str(office.opened().store))
    office.write_records({**RECORDS, "admitted_on": [date(2026, 2, 10)] * 4})
    return defined(office, **WEEKLY, schedule="0 6 * * *")


def asked(definitions: dg.Definitions, moment: str, instance: dg.DagsterInstance | None = None) -> list[str | None]:
    schedule = definitions.resolve_schedule_def("wards_schedule")
    context = dg.build_schedule_context(scheduled_execution_time=datetime.fromisoformat(moment), instance=instance)
    return [request.tags.get("dagster/partition") for request in schedule.evaluate_tick(context).run_requests or []]


def test_after_a_stop_the_schedule_asks_for_every_missed_week(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    weekly = scheduled(office, monkeypatch)
    assert asked(weekly, "2026-03-02T06:00+00:00") == ["2026-02-09"]
    office.released("--period", "2026-02-09")
    assert asked(weekly, "2026-03-02T06:00+00:00") == []
    assert asked(weekly, "2026-03-25T06:00+00:00") == ["2026-02-16", "2026-02-23", "2026-03-02"]
    assert asked(weekly, "2026-03-26T06:00+00:00")[-1] == "2026-03-09", "on the exact day, ten days after its end"


def test_a_charged_week_is_asked_for_until_it_is_published(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    from dphist_pipeline.releasing import publisher

    weekly = scheduled(office, monkeypatch)
    with monkeypatch.context() as broken:
        broken.setattr(publisher, "publish", lambda *_, **__: (_ for _ in ()).throw(OSError("disk")))
        assert office.release("--period", "2026-02-02").code != 0
    assert asked(weekly, "2026-03-02T06:00+00:00") == ["2026-02-02", "2026-02-09"]
    office.released("--period", "2026-02-02")
    assert asked(weekly, "2026-03-02T06:00+00:00") == ["2026-02-09"]


def test_no_more_periods_are_asked_for_at_once_than_a_daemon_can_take(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly = scheduled(office, monkeypatch)
    office.released("--period", "2026-01-05")
    monkeypatch.setattr(periods, "MOST_AT_ONCE", 3)
    assert len(asked(weekly, "2026-06-02T06:00+00:00")) == 3


def test_a_late_week_is_asked_for_after_a_later_one_was_released(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly = scheduled(office, monkeypatch)
    for week in ("2026-02-09", "2026-02-23"):
        office.released("--period", week)
    assert asked(weekly, "2026-03-10T06:00+00:00") == ["2026-02-16"]


def test_a_waived_week_is_due_no_more_until_the_decision_is_taken_back(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly = scheduled(office, monkeypatch)
    for week in ("2026-02-09", "2026-02-23"):
        office.released("--period", week)
    ran = office.run("ledger", "waive", "wards", "2026-02-16", "--reason", "the archive burnt", "--json")
    assert ran.code == 0, ran.err
    assert asked(weekly, "2026-03-10T06:00+00:00") == []
    taken = office.run("ledger", "disallow", str(ran.json["entry"]), "--reason", "a copy was found")
    assert taken.code == 0, taken.err
    assert asked(weekly, "2026-03-10T06:00+00:00") == ["2026-02-16"]
    for week, told in (("2026-02-09", "charged already"), ("2026-02-17", "not the first day of a week")):
        refused = office.run("ledger", "waive", "wards", week, "--reason", "x")
        assert refused.code == 1 and told in " ".join(refused.err.split())


def test_rejected_and_withdrawn_weeks_are_never_due(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    weekly = scheduled(office, monkeypatch)
    for week in ("2026-02-09", "2026-02-16"):
        office.released("--period", week)
    assert office.run("withdraw", "wards", "2026-02-09", "--reason", "a wrong code").code == 0
    office.write_spec(**WEEKLY, schedule="0 6 * * *", publish="manual")
    office.released("--period", "2026-02-23")
    assert office.run("reject", "wards", "2026-02-23", "--reason", "no").code == 0
    assert asked(weekly, "2026-03-10T06:00+00:00") == []


def test_history_that_is_released_by_command_makes_nothing_else_due(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly = scheduled(office, monkeypatch)
    for week in ("2026-02-16", "2026-01-05"):
        office.released("--period", week)
    assert asked(weekly, "2026-03-12T06:00+00:00") == ["2026-02-23"]


def test_an_upgrade_charges_no_week_that_an_earlier_version_left_out(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    weekly = scheduled(office, monkeypatch)
    with monkeypatch.context() as earlier:
        charge = Ledger.charge
        earlier.setattr(Ledger, "charge", lambda ledger, asked: charge(ledger, replace(asked, folder=None)))
        for week in ("2026-01-05", "2026-02-02"):
            office.released("--period", week)
    office.released("--period", "2026-02-16")
    assert asked(weekly, "2026-03-12T06:00+00:00") == ["2026-02-09", "2026-02-23"]


def test_a_refused_week_is_asked_for_again_at_growing_distances(
    office: Office, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    office.opened().write_spec()
    weekly = defined(office, **{**WEEKLY, "source": "data/{period}.parquet"}, schedule="0 6 * * *")
    monkeypatch.setenv("DPHIST_STORE", str(office.store))
    job = weekly.resolve_job_def("wards_job")
    week = "2026-02-09"
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for hours in (1, 2, 4, 8, 16, 32, 64, 128, 168, 168):
            tags = {"dagster/partition": week}
            run = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
            assert not run.success
            now = datetime.now(UTC)
            early, late = (now + timedelta(hours=hours, minutes=minutes) for minutes in (-2, 2))
            assert periods.asked_lately(instance, "wards_job", week, early)
            assert not periods.asked_lately(instance, "wards_job", week, late)
        assert not periods.asked_lately(instance, "wards_job", "2026-02-16", now)
        assert asked(weekly, "2026-02-27T06:00+00:00", instance) == []
        assert asked(weekly, "2026-03-05T06:00+00:00", instance) == ["2026-02-16"]
    assert office.entries()[-1][1] != "charged"
