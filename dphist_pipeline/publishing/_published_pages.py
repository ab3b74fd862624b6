"""Pages of a publication after it was published: marks at the top of cards, and pages that were rendered anew.

A mark says that a publication was withdrawn, or that a later revision of its period is published. It is one block of
HTML, with what audits say and nothing else, and the digest of a card is computed without it. It is found by its exact
text, so its texts are part of the format, in every language. Marks of later revisions follow `current.json`: they are
set, changed or taken off whenever the catalogue is built.

`pages.json` has the digests of pages that were rendered anew; the audit keeps those of the first. The file is written
before the pages are replaced, and keeps the digests of earlier renderings: whenever a run is killed, every page has a
digest that the audit or this file names. The ledger holds the digest of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

from dphist_pipeline.files import replace_public
from dphist_pipeline.languages.texts import days_text, gettext, in_language
from dphist_pipeline.publishing.public_names import CURRENT

CARD = "card.html"
PAGES = (CARD, "deployment.yaml")  # publications of older versions have none
RENDERED = "pages.json"
_FORM = 1
_PAGE = re.compile(r"(?:tables/[a-z0-9_]{1,200}/)?card\.html|deployment\.yaml", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)

_TOP = '<main id="main">'
_WITHDRAWN = '<section aria-labelledby="withdrawn"'  # how the mark begins
_SUPERSEDED = '<section aria-labelledby="superseded" role="note"><h2 id="superseded">'
_LANGUAGE = re.compile(r'<html lang="([a-z]{2})">')
_ANY_REASON = "[^<>]{1,9999}"


def marked_withdrawn(card: str, audit: Mapping[str, Any]) -> str:
    """The card with one mark of the withdrawal that its audit names, at the top of its content."""
    with in_language(_language_of(card)):
        return _unmarked_withdrawn(card, audit).replace(_TOP, _TOP + _withdrawal(audit), 1)


def _language_of(card: str) -> str:
    """The language of a card, in which its marks are told too; one that was made in another language keeps it."""
    match = _LANGUAGE.search(card)
    return match[1] if match is not None else ""


def mark_superseded(public: Path, scratch: Path) -> None:
    """Marks the cards of revisions that are not the latest of their period by `current.json`, and no others.

    One process does that at a time.
    """
    for current in sorted(public.glob(f"*/{CURRENT}")):
        latest = {entry["period"]: int(entry["revision"]) for entry in json.loads(current.read_bytes())["periods"]}
        for period in current.parent.glob("period=*"):
            cards = [card for card in period.glob(f"revision=*/{CARD}") if re.fullmatch(r"[0-9]+", _number(card))]
            newest = latest.get(period.name.removeprefix("period="), 0)
            for card in cards if len(cards) > 1 else []:
                text, folder = card.read_text(encoding="utf-8"), card.parent
                older = int(_number(card)) < newest
                with in_language(_language_of(text)):
                    marked = _marked_superseded(text, newest, folder) if older else _unmarked_superseded(text, folder)
                if marked != text:
                    replace_public(card, marked, scratch)


def without_marks(card: str, audit: Mapping[str, Any], published: Path) -> str:
    """A card as it was published or rendered, without marks of a withdrawal or of a later revision.

    The audit is the card's; other revisions of the period lie beside its folder.
    """
    with in_language(_language_of(card)):
        return _unmarked_superseded(_unmarked_withdrawn(card, audit) if "withdrawn" in audit else card, published)


def _unmarked_withdrawn(card: str, audit: Mapping[str, Any]) -> str:
    return card.replace(_TOP + _withdrawal(audit), _TOP, 1)


def _withdrawal(audit: Mapping[str, Any]) -> str:
    withdrawn = audit["withdrawn"]
    heading, catalogue = gettext("Withdrawn: do not use"), gettext("It is no longer in the catalogue.")
    notice = gettext(
        "This publication was taken back on %(day)s: <bdi>%(reason)s</bdi>.",
        **{"day": escape(days_text(withdrawn["at"][:10])), "reason": escape(withdrawn["reason"])},
    )
    return (
        f'{_WITHDRAWN} role="alert"><h2 id="withdrawn">{heading}</h2>'
        f"<p><strong>{notice}</strong> {catalogue}</p></section>"
    )


def _marked_superseded(card: str, revision: int, folder: Path) -> str:
    """The card, marked already or not, with one mark at the top of its content; a withdrawn one says enough.

    The audit of the later revision, beside the folder of the card, has the reason.
    """
    if _TOP + _WITHDRAWN in card:
        return card
    mark = _TOP + _supersession(revision, escape(_reason(folder, revision) or ""))
    return _unmarked_superseded(card, folder).replace(_TOP, mark, 1)


def _unmarked_superseded(card: str, folder: Path) -> str:
    """The card without the mark of a later revision, which has the reason in that one's audit or, if older, none.

    A folder that was copied alone has no such audit: then any words without tags pass as a reason.
    """
    heading = re.escape(f"{_TOP}{_SUPERSEDED}{_superseded_by('NUMBER')}<").replace("NUMBER", "([0-9]{1,9})")
    if (mark := re.search(heading, card)) is None:
        return card
    revision = int(mark[1])
    reason = _reason(folder, revision)
    words = _ANY_REASON if reason is None else re.escape(escape(reason))
    with_words, without = (re.escape(_TOP + _supersession(revision, words)) for words in ("WORDS", ""))
    return re.sub(f"{with_words.replace('WORDS', words)}|{without}", _TOP, card, count=1)


def _reason(folder: Path, revision: int) -> str | None:
    """Why a revision of the same period was made, empty if it was not told; None if its audit cannot be read."""
    try:
        reason = json.loads((folder.parent / f"revision={revision}" / "audit.json").read_bytes()).get("reason", "")
    except (OSError, ValueError, AttributeError):
        return None
    return reason if isinstance(reason, str) else ""


def _supersession(revision: int, escaped: str) -> str:
    """The mark of a later revision; `escaped` is its reason, empty where none was told."""
    notice = gettext(
        'A later revision of this period is published: use <a href="../revision=%(number)s/card.html">revision '
        "%(number)s</a>.",
        number=revision,
    )
    reason = " " + gettext("It was made because: <bdi>%(reason)s</bdi>.", reason=escaped) if escaped else ""
    stay = gettext("The numbers below stay as they were.")
    return f"{_SUPERSEDED}{_superseded_by(str(revision))}</h2><p>{notice}{reason} {stay}</p></section>"


def _superseded_by(revision: str) -> str:
    return gettext("Superseded by revision %(number)s", number=revision)


def _number(card: Path) -> str:
    return card.parent.name.removeprefix("revision=")


@dataclass(frozen=True)
class Rendering:
    """One run that rendered pages of a publication anew, on a day as ISO text.

    `pages`: SHA-256 by path in the folder of the publication, without marks of a withdrawal or a later revision.
    """

    version: str
    day: str
    pages: dict[str, str]

    def in_words(self, language: str) -> str:
        """When and by which version pages were rendered, for the pages themselves in their language."""
        with in_language(language):
            return gettext("on %(day)s by dphist-pipeline %(version)s", day=days_text(self.day), version=self.version)


def renderings(published: Path) -> tuple[Rendering, ...]:
    """Every rendering of a publication (not of a table) after the first, the newest last.

    Raises:
        ValueError: the file is not one of ours.
    """
    path = published / RENDERED
    if not path.exists():
        return ()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        content = json.loads(path.read_bytes())
        read = tuple(Rendering(**rendering) for rendering in content["renderings"])
        if content["form"] == _FORM and read and all(map(_is_ours, read)):
            return read
    raise ValueError("not a list of pages")


def content_of(history: tuple[Rendering, ...]) -> bytes:
    """The bytes of the file."""
    return (
        json.dumps({"form": _FORM, "renderings": [asdict(rendering) for rendering in history]}, indent=1).encode()
        + b"\n"
    )


def _is_ours(rendering: Rendering) -> bool:
    pages: dict[Any, Any] = rendering.pages
    date.fromisoformat(rendering.day)
    return (
        isinstance(rendering.version, str)
        and len(rendering.version) <= 50
        and all(_PAGE.fullmatch(path) and _SHA256.fullmatch(digest) for path, digest in pages.items())
    )
