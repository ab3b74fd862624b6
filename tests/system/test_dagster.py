"""What a release looks like to Dagster: the same assets however it is loaded, and nothing for the rest of a project."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from office import SPEC, Office
from system.orchestrated import NAMES, defined, from_attributes, from_folder, key, materialized, outside, said

from dphist_pipeline.integrations.dagster import partitions_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError

pytestmark = [
    pytest.mark.outside,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),  # by Dagster, to read a defs.yaml
]

PERIODS = {"period": "week", "period_column": "admitted_on", "period_format": "iso"}
WAYS = ("factory", "attributes", "folder")


@pytest.fixture(params=WAYS)
def loaded(request: pytest.FixtureRequest, office: Office, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.Definitions]:
    """The same release, loaded each way."""
    changes = {"owners": ["team:statistics"], "schedule": "0 6 * * MON", "title": "Admissions"}
    office.opened()
    monkeypatch.setenv("DPHIST_STORE", str(office.store))
    if request.param == "factory":
        yield defined(office, **changes)
    elif request.param == "attributes":
        yield from_attributes({**SPEC, **changes})
    else:
        address = str(outside(office)["source"])
        assert office.run("ledger", "allow", "health", "--source", address).code == 0
        with from_folder({**outside(office), **changes}) as (_, definitions):
            yield definitions


def specs(definitions: dg.Definitions) -> dict[str, dg.AssetSpec]:
    found = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    own = {name: found.pop(key(name)) for name in NAMES}
    assert [*found] == [dep.asset_key for dep in own["records"].deps]  # an external asset, the source
    return own


def test_every_way_to_load_a_release_gives_the_same_assets_and_publishes(
    loaded: dg.Definitions, office: Office
) -> None:
    found = specs(loaded)
    for name, kind in zip(NAMES, ("duckdb", "polars", "python", "parquet"), strict=True):
        spec, public = found[name], name in ("sanitized", "published")
        assert spec.key == key(name) and spec.group_name == "wards" and spec.kinds == {kind}
        assert spec.owners == ["team:statistics"]
        assert spec.tags["dp/zone"] == ("public" if public else "confidential")
        assert spec.tags.get("dp/epsilon") == ("0.5" if public else None)
        assert spec.tags.get("dp/mechanism") == ("geometric" if public else None)
        assert ("withheld" in (spec.description or "")) != public
    chain = {name: [dep.asset_key for dep in spec.deps] for name, spec in found.items()}
    assert chain == {
        "records": chain["records"],
        "cube": [key("records")],
        "sanitized": [key("cube")],
        "published": [key("sanitized")],
    }
    with dg.DagsterInstance.ephemeral() as instance:
        run = materialized(loaded, instance)
    assert run.success, said(run)
    assert office.published().is_dir()


@pytest.mark.parametrize(
    ("settings", "tags"),
    [
        ({}, {"structure_share": "1-2", "threshold": "auto", "estimation": "uniform", "max_depth": "40"}),
        (
            {"threshold": {"noise": 0.7}, "structure_share": "1/4", "max_depth": 5},
            {"structure_share": "1-4", "threshold": "noise-0.7", "estimation": "uniform", "max_depth": "5"},
        ),
    ],
)
def test_assets_are_found_by_the_mechanism_and_its_settings(
    settings: dict[str, object], tags: dict[str, str], office: Office
) -> None:
    found = specs(from_attributes({**SPEC, "mechanism": "dpcube", "settings": settings}))
    for name in ("sanitized", "published"):
        settled = {label.removeprefix("dp/setting."): value for label, value in found[name].tags.items()}
        assert {label: settled.get(label) for label in tags} == tags and settled["dp/mechanism"] == "dpcube"


def test_a_release_brings_one_job_and_one_stopped_schedule_and_nothing_else(
    loaded: dg.Definitions,
) -> None:
    jobs, schedules = list(loaded.jobs or []), list(loaded.schedules or [])
    assert [job.name for job in jobs] == ["wards_job"]
    assert loaded.resolve_job_def("wards_job").executor_def.name == "in_process"
    (schedule,) = schedules
    assert isinstance(schedule, dg.ScheduleDefinition) and schedule.name == "wards_schedule"
    assert schedule.cron_schedule == "0 6 * * MON" and schedule.execution_timezone == "UTC"
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
    assert loaded.executor is None and not loaded.loggers and not loaded.resources and not loaded.sensors


def test_a_schedule_ticks_by_the_clock_of_its_release(office: Office) -> None:
    (schedule,) = defined(office.opened(), schedule="0 6 * * MON", time_zone="Europe/Madrid").schedules or ()
    assert isinstance(schedule, dg.ScheduleDefinition) and schedule.execution_timezone == "Europe/Madrid"


def test_two_releases_stand_side_by_side_in_a_project_with_its_own_settings(office: Office) -> None:
    first, second = defined(office), defined(office, release="beds")
    theirs = dg.Definitions(executor=dg.multiprocess_executor, resources={"theirs": 1})
    merged = dg.Definitions.merge(first, second, theirs)
    assert {spec.group_name for spec in merged.resolve_all_asset_specs() if spec.key.path[0] in ("wards", "beds")} == {
        *("wards", "beds"),
    }
    dg.Definitions.validate_loadable(merged)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_a_release_is_refused_before_anything_runs(office: Office, name: str) -> None:
    definitions = defined(office.opened())
    with dg.DagsterInstance.ephemeral() as instance, pytest.raises(dg.DagsterInvalidDefinitionError) as refused:
        materialized(definitions, instance, name)
    assert isinstance(refused.value.__cause__, dg.DagsterInvalidSubsetError)


def test_the_column_schema_is_that_of_the_published_file(office: Office) -> None:
    definitions = defined(office.opened())
    with dg.DagsterInstance.ephemeral() as instance:
        run = materialized(definitions, instance)
    assert run.success, said(run)
    schema = specs(definitions)["published"].metadata["dagster/column_schema"]
    columns = [(column.name, column.type) for column in schema.columns]
    types = {"double": "double", "int64": "int64", "string": "string", "large_string": "string"}
    written = pq.read_schema(office.published() / "histogram.parquet")
    assert columns == [(field.name, types[str(field.type)]) for field in written]
    assert all(column.description for column in schema.columns)


def spec_with(office: Office, **changes: Any) -> ReleaseSpec:
    office.write_spec(**changes)
    return ReleaseSpec.load(office.folder / "spec.yaml")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid", "America/Havana", "Asia/Beirut", "Pacific/Apia"])
@pytest.mark.parametrize(
    "cut",
    [{"period": "week"}, {"period": "week", "week_starts": "sunday"}]
    + [{"period": length} for length in ("month", "quarter", "year")]
    + [{"period": length, "quarter_starts": "march"} for length in ("quarter", "year")],
)
def test_partitions_are_the_periods_of_the_spec(office: Office, zone: str, cut: dict[str, str]) -> None:
    spec = spec_with(office, **PERIODS | cut, time_zone=zone)
    partitions = partitions_of(spec)
    assert partitions is not None
    now = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
    period = spec.latest_period(now)
    periods = []
    while period.key >= "2020-01-01" and period.start is not None:
        periods.append(period)
        period = spec.latest_period(period.start)
    assert partitions.get_partition_keys(current_time=now) == [period.key for period in reversed(periods)]
    for period in periods[::7]:
        window = partitions.time_window_for_partition_key(period.key)
        assert period.start is not None and period.end is not None
        assert (window.start.timestamp(), window.end.timestamp()) == (period.start.timestamp(), period.end.timestamp())


def test_a_release_without_periods_has_no_partitions(office: Office) -> None:
    assert partitions_of(spec_with(office)) is None


def asked(definitions: dg.Definitions, moment: str) -> list[str | None]:
    schedule = definitions.resolve_schedule_def("wards_schedule")
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime.fromisoformat(moment), repository_def=definitions.get_repository_def()
    )
    return [request.tags.get("dagster/partition") for request in schedule.evaluate_tick(context).run_requests or []]


def test_the_schedule_asks_for_the_latest_period_that_is_over_with_its_delay(office: Office) -> None:
    weekly = defined(office, **PERIODS, schedule="0 6 * * *", release_delay_days=7)
    assert asked(weekly, "2026-03-15T06:00+00:00") == ["2026-02-23"]
    assert asked(weekly, "2026-03-16T06:00+00:00") == ["2026-03-02"]
    assert asked(defined(office, schedule="0 6 * * *"), "2026-03-16T06:00+00:00") == [None]


def test_the_schedule_asks_for_nothing_before_the_first_period_is_over(office: Office) -> None:
    weekly = defined(office, **PERIODS, schedule="0 6 * * *", first_period="2026-03-02")
    assert asked(weekly, "2026-03-08T06:00+00:00") == []
    assert asked(weekly, "2026-03-09T06:00+00:00") == ["2026-03-02"]


def test_one_message_names_every_mistake_with_its_path(office: Office) -> None:
    axes = [SPEC["axes"][0], {"column": "ward", "values": ["a", 1]}]
    wrong = {**SPEC, "epsilon": 0, "account": ..., "epsilom": 1, "source": "{{ env.NOWHERE }}/a.parquet", "axes": axes}
    wrong = {name: value for name, value in wrong.items() if value is not ...}
    with pytest.raises(SpecError) as refused:
        from_attributes(wrong)
    with pytest.raises(ComponentTreeException) as in_project, from_folder(wrong):
        pass
    for message in (str(refused.value), _whole(in_project.value)):
        assert message.count("mistakes, nothing was read or spent") == 1
        for path in ("epsilon: ", "account: ", "epsilom: ", "source: ", "axes[1].values[1]: "):
            assert f"attributes.{path}" in message


def _whole(error: BaseException | None) -> str:
    return "" if error is None else f"{error}\n{_whole(error.__cause__)}"


def test_text_stays_text_and_the_environment_is_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECORDS", str(office.folder))
    changes = {
        "epsilon": "1/3",
        "source": "{{ env.RECORDS }}/data/admissions.parquet",
        "axes": [{"column": "ward", "values": ["1", "2.0", "true", "None", "[1]"]}],
    }
    for spelled in ("neighbours", "neighbors"):
        attributes = {name: value for name, value in {**SPEC, **changes}.items() if name != "neighbours"}
        with from_folder({**attributes, spelled: "add_remove"}) as (component, _):
            spec = component.spec
        assert spec.epsilon == Fraction(1, 3)
        assert spec.domain.axes[0].values == ("1", "2.0", "true", "None", "[1]")  # type: ignore[union-attr]
        assert spec.source_pattern == str(office.folder / "data" / "admissions.parquet")
        assert str(office.folder) not in str(spec.as_json())
    monkeypatch.setenv("RECORDS", "elsewhere")
    assert spec.digest == spec_with(office, **changes).digest


def test_a_subclass_may_change_how_assets_look(office: Office) -> None:
    from dphist_pipeline import HistogramRelease

    class Ours(HistogramRelease):
        def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
            return spec.merge_attributes(tags={"ours": "yes"})

    component = Ours.from_attributes_dict(attributes=SPEC)
    found = specs(component.build_defs(dg.ComponentTree.for_test().load_context))
    assert all(spec.tags["ours"] == "yes" for spec in found.values())
