"""The quality table of a published release: its rows, and what readers are told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.noisy import Unbiased
from dphist_pipeline.estimates.row_quality import BoundingEffect, QualityTable, cap_in_words
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.sources import EVERY_ROW

Row = Mapping[str, Any]


def no_quality_table(audit: Row) -> Refused:
    """The release was published without a quality table."""
    return Refused(
        f"release '{audit['release']}', period {audit['period']} has no quality table: `quality` was not in its spec. "
        "Add it there; it pays for the next period, or for a revision",
        code="no_quality_table",
        release=str(audit["release"]),
    )


@dataclass(frozen=True)
class PublishedQuality:
    """The quality table of a published release or family, or of one table of a family; empty where it has none."""

    folder: Path
    audit: Row

    @classmethod
    def read(cls, folder: Path) -> PublishedQuality:
        """Checks the files of a publication, and reads its audit.

        Raises:
            PublishedFilesDamaged: a published file is missing or altered.
            Refused: the publication was withdrawn, or its spec declared no quality table.
        """
        published = cls(folder, audit_in_force(folder))
        if not published.rows:
            raise no_quality_table(published.audit)
        return published

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each number, in the order of the file."""
        path = PublishedFolder(self.folder).quality
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist() if path.exists() else []
        return rows

    @property
    def table(self) -> QualityTable:
        """The quality table of the numbers."""
        return QualityTable(self.rows)

    @property
    def _family(self) -> Path | None:
        """The folder of the family that the folder is a table of."""
        return place.publication if (place := PublishedFolder(self.folder)).is_table else None

    def _tables(self) -> list[tuple[Path, Domain]]:
        """The folders of the published tables and their grids, the smallest first."""
        inside = {PublishedFolder(self.folder).table(name): one for name, one in self.audit.get("tables", {}).items()}
        tables = inside or {self.folder: self.audit}
        domains = [(path, domain_of(table["axes"])) for path, table in tables.items()]
        return sorted(domains, key=lambda one: one[1].cells)

    def cuts(self) -> dict[str | None, list[BoundingEffect]]:
        """As `QualityTable.cuts`; for a family, whose tables agree, by the smallest that has an axis."""
        return self._cuts(self.table)

    def _cuts(self, table: QualityTable) -> dict[str | None, list[BoundingEffect]]:
        tables = self._tables()

        def sums_along(axis: str | None) -> NDArray[np.float64]:
            path, domain = next(one for one in tables if axis is None or axis in [named.name for named in one[1].axes])
            counts = pq.ParquetFile(path / "histogram.parquet").read(["estimate", "unbiased_estimate"])
            chosen = counts["estimate" if counts["unbiased_estimate"].null_count else "unbiased_estimate"]
            return domain.sums_along(axis, chosen.to_numpy().reshape(domain.shape))

        return table.cuts(sums_along)

    def most_failed(self) -> dict[str | None, float]:
        """As `QualityTable.most_failed`, by the smallest table that has an axis; empty where nothing is bounded.

        Of one table of a family, the whole family is asked.
        """
        if not self.rows:
            return {}
        if self._family is not None:
            audit = json.loads((self._family / "audit.json").read_bytes())
            return PublishedQuality(self._family, audit).most_failed()
        axes = domain_of(self.audit["axes"]).axes
        has_other = {axis.name: axis.other_cell is not None for axis in axes}
        wanted = {name for name, there in has_other.items() if there}
        told: list[tuple[Domain, Unbiased | None]] = []
        for path, domain in self._tables():
            if names := wanted & {axis.name for axis in domain.axes}:
                facts = self.audit if path == self.folder else json.loads((path / "audit.json").read_bytes())
                cells = pq.ParquetFile(path / "histogram.parquet").read(["unbiased_estimate"])["unbiased_estimate"]
                told.append((domain, published_unbiased(facts, cells.to_numpy().reshape(domain.shape))))
                wanted -= names
        bound = None if self.audit["privacy_unit"] == EVERY_ROW else int(self.audit["max_rows_per_unit"])
        return self.table.most_failed(has_other, told, bound)

    def sentences(self) -> list[str]:
        """What a reader should know first, a sentence each; empty without a quality table."""
        return self.table.sentences(self.audit, self.cuts()) if self.rows else []

    def cap_in_words(self) -> str:
        """What the bound leaves out of the counts; see the function of that name. Empty without a bound."""
        table = self.table if self._family is None else PublishedQuality(self._family, self.audit).table
        (cut,) = self._cuts(table).get(None, [None])
        return cap_in_words(self.audit, table.rows_seen, cut)
