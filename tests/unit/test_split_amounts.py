"""Amounts: every row is split between two ends; the parts are those of a plain reading, and move by Δ·M at most."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from source_scenario import counted, spec, written

import dphist_pipeline as dph
from dphist_pipeline.base.domain import AmountAxis, Domain
from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.spec.mistakes import SpecError

COST = {"column": "cost", "amount": [0, 20000], "measured_in": "EUR"}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
PARTS = 1 << 16
ODD = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, -5.0, 0.0, 20000.0, 20000.1, 1500.0, 0.1]


def plain(costs: Sequence[float | None], low: float, high: float, parts: int) -> list[int | None]:
    """The parts at the upper end of each row, as the definition says."""
    return [
        None
        if cost is None or math.isnan(cost)
        else math.floor((min(max(cost, low), high) - low) / (high - low) * parts + 0.5)
        for cost in costs
    ]


def people(costs: Sequence[float | None], persons: Sequence[str] | None = None) -> pa.Table:
    persons = [f"p{number}" for number in range(len(costs))] if persons is None else persons
    wards = [("surgery", "medicine", "gone")[number % 3] for number in range(len(costs))]
    columns = {"person": pa.array([*persons], pa.string()), "ward": pa.array(wards, pa.string())}
    return pa.table({**columns, "cost": pa.array([*costs], pa.float64())})


def cube(file: pa.Table | bytes, **changes: Any) -> NDArray[np.int64]:
    """Parts by ward and end."""
    name = "visits.csv" if isinstance(file, bytes) else "visits.parquet"
    given = {"source": name, "axes": [WARD, COST], "epsilon": 10, **changes}
    return np.array(counted({name: file}, **given)).reshape(-1, 2)


def expected(costs: Sequence[float | None], low: float = 0, high: float = 20000) -> NDArray[np.int64]:
    split = np.zeros((3, 2), dtype=np.int64)
    for number, parts in enumerate(plain(costs, low, high, PARTS)):
        if parts is not None:
            split[number % 3] += [PARTS - parts, parts]
    return split


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "row", "max_rows_per_unit": 1}])
def test_parts_are_those_of_the_definition_also_of_odd_amounts(unit: dict[str, Any]) -> None:
    np.testing.assert_array_equal(cube(people(ODD), **{"max_rows_per_unit": 1, **unit}), expected(ODD))


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "row"}])
def test_texts_with_decimal_commas_are_amounts(unit: dict[str, Any]) -> None:
    costs = ['"1,5"', '"20000"', '"1.5"', "", "nan", '"-0,5"']
    lines = "person,ward,cost\n" + "".join(
        f"p{number},{('surgery', 'medicine', 'gone')[number % 3]},{cost}\n" for number, cost in enumerate(costs)
    )
    found = cube(lines.encode(), decimal_comma=True, **{"max_rows_per_unit": 1, **unit})
    np.testing.assert_array_equal(found, expected([1.5, 20000.0, None, None, math.nan, -0.5]))


def test_ends_may_be_negative_and_the_amount_may_come_first() -> None:
    costs = [-100.0, 50.0, 12.5, 0.0, -250.0, 300.0]
    axes = [{"column": "cost", "amount": [-100, "50.5"]}, WARD]
    found = cube(people(costs), axes=axes, max_rows_per_unit=1).reshape(2, 3)
    np.testing.assert_array_equal(found.T, expected(costs, -100, 50.5))


def test_both_ends_of_each_row_add_up_to_a_row() -> None:
    costs = np.random.default_rng(3).lognormal(7, 2, 500)
    found = cube(people(costs.tolist()), max_rows_per_unit=1)
    assert found.sum() == 500 * PARTS
    worth = 20000 / PARTS
    assert abs(found[:, 1].sum() * worth - np.minimum(costs, 20000).sum()) <= 500 * worth / 2


def test_the_bound_keeps_whole_rows_by_the_key_alone() -> None:
    """Equal codes with other amounts are other rows; what is kept of a person does not depend on others."""
    costs = [float(cost) for cost in range(1, 41)]
    one = people(costs, ["p"] * 40)
    found = cube(one, max_rows_per_unit=3)
    assert found.sum() == 3 * PARTS


@pytest.mark.parametrize("axes", [[COST, WARD], [WARD, COST]])
def test_what_is_observed_of_rows_is_in_rows_and_a_cut_amount_drops_none(tmp_path: Path, axes: list[Any]) -> None:
    """One person has five rows: one lacks a cost, two are cut to an end, one lies in `other`, and one is plain."""
    costs: list[float | None] = [-3.0, 5.0, 30000.0, 7.0, None]
    table = people(costs, ["p"] * 5).set_column(1, "ward", pa.array([*["surgery"] * 3, "gone", "surgery"]))
    written(tmp_path, {"visits.parquet": table})
    asked = {"share": "1/2", "rows": 10, "by": ["ward"]}
    declared = spec(tmp_path, axes=axes, epsilon=10, max_rows_per_unit=1, quality=asked)
    (run := tmp_path / "run").mkdir()
    assert read_and_count(plan_of(declared, declared.period_named("all")), run).sum() == declared.parts
    observed = row_tables.load(run)
    assert observed.units.tolist() == [0, 0, 0, 1, *[0] * 6]
    assert observed.cut.tolist() == [3] and observed.cut_by.sum() == 3
    assert observed.places.tolist() == [3, 1, 1]
    assert observed.failures[axes.index(COST)].tolist() == [1, 2]
    assert observed.failures[axes.index(WARD)].tolist() == [0, 1]


amounts = st.lists(st.sampled_from([*ODD, 3.25, 19999.99, 7.0]), max_size=12)


@settings(max_examples=15, deadline=None)
@given(first=amounts, second=amounts, kept=st.integers(1, 4), substitute=st.booleans())
def test_a_unit_moves_the_parts_by_at_most_the_sensitivity(
    first: list[float | None], second: list[float | None], kept: int, substitute: bool
) -> None:
    """Neighbours: the same others, and one unit that is gone, or has other rows."""
    others = people([5.0, None, 30000.0], ["a", "a", "b"])
    alike: dict[str, Any] = {"max_rows_per_unit": kept, "neighbours": "substitute" if substitute else "add_remove"}
    before = cube(pa.concat_tables([others, people(first, ["p"] * len(first))]), **alike)
    after = cube(
        pa.concat_tables([others, people(second if substitute else [], ["p"] * len(second if substitute else []))]),
        **alike,
    )
    assert np.abs(before - after).sum() <= (2 if substitute else 1) * kept * PARTS
    assert before.sum() % PARTS == after.sum() % PARTS == 0


DOMAIN = Domain((AmountAxis("cost", "cost", 0.0, 10.0),))


def counts(parts: int = PARTS, load: Callable[[], NDArray[np.int64]] | None = None) -> PrivateCounts:
    return PrivateCounts(DOMAIN, 3, load or (lambda: np.array([5 * PARTS, 7 * PARTS], dtype=np.int64)), parts=parts)


def test_noise_is_drawn_in_parts_of_the_scale_in_rows() -> None:
    private = counts()
    noisy = private.noisy_cells(Budget(Fraction(1, 2)))
    assert noisy.scale == 6 and noisy.parts == PARTS and private.sensitivity == 3
    assert private.scales == {Budget(Fraction(1, 2)).step: Fraction(6)}
    assert (noisy.values * PARTS == np.rint(noisy.values * PARTS)).all()
    assert noisy.law.variance == pytest.approx(72, rel=1e-4)


@pytest.mark.parametrize("parts", [1, 3, 255, 1 << 17])
def test_a_grid_with_an_amount_has_a_power_of_two_of_parts(parts: int) -> None:
    with pytest.raises(MeasurementMisuse):
        counts(parts)


def test_parts_are_measured_cell_by_cell_alone() -> None:
    with pytest.raises(MeasurementMisuse, match="cell by cell"):
        counts().noisy_sums(np.zeros(2, dtype=np.int64), Budget(Fraction(1)))


def test_scale_times_parts_is_at_most_ten_million(tmp_path: Path) -> None:
    """M follows from sensitivity and epsilon: as fine as noise can be drawn for."""
    assert spec(tmp_path, axes=[WARD, COST], epsilon=10, max_rows_per_unit=3).parts == 1 << 16
    assert spec(tmp_path, axes=[WARD, COST], epsilon="1/100", max_rows_per_unit=3).parts == 1 << 15
    assert spec(tmp_path, axes=[WARD, COST], epsilon="1/1000", max_rows_per_unit=10).parts == 512
    with pytest.raises(SpecError, match=r"needs 0\.00256"):
        spec(tmp_path, axes=[WARD, COST], epsilon="1/1000", max_rows_per_unit=100)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mechanism": "dpcube"}, "must be `geometric` with an amount"),
        ({"axes": [WARD, COST, {"column": "days", "amount": [0, 1]}]}, "is a second amount"),
        ({"axes": [COST]}, "need an axis beside the amount"),
        ({"axes": [{**WARD, "name": "figure"}, COST]}, "is a column of the table of figures"),
        ({"axes": [WARD, {**COST, "other": True}]}, "is in no cell of an amount"),
        ({"axes": [WARD, {**COST, "amount": [5, 5]}]}, "must lie above the lower end 5"),
        ({"axes": [WARD, {**COST, "amount": [0, "1/3"]}]}, "more than 15 significant digits"),
        ({"axes": [WARD, {**COST, "amount": [0, "1e-10"]}]}, "at least 10^-9 in size"),
        ({"axes": [WARD, {**COST, "amount": [0, "1e16"]}]}, "lies beyond 10^15"),
        ({"axes": [WARD, {**COST, "amount": [1]}]}, "2"),
        ({"mechanism": "tables", "tables": {"all": 1}}, "have no amounts"),
        ({"quality": {"share": "1/2", "rows": 10, "by": ["cost"]}, "max_rows_per_unit": 2}, "is the amount"),
        ({"engine": "spark"}, "Spark does not split rows"),
    ],
)
def test_what_an_amount_cannot_have_is_refused_in_one_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        spec(tmp_path, **{"axes": [WARD, COST], "epsilon": 10, **changes})
    assert sentence in str(refused.value)


def test_what_it_is_measured_in_is_in_no_digest(tmp_path: Path) -> None:
    plain, worded = ({"column": "cost", "amount": [0, 20000]}, COST)
    one, two = (spec(tmp_path, axes=[WARD, axis], epsilon=10) for axis in (plain, worded))
    assert one.digest == two.digest
    assert one.digest != spec(tmp_path, axes=[WARD, {**COST, "amount": [0, 20001]}], epsilon=10).digest


def test_a_count_for_studies_refuses_an_amount() -> None:
    with pytest.raises(SpecError, match="released from a spec alone"):
        dph.count_cube(people([1.0]), [WARD, COST], privacy_unit="person", max_rows_per_unit=1)
