"""The axes of a spec: of numbers, of dates or of categories, and how they must agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag, TypeAdapter, ValidationInfo

from dphist_pipeline.base.domain import OTHER, Domain
from dphist_pipeline.errors import Halted, did_you_mean
from dphist_pipeline.spec import fields
from dphist_pipeline.spec._banded_axes import BANDS, BandedAxisSpec
from dphist_pipeline.spec._binned_axes import BINNED_KEYS, LABEL, MOST_CELLS, BinnedAxisSpec, NamedAxis
from dphist_pipeline.spec._calendar_axes import CalendarAxisSpec
from dphist_pipeline.spec._categorical_axes import CategoricalAxisSpec, from_code_list, with_spellings
from dphist_pipeline.spec.amount_axes import FIGURE_COLUMNS, AmountAxisSpec
from dphist_pipeline.spec.fields import tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo
from dphist_pipeline.spec.unit_axes import UnitAxisSpec, with_described

__all__ = ["KINDS", "MOST_CELLS", "Axes", "AxisSpec", "digested_axes", "domain_of"]

MOST_AXES = 50
CATEGORICAL_KEYS = CategoricalAxisSpec.said_by
# An axis is of the first kind of which it has a key, else binned.
KINDS: dict[str, type[NamedAxis]] = {
    "derived": UnitAxisSpec,
    "calendar": CalendarAxisSpec,
    "banded": BandedAxisSpec,
    "amount": AmountAxisSpec,
    "categorical": CategoricalAxisSpec,
    "binned": BinnedAxisSpec,
}
TWO_OTHERS = (
    "holds 'other', which is the name of the cell that `other: true` makes; leave it out, or give it another name"
)
EXAMPLE = "{column: age, start: 0, stop: 100, width: 5}"


def _kind(value: object) -> str:
    if isinstance(value, NamedAxis):
        return next(kind for kind, model in KINDS.items() if type(value) is model)
    keys = value if isinstance(value, Mapping) else dict[str, object]()
    return next((kind for kind, model in KINDS.items() if any(key in keys for key in model.said_by)), "binned")


def _with_code_list(value: object, info: ValidationInfo) -> object:
    """An axis whose keys say of which kind it is, with its code list read."""
    if isinstance(value, NamedAxis):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping such as {EXAMPLE}, not {echo(value)}")
    if _kind(value) in ("categorical", "binned"):
        _check_keys(value)
    context = info.context or {}
    read = dict(value)
    if _kind(read) == "derived":
        return with_described(read, lambda axis: _READ_ADAPTER.validate_python(axis, context=context), KINDS)
    if isinstance(read.get("spellings"), str) and _kind(read) == "categorical":
        read = with_spellings(read, context.get("base"), context.get("code_lists"))
    if "values_from" in read:
        return from_code_list(read, context.get("base"), context.get("code_lists"))
    return read


def _check_keys(value: Mapping[str, object]) -> None:
    """Refuses keys of two kinds of axes, or of none."""
    keys = {key for key in (*BINNED_KEYS, *CATEGORICAL_KEYS) if value.get(key) is not None}
    if not keys:
        unknown = [key for key in value if key not in BinnedAxisSpec.model_fields]
        # Where nothing is near, every hint lists the same known keys.
        hint = " ".join(
            dict.fromkeys(did_you_mean(echo(key), (*BINNED_KEYS, "values", BANDS, "calendar")) for key in unknown)
        )
        ways = "`values`, or `edges`, or `start`, `stop` and `width`, or `bands`, or `calendar`, `start` and `stop`"
        raise ValueError(f"needs {ways}. {hint}".strip())
    if keys.intersection(CATEGORICAL_KEYS) and keys.intersection(BINNED_KEYS):
        raise ValueError("is both categorical and binned: keep `values`, or `edges`, or `start`, `stop` and `width`")
    if "edges" in keys and len(keys) > 1:
        raise ValueError("has `edges` and `start`, `stop` or `width`: keep one of the two ways")


ReadAxisSpec = Annotated[
    Annotated[BandedAxisSpec, Tag("banded")]
    | Annotated[BinnedAxisSpec, Tag("binned")]
    | Annotated[CalendarAxisSpec, Tag("calendar")]
    | Annotated[CategoricalAxisSpec, Tag("categorical")],
    Discriminator(_kind),
    BeforeValidator(_with_code_list),
]
_READ_ADAPTER: TypeAdapter[ReadAxisSpec] = TypeAdapter(ReadAxisSpec)
AxisSpec = Annotated[
    Annotated[AmountAxisSpec, Tag("amount")]
    | Annotated[BandedAxisSpec, Tag("banded")]
    | Annotated[BinnedAxisSpec, Tag("binned")]
    | Annotated[CalendarAxisSpec, Tag("calendar")]
    | Annotated[CategoricalAxisSpec, Tag("categorical")]
    | Annotated[UnitAxisSpec, Tag("derived")],
    Discriminator(_kind),
    BeforeValidator(_with_code_list),
]
_ADAPTER: TypeAdapter[AxisSpec] = TypeAdapter(AxisSpec)


def domain_of(described: Iterable[object]) -> Domain:
    """The declared grid from `axes` of an `audit.json`, in order."""
    with suppress(ValueError, TypeError):  # pydantic's own errors are among them
        return Domain(tuple(_ADAPTER.validate_python(axis).axis for axis in described))
    raise Halted(
        "the axes in a publication's audit are not those of a declared grid. Fetch or publish the release again.",
        code="grid_unreadable",
    )


def digested_axes(axes: Iterable[AxisSpec]) -> list[dict[str, object]]:
    """What a spec's digest holds of its axes, as JSON values: words that `values` gives to codes are no part of it."""
    return [axis.digest_facts() for axis in axes]


def _without_clashes(axes: tuple[AxisSpec, ...]) -> tuple[AxisSpec, ...]:
    """Axes whose published columns have names of their own."""
    mistakes: list[tuple[Location, str]] = []
    owners = dict.fromkeys(fields.OUR_COLUMNS, "that every release has")
    owners |= dict.fromkeys(fields.ANSWER_COLUMNS, "that every answer has")
    for number, axis in enumerate(axes):
        for column in (axis.name, *axis.columns):
            if owners.setdefault(column, f"of axes[{number}]") != f"of axes[{number}]":
                problem = f"its published column {echo(column)} clashes with the one {owners[column]}"
                mistakes.append(((number, "name"), f"{problem}; give it another `name:`"))
                break
    called = [axis.label or axis.name for axis in axes]
    for number, axis in enumerate(axes):
        if axis.label and (called.count(axis.label) > 1 or axis.label in {one.name for one in axes if one is not axis}):
            mistakes.append(((number, LABEL), "is what another axis is called; give it another word"))
    for number, axis in enumerate(axes):
        if axis.other:  # not of published axes, which may be older than this rule
            mistakes += [((number, *at), TWO_OTHERS) for at, named in axis.declared_texts.items() if OTHER in named]
    if any(isinstance(axis, AmountAxisSpec) for axis in axes):
        mistakes += _clashes_with_figures(axes)
    if mistakes:
        raise MistakesError(mistakes)
    return axes


def _clashes_with_figures(axes: tuple[AxisSpec, ...]) -> Iterator[tuple[Location, str]]:
    """What tables of figures, which an amount has, do not take."""
    amounts = [number for number, axis in enumerate(axes) if isinstance(axis, AmountAxisSpec)]
    for number in amounts[1:]:
        yield (number,), "is a second amount, and a release has one; give it a release of its own"
    if len(amounts) == len(axes):
        example = "{column: country, values: [CH], other: true}"
        yield (), f"need an axis beside the amount; one with a single category will do, such as {example}"
    for number, axis in enumerate(axes):
        if axis.name in FIGURE_COLUMNS:
            yield (number, "name"), "is a column of the table of figures that an amount has; give it another `name:`"


Axes = Annotated[tuple[AxisSpec, ...], AfterValidator(_without_clashes), tuple_of(1, MOST_AXES)]
