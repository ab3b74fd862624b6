"""`dphist doctor --due`: says and exits with 1 where finished periods were not released, whatever died."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from office import RECORDS, Office

from dphist_pipeline.health.overdue import overdue
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="what is due")

MONDAY = date.today() - timedelta(days=date.today().weekday())
WEEKS = [(MONDAY - timedelta(weeks=back)).isoformat() for back in range(6, 0, -1)]
WEEKLY = {"period": "week", "period_column": "admitted_on", "period_format": "iso", "freshness": 0, "epsilon": "1/10"}


@pytest.fixture
def weekly(office: Office) -> Office:
    """A weekly release whose weeks are due at once; nothing is released yet."""
    office.opened().write_records({**RECORDS, "admitted_on": [date.fromisoformat(WEEKS[0])] * 4})
    office.write_spec(**WEEKLY)
    return office


def told(office: Office) -> tuple[int, list[str]]:
    """The exit code, and the periods that are due."""
    ran = office.run("doctor", "--due", "--json", "--store", office.store)
    return ran.code, [one["period"] for one in ran.json["due"]]


@pytest.mark.slow
def test_a_dead_schedule_is_told_by_the_command_that_cron_runs(weekly: Office) -> None:
    assert told(weekly) == (0, [])
    weekly.released("--period", WEEKS[0])
    code, periods = told(weekly)
    assert code == 1 and periods[0] == WEEKS[1] and len(periods) >= 4
    ran = weekly.run("doctor", "--due", "--store", weekly.store)
    assert ran.code == 1 and f"{len(periods)} periods due since {WEEKS[2]}: wards {WEEKS[1]}" in ran.out
    for week in periods:
        weekly.released("--period", week)
    assert told(weekly) == (0, [])
    assert "nothing is due" in weekly.run("doctor", "--due", "--store", weekly.store).out


def due_at(office: Office, hours: int) -> list[str]:
    """The periods that are due so many hours after Monday's midnight in UTC."""
    now = datetime.combine(MONDAY, time(), UTC) + timedelta(hours=hours)
    with office.witnessed():
        store = Store.open(office.store)
        return [period for _, period, _ in overdue(store, store.ledger(), now).periods]


def test_a_week_is_due_the_day_after_it_was_ready_by_the_clock_of_its_release(weekly: Office) -> None:
    weekly.write_spec(**WEEKLY, time_zone="America/Los_Angeles")
    weekly.released("--period", WEEKS[0])
    assert due_at(weekly, 26) == WEEKS[1:-1]  # Tuesday in UTC, Monday there
    assert due_at(weekly, 36) == WEEKS[1:]


@pytest.mark.slow
def test_another_spec_says_anew_how_late_a_week_may_be(weekly: Office) -> None:
    weekly.released("--period", WEEKS[0])
    assert due_at(weekly, 36) == WEEKS[1:]
    weekly.write_spec(**{**WEEKLY, "freshness": 8})
    weekly.released("--period", WEEKS[1])
    assert due_at(weekly, 36) == WEEKS[2:-2]


@pytest.mark.slow
def test_a_waived_week_pages_nobody_and_an_ended_release_neither(weekly: Office) -> None:
    for week in (WEEKS[0], WEEKS[2]):
        weekly.released("--period", week)
    assert weekly.run("ledger", "waive", "wards", WEEKS[1], "--reason", "lost", "--store", weekly.store).code == 0
    code, periods = told(weekly)
    assert code == 1 and WEEKS[1] not in periods and periods[0] == WEEKS[3]
    words = ("waive", "wards", WEEKS[3], "--and-later", "--reason", "the study ended")
    assert weekly.run("ledger", *words, "--store", weekly.store).code == 0
    assert told(weekly) == (0, [])
    shown = " ".join(weekly.run("ledger", "show", "--store", weekly.store).out.split())
    assert f"wards/{WEEKS[1]}" in shown and f"wards/{WEEKS[3]}+" in shown
    assert weekly.run("ledger", "verify", "--store", weekly.store).code == 0


@pytest.mark.slow
def test_nothing_is_due_after_the_last_period_of_a_release(weekly: Office) -> None:
    weekly.write_spec(**WEEKLY, last_period=WEEKS[2])
    weekly.released("--period", WEEKS[0])
    code, periods = told(weekly)
    assert code == 1 and periods == [WEEKS[1], WEEKS[2]]
    weekly.released()
    assert told(weekly)[1] == [WEEKS[1]] and weekly.published(period=WEEKS[2]).is_dir()


def test_what_can_never_be_due_is_not_waived(office: Office) -> None:
    office.opened()
    words = ("ledger", "waive", "wards", WEEKS[1], "--reason", "lost", "--store", office.store)
    never = office.run(*words)
    assert never.code == 1 and "nothing was ever charged for this release" in never.err
    office.released()
    assert told(office) == (0, [])
    whole = office.run(*words)
    assert whole.code == 1 and "this release has no periods" in whole.err


@pytest.mark.slow
def test_doctor_lists_what_an_earlier_version_left_out_and_pages_nobody(
    weekly: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        charge = Ledger.charge
        earlier.setattr(Ledger, "charge", lambda ledger, asked: charge(ledger, replace(asked, folder=None)))
        for week in (WEEKS[0], WEEKS[2]):
            weekly.released("--period", week)
    for week in WEEKS[3:5]:
        weekly.released("--period", week)
    (found,) = [
        one for one in weekly.run("doctor", "--json", "--store", weekly.store).json["checks"] if one["check"] == "due"
    ]
    assert f"left out before an upgrade, and run by command only: wards {WEEKS[1]}" in found["seen"]
    assert WEEKS[1] not in told(weekly)[1]


def test_a_charged_week_that_was_never_published_is_due(weekly: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    from dphist_pipeline.releasing import publisher

    with monkeypatch.context() as broken:
        broken.setattr(publisher, "publish", lambda *_, **__: (_ for _ in ()).throw(OSError("disk")))
        assert weekly.release("--period", WEEKS[0]).code != 0
    assert told(weekly)[1][0] == WEEKS[0]


@pytest.mark.slow
def test_doctor_warns_of_what_is_due_and_names_releases_that_nobody_described(weekly: Office) -> None:
    weekly.released("--period", WEEKS[0])
    words = ("doctor", "--json", "--store", weekly.store)
    (found,) = [one for one in weekly.run(*words).json["checks"] if one["check"] == "due"]
    assert found["state"] == "warning" and f"dphist ledger waive wards {WEEKS[1]}" in found["mend"]
    weekly.write_spec(release="census")
    weekly.released()
    shutil.rmtree(weekly.store / "specs" / "periods")  # as an earlier version left it
    (found,) = [one for one in weekly.run(*words).json["checks"] if one["check"] == "due"]
    assert found["seen"] == "nothing is due (not known before their next release: wards)"


def test_a_store_that_cannot_be_opened_is_no_good_news(office: Office) -> None:
    assert office.run("doctor", "--due", "--store", office.folder / "nowhere").code == 1
