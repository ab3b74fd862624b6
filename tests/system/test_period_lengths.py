"""A release is a series of periods of one length: another one is refused before anything is read or charged."""

from __future__ import annotations

import pytest
from office import Office

SERIES = {"period_column": "day", "period_format": "iso", "release_delay_days": 0}
RECORDS = {
    "patient": ["p1", "p2"],
    "age": [30, 40],
    "ward": ["surgery", "medicine"],
    "day": ["2026-01-09", "2026-02-03"],
}


@pytest.mark.parametrize(("then", "says"), [("week", "weeks"), ("none", "one table without periods")])
def test_another_length_under_the_same_name_is_refused_and_spends_nothing(office: Office, then: str, says: str) -> None:
    office.opened().write_records(RECORDS)
    office.write_spec(period="month", **SERIES)
    office.released("--period", "2026-01-01")
    charged = office.entries()
    changed = {"period": then, **(SERIES if then != "none" else {})}
    office.write_spec(**changed)
    words = [] if then == "none" else ["--period", "2026-02-02"]
    for ran in (office.release(*words), office.run("check", "spec.yaml")):
        said = " ".join(ran.err.split())
        assert ran.code == 1 and "has published months" in said and f"this spec has {says}" in said
        assert "write `period: month` again" in said
    assert office.entries() == charged
    office.write_spec(period="month", **SERIES)
    office.released("--period", "2026-02-01")


@pytest.mark.slow
def test_a_charged_period_is_finished_whatever_became_of_the_spec_since(office: Office) -> None:
    office.opened().write_records(RECORDS)
    office.write_spec(period="month", **SERIES)
    office.released("--period", "2026-01-01")
    assert office.release("--period", "2026-01-01").code == 0
