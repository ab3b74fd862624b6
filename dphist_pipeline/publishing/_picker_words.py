"""The words of the picker on a release's page, which its script takes from the page, so that it speaks its language."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages.texts import LANGUAGES, language, mark_text, translate
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.estimates.row_quality import CAP_TEXTS
from dphist_pipeline.publishing._card_cover import BY_CHANCE

# The English texts of `picker.js`, which are the keys by which it asks for them.
TEXTS = (
    mark_text("%(low)s to %(high)s"),
    mark_text("%(first)s, up to %(last)s"),
    mark_text("The numbers have changed since this page was opened. Load the page again."),
    mark_text("A file of this page is missing. Copy the whole folder of the release, with all that lies in it."),
    mark_text("this table has %(number)s cells"),
    mark_text("the axes of this table have too many values"),
    mark_text("these are %(number)s periods"),
    mark_text("another table of this family tells less noise, and is too large"),
    mark_text("the axes were others in one of these periods"),
    mark_text("%(number)s megabytes would be loaded"),
    mark_text("No cell has all that you chose."),
    mark_text("all records"),
    mark_text("all"),
    mark_text("find"),
    mark_text("first"),
    mark_text("last"),
    mark_text("%(number)s chosen"),
    mark_text("none chosen: all count"),
    mark_text("the first %(most)s of %(all)s are listed"),
    mark_text(" and %(number)s more"),
    mark_text("Period"),
    mark_text("Periods"),
    mark_text("95 %% interval"),
    mark_text("Cells"),
    mark_text("Reliability"),
    mark_text("Whole number"),
    mark_text("as a whole number; the estimate is %(number)s"),
    mark_text("%(number)s: never negative; it has no interval of its own"),
    mark_text(
        "stands first: in this table most cells cannot be told from empty ones, or totals are known. It is never "
        "negative, and has no interval of its own"
    ),
    mark_text("below %(limit)s"),
    mark_text("Note"),
    mark_text("Sum, 95 %%"),
    mark_text("Table"),
    mark_text("Table of the chosen periods"),
    mark_text("The same question in SQL"),
    mark_text("This page cannot answer that: %(why)s. Ask it in SQL, with catalog.duckdb from the first page:"),
    mark_text("Show the answer"),
    mark_text("What do you want to know?"),
    mark_text("a sum"),
    mark_text("a sum, of one or more periods"),
    mark_text("whether two periods differ, and by how much"),
    mark_text("whether two choices differ, and by how much"),
    mark_text("First choice"),
    mark_text("Second choice"),
    mark_text("Choice"),
    mark_text("Table of both choices"),
    mark_text("Both choices are the same. Choose another in one of them."),
    mark_text(
        "such counts vary by themselves; this allows for people who come independently of each other, each with up to "
        "%(number)s rows in a period"
    ),
    mark_text("such counts vary by themselves; this allows for people who come independently of each other"),
    mark_text("earlier"),
    mark_text("later"),
    mark_text(" or "),
    mark_text("%(number)s, between %(low)s and %(high)s with 95 %% confidence"),
    mark_text("%(what)s: %(rest)s"),
    mark_text("%(later)s compared with %(earlier)s"),
    mark_text("%(days)s (%(number)s periods)"),
    mark_text("No change is told beside a figure below %(limit)s."),
    mark_text("no lower limit"),
    mark_text("no upper limit"),
    mark_text("%(name)s: “to” lies below “from”. Choose another end."),
    mark_text("(missing, unreadable or undeclared)"),
    mark_text("Choose two different periods."),
    mark_text("The later period lies before the earlier one. Choose another."),
    mark_text("The last period lies before the first one. Choose another."),
    mark_text("Counted"),
    mark_text("at most one row of each %(unit)s is counted in a period"),
    mark_text("at most %(number)s %(counted)s of each %(unit)s are counted in a period"),
    mark_text("%(counted)s, not people: the same %(unit)s may be in several of these periods"),
    mark_text("%(days)s: revision %(number)s"),
    mark_text("Revised"),
    mark_text("%(number)s: the parts of the published table that were added up"),
    mark_text("Yes, more: noise and chance do not explain a difference of this size."),
    mark_text("Yes, fewer: noise and chance do not explain a difference of this size."),
    mark_text("No clear difference: noise alone can explain a difference of this size."),
    mark_text("%(number)s, between %(low)s and %(high)s by noise and chance, with 95 %% confidence"),
    mark_text("By noise alone"),
    mark_text("Noise"),
    mark_text("was added on purpose, to protect people"),
    mark_text("Chance"),
    mark_text(
        "such counts vary by themselves from one period to the next; this allows for people who come independently of "
        "each other, each with up to %(number)s rows in a period"
    ),
    mark_text(
        "such counts vary by themselves from one period to the next; this allows for people who come independently of "
        "each other"
    ),
    mark_text("± %(half)s is the noise alone."),
    *CAP_TEXTS,
    *BY_CHANCE,
    mark_text("This is said of all cells, not of these alone."),
    mark_text("revision %(number)s"),
    mark_text("Copy this answer as a sentence"),
    mark_text("Copied"),
    mark_text("Do not add up the intervals of two answers: ask for the sum."),
    mark_text("Start over"),
    mark_text("You have changed the question: this is still the answer to the one before."),
    mark_text("The sum could not be worked out (%(why)s)."),
    mark_text("%(number)s day between them is in no published period, and not in this sum"),
    mark_text("%(number)s days between them are in no published period, and not in this sum"),
    *(RELIABILITY.legend[word] for word in RELIABILITY.words),
    *(notes.NO_INTERVAL, notes.CUTS_GROUP, notes.SMOOTHED, notes.BELOW, notes.KNOWN, notes.BEYOND),
)
# Texts that other modules mark, with their contexts.
IN_CONTEXT = {
    **{"good": "reliability", "fair": "reliability", "poor": "reliability", "known": "reliability"},
    **{"from": "column", "to": "column", "other": "category"},
}


def picker_words(about: About) -> dict[str, Any]:
    """What the script takes from the page: its texts and the signs of numbers in the language of the page.

    The publisher's name and notice stand beside an answer.
    """
    spoken = language()
    stated = {name: text for name in ("publisher", "notice") if (text := getattr(about, name))}
    if spoken is LANGUAGES["en"]:
        return {"texts": {}, **stated}
    texts = {text: translate(text) for text in TEXTS}
    texts |= {text: translate(text, context) for text, context in IN_CONTEXT.items()}
    return {"texts": texts, "thousands": spoken.thousands, "decimal": spoken.decimal, **stated}
