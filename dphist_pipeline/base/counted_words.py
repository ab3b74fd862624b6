"""What the figures of a publication are numbers of, in the words of its audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist_pipeline.base.languages.texts import gettext


def counted_words(audit: Mapping[str, Any]) -> str:
    """What is counted, in the plural; empty where the audit has no word for it.

    Where a unit counts once in each of several cells, no total is one of persons, whatever the spec calls its rows.
    """
    counted = str(audit.get("counted") or "")
    if audit.get("take") != "one_per_cell":
        return counted
    return gettext("person-cells") if int(audit["max_rows_per_unit"]) > 1 else counted or gettext("persons")
