"""`current.json`: what a reader of plain Parquet finds, through revisions, withdrawals and crashes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import by_hand
import pytest
from by_hand import WARD
from office import Office

from dphist_pipeline.publishing.derived_files import DerivedFiles, _is_current
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder, read_audit

WEEKS = ("2026-03-02", "2026-03-09")


def publish(public: Path, period: str = WEEKS[0], revision: int = 1) -> Path:
    return by_hand.publish(public, by_hand.estimate([WARD]), [WARD], period=period, revision=revision).path


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def listed(public: Path, scratch: Path) -> list[tuple[str, int]]:
    DerivedFiles(public).write_current_files(scratch)
    content = json.loads((public / "weekly" / "current.json").read_bytes())
    assert (content["schema_version"], content["release"]) == (1, "weekly")
    return [(entry["period"], entry["revision"]) for entry in content["periods"]]


def withdraw(folder: Path, scratch: Path) -> None:
    PublishedFolder(folder).mark_withdrawn({"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}, scratch)


def test_it_lists_the_files_of_the_latest_revisions_with_their_digests(tmp_path: Path, scratch: Path) -> None:
    public = tmp_path / "public"
    publish(public)
    publish(public, WEEKS[1])
    assert listed(public, scratch) == [(WEEKS[0], 1), (WEEKS[1], 1)]
    folder = publish(public, WEEKS[0], 2)
    publish(public, WEEKS[0], 10)
    folder.with_name("revision=10").rename(folder.with_name("revision=10.old"))
    assert listed(public, scratch) == [(WEEKS[0], 2), (WEEKS[1], 1)]
    entry = json.loads((public / "weekly" / "current.json").read_bytes())["periods"][0]
    assert entry["audit_digest"] == read_audit(folder)["audit_digest"]
    found = {file["path"]: file["sha256"] for file in entry["files"]}
    assert f"period={WEEKS[0]}/revision=2/histogram.parquet" in found
    for path, digest in found.items():
        assert hashlib.sha256((public / "weekly" / path).read_bytes()).hexdigest() == digest
    assert list(scratch.iterdir()) == []


def test_the_tenth_revision_comes_after_the_ninth(tmp_path: Path, scratch: Path) -> None:
    public = tmp_path / "public"
    for revision in (9, 10):
        publish(public, revision=revision)
    assert listed(public, scratch) == [(WEEKS[0], 10)]


def test_a_withdrawn_period_leaves_it_and_comes_back_by_a_new_revision(tmp_path: Path, scratch: Path) -> None:
    public = tmp_path / "public"
    folder = publish(public)
    publish(public, WEEKS[1])
    assert listed(public, scratch) == [(WEEKS[0], 1), (WEEKS[1], 1)]
    withdraw(folder, scratch)
    assert PublishedFolder(folder).stated_digest == "" and not _is_current(folder)
    assert listed(public, scratch) == [(WEEKS[1], 1)]
    publish(public, revision=2)
    assert listed(public, scratch) == [(WEEKS[0], 2), (WEEKS[1], 1)]
    for period in WEEKS:
        for path in (public / "weekly" / f"period={period}").iterdir():
            if "withdrawn" not in read_audit(path):
                withdraw(path, scratch)
    assert listed(public, scratch) == []


def test_damaged_files_are_not_listed_and_a_damaged_list_is_written_anew(tmp_path: Path, scratch: Path) -> None:
    public = tmp_path / "public"
    folder = publish(public)
    for content in ("", "[]", '{"schema_version": 1, "release": "weekly", "periods": [1]}'):
        (public / "weekly" / "current.json").write_text(content)
        assert not _is_current(folder)
        assert listed(public, scratch) == [(WEEKS[0], 1)]
    assert _is_current(folder)
    damaged = publish(public, WEEKS[1])
    (damaged / "histogram.parquet").write_bytes(b"")
    before = (public / "weekly" / "current.json").read_bytes()
    with pytest.raises(PublishedFilesDamaged, match="2026-03-09"):
        DerivedFiles(public).write_current_files(scratch)
    assert (public / "weekly" / "current.json").read_bytes() == before


def test_publications_that_are_listed_are_not_read_again(tmp_path: Path, scratch: Path) -> None:
    public = tmp_path / "public"
    publish(public)
    DerivedFiles(public).write_current_files(scratch)
    publish(public, WEEKS[1])
    read: list[Path] = []
    DerivedFiles(public).write_current_files(scratch, lambda folder: read.append(folder) or read_audit(folder))
    assert listed(public, scratch) == [(WEEKS[0], 1), (WEEKS[1], 1)]
    assert [folder.parent.name for folder in read] == [f"period={WEEKS[1]}"]


@pytest.mark.slow
def test_it_is_written_by_a_release_and_mended_by_its_replay_and_by_a_withdrawal(office: Office) -> None:
    office.with_release()
    current = office.store / "public" / "wards" / "current.json"
    before = current.read_bytes()
    assert [entry["revision"] for entry in json.loads(before)["periods"]] == [1]
    current.unlink()
    office.released()
    assert current.read_bytes() == before
    assert office.run("withdraw", "wards", "all", "--reason", "wrong source").code == 0
    assert json.loads(current.read_bytes())["periods"] == []
