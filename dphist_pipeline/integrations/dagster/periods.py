"""Periods as Dagster knows them: partitions, the schedule, automation conditions, freshness."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil
from typing import Any

import dagster as dg

from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations.dagster import base
from dphist_pipeline.releasing.due import due_periods
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import MONTHS

FIRST_PERIOD = "2020-01-01"
MONTHS_BETWEEN = {"month": 1, "quarter": 3, "year": 12}
# In days; three months in a row have at least 28 + 30 + 31.
SHORTEST = {"week": 7, "month": 28, "quarter": 89, "year": 365}
LONGEST = {"week": 7, "month": 31, "quarter": 92, "year": 366}
PARTITION_TAG = "dagster/partition"


def partitions_of(spec: ReleaseSpec) -> dg.TimeWindowPartitionsDefinition | None:
    """The periods as Dagster partitions, keyed by their first day; None for `period: none`.

    The set ends where releases may begin: the delay, in whole periods and rounded up, is cut off its end. So neither
    the page nor a backfill nor a condition offers a period too early. It may come some days late there; the schedule
    does not wait.

    Args:
        spec: checked; days begin in its time zone.
    """
    if spec.period == "none":
        return None
    return dg.TimeWindowPartitionsDefinition(
        start=spec.first_period or FIRST_PERIOD,
        fmt="%Y-%m-%d",
        cron_schedule=_cron(spec),
        timezone=str(spec.time_zone),
        end_offset=-ceil(spec.release_delay_days / SHORTEST[spec.period]),
    )


def schedule_of(spec: ReleaseSpec, job: Any, storage: base.Storage) -> dg.ScheduleDefinition:
    """The schedule, which releases on the exact day, and after a stop each period that was missed.

    Args:
        spec: checked, with a `schedule`.
        job: makes the assets of one period.
        storage: where the ledger is, which says what was released.
    """

    def due(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        if spec.period == "none":
            yield dg.RunRequest()
            return
        now = context.scheduled_execution_time
        keys = _due_keys(spec, storage, context, now)
        if not keys:
            yield dg.SkipReason("every finished period is released, or the first is not over yet, or too recently")
        for key in keys:
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
        description="Releases every finished period since the last released one, each once.",
    )


def _due_keys(
    spec: ReleaseSpec, storage: base.Storage, context: dg.ScheduleEvaluationContext, now: datetime
) -> list[str]:
    first = spec.first_period or FIRST_PERIOD
    try:
        return due_periods(spec, storage.open(context.resources).ledger(), now, first)
    except DphistError:  # the run will say why, where people look for it
        return [key] if (key := spec.latest_period(now).key) >= first else []


def condition_of(spec: ReleaseSpec) -> dg.AutomationCondition[Any] | None:
    """When Dagster's daemon asks for a period by itself, by `automation`; None where it does not.

    Dagster's own `eager()` and `on_cron()` look at the latest period alone, and forget those of a stop. These look at
    every period that was not released.

    Args:
        spec: checked; `on_cron` takes its `schedule`.
    """
    if spec.automation is None:
        return None
    ask: Any = dg.AutomationCondition
    ready = ask.missing() & ~ask.any_deps_missing() & ~ask.any_deps_in_progress() & ~ask.in_progress()
    if spec.automation == "eager":
        # Not `since_last_handled`, which forgets at the first evaluation of all what was missing by then.
        news = (ask.newly_missing() | ask.any_deps_updated()).since(ask.newly_requested() | ask.newly_updated())
        eager: dg.AutomationCondition[Any] = (news & ready).with_label("eager: once for each period")
        return eager
    tick = ask.cron_tick_passed(str(spec.schedule), str(spec.time_zone)).since_last_handled()
    on_cron: dg.AutomationCondition[Any] = (tick & ready).with_label("on_cron: once for each period")
    return on_cron


def freshness_of(spec: ReleaseSpec) -> dg.FreshnessPolicy | None:
    """How old the newest publication may be: one period and the days of `freshness`; None without `freshness`.

    Args:
        spec: checked; a month or a year counts with its most days.
    """
    if spec.freshness is None:
        return None
    return dg.FreshnessPolicy.time_window(timedelta(days=LONGEST.get(spec.period, 0) + spec.freshness))


def _cron(spec: ReleaseSpec) -> str:
    """When periods start, at local midnight."""
    if spec.period == "week":
        return f"0 0 * * {0 if spec.week_starts == 'sunday' else 1}"
    first = MONTHS.index(spec.quarter_starts)
    months = sorted((first + passed) % 12 + 1 for passed in range(0, 12, MONTHS_BETWEEN[spec.period]))
    return f"0 0 1 {'*' if len(months) == 12 else ','.join(map(str, months))} *"
