"""Checks that compare a publication with chance and with the periods before: by published files, so they cost no ε."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.answering.cells_beyond_chance import cells_above_zero
from dphist_pipeline.answering.past_periods import Compared
from dphist_pipeline.releasing.releases import Release

VALUES_LIKE_PAST = "values_like_past"
CELLS = "More cells lie above zero, or farther above it, than noise makes where no record was counted."
TEXT = (
    "The total and every value of every axis are as in the last periods, and last year's season, beyond noise and "
    "chance and a factor (3; 1.5 for the total)."
)


def values_like_past(made: Release) -> tuple[bool, dict[str, Any], str]:
    """Whether the check passed, its numbers, and what rings in one sentence."""
    found = Compared.of_publication(made.path)
    numbers: dict[str, Any] = {"compared_with": ", ".join(found.periods), "changed": len(found.changes)}
    return not found.says, numbers, found.says if found.periods else "no period before is published"


def cells_tell_something(made: Release) -> tuple[bool, dict[str, Any], str]:
    """Whether the check passed, its numbers, and what it says."""
    found = cells_above_zero([table.path for table in made.tables.values()])
    numbers: dict[str, Any] = {"cells": int(made.audit["cells"]), "cells_above_zero": found.above}
    numbers |= {"cells_above_zero_by_chance": round(found.by_chance, 1)}
    if found.tell or not found.cells:
        return True, numbers, ""
    chance = (
        f"{found.above} of {found.cells:,} cells lie above zero, where noise alone makes about {found.by_chance:.1f}"
    )
    return False, numbers, f"{chance}: are there any records?"
