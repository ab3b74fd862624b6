"""Blocks for record linkage as Xiao et al. (DPCube, 2012) have them: the groups of cells that a release has published.

The other way, in `blocking`, cuts a grid of its own from both owners' whole counts. Here one owner's partition decides
alone, whatever the other's counts are: the cells of a block have alike counts, not few pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.applications.blocking import Blocking, Blocks, shared_axes, summed
from dphist_pipeline.applications.whole_release import WholeRelease, application_refused

MOST_CELLS = 100_000  # a cell is an entry of a list in the query


@dataclass(frozen=True, eq=False, repr=False)
class GroupBlocks(Blocks):
    """A partition by published groups: any cells may lie together. It has no cuts."""

    def block_sql(self, positions: Sequence[str]) -> str:
        """The number of the block as an expression for DuckDB.

        Args:
            positions: columns with the positions of a record along the axes; see `position_sql`.
        """
        steps = np.array(self.of_cells.strides) // self.of_cells.itemsize
        cell = " + ".join(f"{column} * {step}" for column, step in zip(positions, steps, strict=True))
        return f"[{', '.join(map(str, self.of_cells.ravel().tolist()))}][{cell} + 1]"


def published_groups(folder: Path) -> NDArray[np.int64] | None:
    """The group of every cell in declared order, shape (cells,); None where a publication has none.

    Args:
        folder: of one publication.
    """
    column = pq.ParquetFile(folder / "histogram.parquet").read(["group_id"])["group_id"]
    return None if column.null_count else column.to_numpy()


def group_blocking(one: WholeRelease, other: WholeRelease, groups: NDArray[np.int64] | None) -> Blocking:
    """One partition of two registers, by the groups that the first release has published.

    Args:
        one: whole counts of an owner's release.
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
    counts = [np.bincount(of_cells.ravel(), summed(whole, axes).ravel()) for whole in (one, other)]
    group_blocks = GroupBlocks(axes, (), of_cells, np.array(counts, dtype=np.int64))
    epsilon = Fraction(one.audit["epsilon"]) + Fraction(other.audit["epsilon"])
    return Blocking({"block_1": group_blocks}, (one.called, other.called), epsilon)
