"""The mark on the card of a withdrawn publication: one block of HTML, removed again to check the digest of the card."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

BEFORE = '<main id="main">'
WITHDRAWN = '<section aria-labelledby="withdrawn"'  # how the mark begins


def marked(card: str, audit: Mapping[str, Any]) -> str:
    """The card with one mark of the withdrawal that its audit names, at the top of its content.

    Args:
        card: the page's HTML, marked already or not.
        audit: with `withdrawn`.
    """
    return unmarked(card, audit).replace(BEFORE, BEFORE + _mark(audit), 1)


def unmarked(card: str, audit: Mapping[str, Any]) -> str:
    """The card as it was published.

    Args:
        card: the page's HTML, marked or not.
        audit: with `withdrawn`, as when the card was marked.
    """
    return card.replace(BEFORE + _mark(audit), BEFORE, 1)


def _mark(audit: Mapping[str, Any]) -> str:
    withdrawn = audit["withdrawn"]
    return (
        f'{WITHDRAWN} role="alert"><h2 id="withdrawn">Withdrawn: do not use</h2>'
        f"<p><strong>This publication was taken back on {escape(withdrawn['at'][:10])}: "
        f"<bdi>{escape(withdrawn['reason'])}</bdi>.</strong> It is no longer in the catalogue.</p></section>"
    )
