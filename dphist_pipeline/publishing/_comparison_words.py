"""The sentence on sudden changes in the language of a page.

An audit has it in English, with the sums that changed. It is said again from its parts; a sentence with any other part,
such as one of another version, stays English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dphist_pipeline.domain import OTHER
from dphist_pipeline.languages.texts import ENGLISH, gettext, language, number_text, pgettext
from dphist_pipeline.publishing.formatting import listed
from dphist_pipeline.shown_below import compared_in_words

_ALSO = re.compile(r"(.*?)(?:; values of (.+) changed, too)?", re.DOTALL)
_WENT = re.compile(
    r" (fell|rose)(?: from about ([0-9,]+) to about ([0-9,]+))?(?: \(and ([0-9]+) more of (\w+)\))?(.*)", re.DOTALL
)
_WHILE = re.compile(r" while (.+) rose by as much: was a code renamed\?", re.DOTALL)


def comparison_facts(audit: Mapping[str, Any]) -> dict[str, Any]:
    """What a card tells of sudden changes by its audit: `compared`, perhaps empty, and whether `compared_spoken`."""
    says = compared_in_words(audit)
    if language() is ENGLISH or not says:
        return {"compared": says, "compared_spoken": True}
    spoken = _spoken(says, (audit.get("compared") or {}).get("changes", ()))
    return {"compared": spoken or says, "compared_spoken": bool(spoken)}


def _spoken(says: str, changes: Any) -> str:
    """The sentence in the language of the page; empty if it is not made of the parts that are known."""
    parts = _ALSO.fullmatch(says)
    body, others = (parts[1], parts[2]) if parts else (says, None)
    names = dict(pair for change in changes for pair in _names(change))
    # The longest first: a value may begin as another one.
    for name in sorted((name for name in names if body.startswith(f"{name} ")), key=len, reverse=True):
        went = _WENT.fullmatch(body[len(name) :])
        if went is None:
            continue
        more = gettext(" (and %(number)s more of %(axis)s)", number=went[4], axis=went[5]) if went[4] else ""
        asked = _asked(f"{_went(names[name], went[1], went[2], went[3])}{more}", went[6], names)
        axes = [] if others is None else re.split(r", | and of ", others)
        also = gettext("; values of %(axes)s changed, too", axes=listed(axes)) if axes else ""
        return f"{asked}{also}" if asked else ""
    return ""


def _names(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the English sentence may call a sum, with what this language calls it."""
    axis, value = str(change.get("axis", "")), str(change.get("value", ""))
    if not axis:
        yield "the total", gettext("the total")
    elif value == OTHER:
        yield f"{OTHER} of {axis}", gettext("other of %(axis)s", axis=axis)
    else:
        yield value, value
        yield f"{axis} {value}", f"{axis} {value}"


def _went(name: str, word: str, before: str | None, now: str | None) -> str:
    if before is None or now is None:
        return gettext("%(name)s fell", name=name) if word == "fell" else gettext("%(name)s rose", name=name)
    told = {"name": name, "before": number_text(before), "now": number_text(now)}
    if word == "fell":
        return gettext("%(name)s fell from about %(before)s to about %(now)s", **told)
    return gettext("%(name)s rose from about %(before)s to about %(now)s", **told)


def _asked(change: str, tail: str, names: Mapping[str, str]) -> str:
    """What changed with the question about it, which ends the sentence; empty if it is none that is known."""
    known = {
        ": was anything delivered twice?": gettext(": was anything delivered twice?"),
        ": are all records there?": gettext(": are all records there?"),
        ": was a code renamed?": gettext(": was a code renamed?"),
        ", and the total by as much: was a code renamed?": gettext(", and the total by as much: was a code renamed?"),
        ": is there a new code, or a wrong one?": gettext(": is there a new code, or a wrong one?"),
    }
    if found := _WHILE.fullmatch(tail):
        rose = pgettext("category", "other") if found[1] == OTHER else names.get(found[1], found[1])
        return gettext("%(change)s while %(name)s rose by as much: was a code renamed?", change=change, name=rose)
    return f"{change}{known[tail]}" if tail in known else ""
