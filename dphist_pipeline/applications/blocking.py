"""Blocks for record linkage: boxes of a grid that two owners' releases give, as rules for Splink on DuckDB.

Only pairs of records in the same block are compared. Blocks are made from what both owners have published, so they cost
nothing more; whoever is in both registers has spent the epsilon of both releases. Candidate pairs and links come from
records: they are confidential.

Boxes are cut one after another: always the box with the most expected pairs, where its two halves have the fewest
pairs together. Several partitions by other axes are one blocking: a pair is compared if one of them holds it together.

The other way is that of Xiao et al. (DPCube, 2012): the blocks are the groups of cells that a release has published.
There one owner's partition decides alone, whatever the other's counts are: the cells of a block have alike counts, not
few pairs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.applications.whole_release import WholeRelease, application_refused
from dphist_pipeline.base.domain import Axis, BandedAxis, BinnedAxis, ByText, CalendarAxis, CategoricalAxis, day_of
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.base.tidying import tidied_sql
from dphist_pipeline.errors import did_you_mean

PAIRS_A_RECORD = 100
LEAST = 20
NOTE = (
    "Candidate pairs and links come from records: they are confidential. Whoever is in both registers has spent the "
    "epsilon of both releases."
)
MOST_BLOCKS = 5_000
MOST_DEPTH = 100  # DuckDB refuses expressions that nest 1,000 deep.
MOST_CELLS = 100_000  # a cell is an entry of a list in the query
Wholes = NDArray[np.int64]


@dataclass(frozen=True)
class BoxSplit:
    """One cut of a box.

    Attributes:
        at: first position of the upper half.
        lower: the cut of the lower half, or the number of its block as -1 - block.
        upper: the same of the upper half.
    """

    axis: int
    at: int
    lower: int
    upper: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """A partition of the cells of some axes into boxes.

    Attributes:
        cuts: a cut comes before the cuts of its halves; none for one block.
        of_cells: number of the block of each cell, from 0, shape of the axes.
        counts: expected records of each owner in each block, shape (2, blocks).
    """

    axes: tuple[Axis, ...]
    cuts: tuple[BoxSplit, ...]
    of_cells: Wholes
    counts: Wholes

    @property
    def number(self) -> int:
        """How many blocks there are."""
        return int(self.counts.shape[1])

    @property
    def expected_pairs(self) -> float:
        """How many pairs of records to expect in the same block."""
        return float(np.prod(self.counts, axis=0, dtype=np.float64).sum())

    @property
    def expected_reduction(self) -> float:
        """The reduction ratio to expect; see `reduction_ratio`."""
        return reduction_ratio(*self.counts)

    def block_sql(self, positions: Sequence[str]) -> str:
        """The number of the block, for DuckDB, from columns of positions along the axes; see `position_sql`."""
        texts: dict[int, str] = {-1 - block: str(block) for block in range(self.number)}
        for number, cut in reversed(list(enumerate(self.cuts))):
            lower = f"{positions[cut.axis]} < {cut.at}"
            texts[number] = f"CASE WHEN {lower} THEN {texts[cut.lower]} ELSE {texts[cut.upper]} END"
        return texts[0 if self.cuts else -1]


@dataclass(frozen=True, eq=False, repr=False)
class Blocking:
    """Partitions of two registers, as columns of both and as rules.

    Attributes:
        partitions: by the name of the column that each register gets: `block_1`, `block_2`, …
        releases: the names and periods of both releases.
        epsilon: of both together, for whoever is in both.
    """

    partitions: Mapping[str, Blocks]
    releases: tuple[str, str]
    epsilon: Fraction

    def __repr__(self) -> str:
        parts = [f"{part.number:,} blocks save {part.expected_reduction:.2%}" for part in self.partitions.values()]
        return f"<Blocking of {' and '.join(self.releases)}: {'; '.join(parts)} of the pairs>"

    @property
    def rules(self) -> list[str]:
        """The blocking rules, as Splink's settings take them; registers need the columns of `register_sql`."""
        return [f"l.{identifier(name)} = r.{identifier(name)}" for name in self.partitions]

    def register_sql(self, register: str) -> str:
        """The query for DuckDB that adds the blocks to a register with the axes as columns; 10 s for 10⁶ records."""
        axes = {axis.name: axis for part in self.partitions.values() for axis in part.axes}
        places = {name: f"_position_{number}" for number, name in enumerate(axes, 1)}
        inner = ", ".join(f"{position_sql(axis)} AS {places[name]}" for name, axis in axes.items())
        columns = ", ".join(
            f"{part.block_sql([places[axis.name] for axis in part.axes])} AS {identifier(name)}"
            for name, part in self.partitions.items()
        )
        return f"SELECT * EXCLUDE ({', '.join(places.values())}), {columns} FROM (SELECT *, {inner} FROM {register})"

    def facts(self) -> dict[str, Any]:
        """Everything that both owners need, as JSON values."""
        return {
            "releases": list(self.releases),
            "epsilon_of_both": str(self.epsilon),
            "note": NOTE,
            "splink_blocking_rules": self.rules,
            "register_sql": self.register_sql("register"),
            "partitions": [
                {
                    "column": name,
                    "axes": [axis.name for axis in part.axes],
                    "blocks": part.number,
                    "expected_pairs": round(part.expected_pairs),
                    "expected_reduction_ratio": part.expected_reduction,
                }
                for name, part in self.partitions.items()
            ],
        }


def reduction_ratio(ones: NDArray[Any], others: NDArray[Any]) -> float:
    """The share of all pairs that blocks save: 1 - Σ nᵢ·mᵢ / (n·m) (Xiao et al. 2012, equation 36).

    It is 0 where an owner has no records.

    Args:
        ones, others: records of either owner in each block, any shape, the same for both.
    """
    n, m = (side.astype(np.float64) for side in (ones, others))
    return 1.0 - float((n * m).sum() / (n.sum() * m.sum())) if n.sum() and m.sum() else 0.0


def pairs_completeness(ones: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """The share of true matches that lie in the same block.

    Args:
        ones, others: block of the first and of the second record of each true match, shape (matches,) each.
    """
    return float((ones == others).mean()) if ones.size else math.nan


def blocking(
    one: WholeRelease, other: WholeRelease, by: Sequence[Sequence[str]], pairs: int | None = None, least: int = LEAST
) -> Blocking:
    """Partitions of two registers, each by some axes; see `blocks`."""
    if isinstance(by, str) or not by:
        raise application_refused("by: takes a list of lists of axes, one for each partition")
    partitions = {f"block_{n}": blocks(one, other, axes, pairs, least) for n, axes in enumerate(by, 1)}
    epsilon = Fraction(one.audit["epsilon"]) + Fraction(other.audit["epsilon"])
    return Blocking(partitions, (one.called, other.called), epsilon)


def blocks(
    one: WholeRelease, other: WholeRelease, by: Sequence[str], pairs: int | None = None, least: int = LEAST
) -> Blocks:
    """Cuts the grid of two releases into boxes.

    Args:
        other: of the other owner's, with the same bins or categories on these axes.
        pairs: cut until no more pairs are expected in the same blocks; by default 100 for each record of the larger
            register.
        least: expected records of both owners together that each box keeps; small boxes follow the noise.

    Returns:
        At most 5,000 blocks. O(cells · axes · log blocks) when cuts halve.

    Raises:
        Refused: an axis is unknown or differs between the releases, or a number is out of its range.
    """
    axes = shared_axes(one, other, by)
    tables = [sums_along_axes(whole, axes) for whole in (one, other)]
    pairs_wanted = PAIRS_A_RECORD * max(one.total, other.total) if pairs is None else pairs
    for option, value in (("pairs", pairs_wanted), ("least", least)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise application_refused(f"{option}: takes a whole number from 0, not {value!r:.60}")
    cuts, boxes = _boxes_of_cuts(tables[0], tables[1], pairs_wanted, least)
    of_cells = np.empty(tables[0].shape, dtype=np.int64)
    for number, box in enumerate(boxes):
        of_cells[box] = number
    counts = np.array([[table[box].sum() for box in boxes] for table in tables], dtype=np.int64)
    return Blocks(axes, cuts, of_cells, counts)


def shared_axes(one: WholeRelease, other: WholeRelease, by: Sequence[str]) -> tuple[Axis, ...]:
    """The axes of these names, which both releases must have with the same cells.

    Raises:
        Refused: an axis is unknown or differs between the releases.
    """
    axis_of = {axis.name: axis for axis in one.domain.axes}
    theirs = {axis.name: axis for axis in other.domain.axes}
    if isinstance(by, str) or not by or len(set(by)) < len(by):
        raise application_refused("by: takes a list of axes, each once")
    for name in by:
        for whole, axes in ((one, axis_of), (other, theirs)):
            if name not in axes:
                raise application_refused(f"{whole.called} has no axis {name!r:.60}. {did_you_mean(name, axes)}")
        if _grid(axis_of[name]) != _grid(theirs[name]):
            raise application_refused(
                f"axis '{name}' has other bins or categories in {other.called} than in {one.called}: both owners must "
                "declare the same ones"
            )
        if _reading(axis_of[name]) != _reading(theirs[name]):
            raise application_refused(
                f"axis '{name}' counts other texts in {other.called} than in {one.called}, so no rule can read both "
                "registers: both owners must declare the same `bands`, `spellings` and `tidy`"
            )
    return tuple(axis_of[name] for name in by)


def _grid(axis: Axis) -> Axis:
    """An axis without what does not change its cells."""
    if isinstance(axis, CategoricalAxis):
        return replace(axis, column="", levels={}, labels=())
    return replace(axis, column="")


def _reading(axis: Axis) -> tuple[object, ...]:
    """How texts are read; nothing for numbers and days."""
    return (axis.texts, axis.tidy) if isinstance(axis, ByText) else ()


def sums_along_axes(whole: WholeRelease, axes: tuple[Axis, ...]) -> Wholes:
    """Whole counts summed over all other axes, in the order of these."""
    names = [axis.name for axis in whole.domain.axes]
    positions = [names.index(axis.name) for axis in axes]
    counts = whole.counts.sum(axis=tuple(number for number in range(len(names)) if number not in positions))
    return np.transpose(counts, [sorted(positions).index(number) for number in positions])


Box = tuple[slice, ...]


def _boxes_of_cuts(ones: Wholes, others: Wholes, pairs: int, least: int) -> tuple[tuple[BoxSplit, ...], list[Box]]:
    """The cuts, and the boxes in the order of their numbers."""
    whole = tuple(slice(0, side) for side in ones.shape)
    cuts: list[BoxSplit] = []
    # A box waits with its pairs, its depth, and where its number belongs: (cut, half).
    waiting, leaves = list[Any](), list[tuple[Box, tuple[int, str] | None]]()
    expected, ticket = float(ones.sum()) * float(others.sum()), 0
    heapq.heappush(waiting, (-expected, ticket, whole, 0, None))
    while waiting:
        minus_pairs, _, box, depth, place = heapq.heappop(waiting)
        best = None
        if expected > pairs and depth < MOST_DEPTH and len(waiting) + len(leaves) + 2 <= MOST_BLOCKS:
            best = _best_cut(ones[box], others[box], least)
        if best is None or best[0] >= -minus_pairs:
            leaves.append((box, place))
            continue
        pairs_left, axis, at = best
        low = box[axis].start
        _point(cuts, place, len(cuts))
        cuts.append(BoxSplit(axis, low + at, 0, 0))
        expected += minus_pairs + pairs_left
        for half, ends in (("lower", slice(low, low + at)), ("upper", slice(low + at, box[axis].stop))):
            part = (*box[:axis], ends, *box[axis + 1 :])
            ticket += 1
            share = float(ones[part].sum()) * float(others[part].sum())
            heapq.heappush(waiting, (-share, ticket, part, depth + 1, (len(cuts) - 1, half)))
    for number, (_, place) in enumerate(leaves):
        _point(cuts, place, -1 - number)
    return tuple(cuts), [box for box, _ in leaves]


def _point(cuts: list[BoxSplit], place: tuple[int, str] | None, target: int) -> None:
    """Writes into the cut above a box what becomes of it."""
    if place is not None:
        number, half = place
        cuts[number] = replace(cuts[number], **{half: target})


def _best_cut(ones: Wholes, others: Wholes, least: int) -> tuple[float, int, int] | None:
    """(pairs that are left, axis, position) of the cut that leaves the fewest pairs; None if none is allowed."""
    best: tuple[float, int, int] | None = None
    total, other_total = float(ones.sum()), float(others.sum())
    for axis in range(ones.ndim):
        over = tuple(number for number in range(ones.ndim) if number != axis)
        n, m = (np.cumsum(table.sum(axis=over), dtype=np.float64)[:-1] for table in (ones, others))
        pairs_left = n * m + (total - n) * (other_total - m)
        allowed = (n + m >= least) & (total + other_total - n - m >= least)
        pairs_left = np.where(allowed, pairs_left, np.inf)
        if pairs_left.size and pairs_left.min() < (best[0] if best else np.inf):
            best = (float(pairs_left.min()), axis, int(pairs_left.argmin()) + 1)
    return best


def position_sql(axis: Axis) -> str:
    """The position of a record along an axis as an expression for DuckDB.

    A number outside of all bins counts to the nearest one, and what is null, not readable or not declared to the last
    position: both owners' records by the same rule. Bands are read as texts of the source, else as numbers. The column
    has the name of the axis.
    """
    column, last = identifier(axis.name), axis.size - 1
    if isinstance(axis, CategoricalAxis):
        return f"coalesce({_text_position(axis, column)}, {last})"
    assert isinstance(axis, BinnedAxis), "an amount has no whole counts"
    days = isinstance(axis, CalendarAxis)
    value = f"TRY_CAST({column} AS {'DATE' if days else 'DOUBLE'})"
    ends = [float(end) for end in axis.bounds[1][: axis.size - axis.other]]
    edges = [f"DATE {literal(day_of(end).isoformat())}" if days else repr(end) for end in ends[:-1]]
    search = _search(f"{value} {'<' if axis.closed == 'left' else '<='}", edges, 0)
    by_number = f"CASE WHEN {value} IS NULL THEN {last} ELSE {search} END"
    return f"coalesce({_text_position(axis, column)}, {by_number})" if isinstance(axis, BandedAxis) else by_number


def _text_position(axis: ByText, column: str) -> str:
    """The position of a text after `tidy`; null for one that is counted nowhere."""
    texts = axis.texts
    names = ", ".join(map(literal, texts))
    code = f"enum_code(TRY_CAST({tidied_sql(f'CAST({column} AS VARCHAR)', axis.tidy)} AS ENUM ({names})))"
    places = list(texts.values())
    return code if places == list(range(len(places))) else f"list_extract({places}, {code} + 1)"


def _search(is_below: str, ends: Sequence[str], first: int) -> str:
    """The number of the bin that holds a value, by halves; `ends` are those between the bins, from number `first`."""
    if not ends:
        return str(first)
    middle = len(ends) // 2
    lower, upper = _search(is_below, ends[:middle], first), _search(is_below, ends[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {is_below} {ends[middle]} THEN {lower} ELSE {upper} END"


@dataclass(frozen=True, eq=False, repr=False)
class GroupBlocks(Blocks):
    """A partition by published groups: any cells may lie together. It has no cuts."""

    def block_sql(self, positions: Sequence[str]) -> str:
        """The number of the block as an expression for DuckDB."""
        steps = np.array(self.of_cells.strides) // self.of_cells.itemsize
        cell = " + ".join(f"{column} * {step}" for column, step in zip(positions, steps, strict=True))
        return f"[{', '.join(map(str, self.of_cells.ravel().tolist()))}][{cell} + 1]"


def published_groups(folder: Path) -> NDArray[np.int64] | None:
    """The group of every cell in declared order, shape (cells,); None where a publication has none."""
    column = pq.ParquetFile(folder / "histogram.parquet").read(["group_id"])["group_id"]
    return None if column.null_count else column.to_numpy()


def group_blocking(one: WholeRelease, other: WholeRelease, groups: NDArray[np.int64] | None) -> Blocking:
    """One partition of two registers, by the groups that the first release has published.

    Args:
        groups: of the first release, as `published_groups` reads them.

    Raises:
        Refused: there are no groups, the cells are too many for a query, or the grids differ.
    """
    if groups is None:
        raise application_refused(
            f"{one.called} has published no groups of cells: its mechanism, {one.audit['mechanism']}, makes none. Cut "
            "blocks with --by, or publish with a mechanism that has groups, such as dpcube"
        )
    if one.counts.size > MOST_CELLS:
        raise application_refused(
            f"{one.called} has {one.counts.size:,} cells; published groups serve as blocks up to {MOST_CELLS:,}. Cut "
            "blocks with --by"
        )
    names = [axis.name for axis in one.domain.axes]
    axes = shared_axes(one, other, names)
    of_cells = np.unique(groups, return_inverse=True)[1].reshape(one.domain.shape).astype(np.int64)
    counts = [np.bincount(of_cells.ravel(), sums_along_axes(whole, axes).ravel()) for whole in (one, other)]
    group_blocks = GroupBlocks(axes, (), of_cells, np.array(counts, dtype=np.int64))
    epsilon = Fraction(one.audit["epsilon"]) + Fraction(other.audit["epsilon"])
    return Blocking({"block_1": group_blocks}, (one.called, other.called), epsilon)
