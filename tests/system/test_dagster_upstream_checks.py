"""`require: checks`: a check of an upstream asset holds a period back, where an operator let it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import dagster as dg
import pytest
from office import RECORDS, Office
from system.orchestrated import audit, charges, defined, said

from dphist_pipeline.spec.mistakes import SpecError

pytestmark = [
    pytest.mark.outside,
    pytest.mark.stand_in("catalogue", "pictures", why="refusals before anything is charged"),
]

VISITS = dg.AssetKey(["raw", "visits"])
DAYS = dg.DailyPartitionsDefinition("2026-03-01")
NAME = "raw/visits:complete"
WEEK = "2026-03-02"
OF_WEEK = [f"2026-03-{day:02}" for day in range(2, 9)]
GOOD = dict.fromkeys(OF_WEEK, True)
ASKED = {"deps": ["raw/visits"], "require": "checks", "required_checks": [NAME]}
WEEKLY = {"period": "week", "period_column": "admitted_on", "period_format": "iso", "first_period": WEEK, **ASKED}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        for day in OF_WEEK:
            made.report_runless_asset_event(dg.AssetMaterialization(VISITS, partition=day))
        yield made


@pytest.fixture
def allowed(office: Office) -> Office:
    """An office whose operator let the check hold releases back."""
    office.opened().write_records({**RECORDS, "admitted_on": [date(2026, 3, 3)] * 4})
    ran = office.run(
        "ledger", "allow", "health", "--check", NAME, "--reason", "a file may lack rows", "--store", office.store
    )
    assert ran.code == 0, ran.err
    return office


def project(office: Office) -> dg.Definitions:
    raw = dg.AssetSpec(VISITS, partitions_def=DAYS)
    return dg.Definitions.merge(defined(office, **WEEKLY), dg.Definitions(assets=[raw]))


def evaluated(instance: dg.DagsterInstance, days: dict[str, bool]) -> None:
    """One run that evaluates the check for each of these days."""

    @dg.op
    def look() -> Any:
        for day, passed in days.items():
            yield dg.AssetCheckEvaluation(VISITS, "complete", passed, partition=day)
        yield dg.Output(None)

    @dg.job
    def looked() -> None:
        look()

    assert looked.execute_in_process(instance=instance).success


def checked_by_a_run(instance: dg.DagsterInstance, passed: bool, tags: dict[str, str]) -> None:
    """The check without partitions that most projects have, in a run over some partitions."""

    @dg.multi_asset(
        specs=[dg.AssetSpec(VISITS, partitions_def=DAYS)],
        check_specs=[dg.AssetCheckSpec("complete", asset=VISITS)],
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def visits() -> Any:
        yield dg.MaterializeResult(asset_key=VISITS)
        yield dg.AssetCheckResult(passed=passed, asset_key=VISITS, check_name="complete")

    job = dg.Definitions(assets=[visits], jobs=[dg.define_asset_job("raw", "*")]).resolve_job_def("raw")
    assert job.execute_in_process(instance=instance, tags=tags).success


def ran(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Any:
    job = definitions.resolve_job_def("wards_job")
    return job.execute_in_process(partition_key=WEEK, instance=instance, raise_on_error=False)


def test_a_failed_check_of_a_day_holds_its_week_back_until_it_passes(
    allowed: Office, instance: dg.DagsterInstance
) -> None:
    definitions = project(allowed)
    evaluated(instance, {**GOOD, "2026-03-04": False, "2026-03-09": False})  # the last is of the next week
    run = ran(definitions, instance)
    assert "raw/visits:complete 2026-03-04 failed. Nothing was read or spent" in said(run)
    assert "2026-03-03" not in said(run) and "2026-03-09" not in said(run) and charges(allowed) == 0
    evaluated(instance, {"2026-03-04": True})
    assert ran(definitions, instance).success and charges(allowed) == 1


def test_a_check_that_was_never_run_holds_its_week_back(allowed: Office, instance: dg.DagsterInstance) -> None:
    run = ran(project(allowed), instance)
    assert "raw/visits:complete 2026-03-02 was not run to its end" in said(run) and charges(allowed) == 0


def test_a_check_without_partitions_speaks_for_those_of_its_run(allowed: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(allowed)
    ends = {"dagster/asset_partition_range_start": OF_WEEK[0], "dagster/asset_partition_range_end": OF_WEEK[-1]}
    checked_by_a_run(instance, True, ends)
    checked_by_a_run(instance, False, {"dagster/partition": "2026-03-05"})
    run = ran(definitions, instance)
    assert "raw/visits:complete 2026-03-05 failed" in said(run) and "2026-03-04" not in said(run)
    checked_by_a_run(instance, True, {"dagster/partition": "2026-03-05"})
    assert ran(definitions, instance).success


def test_a_published_week_is_replayed_whatever_its_checks_say(allowed: Office, instance: dg.DagsterInstance) -> None:
    definitions = project(allowed)
    evaluated(instance, GOOD)
    assert ran(definitions, instance).success
    evaluated(instance, {OF_WEEK[0]: False})
    assert ran(definitions, instance).success and charges(allowed) == 1


def test_no_spec_lets_a_check_hold_releases_back_by_itself(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened().write_records({**RECORDS, "admitted_on": [date(2026, 3, 3)] * 4})
    evaluated(instance, GOOD)
    run = ran(project(office), instance)
    assert "dphist ledger allow health --check raw/visits:complete --reason TEXT" in said(run)
    assert charges(office) == 0


def test_card_and_audit_say_that_appearing_depends_on_records(allowed: Office, instance: dg.DagsterInstance) -> None:
    evaluated(instance, GOOD)
    assert ran(project(allowed), instance).success
    assert audit(allowed, period=WEEK)["required_checks"] == [NAME]
    card = " ".join((allowed.published(period=WEEK) / "card.html").read_text(encoding="utf-8").split())
    assert "Whether a period of this release appears depends on records." in card and NAME in card


def test_the_command_line_asks_for_somebody_who_looked_at_the_checks(allowed: Office) -> None:
    allowed.write_spec(**WEEKLY)
    refused = allowed.release("--period", WEEK)
    assert refused.code == 1 and "that raw/visits:complete passed (`require: checks`)" in " ".join(refused.err.split())
    allowed.released("--period", WEEK, "--upstream-checked", "looked at them")
    assert charges(allowed) == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"require": "checks"}, "go together; write both or neither"),
        ({"required_checks": [NAME]}, "go together; write both or neither"),
        ({"require": "checks", "required_checks": ["raw/beds:complete"]}, "a check of no asset that `deps` names"),
        ({"require": "checks", "required_checks": ["complete"]}, "the key of an asset and the name of its check"),
    ],
)
def test_required_checks_are_named_with_their_assets(office: Office, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as refused:
        defined(office, **{**WEEKLY, "require": ..., "required_checks": ..., **fields})
    assert told in str(refused.value)
