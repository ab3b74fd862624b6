"""Whether the assets that records come from are there for a period, as Dagster's own records say it.

Keys of assets and of their partitions are public: they follow from definitions and the calendar, not from records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import dagster as dg

from dphist_pipeline.errors import DphistError, first_of
from dphist_pipeline.spec.periods import Period

MOST_NAMED = 10
MOST_AT_ONCE = 1_000


class UpstreamMissing(DphistError):
    """Upstream partitions of a period that were not materialized."""

    def __init__(self, release: str, period: str, missing: Sequence[str]) -> None:
        self.release, self.period, self.missing = release, period, tuple(missing)
        named = first_of(missing, MOST_NAMED)
        super().__init__(
            f"release '{release}', period {period}: needs what is not there: {named}. Nothing was read or spent. "
            "Materialize them and run again; `require: none` in the spec releases without them"
        )


def refuse_missing(context: dg.AssetExecutionContext, release: str, deps: Sequence[str], period: Period) -> None:
    """Refuses a period while a partition of an upstream asset that overlaps it was not materialized.

    An asset without partitions, or with partitions that are not of time, must have been materialized after the end of
    the period.

    Args:
        context: of the step; its instance knows what was materialized.
        release: its name, for the message.
        deps: keys of upstream assets, parts joined by `/`.
        period: of the release; one without an end asks that each asset was materialized at all.

    Raises:
        UpstreamMissing: with the partitions.
    """
    missing = [problem for dep in deps for problem in _missing(context, dep, period)]
    if missing:
        raise UpstreamMissing(release, period.key, missing)


def _missing(context: dg.AssetExecutionContext, dep: str, period: Period) -> Iterator[str]:
    key, instance = dg.AssetKey(dep.split("/")), context.instance
    graph = context.job_def.asset_layer.asset_graph  # of the whole code location; tests have no repository
    partitions = graph.get(key).partitions_def if graph.has(key) else None
    if partitions is None:
        if not _seen_after(instance, key, period.end):
            since = "" if period.end is None else f" (not since the end of the period, {period.end:%Y-%m-%d})"
            yield f"{dep}{since}"
        return
    needed, unmet = _overlapping(partitions, period, instance)
    yield from (f"{dep} {problem}" for problem in unmet)
    if needed is None:
        there = _keys_seen_after(instance, key, period.end)
        needed = partitions.get_partition_keys(dynamic_partitions_store=instance)
    else:
        there = set(instance.get_materialized_partitions(key))
    yield from (f"{dep} {partition}" for partition in needed if partition not in there)


def _overlapping(
    partitions: dg.PartitionsDefinition, period: Period, instance: dg.DagsterInstance
) -> tuple[Sequence[str] | None, list[str]]:
    """The keys whose time overlaps the period, and what the set does not reach; no keys where it is not of time."""
    if period.start is None or period.end is None:
        return (partitions.get_partition_keys(dynamic_partitions_store=instance), [])
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        for dimension in partitions.partitions_defs:
            if isinstance(dimension.partitions_def, dg.TimeWindowPartitionsDefinition):
                keys, unmet = _windows(dimension.partitions_def, period.start, period.end)
                chosen = set(keys)
                every = partitions.get_multipartition_keys_with_dimension_value
                return ([key for value in sorted(chosen) for key in every(dimension.name, value)], unmet)
    if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        return _windows(partitions, period.start, period.end)
    return None, []


def _windows(
    partitions: dg.TimeWindowPartitionsDefinition, start: datetime, end: datetime
) -> tuple[list[str], list[str]]:
    """The keys whose windows overlap [start, end), whether or not they are offered yet, and what they leave open."""
    # A window may begin before the period does: a month for a week. So the search begins a window earlier.
    first = partitions.get_prev_partition_window(start)
    window = dg.TimeWindow(first.start if first is not None else start, end)
    keys = [
        key
        for key in partitions.get_partition_keys_in_time_window(window)
        if partitions.time_window_for_partition_key(key).end.timestamp() > start.timestamp()
    ]
    begins = partitions.start.timestamp()
    return keys, [f"begins after {start:%Y-%m-%d}"] if begins > start.timestamp() else []


def _seen_after(instance: dg.DagsterInstance, key: dg.AssetKey, end: datetime | None) -> bool:
    event = instance.get_latest_materialization_event(key)
    return event is not None and (end is None or event.timestamp >= end.timestamp())


def _keys_seen_after(instance: dg.DagsterInstance, key: dg.AssetKey, end: datetime | None) -> set[str]:
    after = 0.0 if end is None else end.timestamp()
    seen: set[str] = set()
    cursor = None
    while True:
        found = instance.fetch_materializations(key, limit=MOST_AT_ONCE, cursor=cursor)
        seen |= {made.partition_key for made in found.records if made.partition_key and made.timestamp >= after}
        if not found.has_more or found.records[-1].timestamp < after:
            return seen
        cursor = found.cursor
