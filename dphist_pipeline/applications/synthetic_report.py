"""How near synthetic records are to their release: sums and a classifier's accuracy; of a family, counts and rates."""

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

from dphist_pipeline.applications._group_rates import GroupRates
from dphist_pipeline.applications.classification import chosen_axes, entropy_tree, examples_of, fit_classifier
from dphist_pipeline.applications.coded_records import NOWHERE, places_of, read_public
from dphist_pipeline.applications.synthetic_records import BATCH_ROWS, Whole
from dphist_pipeline.applications.whole_family import WholeFamily
from dphist_pipeline.applications.whole_release import WholeRelease, application_refused
from dphist_pipeline.base.domain import Axis, CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NestedCells, Unbiased
from dphist_pipeline.estimates.whole_families import Population
from dphist_pipeline.publishing.axis_labels import ReaderAxis

MOST_MARKED, MOST_OF_RATES = 10, 3
KNOWN_TO = 0.1  # what a rate must be known to, as half the width of its interval, before a group counts as known


@dataclass(frozen=True)
class SumsBy:
    """How far sums of synthetic records, brought to the total of the release, are from its unbiased estimates.

    Attributes:
        sums_by: an axis, or two joined by `*`.
        mean, farthest: mean and largest distance, in records of the release.
        apart: share of the records that would have to move to give the whole counts of the release, from 0 to 1.
    """

    sums_by: str
    sums: int
    mean: float
    farthest: float
    apart: float


@dataclass(frozen=True)
class CountsOf:
    """How far counts of synthetic records, brought to the total of the family, are from one of its tables.

    Attributes:
        mean, farthest: mean and largest distance from the unbiased estimates, in records of the family.
        apart: share of the records that would have to move to give the whole counts of the table, from 0 to 1.
        outside: cells whose count lies outside their 95 % interval by more than one record, and in a file of fewer rows
            than the family has by more than their drawing explains: noise alone gives 5 %.
        marked: all of these as told to people, those first that are most half widths away from their interval.
    """

    table: str
    cells: int
    mean: float
    farthest: float
    apart: float
    outside: int
    marked: tuple[str, ...]


@dataclass(frozen=True)
class RatesOf:
    """How far rates of an axis's categories within groups of synthetic records are from those that a table tells.

    A group is one combination of positions along the other axes of the table.

    Attributes:
        groups: how many have records in the file.
        unknown: groups in which the published interval of some rate goes farther than 10 points on either side.
        unknown_groups: all of these as told to people, the least known first.
        outside: rates outside their 95 % interval by more than one record of the group, and in a file of fewer rows
            than the family has by more than their drawing explains: noise alone gives 5 %.
        marked: all of these as told to people, those first that are most half widths away from their interval.
    """

    table: str
    rates_of: str
    groups: int
    unknown: int
    unknown_groups: tuple[str, ...]
    outside: int
    marked: tuple[str, ...]


@dataclass(frozen=True)
class Tested:
    """How a classifier does on public records.

    Attributes:
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
    """Public records to test a classifier on."""

    table: pa.Table
    target: CategoricalAxis
    features: tuple[Axis, ...]

    @classmethod
    def of(cls, whole: WholeRelease, file: Path, target: str) -> PublicTest:
        """Reads public records, CSV or Parquet with a column for each axis; refuses what cannot be tested.

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
class FamilyReport:
    """A report on a file of synthetic records of a family."""

    counts: tuple[CountsOf, ...]
    rates: tuple[RatesOf, ...]

    def facts(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"tables": [asdict(count) for count in self.counts], "rates": [asdict(rate) for rate in self.rates]}

    def tables(self) -> Iterator[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Titles, headers and rows, for a terminal."""
        head = ["table", "cells", "mean distance", "farthest", "records to move", "outside their interval"]
        yield (
            "Counts of the records, brought to the total of the family, against its unbiased estimates",
            head,
            [
                (o.table, f"{o.cells:,}", f"{o.mean:,.1f}", f"{o.farthest:,.1f}", _percent(o.apart), f"{o.outside:,}")
                for o in self.counts
            ],
        )
        if marked := [
            row for count in self.counts for row in _rows_of_texts((count.table,), count.marked, MOST_MARKED)
        ]:
            yield "Cells whose counts in these records are not those of the family", ["table", "cell"], marked
        if self.rates:
            header = f"not known to ± {100 * KNOWN_TO:.0f} points"
            yield (
                "Rates within groups of these records, by the intervals of the published tables",
                ["table", "rates of", "groups", header, "rates outside their interval"],
                [(o.table, o.rates_of, f"{o.groups:,}", f"{o.unknown:,}", f"{o.outside:,}") for o in self.rates],
            )
        if unknown := [
            row
            for rate in self.rates
            for row in _rows_of_texts((rate.table, rate.rates_of), rate.unknown_groups, MOST_OF_RATES)
        ]:
            yield (
                "Groups whose rates the noise hides: join them, or leave them out",
                ["table", "rates of", "group"],
                unknown,
            )
        if marked := [
            row
            for rate in self.rates
            for row in _rows_of_texts((rate.table, rate.rates_of), rate.marked, MOST_OF_RATES)
        ]:
            yield "Rates in these records that are not those of the family", ["table", "rates of", "rate"], marked


def _rows_of_texts(keys: tuple[str, ...], texts: tuple[str, ...], most: int) -> Iterator[tuple[str, ...]]:
    yield from ((*keys, text) for text in texts[:most])
    if len(texts) > most:
        yield (*keys, f"and {len(texts) - most:,} more, which --json names")


@dataclass(frozen=True)
class SyntheticReport:
    """A report on a file of synthetic records."""

    sums: tuple[SumsBy, ...]
    tested: Tested | None

    def facts(self) -> dict[str, Any]:
        """The report as JSON values."""
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


def report_on(whole: Whole, file: Path, test: PublicTest | None = None) -> SyntheticReport | FamilyReport:
    """Reads a file of synthetic records back and compares it with its release, or with every table of its family.

    Args:
        file: that `write_synthetic` wrote; read in batches, in memory of one count a cell, or of its distinct records.
        test: public records; of a single table alone.
    """
    if isinstance(whole, WholeFamily):
        return _report_on_family(whole, file)
    counts = _counts(whole, file)
    return SyntheticReport(tuple(_sums(whole, counts)), None if test is None else _test_result(whole, counts, test))


def _report_on_family(whole: WholeFamily, file: Path) -> FamilyReport:
    sample = _population(whole.domain, file)
    publication = Population(whole.domain, whole.positions.T.astype(np.int32), whole.rows)
    size = int(sample.rows.sum())
    sampled, scale = size < whole.total, whole.total / size
    counts, rates = list[CountsOf](), list[RatesOf]()
    for name in whole.audit["tables"]:
        table, domain, unbiased = whole.table(name)
        sampled_counts = sample.table(domain).astype(np.float64)
        counts.append(_counts_of(name, domain, table, sampled_counts.ravel(), publication.table(domain).ravel(), scale))
        rates += _rates_of_table(name, domain, unbiased, sampled_counts, sampled)
    return FamilyReport(tuple(counts), tuple(rates))


def _population(domain: Domain, file: Path) -> Population:
    places, rows = np.zeros((0, len(domain.axes)), dtype=np.int32), np.zeros(0, dtype=np.int64)
    with pq.ParquetFile(file) as records:
        for batch in records.iter_batches(BATCH_ROWS):
            more = np.stack(places_of(domain.axes, batch), axis=1).astype(np.int32)
            every = np.concatenate([places, more])
            weights = np.concatenate([rows, np.ones(len(more), dtype=np.int64)])
            places, which = np.unique(every, axis=0, return_inverse=True)
            rows = np.bincount(which.ravel(), weights=weights).astype(np.int64)
    return Population(domain, places, rows)


def _counts_of(
    name: str,
    domain: Domain,
    table: pa.Table,
    file_counts: NDArray[np.float64],
    whole_counts: NDArray[np.int64],
    scale: float,
) -> CountsOf:
    lower, upper, unbiased = (table[column].to_numpy() for column in ("ci_lower", "ci_upper", "unbiased_estimate"))
    counts, rows = file_counts * scale, file_counts.sum()
    away = np.abs(counts - unbiased)
    # No number of records is below 0, however far below the interval lies.
    beyond = np.maximum(np.maximum(lower - counts, counts - np.maximum(upper, 0.0)), 0.0)
    nearest = np.clip(np.where(counts < lower, lower, upper) / (rows * scale), 0.0, 1.0)
    outside = np.flatnonzero(beyond > max(scale, 1.0) * _rounding_and_chance(rows, nearest, scale > 1))
    # By records, large cells would hide small groups whose rates are wrong by a factor.
    outside = outside[np.argsort(-(beyond / np.maximum(upper - lower, 1.0))[outside], kind="stable")]
    texts = tuple(
        f"{text}: {counts[cell]:,.0f}, published {lower[cell]:,.0f} to {upper[cell]:,.0f}"
        for cell, text in zip(outside.tolist(), _names(domain, outside), strict=True)
    )
    apart = np.abs(counts - whole_counts).sum() / 2 / whole_counts.sum()
    return CountsOf(name, away.size, float(away.mean()), float(away.max()), float(apart), outside.size, texts)


def _rounding_and_chance(
    rows: float | NDArray[np.float64], share: NDArray[np.float64], sampled: bool
) -> NDArray[np.float64]:
    """By how many of its rows a file may miss a share: by rounding, and by chance (95 %) where few are drawn."""
    chance = share * (1 - share) if sampled else 0.0
    return np.asarray(1 + 1e-9 + 1.96 * np.sqrt(rows * chance))


def _rates_of_table(
    name: str, domain: Domain, unbiased: Unbiased | None, counts: NDArray[np.float64], sampled: bool
) -> Iterator[RatesOf]:
    if len(domain.axes) < 2 or not isinstance(unbiased, NestedCells):
        return
    for number, axis in enumerate(domain.axes):
        if axis.size > 1:
            yield _rates_of(domain, name, number, counts, GroupRates.of(counts, unbiased, number), sampled)


def _rates_of(
    domain: Domain, name: str, number: int, counts: NDArray[np.float64], rates: GroupRates, sampled: bool
) -> RatesOf:
    rows = counts.sum(axis=number, keepdims=True)
    away = np.maximum(np.maximum(rates.lower - rates.rates, rates.rates - rates.upper), 0.0)
    nearest = np.where(rates.rates < rates.lower, rates.lower, rates.upper)
    outside = np.flatnonzero((away * rows > _rounding_and_chance(rows, nearest, sampled)).ravel())
    outside = outside[np.argsort(-(away / np.maximum(rates.upper - rates.lower, 1e-3)).ravel()[outside], kind="stable")]
    parts = (rates.rates, rates.lower, rates.upper, np.broadcast_to(rows, counts.shape))
    numbers = np.stack([part.ravel()[outside] for part in parts], axis=1).tolist()
    marked = tuple(
        f"{text}: {_percent(rate)} of {of:,.0f}, published {_percent(lower)} to {_percent(upper)}"
        for text, (rate, lower, upper, of) in zip(_names(domain, outside), numbers, strict=True)
    )
    groups = Domain(tuple(axis for place, axis in enumerate(domain.axes) if place != number))
    has_rows, reach = rows.ravel() > 0, rates.reach(number).ravel()
    unknown = np.flatnonzero(has_rows & (reach > KNOWN_TO))
    unknown = unknown[np.argsort(-reach[unknown], kind="stable")]
    reaches = zip(_names(groups, unknown), reach[unknown].tolist(), strict=True)
    texts = tuple(f"{text}: ± {100 * of:.0f} points" for text, of in reaches)
    return RatesOf(name, domain.axes[number].name, int(has_rows.sum()), unknown.size, texts, outside.size, marked)


def _names(domain: Domain, cells: NDArray[np.int64]) -> list[str]:
    """Cells as told to people, such as `age [0, 25), sex m`."""
    labels = [(axis.name, ReaderAxis(axis).labels) for axis in domain.axes]
    places = np.stack(np.unravel_index(cells, domain.shape), axis=1).tolist()
    return [", ".join(f"{name} {of[place]}" for (name, of), place in zip(labels, part, strict=True)) for part in places]


def _counts(whole: WholeRelease, file: Path) -> NDArray[np.int64]:
    """The cells of the records of a file, counted."""
    axes, shape = whole.domain.axes, whole.domain.shape
    counts = np.zeros(whole.counts.size, dtype=np.int64)
    with pq.ParquetFile(file) as records:
        for batch in records.iter_batches(BATCH_ROWS, columns=[axis.name for axis in axes]):
            cells = np.ravel_multi_index(tuple(places_of(axes, batch)), shape)
            np.add.at(counts, *np.unique(cells, return_counts=True))
    return counts.reshape(shape)


def _sums(whole: WholeRelease, file_counts: NDArray[np.int64]) -> Iterator[SumsBy]:
    every = range(len(whole.domain.axes))
    for axes in [*((axis,) for axis in every), *combinations(every, 2)]:
        over = tuple(axis for axis in every if axis not in axes)
        sums = file_counts.sum(axis=over) * (whole.total / file_counts.sum())
        away = np.abs(sums - whole.targets.sum(axis=over))
        apart = np.abs(sums - whole.counts.sum(axis=over)).sum() / 2 / whole.total
        name = "*".join(whole.domain.axes[axis].name for axis in axes)
        yield SumsBy(name, away.size, float(away.mean()), float(away.max()), float(apart))


def _test_result(whole: WholeRelease, file_counts: NDArray[np.int64], test: PublicTest) -> Tested:
    examples = examples_of(replace(whole, counts=file_counts), test.target, test.features)
    (truth,) = places_of([test.target], test.table)
    is_inside = truth != NOWHERE
    frequent = np.bincount(examples.classes, weights=examples.weights).argmax()
    accuracy = fit_classifier(test.target, test.features, examples).accuracy(test.table)
    return Tested(test.target.name, int(is_inside.sum()), accuracy, float((truth[is_inside] == frequent).mean()))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
