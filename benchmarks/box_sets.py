"""Counts on which the rules of `dpcube` are compared: invented shapes of 16 to 4,096 cells, and public sets.

The invented ones are the same each time: where a set is drawn, the seed comes from its name.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DATA = Path(os.environ.get("DPHIST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SHAPES = ((16,), (64,), (256,), (1024,), (4096,), (4, 4), (16, 16), (64, 64), (4, 4, 4), (16, 16, 16))
Counts = NDArray[np.int64]
Shape = tuple[int, ...]


def place(shape: Shape) -> NDArray[np.float64]:
    """How far each cell lies along the axes together, from 0 to 1."""
    along = [np.arange(side) / max(1, side - 1) for side in shape]
    return sum(np.ix_(*along)) / len(shape)


def parity(shape: Shape) -> Counts:
    """0 and 1 in turn along every axis."""
    return np.indices(shape).sum(axis=0) % 2


def blocks(shape: Shape, many: int, most: int, source: np.random.Generator) -> Counts:
    """Blocks of equal cells, about so many along every axis."""
    heights = source.integers(0, most, (many,) * len(shape))
    where = [np.arange(side) * many // side for side in shape]
    return heights[np.ix_(*where)]


def lone(shape: Shape, height: int, at: float) -> Counts:
    """One cell above empty ones."""
    counts = np.zeros(shape, dtype=np.int64)
    counts.flat[int(at * (counts.size - 1))] = height
    return counts


def zipf(shape: Shape, most: int) -> Counts:
    """The k-th cell has most / k."""
    return (most / np.arange(1, int(np.prod(shape)) + 1)).astype(np.int64).reshape(shape)


def bell(shape: Shape, height: int) -> Counts:
    """A normal curve around the middle."""
    far = sum(((part + 0.5) / side - 0.4) ** 2 for part, side in zip(np.indices(shape), shape, strict=True))
    return np.rint(height * np.exp(-far / 0.03)).astype(np.int64)


def waves(shape: Shape, height: int, many: int) -> Counts:
    """Sine waves along all axes together."""
    return np.rint(height * (1 + np.sin(2 * np.pi * many * place(shape)))).astype(np.int64)


def half(shape: Shape, height: int, part: float) -> Counts:
    """A step along the first axis."""
    counts = np.zeros(shape, dtype=np.int64)
    counts[int(part * shape[0]) :] = height
    return counts


def scaled(counts: Counts, most: int) -> Counts:
    return counts * most // max(1, int(counts.max()))


def walk(shape: Shape, step: int, source: np.random.Generator) -> Counts:
    """A walk of random steps, cell by cell."""
    path = np.cumsum(source.integers(-step, step + 1, int(np.prod(shape))))
    return (path - path.min()).reshape(shape)


def spikes(shape: Shape, share: float, height: int, source: np.random.Generator) -> Counts:
    return np.where(source.random(shape) < share, height, 0)


Made = Callable[[Shape, np.random.Generator], Counts]
MADE: dict[str, Made] = {
    "empty": lambda shape, _: np.zeros(shape, dtype=np.int64),
    "equal, 100": lambda shape, _: np.full(shape, 100),
    "slope of 1 a cell": lambda shape, _: np.arange(int(np.prod(shape))).reshape(shape),
    "slope to 30": lambda shape, _: np.rint(30 * place(shape)).astype(np.int64),
    "slope to 1,000": lambda shape, _: np.rint(1_000 * place(shape)).astype(np.int64),
    "0 and 3 in turn": lambda shape, _: parity(shape) * 3,
    "0 and 10 in turn": lambda shape, _: parity(shape) * 10,
    "0 and 100 in turn": lambda shape, _: parity(shape) * 100,
    "0 and 1,000 in turn": lambda shape, _: parity(shape) * 1_000,
    "one cell of 5": lambda shape, _: lone(shape, 5, 0.37),
    "one cell of 12": lambda shape, _: lone(shape, 12, 0.37),
    "one cell of 25": lambda shape, _: lone(shape, 25, 0.37),
    "one cell of 60": lambda shape, _: lone(shape, 60, 0.37),
    "one cell of 250": lambda shape, _: lone(shape, 250, 0.37),
    "last cell of 20": lambda shape, _: lone(shape, 20, 1.0),
    "step of 1": lambda shape, _: half(shape, 1, 0.5),
    "step of 3": lambda shape, _: half(shape, 3, 0.7),
    "step of 10": lambda shape, _: half(shape, 10, 0.3),
    "step of 50": lambda shape, _: half(shape, 50, 0.6),
    "4 blocks to 20": lambda shape, source: blocks(shape, 4, 20, source),
    "4 blocks to 500": lambda shape, source: blocks(shape, 4, 500, source),
    "8 blocks to 60": lambda shape, source: blocks(shape, min(8, shape[0]), 60, source),
    "zipf of 1,000": lambda shape, _: zipf(shape, 1_000),
    "zipf of 100,000": lambda shape, _: zipf(shape, 100_000),
    "zipf of 10,000, shuffled": lambda shape, source: source.permutation(zipf(shape, 10_000).ravel()).reshape(shape),
    "bell of 30": lambda shape, _: bell(shape, 30),
    "bell of 500": lambda shape, _: bell(shape, 500),
    "2 waves of 20": lambda shape, _: waves(shape, 20, 2),
    "7 waves of 200": lambda shape, _: waves(shape, 200, 7),
    "uniform to 20": lambda shape, source: source.integers(0, 20, shape),
    "uniform to 10,000": lambda shape, source: source.integers(0, 10_000, shape),
    "Poisson of 0.2": lambda shape, source: source.poisson(0.2, shape),
    "Poisson of 30": lambda shape, source: source.poisson(30, shape),
    "walk of 5": lambda shape, source: walk(shape, 5, source),
    "walk of 100": lambda shape, source: walk(shape, 100, source),
    "3 % of 15": lambda shape, source: spikes(shape, 0.03, 15, source),
    "3 % of 300": lambda shape, source: spikes(shape, 0.03, 300, source),
    "20 % of 40": lambda shape, source: spikes(shape, 0.2, 40, source),
}
LINES = (
    "hepth_4096",
    "income_4096",
    "lc_req_all_4096",
    "medcost_4096",
    "mdsalary_fa_4096",
    "adult_capital_loss_4096",
    "brazil_age_101",
    "waitakere_meshblock_2006_1340",
)
SQUARES = ("adult_gain_loss_256x256", "gowalla_256x256", "lc_funded_income_256x256", "sf_cabs_start_256x256")


def made() -> Iterator[tuple[str, Counts]]:
    """Names and counts of the invented sets."""
    for name, make in MADE.items():
        for shape in SHAPES:
            known = f"{name}, {' × '.join(map(str, shape))}"
            yield known, np.asarray(make(shape, np.random.default_rng(zlib.crc32(known.encode()))), dtype=np.int64)


def real() -> Iterator[tuple[str, Counts]]:
    """Names and counts of the public sets that are there, and of lines in shuffled order."""
    for name in LINES:
        path = DATA / f"{name}.parquet"
        if path.is_file():
            counts = pl.read_parquet(path)["count"].to_numpy().astype(np.int64)
            yield name, counts
            yield f"{name}, shuffled", np.random.default_rng(zlib.crc32(name.encode())).permutation(counts)
    for name in SQUARES:
        path = DATA / f"{name}.parquet"
        if path.is_file():
            table = pl.read_parquet(path)
            counts = np.zeros((256, 256), dtype=np.int64)
            counts[table[:, 0].to_numpy(), table[:, 1].to_numpy()] = table["count"].to_numpy()
            yield f"{name}, in 64 × 64", counts.reshape(64, 4, 64, 4).sum(axis=(1, 3))
    path = DATA / "adult.parquet"
    if path.is_file():
        table = pl.read_parquet(path)
        age, hours = table["age"].to_numpy() - 17, table["hours_per_week"].to_numpy() - 1
        yield "adult, age × hours", np.histogram2d(age, hours, bins=(range(75), range(100)))[0].astype(np.int64)
