"""Periods as Dagster knows them: partitions, the schedule, automation conditions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from math import ceil
from typing import Any

import dagster as dg

from dphist_pipeline.errors import DphistError, first_of
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.releasing.due import Due
from dphist_pipeline.releasing.release_spec import ReleaseSpec

FIRST_PERIOD = "2020-01-01"
MONTHS_BETWEEN = {"month": 1, "quarter": 3, "year": 12}
# In days; three months in a row have at least 28 + 30 + 31.
SHORTEST = {"week": 7, "month": 28, "quarter": 89, "year": 365}
PARTITION_TAG = "dagster/partition"
MOST_AT_ONCE = 200
MOST_NAMED = 10
MOST_FAILURES = 20
FIRST_DISTANCE, LONGEST_DISTANCE = 1, 7 * 24  # hours between two tries of a period that was refused


def partitions_of(spec: ReleaseSpec) -> dg.TimeWindowPartitionsDefinition | None:
    """The periods as Dagster partitions, keyed by their first day; None for `period: none`.

    The set ends where releases may begin: the delay, in whole periods and rounded up, is cut off its end. So neither
    the page nor a backfill nor a condition offers a period too early. It may come some days late there; the schedule
    does not wait. With `last_period` the set ends there at the latest.
    """
    if spec.period == "none":
        return None
    return dg.TimeWindowPartitionsDefinition(
        start=spec.first_period or FIRST_PERIOD,
        end=spec.period_rule.end,
        fmt="%Y-%m-%d",
        cron_schedule=_cron(spec),
        timezone=str(spec.time_zone),
        end_offset=-ceil(spec.release_delay_days / SHORTEST[spec.period]),
    )


def schedule_of(spec: ReleaseSpec, job: Any, storage: base.Storage) -> dg.ScheduleDefinition:
    """The schedule, which releases on the exact day, and after a stop each period that was missed, by the ledger."""

    def due(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        if spec.period == "none":
            yield dg.RunRequest()
            return
        now = context.scheduled_execution_time
        due_now = _due_keys(spec, storage, context, now)
        # Without an instance, in a test of somebody's own, there is no history of runs.
        instance = context.instance if context.instance_ref is not None else None
        keys = [key for key in due_now if instance is None or not asked_lately(instance, job.name, key, now)]
        if not keys:
            nothing = "every finished period is released, or the first is not over yet, or too recently"
            later = f"under way, or refused and asked for again later: {first_of(due_now, MOST_NAMED)}"
            yield dg.SkipReason(later if due_now else nothing)
        for key in keys[:MOST_AT_ONCE]:
            # By its tag: Dagster refuses as `partition_key` what its own set of partitions holds some days later.
            yield dg.RunRequest(run_key=f"{key} at {now.isoformat()}", tags={PARTITION_TAG: key})

    return dg.ScheduleDefinition(
        name=f"{spec.release}_schedule",
        job=job,
        cron_schedule=str(spec.schedule),
        execution_timezone=str(spec.time_zone),
        default_status=dg.DefaultScheduleStatus.STOPPED,
        execution_fn=due,
        required_resource_keys=storage.keys,
        description=(
            "Releases every finished period after the first charged one that was neither charged nor waived, each once "
            f"and each for epsilon {spec.epsilon} of account '{spec.account}'. A period that is refused is asked for "
            "again at growing distances, at most a week."
        ),
    )


def asked_lately(instance: dg.DagsterInstance, job: str, key: str, now: datetime) -> bool:
    """Whether a period is under way, or was refused so recently that asking again would only fill the list of runs.

    The distance doubles with every run that failed, from an hour up to a week. It is computed from Dagster's own
    history of runs, so it outlives restarts, and a run that somebody starts by hand counts as well.
    """
    runs_filter = dg.RunsFilter(job_name=job, tags={PARTITION_TAG: key})
    records = instance.get_run_records(runs_filter, limit=MOST_FAILURES)
    if any(not record.dagster_run.is_finished for record in records):
        return True
    failures = [record for record in records if not record.dagster_run.is_success]
    if not failures:
        return False
    hours = min(FIRST_DISTANCE * 2 ** (len(failures) - 1), LONGEST_DISTANCE)
    last = max(record.end_time or record.update_timestamp.timestamp() for record in failures)
    return bool(now.timestamp() < last + hours * 3600)


def _due_keys(
    spec: ReleaseSpec, storage: base.Storage, context: dg.ScheduleEvaluationContext, now: datetime
) -> list[str]:
    first = spec.first_period or FIRST_PERIOD
    try:
        store = storage.open(context.resources)
        return Due.to_run(spec, store, store.ledger(), now, first)
    except DphistError:  # the run will say why, where people look for it
        return [key] if (key := spec.latest_period(now).key) >= first else []


def condition_of(spec: ReleaseSpec) -> dg.AutomationCondition[Any] | None:
    """When Dagster's daemon asks for a period by itself, by `automation`; None where it does not.

    Dagster's own `eager()` and `on_cron()` look at the latest period alone, and forget those of a stop. These look at
    every period that was not released.
    """
    if spec.automation is None:
        return None
    ask: Any = dg.AutomationCondition
    # Without `deps`, records come from an external asset, of which Dagster knows no materialization.
    there = ask.missing() & ~ask.any_deps_missing() & ~ask.any_deps_in_progress() if spec.deps else ask.missing()
    ready = there & ~ask.in_progress()
    if spec.automation == "eager":
        # Not `since_last_handled`, which forgets at the first evaluation of all what was missing by then.
        news = (ask.newly_missing() | ask.any_deps_updated()).since(ask.newly_requested() | ask.newly_updated())
        eager: dg.AutomationCondition[Any] = (news & ready).with_label("eager: once for each period")
        return eager
    tick = ask.cron_tick_passed(str(spec.schedule), str(spec.time_zone)).since_last_handled()
    on_cron: dg.AutomationCondition[Any] = (tick & ready).with_label("on_cron: once for each period")
    return on_cron


def _cron(spec: ReleaseSpec) -> str:
    """When periods start, at local midnight."""
    if spec.period == "week":
        return f"0 0 * * {0 if spec.week_starts == 'sunday' else 1}"
    first = spec.period_rule.year_starts - 1
    months = sorted((first + months_passed) % 12 + 1 for months_passed in range(0, 12, MONTHS_BETWEEN[spec.period]))
    return f"0 0 1 {'*' if len(months) == 12 else ','.join(map(str, months))} *"
