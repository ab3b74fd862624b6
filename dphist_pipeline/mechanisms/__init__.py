"""The registry of mechanisms: each is one file of this folder, and the file name is its name in a spec.

Of the papers: `adaptive_grid`, `ahp`, `boost`, `cnfg`, `dawa`, `dpcube`, `dphr`, `grouping_smoothing`, `ihp`,
`kd_hierarchy`, `noise_first`, `p_hpartition`, `privelet`, `sreb_gca`, `structure_first`, `workload`. What differs from
the paper stands in each card.

Ours, of known parts: `adaptive` and `bayes` (cells shrunk by empirical Bayes), `adaptive_boxes` and `multiscale` (sums
of several sizes), `tables` (several tables measured together).

Plain: `geometric`, noise on every cell and nothing else.

A mechanism file holds a card (its docstring) and one frozen dataclass derived from `Mechanism`, whose fields are its
settings, each with a `Setting` in its annotation. Nothing else has to be registered. It asks `PrivateCounts` for noisy
numbers, and for choices by a score of `confidential.scores`. A new score is a class there: no code of a mechanism runs
on exact counts. What became of a paper's claims stands in `claims.json`, which studies write
(`benchmarks/papers/reproduce.py --keep`); cards repeat it.

An installed package adds a mechanism by an entry point of the group `dphist_pipeline.mechanisms`. The entry point's
name is the name in a spec; its value is a module with a card and one class, like a file of this folder. Audit and card
name the package.

Calling this module, as `dphist_pipeline.mechanisms()`, gives every card.
"""

from __future__ import annotations

import inspect
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from textwrap import fill
from types import ModuleType
from typing import ClassVar, cast

from pydantic import TypeAdapter, ValidationError

from dphist_pipeline.base.domain import Domain, Family
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.errors import Refused, did_you_mean
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms._settings import SAME as SAME
from dphist_pipeline.mechanisms._settings import WIDTH, later_defaults, table_of, told_settings
from dphist_pipeline.mechanisms._settings import Setting as Setting
from dphist_pipeline.mechanisms._settings import ToldSetting as ToldSetting

GROUP = "dphist_pipeline.mechanisms"
LOCAL = ("chp", "shp")  # of a paper, too, but of contributors who perturb their own values


def unknown_mechanism(name: str) -> Refused:
    """No file of this name in the folder of mechanisms, and no entry point of an installed package."""
    hint = did_you_mean(name, names())
    if name.lower() in LOCAL:
        hint = "It is a protocol of the local model: see `dphist local plan` and docs/how-to/local-model.md"
    return Refused(f"there is no mechanism {name[:60]!r}. {hint}", code="unknown_mechanism")


class UnusableMechanism(Refused):
    """A mechanism of an installed package that cannot be loaded, or whose name is taken."""

    def __init__(self, name: str, packages: str, problem: str) -> None:
        self.name, self.packages = name, packages
        super().__init__(
            f"mechanism {name[:60]!r} of {packages} cannot be used: {problem}. Mend or remove the package, "
            "or name another mechanism."
        )


class BadSetting(Refused):
    """A setting that the mechanism does not have, or a value that it does not take."""

    def __init__(self, mechanism: str, setting: str, problem: str) -> None:
        self.mechanism, self.setting = mechanism, setting
        super().__init__(f"mechanism '{mechanism}', setting {setting[:60]!r}: {problem}")


class DomainRefused(Refused):
    """Axes that a mechanism cannot serve."""

    def __init__(self, mechanism: str, problem: str) -> None:
        self.mechanism, self.problem = mechanism, problem
        super().__init__(f"mechanism '{mechanism}' {problem}")


class Mechanism(ABC):
    """One way to turn exact counts behind measurements into an estimate; subclasses are frozen dataclasses.

    Attributes:
        whole_way: how whole counts are fitted, a number of `Way` in `estimates.whole_tables`: 3 where the sums of its
            estimates are nearer than those of its unbiased cells, 4 where these lead the rounding, too. A publication
            says it, so a change is for new ones.
    """

    whole_way: ClassVar[int] = 2

    @abstractmethod
    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Takes noisy measurements, spending exactly `budget`; a function of their answers alone.

        Args:
            counts: exact counts behind measurements, with their domain and sensitivity.
            budget: exact epsilon, which may be split.
        """

    @property
    def advice(self) -> dict[str, str]:
        """Settings, as a spec writes them, that did better than the defaults that these have; mostly none.

        Defaults stand in the digests of specs, so they stay; `dphist new` writes these, and `dphist check` warns.
        """
        return {}

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses, before any data is opened, a domain or a budget that the mechanism cannot serve.

        Args:
            sensitivity: the most by which one privacy unit moves the counts, an L1 distance in rows.
            epsilon: exact, of the mechanism alone.

        Raises:
            DomainRefused: it does not serve the domain.
            BudgetMisuse: a share of epsilon is too small for noise.
        """
        return None

    def check_family(self, family: Family, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses, before any data is opened, tables that the mechanism cannot release together.

        Args:
            sensitivity, epsilon: see `check`; epsilon is spent for all tables together.

        Raises:
            DomainRefused: the mechanism releases one grid, or cannot serve these tables.
        """
        raise DomainRefused(name_of(self), "releases one grid, not `tables:`")


@dataclass(frozen=True)
class Origin:
    """The place where a mechanism is defined.

    Attributes:
        package, version: the installed package that brings it; empty for a mechanism of this folder.
    """

    module: str
    package: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"the package {self.package} {self.version}" if self.package else "dphist"


@cache
def _homes() -> dict[str, list[Origin]]:
    """Every mechanism's homes by name; more than one where packages disagree. Loads no mechanism."""
    homes = {
        module.name: [Origin(f"{__name__}.{module.name}")]
        for module in iter_modules(__path__)
        if not module.name.startswith("_")
    }
    for point in entry_points(group=GROUP):
        about = point.dist
        home = Origin(point.module, about.name if about else "unknown", about.version if about else "")
        if home not in homes.setdefault(point.name, []):
            homes[point.name].append(home)
    return homes


def names() -> list[str]:
    """Every mechanism's name, sorted."""
    return sorted(_homes())


def home(name: str) -> Origin:
    """Where the mechanism of that name is defined.

    Raises:
        Refused: nobody defines it.
        UnusableMechanism: several packages do.
    """
    homes = _homes().get(name)
    if not homes:
        raise unknown_mechanism(name)
    if len(homes) > 1:
        raise UnusableMechanism(name, " and ".join(map(str, homes)), "they all have a mechanism of this name")
    return homes[0]


def foreign_package(name: str) -> str:
    """The packages that bring a mechanism, with their versions; empty for ours, and for a name that nobody defines."""
    return ", ".join(f"{home.package} {home.version}" for home in _homes().get(name, []) if home.package)


def card(name: str) -> str:
    """A mechanism's card: what it does, paper, privacy, domain, cost, what its error bars cover, settings.

    Raises:
        Refused: nobody defines it.
        UnusableMechanism: several packages do, or its module cannot be imported.
    """
    return "\n".join([about(name), *(setting.text() for setting in settings(name))])


def about(name: str) -> str:
    """A mechanism's card up to its settings, which have a description of their own: see `settings`."""
    kind, place = _class(name), home(name)
    foreign = f"\n\nNot part of dphist: {place} brings this mechanism." if place.package else ""
    what = inspect.getdoc(sys.modules[kind.__module__]) or ""
    claims = "" if foreign else _claims().get(name, "")
    told = fill(f"Claims:   {claims}", WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False) if claims else ""
    return f"{what}{foreign}\n{told}\n\n{inspect.getdoc(kind) or ''}".replace("\n\n\n", "\n\n").strip()


def reference(name: str) -> str:
    """A mechanism's card as Markdown, with a table of its settings."""
    table = table_of(settings(name))
    text = about(name).removesuffix("Settings:").strip() if table else about(name)
    return f"```text\n{text}\n```\n\n{table}".strip()


def settings(name: str) -> tuple[ToldSetting, ...]:
    """What is told of each setting of a mechanism: meaning, default, the paper's value, and why they differ."""
    return told_settings(_class(name))


def build(name: str, settings: Mapping[str, object]) -> Mechanism:
    """The mechanism of that name with these settings, as read from YAML or given in Python, defaults filled in."""
    kind = _class(name)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for setting in settings:
        if setting not in known:
            raise BadSetting(name, str(setting), f"no such setting. {did_you_mean(setting, known) or 'It has none.'}")
    try:
        built = _adapter(kind).validate_python(dict(settings))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        setting = str(errors[0]["loc"][0]) if errors[0]["loc"] else ""
        # A setting of several kinds has a problem for each.
        problems = dict.fromkeys(one["msg"] for one in errors if setting in map(str, one["loc"][:1]))
        text = "; or ".join(f"{problem[0].lower()}{problem[1:]}" for problem in problems)
        raise BadSetting(name, setting, text) from None
    for setting, value in settings.items():
        # Where a number is meant, it would be taken for 1 or 0.
        if isinstance(value, bool) and not isinstance(getattr(built, setting), bool):
            raise BadSetting(name, setting, f"must be a number, not {str(value).lower()}")
    return built


def settings_of(mechanism: Mechanism) -> dict[str, object]:
    """All settings of a mechanism as plain JSON values, which specs are charged by.

    Left out are lists that a digest stands for, if they are empty, and settings that were added later, while they have
    their default: or else every period that was released before would ask for `--revise`.
    """
    dumped = cast(dict[str, object], _adapter(type(mechanism)).dump_python(mechanism, mode="json"))
    later = later_defaults(type(mechanism))
    return {
        name: value
        for name, value in dumped.items()
        if (value != "" or getattr(mechanism, name) != ())
        and (name not in later or getattr(mechanism, name) != later[name])
    }


def advice_beside(mechanism: Mechanism, written: Collection[str]) -> dict[str, str]:
    """The settings of `Mechanism.advice`; none where one of them was written by hand, whatever its value."""
    better = mechanism.advice
    return {} if better.keys() & set(written) else better


def advice_on_settings(mechanism: Mechanism, written: Collection[str]) -> list[str]:
    """A sentence about settings that do better than defaults, where a mechanism has some; see `Mechanism.advice`."""
    if not (better := advice_beside(mechanism, written)):
        return []
    name, written = name_of(mechanism), ", ".join(f"{setting}: {value}" for setting, value in better.items())
    return [
        f"`{name}` did better with `settings: {{{written}}}` than with these defaults, which stay for the sake of "
        f"releases that have them: see `dphist mechanisms {name}`."
    ]


@cache
def _claims() -> dict[str, str]:
    """What became of the claims of a mechanism's paper, a sentence each."""
    told: dict[str, str] = json.loads((Path(__file__).parent / "claims.json").read_text(encoding="utf-8"))
    return told


def name_of(mechanism: Mechanism) -> str:
    """The name that a spec uses for this mechanism."""
    module = type(mechanism).__module__
    return next((name for name, homes in _homes().items() if homes[0].module == module), module.rpartition(".")[2])


def _class(name: str) -> type[Mechanism]:
    """The one class of a mechanism's module."""
    place = home(name)
    try:
        module = import_module(place.module)
        defined = [
            member
            for _, member in inspect.getmembers(module, inspect.isclass)
            if issubclass(member, Mechanism) and member.__module__ == module.__name__
        ]
        problem = "" if len(defined) == 1 else f"its module defines {len(defined)} mechanisms, and should define one"
    except Exception as error:  # any code may stand in a package that others wrote
        if not place.package:
            raise
        problem = f"its module cannot be imported ({type(error).__name__})"
    if problem:
        raise UnusableMechanism(name, str(place), problem)
    return defined[0]


@cache  # a forecast builds hundreds
def _adapter(kind: type[Mechanism]) -> TypeAdapter[Mechanism]:
    return TypeAdapter(kind)


class _Registry(ModuleType):
    """Lets the public name `mechanisms` be both this folder and the call that lists it."""

    def __call__(self) -> dict[str, str]:
        """{name: card} of every mechanism."""
        return {name: card(name) for name in names()}


sys.modules[__name__].__class__ = _Registry
