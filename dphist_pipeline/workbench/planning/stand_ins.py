"""Counts for simulations instead of the records: public counts, an earlier publication, or invented shapes."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.mistakes import one_line
from dphist_pipeline.spec.sources import ending_of
from dphist_pipeline.workbench.evaluation.public_counts import SYNTHETIC, read_counts

Numbers = NDArray[np.int64]
SEED = 20_100_708
STEEPNESS = 3.0
# The least and the most days of a period; an hour more or less, where clocks change, makes no day.
_DAYS = {"week": (6, 7), "month": (27, 31), "quarter": (89, 92), "year": (364, 366)}
FILLED_SHARE = 0.05
# Standard deviation of the logarithm of what a rough cell is multiplied by: real cells are seldom as their neighbours.
ROUGHNESS = 1.5
ROUGH = "rough "
# What one cell of a peaked table holds, of how many cells the others have the rest, and how a steep one falls.
PEAK, BESIDE_PEAK, STEEPER = 0.9, 0.02, 10.0


def stand_in_refused(source: str, problem: str) -> Refused:
    """The named counts cannot stand in for the records of a release."""
    return Refused(f"stand-in {one_line(source, 300)}: {problem}", code="stand_in_refused")


def records_unknown(mechanisms: Sequence[str]) -> Refused:
    """Nobody said how many records a period holds, and the errors of these mechanisms follow from the counts."""
    which = ", ".join(one_line(name, 100) for name in mechanisms)
    return Refused(
        f"a forecast for {which} needs the number of records that a period will hold, because the error follows from "
        "the counts. Add --records N: an order of magnitude is enough, from public knowledge (an earlier report, the "
        "number of beds or schools), never counted in the records. Or add --stand-in with public counts of this grid.",
        code="records_unknown",
    )


@dataclass(frozen=True, eq=False)
class EarlierPeriod:
    """What a release published before, in the place of counts.

    Attributes:
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
    cell, the others in few. Each table has a total of `records`, and int64 counts.
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


def read_stand_in(source: str, spec: ReleaseSpec, public: Path | None) -> tuple[str, Numbers]:
    """Counts that stand in for the records of a release.

    Args:
        source: a Parquet or CSV file of counts as `dphist compare` takes it, `synthetic:NAME`, or a published release.
        spec: its grid must have the same shape.
        public: the store's public folder; None if there is no store.

    Returns:
        A description of the counts, and the counts, int64, shape of the grid.

    Raises:
        Refused: the counts have another shape, or are the release's own source; or the file holds no counts.
    """
    shape = spec.domain.shape
    if source.startswith(SYNTHETIC) or ending_of(source) is not None:
        _refuse_source(source, spec)
        return f"public counts of {source}", _read_public_counts(source, shape)
    publication = read_publication(source, public)
    _refuse_other_grid(source, publication.counts.shape, shape)
    return publication.about, publication.counts


def published_before(spec: ReleaseSpec, public: Path | None) -> EarlierPeriod | None:
    """The best guess at the next counts that is public: the release's latest publication, else a related release's.

    A related one is in force, counts the same units of the same account over periods of the same length, and has the
    spec's axes, maybe with more, over which it is summed. Of several, the one with the fewest cells is taken, because
    its sums have the least noise.
    """
    try:
        publication = read_publication(spec.release, public)
    except Refused:  # there is no store, nothing was published, or it was withdrawn
        publication = None
    if publication is not None and publication.counts.shape == spec.domain.shape:
        return publication
    return _of_related_release(spec, public) if public is not None else None


def names_release(text: str) -> bool:
    """Whether a text names a release rather than a file of counts or a synthetic set."""
    return re.fullmatch("[a-z][a-z0-9_]*", text) is not None


def folder_if_any(store: Path | None) -> Path | None:
    """The folder of published files; None if there is none. See `Store.public_folder`."""
    try:
        return Store.public_folder(store)
    except DphistError:
        return None


def read_publication(release: str, public: Path | None) -> EarlierPeriod:
    """The latest publication of a release. It is public already, so it costs nothing.

    Raises:
        Refused: it was withdrawn, or there is no store.
        NotPublished: there is no such release.
    """
    if public is None:
        raise stand_in_refused(release, "is no file ending in .parquet or .csv, and there is no store with releases")
    from dphist_pipeline.answering.published import latest_revision

    folder = latest_revision(public, release, None)
    audit: Mapping[str, Any] = json.loads((folder / "audit.json").read_bytes())
    if "withdrawn" in audit:
        raise stand_in_refused(release, f"its latest publication, period {audit['period']}, was withdrawn")
    counts, amount = _estimates(folder, audit), domain_of(audit["axes"]).amount
    return _earlier(release, audit, counts if amount is None else counts.sum(axis=amount))


def _of_related_release(spec: ReleaseSpec, public: Path) -> EarlierPeriod | None:
    """The latest publication of a related release; see `published_before`."""
    axes = json.loads(json.dumps([axis.as_json() for axis in spec.axes]))  # as an audit holds them
    related: list[tuple[int, str, Path, Mapping[str, Any]]] = []
    for release, folder in _latest_publications(public):
        try:
            audit: Mapping[str, Any] = json.loads((folder / "audit.json").read_bytes())
        except (OSError, ValueError):  # what cannot be read is no guess
            continue
        same = audit.get("account") == spec.account and audit.get("unit_columns") == [*spec.privacy_unit.columns]
        same &= isinstance(audit.get("axes"), list) and all(axis in audit["axes"] for axis in axes)
        if "withdrawn" not in audit and same and _lasts_as_long(audit, spec):
            related.append((audit["cells"], release, folder, audit))
    if not related:
        return None
    _, release, folder, audit = min(related, key=lambda one: one[:2])
    own = [audit["axes"].index(axis) for axis in axes]
    other_axes = [place for place in range(len(audit["axes"])) if place not in own]
    values = (
        _estimates(folder, audit)
        .transpose(own + other_axes)
        .sum(axis=tuple(range(len(own), len(own) + len(other_axes))))
    )
    names = [str(axis.get("name", axis["column"])) for axis in (audit["axes"][place] for place in other_axes)]
    return _earlier(release, audit, values, names)


def _latest_publications(public: Path) -> Iterator[tuple[str, Path]]:
    """Names and folders of the latest publication of every release; of a family, of each of its tables."""
    from dphist_pipeline.answering.published import latest_revision

    for name in sorted({period.parent.name for period in public.glob("*/period=*")}):
        try:
            folder = latest_revision(public, name, None, family=True)
        except Refused:
            continue
        if PublishedFolder(folder).is_family:
            yield from ((f"{name}_{table.name}", table) for table in PublishedFolder(folder).tables)
        else:
            yield name, folder


def _estimates(folder: Path, audit: Mapping[str, Any]) -> NDArray[np.float64]:
    import pyarrow.parquet as pq

    values: NDArray[np.float64] = pq.ParquetFile(folder / "histogram.parquet").read(["estimate"]).column(0).to_numpy()
    return values.reshape(domain_of(audit["axes"]).shape)


def _earlier(
    release: str, audit: Mapping[str, Any], values: NDArray[np.float64], summed: Sequence[str] = ()
) -> EarlierPeriod:
    """Estimates, or sums of them over the axes that `summed` names, as counts."""
    over = f", summed over {', '.join(summed)}" if summed else ""
    description = f"{release}, period {audit['period']}, as published (its own noise is in it){over}"
    return EarlierPeriod(description, np.rint(values.clip(0, 2**40)).astype(np.int64), audit["sensitivity"] or 1)


def _lasts_as_long(audit: Mapping[str, Any], spec: ReleaseSpec) -> bool:
    """Whether the periods of a publication are of the spec's kind, by their days; a release without periods has one."""
    start, end = audit.get("period_start"), audit.get("period_end")
    if start is None or end is None:
        return spec.period == "none"
    days = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).days
    least, most = _DAYS.get(spec.period, (0, 0))
    return least <= days <= most


def _falling(shape: tuple[int, ...], steepness: float) -> NDArray[np.float64]:
    """Weights that fall along every axis from 1 to exp(-steepness), shape (cells,)."""
    falling = np.ones(shape)
    for axis, side in enumerate(shape):
        along = np.exp(-steepness * np.arange(side) / max(1, side - 1))
        falling *= along.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return falling.ravel()


def _rounded_to_total(weights: NDArray[np.float64], records: int) -> Numbers:
    """Whole numbers in proportion to the weights that sum to `records`; the largest remainders are rounded up."""
    shares = weights * (records / weights.sum())
    whole: Numbers = np.floor(shares).astype(np.int64)
    rest = records - int(whole.sum())
    whole[np.argsort(whole - shares, kind="stable")[:rest]] += 1
    return whole


def _refuse_source(source: str, spec: ReleaseSpec) -> None:
    """Refuses a file of the release's own source, by its name; opens none."""
    own = glob.glob(spec.source_pattern, recursive=True)  # noqa: PTH207 - the pattern is absolute
    if any(Path(source).exists() and Path(path).exists() and Path(path).samefile(source) for path in own):
        raise stand_in_refused(source, "is the source of the release itself; name counts that are public")


def _read_public_counts(source: str, shape: tuple[int, ...]) -> Numbers:
    """Public counts; cells beyond the end of the file are empty."""
    counts = read_counts(source)
    if source.startswith(SYNTHETIC):
        _refuse_other_grid(source, counts.shape, shape)
    if counts.ndim != len(shape):
        have, need = ("1 axis" if axes == 1 else f"{axes} axes" for axes in (counts.ndim, len(shape)))
        raise stand_in_refused(source, f"has {have}; the spec has {need}")
    for number, (side, wanted) in enumerate(zip(counts.shape, shape, strict=True), 1):
        if side > wanted:
            raise stand_in_refused(source, f"axis {number} has {side} cells or more; in the spec it has {wanted}")
    return np.pad(counts, [(0, wanted - side) for side, wanted in zip(counts.shape, shape, strict=True)])


def _refuse_other_grid(source: str, other: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if other != shape:
        sides, wanted = (" × ".join(map(str, sides)) for sides in (other, shape))
        raise stand_in_refused(source, f"has a grid of {sides} cells, and the spec one of {wanted}")
