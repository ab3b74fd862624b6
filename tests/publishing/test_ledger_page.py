"""The privacy officer's report as a page: it says what the report says, and nothing in it can do harm."""

from __future__ import annotations

import re
from typing import Any

import pytest
from carded import HOSTILE, SHOWN_HOSTILE, Read, assert_fetches_and_runs_nothing
from jinja2 import UndefinedError

from dphist_pipeline.publishing.pages import ledger_page

DECISION = {
    "entry": 3,
    "when": "2026-03-01",
    "by": "Ada",
    "did": "allowed a source",
    "what": "a.csv",
    "reason": "a start",
}
CHARGE = {
    **{"release": "wards", "period": "2026-03-02", "revision": 2, "epsilon": "1/2", "when": "2026-03-10"},
    **{
        "state": "published",
        "reason": "a late file",
        "notes": ["approved: fine", "withdrawn: wrong"],
        "allowed_by": [],
    },
}
ACCOUNT = {
    **{"account": "health", "protects": "patient (add_remove)", "signatures": 1, "total": "26", "renews": True},
    **{"spent": "1/2", "spent_ever": "5/2", "left": "51/2", "allowed": ["source a.csv"], "shared_with": ["school"]},
    "spent_percent": 100 / 52,
    **{"decisions": [DECISION], "held": {"published": 2, "rejected": 1}, "charges": [CHARGE]},
}


def report(**changes: Any) -> dict[str, Any]:
    return {
        "ledger": "l-1",
        "year": 2026,
        "as_of": "2026-03-20 06:00",
        "operators": ["Ada"],
        "general": [],
        "accounts": [ACCOUNT],
        **changes,
    }


def test_it_says_what_was_decided_spent_and_left() -> None:
    text = Read(ledger_page(report())).text
    for said in (
        *(
            "Privacy budget of 2026",
            "Ledger l-1 , as of 2026-03-20 06:00 UTC; operators: Ada",
            "Total 26 each calendar year",
            "Spent 1/2 this year",
        ),
        *("Left 51/2 this year", "Spent ever 5/2", "Reads source a.csv", "Shares people with school"),
        "1.9 % of the total is spent this year.",
        "Held for a person to decide: 2 published, 1 rejected.",
        *("allowed a source a.csv a start", "a late file approved: fine; withdrawn: wrong"),
    ):
        assert said in text


def test_an_empty_ledger_says_that_no_account_is_open() -> None:
    text = Read(ledger_page(report(accounts=[], operators=[], year=None))).text
    assert "No account is open." in text and "operators: none yet" in text and "Privacy budget of" not in text


def test_every_text_of_the_ledger_is_shown_and_none_is_markup() -> None:
    decision, charge = dict.fromkeys(DECISION, HOSTILE), {**dict.fromkeys(CHARGE, HOSTILE), "notes": [HOSTILE]}
    account = {**dict.fromkeys(ACCOUNT, HOSTILE), "allowed": [HOSTILE], "shared_with": [HOSTILE]}
    account |= {"decisions": [decision], "held": {}, "charges": [charge], "spent_percent": 2.0}
    page = ledger_page(report(ledger=HOSTILE, operators=[HOSTILE], general=[decision], accounts=[account]))
    assert_fetches_and_runs_nothing(page)
    assert Read(page).text.count(SHOWN_HOSTILE) == 30
    assert not {"\u202e", "\u202c", "\x07"} & set(page)


def test_a_value_that_the_page_needs_and_nobody_gives_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="general"):
        ledger_page({name: value for name, value in report().items() if name != "general"})


def test_every_region_that_scrolls_has_a_name_of_its_own() -> None:
    page = ledger_page(report(accounts=[ACCOUNT, {**ACCOUNT, "account": "school"}], general=[DECISION]))
    names = re.findall(r'role="region" aria-label="([^"]+)"', page)
    accounts = [f"{what}, {account}" for account in ("health", "school") for what in ("Decisions", "Charges")]
    assert names == [*accounts, "Decisions about the whole ledger"]
