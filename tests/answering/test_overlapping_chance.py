"""Intervals with chance of two boxes that overlap: their rows in common vary alike, over many fixed draws."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dphist_pipeline.answering._macro_calls import IDLE_OPTIMIZERS
from dphist_pipeline.answering.catalogue import Catalogue, create_tables

WARDS = ["a", "b", "c", "d"]
AXES: list[dict[str, Any]] = [{"column": "ward", "values": WARDS}, {"column": "sex", "values": ["f", "m"]}]
# Rows expected by ward and sex, in each of many publications.
EXPECTED = np.array([[300.0, 200.0], [900.0, 1_100.0], [2_000.0, 2_500.0], [40.0, 60.0]])
SCALE, PERIODS = Fraction(4), 1_500
BOXES = {
    "part": "{'ward': 'b'}",
    "whole": "{'ward': ['a', 'b', 'c']}",
    "one": "{'ward': ['a', 'b']}",
    "other": "{'ward': ['b', 'd']}",
    "women": "{'sex': 'f'}",
    "apart": "{'ward': 'c'}",
}
TRUE = {
    "part": EXPECTED[1].sum(),
    "whole": EXPECTED[:3].sum(),
    "one": EXPECTED[:2].sum(),
    "other": EXPECTED[[1, 3]].sum(),
    "women": EXPECTED[:, 0].sum(),
    "apart": EXPECTED[2].sum(),
}


@pytest.fixture(scope="module")
def varying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Publications of counts that vary as Poisson's do, with noise."""
    public = tmp_path_factory.mktemp("public")
    by_hand.publish(public, by_hand.estimate(AXES, EXPECTED, SCALE, off=0.0), AXES, "noisy", "2026-03-02")
    source = np.random.default_rng(38)
    with duckdb.connect() as connection:
        create_tables(
            connection,
            Catalogue(public).publications(),
            macros=["dph_difference", "dph_ratio", "dph_share"],
            described=False,
        )
        connection.execute(f"SET disabled_optimizers = '{IDLE_OPTIMIZERS}'")
        (release,) = connection.sql("FROM dph_releases").to_arrow_table().to_pylist()
        periods = [f"p{number:04}" for number in range(PERIODS)]
        insert(connection, "dph_releases", pa.Table.from_pylist([release | {"period": period} for period in periods]))
        cells = connection.sql("FROM internals.dph_cells_noisy").to_arrow_table()
        repeated = cells.take(np.tile(np.arange(cells.num_rows), PERIODS)).to_pydict()
        means = np.array(repeated["unbiased_estimate"])
        one, two = source.geometric(1 - np.exp(-1 / float(SCALE)), (2, means.size))
        counted = source.poisson(means) + one - two
        drawn = {"period": np.repeat(periods, cells.num_rows), "unbiased_estimate": counted, "estimate": counted}
        insert(connection, "internals.dph_cells_noisy", pa.table(repeated | drawn))
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("more", rows)
    connection.execute(f"INSERT INTO {table} BY NAME FROM more")
    connection.unregister("more")


def asked(connection: duckdb.DuckDBPyConnection, macro: str, first: str, second: str, more: str = "") -> np.ndarray:
    """The unbiased estimates and the ends of their intervals with chance, by publication."""
    query = f"SELECT unbiased, ci_lower, ci_upper FROM {macro}('noisy', {first}, {second}, with_chance := true{more})"
    return np.array(connection.execute(query).fetchall(), dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("macro", "first", "second"),
    [
        *[("dph_difference", *names) for names in (("whole", "part"), ("one", "other"), ("women", "part"))],
        *[
            ("dph_ratio", *names)
            for names in (("part", "whole"), ("whole", "part"), ("one", "other"), ("women", "one"))
        ],
        *[("dph_difference", "part", "apart"), ("dph_ratio", "part", "apart"), ("dph_share", "part", "whole")],
    ],
)
def test_rows_in_both_boxes_vary_alike(varying: duckdb.DuckDBPyConnection, macro: str, first: str, second: str) -> None:
    """Intervals cover the truth as often as promised; with widths that are wrong by 30 % they would not."""
    truth = TRUE[first] - TRUE[second] if macro == "dph_difference" else TRUE[first] / TRUE[second]
    unbiased, lower, upper = asked(varying, macro, BOXES[first], BOXES[second])[1:].T
    assert len(unbiased) == PERIODS

    def covered(factor: float) -> float:
        below, above = factor * (unbiased - lower), factor * (upper - unbiased)
        return float(np.mean((unbiased - below <= truth) & (truth <= unbiased + above)))

    assert 0.935 <= covered(1) <= 0.98
    assert covered(0.7) < 0.9 and covered(1.3) > 0.984


@pytest.mark.slow
def test_the_same_box_twice_differs_by_nothing(varying: duckdb.DuckDBPyConnection) -> None:
    one = BOXES["one"]
    assert not asked(varying, "dph_difference", one, one).any()
    found = asked(varying, "dph_ratio", one, one)
    assert found == pytest.approx(np.ones_like(found), abs=1e-9)


@pytest.mark.slow
def test_a_ratio_of_a_part_is_its_share(varying: duckdb.DuckDBPyConnection) -> None:
    """A share of a whole is binomial: the two macros take the same chance, their noise apart."""
    ratio = asked(varying, "dph_ratio", BOXES["part"], BOXES["whole"])
    share = asked(varying, "dph_share", BOXES["part"], BOXES["whole"])
    assert ratio == pytest.approx(share, rel=0.02)
