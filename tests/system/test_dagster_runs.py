"""Runs under Dagster: they publish what `dphist release` would, spend once, and refuse what cannot be done."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest
from canary import fails
from office import OPEN_HEALTH, RECORDS, Office
from system.orchestrated import charges, defined, events, key, leftovers, materialized, public_files, said, shown

from dphist_pipeline.confidential import cube, noise
from dphist_pipeline.integrations.dagster import partitions_of
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing import release as releases
from dphist_pipeline.releasing import run as run_module
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import Run
from examples import mostly_soaked

pytestmark = [pytest.mark.outside, pytest.mark.stand_in("catalogue", "pictures", why="runs and their events")]

Patch = pytest.MonkeyPatch
WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16"]
WEEKLY = {"period": "week", "period_column": "admitted_on", "period_format": "iso", "first_period": WEEKS[0]}


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    """One instance for all runs, kept in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def released(office: Office, instance: dg.DagsterInstance, *names: str, **changes: Any) -> dg.ExecuteInProcessResult:
    """A run of the office's release that must succeed."""
    run = materialized(defined(office, **changes), instance, *names)
    assert run.success, said(run)
    return run


def source(office: Office) -> Path:
    return office.folder / "data" / "admissions.parquet"


NAME_THE_CHARGE = ("audit.parquet", "card.html", "deployment.yaml")


@pytest.mark.parametrize("mechanism", mostly_soaked(["geometric", "dpcube"], [1]))
def test_dagster_publishes_what_the_command_line_would(
    office: Office, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: Patch, mechanism: str
) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.arange(size) % 7)
    office.write_records()
    other = office.copied_to(tmp_path / "other")
    for each in (office, other):
        assert each.run("init", "--store", each.store).code == 0
        assert each.run("ledger", *OPEN_HEALTH, "--store", each.store).code == 0
    released(office, instance, mechanism=mechanism)
    other.write_spec(mechanism=mechanism)
    other.released("--store", str(other.store))
    ours, theirs = public_files(office), public_files(other)
    assert list(ours) == list(theirs)
    for name in ours:
        if name.endswith("audit.json"):
            facts = [json.loads(files[name]) for files in (ours, theirs)]
            for found in facts:
                for of_this_charge in ("ledger", "allowed", "audit_digest"):
                    del found[of_this_charge]
                for names_this_charge in NAME_THE_CHARGE:
                    found["files"].pop(names_this_charge, None)
            assert facts[0] == facts[1]
        elif not name.endswith(NAME_THE_CHARGE):
            assert ours[name] == theirs[name], name


def test_what_dagster_published_is_replayed_by_all_without_a_record(
    office: Office, instance: dg.DagsterInstance
) -> None:
    run = released(office.opened(), instance)
    assert shown(run, "published")["replayed"] is False
    source(office).unlink()
    shutil.rmtree(office.store / "confidential" / "journal")
    before = office.entries(), public_files(office)
    again = released(office, instance)
    assert shown(again, "published")["replayed"] is True
    assert office.released("--json").json["replayed"] is True
    assert releases.release(ReleaseSpec.load(office.folder / "spec.yaml"), office.store).replayed
    assert (office.entries(), public_files(office)) == before and charges(office) == 1


def test_a_manual_release_is_drawn_by_dagster_and_published_by_a_person(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = defined(office.opened(), publish="manual")
    job = definitions.resolve_job_def("wards_job")
    assert {node.name for node in job.nodes} == {"wards_release"}
    assert job.execute_in_process(instance=instance).success
    assert charges(office) == 1 and not office.published().exists()
    early = materialized(definitions, instance, "published")
    assert not early.success and "dphist publish" in said(early) and not office.published().exists()
    ran = office.run("publish", office.folder / "spec.yaml", "--approved-by", "Ada")
    assert ran.code == 0, ran.err
    late = materialized(definitions, instance, "published")
    assert late.success and shown(late, "published")["replayed"] is True
    assert charges(office) == 1


def test_a_quality_table_goes_through_dagster_and_leaves_nothing_exact(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = defined(office.opened(), quality={"rows": 4, "by": ["ward"]})
    for _ in range(2):
        run = definitions.resolve_job_def("wards_job").execute_in_process(instance=instance)
        assert run.success and charges(office) == 1
        assert "no cut rows detected" in str(shown(run, "published")["rows"])
    assert (office.published() / "quality.parquet").exists()
    exact = [path for path in (office.store / "confidential").rglob("*") if path.suffix in (".npy", ".npz", ".parquet")]
    assert exact == []


def test_what_the_command_line_published_is_replayed_by_dagster(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened().released()
    source(office).unlink()
    before = office.entries(), public_files(office)
    assert shown(released(office, instance), "published")["replayed"] is True
    assert (office.entries(), public_files(office)) == before


def test_the_job_releases_period_after_period(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened()
    days = [date.fromisoformat(WEEKS[0]) + timedelta(days=day) for day in (0, 6, 7, 20)]
    office.write_records({**RECORDS, "admitted_on": days})
    definitions = defined(office, **WEEKLY)
    for count, week in enumerate(WEEKS, start=1):
        run = definitions.resolve_job_def("wards_job").execute_in_process(instance=instance, partition_key=week)
        assert run.success and office.published(period=week).is_dir() and charges(office) == count
        assert {made.partition for made in events(run)} == {week}
    assert office.released("--period", WEEKS[1], "--json").json["replayed"] is True


def test_published_shows_epsilon_the_audit_and_a_picture(office: Office, instance: dg.DagsterInstance) -> None:
    found = shown(released(office.opened(), instance), "published")
    assert found["epsilon"] == "1/2"
    assert [record.data for record in found["audit"].records] == [
        {"step": "counts", "epsilon": "1/2", "noise_scale": "4"}
    ]
    assert found["overview"].startswith("![by age](data:image/svg+xml;base64,")
    assert str(office.published()).endswith(found["files"])


def test_a_release_is_finished_from_the_journal_without_records(office: Office, instance: dg.DagsterInstance) -> None:
    released(office.opened(), instance)
    before = office.entries(), public_files(office)
    source(office).unlink()
    shutil.rmtree(office.store / "public" / "wards")
    released(office, instance)
    assert (office.entries(), public_files(office)) == before and leftovers(office) == []


def test_a_period_that_is_not_over_is_refused_and_spends_nothing(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = defined(office.opened(), **WEEKLY, release_delay_days=30_000)
    before = office.state()
    with pytest.raises(dg.DagsterUnknownPartitionError):
        materialized(definitions, instance, partition=WEEKS[0])
    job = definitions.resolve_job_def("wards_job")
    run = job.execute_in_process(instance=instance, tags={"dagster/partition": WEEKS[0]}, raise_on_error=False)
    assert "can be released from" in said(run) and office.state() == before
    assert tags_of(instance, run)["dagster/max_retries"] == "0"


def tags_of(instance: dg.DagsterInstance, run: dg.ExecuteInProcessResult) -> dict[str, str]:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return dict(found.tags)


def test_the_schedules_tag_releases_a_period_that_partitions_do_not_offer_yet(
    office: Office, instance: dg.DagsterInstance
) -> None:
    office.opened()
    now = datetime.now(UTC)
    # On every day, some of these periods is over and not offered; on a Monday, weeks that start there are all offered.
    starts = {"monday": WEEKS[0], "sunday": "2026-03-01"}
    for (start, first), delay in product(starts.items(), range(1, 7)):
        definitions = defined(office, **WEEKLY | {"first_period": first}, week_starts=start, release_delay_days=delay)
        spec = ReleaseSpec.load(office.folder / "spec.yaml")
        key, offered = spec.latest_period(now).key, partitions_of(spec)
        assert offered is not None
        if key not in offered.get_partition_keys(current_time=now):
            job = definitions.resolve_job_def("wards_job")
            days = {**RECORDS, "admitted_on": [date.fromisoformat(key)] * 4}
            office.write_records(days)
            run = job.execute_in_process(instance=instance, tags={"dagster/partition": key})
            assert run.success and office.published(period=key).is_dir()
            assert {made.partition for made in events(run)} == {key}
            return
    raise AssertionError("no delay gave such a period")


def test_many_partitions_are_one_run_each_with_its_own_numbers(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened()
    days = [date.fromisoformat(WEEKS[0]) + timedelta(days=day) for day in (0, 6, 7, 20)]
    office.write_records({**RECORDS, "admitted_on": days})
    run = ranged(defined(office, **WEEKLY), instance, WEEKS[0], WEEKS[2])
    assert run.success and charges(office) == 3
    for asset in ("records", "cube", "sanitized", "published"):
        made = [event for event in events(run) if event.asset_key == key(asset)]
        assert [event.partition for event in made] == WEEKS
    totals = [event.metadata["total"].value for event in made]
    assert len(set(totals)) == 3 and all(event.metadata["epsilon"].value == "1/2" for event in made)


def ranged(
    definitions: dg.Definitions, instance: dg.DagsterInstance, first: str, last: str
) -> dg.ExecuteInProcessResult:
    """One run for all partitions of a range, as an asset backfill makes it."""
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    job = definitions.resolve_job_def("wards_job")
    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


def test_a_period_that_is_refused_does_not_hold_up_the_others(office: Office, instance: dg.DagsterInstance) -> None:
    office.opened()
    monthly = {**WEEKLY, "period": "month", "first_period": "2026-01-01", "source": "data/{year}-{month}.parquet"}
    definitions = defined(office, **monthly)
    for month in (1, 3):
        days = {**RECORDS, "admitted_on": [date(2026, month, 5)] * 4}
        office.write_records(days, f"data/2026-{month:02}.parquet")
    run = ranged(definitions, instance, "2026-01-01", "2026-03-01")
    assert not run.success and charges(office) == 2
    told = said(run)
    assert "1 of 3 periods were not released" in told and "data/2026-02.parquet" in told
    for asset in ("sanitized", "published"):
        made = [event.partition for event in events(run) if event.asset_key == key(asset)]
        assert made == ["2026-01-01", "2026-03-01"]


def test_a_release_with_periods_is_refused_without_a_partition(office: Office, instance: dg.DagsterInstance) -> None:
    definitions = defined(office.opened(), **WEEKLY)
    before = office.state()
    run = materialized(definitions, instance)
    assert "choose one, as a partition" in said(run) and office.state() == before


def other_digest(office: Office, patch: Patch) -> None:
    digests = iter(["0" * 64, *["1" * 64] * 9])
    patch.setattr(run_module, "values_digest", lambda estimate: next(digests))


def cell_missing(office: Office, patch: Patch) -> None:
    real = Run.releasable
    patch.setattr(Run, "releasable", lambda *given: {**real(*given), "cells complete": False})


def after_sanitizing(office: Office, patch: Patch, harm: Callable[[], None]) -> None:
    real = Run.draw

    def harmed(run: Run, before: Any) -> None:
        real(run, before)
        harm()

    patch.setattr(Run, "draw", harmed)


def journal_gone(office: Office, patch: Patch) -> None:
    after_sanitizing(office, patch, lambda: shutil.rmtree(office.store / "confidential" / "journal"))


def ledger_gone(office: Office, patch: Patch) -> None:
    ledger = office.store / "ledger.sqlite"
    after_sanitizing(office, patch, lambda: shutil.move(ledger, office.folder / "ledger.sqlite"))


@pytest.mark.parametrize("harm", mostly_soaked([other_digest, cell_missing, journal_gone, ledger_gone], [0, 3]))
def test_what_fails_the_check_is_not_published(
    office: Office, instance: dg.DagsterInstance, monkeypatch: Patch, harm: Callable[[Office, Patch], None]
) -> None:
    definitions = defined(office.opened())
    with monkeypatch.context() as patch:
        harm(office, patch)
        run = materialized(definitions, instance)
    assert not run.success and public_files(office) == {}
    assert key("published") not in [made.asset_key for made in events(run)]
    evaluations = run.get_asset_check_evaluations()
    assert all(not found.passed and found.blocking for found in evaluations)
    assert bool(evaluations) == (harm in (other_digest, cell_missing))


def test_after_a_failed_check_the_same_draw_is_published(
    office: Office, instance: dg.DagsterInstance, monkeypatch: Patch
) -> None:
    definitions = defined(office.opened())
    with monkeypatch.context() as patch:
        cell_missing(office, patch)
        assert not materialized(definitions, instance).success
    before = office.entries()
    monkeypatch.setattr(noise, "discrete_laplace", fails(AssertionError("drawn again")))
    released(office, instance)
    # One entry more, which records what was published.
    assert office.entries()[: len(before)] == before and charges(office) == 1


@pytest.mark.parametrize(
    ("where", "name"),
    mostly_soaked([(cube.np, "save"), (cube, "count_bounded"), (Geometric, "release"), (Run, "releasable")], [2]),
)
def test_the_cube_is_gone_after_a_failure_and_the_next_run_finishes(
    office: Office, instance: dg.DagsterInstance, monkeypatch: Patch, where: Any, name: str
) -> None:
    definitions = defined(office.opened())
    with monkeypatch.context() as broken:
        broken.setattr(where, name, fails(ZeroDivisionError("secret")))  # engines' own errors are told in other words
        run = materialized(definitions, instance)
    assert "failed with ZeroDivisionError (message withheld" in said(run) and "secret" not in said(run)
    assert leftovers(office) == []
    released(office, instance)
    assert leftovers(office) == [] and charges(office) == 1


def test_confidential_steps_tell_dagster_the_same_whatever_the_records(
    office: Office, instance: dg.DagsterInstance
) -> None:
    told = []
    many: dict[str, list[Any]] = {name: values * 5000 for name, values in RECORDS.items()}
    for release, records in (("wards", RECORDS), ("wards", {name: [] for name in RECORDS}), ("wards", many)):
        shutil.rmtree(office.store, ignore_errors=True)
        office.opened().write_records(records)
        run = released(office, instance, release=release)
        for made in events(run)[:2]:
            assert not made.metadata and made.description is None
            assert all(
                name.startswith(("dagster/data_version", "dagster/code_version", "dagster/input_"))
                for name in made.tags
            )
        entries = [entry for entry in instance.all_logs(run.run_id) if entry.step_key == "wards_release"]
        assert all(entry.dagster_event is not None for entry in entries)
        # What checks find in published, noisy values may differ.
        told.append(
            [
                (entry.dagster_event_type, without_times(entry.user_message))
                for entry in entries
                if "' on 'wards/published'" not in entry.user_message
            ]
        )
    assert told[0] == told[1] == told[2]


def without_times(message: str) -> str:
    words = message.split(" in ")
    return words[0] if message.startswith(("Finished execution", "Execution of step")) else message


def test_the_log_of_a_waiting_release_tells_its_charge_and_none_of_its_values(
    office: Office, instance: dg.DagsterInstance
) -> None:
    definitions = defined(office.opened(), publish="manual")
    run = materialized(definitions, instance, "records", "cube", "sanitized")
    (made,) = (found for found in events(run) if found.asset_key == key("sanitized"))
    (charge,) = (entry for entry in office.entries() if entry[1] == "charged")
    assert (made.tags or {})["dagster/data_version"] == charge[-1][:32]
    told = [entry.user_message for entry in instance.all_logs(run.run_id) if "waits for approval" in entry.user_message]
    assert len(told) == 1 and "dphist publish SPEC --approved-by NAME" in told[0]
