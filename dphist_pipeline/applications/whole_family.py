"""A family of tables as whole records: the population that was published beside its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.applications.whole_release import application_refused
from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain, finest
from dphist_pipeline.estimates.noisy import Unbiased
from dphist_pipeline.estimates.whole_tables import Distance
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

Wholes = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class WholeFamily:
    """The records behind the whole counts of a family; every table counts them.

    Attributes:
        domain: the finest axes of the tables.
        positions: of the distinct records along each axis, shape (axes, records).
        rows: of each, positive, shape (records,).
    """

    folder: Path
    audit: Mapping[str, Any]
    domain: Domain
    positions: Wholes
    rows: Wholes

    @classmethod
    def read(cls, folder: Path) -> WholeFamily:
        """Reads the records of a published family.

        Raises:
            Refused: the publication was withdrawn, or made by an older version, without records.
        """
        audit = audit_in_force(folder)
        if not PublishedFolder(folder).population.exists():
            raise application_refused(
                f"family '{audit['release']}' was published by an older version, without records; name one of its "
                "tables"
            )
        domain = finest([domain_of(table["axes"]) for table in audit["tables"].values()])
        population = pq.ParquetFile(PublishedFolder(folder).population).read().combine_chunks()
        positions = np.stack([_positions(axis, population) for axis in domain.axes])
        return cls(folder, audit, domain, positions, population["rows"].to_numpy())

    def __repr__(self) -> str:
        return f"<WholeFamily of {self.called}: {self.rows.size:,} distinct records, total {self.total:,}>"

    @property
    def total(self) -> int:
        """The rows of all records."""
        return int(self.rows.sum())

    @property
    def distances(self) -> tuple[Distance, ...]:
        """No distances: each table has its own."""
        return ()

    missed = distances

    @property
    def called(self) -> str:
        """The name of the release and its period, for messages."""
        return f"release '{self.audit['release']}', period {self.audit['period']}"

    def along(self, axis: int) -> Wholes:
        """Rows at each position of an axis, by its number from 0 in declared order; shape (size,)."""
        sums = np.zeros(self.domain.axes[axis].size, dtype=np.int64)
        np.add.at(sums, self.positions[axis], self.rows)
        return sums

    def table(self, name: str) -> tuple[pa.Table, Domain, Unbiased | None]:
        """The published rows of a table of the family, its grid, and its unbiased estimates with their law."""
        folder = PublishedFolder(self.folder).table(name)
        rows, domain = (
            pq.ParquetFile(folder / "histogram.parquet").read(),
            domain_of(self.audit["tables"][name]["axes"]),
        )
        values = rows["unbiased_estimate"].to_numpy().reshape(domain.shape)
        return rows, domain, published_unbiased(audit_in_force(folder), values)

    def occupied(self) -> tuple[Wholes, Wholes]:
        """The distinct records as positions, shape (axes, records), and the rows of each, shape (records,)."""
        return self.positions, self.rows


def _positions(axis: Axis, records: Any) -> Wholes:
    """Where records lie along an axis, from its published columns."""
    if isinstance(axis, CategoricalAxis):
        positions = pc.index_in(records[axis.name], pa.array(axis.values, pa.string()))
        return np.asarray(pc.fill_null(positions, axis.size - 1).to_numpy(), dtype=np.int64)
    assert isinstance(axis, BinnedAxis), "families have no amounts"
    lower, upper = (_numbers(axis, records[f"{axis.name}_{end}"]) for end in ("lower", "upper"))
    place = np.searchsorted(np.array(axis.edges), lower, side="left") + axis.below
    return np.where(np.isfinite(lower), place, np.where(np.isfinite(upper), 0, axis.size - 1)).astype(np.int64)


def _numbers(axis: BinnedAxis, ends: Any) -> NDArray[np.float64]:
    """Ends of bins as doubles, nan for null."""
    if isinstance(axis, CalendarAxis):
        ends = ends.cast(pa.date32()).cast(pa.int32())
    doubles: NDArray[np.float64] = pc.fill_null(ends.cast(pa.float64()), np.nan).to_numpy()
    return doubles
