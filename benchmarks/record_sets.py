"""Public records of several people or homes, as the positions of every row along a dozen axes.

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from tables import DATA
from whole_families import Marginal

AGES = range(20, 95, 5)
MONEY = (1, 5_000, 10_000, 20_000, 40_000, 80_000)


def _read(name: str, kinds: Sequence[str], ends: dict[str, Sequence[int]]) -> list[np.ndarray]:
    """Positions along categorical columns, then along columns that are cut at given ends."""
    rows = pl.read_parquet(DATA / f"{name}.parquet")
    codes = [np.unique(rows[one].cast(pl.String).fill_null("?").to_numpy(), return_inverse=True)[1] for one in kinds]
    numbers = (rows[one].fill_null(0).cast(pl.Float64).to_numpy() for one in ends)
    return [
        *codes,
        *(np.searchsorted(cut, line, side="right") for cut, line in zip(ends.values(), numbers, strict=True)),
    ]


def adult() -> list[np.ndarray]:
    """48,842 persons along twelve axes."""
    kinds = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "income"]
    gains = {"capital_gain": (1, 3_000, 8_000), "capital_loss": (1, 1_800)}
    return _read("adult", kinds, {"age": AGES, "hours_per_week": range(10, 90, 10), **gains})


def acs() -> list[np.ndarray]:
    """100,000 persons along twelve axes."""
    ends = {
        "agep": AGES,
        "sporder": (2, 3, 4, 5),
        **dict.fromkeys(("wagp", "ssp", "retp", "intp"), MONEY),
        "pap": (1, 1_000),
    }
    return _read("acs_pums_person_100k", ["mar", "sex", "stabbr", "adjinc", "incgroup"], ends)


def labour() -> list[np.ndarray]:
    """50,000 persons along twelve axes, many of which say the same."""
    kinds = ["DEGURBA", "SEX", "AGE", "NATIONAL", "STAPRO", "FTPT", "TEMP", "ILOSTAT", "ISCO1D", "EDUCLEVL", "NACE1D"]
    return _read("eurostat_lfs_france_50k", [*kinds, "EDUCSTAT"], {})


def idaho() -> list[np.ndarray]:
    """1,260 homes along twelve axes."""
    kinds = ["PUMA", "NP", "TYPE", "BDS", "BLD", "HFL", "RMS", "TEN", "VEH", "YBL", "HHT", "NOC"]
    return _read("pums_housing_idaho_2006", kinds, {})


def california() -> list[np.ndarray]:
    """1,000 persons along six axes."""
    return _read("pums_california_1000", ["sex", "educ", "race", "married"], {"age": AGES, "income": MONEY})


def brazil() -> list[np.ndarray]:
    """350,696 persons along five axes."""
    cube = pl.read_parquet(DATA / "brazil_age_sex_urban_adults_children.parquet")
    names = ("age", "sex", "urban", "adults", "children")
    return [np.repeat(cube[name].to_numpy(), cube["count"].to_numpy()) for name in names]


SETS: dict[str, Callable[[], list[np.ndarray]]] = {
    "adult": adult,
    "acs": acs,
    "labour": labour,
    "idaho": idaho,
    "california": california,
    "brazil": brazil,
}


def marginals_of(codes: Sequence[np.ndarray]) -> tuple[tuple[int, ...], Marginal]:
    """Positions along each axis, and a function that counts the records along some axes."""
    shape = tuple(int(line.max()) + 1 for line in codes)

    def exact(axes: tuple[int, ...]) -> np.ndarray:
        sizes = [shape[axis] for axis in axes]
        cells = np.ravel_multi_index([codes[axis] for axis in axes], sizes)
        return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)

    return shape, exact
