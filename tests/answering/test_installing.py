"""The catalogue's tables and macros inside another DuckDB database."""

from __future__ import annotations

from pathlib import Path

import by_hand
import duckdb
import pytest
from answering_scenario import AXES, made
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.integrations.duckdb import install
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged


@pytest.mark.slow
def test_installing_again_replaces_and_never_touches_other_tables(tmp_path: Path) -> None:
    public = tmp_path / "store" / "public"
    public.mkdir(parents=True)
    with duckdb.connect() as connection:
        with pytest.raises(Refused, check=coded("nothing_to_install")):
            install(connection, tmp_path / "store")
        by_hand.publish(public, made("cells"), AXES, "visits")
        connection.execute("CREATE SCHEMA mine; CREATE TABLE mine.numbers AS SELECT 1 AS one")
        with pytest.raises(Refused, check=coded("schema_taken"), match="give another name"):
            install(connection, tmp_path / "store", schema="mine")
        assert install(connection, tmp_path / "store", schema="Published 1") == ["visits"]
        by_hand.publish(public, made("cells"), AXES, "visits", "2026-03-09")
        assert install(connection, tmp_path / "store", schema="Published 1") == ["visits"]
        found = connection.execute('FROM "Published 1".dph_total(\'"Published 1".visits\')').fetchall()
        assert [row[0] for row in found] == ["2026-03-02", "2026-03-09"]
        (public / "visits" / "period=2026-03-09" / "revision=1" / "histogram.parquet").write_bytes(b"damaged")
        with pytest.raises(PublishedFilesDamaged):
            install(connection, tmp_path / "store", schema="Published 1")
        assert len(connection.execute('FROM "Published 1".dph_total(\'"Published 1".visits\')').fetchall()) == 2
        assert connection.execute("FROM mine.numbers").fetchall() == [(1,)]
