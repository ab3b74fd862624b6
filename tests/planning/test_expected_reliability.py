"""`check` and `forecast` say beforehand when most cells will be poor; what is published then is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from office import Office
from system.test_families import FAMILY, records

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.workbench.planning.expected_reliability import poor_share


def few_or_many(office: Office, rows_in_a_cell: int) -> list[str]:
    """The words for the cells of a release whose cells hold so many rows each."""
    cells = [(age, ward) for age in (-1.0, 3, 30, 60, 80, 120, None) for ward in ("surgery", "medicine", None)]
    rows = [cell for cell in cells for _ in range(rows_in_a_cell)]
    office.write_records(
        {
            "patient": [str(number) for number in range(len(rows))],
            "age": [age for age, _ in rows],
            "ward": [ward for _, ward in rows],
        }
    )
    office.released()
    return [row["reliability"] for row in office.run("answer", "wards", "--by", "age,ward", "--json").json["rows"]]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "poor"), [(5, True), (200, False)])
def test_what_check_and_forecast_say_of_poor_cells_is_what_is_published(office: Office, rows: int, poor: bool) -> None:
    office.opened().write_spec()
    error = math.sqrt(noise_law(Fraction(4)).variance)
    told = office.run("check", "spec.yaml", "--json").json["reliability"]
    assert told["poor_below"] == {"wards": math.ceil(4 * error)} and told["good_from"] == {
        "wards": math.ceil(10 * error)
    }
    limits = "rows (its noise is more than a quarter of them; from how many on it is told from an empty one is another"
    assert f"a cell is poor below {math.ceil(4 * error)} {limits}" in office.run("check", "spec.yaml").out
    assert (21 * rows < told["average_cell_poor_below"]["wards"]) == poor
    words = " ".join(office.run("check", "spec.yaml").out.split())
    assert (
        f"poor where a release holds fewer than {told['average_cell_poor_below']['wards']:,} rows; where few" in words
    )
    asked = ["forecast", "spec.yaml", "--mechanism", "geometric", "--epsilon", "1/2", "--records", str(21 * rows)]
    (one,) = office.run(*asked, "--json").json["expected"]
    assert one["poor_share"]["flat"] == (1 if poor else 0) and one["poor_share"]["sparse"] > 0.9
    assert ("Most cells will be poor with geometric at epsilon 0.5" in office.run(*asked).out) == poor
    found = few_or_many(office, rows)
    assert len(found) == 21 and (found.count("poor") > 10) == poor


def test_a_family_is_told_in_how_many_tables_most_cells_will_be_poor(office: Office) -> None:
    office.opened().write_records(records())
    office.write_spec(**FAMILY)
    asked = ["forecast", "spec.yaml", "--epsilon", "5", "1/10", "--records", "1000"]
    told = office.run(*asked, "--json").json
    sizes, poor = told["tables"], {one["epsilon"]: one for one in told["errors"]}
    for one in poor.values():
        expected = [name for name, cells in sizes.items() if 1000 / cells < 4 * one["by_table"][name]]
        assert one["poor_tables"] == expected
    assert poor["5"]["poor_tables"] == [] and len(poor["1/10"]["poor_tables"]) == 3
    words = " ".join(office.run(*asked).out.split())
    assert "At epsilon 5 the average cell of no table is poor" in words
    assert f"At epsilon 0.1 the average cell of {len(poor['1/10']['poor_tables'])} of 6 tables is poor" in words
    rows = office.run("check", "spec.yaml", "--json").json["reliability"]["average_cell_poor_below"]
    worst = max(rows, key=rows.__getitem__)
    assert f"worst table, {worst}, below {rows[worst]:,}; where few cells" in " ".join(
        office.run("check", "spec.yaml").out.split()
    )


def test_a_cell_is_poor_below_four_times_its_error() -> None:
    counts = np.array([[0, 39, 40], [41, 100, 1000]])
    assert poor_share(counts, 10.0) == pytest.approx(2 / 6)
