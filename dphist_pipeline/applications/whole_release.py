"""A publication as non-negative whole counts, the start of every application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.catalogue_rows import whole_of
from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.whole_tables import Distance
from dphist_pipeline.spec.axes import domain_of


def application_refused(problem: str) -> Refused:
    """An application of a release that its options, its grid or its counts do not allow."""
    return Refused(problem, code="application_refused")


@dataclass(frozen=True, eq=False, repr=False)
class WholeRelease:
    """The whole counts of one publication; the same numbers as `dph_whole`.

    Attributes:
        counts: whole counts, int64, at least 0, shape of the domain.
        targets: unbiased estimates, or published ones without these, shape of the domain.
        distances: of sums of `counts` from the unbiased ones.
    """

    audit: Mapping[str, Any]
    domain: Domain
    counts: NDArray[np.int64]
    targets: NDArray[np.float64]
    distances: tuple[Distance, ...]

    @classmethod
    def read(cls, folder: Path) -> WholeRelease:
        """Fits the whole counts of a publication; a few seconds for 10⁶ cells.

        Raises:
            Refused: the publication was withdrawn.
        """
        audit = audit_in_force(folder)
        if "amount" in audit:
            raise application_refused(f"'{audit['release']}' has an amount, and parts of rows have no whole counts")
        rows = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
        whole, domain = whole_of(folder, audit, rows), domain_of(audit["axes"])
        basis = rows["unbiased_estimate"] if rows["unbiased_estimate"].null_count == 0 else rows["estimate"]
        return cls(audit, domain, whole.counts, basis.to_numpy().reshape(domain.shape), whole.distances)

    def __repr__(self) -> str:
        return f"<WholeRelease of {self.called}: {self.counts.size:,} cells, total {self.total:,}>"

    @property
    def total(self) -> int:
        """The sum of all whole counts."""
        return int(self.counts.sum())

    def along(self, axis: int) -> NDArray[np.int64]:
        """Whole sums at each position of an axis, by its number from 0 in declared order; shape (size,)."""
        over = tuple(one for one in range(self.counts.ndim) if one != axis)
        sums: NDArray[np.int64] = self.counts.sum(axis=over)
        return sums

    def occupied(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells that have records as positions, shape (axes, cells), and their counts, shape (cells,)."""
        cells = np.flatnonzero(self.counts)
        return np.stack(np.unravel_index(cells, self.counts.shape)), self.counts.ravel()[cells]

    @property
    def missed(self) -> tuple[Distance, ...]:
        """The tables some of whose sums lie outside the band that holds all of them with 95 %."""
        return tuple(distance for distance in self.distances if distance.outside)

    @property
    def called(self) -> str:
        """The name of the release and its period, for messages."""
        return f"release '{self.audit['release']}', period {self.audit['period']}"
