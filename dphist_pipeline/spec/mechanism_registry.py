"""What a spec must know of mechanisms; it is handed to specs from above, so that they import none."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from dphist_pipeline.domain import Domain, Family


class NamedMechanism(Protocol):
    """A mechanism with its settings, as far as a spec asks it; see `mechanisms.Mechanism`."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses a grid or a budget that it cannot serve."""

    def check_family(self, family: Family, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses tables that it cannot release together."""


class Registry(Protocol):
    """The mechanisms that are installed; the folder `mechanisms` is one."""

    def names(self) -> list[str]:
        """Every mechanism's name, sorted."""

    def build(self, name: str, settings: Mapping[str, object]) -> Any:
        """The mechanism of that name with these settings, defaults filled in."""

    def settings_of(self, mechanism: Any) -> dict[str, object]:
        """All settings of a mechanism as plain JSON values, which specs are charged by."""

    def advised(self, mechanism: Any, written: Mapping[str, object]) -> list[str]:
        """A sentence about settings that do better than defaults, where a mechanism has some and none was written."""
