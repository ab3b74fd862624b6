"""Before a charge, what a period needs must be there: files by placeholders, partitions by a person's word."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow.parquet as pq
import pytest
from office import RECORDS, Office
from system.orchestrated import audit, charges

pytestmark = pytest.mark.draws_alike

MONTHLY = {
    "period": "quarter",
    "period_column": "admitted_on",
    "period_format": "iso",
    "source": "data/{year}-{month}.parquet",
}
QUARTER = "2026-01-01"
MONTHS = ("2026-01", "2026-02", "2026-03")
ONCE = {**RECORDS, "admitted_on": [date(2026, 1, 5)] * 4}


def office_with(office: Office, *months: str, **changes: Any) -> Office:
    """The office with records of some months, and a spec that names each month's file."""
    office.opened().write_spec(**{**MONTHLY, **changes})
    for month in months:
        office.write_records(ONCE, f"data/{month}.parquet")
    return office


@pytest.mark.slow
def test_a_missing_file_is_named_and_nothing_is_spent(office: Office) -> None:
    office_with(office, "2026-01", "2026-03")
    before = office.state()
    refused = office.release("--period", QUARTER)
    assert refused.code == 1 and "data/2026-02.parquet" in refused.err and "2026-03" not in refused.err
    assert office.state() == before
    office.write_records(ONCE, "data/2026-02.parquet")
    office.released("--period", QUARTER)
    assert charges(office) == 1


SPELLS = {"period": "month", "period_column": "admitted_on", "source": "data/{year}-{month}.parquet", "epsilon": 20}


@pytest.mark.slow
def test_a_row_in_the_next_month_s_file_is_counted_in_its_own_month_once(office: Office) -> None:
    """Spells by month of discharge: who was admitted on 30 December lies in the file of January."""
    office.opened().run("ledger", "raise", "health", "--total", "200", "--reason", "no noise to speak of")
    days = {"2025-12": (date(2025, 12, 5),), "2026-01": (date(2025, 12, 30), date(2026, 1, 4)), "2026-02": ()}
    for number, (month, admitted) in enumerate(days.items()):
        rows = {name: values[: len(admitted)] for name, values in RECORDS.items()}
        rows |= {"patient": [f"{number}{place}" for place in range(len(admitted))], "admitted_on": list(admitted)}
        office.write_records(rows, f"data/{month}.parquet")
    counted = {}
    for after in (0, 1):
        office.write_spec(**SPELLS, release=f"after_{after}", **({"files_after": after} if after else {}))
        for month in ("2025-12-01", "2026-01-01"):
            office.released("--period", month)
            folder = office.store / "public" / f"after_{after}" / f"period={month}" / "revision=1"
            counted[after, month] = round(sum(pq.read_table(folder / "histogram.parquet")["estimate"].to_pylist()))
    assert counted == {(0, "2025-12-01"): 1, (0, "2026-01-01"): 1, (1, "2025-12-01"): 2, (1, "2026-01-01"): 1}
    refused = office.release("--period", "2026-02-01")
    assert refused.code == 1 and "not there: data/2026-03.parquet" in refused.err
    office.write_spec(**SPELLS, release="after_1", files_after=1, require="none")
    office.released("--period", "2026-02-01")


@pytest.mark.slow
def test_with_no_requirement_what_is_there_is_counted_but_never_nothing(office: Office) -> None:
    office_with(office, require="none")
    refused = office.release("--period", QUARTER)
    assert refused.code == 1 and all(f"data/{month}.parquet" in refused.err for month in MONTHS)
    office.write_records(ONCE, "data/2026-01.parquet")
    office.released("--period", QUARTER)


@pytest.mark.slow
def test_a_published_period_replays_without_its_files_and_so_does_a_charged_one(office: Office) -> None:
    office_with(office, *MONTHS).released("--period", QUARTER)
    for month in MONTHS:
        (office.folder / f"data/{month}.parquet").unlink()
    assert office.released("--period", QUARTER, "--json").json["replayed"] is True


@pytest.mark.slow
def test_files_of_other_periods_are_not_read(office: Office) -> None:
    office_with(office, *MONTHS)
    (office.folder / "data/2025-12.parquet").write_bytes(b"no Parquet file")
    office.released("--period", QUARTER)


def test_check_names_what_the_latest_period_still_needs(office: Office) -> None:
    office_with(office)
    told = office.run("check", office.folder / "spec.yaml")
    assert told.code == 1 and ".parquet" in told.out and "needs files that are not there" in told.out


UPSTREAM = {"source": "data/admissions.parquet", "deps": ["raw/visits"]}


@pytest.mark.slow
def test_a_plain_run_that_requires_partitions_needs_a_reason_which_the_audit_keeps(office: Office) -> None:
    office.opened().write_spec(**UPSTREAM)
    before = office.state()
    refused = office.release()
    assert refused.code == 1 and "raw/visits" in refused.err and "--upstream-checked" in refused.err
    assert office.state() == before
    office.released("--upstream-checked", "counted the days by hand")
    assert audit(office)["upstream_checked"] == "counted the days by hand"
    office.released("--upstream-checked", "another word")
    assert audit(office)["upstream_checked"] == "counted the days by hand"
    assert charges(office) == 1 and office.run("ledger", "verify").code == 0


def test_files_that_placeholders_name_stand_for_partitions_in_a_plain_run(office: Office) -> None:
    office_with(office, "2026-01", "2026-02", deps=["raw/visits"])
    assert "data/2026-03.parquet" in office.release("--period", QUARTER).err
    office.write_records(ONCE, "data/2026-03.parquet")
    office.released("--period", QUARTER)
    assert "upstream_checked" not in audit(office, period=QUARTER)


@pytest.mark.slow
def test_a_charge_that_was_vouched_for_is_finished_without_the_word(office: Office, monkeypatch: Any) -> None:
    from dphist_pipeline.releasing import publisher

    office.opened().write_spec(**UPSTREAM)
    with monkeypatch.context() as broken:
        broken.setattr(publisher, "publish", lambda *_, **__: (_ for _ in ()).throw(OSError("disk")))
        assert office.release("--upstream-checked", "seen").code != 0
    assert charges(office) == 1
    office.released()
    assert audit(office)["upstream_checked"] == "seen"


def test_two_accounts_do_not_share_files_by_placeholders(office: Office) -> None:
    office_with(office, *MONTHS)
    words = ["open", "other", "--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "1"]
    refused = office.run("ledger", *words, "--source", "data/2026-*.parquet")
    assert refused.code == 1 and "health" in refused.err
