"""The words of the picker on a release's page, which its script takes from the page, so that it speaks its language."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages.texts import LANGUAGES, language, marked, translated
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.estimates.row_quality import CAP_TEXTS
from dphist_pipeline.publishing._card_cover import BY_CHANCE

# The English texts of `picker.js`, which are the keys by which it asks for them.
TEXTS = (
    marked("%(low)s to %(high)s"),
    marked("%(first)s, up to %(last)s"),
    marked("The numbers have changed since this page was opened. Load the page again."),
    marked("A file of this page is missing. Copy the whole folder of the release, with all that lies in it."),
    marked("this table has %(number)s cells"),
    marked("the axes of this table have too many values"),
    marked("these are %(number)s periods"),
    marked("another table of this family tells less noise, and is too large"),
    marked("the axes were others in one of these periods"),
    marked("%(number)s megabytes would be loaded"),
    marked("No cell has all that you chose."),
    marked("all records"),
    marked("all"),
    marked("find"),
    marked("first"),
    marked("last"),
    marked("%(number)s chosen"),
    marked("none chosen: all count"),
    marked("the first %(most)s of %(all)s are listed"),
    marked(" and %(number)s more"),
    marked("Period"),
    marked("Periods"),
    marked("95 %% interval"),
    marked("Cells"),
    marked("Reliability"),
    marked("Whole number"),
    marked("as a whole number; the estimate is %(number)s"),
    marked("%(number)s: never negative; it has no interval of its own"),
    marked(
        "stands first: in this table most cells cannot be told from empty ones, or totals are known. It is never "
        "negative, and has no interval of its own"
    ),
    marked("below %(limit)s"),
    marked("Note"),
    marked("Sum, 95 %%"),
    marked("Table"),
    marked("Table of the chosen periods"),
    marked("The same question in SQL"),
    marked("This page cannot answer that: %(why)s. Ask it in SQL, with catalog.duckdb from the first page:"),
    marked("Show the answer"),
    marked("What do you want to know?"),
    marked("a sum"),
    marked("a sum, of one or more periods"),
    marked("whether two periods differ, and by how much"),
    marked("whether two choices differ, and by how much"),
    marked("First choice"),
    marked("Second choice"),
    marked("Choice"),
    marked("Table of both choices"),
    marked("Both choices are the same. Choose another in one of them."),
    marked(
        "such counts vary by themselves; this allows for people who come independently of each other, each with up to "
        "%(number)s rows in a period"
    ),
    marked("such counts vary by themselves; this allows for people who come independently of each other"),
    marked("earlier"),
    marked("later"),
    marked(" or "),
    marked("%(number)s, between %(low)s and %(high)s with 95 %% confidence"),
    marked("%(what)s: %(rest)s"),
    marked("%(later)s compared with %(earlier)s"),
    marked("%(days)s (%(number)s periods)"),
    marked("No change is told beside a figure below %(limit)s."),
    marked("no lower limit"),
    marked("no upper limit"),
    marked("%(name)s: “to” lies below “from”. Choose another end."),
    marked("(missing, unreadable or undeclared)"),
    marked("Choose two different periods."),
    marked("The later period lies before the earlier one. Choose another."),
    marked("The last period lies before the first one. Choose another."),
    marked("Counted"),
    marked("at most %(number)s %(counted)s of each %(unit)s are counted in a period"),
    marked("%(counted)s, not people: the same %(unit)s may be in several of these periods"),
    marked("%(days)s: revision %(number)s"),
    marked("Revised"),
    marked("%(number)s: the parts of the published table that were added up"),
    marked("Yes, more: noise and chance do not explain a difference of this size."),
    marked("Yes, fewer: noise and chance do not explain a difference of this size."),
    marked("No clear difference: noise alone can explain a difference of this size."),
    marked("%(number)s, between %(low)s and %(high)s by noise and chance, with 95 %% confidence"),
    marked("By noise alone"),
    marked("Noise"),
    marked("was added on purpose, to protect people"),
    marked("Chance"),
    marked(
        "such counts vary by themselves from one period to the next; this allows for people who come independently of "
        "each other, each with up to %(number)s rows in a period"
    ),
    marked(
        "such counts vary by themselves from one period to the next; this allows for people who come independently of "
        "each other"
    ),
    marked("± %(half)s is the noise alone."),
    *CAP_TEXTS,
    *BY_CHANCE,
    marked("This is said of all cells, not of these alone."),
    marked("revision %(number)s"),
    marked("Copy this answer as a sentence"),
    marked("Copied"),
    marked("Do not add up the intervals of two answers: ask for the sum."),
    marked("Start over"),
    marked("You have changed the question: this is still the answer to the one before."),
    marked("The sum could not be worked out (%(why)s)."),
    marked("%(number)s day between them is in no published period, and not in this sum"),
    marked("%(number)s days between them are in no published period, and not in this sum"),
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
    texts = {text: translated(text) for text in TEXTS}
    texts |= {text: translated(text, context) for text, context in IN_CONTEXT.items()}
    return {"texts": texts, "thousands": spoken.thousands, "decimal": spoken.decimal, **stated}
