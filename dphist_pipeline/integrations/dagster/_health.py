"""A sensor that runs the checks of `dphist doctor`, and tells somebody once of whatever is wrong."""

from collections.abc import Callable

import dagster as dg

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.health.doctor import examine
from dphist_pipeline.releasing.store import Store

NAMING_PERIODS = ("doubtful", "due")


def health_sensor(
    tell: Callable[[str], None], *, releases_only: bool = False, every: int = 3600, name: str = "dphist_doctor"
) -> dg.SensorDefinition:
    """A sensor that starts no run: it looks at the project's store, and tells what became wrong since it last told.

    What stays wrong is told once. If `tell` fails, the tick fails, and it is told again at the next one. That all is
    well again is told, too. Nothing that it says depends on records.

    Args:
        tell: is given a line for each finding that is not ok; sends it to a person.
        releases_only: whether the user who runs Dagster must not be able to decide.
    """

    @dg.sensor(
        name=name,
        minimum_interval_seconds=every,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Checks store, ledger, witness, key, disk, clock and versions, as `dphist doctor` does.",
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        findings_open = [finding for finding in examine(Store.folder(), releases_only) if finding.state != "ok"]
        # Texts hold times and counts that change: what is told once is that a check is in a state. A period more that
        # may be wrong, or is due, is news.
        findings = [
            [finding.check, finding.state, finding.seen if finding.check in NAMING_PERIODS else ""]
            for finding in findings_open
        ]
        mark = sha256(findings) if findings_open else ""
        if mark != (context.cursor or ""):
            lines = [f"{finding.state}: {finding.check}: {finding.seen}. {finding.mend}" for finding in findings_open]
            tell("\n".join(lines) or "dphist doctor: all is well again")
        summary = "; ".join(f"{finding.check}: {finding.state}" for finding in findings_open) or "all is well"
        return dg.SensorResult(skip_reason=summary, cursor=mark)

    return look
