"""Whether this machine's zone data are those by which records are counted, for the zones of the store's releases."""

from __future__ import annotations

from dphist_pipeline.base.zone_data import MEND, zone_data_version, zone_difference
from dphist_pipeline.health.finding import CheckResult, Examined, first_names, not_looked_at, ok, warning
from dphist_pipeline.releasing.due import Cadence

UTC = "UTC"


def zone_data(subject: Examined) -> CheckResult:
    """Whether Python and DuckDB agree for a year on the local time of every zone that releases were charged for in."""
    check = "zone_data"
    if subject.store is None or subject.ledger is None:
        return not_looked_at(check, "the ledger cannot be opened")
    releases = sorted({charge.release for charge in subject.ledger.books().every_charge()})
    cadences = [Cadence.last_charged(subject.store, release) for release in releases]
    zones = sorted({cadence.rule.time_zone for cadence in cadences if cadence is not None} - {UTC})
    differences = [found for zone in zones if (found := zone_difference(zone, subject.now)) is not None]
    if differences:
        others = [found.zone for found in differences[1:]]
        return warning(
            check, differences[0].says + (f"; and so for {first_names(others)}" if others else ""), f"{MEND}."
        )
    versions = ", ".join(sorted({zone_data_version(zone) for zone in zones} - {""}))
    agree = f"Python's{f' ({versions})' if versions else ''} and DuckDB's agree for a year on {first_names(zones)}"
    return ok(check, agree if zones else "every release is in UTC, which needs none")
