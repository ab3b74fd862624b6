"""Whole tables in the catalogue: `dph_whole`, `dph_distances` and the column `whole_count` of the views."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from answering_scenario import Asked, attached, published_once, rows_of
from office import Office

from dphist_pipeline.answering.catalogue_rows import whole_of
from dphist_pipeline.estimates.whole_tables import Way, WholeTable
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


def whole(release: Release) -> WholeTable:
    """The whole table of a publication, from its files."""
    audit = read_audit(release.path)
    domain = domain_of(audit["axes"])
    rows = pq.ParquetFile(release.path / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    values, unbiased = (column.to_numpy().reshape(domain.shape) for column in rows.columns)
    return WholeTable.fit(
        domain, values, published_unbiased(audit, unbiased), way=audit.get("whole_counts", Way.SHIFTS)
    )


@pytest.mark.slow
def test_whole_counts_of_every_period_are_those_of_its_files(store: Asked) -> None:
    with attached(store.catalogue) as connection:
        for period, release in store.releases.items():
            rows = rows_of(connection, "FROM r.dph_whole('r.weekly', period := ?)", period)
            counts = [row["whole_count"] for row in rows]
            assert counts == whole(release).counts.ravel().tolist() and min(counts) >= 0
            view = rows_of(connection, "SELECT whole_count FROM r.weekly WHERE period = ? ORDER BY cell_number", period)
            assert [row["whole_count"] for row in view] == counts
            assert list(rows[0])[:2] == ["period", "revision"]
            assert list(rows[0])[-4:] == ["whole_count", "estimate", "period_start", "period_end"]


def test_distances_are_told_where_there_are_unbiased_estimates(store: Asked) -> None:
    with attached(store.catalogue) as connection:
        for period, release in store.releases.items():
            rows = rows_of(connection, "FROM r.dph_distances('r.weekly', period := ?)", period)
            expected = {distance.table: distance for distance in whole(release).distances}
            assert {row["sums_by"] for row in rows} == set(expected)
            for row in rows:
                distance = expected[row["sums_by"]]
                assert (row["sums"], row["outside"]) == (distance.sums, distance.outside)
                found = np.array([row["farthest"], row["half_width"]], dtype=np.float64)
                np.testing.assert_array_equal(found, [distance.farthest, distance.half_width])


@pytest.mark.slow
def test_a_publication_that_does_not_say_how_whole_counts_are_fitted_keeps_them(office: Office) -> None:
    office.with_release()
    folder = office.published()
    audit = read_audit(folder)
    assert audit["whole_counts"] == Way.SURE_CELLS
    earlier = {name: fact for name, fact in audit.items() if name != "whole_counts"}
    rows = pq.ParquetFile(folder / "histogram.parquet").read()
    domain = domain_of(audit["axes"])
    values, unbiased = (rows[name].to_numpy().reshape(domain.shape) for name in ("estimate", "unbiased_estimate"))
    before, now = (
        WholeTable.fit(domain, values, published_unbiased(audit, unbiased), way=way).counts.tolist()
        for way in (Way.SHIFTS, Way.SURE_CELLS)
    )
    assert whole_of(folder, earlier, rows).counts.tolist() == before
    assert whole_of(folder, audit, rows).counts.tolist() == now


@pytest.mark.parametrize("macro", ["dph_whole", "dph_distances"])
def test_an_unknown_period_is_refused_by_name(store: Asked, macro: str) -> None:
    with attached(store.catalogue) as connection, pytest.raises(duckdb.Error, match=f"{macro}: there is no period x"):
        rows_of(connection, f"FROM r.{macro}('r.weekly', period := 'x')")
