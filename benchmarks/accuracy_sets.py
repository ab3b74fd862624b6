"""Public counts on which the accuracy of mechanisms is measured; those used to tune `adaptive` are marked."""

from __future__ import annotations

import os
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


def _line(table: pl.DataFrame) -> Counts:
    return table["count"].to_numpy()


def _grid(*sides: int) -> Callable[[pl.DataFrame], Counts]:
    """A grid from a row for each cell that is not empty."""

    def counted(table: pl.DataFrame) -> Counts:
        counts = np.zeros(sides, dtype=np.int64)
        counts[tuple(table[name].to_numpy() for name in table.columns if name != "count")] = table["count"].to_numpy()
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


SETS = {
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
    "adult_gain_loss": CountSet("adult_gain_loss_256x256.parquet", _grid(256, 256), tuned=True),
    "gowalla": CountSet("gowalla_256x256.parquet", _grid(256, 256), tuned=True),
    "taxi_zone_hour": CountSet("nyc_taxi_march_2019_sample.parquet", _taxi),
    "sf_cabs": CountSet("sf_cabs_start_256x256.parquet", _grid(256, 256)),
    "lc_funded": CountSet("lc_funded_income_256x256.parquet", _grid(256, 256)),
    "brazil": CountSet("brazil_age_sex_urban_adults_children.parquet", _grid(101, 2, 2, 20, 17)),
}
