"""What stands around a publication, from public files and `about.json`: publisher, period before, lines of figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages.texts import in_language
from dphist_pipeline.publishing._card_cover import Before, PublicationNeighbours, ends_of
from dphist_pipeline.publishing._release_history import (
    ListedPublication,
    days_in_words,
    number_in_words,
    publication_after,
    publication_before,
    revisions_before,
)
from dphist_pipeline.publishing.figure_files import lines_of
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, read_audit

ALIKE = (
    *("privacy_unit", "max_rows_per_unit", "take", "neighbours", "axes", "tables", "unit_columns", "model"),
    # The digest holds the source and all that decides what is counted.
    *("counted", "spec_digest"),
)


def surroundings_of(release: Path, facts: Mapping[str, Any]) -> PublicationNeighbours:
    """The publisher of a publication and the period before it; nothing fails here.

    `release` is its public folder, which need not be there yet; `facts` are as its audit has them, or will have.
    """
    return next(surroundings_at_any_time(release, facts))


def surroundings_at_any_time(release: Path, facts: Mapping[str, Any]) -> Iterator[PublicationNeighbours]:
    """What stands around a publication now, then what may have stood there when one of its pages was made.

    The period before may have been told by another revision, or by none yet.
    """
    about, first = About.of(release.parent), str(facts.get("period_start") or "")[:10]
    figures = tuple(lines_of(release, str(facts["period"]), int(facts["revision"])))

    def around(previous: ListedPublication | None) -> Iterator[PublicationNeighbours]:
        with in_language(about.language_of(facts)):
            number = number_in_words(previous) if previous is not None else ""
        before, is_alike = None, False
        if previous is not None:
            total = previous.total, previous.lower, previous.upper
            before = Before(days_in_words(previous), previous.place, number, *total)
            is_alike = _is_alike(release / previous.place, facts)
        for lines in (figures, ()) if figures else ((),):
            yield PublicationNeighbours(about, before, is_alike, lines)

    yield from around(publication_before(release, first))
    for previous in (*revisions_before(release, first), None):
        yield from around(previous)


def following(release: Path, facts: Mapping[str, Any]) -> Path | None:
    """The folder of the publication whose card compares with one of these facts: that of the next period."""
    later = publication_after(release, str(facts.get("period_end") or "")[:10])
    return release / later.place if later is not None else None


def _is_alike(published: Path, facts: Mapping[str, Any]) -> bool:
    """Whether the counts of two publications are of the same kind, over as many days."""
    with suppress(PublishedFilesDamaged, OSError, ValueError, KeyError, TypeError):
        audit = read_audit(published)
        return _days(audit) == _days(facts) and all(_kind(audit, name) == _kind(facts, name) for name in ALIKE)
    return False


def _kind(audit: Mapping[str, Any], name: str) -> object:
    """A fact of an audit; axes without words that may change, and of tables their axes alone."""
    fact = audit.get(name)
    if name == "tables" and isinstance(fact, Mapping):
        return {table: _kind(of_table, "axes") for table, of_table in fact.items()}
    if name == "axes" and isinstance(fact, list):
        return [{key: part for key, part in axis.items() if key != "labels"} for axis in fact]
    return fact


def _days(audit: Mapping[str, Any]) -> int:
    ends = ends_of(audit)
    return (ends[1] - ends[0]).days if ends is not None else 0
