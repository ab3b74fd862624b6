"""A page that was made before the next period, or before a revision of the one before, is no forged page."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import by_hand
import numpy as np
import pytest
from by_hand import WARD

from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import CARD, PublishedFolder, read_audit
from dphist_pipeline.publishing.published_pages import PublishedPages
from dphist_pipeline.publishing.release_files import write_release
from dphist_pipeline.publishing.surroundings import surroundings_of

WEEKS = [(f"2026-03-{day:02d}", f"2026-03-{day + 7:02d}") for day in (2, 9, 16)]
NOTE = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}


def publish(public: Path, week: int, revision: int = 1, total: int = 100) -> Path:
    """A publication whose card tells of what is published by then, as a release writes it."""
    start, end = WEEKS[week]
    days = {"period_start": f"{start}T00:00:00", "period_end": f"{end}T00:00:00", "spec_digest": "0" * 64}
    made = by_hand.estimate([WARD], np.full(3, float(total)))

    def around(estimate, scales, facts, staging) -> None:  # type: ignore[no-untyped-def]
        write_release(estimate, scales, facts, staging, surroundings_of(public / "weekly", facts))

    with mock.patch.object(by_hand, "write_release", around):
        folder = by_hand.publish(public, made, [WARD], "weekly", start, revision, pictures=True, **days).path
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    DerivedFiles(public).set_notices(public.parent / "scratch")
    return folder


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "public"


def pages(folder: Path) -> PublishedPages:
    return PublishedPages.read(folder, read_audit(folder))


def test_what_came_later_makes_a_card_outdated_and_not_altered(public: Path) -> None:
    first, second = publish(public, 0), publish(public, 1)
    publish(public, 2)
    # No card names a later period, so none has to be made anew with each.
    assert not pages(first).outdated_pages() and not pages(second).outdated_pages()
    revised = publish(public, 0, revision=2, total=5000)
    assert [*pages(second).outdated_pages()] == [CARD] and not pages(revised).outdated_pages()
    PublishedFolder(revised).mark_withdrawn(NOTE, public.parent / "scratch")
    PublishedFolder(first).mark_withdrawn(NOTE, public.parent / "scratch")
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    DerivedFiles(public).set_notices(public.parent / "scratch")
    for folder in (first, second, revised):
        assert not pages(folder).altered_pages()


def test_a_card_that_no_revision_before_it_explains_is_altered(public: Path) -> None:
    publish(public, 0)
    second = publish(public, 1)
    card = (second / CARD).read_text(encoding="utf-8")
    assert "300" in card
    (second / CARD).write_text(card.replace("300", "301"), encoding="utf-8")
    assert pages(second).altered_pages() == {CARD}
