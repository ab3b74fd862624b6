"""How near synthetic records are to their release: sums by axes and by pairs of axes, and a classifier's accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.applications.classification import chosen_axes, entropy_tree, examples_of, fitted
from dphist_pipeline.applications.coded_records import NOWHERE, places_of, read_public
from dphist_pipeline.applications.synthetic_records import BATCH_ROWS
from dphist_pipeline.applications.whole_release import WholeRelease, application_refused
from dphist_pipeline.domain import Axis, CategoricalAxis


@dataclass(frozen=True)
class SumsBy:
    """How far sums of synthetic records, brought to the total of the release, are from its unbiased estimates.

    Attributes:
        sums_by: an axis, or two joined by `*`.
        sums: how many.
        mean: mean distance, in records of the release.
        farthest: largest distance, in records of the release.
        apart: share of the records that would have to move to give the whole counts of the release, from 0 to 1.
    """

    sums_by: str
    sums: int
    mean: float
    farthest: float
    apart: float


@dataclass(frozen=True)
class Tested:
    """How a classifier does on public records.

    Attributes:
        target: what it predicts.
        records: public records with a category of the target.
        accuracy: share of them that a tree trained on the synthetic records predicts.
        most_frequent: share of them that always answering the most frequent category of the synthetic records predicts.
    """

    target: str
    records: int
    accuracy: float
    most_frequent: float


@dataclass(frozen=True, eq=False)
class PublicTest:
    """Public records to test a classifier on.

    Attributes:
        table: the records.
        target: the axis that is predicted.
        features: the axes that it reads.
    """

    table: pa.Table
    target: CategoricalAxis
    features: tuple[Axis, ...]

    @classmethod
    def of(cls, whole: WholeRelease, file: Path, target: str) -> PublicTest:
        """Reads public records; refuses what cannot be tested before anything is drawn.

        Args:
            file: CSV or Parquet, with a column for each axis.

        Raises:
            Refused: see `train`; the file cannot be read or lacks a column.
        """
        entropy_tree()
        goal, axes = chosen_axes(whole, target)
        table = read_public(file)
        if (places_of([*axes, goal], table)[-1] == NOWHERE).all():
            raise application_refused(f"no record of {file.name} has a category of the axis '{target}' to test on")
        return cls(table, goal, axes)


@dataclass(frozen=True)
class Report:
    """A report on a file of synthetic records."""

    sums: tuple[SumsBy, ...]
    tested: Tested | None

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        tested = {} if self.tested is None else {"classifier": asdict(self.tested)}
        return {"sums": [asdict(one) for one in self.sums], **tested}

    def tables(self) -> Iterator[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Titles, headers and rows, for a terminal."""
        head = ["by", "sums", "mean distance", "farthest", "records to move"]
        yield (
            "Sums of the records, brought to the total of the release, against its unbiased estimates",
            head,
            [(o.sums_by, f"{o.sums:,}", f"{o.mean:,.1f}", f"{o.farthest:,.1f}", _percent(o.apart)) for o in self.sums],
        )
        if self.tested is not None:
            one = self.tested
            rows: list[tuple[str, ...]] = [
                ("trained on the synthetic records", _percent(one.accuracy)),
                ("always the most frequent category", _percent(one.most_frequent)),
            ]
            yield f"{one.target} of {one.records:,} public records", ["classifier", "accuracy"], rows


def report_on(whole: WholeRelease, file: Path, test: PublicTest | None = None) -> Report:
    """Reads a file of synthetic records back and compares it with its release.

    Args:
        file: that `write_synthetic` wrote; read in batches, in memory of one count a cell.
        test: public records.
    """
    drawn = _counts(whole, file)
    return Report(tuple(_sums(whole, drawn)), None if test is None else _tested(whole, drawn, test))


def _counts(whole: WholeRelease, file: Path) -> NDArray[np.int64]:
    """The cells of the records of a file, counted."""
    axes, shape = whole.domain.axes, whole.domain.shape
    counts = np.zeros(whole.counts.size, dtype=np.int64)
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(BATCH_ROWS, columns=[axis.name for axis in axes]):
            cells = np.ravel_multi_index(tuple(places_of(axes, batch)), shape)
            np.add.at(counts, *np.unique(cells, return_counts=True))
    return counts.reshape(shape)


def _sums(whole: WholeRelease, drawn: NDArray[np.int64]) -> Iterator[SumsBy]:
    every = range(len(whole.domain.axes))
    for kept in [*((axis,) for axis in every), *combinations(every, 2)]:
        over = tuple(axis for axis in every if axis not in kept)
        found = drawn.sum(axis=over) * (whole.total / drawn.sum())
        away = np.abs(found - whole.targets.sum(axis=over))
        apart = np.abs(found - whole.counts.sum(axis=over)).sum() / 2 / whole.total
        name = "*".join(whole.domain.axes[axis].name for axis in kept)
        yield SumsBy(name, away.size, float(away.mean()), float(away.max()), float(apart))


def _tested(whole: WholeRelease, drawn: NDArray[np.int64], test: PublicTest) -> Tested:
    examples = examples_of(replace(whole, counts=drawn), test.target, test.features)
    (truth,) = places_of([test.target], test.table)
    known = truth != NOWHERE
    frequent = np.bincount(examples.classes, weights=examples.weights).argmax()
    accuracy = fitted(test.target, test.features, examples).accuracy(test.table)
    return Tested(test.target.name, int(known.sum()), accuracy, float((truth[known] == frequent).mean()))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
