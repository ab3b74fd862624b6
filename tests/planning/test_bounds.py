"""Advice on the bound: bias against noise, from a published quality table or from public counts of units."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.planning._bounds import UnitSizes, advice, advice_on_shares, compare_bounds

QUALITY = {"share": "1/2", "rows": 5}
FORECAST = ["forecast", "spec.yaml", "--mechanism", "geometric", "--epsilon", "1/2", "--json"]


def write_units(office: Office, counts: list[int]) -> str:
    pq.write_table(pa.table({"rows": list(range(len(counts))), "count": counts}), office.folder / "units.parquet")
    return "units.parquet"


def test_a_bound_is_judged_by_what_it_cuts_and_by_its_noise(office: Office) -> None:
    office.write_spec(neighbours="substitute", quality=QUALITY)
    spec = ReleaseSpec.load(office.folder / "spec.yaml")
    known = UnitSizes(np.array([100.0, 20.0, 10.0, 0.0, 5.0]), 50.0, "invented")
    bounds = compare_bounds(spec, known)
    assert [one.rows for one in bounds] == [1, 2, 3, 4]
    two = bounds[1]
    assert two.total_bias == 10 * 1 + 5 * 3 and two.cut == pytest.approx(25 / 195)
    assert two.sure == pytest.approx(math.sqrt(50 * (1 + 4 + 9)) / 195)
    variance = noise_law(Fraction(4) / Fraction(1, 4)).variance  # two rows, twice by substitution, at half of 1/2
    assert two.cell_noise == pytest.approx(math.sqrt(variance))
    assert two.total_noise == pytest.approx(math.sqrt(21 * variance))
    assert two.cell_bias == pytest.approx(25 / 21)
    assert two.total_error == pytest.approx(math.hypot(two.total_bias, two.total_noise))


def test_bounds_are_compared_for_shares_too(office: Office) -> None:
    """Of 100 rows, 20 that are cut move a share of one half of the 80 by 10 points, if all lie in its part."""
    office.write_spec()
    known = UnitSizes(np.array([60.0, 20.0]), 0.0, "invented")
    (one,) = compare_bounds(ReleaseSpec.load(office.folder / "spec.yaml"), known)
    assert one.rows == 1 and one.share_bias == pytest.approx((40 + 20) / 100 - 1 / 2)
    # Half of the cells less the other half, over the rows that are kept.
    assert one.share_noise == pytest.approx(math.sqrt(21 * noise_law(Fraction(2)).variance / 4) / 80)
    counts = write_units(office, [50, 30, 20])
    told = office.run(*FORECAST, "--units-by-rows", counts).json["bounds"]["tried"]
    assert [one["share_bias"] for one in told] == pytest.approx([35 / 170, 10 / 170])
    text = office.run(*FORECAST[:-1], "--units-by-rows", counts).out
    assert "a share of one half, in points" in text and "least error in a share" in " ".join(text.split())


@pytest.mark.parametrize(("size", "cell", "total"), [(1, 1, 1), (10**4, 2, 4), (10**8, 4, 4)])
def test_the_larger_the_source_the_larger_the_advised_bound(office: Office, size: int, cell: int, total: int) -> None:
    office.write_spec()
    known = UnitSizes(np.array([30.0, 1.0, 0.1, 0.1, 0.01]) * size / 30, 0.0, "invented")
    bounds = compare_bounds(ReleaseSpec.load(office.folder / "spec.yaml"), known)
    assert min(bounds, key=lambda one: one.cell_error).rows == cell
    assert min(bounds, key=lambda one: one.total_error).rows == total
    assert f"A bound of {cell} has the least error" in advice(bounds)


@pytest.mark.slow
def test_the_forecast_reads_the_quality_table_of_the_release_itself(office: Office) -> None:
    office.opened().write_spec(quality=QUALITY)
    assert "bounds" not in office.run(*FORECAST).json
    rows = 60_000  # so many that noise leaves some
    office.write_records(
        {"patient": [row // 3 for row in range(rows)], "age": [30.0] * rows, "ward": ["surgery"] * rows}
    )
    office.released()
    told = office.run(*FORECAST).json["bounds"]
    assert told["from"] == "the quality table of wards, period all"
    assert [one["rows"] for one in told["tried"]] == [1, 2, 3, 4]
    # Quality and forecast tell what the bound cuts by two draws: the forecast names the other number, too.
    (says,) = office.run("quality", "wards", "--json").json["says"]
    about, ends = re.findall(r"about ([0-9,]+) \(([0-9,]+ to [0-9,]+), 95 %\)", says)[0]
    assert f"counts once more by itself: about {about} rows (95 %: {ends})" in told["counted_by_itself"]
    assert told["counted_by_itself"] in " ".join(office.run(*FORECAST[:-1]).out.split())


def test_public_counts_of_units_stand_in_for_a_quality_table(office: Office) -> None:
    office.write_spec()
    found: dict[str, Any] = office.run(*FORECAST, "--units-by-rows", write_units(office, [50, 30, 20])).json["bounds"]
    assert [one["cut"] for one in found["tried"]] == pytest.approx([70 / 170, 20 / 170])
    assert all(one["sure"] == 0 for one in found["tried"])
    text = office.run(*FORECAST[:-1], "--units-by-rows", "units.parquet").out
    assert "counted_by_itself" not in found and "by itself" not in text
    assert "2 (the spec)" in text and "41.2 % ± 0.0" in text and "has the least error" in text


def test_counts_that_say_nothing_of_units_are_refused(office: Office) -> None:
    office.write_spec()
    ran = office.run(*FORECAST, "--units-by-rows", write_units(office, [0, 0]))
    assert (ran.code, "needs one axis" in ran.err) == (1, True)
    office.write_spec(privacy_unit="row", max_rows_per_unit=...)
    ran = office.run(*FORECAST, "--units-by-rows", write_units(office, [5, 1]))
    assert (ran.code, "every unit holds one row" in ran.err) == (1, True)


def test_errors_are_forecast_for_what_quality_leaves_to_the_mechanism(office: Office) -> None:
    office.write_spec(quality=QUALITY)
    (one,) = office.run(*FORECAST).json["expected"]
    assert one["epsilon_exact"] == "1/2"
    assert one["interval_half_width"] == noise_law(Fraction(2) / Fraction(1, 4)).half_width(Fraction(95, 100))


@pytest.mark.parametrize(("variance", "doubted"), [(0.0, False), (300.0**2, True)])
def test_advice_that_noise_may_have_made_says_so(office: Office, variance: float, doubted: bool) -> None:
    office.write_spec()
    units = UnitSizes(np.array([12_000.0, 1_500.0, 200.0, 80.0, 40.0]), variance, "invented")
    bounds = compare_bounds(ReleaseSpec.load(office.folder / "spec.yaml"), units)
    for said in (advice(bounds), advice_on_shares(bounds)):
        assert ("That is uncertain: within the intervals of what is cut" in said) == doubted
