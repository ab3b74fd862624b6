"""Where each unit pays for its own rows, a change mixes what happened with who is still counted: its note says so."""

from __future__ import annotations

from pathlib import Path

import by_hand
import duckdb
import pytest
from by_hand import WARD

from dphist_pipeline.answering.catalogue import Catalogue, create_tables
from dphist_pipeline.estimates.notes import WHO_IS_COUNTED

pytestmark = pytest.mark.slow


def test_the_note_of_a_change_says_who_is_counted_in_an_individual_account_alone(tmp_path: Path) -> None:
    made = by_hand.estimate([WARD])
    for release, facts in {"own": {"year_rows": 12}, "shared": {}}.items():
        for period in ("2026-03-02", "2026-03-09"):
            by_hand.publish(tmp_path, made, [WARD], release, period, **facts)
        by_hand.publish(tmp_path, made, [WARD], release, "2026-03-09", revision=2, **facts)
    with duckdb.connect() as connection:
        create_tables(connection, Catalogue(tmp_path).publications(), described=False)
        for question in (
            "dph_changes('{}')",
            "dph_compare('{}', '2026-03-02', '2026-03-09')",
            "dph_compare('{}', '2026-03-09', '2026-03-09', revision := [1, 2])",
        ):
            for release, told in (("own", True), ("shared", False)):
                notes = connection.execute(f"SELECT note FROM {question.format(release)}").fetchall()
                assert [WHO_IS_COUNTED in (note or "") for (note,) in notes] == [told], question
        (summed,) = connection.execute("SELECT note FROM dph_over('own')").fetchall()[0]
        assert WHO_IS_COUNTED not in (summed or "")
