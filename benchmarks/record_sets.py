"""Public records of several people or homes, as the positions of every row along a dozen axes.

Data: $DPHIST_DATA, else ../shared/data beside the checkout. The records of patients in HELD_OUT come with R, in its
recommended package survival; nothing was chosen while looking at them.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import tables
from tables import DATA
from whole_families import Marginal

AGES = range(20, 95, 5)
MONEY = (1, 5_000, 10_000, 20_000, 40_000, 80_000)


def _read(name: str, kinds: Sequence[str], ends: dict[str, Sequence[float]]) -> list[np.ndarray]:
    """Positions along categorical columns, then along columns that are cut at given ends."""
    return _positions(pl.read_parquet(DATA / f"{name}.parquet"), kinds, ends)


def _positions(rows: pl.DataFrame, kinds: Sequence[str], ends: dict[str, Sequence[float]]) -> list[np.ndarray]:
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


def adult_six() -> list[np.ndarray]:
    """The same persons along six axes, as in `tables`."""
    counts = tables.adult()
    return list(np.unravel_index(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape))


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
    "adult_six": adult_six,
    "acs": acs,
    "labour": labour,
    "idaho": idaho,
    "california": california,
    "brazil": brazil,
}


def _of_r(name: str, kinds: Sequence[str], ends: dict[str, Sequence[float]]) -> list[np.ndarray]:
    """As `_read`, of a table in R's package survival; a missing number counts as 0."""
    program = f"write.csv(survival::{name}, stdout(), row.names = FALSE)"
    text = subprocess.run(["Rscript", "--vanilla", "-e", program], check=True, capture_output=True).stdout
    return _positions(pl.read_csv(io.BytesIO(text), null_values="NA", infer_schema_length=None), kinds, ends)


def flchain() -> list[np.ndarray]:
    """7,874 persons whose light chains were measured, along nine axes."""
    chains = (0.5, 1, 1.5, 2, 3, 5)
    ends = {"age": range(55, 95, 5), "kappa": chains, "lambda": chains, "creatinine": (0.6, 0.8, 1, 1.2, 1.5, 2)}
    return _of_r("flchain", ["sex", "sample.yr", "flc.grp", "mgus", "death"], ends)


def nwtco() -> list[np.ndarray]:
    """4,028 children with a tumour of the kidney, along eight axes."""
    ends = {"age": (12, 24, 36, 48, 60, 84, 120), "edrel": range(365, 6_000, 730)}
    return _of_r("nwtco", ["instit", "histol", "stage", "study", "rel", "in.subcohort"], ends)


def rotterdam() -> list[np.ndarray]:
    """2,982 patients with breast cancer, along twelve axes."""
    kinds = ["year", "meno", "size", "grade", "hormon", "chemo", "recur", "death"]
    ends = {"age": range(30, 85, 5), "nodes": (1, 2, 4, 7, 10), **dict.fromkeys(("pgr", "er"), (1, 10, 50, 100, 500))}
    return _of_r("rotterdam", kinds, ends)


def mgus2() -> list[np.ndarray]:
    """1,384 patients with a protein in the blood, along eight axes."""
    ends = {"age": range(40, 95, 5), "dxyr": range(1965, 1995, 5), "hgb": range(9, 17)}
    ends |= {"creat": (0.6, 0.8, 1, 1.2, 1.5, 2), "mspike": (0.5, 1, 1.5, 2, 2.5)}
    return _of_r("mgus2", ["sex", "pstat", "death"], ends)


def gbsg() -> list[np.ndarray]:
    """686 patients with breast cancer, along nine axes."""
    ends = {"age": range(30, 80, 5), "size": (10, 20, 30, 50), "nodes": (1, 2, 4, 7, 10)}
    ends |= dict.fromkeys(("pgr", "er"), (1, 10, 50, 100, 500))
    return _of_r("gbsg", ["meno", "grade", "hormon", "status"], ends)


def nafld1() -> list[np.ndarray]:
    """17,549 persons with or without a fatty liver, along six axes."""
    ends = {
        "age": range(20, 95, 5),
        "weight": range(40, 150, 10),
        "height": range(140, 200, 5),
        "bmi": range(18, 48, 3),
    }
    return _of_r("nafld1", ["male", "status"], ends)


HELD_OUT: dict[str, Callable[[], list[np.ndarray]]] = {
    "flchain": flchain,
    "nwtco": nwtco,
    "rotterdam": rotterdam,
    "mgus2": mgus2,
    "gbsg": gbsg,
    "nafld1": nafld1,
}


def marginals_of(codes: Sequence[np.ndarray]) -> tuple[tuple[int, ...], Marginal]:
    """Positions along each axis, and a function that counts the records along some axes."""
    shape = tuple(int(line.max()) + 1 for line in codes)

    def exact(axes: tuple[int, ...]) -> np.ndarray:
        sizes = [shape[axis] for axis in axes]
        cells = np.ravel_multi_index([codes[axis] for axis in axes], sizes)
        return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)

    return shape, exact
