"""The assets that records come from, and whether they are there for a period, as Dagster's own records say it.

Keys of assets and of their partitions are public: they follow from definitions and the calendar, not from records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

from dphist_pipeline.errors import Refused, first_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.periods import Period

MOST_NAMED = 10
PASSED, FAILED = "SUCCEEDED", "FAILED"
PARTITION = "dagster/partition"
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
MOST_AT_ONCE = 1_000
_NO_PART_OF_A_KEY = re.compile(r"[^A-Za-z0-9_.-]+")


def sources_of(spec: ReleaseSpec, prefix: str) -> Sequence[str]:
    """The keys of the assets that records come from: `deps`, or an external asset that is named after the source.

    `data/{year}-{month}.csv` is `data/year-month.csv`, and `data/admissions/*.parquet` is `data/admissions`. The key is
    of the address as written, never of what the environment gave.

    Args:
        prefix: of the keys of the release's own assets, none of which comes from itself.
    """
    if spec.deps:
        return spec.deps
    address = "/".join([spec.source.replace(":", "/"), *filter(None, [spec.source_table])])
    parts = [_NO_PART_OF_A_KEY.sub("_", re.sub(r"[{}]", "", part)).strip("_") for part in address.split("/")]
    key = "/".join(part for part in parts if part and not part.startswith(".")) or "source"
    return (f"{key}/source",) if key.startswith(f"{prefix}/") else (key,)


def upstream_missing(release: str, period: str, missing: Sequence[str]) -> Refused:
    """Upstream partitions of a period that were not materialized."""
    names = first_of(missing, MOST_NAMED)
    return Refused(
        f"release '{release}', period {period}: needs what is not there: {names}. Nothing was read or spent. "
        "Materialize them and run again. Only where a period is complete without them, write `require: none`",
        code="upstream_missing",
    )


def refuse_missing(context: dg.AssetExecutionContext, release: str, deps: Sequence[str], period: Period) -> None:
    """Refuses a period while a partition of an upstream asset that overlaps it was not materialized.

    An asset without partitions, or with partitions that are not of time, must have been materialized after the end of
    the period.

    Args:
        deps: keys of upstream assets, parts joined by `/`.
        period: of the release; one without an end asks that each asset was materialized at all.
    """
    missing = [problem for dep in deps for problem in _missing(context, dep, period)]
    if missing:
        raise upstream_missing(release, period.key, missing)


def upstream_check_failed(release: str, period: str, failed: Sequence[str]) -> Refused:
    """Checks of upstream partitions of a period that did not pass."""
    return Refused(
        f"release '{release}', period {period}: held back by checks (`require: checks`): "
        f"{first_of(failed, MOST_NAMED)}. Nothing was read or spent. Once they pass, run it again",
        code="upstream_check_failed",
    )


def refuse_failed_checks(
    context: dg.AssetExecutionContext, release: str, checks: Sequence[str], period: Period
) -> None:
    """Refuses a period while a check did not pass on an upstream partition that overlaps it.

    The newest evaluation of a partition counts. A check that names no partitions speaks for those of its run. What
    checks see depends on records, so an operator decides in the ledger which ones may hold a release back.

    Args:
        checks: keys of upstream assets, parts joined by `/`, a colon, and the name of a check of the asset.
    """
    failed = [problem for name in checks for problem in _failed_checks(context, name, period)]
    if failed:
        raise upstream_check_failed(release, period.key, failed)


def _failed_checks(context: dg.AssetExecutionContext, name: str, period: Period) -> Iterator[str]:
    asset, _, check = name.rpartition(":")
    key, instance = dg.AssetKey(asset.split("/")), context.instance
    graph = context.job_def.asset_layer.asset_graph
    partitions = graph.get(key).partitions_def if graph.has(key) else None
    partitions_needed = _overlapping(partitions, period, instance)[0] if partitions is not None else None
    wanted: list[str | None] = [None] if partitions_needed is None else list(partitions_needed)
    open_ones = set(wanted)
    cursor: int | None = None
    states: dict[str | None, str] = {}
    while open_ones:
        history = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(key, check), limit=MOST_AT_ONCE, cursor=cursor
        )
        for record in history:
            spoken = {None} if partitions_needed is None else _partitions_of(record, partitions, instance) & open_ones
            states |= dict.fromkeys(spoken & open_ones, record.status.value)
            open_ones -= spoken
        if len(history) < MOST_AT_ONCE:
            break
        cursor = history[-1].id
    for partition in wanted:
        title = name if partition is None else f"{name} {partition}"
        if states.get(partition) != PASSED:
            yield f"{title} {'failed' if states.get(partition) == FAILED else 'was not run to its end'}"


def _partitions_of(
    record: AssetCheckExecutionRecord, partitions: dg.PartitionsDefinition | None, instance: dg.DagsterInstance
) -> set[str | None]:
    """The partitions that a record of a check speaks of: its own, or those of its run."""
    if record.partition is not None:
        return {record.partition}
    run = instance.get_run_by_id(record.run_id) if record.run_id else None
    tags = run.tags if run is not None else {}
    if PARTITION in tags:
        return {tags[PARTITION]}
    if RANGE_START in tags and partitions is not None:
        ends = dg.PartitionKeyRange(tags[RANGE_START], tags[RANGE_END])
        return set(partitions.get_partition_keys_in_range(ends))
    return set()


def _missing(context: dg.AssetExecutionContext, dep: str, period: Period) -> Iterator[str]:
    key, instance = dg.AssetKey(dep.split("/")), context.instance
    graph = context.job_def.asset_layer.asset_graph  # of the whole code location; tests have no repository
    partitions = graph.get(key).partitions_def if graph.has(key) else None
    if partitions is None:
        if not _seen_after(instance, key, period.end):
            since = "" if period.end is None else f" (not since the end of the period, {period.end:%Y-%m-%d})"
            yield f"{dep}{since}"
        return
    partitions_needed, unmet = _overlapping(partitions, period, instance)
    yield from (f"{dep} {problem}" for problem in unmet)
    if partitions_needed is None:
        keys_present = _keys_seen_after(instance, key, period.end)
        partitions_needed = partitions.get_partition_keys(dynamic_partitions_store=instance)
    else:
        keys_present = set(instance.get_materialized_partitions(key))
    yield from (f"{dep} {partition}" for partition in partitions_needed if partition not in keys_present)


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
                partition_keys = set(keys)
                every = partitions.get_multipartition_keys_with_dimension_value
                return ([key for value in sorted(partition_keys) for key in every(dimension.name, value)], unmet)
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
    keys: set[str] = set()
    cursor = None
    while True:
        page = instance.fetch_materializations(key, limit=MOST_AT_ONCE, cursor=cursor)
        keys |= {record.partition_key for record in page.records if record.partition_key and record.timestamp >= after}
        if not page.has_more or page.records[-1].timestamp < after:
            return keys
        cursor = page.cursor
