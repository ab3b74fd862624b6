"""A published release as its readers hold it: where its files are, what its audit says, what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from dphist_pipeline.answering.boxes import Answer, Wanted


@dataclass(frozen=True)
class Release:
    """A published release.

    Attributes:
        path: the folder of its files.
        audit: the facts in `audit.json`.
        replayed: whether it had been published before: nothing was spent and no record was read.
    """

    path: Path
    audit: dict[str, Any]
    replayed: bool

    @property
    def table(self) -> pl.DataFrame:
        """The published histogram, one row a declared cell."""
        import polars as pl

        return pl.read_parquet(self.path / "histogram.parquet", glob=False)

    def answer(self, **axes: Wanted) -> Answer:
        """The estimated count in a box of cells, with its error bar: `answer(age=(60, 80), ward="surgery")`."""
        from dphist_pipeline.answering.published import answer_published

        return answer_published(self.path, axes)
