"""Two registers of 10⁵ people are linked by Splink on DuckDB, with blocks from what their owners have released."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dphist_pipeline import sanitize
from dphist_pipeline.applications.blocking import reduction_ratio
from dphist_pipeline.applications.coded_records import places_of
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

PEOPLE, SHARED = 100_000, 50_000
POSTCODES = [f"{number:03}" for number in range(60)]
AXES: list[dict[str, Any]] = [
    {"column": "born", "start": 1930, "stop": 2010, "width": 1, "other": True},
    {"column": "postcode", "values": POSTCODES, "other": True},
    {"column": "sex", "values": ["f", "m"]},
]
# How many values each column of a person takes, and how often two records of a person disagree.
COLUMNS = {"born": (80, 0.02), "postcode": (60, 0.03), "sex": (2, 0.005), "first": (400, 0.03), "last": (3_000, 0.02)}
Register = dict[str, np.ndarray]


def people(random: np.random.Generator, size: int) -> Register:
    crowded = np.where(np.arange(60) < 10, 0.05, 0.01)
    return {
        "born": random.integers(1930, 2010, size),
        "postcode": random.choice(POSTCODES, size, p=crowded),
        "sex": random.choice(["f", "m"], size),
        "first": random.integers(0, 400, size),
        "last": random.integers(0, 3_000, size),
    }


def two_registers() -> tuple[Register, Register]:
    """Two registers; the first 50,000 records of both are the same people, with errors in the second."""
    random = np.random.default_rng(3)
    one, others = people(random, PEOPLE), people(random, PEOPLE)
    for name, (_, wrong) in COLUMNS.items():
        same = (np.arange(PEOPLE) < SHARED) & (random.random(PEOPLE) >= wrong)
        others[name] = np.where(same, one[name], others[name])
    return one, others


def released(register: Register, public: Path) -> Release:
    domain = domain_of(AXES)
    cells = np.ravel_multi_index(tuple(places_of(domain.axes, pa.table(register))), domain.shape)
    exact = np.bincount(cells, minlength=domain.cells).reshape(domain.shape)
    made = sanitize(exact, mechanism="geometric", epsilon="1/2", sensitivity=1)
    return by_hand.publish(public, by_hand.estimate(AXES, made.values, Fraction(2), 0.0), AXES)


def comparison(name: str, values: int, wrong: float) -> dict[str, Any]:
    return {
        "output_column_name": name,
        "comparison_levels": [
            {
                "sql_condition": f'"{name}_l" = "{name}_r"',
                **{"label_for_charts": "same", "m_probability": 1 - wrong, "u_probability": 1 / values},
            },
            {
                "sql_condition": "ELSE",
                **{"label_for_charts": "differs", "m_probability": wrong, "u_probability": 1 - 1 / values},
            },
        ],
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_splink_links_two_registers_by_released_blocks(tmp_path: Path) -> None:
    splink = pytest.importorskip("splink", reason="splink is not installed: pip install -e '.[link]'")
    registers = two_registers()
    one, other = (released(register, tmp_path / str(n)) for n, register in enumerate(registers))
    made = one.block(other, [["born", "postcode"], ["postcode", "sex"]], pairs=4_000_000)
    with duckdb.connect() as connection:
        tables = []
        for register in registers:
            connection.register("register", pa.table({"unique_id": np.arange(PEOPLE), **register}))
            tables.append(connection.sql(made.register_sql("register")).to_arrow_table())
        engine = splink.DuckDBAPI(connection)
        settings = splink.SettingsCreator(
            link_type="link_only",
            probability_two_random_records_match=SHARED / PEOPLE**2,
            comparisons=[comparison(name, *facts) for name, facts in COLUMNS.items()],
            blocking_rules_to_generate_predictions=[made.rules[0], f'{made.rules[1]} AND l."last" = r."last"'],
        )
        named = [engine.register(table, dataset_display_name=f"r{n}") for n, table in enumerate(tables)]
        linker = splink.Linker(named, settings, log_level=40)
        links = linker.inference.predict(threshold_match_probability=0.9).as_pyarrow_table()
    pairs = (links["unique_id_l"].to_numpy() == links["unique_id_r"].to_numpy()) & (
        links["unique_id_l"].to_numpy() < SHARED
    )
    recall, precision = pairs.sum() / SHARED, pairs.mean()
    first, second = ([table[name].to_numpy() for table in tables] for name in made.partitions)
    together = (first[0] == first[1]) | ((second[0] == second[1]) & (registers[0]["last"] == registers[1]["last"]))
    counts = [np.bincount(blocks, minlength=made.partitions["block_1"].number) for blocks in first]
    compared = float((counts[0] * counts[1]).sum())
    print(f"{compared:,.0f} of {PEOPLE**2:,} pairs compared; {reduction_ratio(*counts):.2%} saved")
    print(f"pairs completeness {together[:SHARED].mean():.3f}, recall {recall:.3f}, precision {precision:.3f}")
    assert compared < 5_000_000 and compared == pytest.approx(made.partitions["block_1"].expected_pairs, rel=0.1)
    assert together[:SHARED].mean() > 0.96 and recall > 0.9 and precision > 0.98
