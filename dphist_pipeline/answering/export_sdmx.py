"""A release as SDMX-CSV 2.0: one line for each cell; bins and categories as codes, each with its label behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np

from dphist_pipeline.answering.exported_rows import Exported
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, Domain, day_of

AGENCY, VERSION = "DPHIST", "1.0"
OTHER = "_O"  # SDMX's code for "other"
TAKEN = {"STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY", "TIME_PERIOD", "OBS_VALUE", "REVISION"}
ATTRIBUTES = {
    "UNBIASED": "unbiased",
    "STANDARD_ERROR": "standard_error",
    "CI_LOWER": "ci_lower",
    "CI_UPPER": "ci_upper",
    "RELIABILITY": "reliability",
    "NOTE": "note",
}
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@$-]*", re.ASCII)


def sdmx_lines(exported: Exported) -> Iterator[list[Any]]:
    """The header and the lines of the file.

    Dimensions are the axes and, for releases with periods, `TIME_PERIOD` as a range such as 2026-01-05/P7D.

    Args:
        exported: of one or more periods.

    Raises:
        ValueError: the periods have other axes.
    """
    axes = [[axis.name for axis in one.domain.axes] for one in exported.publications]
    if any(names != axes[0] for names in axes):
        raise ValueError("its periods have other axes, which one SDMX structure cannot hold; choose one with --period")
    has_periods = exported.audit["period"] != "all"
    time = ["TIME_PERIOD"] if has_periods else []
    dimensions = [_dimension(name) for name in axes[0]]
    yield ["STRUCTURE", "STRUCTURE_ID", "ACTION", *dimensions, *time, "OBS_VALUE", "REVISION", *ATTRIBUTES]
    structure = ["dataflow", f"{AGENCY}:{exported.audit['release']}({VERSION})", "I"]
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        codes = _codes(one.domain)
        when = [_time_range(one.audit)] if has_periods else []
        numbers = [table[name].to_pylist() for name in ("estimate", *ATTRIBUTES.values())]
        for cell, (estimate, *attributes) in zip(zip(*codes, strict=True), zip(*numbers, strict=True), strict=True):
            yield [*structure, *cell, *when, estimate, one.audit["revision"], *attributes]


def _dimension(name: str) -> str:
    """The id and the name of an axis; the name of a column of every file gets an underscore."""
    upper = name.upper()
    return f"{upper}_: {name}" if upper in TAKEN or upper in ATTRIBUTES else f"{upper}: {name}"


def _codes(domain: Domain) -> list[Iterator[str]]:
    """For each axis, the code of every cell in declared order, with its label."""
    places = np.unravel_index(np.arange(domain.cells), domain.shape)
    return [
        iter(np.array(_of_axis(axis), dtype=object)[place].tolist())
        for axis, place in zip(domain.axes, places, strict=True)
    ]


def _of_axis(axis: Axis) -> list[str]:
    """`code: label` of every position along an axis; a category that is a code by itself keeps it."""
    if isinstance(axis, BinnedAxis):
        return [f"B{number}: {label}" for number, label in enumerate(_bins(axis))] + [f"{OTHER}: other"] * axis.other
    labels = axis.labels or axis.values
    codes = [value if _CODE.fullmatch(value) else f"C{place}" for place, value in enumerate(axis.values)]
    if len(set(codes)) < len(codes):
        codes = [f"C{place}" for place in range(len(codes))]
    named = zip(codes, axis.values, labels, strict=True)
    return [f"{code}: {label or value}" for code, value, label in named] + [f"{OTHER}: other"] * axis.other


def _bins(axis: BinnedAxis) -> list[str]:
    """What readers call the bins; days are ISO text."""

    def written(end: float) -> str:
        return day_of(end).isoformat() if isinstance(axis, CalendarAxis) else f"{end:g}"

    names = []
    for lower, upper in zip(*(ends[: axis.size - axis.other].tolist() for ends in axis.bounds), strict=True):
        if np.isinf(lower):
            names.append(f"below {written(upper)}")
        elif np.isinf(upper):
            names.append(f"{written(lower)} or more")
        else:
            names.append(f"{written(lower)} to {written(upper)}")
    return names


def _time_range(audit: Any) -> str:
    """The period as SDMX writes it: its first day and its length in days."""
    if not audit.get("period_start"):
        return str(audit["period"])
    start, end = (datetime.fromisoformat(audit[name]).date() for name in ("period_start", "period_end"))
    return f"{start.isoformat()}/P{(end - start).days}D"
