"""How the catalogue comes about: whole or not at all, beside readers and other builders, from public files alone."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import by_hand
import duckdb
import numpy as np
import pytest
from by_hand import AGE, WARD
from system.small_release import NAME, WEEKS, Project, at_once, start

from dphist_pipeline.answering import catalogue as building
from dphist_pipeline.answering._macros import MACROS, inner_macros, macro
from dphist_pipeline.answering.catalogue import Catalogue, build_catalogue
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.answering.published import NotPublished, latest_revision
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="a catalogue holds numbers; cards are tried in publishing/"),
]

# All macros but those that take two periods or a table.
QUESTIONS = {
    "dph_total": "dph_total('{}')",
    "dph_box": "dph_box('{}', {{'age': [0, 65]}})",
    "dph_range": "dph_range('{}', 'age', 10, NULL)",
    "dph_marginal": "dph_marginal('{}', ['ward'])",
    "dph_share": "dph_share('{}', {{'ward': 'surgery'}})",
    "dph_quantile": "dph_quantile('{}', 'age')",
    "dph_mean": "dph_mean('{}', 'age', -5, 120)",
    "dph_sum": "dph_sum('{}', 'age', -5, 120)",
    "dph_ranks": "dph_ranks('{}', 'ward')",
    "dph_difference": "dph_difference('{}', {{'ward': 'surgery'}}, {{'ward': NULL}})",
    "dph_ratio": "dph_ratio('{}', {{'ward': 'surgery'}}, {{'ward': NULL}})",
    "dph_over": "dph_over('{}')",
    "dph_band": "dph_band('{}')",
    "dph_whole": "dph_whole('{}')",
    "dph_distances": "dph_distances('{}')",
}
PLANTED = "planted-4e1b"  # as long as the texts that DuckDB keeps inside its vectors


def built(public: Path, macros: Collection[str] = ("dph_total", "dph_box")) -> Path:
    """The catalogue of a public folder, from a draft that leaves nothing behind; all macros take a second to create."""
    scratch = public.parent / f"{public.name}.scratch"
    scratch.mkdir()
    with patch.object(building, "create_tables", partial(create_tables, macros=macros)):
        catalogue = build_catalogue(public, scratch)
    scratch.rmdir()
    return catalogue


def periods(catalogue: Path, release: str = "weekly") -> list[str]:
    """The periods that a new reader sees."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY)")
        return [row[0] for row in connection.execute(f"SELECT period FROM r.dph_total('r.{release}')").fetchall()]


def publish(public: Path, period: str, axes: list[dict[str, Any]] | None = None, **key: Any) -> Path:
    axes = axes or [AGE, WARD]
    return by_hand.publish(public, by_hand.estimate(axes), axes, period=period, **key).path


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose first week was released."""
    made = Project.make(tmp_path_factory.mktemp("catalogues") / "project", catalogued=True)
    made.release(WEEKS[0])
    return made


def test_open_readers_keep_what_they_opened_and_new_ones_see_the_new_period(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02")
    catalogue = built(tmp_path)
    with duckdb.connect(str(catalogue), read_only=True) as opened, duckdb.connect() as attached:
        attached.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY)")
        for period in ("2026-03-09", "2026-03-16"):
            publish(tmp_path, period)
            assert built(tmp_path) == catalogue
            assert len(opened.execute("FROM dph_total('weekly')").fetchall()) == 1
            assert len(attached.execute("FROM r.dph_box('r.weekly', {'ward': 'surgery'})").fetchall()) == 1
            assert periods(catalogue)[-1] == period
    assert periods(catalogue) == ["2026-03-02", "2026-03-09", "2026-03-16"]


def test_it_holds_a_release_only_as_that_is_published_now(tmp_path: Path) -> None:
    folder = publish(tmp_path, "2026-03-02")
    assert not Catalogue(tmp_path).is_up_to_date(folder)
    catalogue = built(tmp_path)
    assert Catalogue(tmp_path).is_up_to_date(folder)
    assert not Catalogue(tmp_path).is_up_to_date(publish(tmp_path, "2026-03-09"))
    shutil.rmtree(folder)
    publish(tmp_path, "2026-03-02", [WARD])
    assert not Catalogue(tmp_path).is_up_to_date(folder)
    for garbage in (b"", b"garbage" * 1000, catalogue.read_bytes()[:5000]):
        catalogue.write_bytes(garbage)
        assert not Catalogue(tmp_path).is_up_to_date(folder)


def test_the_charges_of_a_publication_add_up_to_its_epsilon(tmp_path: Path) -> None:
    for period in ("2026-03-02", "2026-03-09"):  # the second one grows
        publish(tmp_path, period)
        built(tmp_path)
    with duckdb.connect(str(tmp_path / "catalog.duckdb"), read_only=True) as connection:
        steps = connection.execute("SELECT period, step, epsilon, spent FROM dph_charges ORDER BY ALL").fetchall()
        spent = connection.execute("SELECT period, epsilon FROM dph_releases ORDER BY ALL").fetchall()
    assert [period for period, *_ in steps] == ["2026-03-02", "2026-03-09"] and {step for _, step, *_ in steps} != {""}
    sums = {(one, str(sum(Fraction(part) for period, _, part, _ in steps if period == one))) for one, *_ in steps}
    assert sums == set(spent)
    assert all(number == float(Fraction(exact)) for _, _, exact, number in steps)


def test_who_reads_the_draft_sees_what_is_added_reaches_for_no_file_and_stops_nobody(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02")
    catalogue, scratch = built(tmp_path), tmp_path / "scratch"
    publish(tmp_path, "2026-03-09")
    seen: list[Any] = []

    def read(connection: duckdb.DuckDBPyConnection) -> None:
        seen.extend(connection.execute("SELECT period FROM catalogue.dph_releases ORDER BY ALL").fetchall())
        assert periods(catalogue) == ["2026-03-02"], "readers have the old file while the draft is read"
        connection.execute(f"FROM read_text('{__file__}')")

    scratch.mkdir(exist_ok=True)
    with pytest.raises(duckdb.PermissionException):
        build_catalogue(tmp_path, scratch, read)
    assert seen == [("2026-03-02",), ("2026-03-09",)] and periods(catalogue) == ["2026-03-02", "2026-03-09"]


def test_a_replay_mends_a_catalogue_that_is_gone_or_garbage_and_no_other(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "copy")
    catalogue = copy.root / "public" / "catalog.duckdb"
    good = catalogue.stat().st_ino
    assert copy.release(WEEKS[0]).replayed
    assert catalogue.stat().st_ino == good

    def age() -> None:
        with duckdb.connect(str(catalogue)) as connection:
            connection.execute("UPDATE internals.dph_version SET version = 'of an older version'")
            connection.execute("DROP MACRO TABLE dph_total")

    for spoil in (catalogue.unlink, lambda: catalogue.write_bytes(b"garbage"), lambda: catalogue.write_bytes(b""), age):
        spoil()
        assert copy.release(WEEKS[0]).replayed
        assert periods(catalogue, NAME) == [WEEKS[0]]
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        assert connection.execute(f"FROM dph_total('{NAME}')").fetchall()


def test_whoever_was_killed_while_writing_to_the_old_one_does_not_spoil_the_new_one(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02")
    catalogue = built(tmp_path)
    other = tmp_path / "other"
    shutil.copy(catalogue, other)
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS number")
        shutil.copy(f"{other}.wal", f"{catalogue}.wal")  # what a kill leaves
    built(tmp_path)
    assert periods(catalogue) == ["2026-03-02"]


def test_two_builders_at_once_leave_one_catalogue_that_holds_both(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "copy")
    outcomes = at_once([(copy, week, "") for week in WEEKS[1:4]])
    assert [outcome.refusal for outcome in outcomes] == [""] * 3
    assert periods(copy.root / "public" / "catalog.duckdb", NAME) == WEEKS[:4]
    assert not list((copy.root / "confidential" / "runs").iterdir())


def test_a_builder_waits_for_another_and_then_builds_anew(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "copy")
    catalogue = copy.root / "public" / "catalog.duckdb"
    with ThreadPoolExecutor(1) as pool:
        with Store.open(copy.root).building():
            waiting = pool.submit(start, copy, WEEKS[1])
            while not copy.published(WEEKS[1]).is_dir() and not waiting.done():
                time.sleep(0.01)
            time.sleep(0.5)
            assert not waiting.done()
            assert periods(catalogue, NAME) == WEEKS[:1]
        assert waiting.result().refusal == ""
    assert periods(catalogue, NAME) == WEEKS[:2]


def test_a_killed_build_leaves_the_old_catalogue_and_the_next_call_mends_it(project: Project, tmp_path: Path) -> None:
    boundaries = start(project.copy(tmp_path / "whole"), WEEKS[1]).boundaries
    before = (project.root / "public" / "catalog.duckdb").read_bytes()
    renames = [place for place, boundary in enumerate(boundaries, 1) if boundary == "os.rename"]
    for moved in reversed(renames):  # what follows the catalogue are files of the picker and pages for readers
        copy = project.copy(tmp_path / f"killed at {moved}")
        catalogue = copy.root / "public" / "catalog.duckdb"
        assert start(copy, WEEKS[1], kill_at=moved).killed
        if catalogue.read_bytes() == before:
            break
        assert periods(catalogue, NAME) == WEEKS[:2]
    assert moved < renames[-1] and copy.published(WEEKS[1]).is_dir()
    again = start(copy, WEEKS[1])
    assert (again.replayed, again.refusal) == (True, "")
    assert periods(catalogue, NAME) == WEEKS[:2]
    assert not list((copy.root / "confidential" / "runs").iterdir())


def test_folders_that_were_moved_away_do_not_count_twice(tmp_path: Path) -> None:
    folder = publish(tmp_path, "2026-03-02")
    for name in ("revision=1.old", "revision=7", "revision=x"):
        shutil.copytree(folder, folder.with_name(name))
    shutil.copytree(folder.parents[1], tmp_path / "backup")
    (folder.with_name("revision=1.old") / "histogram.parquet").write_bytes(b"damaged")
    with duckdb.connect(str(built(tmp_path)), read_only=True) as connection:
        assert connection.execute("SELECT revision, cells FROM dph_total('weekly')").fetchall() == [(1, 15)]
        assert connection.execute("SELECT count(*) FROM weekly").fetchall() == [(15,)]
    shutil.rmtree(folder.with_name("revision=7"))
    assert latest_revision(tmp_path, "weekly", None) == folder


def test_a_period_whose_publishing_was_killed_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "weekly" / "period=2026-03-09").mkdir(parents=True)
    with pytest.raises(NotPublished, match="no release 'weekly'"):
        latest_revision(tmp_path, "weekly", None)
    folder = publish(tmp_path, "2026-03-02")
    assert latest_revision(tmp_path, "weekly", None) == folder
    with pytest.raises(NotPublished, match="Did you mean '2026-03-02'"):
        latest_revision(tmp_path, "weekly", "2026-03-09")


def test_altered_files_never_enter_it(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02")
    before = built(tmp_path).read_bytes()
    folder = publish(tmp_path, "2026-03-09")
    (folder / "histogram.parquet").write_bytes((folder / "groups.parquet").read_bytes())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(PublishedFilesDamaged, match="2026-03-09"):
        build_catalogue(tmp_path, scratch)
    assert (tmp_path / "catalog.duckdb").read_bytes() == before


def test_revisions_may_have_other_axes_under_the_same_column_names(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02", [AGE])
    publish(tmp_path, "2026-03-02", [{"column": "age_lower", "values": ["young", "old"]}], revision=2)
    with duckdb.connect(str(built(tmp_path)), read_only=True) as connection:
        values = connection.execute("SELECT age_lower FROM weekly_all ORDER BY revision, cell_number").fetchall()
        assert [value for (value,) in values] == [None, "0.0", "18.0", "65.0", None, "young", "old"]
        assert connection.execute("SELECT cells FROM dph_box('weekly', {'age_lower': 'old'})").fetchall() == [(1,)]


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.soak)])
def test_a_release_may_have_any_legal_name(tmp_path: Path, every: int) -> None:
    names = {
        "publication",
        "described",
        "internals",
        "main",
        "temp",
        "system",
        "catalogue",
        "r",
        "t",
        "cell_number",
        "period",
    }
    parts: dict[str, list[str]] = {}  # whatever a macro calls its parts
    for name in MACROS:
        parts[name] = re.findall(
            r"^(?!dph_)(\w+) AS (?:MATERIALIZED )?\(", "\n".join(map(macro, (name, *inner_macros(name)))), re.MULTILINE
        )
        names |= set(parts[name])
    assert {"chosen", "bins", "grouped"} < names
    names = {"publication", "internals", "main", "cell_number", "period", "chosen", *sorted(names)[::every]}
    for name in names:
        publish(tmp_path, "all", release=name)
    catalogue = built(tmp_path, QUESTIONS)
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        for number, name in enumerate(sorted(names)):
            own = [macro_name for macro_name in QUESTIONS if name in parts[macro_name]] or list(QUESTIONS)
            question = QUESTIONS[own[number % len(own)]].format(name)
            assert connection.execute(f"FROM {question}").fetchall(), question


def test_a_long_axis_is_asked_as_fast_as_a_short_one(tmp_path: Path) -> None:
    names = [f"town {number}" for number in range(20_000)]
    towns = {"column": "town", "values": names}
    income = {"column": "income", "start": 0, "stop": 40_000, "width": 1}
    publish(tmp_path, "all", [towns], release="towns")
    publish(tmp_path, "all", [income], release="incomes")
    with duckdb.connect(str(built(tmp_path)), read_only=True) as connection:
        began = time.process_time()
        for release, box, cells in (
            ("towns", {"town": names[::3]}, len(names[::3])),
            ("incomes", {"income": [1, 30_000]}, 29_999),
        ):
            found = connection.execute(f"SELECT cells FROM dph_box('{release}', ?)", [json.dumps(box)]).fetchall()
            assert found == [(cells,)]
        with pytest.raises(duckdb.Error, match="no category town 0x; it has town 0, "):
            connection.execute("FROM dph_box('towns', ?)", [json.dumps({"town": [f"{name}x" for name in names]})])
        assert time.process_time() - began < 15  # comparing each with each would take minutes


def test_it_is_made_of_public_files_alone(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02", [AGE, WARD, {"column": "day", "start": 0, "stop": 500, "width": 1}])

    def read_records() -> None:
        """Leaves the memory of this process full of what nobody may see."""
        heap = [bytearray(PLANTED.encode() * (size // 12)) for size in (100, 5000, 262144, 1 << 20) for _ in range(50)]
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE records AS SELECT '{PLANTED}' AS person, r.i FROM range(100000) AS r(i)")
            connection.execute("SELECT person || person, i FROM records ORDER BY ALL LIMIT 1000").fetchall()
        del heap

    builds = []
    for period in (None, None, "2026-03-09"):
        read_records()
        if period:  # added to a copy
            publish(tmp_path, period, [AGE, WARD])
        else:
            (tmp_path / "catalog.duckdb").unlink(missing_ok=True)
        catalogue = built(tmp_path, ("dph_total", "dph_share", "dph_quality"))
        builds.append(np.fromfile(catalogue, dtype=np.uint8))
        content = catalogue.read_bytes()
        for start_of_piece in range(len(PLANTED) - 5):
            assert PLANTED[start_of_piece : start_of_piece + 6].encode() not in content
        assert str(tmp_path).encode() not in content
    # DuckDB writes checksums, an id, and some bytes of padding as it finds them.
    assert builds[0].size == builds[1].size
    assert int((builds[0] != builds[1]).sum()) < 1000


def test_it_says_what_every_cell_number_means(tmp_path: Path) -> None:
    publish(tmp_path, "2026-03-02")
    with duckdb.connect(str(built(tmp_path)), read_only=True) as connection:
        rows = connection.execute(
            "SELECT * EXCLUDE (grid, first, last, below, above, amount) FROM internals.dph_bins "
            "ORDER BY stride DESC, position"
        ).fetchall()
        words = connection.execute(
            "SELECT first, last, below, above FROM internals.dph_bins WHERE axis = 'age' ORDER BY position"
        ).fetchall()
    assert words == [
        (None, "under 0", "below 0", None),
        ("0", "under 18", "below 18", "0 or more"),
        ("18", "under 65", "below 65", "18 or more"),
        ("65", None, None, "65 or more"),
        (None, None, None, None),
    ]
    ages = [(-np.inf, 0.0), (0.0, 18.0), (18.0, 65.0), (65.0, np.inf), (None, None)]
    assert rows == [
        *[
            ("age", "age", 3, 5, position, True, False, *ends, *ends, None, None, None)
            for position, ends in enumerate(ages)
        ],
        *[
            ("ward", "ward", 1, 3, n, False, False, None, None, None, None, ward, None, None)
            for n, ward in enumerate(["surgery", "medicine", None])
        ],
    ]


def test_it_says_what_was_promised(tmp_path: Path) -> None:
    folder = publish(tmp_path, "2026-03-02")
    audit = json.loads((folder / "audit.json").read_bytes())
    catalogue = built(tmp_path)
    assert catalogue.stat().st_mode & 0o777 == 0o644
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        found = connection.execute("FROM dph_releases")
        row = dict(zip([column[0] for column in found.description], found.fetchall()[0], strict=True))
    for name in ("release", "period", "revision", "epsilon", "mechanism", "neighbours", "cells", "audit_digest"):
        assert row[name] == audit[name]
    assert (row["noise_scale"], row["charged_at"]) == ("6", audit["ledger"]["charged_at"])
