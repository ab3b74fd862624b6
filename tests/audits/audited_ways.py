"""Every way through every mechanism: read from the fields of its dataclass, so that a new one is audited at once."""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.budget import BudgetMisuse
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, Mechanism

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Number:
    """A numeric setting: its type and the ends of its range, where it has them."""

    kind: type
    low: Any = None
    high: Any = None

    def __repr__(self) -> str:
        return "number"

    @property
    def middle(self) -> Any:
        """A value that is always allowed."""
        if self.kind is Fraction:
            return Fraction(1, 4)
        return self.kind((self.low or 0) + 2)

    @property
    def values(self) -> st.SearchStrategy[Any]:
        """Values of the range, small ones and its end."""
        if self.kind is Fraction:
            return st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20)
        low = self.low or 0
        if self.kind is float:
            return st.floats(low, low + 10, allow_nan=False)
        end = st.just(self.high) if self.high is not None else st.nothing()
        most = low + 8 if self.high is None else min(low + 8, self.high)
        return st.integers(low, min(low + 3, most)) | st.integers(low, most) | end


@dataclass(frozen=True)
class Way:
    """A mechanism by its name, and for each setting a value or a number that is still to be drawn."""

    name: str
    settings: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{setting}={value}' for setting, value in self.settings)})"

    def built(self) -> Mechanism | None:
        """The mechanism with every number in the middle of its range; None where settings exclude each other."""
        return self._build({name: _middle(value) for name, value in self.settings})

    @property
    def mechanisms(self) -> st.SearchStrategy[Mechanism]:
        """The mechanism with numbers drawn from their ranges."""
        drawn = {name: value.values if isinstance(value, Number) else st.just(value) for name, value in self.settings}
        return st.fixed_dictionaries(drawn).map(self._build).filter(lambda built: built is not None)

    def _build(self, settings: dict[str, Any]) -> Mechanism | None:
        try:
            return mechanisms.build(self.name, settings)
        except BadSetting:
            return None


def _middle(value: Any) -> Any:
    return value.middle if isinstance(value, Number) else value


def ways_of(name: str) -> list[Way]:
    """Every combination of kinds of values that the settings of a mechanism may take together."""
    kind = mechanisms._class(name)
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    combined = itertools.product(*(_options(hints[field]) for field in names))
    found = [Way(name, tuple(zip(names, values, strict=True))) for values in combined]
    return [way for way in found if way.built() is not None]


def _options(hint: Any) -> list[Any]:
    """The values of a setting that can be listed, and a number for each range."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return [option for part in get_args(hint) for option in _options(part)]
    if origin is Literal:
        return list(get_args(hint))
    if hint is type(None):
        return [None]
    if hint is bool:
        return [False, True]
    if origin is Annotated:
        base, *told = get_args(hint)
        if get_origin(base) is tuple:  # queries, along the first axis
            return [(), ((0, 0, 1, 2.0), (0, 0, 2, 1.0))]
        field = next((part for part in told if hasattr(part, "metadata")), None)
        if field is None:
            return _options(base)
        limits = {type(limit).__name__: limit for limit in field.metadata}
        low = next((getattr(limits[key], key.lower()) for key in ("Ge", "Gt") if key in limits), None)
        high = next((getattr(limits[key], key.lower()) for key in ("Le", "Lt") if key in limits), None)
        return [Number(base, low, high)]
    if hint in (int, float, Fraction):
        return [Number(hint)]
    if is_dataclass(hint):  # a number under a name
        return [hint(3.0)]
    raise TypeError(f"audits cannot draw settings of type {hint}: say here how")


def serves(mechanism: Mechanism, shape: Shape, sensitivity: int, epsilon: Fraction) -> bool:
    """Whether a mechanism takes such a grid and budget."""
    try:
        mechanism.check(Domain.from_shape(shape), sensitivity, epsilon)
    except (DomainRefused, BudgetMisuse):
        return False
    return True


WAYS = [way for name in mechanisms.names() for way in ways_of(name)]
