"""How long an account lasts: the releases that are left, and until when."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from office import Office

from dphist_pipeline.ledger.ledger import Account, Charge
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.release_spec import ReleaseSpec

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
WEEKLY = {"period": "week", "period_column": "admitted", "release_delay_days": 7}


def spec_of(office: Office, **changes: Any) -> ReleaseSpec:
    office.write_spec(**{**WEEKLY, "epsilon": "1/2", **changes})
    return ReleaseSpec.load("spec.yaml")


def charge(period: str, release: str = "wards", revision: int = 1) -> Charge:
    return Charge(1, "h", "health", release, period, revision, Fraction(1, 2), "d", "", "2026-03-01T00:00:00Z")


def told(spec: ReleaseSpec, total: str, *charges: Charge, yearly: bool = False) -> AccountRunway:
    renews = "yearly" if yearly else None
    account = Account("health", "patient", "add_remove", Fraction(total), renews, "s")  # type: ignore[arg-type]
    spent = sum((one.epsilon for one in charges), Fraction(0))
    return AccountRunway.by_statement(
        spec, Statement(account, 2026, account.total, spent, spent, account.total - spent, [*charges]), NOW
    )


def test_weeks_are_paid_one_after_the_other_from_the_latest_finished_one(office: Office) -> None:
    # On 20 March the latest week that ended a week ago or earlier is that of 2 March.
    found = told(spec_of(office), "1.9")
    assert (found.releases, found.last, found.until) == (3, "2026-03-16", "2026-03-30")
    assert "1.9 of 1.9 left: 3 more releases, of the weeks 2026-03-02 to 2026-03-16, the last due on" in found.says
    assert "the last due on 2026-03-30, if nothing else is charged to it" in found.says
    assert found.says.endswith(
        "counted from the last week that is finished today, since the spec has no `first_period`"
    )


def test_the_next_week_follows_the_last_that_was_charged(office: Office) -> None:
    found = told(spec_of(office), "2", charge("2026-02-23"), charge("2026-03-02"), charge("2026-03-02", revision=2))
    assert (found.releases, found.last) == (1, "2026-03-09")
    assert "1 more release, of the week 2026-03-09, due on 2026-03-23" in found.says and "today" not in found.says


def test_the_first_period_of_the_spec_begins_where_nothing_was_charged(office: Office) -> None:
    found = told(spec_of(office, first_period="2026-01-05"), "1")
    assert (found.releases, found.last, found.until) == (2, "2026-01-12", "2026-01-26")
    assert "of the weeks 2026-01-05 to 2026-01-12, the last due on" in found.says and "today" not in found.says


def test_no_week_after_the_last_of_the_spec_is_counted(office: Office) -> None:
    ends = spec_of(office, first_period="2026-01-05", last_period="2026-01-19")
    found = told(ends, "9")
    assert (found.releases, found.until) == (None, None)
    assert "9 of 9 left: enough for the 3 weeks that are left up to 2026-01-19, the last of the spec" in found.says
    assert told(ends, "1").releases == 2
    assert "no week is left up to 2026-01-19" in told(ends, "9", charge("2026-01-19")).says
    assert "enough for the one week that is left" in told(ends, "9", charge("2026-01-12")).says
    yearly = told(spec_of(office, first_period="2025-12-22", last_period="2026-01-05"), "1", yearly=True)
    assert yearly.releases == 2


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"period": "month"}, "2026-02-01"),
        ({"period": "quarter"}, "2025-10-01"),
        ({"period": "year"}, "2025-01-01"),
        ({"period": "quarter", "quarter_starts": "february"}, "2025-11-01"),
        ({"week_starts": "sunday"}, "2026-03-01"),
    ],
)
def test_every_period_has_a_last_one(office: Office, changes: dict[str, str], last: str) -> None:
    found = told(spec_of(office, **changes), "1/2")
    assert (found.releases, found.last) == (1, last)


def test_too_little_for_one_release_is_said(office: Office) -> None:
    found = told(spec_of(office), "0.4")
    assert (found.releases, found.last) == (0, None) and "not enough for one release" in found.says


def test_a_table_without_periods_has_releases_left_and_no_date(office: Office) -> None:
    found = told(spec_of(office, period="none", period_column=...), "26")
    assert (found.releases, found.last, found.until) == (52, None, None)


def test_a_yearly_total_is_used_up_until_january(office: Office) -> None:
    found = told(spec_of(office), "2", yearly=True)
    assert (found.releases, found.last) == (4, "2026-03-23")
    assert "left this year" in found.says and "then used up until 1 January 2027" in found.says


def test_a_yearly_total_counts_what_is_late_in_the_year_it_is_charged_in(office: Office) -> None:
    # Of the weeks of 2026 those that end after 24 December are due in 2027.
    enough, short = (told(spec_of(office), total, yearly=True) for total in ("26.5", "26"))
    assert enough.releases is None and "lasts for good, 53 releases a year take at most 26.5 of 26.5" in enough.says
    assert short.releases is not None and "used up until 1 January" in short.says


def test_a_yearly_total_pays_this_year_for_what_is_late_from_the_last(office: Office) -> None:
    found = told(spec_of(office, first_period="2025-12-01"), "1", yearly=True)
    assert (found.releases, found.last) == (2, "2025-12-08") and "used up until 1 January 2027" in found.says


def test_an_account_beyond_all_periods_is_not_walked_through(office: Office) -> None:
    found = told(spec_of(office), "1000000")
    assert found.releases is None and "lasts for centuries" in found.says


def test_who_else_spends_is_named(office: Office) -> None:
    found = told(spec_of(office), "9", charge("2026-03-02", release="other"))
    assert "it also pays for other, whose future charges are not included here" in found.says


def test_charges_under_other_periods_do_not_matter(office: Office) -> None:
    assert told(spec_of(office, period="month"), "1", charge("2026-03-09")).last == "2026-02-01"


@pytest.mark.slow
def test_no_store_and_no_account_are_said(office: Office) -> None:
    office.write_spec()
    words = ["forecast", "spec.yaml", "--mechanism", "geometric", "--json"]
    assert "cannot be used: there is no store" in office.run(*words).json["account"]["says"]
    office.opened()
    office.write_spec(account="nobodys")
    told_of = office.run(*words).json["account"]
    assert (told_of["known"], told_of["releases"]) == (False, None) and "nobodys" in told_of["says"]
    office.write_spec(neighbours="substitute")
    assert "protects patient (add_remove)" in office.run(*words).json["account"]["says"]
    office.write_spec()
    office.released()
    assert office.run(*words).json["account"]["releases"] == 19


def test_an_account_that_is_not_open_comes_with_the_command_for_this_spec(office: Office) -> None:
    office.opened()
    spec = spec_of(office, account="helth", privacy_unit="Patient No", neighbours="substitute")
    opening = "dphist ledger open helth --for SPEC --total EPSILON"  # the spec says how its source is read
    assert "Did you mean 'health'?" in (says := AccountRunway.of(spec, None).says) and opening in says
