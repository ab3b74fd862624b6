"""Resources: a store with its ledger, so that one process may hold several, and a published table for assets below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from dphist_pipeline.answering.published import NotPublished
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    import duckdb
    import polars as pl


class DphistStore(dg.ConfigurableResource[Any]):
    """A store, made by `dphist init`, with the ledger that its releases are charged to.

    Name its key as `store_resource` in a spec. Give the ledger's address by `dg.EnvVar`, as it differs by machine.
    """

    folder: str = Field(default="", description="folder of the store; by default as DPHIST_STORE says")
    ledger: str = Field(default="", description="address of the ledger; by default as DPHIST_LEDGER says")
    witness: str = Field(default="", description="file or address of the witness; by default as DPHIST_WITNESS says")

    def store(self) -> Store:
        """The store, opened."""
        root = Path(self.folder) if self.folder else Store.folder()
        return Store.open(root, self.ledger or None, self.witness or None)


class PublishedTable(dg.ConfigurableResource[Any]):
    """A release's published tables, for assets that depend on its `published`; no record is near."""

    release: str = Field(description="the release's name, such as weekly_admissions")
    folder: str = Field(default="", description="as for DphistStore")

    def published(self, period: str | None = None) -> Release:
        """The publication of a period, or of the latest one, with its answers; see `Release`."""
        return Release.published(DphistStore(folder=self.folder).store(), self.release, period)

    def frame(self, period: str | None = None) -> pl.DataFrame:
        """The histogram of a period, or of the latest one, in Polars: one row a declared cell."""
        return self.published(period).table

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The histograms of all periods in DuckDB: each period's revision in force, as the catalogue has them.

        Attaches the catalogue as `dphist`, read-only, unless it is attached.
        """
        store = DphistStore(folder=self.folder).store()
        if not (store.public / "catalog.duckdb").exists():  # it comes with the first release
            raise NotPublished("release", self.release, [])
        catalogue = str(store.public / "catalog.duckdb").replace("'", "''")
        connection.execute(f"ATTACH IF NOT EXISTS '{catalogue}' AS dphist (READ_ONLY)")
        return connection.table(f"dphist.{self.release}")
