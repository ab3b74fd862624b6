"""A release to an individual account, from `dphist ledger open` to its card: nothing says what is left."""

from __future__ import annotations

import json

import pytest
from office import OPEN_HEALTH, Office

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("catalogue", "pictures", why="what is said of individual accounts"),
]
OPEN = [*OPEN_HEALTH[:-1], "2", "--renews", "yearly", "--accounting", "individual"]
SOURCE = ("--source", "data/admissions.parquet")


@pytest.fixture
def opened(office: Office) -> Office:
    """An office whose only account is an individual one."""
    office.undecided()
    office.write_records()
    office.write_spec()
    assert office.run("ledger", *OPEN, *SOURCE, "--store", office.store).code == 0
    return office


def test_a_release_is_charged_checked_and_shown_without_what_is_left(opened: Office) -> None:
    store = ("--store", opened.store)
    checked = opened.run("check", opened.folder / "spec.yaml", *store)
    assert "at most 8 rows of each unit are counted in a calendar year" in " ".join(checked.out.split())
    released = opened.run("release", opened.folder / "spec.yaml", *store)
    assert released.code == 0, released.err
    assert " left" not in released.out
    shown = opened.run("ledger", "show", "health", *store)
    assert "left of" not in shown.out and "0.5 for 2 rows" in shown.out
    (facts,) = opened.run("ledger", "show", "health", "--json", *store).json
    assert facts["accounting"] == "individual" and "left" not in facts
    report = opened.run("ledger", "report", "--json", *store)
    assert report.code == 0 and "left" not in report.json["accounts"][0]
    assert opened.run("ledger", "report", *store).code == 0
    assert opened.run("ledger", "verify", *store).code == 0
    (published,) = (opened.store / "public/wards").glob("period=*/revision=1")
    audit = json.loads((published / "audit.json").read_bytes())
    assert audit["year_rows"] == 8
    assert "At the price of this release at most 8 rows" in " ".join((published / "card.html").read_text().split())


def test_the_same_call_again_replays_and_another_spec_of_the_same_account_pays_too(opened: Office) -> None:
    spec, store = opened.folder / "spec.yaml", ("--store", opened.store)
    assert opened.run("release", spec, *store).code == 0
    assert "Already published" in opened.run("release", spec, *store).out
    opened.write_spec(release="others", epsilon="3/2", max_rows_per_unit=1)
    assert opened.run("release", spec, *store).code == 0
    opened.write_spec(release="third", epsilon="5/2", max_rows_per_unit=1)
    refused = opened.run("release", spec, *store)
    assert refused.code == 1 and "would count nobody" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((*OPEN_HEALTH, "--accounting", "individual", *SOURCE), "--renews yearly"),
        (OPEN, "--source"),
        ((*OPEN_HEALTH, "--accounting", "private", *SOURCE), "summed or individual"),
        ((*OPEN, "--source", "data/none.parquet"), "files that are there"),
    ],
)
def test_what_cannot_be_opened_says_why(office: Office, options: tuple[str, ...], says: str) -> None:
    office.undecided()
    office.write_records()
    refused = office.run("ledger", *options, "--store", office.store)
    assert refused.code != 0 and says in " ".join(refused.err.split())
    assert office.run("ledger", "show", "--json", "--store", office.store).json == []
