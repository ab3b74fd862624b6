"""A release as SDMX-CSV 2.0: one line for each cell; bins and categories as codes, each with its label behind it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np

from dphist_pipeline.answering.exported_rows import Exported, in_places, places_of
from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.publishing.axis_labels import labels_of

AGENCY, VERSION = "DPHIST", "1.0"
OTHER = "_O"  # SDMX's code for "other"
TAKEN = {
    *("STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY"),
    *("TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "REVISION"),
}
STATUS = {"poor": "U"}  # of the code list CL_OBS_STATUS: low reliability; every other value is A, normal
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
    measured = ["OBS_VALUE", "OBS_STATUS", "REVISION"]
    yield ["STRUCTURE", "STRUCTURE_ID", "ACTION", *dimensions, *time, *measured, *ATTRIBUTES]
    structure = ["dataflow", f"{AGENCY}:{exported.audit['release']}({VERSION})", "I"]
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        codes = _codes(one.domain, one.audit.get("model") == "local")
        when = [_time_range(one.audit)] if has_periods else []
        places = places_of(exported, table)
        status = [STATUS.get(word, "A") for word in table["reliability"].to_pylist()]
        numbers = [
            [in_places(value, places.get(name)) for value in table[name].to_pylist()]
            for name in ("estimate", *ATTRIBUTES.values())
        ]
        for cell, of, (estimate, *attributes) in zip(
            zip(*codes, strict=True), status, zip(*numbers, strict=True), strict=True
        ):
            yield [*structure, *cell, *when, estimate, of, one.audit["revision"], *attributes]


def _dimension(name: str) -> str:
    """The id and the name of an axis; the name of a column of every file gets an underscore."""
    upper = name.upper()
    return f"{upper}_: {name}" if upper in TAKEN or upper in ATTRIBUTES else f"{upper}: {name}"


def _codes(domain: Domain, closed: bool) -> list[Iterator[str]]:
    """For each axis, the code of every cell in declared order, with its label."""
    places = np.unravel_index(np.arange(domain.cells), domain.shape)
    return [
        iter(np.array(_of_axis(axis, closed), dtype=object)[place].tolist())
        for axis, place in zip(domain.axes, places, strict=True)
    ]


def _of_axis(axis: Axis, closed: bool) -> list[str]:
    """`code: label` of every position along an axis; a category that is a code by itself keeps it."""
    if isinstance(axis, BinnedAxis):
        labels = labels_of(axis, closed)[: axis.size - axis.other]
        named = [(_code(label), label) for label in labels]
    else:
        known = zip(axis.values, axis.labels or axis.values, strict=True)
        named = [(value if _CODE.fullmatch(value) else _code(label or value), label or value) for value, label in known]
    codes = [code for code, _ in named]
    if not all(codes) or len({code.upper() for code in codes} | {OTHER}) <= len(codes):
        codes = [f"{'B' if isinstance(axis, BinnedAxis) else 'C'}{place}" for place in range(len(codes))]
    told = [f"{code}: {label}" for code, (_, label) in zip(codes, named, strict=True)]
    return told + [f"{OTHER}: other"] * axis.other


def _code(label: str) -> str:
    """A code that reads as its label: INTENSIVE_CARE, 0_TO_19; empty for a label without Latin letters and digits."""
    signs = re.sub(r"(?<![0-9A-Za-z])[-−](?=[0-9])", "MINUS ", label)
    signs = re.sub(r"(?<=[0-9])[.](?=[0-9])", " POINT ", signs)
    plain = unicodedata.normalize("NFKD", signs).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_").upper()


def _time_range(audit: Any) -> str:
    """The period as SDMX writes it: its first day and its length in days."""
    if not audit.get("period_start"):
        return str(audit["period"])
    start, end = (datetime.fromisoformat(audit[name]).date() for name in ("period_start", "period_end"))
    return f"{start.isoformat()}/P{(end - start).days}D"
