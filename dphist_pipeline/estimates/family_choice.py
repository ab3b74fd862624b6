"""Which table of a family answers a question with the least noise: a rule for Python and for the catalogue's macros.

All tables of a family agree on every sum. Where axes are used at several levels, what is told about the noise differs:
a table of states mostly knows states better than one of counties does. The rule looks at the axes and levels that a
question names, never at the values of a box, so the catalogue can hold its results.

A table is replaced by one that is better for these names: it tells less noise for every sum that is tried. Along an
axis by which rows are asked for, single groups are tried; along one with a condition also few and many groups together,
and contrasts of groups. Both tables tell a covariance that is a sum of terms, each for the cells that agree on some
axes, so the variance of a sum needs only, for every axis, the sum of squared weights and the squared sum of weights.

A chosen table is asked again whether another is better, so that the last one is not replaced whoever names it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, CategoricalAxis, Domain
from dphist_pipeline.estimates.laws import noise_law

Audit = Mapping[str, Any]
Reals = NDArray[np.float64]
Names = frozenset[str]
Kinds = tuple[Names, Names]  # names by which rows are asked for alone, and names with conditions

MOST_COMPARED = 16  # tables, the smallest that have all names
MOST_CELLS = 1 << 20  # of a table that answers in the place of a smaller one
MOST_CHOICES = 50_000  # of names in a question, over all tables; else questions with fewer names are told apart
MOST_OF_AXIS = 2  # names that a question may use of one axis
_BETTER = 1 - 1e-6  # of the variance; sums that have the same one differ by rounding errors
_WIDER = 1.02  # of an interval: as much as rounding to whole numbers and steps of its table do
_FAR = 0.5  # of the variance: with less, the interval is narrower whatever the scale of a draw
_LARGE = 64  # scale of a draw above which rounding to whole numbers does not matter
_FEW = 8  # groups together, up to which every number is tried
_PICKED = 6  # single groups of a level that are tried


@dataclass(frozen=True)
class _TableLaw:
    """What a table tells of its noise: the scale of a draw, and covariances of two cells.

    Each covariance is of cells that agree on the axes with True.
    """

    scale: Fraction
    parts: tuple[tuple[float, tuple[bool, ...]], ...]

    @classmethod
    def of(cls, domain: Domain, audit: Audit) -> _TableLaw | None:
        """From an audit; None for laws that tables of families do not have."""
        scale, shared = audit.get("unbiased_noise_scale"), audit.get("unbiased_covariance")
        if scale is None or not shared or audit.get("unbiased_lines"):
            return None
        parts = []
        for part in shared:
            if any(width not in (1, size) for width, size in zip(part["widths"], domain.shape, strict=True)):
                return None
            parts.append((float(part["coefficient"]), tuple(width == 1 for width in part["widths"])))
        return cls(Fraction(scale), tuple(parts))


@dataclass(frozen=True, eq=False)
class _MarginSums:
    """The sums along one axis that are tried: squared weights summed, and the sum of weights squared; shape (sums,)."""

    squares: Reals
    square: Reals


class FamilyChoice:
    """The tables of a family in one publication, by name, and which of them is best for the names in a question.

    Cost: microseconds to milliseconds for a question; tables are told apart by at most `MOST_COMPARED` of them. Only
    the audits of those that are compared are asked for.
    """

    def __init__(self, domains: Mapping[str, Domain], audit_of: Callable[[str], Audit]) -> None:
        self._domains, self._audit_of = dict(domains), audit_of
        self._laws: dict[str, _TableLaw | None] = {}
        self._sums: dict[tuple[Names, bool], dict[str, _MarginSums]] = {}
        self._variances: dict[tuple[str, Kinds], Reals | None] = {}
        self._compared: dict[tuple[object, ...], bool] = {}

    def best(self, named: str, by: Collection[str], boxed: Collection[str]) -> str:
        """The table that answers a question: the named one, or another that is better for these names.

        Rows are asked for groups of `by`; `boxed` have conditions, or are summed along with weights.
        """
        names = frozenset(by) - frozenset(boxed), frozenset(boxed)
        if not any(names):
            return self.best_of_total
        if not self._has_levels or not self._may_use(named, names):
            return named
        return self._best(named, names, self._smallest(one for one in self._domains if self._may_use(one, names)))

    @cached_property
    def best_of_total(self) -> str:
        """The table that tells the sum of all cells, whichever is named: a period has one total."""
        compared = self._smallest(self._domains)
        return self._best(compared[0], (frozenset(), frozenset()), compared)

    def all_better(self) -> Iterator[tuple[str, list[str], list[str], str]]:
        """Where another table is better: the table, the names of both kinds in order, and the better table."""
        yield from ((table, [], [], self.best_of_total) for table in self._domains if table != self.best_of_total)
        if not self._has_levels:
            return
        holders: dict[Kinds, list[str]] = {}
        for table, domain in self._domains.items():
            for names in filter(any, _choices(domain, self._most_names)):
                holders.setdefault(names, []).append(table)
        for names, tables in holders.items():
            if len(tables) > 1:
                compared = self._smallest(tables)
                for table in tables:
                    best = self._best(table, names, compared)
                    if best != table:
                        yield table, sorted(names[0]), sorted(names[1]), best

    @cached_property
    def _names(self) -> dict[str, Names]:
        return {table: names_of_table(domain) for table, domain in self._domains.items()}

    @cached_property
    def _axes(self) -> dict[str, Axis]:
        """All axes by name; tables of a family that have an axis have the same one."""
        return {axis.name: axis for domain in self._domains.values() for axis in domain.axes}

    @cached_property
    def _has_levels(self) -> bool:
        """Whether some axis of a table is a level in another; else all tables tell every sum the same variance."""
        return any(not self._axes.keys().isdisjoint(_names_of(axis)[1:]) for axis in self._axes.values())

    @cached_property
    def _most_names(self) -> int:
        """How many names of a question are told apart; questions with more are answered by the table they name."""
        sizes = [len(names) for names in self._names.values()]
        every = max(sizes, default=0)
        for most in (every, 2, 1):
            if sum(math.comb(size, number) << number for size in sizes for number in range(most + 1)) <= MOST_CHOICES:
                return most
        return 0

    def _may_use(self, table: str, names: Kinds) -> bool:
        """Whether names are among `_choices` of a table."""
        every, domain = names[0] | names[1], self._domains[table]
        return (
            len(every) <= self._most_names
            and every <= self._names[table]
            and all(len(every & {*_names_of(axis)}) <= MOST_OF_AXIS for axis in domain.axes)
        )

    def _smallest(self, tables: Iterable[str]) -> list[str]:
        """The tables that are compared, in order."""
        return sorted(tables, key=lambda table: (self._domains[table].cells, table))[:MOST_COMPARED]

    def _best(self, named: str, names: Kinds, compared: Sequence[str]) -> str:
        """The last of the tables each of which is the narrowest that is better than the one before."""
        best, noise = named, self._law_of_table(named, names)
        while noise is not None:
            most = max(self._domains[best].cells, MOST_CELLS)
            others = (one for one in compared if one != best and self._domains[one].cells <= most)
            better = [one for one in others if self._is_better(self._law_of_table(one, names), noise)]
            if not better:
                break
            best = min(better, key=lambda one: self._width(one, names))
            noise = self._law_of_table(best, names)
        return best

    def _width(self, table: str, names: Kinds) -> float:
        noise = self._law_of_table(table, names)
        return math.inf if noise is None else float(np.sqrt(noise[1]).sum())

    def _law_of_table(self, table: str, names: Kinds) -> tuple[Fraction, Reals] | None:
        """The scale of a table's draws, and its variance of each sum that is tried."""
        if table not in self._laws:
            self._laws[table] = _TableLaw.of(self._domains[table], self._audit_of(table))
        law = self._laws[table]
        if law is None:
            return None
        if (table, names) not in self._variances:
            self._variances[table, names] = self._variances_of(self._domains[table], law, names)
        variances = self._variances[table, names]
        return None if variances is None else (law.scale, variances)

    def _variances_of(self, domain: Domain, law: _TableLaw, names: Kinds) -> Reals | None:
        """The variance of every combination of the sums that are tried along the axes, shape (combinations,)."""
        used = {axis.name: (names[0] | names[1]) & {*_names_of(axis)} for axis in domain.axes}
        # In an order that is that of all tables, whatever their axes are called.
        tried = sorted((sorted(of_axis), axis) for axis, of_axis in used.items() if of_axis)
        squares: dict[str, Reals] = {}
        square: dict[str, Reals] = {}
        for place, (of_axis, name) in enumerate(tried):
            sums = self._sums_of(frozenset(of_axis), not names[1].isdisjoint(of_axis)).get(name)
            if sums is None:
                return None
            shape = [1] * len(tried)
            shape[place] = -1
            squares[name], square[name] = sums.squares.reshape(shape), sums.square.reshape(shape)
        for axis in domain.axes:
            if axis.name not in squares:  # summed over
                squares[axis.name], square[axis.name] = np.array(float(axis.size)), np.array(float(axis.size) ** 2)
        variance: Any = 0.0
        for coefficient, agreed in law.parts:
            along = (
                squares[axis.name] if same else square[axis.name]
                for axis, same in zip(domain.axes, agreed, strict=True)
            )
            variance = variance + coefficient * math.prod(along)
        return np.asarray(variance, dtype=np.float64).ravel()

    def _sums_of(self, names: Names, are_boxed: bool) -> dict[str, _MarginSums]:
        """The sums that are tried along an axis of which these names are used, for all axes that have them."""
        key = names, are_boxed
        if key not in self._sums:
            axes = [axis for axis in self._axes.values() if names <= {*_names_of(axis)}]
            self._sums[key] = _tried_sums(axes, sorted(names), are_boxed)
        return self._sums[key]

    def _is_better(self, new: tuple[Fraction, Reals] | None, old: tuple[Fraction, Reals]) -> bool:
        if new is None:
            return False
        key = (new[0], new[1].tobytes(), old[0], old[1].tobytes())
        if key not in self._compared:
            self._compared[key] = _is_better(new, old)
        return self._compared[key]


def names_of_table(domain: Domain) -> Names:
    """The axes of a table, and their levels."""
    return frozenset(name for axis in domain.axes for name in _names_of(axis))


def _is_better(new: tuple[Fraction, Reals], old: tuple[Fraction, Reals]) -> bool:
    """Whether one table tells less noise than another for all sums, from scales of draws and variances."""
    if new[1].shape != old[1].shape or (new[1] > old[1] * _BETTER).any():
        return False
    near = np.unique(np.column_stack([new[1], old[1]])[new[1] > _FAR * old[1]], axis=0)
    return all(_half_width(new[0], one) <= _half_width(old[0], two) * _WIDER for one, two in near.tolist())


def _half_width(scale: Fraction, variance: float) -> float:
    """Half the width of an interval; for large scales in proportion, since their exact laws take long."""
    ratio = max(1.0, float(scale) / _LARGE)
    return ratio * noise_law(min(scale, Fraction(_LARGE))).half_width_of_linear(variance / ratio**2)


def _names_of(axis: Axis) -> list[str]:
    """An axis and its levels."""
    return [axis.name, *axis.levels]


def _choices(domain: Domain, most: int) -> Iterator[Kinds]:
    """What a question may name: at most `MOST_OF_AXIS` names of each axis, `most` of all, each of either kind."""
    of_axes = [
        [names for number in range(MOST_OF_AXIS + 1) for names in combinations(_names_of(axis), number)]
        for axis in domain.axes
    ]
    for chosen in product(*of_axes):
        names = [name for of_axis in chosen for name in of_axis]
        if len(names) <= most:
            for number in range(len(names) + 1):
                for boxed in combinations(names, number):
                    yield frozenset(names) - frozenset(boxed), frozenset(boxed)


def _tried_sums(axes: Sequence[Axis], names: Sequence[str], are_boxed: bool) -> dict[str, _MarginSums]:
    """The sums that are tried where some names of an axis are used, for axes that have them, by the axes' names.

    A sum is one of whole groups: of positions that are called the same in all names.
    """
    finest = max(axes, key=lambda axis: axis.size)
    if len(axes) == 1 and finest.name in names:  # no other table has it at another level
        most = float(finest.size)
        sums = _MarginSums(np.array([1.0, most, 1.0]), np.array([1.0, most**2, 0.0]))
        return {finest.name: sums if are_boxed else _MarginSums(sums.squares[:1], sums.square[:1])}
    groups = {axis.name: _group_sizes(axis, names) for axis in axes}
    order = sorted(groups[finest.name], key=lambda group: groups[finest.name][group])
    trial_sums = {}
    for axis, sizes in groups.items():
        if sizes.keys() == groups[finest.name].keys():
            along = np.array([sizes[group] for group in order], dtype=np.float64)
            picked = along[np.unique(np.linspace(0, along.size - 1, _PICKED).round().astype(np.int64))]
            trial_sums[axis] = _sums_of_groups(along, picked) if are_boxed else _MarginSums(picked, picked**2)
    return trial_sums


def _sums_of_groups(sizes: Reals, picked: Reals) -> _MarginSums:
    """Some groups alone, the first and the last ones together, and contrasts of groups, by numbers of positions."""
    many = sizes.size
    few = {*range(2, _FEW + 1), *(_FEW << step for step in range(40)), many // 2, many}
    together = np.array(sorted({n for count in few for n in (count, many - count) if 2 <= n <= many}), dtype=np.int64)
    below = np.concatenate([[0.0], np.cumsum(sizes)])
    sums = np.concatenate([picked, below[together], below[-1] - below[many - together]])
    return _MarginSums(np.concatenate([sums, sizes[[0, -1]]]), np.concatenate([sums**2, np.zeros(2)]))


def _group_sizes(axis: Axis, names: Sequence[str]) -> Mapping[tuple[str | None, ...], int]:
    """How many positions of an axis of categories each group has; that of `other` is called None."""
    assert isinstance(axis, CategoricalAxis)
    texts = [axis.values if name == axis.name else axis.levels[name] for name in names]
    sizes: Counter[tuple[str | None, ...]] = Counter(zip(*texts, strict=True))
    if axis.other:
        sizes[(None,) * len(names)] = 1
    return sizes
