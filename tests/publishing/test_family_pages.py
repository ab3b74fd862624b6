"""Every table of a family has its picture and numbers: on the card where there are few, else on pages of their own."""

from __future__ import annotations

import html
import re
from typing import Any

import duckdb
import pytest
from carded import Read
from office import Office
from system.test_families import AGE, COUNTY, FAMILY, SEX, WARD, records

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]


@pytest.fixture
def office(office: Office) -> Office:
    made = office.opened()
    made.write_records(records())
    made.allow()
    return made


def card_of(office: Office, tables: list[list[str]]) -> str:
    changes: dict[str, Any] = {
        **FAMILY,
        "release": "wards",
        "axes": [AGE, SEX, WARD, COUNTY],
        "tables": {"list": tables},
    }
    office.write_spec(**changes)
    office.released()
    return (office.published() / "card.html").read_text(encoding="utf-8")


def test_the_card_shows_each_of_few_tables(office: Office) -> None:
    card = card_of(office, [["age", "sex"], ["state", "ward"], ["sex"]])
    for table in ("age_sex", "state_ward", "sex"):
        assert f"Table {table}: counts by" in card
    assert card.index("Table sex: counts by") < card.index("Table age_sex: counts by")  # the least noise first
    assert "at the top of this page" not in card and not list(office.published().glob("tables/*/card.html"))


def test_the_card_reads_a_file_that_is_there(office: Office) -> None:
    card = html.unescape(card_of(office, [["age", "sex"], ["sex"]]))
    (file,) = re.findall(r"^SELECT \* FROM '(.*\.parquet)';", card, re.MULTILINE)
    assert duckdb.sql(f"SELECT * FROM '{office.published() / file}'").fetchall()
    assert "beside this page\nSELECT" not in card


def test_the_card_of_a_family_tells_the_sensitivity_of_each_table(office: Office) -> None:
    text = Read(card_of(office, [["age", "sex"], ["sex"]])).text
    assert "changes the counts of each table together by at most this much" in text
    assert "changes all counts together" not in text


def test_each_of_many_tables_has_a_page(office: Office) -> None:
    tables = [["age", "sex"], ["state", "ward"], ["sex"], ["ward"], ["age"], ["state"], ["county"]]
    card = card_of(office, tables)
    for names in tables:
        page = office.published() / "tables" / "_".join(names) / "card.html"
        assert f'href="tables/{page.parent.name}/card.html"' in card
        text = page.read_text(encoding="utf-8")
        assert f"Table {page.parent.name}: counts by" in text and "<svg" in text and "../../card.html" in text
    done = office.run("withdraw", "wards", "all", "--reason", "wrong counts")
    assert done.code == 0, done.err
    assert "Withdrawn: do not use" in page.read_text(encoding="utf-8")
