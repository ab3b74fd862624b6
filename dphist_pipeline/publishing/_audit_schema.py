"""The facts of an audit that readers rest on, and their types: an audit may come from anybody, by a bucket or mail."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

_STRICT = ConfigDict(strict=True, extra="allow")
_LONGEST = 10_000  # characters of a text; a release's title is shorter
_MOST = 10**12  # cells, records or positions
_OF_CELLS = frozenset({"axes", "cells", "ledger", "unbiased_noise_scale"})


def _fraction(text: str) -> str:
    if not 0 < Fraction(text) < _MOST:
        raise ValueError
    return text


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _visible(text: str) -> str:
    if "\0" in text:
        raise ValueError
    return text


_Text = Annotated[str, Field(max_length=_LONGEST), AfterValidator(_visible)]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=200)]
_Period = Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=40)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Exact = Annotated[str, Field(pattern=r"^[0-9]{1,400}(/[0-9]{1,400})?$"), AfterValidator(_fraction)]
_Moment = Annotated[str, AfterValidator(_time)]
_Count = Annotated[int, Field(ge=1, le=_MOST)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Axes = Annotated[list[dict[str, Any]], Field(min_length=1)]


class _Entry(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    hash: _Sha256
    number: NotRequired[_Count]
    charged_at: _Moment


class _Table(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    values_digest: _Sha256
    axes: _Axes


class _Charge(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    step: _Text
    epsilon: _Exact
    noise_scale: _Text | None


class _Covariance(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    coefficient: _Number
    widths: list[_Number]


class _Withdrawal(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    at: _Moment
    reason: _Text


class _Comparison(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    periods: list[_Period]
    changes: list[dict[str, Any]]
    says: _Text


class _Law(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    alpha: _Number
    beta: _Number
    gamma: _Number
    delta: _Number
    step: _Number


class _Tail(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    rate: _Number
    factor: _Number


class _Line(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    weights: list[list[int]]


class _Audit(TypedDict):
    """Facts that some versions or kinds of releases do not have are not required; others may be there."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    release: _Name
    period: _Period
    revision: _Count
    epsilon: _Exact
    values_digest: _Sha256
    audit_digest: _Sha256
    files: dict[str, _Sha256]
    axes: NotRequired[_Axes]
    tables: NotRequired[dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=200)], _Table]]
    family: NotRequired[_Name]
    table: NotRequired[_Name]
    model: NotRequired[Literal["central", "local"]]
    title: NotRequired[_Text]
    counted: NotRequired[_Text]
    unit_label: NotRequired[_Text]
    axis_labels: NotRequired[dict[str, _Text]]
    language: NotRequired[_Text]
    show_below: NotRequired[_Count]
    reason: NotRequired[_Text]
    period_start: NotRequired[_Moment | None]
    period_end: NotRequired[_Moment | None]
    next_release: NotRequired[_Moment]
    published_on: NotRequired[_Moment]
    account: NotRequired[_Text | None]
    privacy_unit: NotRequired[_Text]
    neighbours: NotRequired[_Text]
    max_rows_per_unit: NotRequired[_Count | None]
    sensitivity: NotRequired[_Count | None]
    mechanism: NotRequired[_Text]
    settings: NotRequired[dict[str, Any]]
    spec_digest: NotRequired[_Sha256]
    cells: NotRequired[_Count]
    atoms: NotRequired[list[_Count]]
    ledger: NotRequired[_Entry | None]
    charges: NotRequired[list[_Charge]]
    unbiased_noise_scale: NotRequired[_Exact | None]
    unbiased_covariance: NotRequired[list[_Covariance] | None]
    unbiased_tail: NotRequired[_Tail]
    unbiased_lines: NotRequired[list[_Line]]
    report_law: NotRequired[_Law]
    reports: NotRequired[dict[str, Any]]
    versions: NotRequired[dict[str, _Text]]
    zone_data: NotRequired[dict[str, _Text]]
    withdrawn: NotRequired[_Withdrawal]
    approved: NotRequired[dict[str, Any]]
    compared: NotRequired[_Comparison]
    total_holds_zero: NotRequired[bool]
    publish: NotRequired[_Text]
    findings: NotRequired[list[dict[str, Any]]]
    allowed: NotRequired[list[dict[str, Any]]]
    looked: NotRequired[list[dict[str, Any]]]
    required_checks: NotRequired[list[_Text]]


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(_Audit)


def is_audit(audit: object) -> bool:
    """Whether a JSON value has the facts of an audit, each of its type; whether they are true is not asked."""
    try:
        _adapter().validate_python(audit)
    except (ValidationError, ValueError, TypeError, ArithmeticError, RecursionError):
        return False
    # A family of tables has no cells of its own.
    return isinstance(audit, dict) and ("tables" in audit or audit.keys() >= _OF_CELLS)
