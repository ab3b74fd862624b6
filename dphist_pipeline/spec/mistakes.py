"""Turns what pydantic found into our own words, with places as a reader of the file knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec.axes import KINDS
from dphist_pipeline.spec.refusals import COUNTS_ONLY, NOT_YET, WEIGHTS_AND_SUMS, Location, MistakesError, not_yet

_OTHER_SPELLINGS = {"neighbors": "neighbours"}
_REQUIRED = {
    "release": "the release's name, such as weekly_admissions",
    "source": "Parquet or CSV files, such as data/admissions/*.parquet",
    "privacy_unit": "the column that names a person, or `row` where every row is another person",
    "neighbours": "add_remove or substitute",
    "epsilon": "the privacy budget of one period, such as 0.5",
    "account": "the ledger account that pays, such as health",
    "mechanism": "the name of a mechanism, such as geometric; there is no default",
    "axes": "a list of axes, such as {column: age, start: 0, stop: 100, width: 5}",
    "column": "the column of the source",
    "values": "a list of categories",
    "start": "the first day, such as 2026-01-05",
    "stop": "the day after the last, such as 2027-01-04",
}


def located(error: ValidationError, fields: Mapping[str, object]) -> list[tuple[Location, str]]:
    """Every mistake with its location inside the spec, in the order of the fields."""
    details = error.errors(include_url=False, include_input=False)
    found = [pair for detail in details for pair in _explained(detail, fields)]
    unsupported = {at[:-1] for at, _ in found if at and at[-1] in NOT_YET}
    missing = {_location(detail["loc"]) for detail in details if detail["type"] == "missing"}
    return [(at, what) for at, what in found if at not in missing or at[:-1] not in unsupported]


def _explained(detail: Any, fields: Mapping[str, object]) -> list[tuple[Location, str]]:
    at = _location(detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, MistakesError):
        return [((*at, *below), what) for below, what in cause.found]
    if cause is not None:
        return [(at, str(cause))]
    if detail["type"] == "missing":
        return [(at, f"is required: {_REQUIRED.get(str(at[-1]), 'see the README')}")]
    if detail["type"] == "extra_forbidden":
        return [(at, _unknown(detail["loc"], fields))]
    return [(at, "must be a list" if detail["type"] == "tuple_type" else "has the wrong form; see the README")]


def _unknown(raw: tuple[str | int, ...], fields: Mapping[str, object]) -> str:
    field = str(raw[-1])
    if field in NOT_YET:
        return not_yet(field)
    if field in WEIGHTS_AND_SUMS:
        return COUNTS_ONLY
    if field in _OTHER_SPELLINGS and len(raw) == 1:
        return f"is another spelling of `{_OTHER_SPELLINGS[field]}`, which is given too; keep one"
    known = KINDS[str(raw[2])].model_fields if len(raw) > 3 and raw[2] in KINDS else fields
    return f"unknown field. {did_you_mean(field[:60], known)}"


def _location(raw: tuple[str | int, ...]) -> Location:
    """Without the tag that pydantic puts between an axis and its fields."""
    return (*raw[:2], *raw[3:]) if len(raw) > 2 and raw[0] == "axes" and raw[2] in KINDS else tuple(raw)
