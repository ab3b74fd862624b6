"""What a release waits for: the assets that its records come from, and the files that a period needs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from dphist_pipeline.spec.fields import Text, spec_field, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo
from dphist_pipeline.spec.periods import Period, PeriodRule
from dphist_pipeline.spec.sources import (
    NAMES,
    RecordSource,
    absolute_pattern,
    fill_placeholders,
    fillings,
    placeholders_of,
    resolved_address,
)

MOST_DEPS = 50
MOST_CHECKS = 20
_KEY = r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*"  # of an asset
Require = Literal["files", "partitions", "checks", "none"]
Rule = Literal["files", "partitions", "checks"]


def _apart(keys: tuple[str, ...]) -> tuple[str, ...]:
    mistakes: list[tuple[Location, str]] = [
        ((number,), f"{echo(key)} is named twice; name it once")
        for number, key in enumerate(keys)
        if key in keys[:number]
    ]
    if mistakes:
        raise MistakesError(mistakes)
    return keys


# The key of an asset, its parts with slashes.
AssetName = Annotated[
    Text,
    Field(
        pattern=rf"^{_KEY}$",
        description="the key of an asset, its parts with slashes, such as raw/visits",
    ),
]
Deps = Annotated[
    tuple[AssetName, ...],
    AfterValidator(_apart),
    tuple_of(0, MOST_DEPS),
    Field(description="the key of an asset, its parts with slashes, such as raw/visits", examples=["[raw/visits]"]),
]
# The key of an asset, and the name of its check.
CheckName = Annotated[
    Text,
    Field(
        pattern=rf"^{_KEY}:[A-Za-z0-9_]+$",
        description="the key of an asset and the name of its check, such as raw/visits:complete",
    ),
]
Checks = Annotated[
    tuple[CheckName, ...],
    AfterValidator(_apart),
    tuple_of(0, MOST_CHECKS),
    Field(
        description="the key of an asset and the name of its check, such as raw/visits:complete",
        examples=["[raw/visits:complete]"],
    ),
]


class UpstreamFields(RecordSource):
    """Where records are, and what must be there before they are read."""

    deps: Annotated[Deps, spec_field(digest=False)] = ()
    required_checks: Annotated[Checks, spec_field(digest=False)] = ()
    require: Annotated[Require | None, spec_field(digest=False), Field(validate_default=True)] = None

    @field_validator("require")
    @classmethod
    def _can_be_looked_at(cls, require: Require | None, info: ValidationInfo) -> Require | None:
        if require == "files" and "source" in info.data and not placeholders_of(resolved_address(info.data["source"])):
            raise ValueError(f"is `files`, and `source` does not say which files a period needs: use {NAMES} in it")
        if require == "partitions" and info.data.get("deps") == ():
            raise ValueError("is `partitions`, and there are no `deps` whose partitions could be required")
        checks, deps = info.data.get("required_checks"), info.data.get("deps")
        if checks is None or deps is None:  # found wrong already
            return require
        if (require == "checks") != bool(checks):
            raise ValueError("`require: checks` and `required_checks` go together; write both or neither")
        strange = [name for name in checks if name.rpartition(":")[0] not in deps]
        if strange:
            raise ValueError(f"is `checks`, and {echo(strange[0])} is a check of no asset that `deps` names")
        return require

    @property
    def requires(self) -> frozenset[Rule]:
        """The rules that hold before a charge: as written, or all that can be looked at."""
        if self.require not in (None, "checks"):
            return frozenset() if self.require == "none" else frozenset({self.require})
        rules: dict[Rule, bool] = {"files": self.has_placeholders, "partitions": bool(self.deps)}
        rules["checks"] = self.require == "checks"
        return frozenset(rule for rule, holds in rules.items() if holds)

    @property
    def only_dagster_knows(self) -> bool:
        """Whether a rule must hold that nothing but Dagster can look at."""
        return bool(self.requires - ({"files", "partitions"} if self.has_placeholders else {"files"}))

    @property
    def has_placeholders(self) -> bool:
        """Whether the source's address holds placeholders, and so says which files a period needs."""
        return bool(placeholders_of(resolved_address(self.source)))

    def expected_addresses(
        self, period: Period, rule: PeriodRule, before: int = 0, after: int = 0
    ) -> tuple[tuple[str, str], ...]:
        """The addresses that a period needs, each as messages call it and as a glob or an object's; maybe none.

        `before`, `after`: of so many files more, as `fillings` counts them.
        """
        if not self.has_placeholders:
            return ()
        whole = resolved_address(self.source)
        files = {}
        for parts in fillings(whole, period, rule, before, after):
            address = fill_placeholders(whole, parts)
            pattern = absolute_pattern(address, self.base) if self.has_files else address
            files[pattern] = fill_placeholders(str(self.source), parts)
        return tuple((called, pattern) for pattern, called in files.items())


def check_automation(word: str | None, info: ValidationInfo) -> str | None:
    """Refuses what would ask for periods that nobody named: without periods, a first one, or a cron line."""
    if word is None:
        return None
    if info.data.get("period") == "none":
        raise ValueError("has no use with `period: none`, which is released once; remove it")
    if "first_period" in info.data and info.data["first_period"] is None:
        raise ValueError("needs `first_period`: every period from that one on is charged without asking anybody")
    if word == "on_cron" and "schedule" in info.data and info.data["schedule"] is None:
        raise ValueError('is `on_cron` and needs `schedule`, a cron line such as "0 6 * * MON"')
    return word


def refuse_timeless(length: str, info: ValidationInfo) -> None:
    """Refuses placeholders in the source of a release without periods."""
    if length == "none" and "source" in info.data and placeholders_of(resolved_address(info.data["source"])):
        raise ValueError("is `none`, and the placeholders of `source` need one: add `period: month` or another length")
