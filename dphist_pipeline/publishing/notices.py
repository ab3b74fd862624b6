"""Notices at the top of cards: a publication was withdrawn, or a later revision of its period is published.

They follow the audit and `current.json`, and are set, changed or taken away whenever the catalogue is built. A notice
is found by its structure, never by its words, so that its words may change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from dphist_pipeline.base.languages.texts import days_text, gettext, in_language

_TOP = '<main id="main">'
_NOTICES = re.compile(
    rf'{re.escape(_TOP)}(?:<section aria-labelledby="(?:withdrawn|superseded)"[^>]*>.*?</section>)*', re.DOTALL
)
_LANGUAGE = re.compile(r'<html lang="([a-z]{2})">')


def with_notice(
    page: str, audit: Mapping[str, Any], later: Mapping[str, Any] | None = None, to_period: str = "../"
) -> str:
    """A page with the one notice that its publication needs, in place of any that it has, in its own language.

    Args:
        audit: of the publication; an empty one and no `later` take every notice away.
        later: the audit of the revision that took its place, as far as it can be read; it has `revision`.
        to_period: from the page to the folder of the period.
    """
    spoken = _LANGUAGE.search(page)
    with in_language(spoken[1] if spoken is not None else ""):
        if "withdrawn" in audit:
            notice = _withdrawal_notice(audit["withdrawn"])
        else:
            notice = _supersession(later, to_period) if later is not None else ""
    return _NOTICES.sub(lambda _: _TOP + notice, page, count=1)


def _withdrawal_notice(note: Mapping[str, Any]) -> str:
    heading, catalogue = gettext("Withdrawn: do not use"), gettext("It is no longer in the catalogue.")
    notice = gettext(
        "This publication was taken back on %(day)s: <bdi>%(reason)s</bdi>.",
        **{"day": escape(days_text(note["at"][:10])), "reason": escape(note["reason"])},
    )
    return (
        f'<section aria-labelledby="withdrawn" role="alert"><h2 id="withdrawn">{heading}</h2>'
        f"<p><strong>{notice}</strong> {catalogue}</p></section>"
    )


def _supersession(later: Mapping[str, Any], to_period: str) -> str:
    revision, escaped = int(later["revision"]), escape(str(later.get("reason") or ""))
    heading = gettext("Superseded by revision %(number)s", number=str(revision))
    notice = gettext(
        'A later revision of this period is published: use <a href="../revision=%(number)s/card.html">revision '
        "%(number)s</a>.",
        number=revision,
    ).replace('href="../', f'href="{to_period}')
    reason = " " + gettext("It was made because: <bdi>%(reason)s</bdi>.", reason=escaped) if escaped else ""
    stay = gettext("The numbers below stay as they were.")
    return (
        f'<section aria-labelledby="superseded" role="note"><h2 id="superseded">{heading}</h2>'
        f"<p>{notice}{reason} {stay}</p></section>"
    )
