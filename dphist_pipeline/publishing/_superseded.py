"""The text of the mark on the card of a revision that a later one has replaced."""

from __future__ import annotations

import re

from dphist_pipeline.publishing.withdrawal import BEFORE, WITHDRAWN

_MARK = (
    '<section aria-labelledby="superseded" role="note"><h2 id="superseded">Superseded by revision {revision}</h2>'
    '<p>A later revision of this period is published: use <a href="../revision={revision}/card.html">revision '
    "{revision}</a>. The numbers below stay as they were.</p></section>"
)
_MARKED = re.compile(re.escape(BEFORE + _MARK).replace(re.escape("{revision}"), "([0-9]{1,9})"))


def superseded(card: str, revision: int) -> str:
    """The card with one mark at the top of its content; a withdrawn one says enough.

    Args:
        card: the page's HTML, marked already or not.
    """
    if BEFORE + WITHDRAWN in card:
        return card
    return unmarked(card).replace(BEFORE, BEFORE + _MARK.format(revision=revision), 1)


def unmarked(card: str) -> str:
    """The card without that mark.

    Args:
        card: the page's HTML, marked or not.
    """
    return _MARKED.sub(BEFORE, card, count=1)
