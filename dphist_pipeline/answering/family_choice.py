"""Which table of a family answers a question with the least noise: a rule for Python and for the catalogue's macros.

All tables of a family agree on every sum. Where axes are used at several levels, what is told about the noise differs:
a table of states mostly knows states better than one of counties does. The rule looks at the axes and levels that a
question names, never at the values of a box, so the catalogue can hold its results.

A table is replaced by one that is better for these names: whose interval is narrower for every sum of the combinations
that is tried. Tried are single groups of a level (small and large), few and many groups together, and contrasts of two.
Both tables tell a covariance that is a sum of terms, each for the cells that agree on some axes, so the variance of a sum
needs only, for every axis, the sum of squared weights and the squared sum of weights. Being better is transitive, and the
narrowest of the better tables is taken, so a table that was chosen is not replaced again.
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

from dphist_pipeline.answering.intervals import half_width_of_linear
from dphist_pipeline.domain import Axis, CategoricalAxis, Domain

Audit = Mapping[str, Any]
Reals = NDArray[np.float64]
Names = frozenset[str]

MOST_COMPARED = 16  # tables, the smallest that have all names
MOST_CELLS = 1 << 20  # of a table that answers in the place of a smaller one
MOST_CHOICES = 512  # of names that a question may use of a table; one with more always answers itself
MOST_OF_AXIS = 2  # names that a question may use of one axis
_BETTER = 1 - 1e-6  # of the variance; sums that have the same one differ by rounding errors
_FAR = 0.5  # of the variance: with less, the interval is narrower whatever the scale of a draw
_LARGE = 64  # scale of a draw above which rounding to whole numbers does not matter
_PICKED = 6  # single groups of a level that are tried


@dataclass(frozen=True)
class _Law:
    """What a table tells of its noise.

    Attributes:
        scale: of a draw.
        parts: covariances of two cells that agree on some axes, with True for each of these axes.
    """

    scale: Fraction
    parts: tuple[tuple[float, tuple[bool, ...]], ...]

    @classmethod
    def of(cls, domain: Domain, audit: Audit) -> _Law | None:
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
class _Sums:
    """The sums along one axis that are tried.

    Attributes:
        squares: the sum of the squared weights of positions, shape (sums,).
        square: the square of the sum of the weights, shape (sums,).
    """

    squares: Reals
    square: Reals


class FamilyChoice:
    """The tables of a family in one publication, and which of them is best for the names in a question.

    Cost: microseconds to milliseconds for a question; tables are told apart by at most `MOST_COMPARED` of them.

    Args:
        domains: of the tables, by their names.
        audit_of: gives the audit of a table; asked for those that are compared alone.
    """

    def __init__(self, domains: Mapping[str, Domain], audit_of: Callable[[str], Audit]) -> None:
        self._domains, self._audit_of = dict(domains), audit_of
        self._laws: dict[str, _Law | None] = {}
        self._sums: dict[Names, dict[str, _Sums]] = {}
        self._variances: dict[tuple[str, Names], Reals | None] = {}
        self._compared: dict[tuple[object, ...], bool] = {}

    def best(self, named: str, names: Collection[str]) -> str:
        """The table that answers a question: the named one, or another that is better for these names.

        Args:
            named: the name of a table.
            names: the axes and levels that the question uses.
        """
        wanted = frozenset(names)
        if not self._has_levels or not self._may_use(named, wanted):
            return named
        return self._best(named, wanted, self._smallest(table for table in self._domains if self._may_use(table, wanted)))

    def all_better(self) -> Iterator[tuple[str, list[str], str]]:
        """Where another table is better: the table, the names in order, and the better table."""
        if not self._has_levels:
            return
        holders: dict[Names, list[str]] = {}
        for table, domain in self._domains.items():
            for names in _choices(domain):
                holders.setdefault(names, []).append(table)
        for names, tables in holders.items():
            if len(tables) > 1:
                compared = self._smallest(tables)
                for table in tables:
                    best = self._best(table, names, compared)
                    if best != table:
                        yield table, sorted(names), best

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

    def _may_use(self, table: str, names: Names) -> bool:
        """Whether names are among `_choices` of a table."""
        domain = self._domains[table]
        return (
            names <= self._names[table]
            and all(len(names & {*_names_of(axis)}) <= MOST_OF_AXIS for axis in domain.axes)
            and _number_of_choices(domain) <= MOST_CHOICES
        )

    def _smallest(self, tables: Iterable[str]) -> list[str]:
        """The tables that are compared, in order."""
        return sorted(tables, key=lambda table: (self._domains[table].cells, table))[:MOST_COMPARED]

    def _best(self, named: str, names: Names, compared: Sequence[str]) -> str:
        told = self._told(named, names)
        if told is None:
            return named
        most = max(self._domains[named].cells, MOST_CELLS)
        found, least = named, math.inf
        for table in compared:
            if table == named or self._domains[table].cells > most:
                continue
            other = self._told(table, names)
            if other is not None and self._is_better(other, told):
                width = float(np.sqrt(other[1]).sum())
                if width < least:
                    found, least = table, width
        return found

    def _told(self, table: str, names: Names) -> tuple[Fraction, Reals] | None:
        """The scale of a table's draws, and its variance of each sum that is tried."""
        if table not in self._laws:
            self._laws[table] = _Law.of(self._domains[table], self._audit_of(table))
        law = self._laws[table]
        if law is None:
            return None
        if (table, names) not in self._variances:
            self._variances[table, names] = self._variances_of(self._domains[table], law, names)
        variances = self._variances[table, names]
        return None if variances is None else (law.scale, variances)

    def _variances_of(self, domain: Domain, law: _Law, names: Names) -> Reals | None:
        """The variance of every combination of the sums that are tried along the axes, shape (combinations,)."""
        used = {axis.name: names & {*_names_of(axis)} for axis in domain.axes}
        # In an order that is that of all tables, whatever their axes are called.
        tried = sorted((sorted(of_axis), axis) for axis, of_axis in used.items() if of_axis)
        squares, square = {}, {}
        for place, (of_axis, name) in enumerate(tried):
            sums = self._sums_of(frozenset(of_axis)).get(name)
            if sums is None:
                return None
            shape = [1] * len(tried)
            shape[place] = -1
            squares[name], square[name] = sums.squares.reshape(shape), sums.square.reshape(shape)
        for axis in domain.axes:
            if axis.name not in squares:  # summed over
                squares[axis.name], square[axis.name] = np.float64(axis.size), np.float64(axis.size) ** 2
        found: Any = 0.0
        for coefficient, agreed in law.parts:
            along = (squares[axis.name] if same else square[axis.name] for axis, same in zip(domain.axes, agreed, strict=True))
            found = found + coefficient * math.prod(along)
        return np.asarray(found, dtype=np.float64).ravel()

    def _sums_of(self, names: Names) -> dict[str, _Sums]:
        """The sums that are tried along an axis of which these names are used, for all axes that have them."""
        if names not in self._sums:
            axes = [axis for axis in self._axes.values() if names <= {*_names_of(axis)}]
            self._sums[names] = _tried_sums(axes, sorted(names))
        return self._sums[names]

    def _is_better(self, new: tuple[Fraction, Reals], old: tuple[Fraction, Reals]) -> bool:
        key = (new[0], new[1].tobytes(), old[0], old[1].tobytes())
        if key not in self._compared:
            self._compared[key] = _is_better(new, old)
        return self._compared[key]


def names_of_table(domain: Domain) -> Names:
    """The axes of a table, and their levels.

    Args:
        domain: of the table.
    """
    return frozenset(name for axis in domain.axes for name in _names_of(axis))


def _is_better(new: tuple[Fraction, Reals], old: tuple[Fraction, Reals]) -> bool:
    """Whether all intervals of one table are narrower than those of another, from scales of draws and variances."""
    if new[1].shape != old[1].shape or (new[1] > old[1] * _BETTER).any():
        return False
    near = np.unique(np.column_stack([new[1], old[1]])[new[1] > _FAR * old[1]], axis=0)
    return all(_half_width(new[0], one) <= _half_width(old[0], two) for one, two in near.tolist())


def _half_width(scale: Fraction, variance: float) -> float:
    """Half the width of an interval; for large scales in proportion, since their exact laws take long."""
    ratio = max(1.0, float(scale) / _LARGE)
    return ratio * half_width_of_linear(min(scale, Fraction(_LARGE)), variance / ratio**2)


def _names_of(axis: Axis) -> list[str]:
    """An axis and its levels."""
    return [axis.name, *(axis.levels if isinstance(axis, CategoricalAxis) else ())]


def _number_of_choices(domain: Domain) -> int:
    """How many sets of names a question may use, with at most `MOST_OF_AXIS` of each axis."""
    return math.prod(
        sum(math.comb(len(_names_of(axis)), number) for number in range(MOST_OF_AXIS + 1)) for axis in domain.axes
    )


def _choices(domain: Domain) -> Iterator[Names]:
    """The sets of names that a question may use; none if there are more than `MOST_CHOICES`."""
    if _number_of_choices(domain) > MOST_CHOICES:
        return
    of_axes = (
        [names for number in range(MOST_OF_AXIS + 1) for names in combinations(_names_of(axis), number)]
        for axis in domain.axes
    )
    for chosen in product(*of_axes):
        yield frozenset(name for names in chosen for name in names)


def _tried_sums(axes: Sequence[Axis], names: Sequence[str]) -> dict[str, _Sums]:
    """The sums that are tried where some names of an axis are used, for axes that have them, by the axes' names.

    A sum is one of whole groups: of positions that are called the same in all names.
    """
    finest = max(axes, key=lambda axis: axis.size)
    if len(axes) == 1 and finest.name in names:  # no other table has it at another level
        most = float(finest.size)
        return {finest.name: _Sums(np.array([1.0, most, 1.0]), np.array([1.0, most**2, 0.0]))}
    groups = {axis.name: _group_sizes(axis, names) for axis in axes}
    order = sorted(groups[finest.name], key=lambda group: groups[finest.name][group])
    found = {}
    for axis, sizes in groups.items():
        if sizes.keys() == groups[finest.name].keys():
            along = np.array([sizes[group] for group in order], dtype=np.float64)
            found[axis] = _sums_of_groups(along)
    return found


def _sums_of_groups(sizes: Reals) -> _Sums:
    """Some groups alone, the first and the last ones together, and contrasts of groups, by numbers of positions."""
    many = sizes.size
    picked = np.unique(np.linspace(0, many - 1, _PICKED).round().astype(np.int64))
    counts = {2 << step for step in range(0, 40, 2)} | {many // 2, many - 1, many}
    together = np.array(sorted(count for count in counts if 2 <= count <= many), dtype=np.int64)
    below = np.concatenate([[0.0], np.cumsum(sizes)])
    sums = np.concatenate([sizes[picked], below[together], below[-1] - below[many - together]])
    contrasts = sizes[[0, -1]]
    return _Sums(np.concatenate([sums, contrasts]), np.concatenate([sums**2, np.zeros(2)]))


def _group_sizes(axis: Axis, names: Sequence[str]) -> Mapping[tuple[str | None, ...], int]:
    """How many positions of an axis of categories each group has; that of `other` is called None."""
    assert isinstance(axis, CategoricalAxis)
    texts = [axis.values if name == axis.name else axis.levels[name] for name in names]
    found: Counter[tuple[str | None, ...]] = Counter(zip(*texts, strict=True))
    if axis.other:
        found[(None,) * len(names)] = 1
    return found
