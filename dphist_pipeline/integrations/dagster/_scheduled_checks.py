"""Checks in steps of their own, which no release waits for: run them on a schedule of their own.

One says what `dphist doctor --due` says: whether periods are due that nobody released. The other one says which periods
Dagster shows by a revision that is not in force: revised or withdrawn elsewhere.
"""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from dphist_pipeline.errors import first_of
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.releasing.due import Cadence, Due
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.periods import EVERYTHING

DUE_NAME = "nothing_due"
MOST_NAMED = 10
HELD = "values from records"
LATEST_NAME = "shows_latest"
REVISION = "revision"  # in the metadata of a materialization


def due_check(spec: ReleaseSpec, storage: base.Storage, published: dg.AssetKey) -> dg.AssetChecksDefinition:
    """The check of what is due of a release with periods, on the asset that shows publications."""
    slack = Cadence.of(spec).slack_days

    @dg.asset_check(
        asset=published,
        name=DUE_NAME,
        description=(
            f"No {spec.period} has been due for more than {slack} days: finished, and neither released nor waived. "
            "It reads the ledger alone, so it sees a schedule that died; run it on a schedule of its own."
        ),
        required_resource_keys=storage.keys,
    )
    def nothing_due(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        now = datetime.now(UTC)
        due = base.withheld(
            "looking at what is due",
            lambda: Due.of(
                spec.release, spec.period_rule, store := storage.open(context.resources), store.ledger(), now
            ),
            HELD,
        )
        due_periods = due.overdue(now.astimezone(ZoneInfo(spec.time_zone)).date(), slack)
        problem = (
            f"{len(due_periods)} due since {min(due_periods.values())}: {first_of(sorted(due_periods), MOST_NAMED)}"
            if due_periods
            else ""
        )
        numbers = {"due": len(due.keys), "due_too_long": len(due_periods), "left_out_before_upgrade": len(due.left_out)}
        return dg.AssetCheckResult(passed=not due_periods, metadata=numbers, description=problem or None)

    return nothing_due


def latest_check(spec: ReleaseSpec, storage: base.Storage, published: dg.AssetKey) -> dg.AssetChecksDefinition:
    """The check of what Dagster shows, on the asset that shows publications."""

    @dg.asset_check(
        asset=published,
        name=LATEST_NAME,
        description=(
            "What Dagster shows of each period is the revision in force. A period that was revised or withdrawn by the "
            "command line stays green; of a revised one, run it once more, which spends nothing, to see its numbers."
        ),
        required_resource_keys=storage.keys,
    )
    def shows_latest(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        revisions = _materialized_revisions(context.instance, published)
        file = storage.open(context.resources).public / spec.release / DerivedFiles.current
        entries = json.loads(file.read_bytes())["periods"] if file.is_file() else []
        in_force = {entry["period"]: int(entry["revision"]) for entry in entries}
        older = {
            period: f"{period} shows revision {revision}, "
            + (f"{in_force[period]} is in force" if period in in_force else "which was withdrawn")
            for period, revision in revisions.items()
            if in_force.get(period) != revision
        }
        problem = first_of(sorted(older.values()), MOST_NAMED)
        return dg.AssetCheckResult(
            passed=not older,
            metadata={"periods": len(revisions), "not_in_force": len(older)},
            description=problem or None,
        )

    return shows_latest


def _materialized_revisions(instance: dg.DagsterInstance, published: dg.AssetKey) -> dict[str, int]:
    """The revision in the last materialization of each period."""
    ids = instance.get_latest_storage_id_by_partition(published, dg.DagsterEventType.ASSET_MATERIALIZATION)
    if ids:
        latest = dg.AssetRecordsFilter(asset_key=published, storage_ids=sorted(ids.values()))
        records = instance.fetch_materializations(latest, limit=len(ids)).records
        materializations = [record.asset_materialization for record in records]
    else:
        event = instance.get_latest_materialization_event(published)
        materializations = [event.asset_materialization] if event is not None else []
    return {
        materialization.partition or EVERYTHING: int(str(materialization.metadata[REVISION].value))
        for materialization in materializations
        if materialization is not None and REVISION in materialization.metadata
    }
