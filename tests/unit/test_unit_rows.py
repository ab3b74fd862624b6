"""What is derived of a unit's own rows: equal to a plain definition, and the same whatever stands beside them."""

from __future__ import annotations

import random
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_scenario import VALID, refusal

from dphist_pipeline.confidential import unit_values
from dphist_pipeline.confidential.reading import _unit_rows as unit_rows
from dphist_pipeline.confidential.reading import ingest, source
from dphist_pipeline.confidential.reading._positions import MARKS, UNDECLARED
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.unit_values import UNIT_VALUES, Block, IsNew, UnitValue
from dphist_pipeline.releasing._plans import FilesMissing, plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of
from examples import examples

WARDS = ["surgery", "medicine"]
WARD = {"column": "ward", "values": WARDS}
CODE = {"column": "code", "values": ["a", "b"], "other": True}
BINS = {"start": 1, "stop": 4, "width": 1}
AXES: dict[str, dict[str, Any]] = {
    "visit": {"name": "visit", "of_unit": "number", "within": "period", **BINS, "above": True},
    "recent": {"name": "recent", "of_unit": "number", "within": "3 days", "edges": [1, 2, 4]},
    "gap": {"name": "gap", "of_unit": "days_since", "within": "4 days", "edges": [0, 2, 5], "other": True},
    "new": {"name": "new", "of_unit": "is_new", "of": "ward", "within": "5 days"},
    "newly": {"name": "newly", "of_unit": "is_new", "of": CODE, "within": "period"},
    "first": {"name": "first", "of_unit": "first_value", "of": CODE},
    "latest": {"name": "latest", "of_unit": "last_value", "of": "ward"},
    "visits": {"name": "visits", "of_unit": "count", **BINS, "above": True},
}
LAST = ("latest", "visits", "gap")
ALL_ROWS = [name for name in AXES if name not in ("latest", "visits")]
PERIOD = "2026-03-02"
MONDAY = datetime(2026, 3, 2)
Row = tuple[str | None, datetime | None, str | None, str | None] | tuple[Any, ...]  # with a cost where one is asked for

moments = st.builds(
    lambda hours: MONDAY + timedelta(hours=hours), st.integers(-24 * 7, 24 * 8) | st.sampled_from([0, 12, 24, 36, 36])
)
rows_of_units = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cid", "dee", None]),
        moments | st.none(),
        st.sampled_from([*WARDS, "x", None]),
        st.sampled_from(["a", "b", "y", None]),
    ),
    max_size=40,
)


def written(names: Iterable[str], take: str = "all", **changes: Any) -> dict[str, Any]:
    """The fields of a release by ward and by some of `AXES`."""
    columns = {"privacy_unit": "unit", "period_column": "at", "period_format": "iso"}
    bound = {} if take == "all" else {"take": take, "max_rows_per_unit": 1}
    return {**VALID, **columns, **bound, "axes": [WARD, *(AXES[name] for name in names)], **changes}


def derived(written: dict[str, Any], rows: list[Row], kind: str = "parquet", threads: int = 1) -> Counter[Any]:
    """The rows of the period as they are staged: unit and code and, with a quality table, marks."""
    names = ("unit", "at", "ward", "code", "cost")[: len(rows[0]) if rows else 4]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "csv":
            lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
            (folder / "rows.csv").write_text("\n".join([",".join(names), *lines, ""]))
        else:
            kinds = (pa.string(), pa.timestamp("us"), pa.string(), pa.string(), pa.float64())[: len(names)]
            values = [[row[place] for row in rows] for place in range(len(names))]
            columns = [pa.array(column, kind_of) for column, kind_of in zip(values, kinds, strict=True)]
            pq.write_table(pa.table(columns, names=names), folder / "rows.parquet", row_group_size=5)
        based = ReleaseSpec.from_attributes({**written, "source": f"rows.{kind}"}, folder)
        with patch.dict(source.ALL_MEANS[0], {"threads": threads}):
            staged = stage_rows(plan_of(based, based.period_named(PERIOD)), folder)
        return Counter(pl.read_parquet(staged).rows())


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    with patch.object(unit_rows, "BATCH_ROWS", rows):
        yield


def place(values: list[str], value: str | None) -> int:
    return values.index(value) if value in values else len(values)


def plainly(names: list[str], take: str, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    """Unit and code of the rows of the period, by the definitions, row by row."""
    found: Counter[tuple[Any, ...]] = Counter()
    for unit in {row[0] for row in rows} - {None}:
        own = [(at, place(WARDS, ward), place(["a", "b"], code)) for who, at, ward, code in rows if who == unit and at]
        used = ["code" in str(AXES[name].get("of")) for name in names]
        own = sorted((at, ward, code if any(used) else 0) for at, ward, code in own)
        inside = [row for row in own if MONDAY <= row[0] < MONDAY + timedelta(days=7)]
        own = [row for row in own if row[0] < MONDAY + timedelta(days=7)]
        chosen = {"all": inside, "first": inside[:1], "last": inside[-1:]}[take]
        start = len(own) - len(inside)
        numbers = {"all": range(len(inside)), "first": [0], "last": [len(inside) - 1]}[take] if inside else []
        for number in numbers:
            row = inside[number]
            assert row in chosen
            found[unit, *[value_of(name, own, start + number, inside) for name in ("ward", *names)]] += 1
    return found


def value_of(name: str, own: list[Any], at: int, inside: list[Any]) -> Any:
    """What a spec calls the cell of a row along an axis; None where it lies in none."""

    def back(days: int | None) -> list[Any]:
        first = MONDAY.date() if days is None else own[at][0].date() - timedelta(days=days)
        return [row for row in own[:at] if row[0].date() >= first]

    ward = own[at][1]
    match name:
        case "ward":
            return ward if ward < 2 else None
        case "visit":
            return min(len(back(None)), 3)
        case "recent":
            return {1: 0, 2: 1, 3: 1}.get(1 + len(back(3)))
        case "gap":
            days = (own[at][0].date() - own[at - 1][0].date()).days if back(4) else None
            return 2 if days is None else 0 if days < 2 else 1
        case "new":
            return int(ward in [row[1] for row in back(5)])
        case "newly":
            return int(own[at][2] in [row[2] for row in back(None)])
        case "first":
            return inside[0][2]
        case "latest":
            return inside[-1][1] if inside[-1][1] < 2 else None
        case "visits":
            return min(len(inside), 4) - 1
    raise AssertionError(name)


def codes(found: Counter[tuple[Any, ...]], one: ReleaseSpec) -> Counter[tuple[Any, ...]]:
    """With the cell's number in place of positions; rows that lie in no cell are left out."""
    coded: Counter[tuple[Any, ...]] = Counter()
    for (unit, *positions), times in found.items():
        if None not in positions:
            coded[unit, sum(p * stride for p, stride in zip(positions, one.domain.strides, strict=True))] += times
    return coded


each_axis = pytest.mark.parametrize(
    ("name", "take"),
    [*((name, "all") for name in ALL_ROWS), *((name, "first") for name in AXES), *((name, "last") for name in LAST)],
)


@pytest.mark.slow
@each_axis
@examples(15)
@given(rows=rows_of_units)
def test_a_value_is_what_its_definition_says(name: str, take: str, rows: list[Row]) -> None:
    fields = written([name], take)
    one = ReleaseSpec.from_attributes({**fields, "source": "rows.parquet"}, Path())
    with batches_of(7):
        assert derived(fields, rows) == codes(plainly([name], take, rows), one)


def check_alone(fields: dict[str, Any], rows: list[Row], chance: random.Random) -> None:
    """A unit's rows are the same alone and among others, in any order, by any threads, format and batches."""
    with batches_of(1 << 21):
        whole = derived(fields, rows)
        for unit in {row[0] for row in rows if row[0] is not None}:
            alone = [row for row in rows if row[0] == unit]
            others = [row for row in rows if row[0] != unit]
            beside = [*others, *alone, *others]
            chance.shuffle(beside)
            for found in (derived(fields, alone), derived(fields, beside, threads=4)):
                assert {row: n for row, n in found.items() if row[0] == unit} == {
                    row: n for row, n in whole.items() if row[0] == unit
                }
    shuffled = chance.sample(rows, len(rows))
    with batches_of(7):
        assert derived(fields, shuffled, "csv", threads=4) == derived(fields, shuffled) == whole


@pytest.mark.slow
@pytest.mark.parametrize("take", ["all", "first", "last"])
@examples(8)
@given(rows=rows_of_units, chance=st.randoms(use_true_random=False))
def test_rows_of_a_unit_are_the_same_whatever_stands_beside_them(
    take: str, rows: list[Row], chance: random.Random
) -> None:
    """With a quality table, so that marks tell rows apart that are equal in time and positions."""
    names = ALL_ROWS if take == "all" else list(AXES)
    check_alone(written(names, take, quality={"rows": 10}), rows, chance)


# Equal in time and positions, and told apart by marks; and rows of two units in turn, with and without a history.
TIED: list[Row] = [("ann", MONDAY, ward, None) for ward in ("x", None)] * 9
IN_TURN = [(unit, part) for part in range(12) for unit in ("bob", "cid")] + [("dee", part) for part in range(-9, 9)]
AROUND: list[Row] = [
    *TIED,
    *((unit, MONDAY + timedelta(hours=12 * n), WARDS[n % 2], "ab"[n // 2 % 2]) for unit, n in IN_TURN),
]


@each_axis
def test_a_unit_of_many_batches_has_the_values_of_its_definition(name: str, take: str) -> None:
    fields = written([name], take)
    one = ReleaseSpec.from_attributes({**fields, "source": "rows.parquet"}, Path())
    with batches_of(3):
        assert derived(fields, AROUND) == codes(plainly([name], take, AROUND), one)


def order_without(*left_out: str) -> Callable[..., str]:
    whole = ingest.statement

    def ordered(file: str, **parts: str) -> str:
        if file == "ingest/order_rows":
            columns = [name for name in parts["columns"].split(", ") if not name.startswith(left_out)]
            parts = {**parts, "columns": ", ".join(columns)}
        return whole(file, **parts)

    return ordered


def of_all_units(value: IsNew, block: Block, axis: Any, whole: Any = IsNew.positions) -> Any:
    return whole(value, replace(block, units=np.zeros_like(block.units)), axis)


def with_history(walk: Any, block: Block, complete: int, whole: Any = unit_rows._Walk._counted_rows) -> Any:
    return whole(walk, replace(block, inside=np.ones_like(block.inside)), complete)


FAULTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "marks left out of the order": ("first", lambda: patch.object(ingest, "statement", order_without("marks"))),
    "ties by file order": ("first", lambda: patch.object(ingest, "statement", order_without("along", "marks"))),
    "a window that sees another unit": ("all", lambda: patch.object(IsNew, "positions", of_all_units)),
    "batches that forget": ("all", lambda: patch.object(IsNew, "rows_to_carry", UnitValue.rows_to_carry)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    take, planted = FAULTS[name]
    fields = written(["new", "newly"], take, quality={"rows": 10})
    check_alone(fields, AROUND, random.Random(1))
    with planted(), pytest.raises(AssertionError):
        for seed in range(20):
            check_alone(fields, random.Random(seed).sample(AROUND, len(AROUND)), random.Random(seed))


COST = {"column": "cost", "amount": [0, 4]}
PRICED: list[Row] = [(*row, (None, 0.0, 1.0, 3.0, 9.0)[number % 5]) for number, row in enumerate([*AROUND, *AROUND])]


@pytest.mark.slow
@pytest.mark.parametrize("take", ["all", "first", "last"])
def test_amounts_of_a_unit_are_the_same_whatever_stands_beside_them(take: str) -> None:
    fields = written(["new"], take, quality={"rows": 10})
    fields["axes"] = [*fields["axes"], COST]
    check_alone(fields, PRICED, random.Random(2))
    if take == "first":
        with patch.object(ingest, "statement", order_without("amount", "marks")), pytest.raises(AssertionError):
            for seed in range(20):
                check_alone(fields, random.Random(seed).sample(PRICED, len(PRICED)), random.Random(seed))


def test_the_first_of_equal_rows_has_the_least_amount_and_one_without_comes_last() -> None:
    fields = written([], "first")
    fields["axes"] = [WARD, COST]
    rows: list[Row] = [("ann", MONDAY, "surgery", "a", cost) for cost in (9.0, None, 3.0)]
    parts = ReleaseSpec.from_attributes({**fields, "source": "rows.parquet"}, Path()).parts
    assert derived(fields, rows) == Counter({("ann", 0, 3 * parts // 4): 1})
    assert derived({**fields, "take": "last"}, rows) == Counter()


@pytest.mark.parametrize(
    ("axis", "take", "expected"),
    [
        ({"of_unit": "count"}, "first", {"ann": 3, "bob": 1}),
        ({"of_unit": "count"}, "last", {"ann": 3, "bob": 1}),
        ({"of_unit": "days_since", "within": "4 days"}, "last", {"ann": 2}),  # bob has no row before
        ({"of_unit": "number", "within": "period"}, "last", {"ann": 3, "bob": 1}),
    ],
)
def test_a_number_that_follows_from_a_units_rows_may_be_an_amount(
    axis: dict[str, Any], take: str, expected: dict[str, int]
) -> None:
    """Of three visits, in [0, 2], the third is cut, which marks tell as `undeclared`."""
    rows: list[Row] = [("ann", MONDAY + timedelta(days=day), "surgery", "a") for day in (0, 1, 3)]
    rows.append(("bob", MONDAY, "surgery", "a"))
    for high in (4, 2):
        amount = {"name": "visits", "amount": [0, high], "measured_in": "visits", **axis}
        fields = written([], take, quality={"rows": 10})
        fields["axes"] = [WARD, amount]
        one = ReleaseSpec.from_attributes({**fields, "source": "rows.parquet"}, Path())
        found = {unit: (share, marks) for unit, code, share, marks in derived(fields, rows) if code == 0}
        assert found == {
            unit: (one.parts * min(number, high) // high, MARKS * UNDECLARED * (number > high))
            for unit, number in expected.items()
        }
        assert domain_of([axis.as_json() for axis in one.axes]) == one.domain


def test_history_is_read_and_not_counted() -> None:
    fields = written(["new"])
    rows: list[Row] = [("ann", MONDAY - timedelta(days=2), "surgery", "a"), ("ann", MONDAY, "surgery", "a")]
    assert derived(fields, rows) == Counter({("ann", 1): 1})  # in surgery, and not new
    with patch.object(unit_rows._Walk, "_counted_rows", with_history):
        assert derived(fields, rows) != Counter({("ann", 1): 1})


ROW = {"privacy_unit": "row", "max_rows_per_unit": 1}
TIMELESS = {"take": "first", "max_rows_per_unit": 1, "period": "none", "period_column": ...}


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"axes": [{**AXES["new"], "of": "floor"}]}, "axes[0].of", "names no axis of this release"),
        ({"axes": [{**AXES["new"], "of": {"column": "code", "values": []}}]}, "axes[0].of.values", "needs at least 1"),
        ({"axes": [{**AXES["visit"], "within": "a day"}]}, "axes[0].within", "such as `30 days`"),
        ({"axes": [{**AXES["visit"], "within": None}]}, "axes[0].within", "is required with `of_unit: number`"),
        ({"axes": [WARD, {**AXES["new"], "width": 1}]}, "axes[1].width", "has no use with"),
        ({"axes": [WARD, COST, {**AXES["new"], "of": "cost"}]}, "axes[2].of", "is an amount"),
        ({"axes": [WARD, {**AXES["visit"], "amount": [0, 9]}]}, "axes[1].start", "has no use with `amount`"),
        ({"axes": [WARD, {**AXES["new"], "amount": [0, 9]}]}, "axes[1].amount", "has no use with `of_unit: is_new`"),
        ({"axes": [AXES["visits"]]}, "axes[0].of_unit", "needs `take: first` or `take: last`"),
        ({"take": "first"}, "take", "`max_rows_per_unit: 1`"),
        (TIMELESS, "take", "`period_column`"),
        ({"axes": [AXES["visit"]], **ROW}, "axes[0].of_unit", "`privacy_unit: row`"),
        ({"axes": [AXES["visit"]], "engine": "spark"}, "axes[0].of_unit", "`engine: spark`"),
    ],
)
def test_what_follows_from_units_is_refused_where_it_means_nothing(changes: Any, field: str, says: str) -> None:
    assert says in refusal(**changes)[field]


def test_the_files_of_history_are_needed_and_one_that_lacks_is_named(tmp_path: Path) -> None:
    days = [f"2026-02-{day:02}" for day in range(25, 29)] + [f"2026-03-{day:02}" for day in range(1, 9)]
    for day in days:
        row = {"unit": ["ann"], "at": [datetime.fromisoformat(day)], "ward": ["surgery"]}
        pq.write_table(pa.table(row), tmp_path / f"{day}.parquet")
    fields = written(["new"], source="{year}-{month}-{day}.parquet")
    one = ReleaseSpec.from_attributes(fields, tmp_path)
    period = one.period_named(PERIOD)
    assert [Path(called).stem for called, _ in one.expected_files(period)] == days
    assert pl.read_parquet(stage_rows(plan_of(one, period), tmp_path)).height == 7
    (tmp_path / "2026-02-25.parquet").unlink()
    with pytest.raises(FilesMissing, match="2026-02-25"):
        plan_of(one, period)
    assert (
        one.with_history(period).start == period.start - timedelta(days=5)
        and one.with_history(period).end == period.end
    )
    alone = ReleaseSpec.from_attributes({**fields, "source": "rows.parquet"}, tmp_path)
    assert alone.with_history(period) == period  # one file has them all
    weeks = ReleaseSpec.from_attributes({**fields, "source": "{period}.parquet"}, tmp_path)
    assert [Path(called).stem for called, _ in weeks.expected_files(period)] == ["2026-02-23", PERIOD]


def test_the_axes_of_an_audit_are_those_of_the_spec() -> None:
    fields = written([*ALL_ROWS, "latest", "visits"], "first")
    one = ReleaseSpec.from_attributes(fields, Path())
    assert domain_of([axis.as_json() for axis in one.axes]) == one.domain


def test_the_closed_set_holds_every_class_and_each_says_why() -> None:
    found = {kind for kind in vars(unit_values).values() if isinstance(kind, type) and issubclass(kind, UnitValue)}
    assert set(UNIT_VALUES) == found - {UnitValue}
    for kind in UNIT_VALUES:
        assert kind.__dataclass_params__.frozen and kind.positions.__doc__  # type: ignore[attr-defined]


@pytest.mark.soak
def test_a_unit_of_a_million_rows_fits(tmp_path: Path) -> None:
    """In a process that may have 4 GB, by batches that hold a part of them each."""
    many = 1_000_000
    at = np.datetime64("2026-02-23T00:00:00") + np.sort(np.random.default_rng(1).integers(0, 14 * 86_400, many))
    wards = pa.array(WARDS).take(pa.array(np.arange(many) % 2))
    rows = {"unit": pa.array(["ann"] * many), "at": pa.array(at.astype("datetime64[us]")), "ward": wards, "code": wards}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    one = ReleaseSpec.from_attributes({**written(ALL_ROWS), "source": "rows.parquet"}, tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with batches_of(1 << 17):
        staged = stage_rows(plan_of(one, one.period_named(PERIOD)), tmp_path)
    inside = int((at >= np.datetime64(MONDAY)).sum())
    assert pl.read_parquet(staged)["unit"].len() <= inside
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000
