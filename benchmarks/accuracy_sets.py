"""Counts on which the accuracy of mechanisms is measured; those used to tune `adaptive` are marked.

Invented ones have few records: from 30 to 3,000 in 64 to 4,096 cells, in eight shapes. The others are public.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DATA = Path(os.environ.get("DPHIST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CountSet:
    """Exact counts of a public set.

    Attributes:
        file: Parquet file in the folder of data.
        counted: the counts from its table, any shape.
        tuned: whether constants of `adaptive` were chosen on it.
    """

    file: str
    counted: Callable[[pl.DataFrame], Counts]
    tuned: bool = False

    def load(self) -> Counts:
        """The counts, int64."""
        return self.counted(pl.read_parquet(DATA / self.file)).astype(np.int64)


@dataclass(frozen=True)
class MadeSet:
    """Invented counts on a line: so many records, each in a cell drawn by the shape's probabilities.

    Attributes:
        shape: a name in SHAPES.
        cells, records: how many.
        tuned: whether constants of `adaptive` were chosen on it.
    """

    shape: str
    cells: int
    records: int
    tuned: bool

    def load(self) -> Counts:
        """The counts, int64; the same each time."""
        source = np.random.default_rng(zlib.crc32(f"{self.shape} {self.cells} {self.records}".encode()))
        weights = SHAPES[self.shape](np.arange(self.cells) / self.cells, source)
        return source.multinomial(self.records, weights / weights.sum()).astype(np.int64)


def _line(table: pl.DataFrame) -> Counts:
    return table["count"].to_numpy()


def _grid(*sides: int, by: int = 1) -> Callable[[pl.DataFrame], Counts]:
    """A grid from a row for each cell that is not empty; so many cells along each axis become one."""

    def counted(table: pl.DataFrame) -> Counts:
        counts = np.zeros(sides, dtype=np.int64)
        counts[tuple(table[name].to_numpy() for name in table.columns if name != "count")] = table["count"].to_numpy()
        for axis in range(counts.ndim if by > 1 else 0):
            counts = np.add.reduceat(counts, np.arange(0, counts.shape[axis], by), axis=axis)
        return counts

    return counted


def _bins(column: str, width: float, bins: int) -> Callable[[pl.DataFrame], Counts]:
    """Records in bins from 0; what lies outside is not counted."""

    def counted(table: pl.DataFrame) -> Counts:
        values = table[column].drop_nulls().to_numpy()
        inside = values[(values >= 0) & (values < width * bins)]
        return np.bincount((inside // width).astype(np.int64), minlength=bins)

    return counted


def _taxi(table: pl.DataFrame) -> Counts:
    """Trips by zone of pick-up and hour of the day."""
    zone, hour = table["pulocationid"].to_numpy(), table["tpep_pickup_datetime"].dt.hour().to_numpy()
    return np.bincount(zone * 24 + hour, minlength=266 * 24).reshape(266, 24)


def _homes(table: pl.DataFrame) -> Counts:
    """People by age, sex, town or country, and adults in their home."""
    return _grid(101, 2, 2, 20, 17)(table).sum(axis=4)


def _people(table: pl.DataFrame) -> Counts:
    """People by age, years of education, sex and class of income."""
    columns = (
        table["age"] - 17,
        table["education_num"] - 1,
        (table["sex"] == "Male").cast(pl.Int64),
        table["income"].str.starts_with(">").cast(pl.Int64),
    )
    counts = np.zeros((74, 16, 2, 2), dtype=np.int64)
    np.add.at(counts, tuple(column.to_numpy() for column in columns), 1)
    return counts


Shape = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]
SHAPES: dict[str, Shape] = {
    "level": lambda place, _: np.ones(place.size),
    "one cell": lambda place, _: (np.arange(place.size) == place.size // 3) * 1.0,
    "few cells": lambda place, source: (source.permutation(place.size) < max(2, place.size // 50)) * 1.0,
    "zipf": lambda place, _: 1.0 / np.arange(1, place.size + 1),
    "zipf, shuffled": lambda place, source: source.permutation(1.0 / np.arange(1, place.size + 1)),
    "bell": lambda place, _: np.exp(-(((place - 0.4) / 0.1) ** 2) / 2),
    "step": lambda place, _: np.where(place < 0.3, 21.0, 1.0),
    "eight blocks": lambda place, source: source.exponential(size=8)[(8 * place).astype(np.int64)],
}
TUNED_SHAPES = ("level", "few cells", "zipf", "step")
MADE = {
    f"{shape}, {cells} cells, {records} records": MadeSet(shape, cells, records, shape in TUNED_SHAPES)
    for shape in SHAPES
    for cells in (64, 512, 4096)
    for records in (30, 100, 300, 1000, 3000)
}
SETS: dict[str, CountSet | MadeSet] = {
    "adult_capital_loss": CountSet("adult_capital_loss_4096.parquet", _line, tuned=True),
    "brazil_age": CountSet("brazil_age_101.parquet", _line, tuned=True),
    "hepth": CountSet("hepth_4096.parquet", _line, tuned=True),
    "lc_requests": CountSet("lc_req_all_4096.parquet", _line, tuned=True),
    "md_salaries": CountSet("mdsalary_fa_4096.parquet", _line, tuned=True),
    "medcost": CountSet("medcost_4096.parquet", _line, tuned=True),
    "income": CountSet("income_4096.parquet", _line),
    "waitakere": CountSet("waitakere_meshblock_2006_1340.parquet", _line),
    "acs_income": CountSet("acs_pums_person_100k.parquet", _bins("pincp", 1_000, 200)),
    "baltimore_salaries": CountSet("salaries_baltimore_fy2017.parquet", _bins("annual_salary", 250, 1_001)),
    "nyc_salaries": CountSet("salaries_nyc_fy2016_subset.parquet", _bins("base_salary", 100, 2_200)),
    "adult_gain_loss": CountSet("adult_gain_loss_256x256.parquet", _grid(256, 256, by=4), tuned=True),
    "gowalla": CountSet("gowalla_256x256.parquet", _grid(256, 256, by=4), tuned=True),
    "taxi_zone_hour": CountSet("nyc_taxi_march_2019_sample.parquet", _taxi),
    "sf_cabs": CountSet("sf_cabs_start_256x256.parquet", _grid(256, 256, by=4)),
    "lc_funded": CountSet("lc_funded_income_256x256.parquet", _grid(256, 256, by=4)),
    "brazil_homes": CountSet("brazil_age_sex_urban_adults_children.parquet", _homes),
    "adult_people": CountSet("adult.parquet", _people),
    **MADE,
}
