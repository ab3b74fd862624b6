"""`check` and `forecast` say beforehand when a quality table tells nothing; what is published then does not tell it."""

from __future__ import annotations

from typing import Any

import pytest
from office import AGE, Office
from system.test_families import FAMILY

SMALL = "The share of `quality` buys nothing"
KEEP = "Keep `quality` if a release holds "
ONE_WARD: dict[str, Any] = {"axes": [{"column": "ward", "values": ["surgery"], "other": True}]}
QUALITY = {"share": "1/10", "rows": 4}


def told(office: Office, *more: str) -> tuple[dict[str, Any], str]:
    """What `check` says of the office's spec, as JSON and in words."""
    return office.run("check", "spec.yaml", "--json").json, " ".join(
        office.run("check", "spec.yaml", *more).out.split()
    )


@pytest.mark.parametrize("more", [[], ["--explain"]])
def test_check_says_from_how_many_rows_on_a_quality_table_tells_something(office: Office, more: list[str]) -> None:
    office.opened().write_spec(quality=QUALITY, **ONE_WARD)
    facts, words = told(office, *more)
    assert facts["quality_tells_from"] == 2 * facts["quality_half_widths"]["cut"]
    assert f"where a release holds fewer than {facts['quality_tells_from']:,} rows, and little below" in words


def test_check_warns_where_it_tells_nothing_of_a_period_whose_cells_are_good(office: Office) -> None:
    office.opened().write_spec(quality=QUALITY, **ONE_WARD)
    facts, words = told(office)
    assert facts["quality_tells_from"] > facts["reliability"]["average_cell_poor_below"]["wards"]
    keep = f"{KEEP}{facts['quality_tells_from']:,} rows or more. With fewer its table cannot tell what the bound cuts"
    assert words.count(keep) == 1 and any(keep in remark for remark in facts["remarks"])
    office.write_spec(quality=QUALITY, axes=[{**AGE, "width": 1}])  # many cells need more rows than the table
    facts, words = told(office)
    assert facts["quality_tells_from"] < facts["reliability"]["average_cell_poor_below"]["wards"] and KEEP not in words


def test_the_share_that_check_names_is_enough(office: Office) -> None:
    wards: dict[str, Any] = {"axes": [{"column": "ward", "values": list("abcdefghijklmnopqrstuvwxyz"), "other": True}]}
    office.opened().write_spec(quality=QUALITY, **wards)
    facts, words = told(office)
    rows, share = (
        facts["reliability"]["average_cell_poor_below"]["wards"],
        words.split("take a share of ")[1].split()[0],
    )
    office.write_spec(quality={**QUALITY, "share": share.rstrip(",")}, **wards)
    assert 2 * told(office)[0]["quality_tells_from"] <= rows  # below twice those rows it tells little


@pytest.mark.parametrize("records, small", [(100, True), (1_000_000, False)])
def test_forecast_compares_a_quality_table_with_the_expected_records(office: Office, records: int, small: bool) -> None:
    office.opened().write_spec(quality=QUALITY)
    asked = ["forecast", "spec.yaml", "--mechanism", "geometric", "--records", str(records)]
    ran = office.run(*asked)
    assert (f"{SMALL} where a release holds {records:,} rows" in ran.out) == small, ran.err
    assert ("tells nothing of what the bound cuts where" in ran.out) == (not small)
    assert any(SMALL in one for one in office.run(*asked, "--json").json["quality"]) == small
    office.write_spec(**{**FAMILY, "epsilon": "1/2"}, quality=QUALITY)
    assert (SMALL in office.run("forecast", "spec.yaml", "--records", str(records)).out) == small


def test_without_a_quality_table_nothing_is_said_of_one(office: Office) -> None:
    office.opened().write_spec()
    facts, words = told(office)
    assert "quality_tells_from" not in facts and KEEP not in words
    assert "quality" not in office.run("forecast", "spec.yaml", "--mechanism", "geometric", "--json").json
