"""Whole tables of a family that agree: one population of whole records, fitted to all tables at once.

A population is a list of distinct records (a position on each axis) with whole numbers of rows. Its tables are not
negative, whole, and agree on every sum that they share, because they count the same records. The fit starts from
records that are drawn along a tree of tables (or, where one large table has all axes, from that table's whole cells),
and moves whole records while the weighted sum of squared distances from the published estimates falls; see
`solvers.population`. Sums of tables over some of their axes count more than cells do, because positive noise in
empty cells, which no whole table can follow, would otherwise push them away. Regions count more than their places for
the same reason; and where an axis is used at several levels, the estimates of each are made non-negative parts of the
next coarser one beforehand, so that large places do not pay for the noise of empty ones. Without levels, each table
leans on its own margins beforehand, as far as noise hides what it tells beyond them; and records are moved once more so
that tables of one axis more, which the family does not tell, have no interaction of their own.

This is post-processing of what is published, without randomness. Whole counts have no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, Domain, Figures, finest, groups_along, texts_at
from dphist_pipeline.estimates.budget import LARGEST_EPSILON
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import exact_sum
from dphist_pipeline.estimates.whole_tables import WholeTable
from dphist_pipeline.solvers.tables import shrunk_interactions
from dphist_pipeline.solvers.whole_counts.firm_sums import firm_parts

if TYPE_CHECKING:
    from dphist_pipeline.solvers.whole_counts.population import CellLayout

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Places = NDArray[np.int32]
Names = tuple[str, ...]

# How much more than its precision a sum over an axis counts, and again for each further axis. Measured on public tables
# (`benchmarks/whole_families.py`): from 3 on sums over axes are as good as the estimates, from 10 on cells are worse.
SUMS_COUNT = 5.0
# The same for a level of an axis, for each finer level. Empty places keep their positive noise, 0.4 of its standard
# deviation s each. So a region of n places, half of which stand at 0, is pushed up by 0.4·n·s records, and its own
# target, whose deviation is S, takes back all but 0.8·s·w/W of them, where w and W are the importances of a place and
# of the region. With W/w = 25·(s/S)² it keeps at most 0.8·(S/s)/25 of its own deviation: 3 % where both are measured
# alike, and with 5 times 16 %. Places are as good with 100, as long as moves stay in their region.
LEVELS_COUNT = 25.0
_MOST_LEANING = 1 << 21  # cells of larger tables are taken as they are
# Records that a fit starts from; of more rows, records have several each, and are split where that helps.
MOST_RECORDS = 1 << 17
MOST_STEPS = 1e10  # a minute of one processor; each turn takes half of what is left
_MOST_PLACES = 1 << 25
_MOST_SUMS = 4_000  # of more, only tables and single axes are wanted
_DEEPEST = 6
_MOST_TURNS, _NEARER = 5, 0.7
# Tables of one axis more, which none tells, are fitted to what their margins tell if there are at most so many cells,
# and so many rows times tables, in this share of the steps. They count so much more than the least of their margins,
# but no more than the variance of records that fall by chance allows. From 3 to 100 times are alike on public records
# of 1,000 rows at ε = 1, and with 0.1 records gather as chance had it; without the limit, pairs are worse at ε = 10.
# Margins of three axes or more are taken as they are wanted, before they are whole: most of their cells hold less than
# a row, and a model of whole margins keeps what rounding made of these. Whole pairs are the better margins: what noise
# made of one, the others have mended (idaho: 4 % at ε = 10). With nine times the weight invented triples lose 3 %.
_MOST_UNTOLD, _MOST_ROWS_IN_UNTOLD, _STEPS_OF_UNTOLD, _UNTOLD_COUNT = 1 << 21, 1 << 24, 0.25, 3.0
# The variance of one draw at the largest epsilon, where a unit has one record: no measured number varies less.
_LEAST_VARIANCE = noise_law(1 / LARGEST_EPSILON).variance
_FEW = 8  # times as many records as a fit starts from


@dataclass(frozen=True, eq=False)
class Population:
    """Distinct records, each with a whole number of rows.

    Attributes:
        domain: the finest axes of the tables; its cells are never numbered.
        places: positions along the axes, sorted, shape (records, axes).
        rows: positive, shape (records,).
    """

    domain: Domain
    places: Places
    rows: Wholes

    def table(self, domain: Domain) -> Wholes:
        """The whole cells of a table by axes, or levels of axes, of the population; shape of its domain."""
        rows = np.zeros(domain.cells, dtype=np.int64)
        cells = np.zeros(len(self.rows), dtype=np.int64)
        for axis, stride in zip(domain.axes, domain.strides, strict=True):
            number, groups = _finer(self.domain, axis)
            cells += groups[self.places[:, number]] * stride
        np.add.at(rows, cells, self.rows)
        return rows.reshape(domain.shape)


def fit_population(tables: Mapping[str, Estimate], figures: Figures | None = None) -> Population:
    """The population whose tables are near to those of a family.

    Returns:
        Its rows sum to the rounded total of the tables, or to that of the figures. Some seconds for ten axes, half a
        minute for all pairs of fifty; from 10^5 rows on, the time does not grow with them.
    """
    # Loaded here: who only reads whole tables needs no compiler.
    from dphist_pipeline.solvers.whole_counts.population import CellLayout

    domain = finest(made.domain for made in tables.values())
    sums = _target_sums(tables, domain)
    fixed = _Fixed.of(domain, exact_sum(next(iter(tables.values())).values), figures)
    layout = CellLayout.of(domain.shape, [one.steps for one in sums], [one.values.size for one in sums])
    names = {axis.name for axis in domain.axes}
    holding = [made for made in tables.values() if names <= {axis.name for axis in made.domain.axes}]
    if figures is None and holding and min(made.cells for made in holding) > _FEW * MOST_RECORDS:
        # Too many cells to draw for: the whole cells of the table that has all axes are the records.
        places, rows = _of_table(domain, min(holding, key=lambda made: made.cells))
    else:
        places, rows = _first_records(layout, sums, fixed)
    population = Population(domain, *_fit_records(layout, places, rows, sums, fixed, MOST_STEPS))
    untold = _untold(sums, population)
    if untold:
        sums = [*sums, *untold]
        layout = CellLayout.of(domain.shape, [one.steps for one in sums], [one.values.size for one in sums])
        steps = MOST_STEPS * _STEPS_OF_UNTOLD
        population = Population(domain, *_fit_records(layout, population.places, population.rows, sums, fixed, steps))
    return population


def _fit_records(
    layout: CellLayout, places: Places, rows: Wholes, sums: Sequence[_TargetSums], fixed: _Fixed, most_steps: float
) -> tuple[Places, Wholes]:
    """Moves records; of many rows, in turn with other rows for each record, which reach what moves are slow to."""
    from dphist_pipeline.solvers.whole_counts.population import fit_rows, improve

    targets, importance = _aims(sums)
    room, before = 2 * max(MOST_RECORDS, len(rows)), math.inf
    for turn in range(_MOST_TURNS if len(rows) <= 4 * MOST_RECORDS else 1):
        if turn and rows.sum() > MOST_RECORDS:
            rows = fit_rows(layout, places, rows, targets, importance, fixed.groups(places))
            places, rows = places[rows > 0], rows[rows > 0]
        if not len(rows):
            break
        places, rows, misfit = improve(
            layout, places, rows, targets, importance, fixed.labels, room, most_steps / 2 ** (turn + 1)
        )
        places, rows = _merge_equal(places, rows)
        if misfit > _NEARER * before or rows.sum() <= MOST_RECORDS:
            break
        before = misfit
    return places, rows


def _finer(domain: Domain, axis: Axis) -> tuple[int, Wholes]:
    """The axis of a population that an axis of a table is, or is a level of, and where its positions fall."""
    for number, one in enumerate(domain.axes):
        if one.name == axis.name:
            return number, np.arange(axis.size)
        if axis.name in one.levels:
            return number, np.array(groups_along(one, axis), dtype=np.int64)
    raise KeyError(axis.name)


@dataclass(frozen=True, eq=False)
class _TargetSums:
    """Wanted sums: of a table, or of a table over some of its axes.

    Attributes:
        steps: the axes of the population that they go by, and what a position on each adds to the number of a sum.
        values: as estimated, shape of the axes.
        importance: of a squared distance.
    """

    steps: tuple[tuple[int, Wholes], ...]
    values: Reals
    importance: float

    def axes_in(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The axes, if each of them stands as it is in the population; else nothing."""
        axes = tuple(axis for axis, _ in self.steps)
        return axes if tuple(shape[axis] for axis in axes) == self.values.shape else ()


def _target_sums(tables: Mapping[str, Estimate], domain: Domain) -> list[_TargetSums]:
    """The cells of all tables, and their sums over some axes, each as the table tells it that knows it best."""
    known: dict[tuple[str, ...], tuple[float, Estimate, tuple[int, ...]]] = {}
    few = sum(2 ** len(made.domain.axes) for made in tables.values()) <= _MOST_SUMS
    for made in tables.values():
        every = tuple(range(len(made.domain.axes)))
        for kept in _parts(every) if few else {every, *((axis,) for axis in every)}:
            names, variance = tuple(made.domain.axes[axis].name for axis in kept), _variance(made, kept)
            if names not in known or variance < known[names][0]:
                known[names] = variance, made, kept
    count = _Counted.of(tables, domain)
    sums = {
        names: _sums(domain, made, kept, count.of_sum(names) / variance)
        for names, (variance, made, kept) in sorted(known.items())
    }
    several = count.several()
    if not several and all(made.unbiased is not None for made in tables.values()):
        return list(_leaning(sums, {names: variance for names, (variance, _, _) in known.items()}, tables).values())
    sets = {frozenset(names): names for names in sums}
    for names in sorted(sums, key=lambda one: sums[one].values.size):  # what a sum is a part of comes first
        if not several.isdisjoint(names):
            wholes = [sums[sets[above]] for above in count.coarser(names) if above in sets]
            sums[names] = _firm(sums[names], wholes, math.sqrt(known[names][0]))
    return list(sums.values())


def _leaning(
    sums: Mapping[Names, _TargetSums], variances: Mapping[Names, float], tables: Mapping[str, Estimate]
) -> dict[Names, _TargetSums]:
    """Sums that lean on their own margins as far as noise hides what they tell beyond these; see `shrunk_interactions`.

    A single axis leans on an even line, two axes on the product of their lines, more on the table without the
    interaction of all of them. So a table whose interactions are below its noise costs no more than its margins.
    """
    total = max(1.0, round(exact_sum(next(iter(sums.values())).values)))
    alone: dict[Names, float] = {(): min(_variance(made, ()) for made in tables.values())}
    found: dict[Names, _TargetSums] = {}
    for names in sorted(sums, key=lambda one: (len(one), one)):
        shape, one = sums[names].values.shape, sums[names]
        below = [part for part in alone if set(part) < set(names)]
        alone[names] = max(
            _LEAST_VARIANCE,
            variances[names] - math.fsum(alone[part] / _cells_apart(names, part, shape) for part in below),
        )
        if one.values.size > _MOST_LEANING:
            found[names] = one
            continue
        highest = [part for part in below if part and not any(set(part) < set(other) for other in below)]
        margins = [
            (tuple(names.index(name) for name in part), _scaled_to_total(found[part].values, total)) for part in highest
        ]
        values = shrunk_interactions.lean_on_margins(one.values, margins, total, alone[names])
        found[names] = replace(one, values=values)
    return found


def _untold(sums: Sequence[_TargetSums], population: Population) -> list[_TargetSums]:
    """The tables of one axis more than those that are told, as their margins alone would give them.

    A fit to pairs leaves free how records fall on three axes, and chance decides it. So tables all of whose margins
    are told, and none of which is told itself, are wanted without interaction. Nothing where axes have levels, where
    there are too many of these tables, or where records stand for several rows: pairs would be met less well.
    """
    shape = population.domain.shape
    told = {frozenset(one.axes_in(shape)): one for one in sums}
    above = {one | {axis} for one in told if len(one) > 1 for axis in range(len(shape))} - told.keys()
    found = {tuple(sorted(one)) for one in above if all(one - {axis} in told for axis in one)}
    cells = sum(math.prod(shape[axis] for axis in axes) for axes in found)
    rows = int(population.rows.sum())
    many = cells > _MOST_UNTOLD or len(found) * rows > _MOST_ROWS_IN_UNTOLD
    if many or frozenset() in told or not 0 < rows <= MOST_RECORDS:
        return []
    return [_without_interaction(axes, told, population) for axes in sorted(found)]


def _without_interaction(
    axes: Sequence[int], told: Mapping[frozenset[int], _TargetSums], population: Population
) -> _TargetSums:
    """A table as its margins alone would give it: pairs as the population has them, larger ones as they are wanted."""
    by = Domain(tuple(population.domain.axes[axis] for axis in axes))
    rows, margins = float(population.rows.sum()), []
    for left in range(len(axes)):
        kept = tuple(place for place in range(len(axes)) if place != left)
        if len(kept) > 2:
            one = told[frozenset(axes[place] for place in kept)]
            margin = _scaled_to_total(one.values.transpose(np.argsort(one.axes_in(population.domain.shape))), rows)
        else:
            margin = population.table(Domain(tuple(by.axes[place] for place in kept))).astype(np.float64)
        margins.append((kept, margin))
    of_margins = _UNTOLD_COUNT * min(told[frozenset(axes) - {axis}].importance for axis in axes)
    wanted = shrunk_interactions.without_interaction(by.shape, margins)
    importance = min(of_margins, by.cells / rows)
    steps = tuple(
        (axis, np.arange(size) * stride) for axis, size, stride in zip(axes, by.shape, by.strides, strict=True)
    )
    return _TargetSums(steps, wanted, importance)


def _cells_apart(names: Names, part: Names, shape: Sequence[int]) -> int:
    """The square of the number of cells of a table for each cell of a part of it."""
    return math.prod(size for name, size in zip(names, shape, strict=True) if name not in part) ** 2


def _scaled_to_total(values: Reals, total: float) -> Reals:
    """Values that are not negative and have a sum."""
    values = np.maximum(values, 0.0)
    return values * (total / values.sum()) if values.any() else np.full(values.shape, total / values.size)


def _firm(sums: _TargetSums, wholes: Sequence[_TargetSums], deviation: float) -> _TargetSums:
    """Sums that are not negative and are parts of sums one level above, or of the total."""
    total = np.array([max(0.0, float(sums.values.sum()))])
    labels, targets = np.zeros(sums.values.size, dtype=np.int64), total
    for whole in wholes:
        shares = _part_of(sums, whole)
        if shares is not None:
            labels, targets = shares, whole.values.ravel()
            break
    parts = np.bincount(labels, minlength=targets.size)
    moved = (targets - np.bincount(labels, sums.values.ravel(), targets.size)) / np.maximum(parts, 1)
    values = firm_parts(sums.values.ravel() + moved[labels], labels, targets, deviation)
    return replace(sums, values=values.reshape(sums.values.shape))


def _part_of(sums: _TargetSums, whole: _TargetSums) -> Wholes | None:
    """The cell of a whole that each sum is a part of, shape (sums,); None if levels do not nest."""
    labels = np.zeros(sums.values.shape, dtype=np.int64)
    above = dict(whole.steps)
    stride = math.prod(sums.values.shape)
    for place, (axis, steps) in enumerate(sums.steps):
        size = sums.values.shape[place]
        stride //= size
        up = np.zeros(size, dtype=np.int64)
        up[steps // stride] = above[axis]
        if not np.array_equal(up[steps // stride], above[axis]):
            return None
        labels += up.reshape([size if one == place else 1 for one in range(labels.ndim)])
    return labels.ravel()


@dataclass(frozen=True, eq=False)
class _Counted:
    """How much more than its precision a sum counts: by what the finest table tells apart that the sum does not.

    Attributes:
        levels: for each name its axis in the population, and its number among the levels there, the finest 0.
        tables: the level of each axis in each table, -1 where the table lacks it; shape (tables, axes).
    """

    levels: Mapping[str, tuple[int, int]]
    tables: Wholes

    @classmethod
    def of(cls, tables: Mapping[str, Estimate], domain: Domain) -> _Counted:
        """The levels of all tables."""
        axes = {axis.name: axis for made in tables.values() for axis in made.domain.axes}
        sizes: dict[int, dict[str, int]] = {}
        for axis in axes.values():
            sizes.setdefault(_finer(domain, axis)[0], {})[axis.name] = axis.size
        levels = {
            name: (number, level)
            for number, found in sizes.items()
            for level, name in enumerate(sorted(found, key=lambda one: (-found[one], one)))
        }
        places = np.full((len(tables), len(domain.axes)), -1)
        for row, made in zip(places, tables.values(), strict=True):
            for number, level in (levels[axis.name] for axis in made.domain.axes):
                row[number] = level
        return cls(levels, places)

    def several(self) -> set[str]:
        """Names of axes that are levels of one axis."""
        numbers = [number for number, _ in self.levels.values()]
        return {name for name, (number, _) in self.levels.items() if numbers.count(number) > 1}

    def coarser(self, names: tuple[str, ...]) -> list[frozenset[str]]:
        """The same names, with another level instead of one of them; the next level above it comes first."""
        levels = []
        for place, name in enumerate(names):
            number, level = self.levels[name]
            others = [(of[1] - level, other) for other, of in self.levels.items() if of[0] == number and of[1] > level]
            levels += [(step, place, other) for step, other in others]
        return [frozenset((*names[:place], other, *names[place + 1 :])) for _, place, other in sorted(levels)]

    def of_sum(self, names: tuple[str, ...]) -> float:
        """The factor of a sum by some axes."""
        numbers, levels = np.array([self.levels[name] for name in names], dtype=np.int64).reshape(-1, 2).T
        finer = self.tables[np.all((self.tables[:, numbers] >= 0) & (self.tables[:, numbers] <= levels), axis=1)]
        axes = np.minimum((finer >= 0).sum(axis=1) - len(names), _DEEPEST)
        steps = np.minimum((levels - finer[:, numbers]).sum(axis=1), _DEEPEST)
        return float((SUMS_COUNT**axes * LEVELS_COUNT**steps).max())


def _parts(every: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [kept for size in range(1, len(every) + 1) for kept in combinations(every, size)]


def _variance(made: Estimate, kept: tuple[int, ...]) -> float:
    """How much the noise of a sum over all axes but `kept` varies, in rows squared."""
    if made.unbiased is None:
        return 1.0
    shape = made.domain.shape
    sums = [np.arange(1 if axis in kept else size) for axis, size in enumerate(shape)]
    # Where cells of another table vary 10^16 times as much, rounding leaves nothing of a sum's variance.
    return max(made.unbiased.variance_of_sum(sums), _LEAST_VARIANCE)


def _sums(domain: Domain, made: Estimate, kept: tuple[int, ...], importance: float) -> _TargetSums:
    over = tuple(axis for axis in range(made.values.ndim) if axis not in kept)
    by = Domain(tuple(made.domain.axes[axis] for axis in kept))
    steps: dict[int, Wholes] = {}
    for axis, stride in zip(by.axes, by.strides, strict=True):
        number, groups = _finer(domain, axis)
        steps[number] = steps.get(number, 0) + groups * stride
    return _TargetSums(tuple(steps.items()), made.values.sum(axis=over), importance)


def _aims(sums: Sequence[_TargetSums]) -> tuple[Reals, Reals]:
    """The wanted cells of all sums, and the importance of each sum."""
    return np.concatenate([one.values.ravel() for one in sums]), np.array([one.importance for one in sums])


@dataclass(frozen=True, eq=False)
class _Fixed:
    """What no fit changes.

    Attributes:
        labels: for each axis a label of every position; records keep their labels.
        axes: of which labels differ.
        rows: of each combination of labels on these axes, in C order.
    """

    labels: list[Wholes]
    axes: tuple[int, ...]
    rows: Wholes

    @classmethod
    def of(cls, domain: Domain, total: float, figures: Figures | None) -> _Fixed:
        """The figures, or the total."""
        labels = [np.zeros(size, dtype=np.int64) for size in domain.shape]
        if figures is None:
            return cls(labels, (), np.array([max(0, round(total))]))
        axes: list[int] = []
        rows = figures.rows
        for place, (level, values) in enumerate(zip(figures.levels, figures.values, strict=True)):
            number, texts = next(
                (number, texts) for number, axis in enumerate(domain.axes) if (texts := texts_at(axis, level))
            )
            names = {text: label for label, text in enumerate(dict.fromkeys(texts))}
            labels[number] = np.array([names[text] for text in texts], dtype=np.int64)
            place_of = {value: number for number, value in enumerate(values)}
            rows = rows.take([place_of[name] for name in names], axis=place)
            axes += [number] if len(names) > 1 else []
        return cls(labels, tuple(axes), rows.ravel())

    def groups(self, places: Places) -> Wholes:
        """The number of the combination of labels of each record, which has a number of `rows`."""
        groups = np.zeros(len(places), dtype=np.int64)
        for axis in self.axes:
            groups = groups * (self.labels[axis].max() + 1) + self.labels[axis][places[:, axis]]
        return groups

    def records_of_rows(self, most: int) -> tuple[Wholes, Wholes]:
        """The label and the rows of every record: of at most so many records, and one more for each label."""
        total = max(int(self.rows.sum()), 1)
        records = np.minimum(self.rows, np.maximum(1, self.rows * min(1.0, most / total)).astype(np.int64))
        groups = np.repeat(np.arange(self.rows.size), records)
        place = np.arange(groups.size) - np.repeat(np.cumsum(records) - records, records)
        each, more = np.divmod(self.rows, np.maximum(records, 1))
        return groups, each[groups] + (place < more[groups])

    def places(self, groups: Wholes, of_axis: Mapping[int, Reals]) -> dict[int, Wholes]:
        """Positions of records on the axes whose labels differ: in quotas within each combination of labels.

        Args:
            groups: of the records, rising.
            of_axis: what an axis alone is wanted to hold.
        """
        from dphist_pipeline.solvers.whole_counts.population import mix_words

        places: dict[int, Wholes] = {}
        held, stride = _by_label(groups, self.rows.size), self.rows.size
        for axis in self.axes:
            parts = _by_label(self.labels[axis], int(self.labels[axis].max()) + 1)
            stride //= len(parts)
            on_axis = np.zeros(groups.size, dtype=np.int64)
            for group, mine in enumerate(held):
                if not mine.size:
                    continue
                part = parts[group // stride % len(parts)]
                shares = np.maximum(of_axis[axis][part], 0.0)
                shares = np.cumsum(shares if shares.sum() > 0 else np.ones(part.size))
                # In another order than along an earlier axis: else first positions would meet first ones.
                order = np.argsort(mix_words(mine.size, axis), kind="stable") if places else slice(None)
                on_axis[mine[order]] = part[
                    np.searchsorted(shares / shares[-1], (np.arange(mine.size) + 0.5) / mine.size)
                ]
            places[axis] = on_axis
        return places


def _by_label(labels: Wholes, many: int) -> list[Wholes]:
    """For each label from 0 where it stands, in order; one sort, since there may be a million labels."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=many))[:-1])


def _first_records(layout: CellLayout, sums: Sequence[_TargetSums], fixed: _Fixed) -> tuple[Places, Wholes]:
    """Records and rows to begin with, along a tree of tables."""
    from dphist_pipeline.solvers.whole_counts.population import drawn_records, fit_rows

    largest, sizes = max(one.values.size for one in sums), layout.sizes
    groups, rows = fixed.records_of_rows(max(MOST_RECORDS, min(4 * largest, _MOST_PLACES // len(sizes))))
    if not len(rows):
        return np.zeros((0, len(sizes)), dtype=np.int32), rows
    plain = {axes: (one.values, one.importance) for one in sums if (axes := one.axes_in(sizes))}
    given = fixed.places(groups, {axis: plain[(axis,)][0] for axis in fixed.axes})
    places = drawn_records(sizes, plain, given, len(rows))
    if rows.max() > 1:
        rows = fit_rows(layout, places, rows, *_aims(sums), groups)
    return places[rows > 0], rows[rows > 0]


def _of_table(domain: Domain, made: Estimate) -> tuple[Places, Wholes]:
    """The whole cells of a table that has all axes, as records and rows."""
    counts = WholeTable.fit(made.domain, made.values, made.unbiased).counts
    cells, names = np.nonzero(counts), [axis.name for axis in made.domain.axes]
    places = np.stack([cells[names.index(axis.name)] for axis in domain.axes], axis=1).astype(np.int32)
    return places, counts[cells]


def _merge_equal(places: Places, rows: Wholes) -> tuple[Places, Wholes]:
    """Equal records as one, sorted."""
    order = np.lexsort(places.T[::-1])
    places, rows = places[order], rows[order]
    starts = np.flatnonzero(np.any(np.diff(places, axis=0, prepend=-1), axis=1))
    return places[starts], np.add.reduceat(rows, starts)
