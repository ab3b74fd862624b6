"""The registry of mechanisms: each is one file of this folder, and the file name is its name in a spec.

A mechanism file holds a card (its docstring) and one frozen dataclass derived from `Mechanism`, whose fields
are its settings. Nothing else has to be registered. It asks `PrivateCounts` for noisy numbers, and for choices by a
score of `confidential.scores`. A new score is a class there: no code of a mechanism runs on exact counts.

Calling this module, as `dphist_pipeline.mechanisms()`, gives every card.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from pydantic import TypeAdapter, ValidationError

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate


class UnknownMechanism(DphistError):
    """No file of this name in the folder of mechanisms."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no mechanism {name[:60]!r}. {did_you_mean(name, names())}")


class BadSetting(DphistError):
    """A setting that the mechanism does not have, or a value that it does not take."""

    def __init__(self, mechanism: str, setting: str, problem: str) -> None:
        self.mechanism, self.setting = mechanism, setting
        super().__init__(f"mechanism '{mechanism}', setting {setting[:60]!r}: {problem}")


class DomainRefused(DphistError):
    """Axes that a mechanism cannot serve."""

    def __init__(self, mechanism: str, problem: str) -> None:
        self.mechanism, self.problem = mechanism, problem
        super().__init__(f"mechanism '{mechanism}' {problem}")


class Mechanism(ABC):
    """One way to turn exact counts behind doors into an estimate; subclasses are frozen dataclasses."""

    @abstractmethod
    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Asks the doors, spending exactly `budget`; a function of their answers alone."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses, before any data is opened, a domain or a budget that the mechanism cannot serve."""
        return None


def names() -> list[str]:
    """Every mechanism's name, sorted."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def card(name: str) -> str:
    """A mechanism's card: what it does, paper, privacy, domain, cost, what its error bars cover, settings."""
    about = inspect.getdoc(import_module(f"{__name__}.{_known(name)}")) or ""
    settings = inspect.getdoc(_class(name)) or ""
    return f"{about}\n\n{settings}".strip()


def build(name: str, settings: Mapping[str, object]) -> Mechanism:
    """The mechanism of that name with these settings, defaults filled in.

    Raises:
        UnknownMechanism, BadSetting: naming what is known.
    """
    kind = _class(name)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            raise BadSetting(name, str(setting), f"no such setting. {did_you_mean(setting, known) or 'It has none.'}")
    try:
        return _adapter(kind).validate_python(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        setting, problem = ".".join(map(str, first["loc"])), first["msg"]
    raise BadSetting(name, setting, f"{problem[0].lower()}{problem[1:]}")


def settings_of(mechanism: Mechanism) -> dict[str, object]:
    """All settings of a mechanism as plain JSON values."""
    return cast(dict[str, object], _adapter(type(mechanism)).dump_python(mechanism, mode="json"))


def name_of(mechanism: Mechanism) -> str:
    """The name that a spec uses for this mechanism."""
    return type(mechanism).__module__.rpartition(".")[2]


def _known(name: str) -> str:
    if name not in names():
        raise UnknownMechanism(name)
    return name


def _class(name: str) -> type[Mechanism]:
    module = import_module(f"{__name__}.{_known(name)}")
    found = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Mechanism) and member.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"mechanisms/{name}.py must define exactly one Mechanism")
    return found[0]


def _adapter(kind: type[Mechanism]) -> TypeAdapter[Mechanism]:
    return TypeAdapter(kind)


class _Registry(ModuleType):
    """Lets the public name `mechanisms` be both this folder and the call that lists it."""

    def __call__(self) -> dict[str, str]:
        """{name: card} of every mechanism."""
        return {name: card(name) for name in names()}


sys.modules[__name__].__class__ = _Registry
