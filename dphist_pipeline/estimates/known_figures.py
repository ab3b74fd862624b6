"""Public figures that a table is known to hold exactly, and what they leave open of every other count in it.

The figures of a release (`invariants` in its audit) are given by all combinations of values of one or more axes, or
levels of axes. In a table of the family the cells split into groups, each of which a sum of figures is about. Along
each axis of the figures these are the groups of its level; or the positions of a coarser axis; or, in a table without
the axis, all of it. So a count in a box is at least the figures of the groups that lie in it as a whole, and at most
those of the groups that it touches. Where both are equal, every table that meets the figures has the same count there,
so it is known, and told without noise.

Every other estimate uses the figures: what the cells of a group lack of its figure is spread over them evenly (`met`),
so parts add up to what is known, in all tables alike. Intervals keep their widths around the moved numbers. They cover
as often as before. Let u select the cells of a box, Q average over each group, and C bound the covariance of a table's
cells, by which intervals are made. The moved number has the error of u - Qu, of variance at most (u - Qu)'C(u - Qu). In
a family C is a sum of products, over the axes, of the identity and of blocks of all ones (`SharedNoise`), and it bounds
every weighted sum of cells, not boxes alone (`level_estimates`, `crossed_levels`). Q is a product of averages along the
axes, each over groups of positions, so each commutes with the identity and with a block of all ones. So C and Q
commute, and that variance is u'Cu - (Qu)'C(Qu), never above u'Cu; in a group of two cells it is half of it.

A cell of a group whose figure is 0 is known to be 0, and told so. Its moved number is noise, and sums of the cells of
that group are 0. Sums across groups keep that noise: a table without the axis of the figures has such sums alone, and
cannot tell it apart. So what is asked as a sum is the same from all tables, and told cells that are added up differ
from it by the noise of cells that are known to be 0 (`leaves_noise_out`).

The figures are public before the release: no number here reads a record, and nothing is spent. A true count lies within
its limits, so an interval that is cut off at them covers it as often as before. It is cut off no farther than at its
own number. Numbers are not cut off, as nowhere: numbers of many small cells would no longer add up.

Figures that count something else than the table (persons, where a person has several rows; rows, where the rows of a
person are bounded) limit nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain, Figures, texts_at

Labels = NDArray[np.int64]


def totals_are_known(audit: Mapping[str, Any]) -> bool:
    """Whether a release has public figures that count what its tables count, by its audit.

    Where every row is a unit of its own, rows, persons and counted rows are the same. Else a table counts persons (its
    units) if one row of each is kept, and never all rows.
    """
    if "invariants" not in audit:
        return False
    if audit["privacy_unit"] == "row":
        return True
    return bool(audit["invariants"]["counts"] == "persons" and audit["max_rows_per_unit"] == 1)


@dataclass(frozen=True, eq=False)
class KnownFigures:
    """The groups of the cells of a table that have public figures; every cell lies in one of them.

    Attributes:
        labels: for each axis the label of every position. Cells with the same labels are a group.
        figures: the figure of each group, int64, by the labels along the axes.
    """

    labels: tuple[Labels, ...]
    figures: NDArray[np.int64]

    @classmethod
    def of(cls, figures: Figures, domain: Domain, whole: Domain) -> KnownFigures:
        """What figures tell of a table.

        Args:
            domain: the axes of the table.
            whole: the finest axes of its family, among them one that has the level of the figures.

        Raises:
            KeyError: no axis has that level.
        """
        labels = [np.zeros(size, dtype=np.int64) for size in domain.shape]
        rows, sides = figures.rows, []
        for place, (level, values) in enumerate(zip(figures.levels, figures.values, strict=True)):
            finest = next((axis for axis in whole.axes if texts_at(axis, level)), None)
            if finest is None:
                raise KeyError(level)
            names = (finest.name, *finest.levels)
            side = next((number for number, axis in enumerate(domain.axes) if axis.name in names), None)
            sides.append(side)
            if side is None:
                rows = rows.sum(axis=place, keepdims=True)
                continue
            axis = domain.axes[side]
            # Values and positions that share a part of the finest axis belong together.
            group = _connected(list(zip(texts_at(finest, level), texts_at(finest, axis.name), strict=True)))
            labels[side] = np.array([group["position", text] for text in texts_at(axis, axis.name)], dtype=np.int64)
            along = np.array([group["value", value] for value in values], dtype=np.int64)
            parts = np.moveaxis(rows, place, 0)
            sums = np.zeros((len(set(group.values())), *parts.shape[1:]), dtype=np.int64)
            np.add.at(sums, along, parts)
            rows = np.moveaxis(sums, 0, place)
        # In the order of the axes of the table; those without figures have one label.
        order = sorted(range(len(sides)), key=lambda place: (sides[place] is None, sides[place]))
        shape = [int(of_axis.max()) + 1 for of_axis in labels]
        return cls(tuple(labels), rows.transpose(order).reshape(shape))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many cells each group has, by the labels along the axes."""
        along = [
            np.bincount(labels, minlength=size) for labels, size in zip(self.labels, self.figures.shape, strict=True)
        ]
        return reduce(np.multiply, np.ix_(*along)).astype(np.int64)

    @property
    def _known_groups(self) -> NDArray[np.bool_]:
        """Marks the groups whose cells are all known: groups of one cell, and groups without rows."""
        return np.asarray((self.sizes == 1) | (self.figures == 0))

    @property
    def are_known(self) -> NDArray[np.bool_]:
        """Which cells are known, shape of the domain."""
        return np.asarray(self._known_groups.ravel()[self.groups])

    @property
    def tell_all(self) -> bool:
        """Whether every cell is known."""
        return bool(self._known_groups.all())

    @property
    def leaves_noise_out(self) -> bool:
        """Whether cells are told as 0 whose noise stays in sums across groups."""
        return bool(((self.sizes > 1) & (self.figures == 0)).any())

    @property
    def groups(self) -> NDArray[np.int64]:
        """The number of the group of every cell, shape of the domain; groups are numbered as `figures` in C order."""
        strides = [int(np.prod(self.figures.shape[number + 1 :])) for number in range(self.figures.ndim)]
        along = [labels * stride for labels, stride in zip(self.labels, strides, strict=True)]
        return reduce(np.add, np.ix_(*along)).astype(np.int64)

    def met(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimates whose groups sum to their figures: what a group lacks is spread evenly over its cells.

        Args:
            values: one for each cell, shape of the domain.
        """
        groups = self.groups.ravel()
        lacking = self.figures.ravel() - np.bincount(groups, values.ravel(), self.figures.size)
        spread: NDArray[np.float64] = values + (lacking / self.sizes.ravel())[groups].reshape(values.shape)
        return spread

    def limits(self, cells: Sequence[NDArray[np.int64]]) -> tuple[int, int]:
        """The least and the largest number of rows that the cells at all combinations of positions can hold."""
        least, most = self.limits_of_parts([[positions] for positions in cells])
        return int(least.item()), int(most.item())

    def limits_of_parts(self, parts: Sequence[Sequence[NDArray[np.int64]]]) -> tuple[Labels, Labels]:
        """The limits for every combination of parts of the axes.

        Args:
            parts: for each axis, the positions of each part.

        Returns:
            The least and the largest numbers of rows, shape (parts of axis 0, parts of axis 1, …) each.
        """
        least, most = self.figures, self.figures
        for labels, size, of_axis in zip(self.labels, self.figures.shape, parts, strict=True):
            held = np.array([np.bincount(labels[positions], minlength=size) for positions in of_axis])
            # The first side is summed over, and the parts become the last one.
            least = np.tensordot(
                least, (held == np.bincount(labels, minlength=size)).T.astype(np.int64), axes=([0], [0])
            )
            most = np.tensordot(most, (held > 0).T.astype(np.int64), axes=([0], [0]))
        return least, most


def known_figures(audit: Mapping[str, Any], domain: Domain, whole: Domain) -> KnownFigures | None:
    """What the figures in an audit tell of a table; None without figures, or where they count something else.

    `whole`: see `KnownFigures.of`.
    """
    if not totals_are_known(audit):
        return None
    return KnownFigures.of(figures_in(audit["invariants"]), domain, whole)


def figures_as_facts(figures: Figures, counts: str) -> dict[str, Any]:
    """`invariants` of an audit: figures of `persons` or `rows` by value, or by one value within another."""
    several = len(figures.levels) > 1
    by: dict[str, Any] = {"levels": list(figures.levels)} if several else {"level": figures.levels[0]}
    return {**by, "counts": counts, "figures": _nested(figures.values, figures.rows)}


def figures_in(facts: Mapping[str, Any]) -> Figures:
    """The figures in `invariants` of an audit."""
    levels = _levels(facts)
    values, cells = [], [facts["figures"]]
    for _ in levels:
        values.append(tuple(cells[0]))
        cells = [cell[value] for cell in cells for value in values[-1]]
    return Figures(levels, tuple(values), np.array(cells, dtype=np.int64).reshape([len(texts) for texts in values]))


def levels_in_words(facts: Mapping[str, Any]) -> str:
    """What the figures in `invariants` of an audit are given by."""
    return " × ".join(_levels(facts))


def _levels(facts: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(facts["levels"]) if "levels" in facts else (facts["level"],)


def _nested(values: Sequence[Sequence[str]], rows: NDArray[np.int64]) -> dict[str, Any]:
    first, *others = values
    along = zip(first, rows, strict=True)
    return {value: _nested(others, part) if others else int(part) for value, part in along}


def limited_interval(number: float, ends: tuple[float, float], least: float, most: float) -> tuple[float, float]:
    """The interval of a number, cut off at two limits, as far as it holds its number and reaches the limits."""
    lower, upper = (min(max(end, least), most) for end in ends)
    return min(number, lower), max(number, upper)


def _connected(pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Numbers of the groups of values and positions that pairs connect, in order of first mention."""
    above: dict[tuple[str, str], tuple[str, str]] = {}

    def root(one: tuple[str, str]) -> tuple[str, str]:
        while above.setdefault(one, one) != one:
            one = above[one]
        return one

    for value, position in pairs:
        above[root(("position", position))] = root(("value", value))
    numbers: dict[tuple[str, str], int] = {}
    return {one: numbers.setdefault(root(one), len(numbers)) for one in list(above)}
