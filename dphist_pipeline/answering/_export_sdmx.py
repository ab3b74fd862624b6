"""A release as SDMX-CSV 2.0: one line for each cell, with codes alone; `_export_structure` says what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dphist_pipeline.about_publisher import About
from dphist_pipeline.answering._axis_codes import codes_of, common_axes, free_name
from dphist_pipeline.answering.exported_rows import Exported, days_of, in_places, masks_of, places_of
from dphist_pipeline.domain import Domain

AGENCY, VERSION = "DPHIST", "1.0"
TIME, VALUE, STATUS = "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"
TAKEN = {*("STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY"), TIME, VALUE, STATUS, "REVISION"}
NORMAL, UNRELIABLE, HIDDEN = "A", "U", "Q"  # of SDMX's list CL_OBS_STATUS
ATTRIBUTES = {
    "UNBIASED": "unbiased",
    "STANDARD_ERROR": "standard_error",
    "CI_LOWER": "ci_lower",
    "CI_UPPER": "ci_upper",
    "RELIABILITY": "reliability",
    "NOTE": "note",
}
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*", re.ASCII)


def sdmx_lines(exported: Exported) -> Iterator[list[Any]]:
    """The header and the lines of the file.

    Dimensions are the axes and, for releases with periods, `TIME_PERIOD` as a range such as 2026-01-05/P7D.

    Raises:
        ValueError: the periods have other axes.
    """
    identifiers = dimensions(common_axes(exported.publications)).values()
    time = [TIME] if has_periods(exported) else []
    yield ["STRUCTURE", "STRUCTURE_ID", "ACTION", *identifiers, *time, VALUE, STATUS, "REVISION", *ATTRIBUTES]
    structure = ["dataflow", f"{agency(exported.about)}:{exported.audit['release']}({VERSION})", "I"]
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        codes = _codes(one.domain, one.audit.get("model") == "local")
        when = [_time_range(one.audit)] if time else []
        places, hidden = places_of(exported, table), masks_of(one, table)
        status = [UNRELIABLE if word == "poor" else NORMAL for word in table["reliability"].to_pylist()]
        numbers = {name: table[name].to_pylist() for name in ("estimate", *ATTRIBUTES.values())}
        if hidden is not None:
            status = [HIDDEN if low else word for word, low in zip(status, hidden.estimate.tolist(), strict=True)]
            for name in ("estimate", "unbiased", "ci_lower", "ci_upper"):
                visible = ~np.logical_or(*hidden.of(name))
                numbers[name] = [value if keep else None for value, keep in zip(numbers[name], visible, strict=True)]
        columns = [[in_places(value, places.get(name)) for value in column] for name, column in numbers.items()]
        for cell, of, (estimate, *attributes) in zip(
            zip(*codes, strict=True), status, zip(*columns, strict=True), strict=True
        ):
            yield [*structure, *cell, *when, estimate, of, one.audit["revision"], *attributes]


def has_periods(exported: Exported) -> bool:
    """Whether the release is cut in periods."""
    return bool(exported.audit["period"] != "all")


def dimensions(axes: Iterable[str]) -> dict[str, str]:
    """The id of each axis; one with the id of another, or the name of a column of every file, gets underscores."""
    identifiers, reserved = dict[str, str](), {*TAKEN, *ATTRIBUTES}
    for name in axes:
        identifiers[name] = free_name(name.upper(), reserved)
        reserved.add(identifiers[name])
    return identifiers


def agency(about: About) -> str:
    """The id of the agency that maintains the structure.

    Raises:
        ValueError: `about.json` names one that SDMX does not take.
    """
    if about.agency and not _AGENCY.fullmatch(about.agency):
        raise ValueError(f"about.json has the agency {about.agency!r}; SDMX takes letters, digits, _, - and points")
    return about.agency or AGENCY


def _codes(domain: Domain, closed: bool) -> list[Iterator[str]]:
    """For each axis, the code of every cell in declared order."""
    places = np.unravel_index(np.arange(domain.cells), domain.shape)
    return [
        iter(np.array([code.code for code in codes_of(axis, closed)], dtype=object)[place].tolist())
        for axis, place in zip(domain.axes, places, strict=True)
    ]


def _time_range(audit: Any) -> str:
    """The period as SDMX writes it: its first day and its length in days."""
    days = days_of(audit)
    return str(audit["period"]) if days is None else f"{days[0].isoformat()}/P{(days[1] - days[0]).days}D"
