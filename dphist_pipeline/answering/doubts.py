"""Why a publication may be of records that were not read as meant: from its published sums alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphist_pipeline.answering._period_sums import TOTAL, PeriodSums, sums_of_estimate, sums_of_publication
from dphist_pipeline.base.domain import OTHER
from dphist_pipeline.errors import first_of
from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.spec.unit_axes import NUMBERS, OF_UNIT

SURE = Fraction(95, 100)  # that no declared value of an axis stands out of its noise by chance
NEARLY_ALL = 0.8  # of the total
MOST_NAMED = 3
_HOLDS_ZERO = "The interval of the total holds 0: these numbers are like those of a period without records."


def undeclared_axes(sums: PeriodSums) -> list[str]:
    """The axes of which `other` holds nearly all rows, and no declared value stands out of its noise."""
    if TOTAL not in sums:
        return []
    total, axes = float(sums[TOTAL].values[0]), []
    for axis, one in sums.items():
        declared = [place for place, label in enumerate(one.labels) if label != OTHER]
        if axis == TOTAL or OTHER not in one.places or not declared:
            continue
        # Together: of many values, each by itself, one stands out by chance.
        reach = one.reaches(1 - (1 - SURE) / len(one.labels))
        other = one.places[OTHER]
        is_out = one.values > reach
        if is_out[other] and one.values[other] >= NEARLY_ALL * total and not is_out[declared].any():
            axes.append(axis)
    return axes


def _read_otherwise(sums: PeriodSums, audit: Mapping[str, Any]) -> list[str]:
    """The axes that are nearly all `other`, without those computed from a unit's rows, which no spelling can harm."""
    computed = {axis["name"] for axis in audit["axes"] if axis.get(OF_UNIT) in NUMBERS}
    return [axis for axis in undeclared_axes(sums) if axis not in computed]


def doubt_of_estimate(made: AnyEstimate, audit: Mapping[str, Any]) -> str:
    """Why a person should look at an estimate, without numbers; empty if no axis is nearly all `other`."""
    axes = _read_otherwise(sums_of_estimate(made), audit)
    return f"nearly all rows are `other` along {first_of(axes, MOST_NAMED)}" if axes else ""


def doubt_of_publication(folder: Path, audit: Mapping[str, Any]) -> str:
    """Why a publication may be of records that were not read as meant, and what to do; usually empty."""
    if audit.get("model") == "local":
        return ""
    day = [] if audit["period"] == "all" else ["--period", audit["period"]]
    looked = shlex.join(["dphist", "look", "SPEC", *day])
    withdrawn = shlex.join(["dphist", "withdraw", audit["release"], audit["period"], "--reason", "TEXT"])
    then = f"To take it back: {withdrawn}. With `publish: if_plausible` such a period waits for a person."
    if audit.get("total_holds_zero"):
        why = (
            "Are dates written as `period_format` says, and are all records there?" if day else "Are all records there?"
        )
        return f"{_HOLDS_ZERO} {why} An operator sees it: {looked}. {then}"
    if axes := _read_otherwise(sums_of_publication(folder, audit), audit):
        return (
            f"`other` holds nearly all rows along {first_of(axes, MOST_NAMED)}, and no declared value stands out of "
            "its noise: the records may write values in another way than the spec declares. An operator sees how: "
            f"{looked}. Mend number formats (`decimal_comma`), `csv_encoding`, `tidy` or `spellings`. {then}"
        )
    return ""
