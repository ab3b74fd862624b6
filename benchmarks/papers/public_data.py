"""Public counts for the studies of papers; None where $DPHIST_DATA does not hold them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))


# The files that a study counts; one that is not named here needs none.
NEEDED = {
    "sreb_gca": ("waitakere_meshblock_2006_1340",),
    "relative": ("waitakere_meshblock_2006_1340",),
    "cnfg": ("brazil_age_101", "pums_housing_idaho_2006", "acs_pums_person_100k", "salaries_baltimore_fy2017"),
    "dphr": ("hepth_4096", "waitakere_meshblock_2006_1340", "salaries_baltimore_fy2017"),
    "dpcube": ("acs_pums_person_100k", "adult"),
    "classification": ("adult",),
    "linkage": ("adult",),
    "local": ("salaries_baltimore_fy2017", "salaries_nyc_fy2016_subset"),
    "local_shapes": ("salaries_baltimore_fy2017", "salaries_nyc_fy2016_subset"),
}


def needed(study: str) -> list[str]:
    """The names of the files that a study counts.

    Args:
        study: its name.
    """
    return [f"{name}.parquet" for name in NEEDED.get(study, ())]


def absent(study: str) -> list[str]:
    """The names of the files that a study counts and that are not in the folder of the data.

    Args:
        study: its name.
    """
    return [name for name in needed(study) if not (DATA / name).is_file()]


def _read(name: str) -> pl.DataFrame | None:
    path = DATA / f"{name}.parquet"
    return pl.read_parquet(path) if path.is_file() else None


def _binned(name: str, column: str, start: float, width: float, bins: int) -> np.ndarray | None:
    records = _read(name)
    if records is None:
        return None
    places = ((records[column].drop_nulls().to_numpy() - start) // width).astype(np.int64)
    return np.bincount(places[(places >= 0) & (places < bins)], minlength=bins)


def real_waitakere() -> np.ndarray | None:
    """People in each of the 1,340 meshblocks of Waitakere, 2006."""
    table = _read("waitakere_meshblock_2006_1340")
    return None if table is None else table["count"].to_numpy()


def brazil_age() -> np.ndarray | None:
    """Age, 101 bins of a year."""
    table = _read("brazil_age_101")
    return None if table is None else table["count"].to_numpy()


def gas_cost() -> np.ndarray | None:
    """Monthly gas cost (GASP), 648 bins of a dollar as in the CNFG paper; Idaho only."""
    return _binned("pums_housing_idaho_2006", "GASP", 0, 1, 648)


def gross_rent() -> np.ndarray | None:
    """Gross rent (GRNTP), 5,413 bins of a dollar as in the CNFG paper; Idaho only."""
    return _binned("pums_housing_idaho_2006", "GRNTP", 0, 1, 5_413)


def income() -> np.ndarray | None:
    """Personal income (PINCP) from 0, 15,551 bins of 100 dollars: as many bins as in the CNFG paper."""
    return _binned("acs_pums_person_100k", "pincp", 0, 100, 15_551)


def salaries() -> np.ndarray | None:
    """Annual salaries of Baltimore's employees, 2,501 bins of 100 dollars."""
    return _binned("salaries_baltimore_fy2017", "annual_salary", 0, 100, 2_501)


def citations() -> np.ndarray | None:
    """HEPTH: 4,096 bins, as DPBench has them."""
    table = _read("hepth_4096")
    return None if table is None else table["count"].to_numpy()


def age_income(records: int | None = None) -> np.ndarray | None:
    """Age 18 to 97 (80 bins) × income from 0 to 200,000 by 2,000 dollars (100 bins); the first so many records.

    2 % of the records earn less or more and are left out.
    """
    table = _read("acs_pums_person_100k")
    if table is None:
        return None
    part = table.head(records) if records else table
    age, money = part["agep"].to_numpy() - 18, part["pincp"].to_numpy() // 2_000
    inside = (money >= 0) & (money < 100) & (age >= 0) & (age < 80)
    cells = np.ravel_multi_index((age[inside].astype(np.int64), money[inside].astype(np.int64)), (80, 100))
    return np.bincount(cells, minlength=8_000).reshape(80, 100)


def adult_age_hours(records: int | None = None) -> np.ndarray | None:
    """Age 17 to 90 × hours per week 1 to 99 of the UCI Adult data; the first so many records."""
    table = _read("adult")
    if table is None:
        return None
    part = table.head(records) if records else table
    places = (part["age"].to_numpy() - 17, part["hours_per_week"].to_numpy() - 1)
    cells = np.ravel_multi_index(places, (74, 99))
    return np.bincount(cells, minlength=74 * 99).reshape(74, 99)


def adult_complete() -> pl.DataFrame | None:
    """The records of the UCI Adult data without missing values: 30,162 to train and 15,060 to test, by `split`."""
    table = _read("adult")
    return None if table is None else table.drop_nulls()
