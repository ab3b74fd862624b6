"""The check that compares a publication with the periods before: by published files alone, so it costs no epsilon."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.answering.past_periods import compare_publication
from dphist_pipeline.releasing.releases import Release

VALUES_LIKE_PAST = "values_like_past"
TEXT = (
    "The total and every value of every axis are as in the last periods, and last year's season, beyond noise and "
    "chance and a factor (3; 1.5 for the total)."
)


def values_like_past(made: Release) -> tuple[bool, dict[str, Any], str]:
    """Whether the check passed, its numbers, and what rings in one sentence.

    Args:
        made: the publication, of whichever period.
    """
    found = compare_publication(made.path)
    numbers: dict[str, Any] = {"compared_with": ", ".join(found.periods), "changed": len(found.changes)}
    return not found.says, numbers, found.says if found.periods else "no period before is published"
