"""Synthetic people for the demo: the same every time, and nobody real."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PERSONS = 1_000_000
PATIENTS = 60_000
OLDEST = 104  # years; one in a thousand is above 100
FIRST_DAY = date(2026, 1, 5)
WEEKS = 8
REGIONS = ("north", "east", "south", "west", "centre", "islands")
WARDS = ("surgery", "medicine", "maternity", "paediatrics", "rehabilitation")


def write_population(path: Path) -> None:
    """One row a person: age, sex, region, household size, income.

    Args:
        path: of the Parquet file; its folder exists, and a file there is overwritten.
    """
    random = np.random.default_rng(20260105)
    age = (OLDEST * random.beta(1.6, 2.4, PERSONS)).astype(np.int16)
    sex = random.choice(["female", "male", "not stated"], PERSONS, p=[0.505, 0.485, 0.01])
    region = random.choice(REGIONS, PERSONS, p=[0.3, 0.2, 0.22, 0.15, 0.11, 0.02])
    household = 1 + random.poisson(np.where(age < 20, 2.6, np.where(age < 60, 1.5, 0.6)))
    income = np.where(age < 16, 0, random.lognormal(10.1, 0.8, PERSONS)).astype(np.int64)
    columns = {"age": age, "sex": sex, "region": region, "household_size": household, "income": income}
    pq.write_table(pa.table(columns), path)


def write_admissions(path: Path) -> None:
    """One row a visit: patients with one to forty visits over eight weeks.

    Args:
        path: of the Parquet file; its folder exists, and a file there is overwritten.
    """
    random = np.random.default_rng(20260302)
    visits = np.minimum(random.geometric(0.45, PATIENTS) + random.poisson(0.02, PATIENTS) * 12, 40)
    patient = np.repeat(np.arange(PATIENTS), visits)
    age = np.repeat((OLDEST * random.beta(2.3, 2.55, PATIENTS)).astype(np.int16), visits)
    day = np.datetime64(FIRST_DAY) + random.integers(0, 7 * WEEKS, patient.size)
    ward = random.choice(WARDS, patient.size, p=[0.31, 0.42, 0.12, 0.11, 0.04])
    pq.write_table(pa.table({"patient_id": patient, "age": age, "ward": ward, "admitted_on": day}), path)
