"""Notices at the top of cards: they follow audits and `current.json`, in three languages, and follow no link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import pytest
from by_hand import WARD
from carded import Read
from quick_catalogue import build_catalogue

from dphist_pipeline.base.languages.texts import LANGUAGES
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.notices import with_notice
from dphist_pipeline.publishing.published_files import CARD, PublishedFolder

WEEK = "2026-03-02"
NOTE = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
HOSTILE = '<late> files & </section><main id="main">'
TOLD = {
    "en": ("Withdrawn: do not use", "taken back on 2026-03-20", "Superseded by revision 2", "It was made because"),
    "de": ("Zurückgezogen", "am 20.03.2026", "Ersetzt durch Revision 2", "Grund der Revision"),
    "fr": ("Retiré", "le 20/03/2026", "Remplacée par la révision 2", "Motif de la révision"),
}


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "public"


def publish(public: Path, revision: int, **facts: Any) -> Path:
    return by_hand.publish(public, by_hand.estimate([WARD]), [WARD], period=WEEK, revision=revision, **facts).path


def built(public: Path) -> None:
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    DerivedFiles(public).set_notices(public.parent / "scratch")


def card(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


def test_cards_follow_the_latest_revision_that_stands(public: Path) -> None:
    first = publish(public, 1)
    before = card(first)
    built(public)
    assert card(first) == before
    second = publish(public, 2)
    built(public)
    assert "Superseded by revision 2" in card(first) and "Superseded" not in card(second)
    third = publish(public, 10)
    built(public)
    assert card(first).count("Superseded by") == 1 and "revision 10" in card(first) and "revision 10" in card(second)
    PublishedFolder(third).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    assert "Superseded by revision 2" in card(first) and "Superseded" not in card(second) + card(third)
    assert card(third).count("Withdrawn: do not use") == 1
    PublishedFolder(second).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    assert card(first) == before and card(second).count("Withdrawn: do not use") == 1


def test_a_superseded_card_that_is_withdrawn_says_that_alone(public: Path) -> None:
    first, _ = publish(public, 1), publish(public, 2)
    built(public)
    PublishedFolder(first).mark_withdrawn(NOTE, public.parent / "scratch")
    built(public)
    once = card(first)
    assert once.count("Withdrawn: do not use") == 1 and "Superseded" not in once
    built(public)
    assert card(first) == once


@pytest.mark.parametrize("language", TOLD)
def test_a_notice_is_told_in_the_language_of_the_card_and_comes_off_whatever_its_words(language: str) -> None:
    withdrawn, day, superseded, because = TOLD[language]
    page = f'<html lang="{language}"><main id="main">the card</main></html>'
    told = with_notice(page, {"withdrawn": {**NOTE, "reason": HOSTILE}})
    assert withdrawn in told and day in told and HOSTILE not in told
    replaced = with_notice(told.replace(day, "in other words"), {}, {"revision": 2, "reason": HOSTILE})
    assert superseded in replaced and because in replaced and 'href="../revision=2/card.html"' in replaced
    assert withdrawn not in replaced and HOSTILE not in replaced
    assert because not in with_notice(page, {}, {"revision": 2})
    assert with_notice(replaced, {}) == page
    assert set(TOLD) == set(LANGUAGES)


def test_the_page_of_a_familys_table_leads_to_the_card_of_the_later_revision(public: Path) -> None:
    folder, page = publish(public, 1), '<html lang="en"><main id="main">a table</main></html>'
    table = folder / "tables" / "ward"
    table.mkdir(parents=True)
    (table / CARD).write_text(page)
    publish(public, 2)
    built(public)
    assert 'href="../../../revision=2/card.html"' in card(table)
    assert (table / "../../../revision=2" / CARD).is_file()


@pytest.mark.parametrize("planted", ["link", "linked folder", "pipe"])
def test_no_text_of_another_file_is_published_by_a_notice(public: Path, tmp_path: Path, planted: str) -> None:
    folder = publish(public, 1)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / CARD).write_text('<html lang="en"><main id="main">c4n4ry</main></html>')
    place = folder / CARD
    if planted == "linked folder":
        place = folder / "tables"
        place.mkdir()
        (place / "ward").symlink_to(secret)
    else:
        place.unlink()
        place.symlink_to(secret / CARD) if planted == "link" else os.mkfifo(place)
    publish(public, 2)
    built(public)
    assert "Superseded" not in (secret / CARD).read_text()
    assert planted == "linked folder" or not place.is_file() or place.is_symlink()


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
