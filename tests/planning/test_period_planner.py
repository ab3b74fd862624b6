"""Lengths of period side by side: the same total a year, more records in longer periods, fewer releases."""

from __future__ import annotations

import math

import pytest
from office import Office

from dphist_pipeline.estimates.laws import noise_law

LINE = {"column": "age", "start": 0, "stop": 100, "width": 25}
FORECAST = ("forecast", "spec.yaml", "--mechanism", "geometric", "--repeat", "1", "--records", "700", "--json")


def compared(office: Office, *words: str) -> dict[str, dict[str, object]]:
    told = office.run(*FORECAST, *words).json["periods"]
    return {one["period"]: one for one in told["compared"]} | {"all": told}


def test_each_length_shares_the_year_and_holds_the_records_of_its_days(office: Office) -> None:
    office.write_spec(axes=[LINE], epsilon="1/2", max_rows_per_unit=2, period="week", period_column="day")
    told = compared(office)
    assert told["all"]["total_a_year"] == "53/2" and "53 releases" in str(told["all"]["because"])
    for name, releases in {"week": 53, "month": 12, "quarter": 4, "year": 1}.items():
        epsilon = 26.5 / releases
        assert told[name]["releases"] == releases and told[name]["epsilon"] == pytest.approx(epsilon)
        decay = math.exp(-epsilon / 2)
        assert told[name]["error"] == pytest.approx(math.sqrt(2 * decay) / (1 - decay), rel=1e-3)
    # A cell of the flat table holds 175 rows a week, and four and a half times as many a month.
    assert told["week"]["good"][1] == 1.0 and told["month"]["poor"][0] == 0.0  # type: ignore[index]


def test_the_total_that_is_named_makes_the_average_cell_fair_and_no_less_does(office: Office) -> None:
    office.write_spec(axes=[LINE], epsilon="1/2", max_rows_per_unit=2, period="week", period_column="day")
    told = compared(office)
    for name, days in {"week": 7, "month": 30.4375}.items():
        total, limit = float(told[name]["total_for_fair"]), 700 * days / 7 / 4 / 4  # type: ignore[arg-type]
        errors = []
        for share in (1.01, 0.98):
            epsilon = total * share / int(told[name]["releases"])  # type: ignore[call-overload]
            decay = math.exp(-epsilon / 2)
            errors.append(math.sqrt(2 * decay) / (1 - decay))
        assert errors[0] <= limit < errors[1]


def test_a_quality_table_takes_its_share_here_too(office: Office) -> None:
    office.write_spec(
        axes=[LINE], epsilon="1/2", max_rows_per_unit=2, period="week", period_column="day", quality={"share": "1/5"}
    )
    scale = 2 / (0.4)
    assert compared(office)["week"]["error"] == pytest.approx(math.sqrt(noise_law(scale).variance), rel=1e-3)


def test_a_release_without_periods_has_no_such_table(office: Office) -> None:
    office.write_spec(axes=[LINE])
    assert "periods" not in office.run(*FORECAST).json
