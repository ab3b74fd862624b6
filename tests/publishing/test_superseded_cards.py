"""The card of a revision that was replaced says so, and its digest, its SQL and the copy to a bucket go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import pytest
from by_hand import WARD
from carded import Read
from quick_catalogue import build_catalogue

from dphist_pipeline.publishing._published_pages import CARD, mark_superseded
from dphist_pipeline.publishing.bucket_copy import expected_digests
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder, digest_of, read_audit

WEEK = "2026-03-02"
NOTE = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "public"


def publish(public: Path, revision: int, **facts: Any) -> Path:
    return by_hand.publish(public, by_hand.estimate([WARD]), [WARD], period=WEEK, revision=revision, **facts).path


def built(public: Path) -> None:
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    mark_superseded(public, public.parent / "scratch")


def card(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


def test_cards_follow_the_latest_revision_and_keep_their_digest(public: Path) -> None:
    first = publish(public, 1)
    before = card(first)
    built(public)
    assert card(first) == before
    second = publish(public, 2)
    built(public)
    assert "Superseded by revision 2" in card(first) and "Superseded" not in card(second)
    assert read_audit(first)["revision"] == 1
    third = publish(public, 10)
    built(public)
    assert card(first).count("Superseded by") == 1 and "revision 10" in card(first) and "revision 10" in card(second)
    PublishedFolder(third).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    assert "Superseded by revision 2" in card(first) and "Superseded" not in card(second) + card(third)
    PublishedFolder(second).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    assert (
        card(first) == before
        and PublishedFolder(second).is_marked_withdrawn()
        and PublishedFolder(third).is_marked_withdrawn()
    )


def test_a_superseded_card_can_be_withdrawn_and_is_still_checked(public: Path) -> None:
    first, _ = publish(public, 1), publish(public, 2)
    built(public)
    PublishedFolder(first).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    assert PublishedFolder(first).is_marked_withdrawn() and "withdrawn" in read_audit(first)
    built(public)
    assert card(first).count("Withdrawn: do not use") == 1


@pytest.mark.parametrize("altered", ["<b>more</b>", "&", "</p>"])
def test_nothing_hides_in_a_mark(public: Path, altered: str) -> None:
    first, _ = publish(public, 1), publish(public, 2)
    built(public)
    marked = card(first)
    (first / CARD).write_text(marked.replace("The numbers below stay", f"{altered}The numbers below stay"))
    with pytest.raises(PublishedFilesDamaged, match=r"card\.html"):
        read_audit(first)
    (first / CARD).write_text(marked.replace("revision=2/", "revision=2x/"))
    with pytest.raises(PublishedFilesDamaged, match=r"card\.html"):
        read_audit(first)


def test_a_mark_tells_the_reason_of_the_later_revision_and_no_other_words(public: Path, tmp_path: Path) -> None:
    first, _ = publish(public, 1), publish(public, 2, reason="<late> files & more")
    built(public)
    marked = card(first)
    assert "It was made because: <bdi>&lt;late&gt; files &amp; more</bdi>." in marked
    assert read_audit(first)["revision"] == 1
    copied = tmp_path / "elsewhere" / "revision=1"
    shutil.copytree(first, copied)
    assert read_audit(copied)["revision"] == 1
    (first / CARD).write_text(marked.replace("files &amp; more", "files"), encoding="utf-8")
    with pytest.raises(PublishedFilesDamaged, match=r"card\.html"):
        read_audit(first)
    (first / CARD).write_text(marked, encoding="utf-8")
    publish(public, 3)
    built(public)
    assert "because:" not in card(first) and "revision 3" in card(first)


def test_a_marked_card_is_sent_as_it_is_now(public: Path) -> None:
    first, _ = publish(public, 1), publish(public, 2)
    built(public)
    path = f"{first.relative_to(public)}/{CARD}"
    assert expected_digests(public, first)[path] == digest_of(first / CARD)


@pytest.mark.slow
def test_the_sql_of_a_superseded_card_gives_its_own_revision(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [publish(public, 1), publish(public, 2)]
    build_catalogue(public, public.parent / "scratch")
    for revision, folder in enumerate(folders, 1):
        sql = next(words for words in Read(card(folder)).words if "ATTACH" in words)
        monkeypatch.chdir(folder)
        attach, *asked, _ = [statement for statement in sql.split(";") if statement.strip()]
        with duckdb.connect() as connection:
            connection.execute(attach)
            for statement in asked:
                found = connection.sql(statement)
                place = found.columns.index("revision")
                rows = found.fetchall()
                assert rows and {row[place] for row in rows} == {revision}, statement
