"""A publication is added to a copy of the catalogue: the same rows as a catalogue that is built from all files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import answering_scenario as scenario
import by_hand
import duckdb
import numpy as np
import pytest
from by_hand import AGE, WARD

from dphist_pipeline.answering import catalogue as building
from dphist_pipeline.answering import catalogue_tables
from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder, read_audit
from dphist_pipeline.releasing.releases import Release
from examples import mostly_soaked

pytestmark = pytest.mark.stand_in("pictures", why="a catalogue holds numbers; cards are tried in publishing/")

WEEKS = [f"2026-03-{day:02}" for day in (2, 9, 16, 23)]
TOWN = {"column": "age_lower", "values": ["A", "B"], "labels": ["Aa", ""], "other": True}


def publish(public: Path, axes: list[dict[str, Any]], period: str = WEEKS[0], scale: int = 6, **more: Any) -> Path:
    made = replace(by_hand.estimate(axes, scale=Fraction(scale)), quality=by_hand.QUALITY)
    return by_hand.publish(public, made, axes, period=period, **more).path


def built(public: Path, macros: Collection[str] = ()) -> Path:
    """The catalogue with these macros: nobody asks one here, and all take a second of the processor to create."""
    scratch = public.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    with patch.object(building, "create_tables", partial(catalogue_tables.create_tables, macros=macros)):
        catalogue = build_catalogue(public, scratch)
    assert list(scratch.iterdir()) == []
    return catalogue


def anew(public: Path) -> Path:
    """The catalogue as it is built from the public files alone."""
    copy = public.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(public, copy)
    (copy / "catalog.duckdb").unlink(missing_ok=True)
    return built(copy)


def held(catalogue: Path) -> dict[str, Any]:
    """Every row of every table and view by name, in no order; every comment and the definition of every view."""
    with scenario.attached(catalogue) as connection:
        found: dict[str, Any] = {}
        for kind in ("table", "view"):
            columns, mine = f"schema_name, {kind}_name, comment", "database_name = 'r' AND NOT internal"
            listed = connection.execute(f"SELECT {columns} FROM duckdb_{kind}s() WHERE {mine}")
            for schema, name, comment in listed.fetchall():
                rows = scenario.rows_of(connection, f"FROM r.{schema}.{name}")
                rows = [{key: value for key, value in sorted(row.items()) if key != "sealed"} for row in rows]
                found[name] = (comment, sorted(map(repr, rows)))
        columns = "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE database_name = 'r'"
        return found | {"columns": sorted(connection.execute(columns).fetchall())}


def published_in_any_order(public: Path, number: int) -> list[dict[str, Any]]:
    """Publications of several releases, with revisions, other axes, scales, titles and laws."""
    keys: list[dict[str, Any]] = [
        *({"axes": [AGE, WARD], "period": week, "title": f"Until {week}"} for week in WEEKS),
        {"axes": [AGE, WARD], "period": WEEKS[1], "revision": 2, "scale": 9},
        {"axes": [AGE], "period": WEEKS[1], "revision": 3, "title": "Other axes"},
        {"axes": [TOWN], "period": WEEKS[2], "revision": 2},
        {"axes": [{**AGE, "edges": [0, 1, 2, 3, 4, 5, 6, 7, 8]}, WARD], "release": "beds"},
        {"axes": [WARD], "release": "beds_all"},
        {"axes": [WARD], "release": "beds", "period": WEEKS[3], "scale": 9},
    ]
    random.Random(number).shuffle(keys)
    return keys


@pytest.mark.slow
@pytest.mark.parametrize("number", mostly_soaked(range(4), [0]))
def test_it_grows_in_any_order_to_the_rows_of_one_that_is_built_anew(tmp_path: Path, number: int) -> None:
    public = tmp_path / "public"
    for key in published_in_any_order(public, number):
        publish(public, key.pop("axes"), key.pop("period", WEEKS[0]), **key)
        grown = built(public)
    assert held(grown) == held(anew(public))


@pytest.mark.soak
def test_laws_of_all_kinds_grow_as_they_are_built_anew(tmp_path: Path) -> None:
    public = tmp_path / "public"
    for step, (period, kind) in enumerate(reversed(scenario.PERIODS.items())):
        by_hand.publish(public, scenario.made(kind, 3.0 * step), scenario.AXES, period=period)
        grown = built(public)
    rows = held(grown)
    assert rows == held(anew(public))
    assert rows["dph_linear_widths"][1] and rows["dph_covariance"][1] and rows["dph_quality_rows"][1]


@pytest.mark.slow
def test_only_what_is_new_is_read_and_no_other_release_is_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = tmp_path / "public"
    for week in WEEKS[:3]:
        publish(public, [AGE, WARD], week)
        publish(public, [WARD], week, release="beds")
    built(public)
    read: list[Path] = []
    filled: list[tuple[str, str]] = []
    insert = catalogue_tables._insert_cells
    monkeypatch.setattr(building, "read_audit", lambda folder: read.append(folder) or read_audit(folder))

    def inserting(connection: Any, places: Any, release: str, folder: Path, audit: Any) -> None:
        filled.append((audit["release"], audit["period"]))
        insert(connection, places, release, folder, audit)

    monkeypatch.setattr(catalogue_tables, "_insert_cells", inserting)
    folder = publish(public, [WARD], WEEKS[3], release="beds")
    built(public)
    assert (read, filled) == ([folder], [("beds", WEEKS[3])])
    publish(public, [AGE], WEEKS[3], release="beds", revision=2)
    built(public)
    assert {release for release, _ in filled} == {"beds"} and len(filled) == 1 + 5
    assert held(public / "catalog.duckdb") == held(anew(public))


@pytest.mark.slow
def test_what_was_withdrawn_moved_or_replaced_leaves_it_at_the_next_publication(tmp_path: Path) -> None:
    public = tmp_path / "public"
    folders = [publish(public, [WARD], week) for week in WEEKS[:3]]
    (tmp_path / "scratch").mkdir()

    def replace() -> None:
        shutil.rmtree(folders[0])
        publish(public, [WARD], WEEKS[0], scale=9)

    note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
    for change in (
        lambda: PublishedFolder(folders[1]).mark_withdrawn(note, tmp_path / "scratch"),
        lambda: folders[2].rename(folders[2].with_name("revision=1.old")),
        replace,
    ):
        built(public)
        change()
        publish(public, [AGE], release="other", period=f"2026-04-{len(list(public.glob('other/*'))) + 1:02}")
        assert held(built(public)) == held(anew(public))
    with scenario.attached(public / "catalog.duckdb") as connection:
        assert connection.execute("SELECT DISTINCT period FROM r.weekly_all").fetchall() == [(WEEKS[0],)]


@pytest.mark.slow
def test_what_somebody_else_wrote_into_it_is_not_kept(tmp_path: Path) -> None:
    public = tmp_path / "public"
    publish(public, [WARD])
    catalogue = built(public)
    with duckdb.connect(str(catalogue)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS number")
        connection.execute("DELETE FROM internals.dph_cells_weekly WHERE ward = 'surgery'")
    publish(public, [WARD], WEEKS[1])
    assert held(built(public)) == held(anew(public))


@pytest.mark.soak
def test_it_is_built_anew_from_a_copy_of_the_public_folder_or_a_damaged_file(tmp_path: Path) -> None:
    public = tmp_path / "public"
    publish(public, [WARD])
    good = built(public).read_bytes()
    for content in (b"", b"garbage" * 1000, good[:5000], good[:-4096]):
        (public / "catalog.duckdb").write_bytes(content)
        assert held(built(public)) == held(anew(public))


@pytest.mark.slow
def test_python_asks_a_catalogue_for_its_publications_and_files_for_others(tmp_path: Path) -> None:
    def published(count: float, **key: Any) -> Release:
        made = by_hand.estimate([WARD], np.full(by_hand.domain_of([WARD]).shape, count), off=0)
        return by_hand.publish(tmp_path / "public", made, [WARD], **key)

    held = [published(100, revision=1), published(200, revision=2), published(300, release="daily")]
    built(tmp_path / "public", ["dph_box", "dph_compare", "dph_compare_releases"])
    first, *later = *held, published(400, period=WEEKS[1])
    assert first.answer(ward="surgery").unbiased == 100
    for release, count in zip(later, (200, 300, 400), strict=True):
        assert release.answer(ward="surgery").unbiased == count
        assert release.change_since(first, {"ward": "surgery"}).unbiased == count - 100


def test_a_damaged_publication_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    public = tmp_path / "public"
    publish(public, [WARD])
    before = built(public).read_bytes()
    folder = publish(public, [WARD], WEEKS[1])
    (folder / "histogram.parquet").write_bytes((folder / "groups.parquet").read_bytes())
    (tmp_path / "other").mkdir()
    with pytest.raises(PublishedFilesDamaged, match=WEEKS[1]):
        build_catalogue(public, tmp_path / "other")
    assert (public / "catalog.duckdb").read_bytes() == before
