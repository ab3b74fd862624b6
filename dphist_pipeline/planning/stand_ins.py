"""Counts for simulations instead of the records: public counts, an earlier publication, or invented shapes."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.evaluation.public_counts import SYNTHETIC, read_counts
from dphist_pipeline.releasing.public_folder import public_folder
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.refusals import shortened
from dphist_pipeline.spec.sources import ending_of

Numbers = NDArray[np.int64]
RECORDS = 100_000
SEED = 20_100_708
STEEPNESS = 3.0
FILLED_SHARE = 0.05
# Standard deviation of the logarithm of what a rough cell is multiplied by: real cells are seldom as their neighbours.
ROUGHNESS = 1.5
ROUGH = "rough "
# What one cell of a peaked table holds, of how many cells the others have the rest, and how a steep one falls.
PEAK, BESIDE_PEAK, STEEPER = 0.9, 0.02, 10.0


def stand_in_refused(named: str, problem: str) -> Refused:
    """The named counts cannot stand in for the records of a release."""
    return Refused(f"stand-in {shortened(named, 300)}: {problem}", code="stand_in_refused")


@dataclass(frozen=True, eq=False)
class EarlierPeriod:
    """What a release published before, in the place of counts.

    Attributes:
        about: which release and period.
        counts: its estimates, rounded and at least 0, int64, shape of its grid.
        sensitivity: of its counts, in records; 1 where contributors made the reports.
    """

    about: str
    counts: Numbers
    sensitivity: int


def declared_shapes(shape: tuple[int, ...], records: int) -> dict[str, Numbers]:
    """Eight invented tables: `flat` (equal cells), `skewed` (falling along every axis), `sparse` (few scattered cells).

    Each is there once more, rough: every cell times a lognormal number of its own. Mechanisms that look at counts are
    far better on smooth tables than on rough ones. `rough steep` falls faster; `peak` has nearly all records in one
    cell, the others in few.

    Args:
        shape: cells along each axis.
        records: total of each table.

    Returns:
        int64 counts by name, of the shape.
    """
    cells = int(np.prod(shape))
    scattered = np.zeros(cells)
    filled = max(1, round(cells * FILLED_SHARE))
    draws = np.random.Generator(np.random.PCG64(SEED))
    places = draws.permutation(cells)[:filled]
    scattered[places] = 1 / np.arange(1, filled + 1)
    shapes = {"flat": np.ones(cells), "skewed": _falling(shape, STEEPNESS), "sparse": scattered}
    uneven = np.exp(ROUGHNESS * draws.standard_normal(cells))
    shapes |= {ROUGH + name: weights * uneven for name, weights in shapes.items()}
    shapes[ROUGH + "steep"] = _falling(shape, STEEPER) * uneven
    few = places[: max(1, round(cells * BESIDE_PEAK))]
    shapes["peak"] = np.zeros(cells)
    shapes["peak"][few] = (1 - PEAK) * uneven[few] / uneven[few].sum()
    shapes["peak"][places[-1]] += PEAK
    return {name: _rounded_to_total(weights, records).reshape(shape) for name, weights in shapes.items()}


def read_stand_in(named: str, spec: ReleaseSpec, public: Path | None) -> tuple[str, Numbers]:
    """Counts that stand in for the records of a release.

    Args:
        named: a Parquet or CSV file of counts as `dphist compare` takes it, `synthetic:NAME`, or a published release.
        spec: its grid must have the same shape.
        public: the store's public folder; None if there is no store.

    Returns:
        A description of the counts, and the counts, int64, shape of the grid.

    Raises:
        Refused: the counts have another shape, or are the release's own source; or the file holds no counts.
    """
    shape = spec.domain.shape
    if named.startswith(SYNTHETIC) or ending_of(named) is not None:
        _refuse_source(named, spec)
        return f"public counts of {named}", _read_public_counts(named, shape)
    found = read_publication(named, public)
    _refuse_other_grid(named, found.counts.shape, shape)
    return found.about, found.counts


def published_before(spec: ReleaseSpec, public: Path | None) -> EarlierPeriod | None:
    """The latest publication of the release, if it is in force and on the spec's grid: the best guess at the next."""
    try:
        found = read_publication(spec.release, public)
    except Refused:  # there is no store, nothing was published, or it was withdrawn
        return None
    return found if found.counts.shape == spec.domain.shape else None


def names_release(named: str) -> bool:
    """Whether a text names a release rather than a file of counts or a synthetic set.

    Args:
        named: the data that `dphist compare` is asked for.
    """
    return re.fullmatch("[a-z][a-z0-9_]*", named) is not None


def folder_if_any(store: Path | None) -> Path | None:
    """The folder of published files; None if there is none.

    Args:
        store: as on the command line; see `public_folder`.
    """
    try:
        return public_folder(store)
    except DphistError:
        return None


def read_publication(named: str, public: Path | None) -> EarlierPeriod:
    """The latest publication of a release. It is public already, so it costs nothing.

    Args:
        named: a release, or a table of a family.
        public: the store's public folder; None if there is no store.

    Raises:
        Refused: it was withdrawn, or there is no store.
        NotPublished: there is no such release.
    """
    from dphist_pipeline.answering.published import latest_revision

    if public is None:
        raise stand_in_refused(named, "is no file ending in .parquet or .csv, and there is no store with releases")
    folder = latest_revision(public, named, None)
    audit: Mapping[str, Any] = json.loads((folder / "audit.json").read_bytes())
    if "withdrawn" in audit:
        raise stand_in_refused(named, f"its latest publication, period {audit['period']}, was withdrawn")
    import pyarrow.parquet as pq

    estimates = pq.ParquetFile(folder / "histogram.parquet").read(["estimate"]).column(0).to_numpy()
    counts = np.rint(estimates.clip(0, 2**40)).astype(np.int64).reshape(domain_of(audit["axes"]).shape)
    about = f"{named}, period {audit['period']}, as published (its own noise is in it)"
    return EarlierPeriod(about, counts, audit["sensitivity"] or 1)


def _falling(shape: tuple[int, ...], steepness: float) -> NDArray[np.float64]:
    """Weights that fall along every axis from 1 to exp(-steepness), shape (cells,)."""
    falling = np.ones(shape)
    for axis, side in enumerate(shape):
        along = np.exp(-steepness * np.arange(side) / max(1, side - 1))
        falling *= along.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return falling.ravel()


def _rounded_to_total(weights: NDArray[np.float64], records: int) -> Numbers:
    """Whole numbers in proportion to the weights that sum to `records`; the largest remainders are rounded up."""
    wanted = weights * (records / weights.sum())
    whole: Numbers = np.floor(wanted).astype(np.int64)
    left = records - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:left]] += 1
    return whole


def _refuse_source(named: str, spec: ReleaseSpec) -> None:
    """Refuses a file of the release's own source, by its name; opens none."""
    own = glob.glob(spec.source_pattern, recursive=True)  # noqa: PTH207 - the pattern is absolute
    if any(Path(named).exists() and Path(path).exists() and Path(path).samefile(named) for path in own):
        raise stand_in_refused(named, "is the source of the release itself; name counts that are public")


def _read_public_counts(named: str, shape: tuple[int, ...]) -> Numbers:
    """Public counts; cells beyond the end of the file are empty."""
    found = read_counts(named)
    if named.startswith(SYNTHETIC):
        _refuse_other_grid(named, found.shape, shape)
    if found.ndim != len(shape):
        have, need = ("1 axis" if axes == 1 else f"{axes} axes" for axes in (found.ndim, len(shape)))
        raise stand_in_refused(named, f"has {have}; the spec has {need}")
    for number, (side, wanted) in enumerate(zip(found.shape, shape, strict=True), 1):
        if side > wanted:
            raise stand_in_refused(named, f"axis {number} has {side} cells or more; in the spec it has {wanted}")
    return np.pad(found, [(0, wanted - side) for side, wanted in zip(found.shape, shape, strict=True)])


def _refuse_other_grid(named: str, found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if found != shape:
        sides, wanted = (" × ".join(map(str, sides)) for sides in (found, shape))
        raise stand_in_refused(named, f"has a grid of {sides} cells, and the spec one of {wanted}")
