"""The one description of `audit.json`: its facts in the order of the file, their types and what each says.

Writers pass through it, and the reference is made from it. Readers check what they read, since an audit may come from
anybody, by a bucket or mail; then they use the mapping as it is, with facts of other versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypeAliasType, TypedDict

from dphist_pipeline.estimates.known_figures import figures_in

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
_Facts = dict[str, Any]
_Figures = TypeAliasType("_Figures", "dict[_Text, Annotated[int, Field(ge=0, le=_MOST)] | _Figures]")


def _fact(says: str) -> Any:
    """A fact that some versions or kinds of releases do not have."""
    return Field(default=None, description=says)


def _always(says: str) -> Any:
    return Field(description=says)


class _Entry(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    hash: _Sha256
    number: NotRequired[_Count]
    charged_at: _Moment


class _Invariants(TypedDict):
    __pydantic_config__ = _STRICT  # type: ignore[misc]
    level: NotRequired[_Text]
    levels: NotRequired[Annotated[list[_Text], Field(min_length=2)]]
    counts: Literal["persons", "rows"]
    figures: _Figures


def _figures_fit(facts: _Invariants) -> _Invariants:
    try:
        figures_in(facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError from error
    return facts


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


class Audit(BaseModel):
    """The facts of `audit.json`, in the order of the file."""

    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)

    schema_version: Any = _fact("version of this form, 2")
    model: Literal["central", "local"] = _fact("of privacy; `central` where it is left out")
    release: _Name = _always("name of the release; of a table in a family, with the table's")
    title: _Text = _fact("title, as the spec has it")
    counted: _Text = _fact("what is counted, in words")
    unit_label: _Text = _fact("what the protected unit is called")
    language: _Text = _fact("of the pages")
    axis_labels: dict[str, _Text] = _fact("axes in words, by their names")
    amount: _Facts = _fact("axis of an amount, parts of a row, worth of a part, and what it is measured in")
    show_below: _Count = _fact("figures below it are told as words on pages")
    period: _Period = _always("key of the period: its first day, or `all`")
    period_start: _Moment | None = _fact("when the period begins")
    period_end: _Moment | None = _fact("when it is over")
    zone_data: dict[str, _Text] = _fact("version of the time zone data, in another zone than UTC")
    next_release: _Moment = _fact("when the next period is due")
    revision: _Count = _always("number of the revision, from 1")
    reason: _Text = _fact("why the revision was made; empty for the first")
    collection: _Text = _fact("local model: the collection")
    consumer: _Text = _fact("local model: which of its histograms this is")
    upstream_checked: _Text = _fact("why a person vouches for what the records come from")
    publish: _Text = _fact("`if_plausible`, where numbers in doubt wait for a person")
    account: _Text | None = _fact("account that paid; null in the local model")
    privacy_unit: _Text = _fact("who is protected: columns, `row` or `contributor`")
    max_rows_per_unit: _Count | None = _fact("how many rows of each unit count, at most")
    take: _Text = _fact(
        "`one_per_cell`: a unit counts once in a cell; `first`, `last`: one row of it counts; left out where all do"
    )
    neighbours: _Text = _fact("`add_remove`, `substitute` or `local`")
    sensitivity: _Count | None = _fact("how far one unit moves the counts")
    year_rows: _Count = _fact("rows of a unit that a calendar year pays for at this price, in an individual account")
    engine: _Text = _fact("that counted, if not DuckDB and Polars")
    engine_version: _Text = _fact("version of DuckDB that an operator allowed")
    required_checks: list[_Text] = _fact("upstream checks without which nothing is released")
    unit_columns: list[_Text] = _fact("columns of the unit")
    unit_normalise: list[_Text] = _fact("how their values are made alike")
    csv_quote: _Text = _fact("how quotes in CSV were read")
    query: _Facts = _fact("digest of the query that was run on the source")
    looked: list[_Facts] = _fact("operators who saw exact numbers before the charge")
    allowed: list[_Facts] = _fact("decisions of operators that let it read what it read")
    quality: _Facts = _fact("share of ε for the quality table, and its axes")
    mechanism: _Text = _fact("name of the mechanism, or protocol")
    mechanism_package: _Facts = _fact("package and version, if it is not one of ours")
    settings: _Facts = _fact("of the mechanism, with defaults")
    queries: list[Any] = _fact("declared queries: axis, first cell, cell after the last, weight")
    cells: _Count = _fact("number of cells")
    whole_counts: Any = _fact(
        "how whole counts are fitted: 2, large cells stand; 3, estimates keep their sums; 4, and cells' own noisy "
        "counts lead the rounding; left out before 2026-11-27"
    )
    axes: _Axes = _fact("axes as the spec writes them, with defaults")
    invariants: Annotated[_Invariants, AfterValidator(_figures_fit)] = _fact(
        "public figures that counts meet, by the values of their finest `level`; of several `levels`, within each other"
    )
    figures: list[_Facts] = _fact("populations of declared figures at publication: path and SHA-256 of each file")
    spec_digest: _Sha256 = _fact("digest of the spec")
    question_digest: _Sha256 = _fact("local model: digest of what contributors were asked")
    reports: _Facts = _fact("local model: how many reports were accepted and refused")
    ledger: _Entry | None = _fact("number, hash and time of the charge in the ledger")
    approved: _Facts = _fact("who approved, and when")
    compared: _Comparison = _fact("what changed suddenly since the periods before")
    total_holds_zero: bool = _fact("the interval of the total holds 0; only where it does")
    published_on: _Moment = _fact("day of publication")
    family: _Name = _fact("the release that a table belongs to")
    table: _Name = _fact("name of the table")
    tables: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=200)], _Table] = _fact(
        "tables of a family: cells, axes and digest of values"
    )
    epsilon: _Exact = _always("ε of the period, exact")
    epsilon_double: _Number = _fact("the same as a double, rounded up")
    unbiased_noise_scale: _Exact | None = _fact("scale of the noise in `unbiased_estimate`")
    unbiased_covariance: list[_Covariance] | None = _fact("covariance of two cells, of linear estimates")
    unbiased_tail: _Tail = _fact("bound of the tail of sums of that noise")
    unbiased_lines: list[_Line] = _fact("weights of what was measured along each axis")
    report_law: _Law = _fact("local model: law of an estimate from reports")
    atoms: list[_Count] = _fact("local model: equal parts that each cell consists of")
    findings: list[_Facts] = _fact("what the mechanism found")
    noise: _Text = _fact("law of the noise")
    charges: list[_Charge] = _fact("each step with its ε and the scale of its noise")
    values_digest: _Sha256 = _always("digest of the values, which the ledger holds")
    files: dict[str, _Sha256] = _always("SHA-256 of the Parquet files")
    versions: dict[str, _Text] = _fact("versions of what ran")
    audit_digest: _Sha256 = _always("SHA-256 of all other facts, as JSON with sorted names")
    withdrawn: _Withdrawal = _fact("why and when it was withdrawn")


def in_order(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a new audit in the order of the file, each of its type; first those that no line here describes.

    Raises:
        ValueError: a fact has another type.
    """
    Audit.model_validate(json.loads(json.dumps(facts)))
    described = {name: facts[name] for name in Audit.model_fields if name in facts}
    return {name: fact for name, fact in facts.items() if name not in described} | described


def is_audit(audit: object) -> bool:
    """Whether a JSON value has the facts of an audit, each of its type; whether they are true is not asked."""
    try:
        Audit.model_validate(audit)
    except (ValidationError, ValueError, TypeError, ArithmeticError, RecursionError):
        return False
    # A family of tables has no cells of its own.
    return isinstance(audit, dict) and ("tables" in audit or audit.keys() >= _OF_CELLS)
