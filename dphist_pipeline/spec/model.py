"""The release spec: what one YAML file declares, checked whole before any data is opened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.mechanisms import Mechanism, build, settings_of
from dphist_pipeline.spec import checks, sources, words
from dphist_pipeline.spec.axes import MOST_CELLS, AxisSpec, check_axes
from dphist_pipeline.spec.code_list_files import Decided
from dphist_pipeline.spec.digest import declared, digest_of
from dphist_pipeline.spec.fields import Flag, one_of, whole
from dphist_pipeline.spec.mistakes import located
from dphist_pipeline.spec.periods import MONTHS, Length, Period, PeriodRule, WeekStart
from dphist_pipeline.spec.refusals import SpecError, as_key, place, shown
from dphist_pipeline.spec.sensitivity import Neighbours, l1_sensitivity
from dphist_pipeline.spec.sources import PrivacyUnit, SqlFile

LONGEST_DELAY = 36_500


class ReleaseSpec(BaseModel):
    """One release as declared: fields in the order in which their checks build on each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: Annotated[str, PlainValidator(words.release_name)] = declared(digest=True)
    title: Annotated[str, PlainValidator(checks.title)] = declared(digest=False, default="")
    source: Annotated[str, PlainValidator(sources.source)] = declared(digest=True)
    csv_delimiter: Annotated[str, PlainValidator(sources.csv_delimiter)] = declared(digest=True, default=",")
    csv_quote: Annotated[str, PlainValidator(sources.csv_quote)] = declared(digest=True, default="")
    source_table: Annotated[str | None, PlainValidator(sources.source_table)] = declared(
        digest=True, later=True, default=None
    )
    hive: Flag = declared(digest=True, later=True, default=False)
    decimal_comma: Annotated[bool, PlainValidator(sources.decimal_comma)] = declared(
        digest=True, later=True, default=False
    )
    privacy_unit: Annotated[PrivacyUnit, PlainValidator(sources.privacy_unit)] = declared(digest=True)
    trusted_sql: Flag = declared(digest=True, later=True, default=False)
    source_sql: Annotated[SqlFile | None, PlainValidator(sources.source_sql)] = declared(
        digest=True, later=True, default=None
    )
    unit_normalise: Annotated[tuple[str, ...], PlainValidator(sources.unit_normalise)] = declared(
        digest=True, later=True, default=()
    )
    max_rows_per_unit: Annotated[int, PlainValidator(checks.max_rows_per_unit)] = declared(digest=True, default=None)
    neighbours: Annotated[
        Neighbours,
        one_of(
            "add_remove",
            "substitute",
            spellings={"add_or_remove_one": "add_remove", "replace_one": "substitute"},
        ),
    ] = declared(digest=True, validation_alias=AliasChoices("neighbours", "neighbors"))
    epsilon: Annotated[Fraction, PlainValidator(checks.epsilon)] = declared(digest=True)
    account: Annotated[str, PlainValidator(words.name)] = declared(digest=True)
    mechanism: Annotated[str, PlainValidator(checks.mechanism)] = declared(digest=True)
    settings: Annotated[dict[str, object], PlainValidator(checks.settings)] = declared(digest=True, default={})
    max_cells: Annotated[int, PlainValidator(lambda value: whole(value, 1, MOST_CELLS))] = declared(
        digest=True, default=MOST_CELLS
    )
    axes: tuple[AxisSpec, ...] = declared(digest=True)
    period: Annotated[Length, one_of("week", "month", "quarter", "year", "none")] = declared(
        digest=True, default="none"
    )
    period_column: Annotated[str | None, PlainValidator(checks.period_column)] = declared(digest=True, default=None)
    period_format: Annotated[str | None, PlainValidator(sources.period_format)] = declared(
        digest=True, later=True, default=None
    )
    week_starts: Annotated[WeekStart, one_of("monday", "sunday")] = declared(digest=True, default="monday")
    quarter_starts: Annotated[str, one_of(*MONTHS)] = declared(digest=True, later=True, default="january")
    time_zone: Annotated[str, PlainValidator(checks.time_zone)] = declared(digest=True, default="UTC")
    release_delay_days: Annotated[int, PlainValidator(lambda value: whole(value, 0, LONGEST_DELAY))] = declared(
        digest=False, default=0
    )
    first_period: Annotated[str | None, PlainValidator(checks.first_period)] = declared(digest=False, default=None)
    schedule: Annotated[str | None, PlainValidator(checks.schedule)] = declared(digest=False, default=None)
    publish: Annotated[str, one_of("automatic", "manual")] = declared(digest=False, default="automatic")
    owners: Annotated[tuple[str, ...], PlainValidator(checks.owners)] = declared(digest=False, default=())

    _base: Path | None = PrivateAttr(default=None)

    @classmethod
    def from_attributes(
        cls,
        attributes: Mapping[str, object],
        base: Path,
        where: str = "attributes",
        code_lists: Decided | None = None,
    ) -> ReleaseSpec:
        """A spec from the mapping under `attributes`, with its templates resolved.

        Args:
            base: folder that relative paths start from.
            where: what messages call the mapping.
            code_lists: gives the folders that an operator declared public; without it no code list is read.

        Raises:
            SpecError: with every mistake that was found.
        """
        if not isinstance(attributes, Mapping):
            raise SpecError([(where, f"must be a mapping with the fields of the release, not {shown(attributes)}")])
        try:
            context = {"base": Path(base).resolve(), "code_list_folders": code_lists}
            spec = cls.model_validate({as_key(key): value for key, value in attributes.items()}, context=context)
        except ValidationError as error:
            problems = [(place(where, at), what) for at, what in located(error, cls.model_fields)]
        else:
            spec._base = Path(base).resolve()
            return spec
        raise SpecError(problems)

    @field_validator("axes", mode="after")
    @classmethod
    def _axes_fit(cls, axes: tuple[AxisSpec, ...], info: Any) -> tuple[AxisSpec, ...]:
        check_axes(axes)
        checks.number_of_cells(axes, info.data.get("max_cells"))
        return axes

    @model_validator(mode="after")
    def _mechanism_serves(self) -> Self:
        """The last check: whether the mechanism can serve these axes with this budget."""
        try:
            self.build_mechanism().check(self.domain, self.sensitivity, self.epsilon)
        except DphistError as error:
            problem = str(error)
        else:
            return self
        raise ValueError(problem)

    @cached_property
    def domain(self) -> Domain:
        """The declared grid."""
        return Domain(tuple(axis.axis for axis in self.axes))

    @property
    def sensitivity(self) -> int:
        """The most that one privacy unit moves all counts together, in rows."""
        return l1_sensitivity(self.max_rows_per_unit, self.neighbours)

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        if self._base is None:
            raise TypeError("a spec gets its folder from `from_attributes` or `load_spec`")
        return self._base

    @property
    def source_pattern(self) -> str:
        """The source as an absolute glob; of a server, which has no files, what is written, and never its address."""
        if self.source_format == "postgres" or sources.in_store(self.source):
            return str(self.source)
        return sources.absolute_pattern(self.source, self.base)

    @property
    def source_format(self) -> sources.Format:
        """What the source is, by its name."""
        return sources.format_of(self.source)

    @property
    def source_address(self) -> str:
        """Where the server of the source is, password and all: never to be shown or kept."""
        return sources.resolved(self.source)

    @property
    def remarks(self) -> list[str]:
        """What whoever checks the spec should know about its query, a sentence or two each."""
        return sources.remarks(self.source_sql, self.trusted_sql, self.account)

    def build_mechanism(self) -> Mechanism:
        """The mechanism with its settings."""
        return build(self.mechanism, self.settings)

    def normalised(self) -> dict[str, object]:
        """Every field as a JSON value: exact fractions as text, defaults filled in, `source` as written."""
        special: dict[str, object] = {
            "epsilon": str(self.epsilon),
            "settings": settings_of(self.build_mechanism()),
            "axes": [axis.normalised() for axis in self.axes],
            "owners": list(map(str, self.owners)),
            # A file may move, but what the query says may not change unnoticed.
            "source_sql": self.source_sql and f"sha256:{self.source_sql.query.sha256}",
        }
        if len(self.privacy_unit.columns) > 1:
            special["privacy_unit"] = list(self.privacy_unit.columns)
        plain = {field: getattr(self, field) for field in type(self).model_fields if field not in special}
        return {field: str(value) if isinstance(value, str) else value for field, value in plain.items()} | special

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex."""
        return digest_of(self, self.normalised())

    def period_named(self, key: str) -> Period:
        """The period with that key; refuses whatever is not a first day, with a PeriodError."""
        return self._periods().named(key)

    def latest_period(self, now: datetime) -> Period:
        """The last period that ended at least `release_delay_days` ago."""
        return self._periods().latest(now)

    def refuse_unfinished(self, period: Period, now: datetime) -> None:
        """Raises PeriodError if the period, with its delay, is not over."""
        self._periods().refuse_unfinished(period, now)

    def _periods(self) -> PeriodRule:
        first_month = MONTHS.index(self.quarter_starts) + 1
        return PeriodRule(self.period, self.week_starts, str(self.time_zone), self.release_delay_days, first_month)
