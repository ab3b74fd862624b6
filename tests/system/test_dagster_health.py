"""The sensor of the doctor's checks: it tells what became wrong once, and that all is well again."""

from __future__ import annotations

import dagster as dg
import pytest
from office import Office

from dphist_pipeline.health.finding import CheckResult
from dphist_pipeline.integrations.dagster import _health as health
from dphist_pipeline.integrations.dagster import health_sensor

pytestmark = pytest.mark.outside


def test_what_became_wrong_is_told_once_and_so_is_its_mend(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened()
    monkeypatch.setenv("DPHIST_STORE", str(office.store))
    told: list[str] = []
    sensor, cursor = health_sensor(told.append), ""

    def tick(with_sensor: dg.SensorDefinition = sensor) -> str:
        nonlocal cursor
        with office.witnessed(), dg.build_sensor_context(cursor=cursor) as context:
            done = with_sensor(context)
        assert isinstance(done, dg.SensorResult) and not done.run_requests
        cursor = done.cursor or ""
        return str(done.skip_reason and done.skip_reason.skip_message)

    assert tick() == tick() == "witness: warning"
    assert len(told) == 1 and "on the same disk" in told[0] and "DPHIST_WITNESS" in told[0]
    (office.store / "confidential").chmod(0o755)
    assert tick() == tick() == "confidential: fault; witness: warning"
    assert len(told) == 2 and "chmod 700" in told[1]
    (office.store / "confidential").chmod(0o700)
    tick()
    assert len(told) == 3 and "confidential" not in told[2]

    def fails(text: str) -> None:
        raise OSError("no mail server")

    (office.store / "confidential").chmod(0o755)
    with pytest.raises(OSError, match="no mail server"):
        tick(health_sensor(fails))
    tick()
    assert len(told) == 4 and "chmod 700" in told[3]


def test_a_further_period_that_may_be_wrong_is_told_and_other_changed_texts_are_not(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    monkeypatch.setenv("DPHIST_STORE", str(office.store))
    seen = {"doubtful": "wards 2026-03-02", "disk": "9 GB are free"}
    found = [CheckResult(check, "warning", text, "look") for check, text in seen.items()]
    monkeypatch.setattr(health, "examine", lambda *given: found)
    told: list[str] = []
    sensor, cursor = health_sensor(told.append), ""
    for check, text, times in (("disk", "8 GB are free", 1), ("doubtful", "wards 2026-03-02; wards 2026-03-09", 2)):
        for _ in range(2):
            with dg.build_sensor_context(cursor=cursor) as context:
                done = sensor(context)
            assert isinstance(done, dg.SensorResult)
            cursor = done.cursor or ""
        found[:] = [
            CheckResult(one.check, "warning", text if one.check == check else one.seen, "look") for one in found
        ]
        with dg.build_sensor_context(cursor=cursor) as context:
            sensor(context)
        assert len(told) == times
