"""A check that says what `dphist doctor --due` says: whether periods are due that nobody released."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from dphist_pipeline.errors import first_of
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.releasing.due import Cadence, Due
from dphist_pipeline.releasing.release_spec import ReleaseSpec

NAME = "nothing_due"
MOST_NAMED = 10
HELD = "values from records"


def due_check(spec: ReleaseSpec, storage: base.Storage, published: dg.AssetKey) -> dg.AssetChecksDefinition:
    """The check, in a step of its own that no release waits for: run it on a schedule of its own.

    Args:
        spec: checked; with periods.
        published: key of the asset that shows publications.
    """
    slack = Cadence.of(spec).slack_days

    @dg.asset_check(
        asset=published,
        name=NAME,
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
        late = due.overdue(now.astimezone(ZoneInfo(spec.time_zone)).date(), slack)
        said = f"{len(late)} due since {min(late.values())}: {first_of(sorted(late), MOST_NAMED)}" if late else ""
        numbers = {"due": len(due.keys), "due_too_long": len(late), "left_out_before_upgrade": len(due.left_out)}
        return dg.AssetCheckResult(passed=not late, metadata=numbers, description=said or None)

    return nothing_due
