"""The text of the mark on the card of a revision that a later one has replaced."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from dphist_pipeline.publishing.withdrawal import BEFORE, WITHDRAWN

_MARK = (
    '<section aria-labelledby="superseded" role="note"><h2 id="superseded">Superseded by revision {revision}</h2>'
    '<p>A later revision of this period is published: use <a href="../revision={revision}/card.html">revision '
    "{revision}</a>.{why} The numbers below stay as they were.</p></section>"
)
_WHY = " It was made because: <bdi>{reason}</bdi>."
_BEGINS = re.compile(re.escape(BEFORE + _MARK.partition("{")[0]) + "([0-9]{1,9})<")
_ANY_REASON = "[^<>]{1,9999}"


def superseded(card: str, revision: int, folder: Path) -> str:
    """The card with one mark at the top of its content; a withdrawn one says enough.

    Args:
        card: the page's HTML, marked already or not.
        revision: the later one, whose audit has the reason.
        folder: that of the card, with other revisions of the period beside it.
    """
    if BEFORE + WITHDRAWN in card:
        return card
    mark = BEFORE + _mark(revision, escape(_reason(folder, revision) or ""))
    return unmarked(card, folder).replace(BEFORE, mark, 1)


def unmarked(card: str, folder: Path) -> str:
    """The card without that mark, which may have the reason in the later revision's audit, or none, as older marks.

    A folder that was copied alone has no such audit: then any words without tags pass as a reason.
    """
    if (found := _BEGINS.search(card)) is None:
        return card
    revision = int(found[1])
    reason = _reason(folder, revision)
    words = _ANY_REASON if reason is None else re.escape(escape(reason))
    with_words, without = (re.escape(BEFORE + _mark(revision, known)) for known in ("WORDS", ""))
    return re.sub(f"{with_words.replace('WORDS', words)}|{without}", BEFORE, card, count=1)


def _reason(folder: Path, revision: int) -> str | None:
    """Why a revision of the same period was made, empty if it was not told; None if its audit cannot be read."""
    try:
        reason = json.loads((folder.parent / f"revision={revision}" / "audit.json").read_bytes()).get("reason", "")
    except (OSError, ValueError, AttributeError):
        return None
    return reason if isinstance(reason, str) else ""


def _mark(revision: int, escaped: str) -> str:
    return _MARK.format(revision=revision, why=_WHY.format(reason=escaped) if escaped else "")
