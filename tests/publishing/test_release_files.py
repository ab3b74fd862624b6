"""The files of a release: on the disk before anybody sees them, for everybody to read, those of whoever was first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from office import FILES, Office

from dphist_pipeline.publishing.release_files import move_into_place


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Every file and folder that is synced, and every name that is given, from now on, in order."""
    noted: list[tuple[str, Path]] = []
    fsync, rename = os.fsync, os.rename

    def synced(handle: int) -> None:
        fsync(handle)
        noted.append(("synced", Path(f"/proc/self/fd/{handle}").readlink()))

    def renamed(source: Any, target: Any, **more: Any) -> None:
        rename(source, target, **more)
        noted.append(("named", Path(target)))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    return noted


@pytest.mark.slow
def test_every_file_is_on_the_disk_before_a_release_is_seen(office: Office, done: list[tuple[str, Path]]) -> None:
    office.opened()
    office.released()
    published = office.published()
    named = done.index(("named", published))
    before = {path for what, path in done[:named] if what == "synced" and "published" in path.parts}
    assert {path.name for path in before} == {"published", *FILES}
    assert ("synced", published.parent.resolve()) in done[named:], "the name itself"


@pytest.mark.slow
def test_everybody_reads_what_is_published_whatever_the_mask_of_the_process(office: Office) -> None:
    office.opened()
    mask = os.umask(0o077)
    try:
        office.released()
    finally:
        os.umask(mask)
    published = office.published()
    assert {path.name: path.stat().st_mode & 0o777 for path in published.iterdir()} == dict.fromkeys(FILES, 0o644)
    assert {folder.stat().st_mode & 0o777 for folder in (published, published.parent, published.parents[1])} == {0o755}


def test_the_second_of_two_publications_is_told_and_the_files_of_the_first_stay(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.json").write_text(name)
    published = tmp_path / "public" / "wards" / "period=all" / "revision=1"
    assert [move_into_place(tmp_path / name, published) for name in ("first", "second")] == [True, False]
    assert (published / "audit.json").read_text() == "first"
