"""Marks on cards, byte by byte in every language: a mark that was set once must be found again, for ever.

The digest of a card is computed without its marks, which are found by remaking their exact text. So these texts and the
days in them are part of the format, unlike all other texts of a page: one that is corrected in `languages/*.po` leaves
every card that was marked before with a digest that nobody published. Whoever must change one has `published_pages`
take off the old text too, and adds the new one here beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dphist_pipeline.languages.texts import LANGUAGES
from dphist_pipeline.publishing._published_pages import CARD, mark_superseded, marked_withdrawn, without_marks

AUDIT = {"withdrawn": {"at": "2026-03-01T00:00:00Z", "reason": "wrong & late"}}
TOP, WITHDRAWN = '<main id="main">', '<section aria-labelledby="withdrawn" role="alert"><h2 id="withdrawn">'
SUPERSEDED = '<section aria-labelledby="superseded" role="note"><h2 id="superseded">'
# By language: the mark of a withdrawal, that of a later revision without its reason, and the reason.
MARKS = {
    "en": (
        f"{WITHDRAWN}Withdrawn: do not use</h2><p><strong>This publication was taken back on 2026-03-01: <bdi>wrong "
        "&amp; late</bdi>.</strong> It is no longer in the catalogue.</p></section>",
        f"{SUPERSEDED}Superseded by revision 2</h2><p>A later revision of this period is published: use "
        '<a href="../revision=2/card.html">revision 2</a>.REASON The numbers below stay as they were.</p></section>',
        " It was made because: <bdi>late &amp; wrong</bdi>.",
    ),
    "de": (
        f"{WITHDRAWN}Zurückgezogen: nicht verwenden</h2><p><strong>Diese Veröffentlichung wurde am 01.03.2026 "
        "zurückgezogen: <bdi>wrong &amp; late</bdi>.</strong> Sie steht nicht mehr im Katalog.</p></section>",
        f"{SUPERSEDED}Ersetzt durch Revision 2</h2><p>Eine spätere Revision dieses Zeitraums ist veröffentlicht: "
        'Verwenden Sie <a href="../revision=2/card.html">Revision 2</a>.REASON Die Zahlen unten bleiben, wie sie '
        "waren.</p></section>",
        " Grund der Revision: <bdi>late &amp; wrong</bdi>.",
    ),
    "fr": (
        f"{WITHDRAWN}Retiré\u00a0: ne pas utiliser</h2><p><strong>Cette publication a été retirée le 01/03/2026\u00a0: "
        "<bdi>wrong &amp; late</bdi>.</strong> Elle n\u2019est plus dans le catalogue.</p></section>",
        f"{SUPERSEDED}Remplacée par la révision 2</h2><p>Une révision ultérieure de cette période est publiée\u00a0: "
        'utilisez la <a href="../revision=2/card.html">révision 2</a>.REASON Les nombres ci-dessous restent tels '
        "qu\u2019ils étaient.</p></section>",
        " Motif de la révision\u00a0: <bdi>late &amp; wrong</bdi>.",
    ),
}


def card(language: str, mark: str = "") -> str:
    return f'<html lang="{language}">{TOP}{mark}the card</main></html>'


def test_every_language_has_its_marks_here() -> None:
    assert set(MARKS) == set(LANGUAGES)


@pytest.mark.parametrize("language", MARKS)
def test_a_mark_of_a_withdrawal_stays_as_it_is(language: str, tmp_path: Path) -> None:
    marked = card(language, MARKS[language][0])
    assert marked_withdrawn(card(language), AUDIT) == marked
    assert without_marks(marked, AUDIT, tmp_path) == card(language)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("language", MARKS)
def test_a_mark_of_a_later_revision_stays_as_it_is(language: str, told: bool, tmp_path: Path) -> None:
    public, _, mark, why = tmp_path / "public" / "wards", *MARKS[language]
    older, newer = (public / "period=all" / f"revision={number}" for number in (1, 2))
    for folder in (older, newer, tmp_path / "scratch"):
        folder.mkdir(parents=True)
        (folder / CARD).write_text(card(language), encoding="utf-8")
    (newer / "audit.json").write_text(json.dumps({"reason": "late & wrong"} if told else {}))
    (public / "current.json").write_text(json.dumps({"periods": [{"period": "all", "revision": 2}]}))
    marked = card(language, mark.replace("REASON", why if told else ""))
    mark_superseded(public.parent, tmp_path / "scratch")
    assert (older / CARD).read_text(encoding="utf-8") == marked
    assert without_marks(marked, {}, older) == card(language)
