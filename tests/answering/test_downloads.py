"""Files to download beside a card: the cells of a period as CSV and workbook, and its picture."""

from __future__ import annotations

from pathlib import Path

import by_hand
import numpy as np
import pytest
from by_hand import WARD
from derived_files import made_anew
from families_by_hand import publish_family
from picker_scenario import WEEKS, days_of
from test_best_tables import FAMILIES

from dphist_pipeline.answering import _downloads
from dphist_pipeline.publishing._index_pages import shows
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.manifest import is_path
from dphist_pipeline.publishing.published_files import PublishedFolder

NOTE = {"reason": "wrong file", "at": "2026-03-20T00:00:00Z", "entry": 1}
NAMES = ["cells.csv", "cells.xlsx", "picture.svg"]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return tmp_path / "public"


def publish(public: Path, week: str = WEEKS[0], revision: int = 1) -> Path:
    made = by_hand.estimate([WARD], np.array([100.0, 50.0, 7.0]), off=0.0)
    return by_hand.publish(
        public, made, [WARD], "weekly", week, revision, pictures=True, show_below=10, **days_of(week)
    ).path


def downloads(public: Path, week: str, revision: int = 1) -> Path:
    return public / f"weekly/downloads/period={week}/revision={revision}"


@pytest.mark.slow
def test_each_period_has_its_own_files_which_the_page_names(public: Path) -> None:
    first = publish(public)
    made_anew(public)
    folder = downloads(public, WEEKS[0])
    assert sorted(file.name for file in folder.iterdir()) == NAMES
    lines = (folder / "cells.csv").read_text().splitlines()
    assert len(lines) == 4 and "below 10" in lines[3] and "surgery" in lines[1]
    picture = (folder / "picture.svg").read_text()
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and picture.endswith("</svg>\n")
    assert (folder / "cells.csv").stat().st_mode & 0o777 == 0o644
    page = (public / "weekly/index.html").read_text()
    assert all(f'href="downloads/period={WEEKS[0]}/revision=1/{name}"' in page for name in NAMES)
    assert f'download="weekly_{WEEKS[0]}.xlsx"' in page and shows(public, first)
    named = [path for path, _ in DerivedFiles(public).there() if "/downloads/" in path]
    assert len(named) == 3 and all(map(is_path, named))


@pytest.mark.slow
def test_a_publication_writes_its_own_files_alone(public: Path) -> None:
    publish(public)
    made_anew(public)
    before = {file: file.stat().st_mtime_ns for file in downloads(public, WEEKS[0]).iterdir()}
    publish(public, WEEKS[1])
    made_anew(public)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len([*downloads(public, WEEKS[1]).iterdir()]) == 3


@pytest.mark.slow
def test_files_of_what_no_longer_stands_are_emptied_and_not_named(public: Path) -> None:
    publish(public)
    late = publish(public, revision=2)
    made_anew(public)
    assert not downloads(public, WEEKS[0]).exists()
    PublishedFolder(late).mark_withdrawn(NOTE, public.parent / "scratch")
    made_anew(public)
    assert all(file.stat().st_size == 0 for file in downloads(public, WEEKS[0], 2).iterdir())
    page = (public / "weekly/index.html").read_text()
    assert "revision=2/cells.csv" not in page and "revision=1/cells.csv" in page


@pytest.mark.slow
def test_large_tables_and_families_have_none(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublishedFolder, "most_downloaded", 2)
    publish(public)
    axes, tables = FAMILIES["levels"]
    publish_family(public, axes, tables, "levels", WEEKS[0])
    made_anew(public)
    assert not [*public.glob("*/downloads")]


def test_cards_of_large_tables_and_families_say_where_files_come_from(public: Path) -> None:
    publish_family(public, *FAMILIES["levels"])
    axes = [{"column": "x", "start": 0, "stop": PublishedFolder.most_downloaded + 1, "width": 1}]
    by_hand.publish(public, by_hand.estimate(axes), axes, "large", "all")
    by_hand.publish(public, by_hand.estimate([WARD]), [WARD], "small", "all")
    told = {
        name: next(public.glob(f"{name}/period=*/revision=1/card.html")).read_text()
        for name in ("family", "large", "small")
    }
    assert "dphist export large --period all --to csv" in told["large"] and "dphist export family_" in told["family"]
    assert "dphist export" not in told["small"] and "#files" in told["large"] and "#files" not in told["small"]


@pytest.mark.slow
def test_a_download_that_cannot_be_made_stops_no_publication(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_downloads, "write_export", full)
    publish(public)
    made_anew(public)
    assert not downloads(public, WEEKS[0]).exists() and not (public.parent / "scratch/downloads").exists()
    monkeypatch.undo()
    made_anew(public)
    assert downloads(public, WEEKS[0]).is_dir()
