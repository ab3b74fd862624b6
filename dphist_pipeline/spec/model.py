"""The release spec: what one YAML file declares, checked whole before any data is opened; and what a count declares.

Here are also how a release's assets look in Dagster, where its own names do not fit a project, and what a count of a
data frame needs: a grid, whose rows they are, and how many rows of a unit count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.domain import Axis, Domain, Family
from dphist_pipeline.base.languages.texts import Code
from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, LARGEST_SCALE
from dphist_pipeline.spec import sources
from dphist_pipeline.spec._calendar_axes import CalendarAxisSpec, day_not_before
from dphist_pipeline.spec._engines import EngineField
from dphist_pipeline.spec._family_tables import MECHANISM as TABLES
from dphist_pipeline.spec._family_tables import Tables, TablesSpec, family_of
from dphist_pipeline.spec._quality import (
    DEFAULT_ROWS,
    DEFAULT_SHARE,
    MOST_ROWS,
    Quality,
    QualitySpec,
    check_quality,
    refuse_unpublished_axes,
)
from dphist_pipeline.spec._query_files import MECHANISM as WORKLOAD
from dphist_pipeline.spec._query_files import SETTING, by_cells, with_queries
from dphist_pipeline.spec._upstream import AssetName, check_automation, refuse_timeless
from dphist_pipeline.spec.amount_axes import FEWEST_PARTS, parts_for, refused_with_amount
from dphist_pipeline.spec.axes import EXAMPLE, KINDS, MOST_CELLS, Axes, digested_axes
from dphist_pipeline.spec.declared_columns import DERIVE_EXAMPLE, KEEP_EXAMPLE, Derive, Keep, unit_mistakes
from dphist_pipeline.spec.fields import (
    Epsilon,
    Flag,
    Name,
    Owners,
    ReleaseName,
    ShowBelow,
    Text,
    Title,
    digest_fields_of,
    remarks_of_name,
    spec_field,
    tuple_of,
)
from dphist_pipeline.spec.loading import ADDRESSES, COMPONENT, FOR_EACH, Build, CodeListsOf, from_file, from_templates
from dphist_pipeline.spec.mistakes import (
    LONGEST_ECHO,
    Location,
    MistakesError,
    SpecError,
    WhichSpec,
    as_key,
    echo,
    mapping_of,
    place,
    with_location,
)
from dphist_pipeline.spec.periods import MONTHS, Length, Month, Period, PeriodRule, WeekStart, known_zone
from dphist_pipeline.spec.published_figures import EXAMPLE as FIGURE_EXAMPLE
from dphist_pipeline.spec.published_figures import Figures
from dphist_pipeline.spec.published_figures import refuse_untold as refuse_untold_figures
from dphist_pipeline.spec.sources import (
    EVERY_ROW,
    IN_DIGEST,
    ISO,
    LATER,
    NAMES,
    Decided,
    NormalForm,
    PrivacyUnit,
    SqlFile,
    TextFormat,
    placeholders_of,
    resolved_address,
)
from dphist_pipeline.spec.sources import privacy_unit as unit_of
from dphist_pipeline.spec.unit_axes import AHEAD, OF_UNIT, UnitAxisSpec, read_axes, with_columns


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

    def advice_on_settings(self, mechanism: Any, written: Mapping[str, object]) -> list[str]:
        """A sentence about settings that do better than defaults, where a mechanism has some and none was written."""


TAG_KEY = r"^([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}$"
TAG_VALUE = r"^[A-Za-z0-9_.-]{0,63}$"
OURS = ("dp/", "dagster/")


def _not_ours(key: str) -> str:
    if key.startswith(OURS):
        raise ValueError(f"{echo(key)} begins with {' or '.join(OURS)}, which are not yours to set; choose another")
    return key


TagKey = Annotated[
    Text,
    Field(pattern=TAG_KEY, description="letters, digits, _, -, . and one slash"),
    AfterValidator(_not_ours),
]
TagValue = Annotated[str, Field(strict=True, pattern=TAG_VALUE, description="at most 63 letters, digits, _, - and .")]
Group = Annotated[Text, Field(pattern=r"^[A-Za-z0-9_]+$", description="letters, digits and _")]


class Translation(BaseModel):
    """What the assets are called and how they are marked; no part of the digest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: AssetName | None = None
    group: Group | None = None
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=20)] = Field(default={})
    owners: Owners = ()
    description: Annotated[Text | None, Field(description="text")] = None

    def as_json(self) -> dict[str, Any]:
        """All fields as a JSON value."""
        return {**self.model_dump(), "owners": list(self.owners)}


TranslationField = Annotated[Translation | None, mapping_of(Translation, "{group: statistics}")]


LONGEST_DELAY = 36_500
MOST_FILES_AROUND = 400
LARGEST_BOUND = int(LARGEST_SCALE * LARGEST_EPSILON)
# The digest of a spec names what is charged. A field that is IN_DIGEST is always part of it, NOT_IN_DIGEST never, LATER
# only where it differs from its default, so that specs from before the field was there keep their digests.
NOT_IN_DIGEST = spec_field(digest=False)
_SPELLINGS = {"add_or_remove_one": "add_remove", "replace_one": "substitute"}

UNSEEN_CUT = (
    "`max_rows_per_unit` keeps rows out of the counts, and nothing will tell how many, nor of which kind: shares may "
    "be biased unseen."
)

Neighbours = Literal["add_remove", "substitute"]
# Which rows of a unit count: all, as far as the bound allows, those in one cell as one, or one of the period.
Take = Literal["all", "one_per_cell", "first", "last"]


def l1_sensitivity(max_rows_per_unit: int, neighbours: Neighbours) -> int:
    """The most that all counts together change between neighbouring inputs, in rows: derived here and nowhere else.

    Bounding keeps at most `max_rows_per_unit` rows of a unit, each in one cell. Adding or removing a unit therefore
    moves the counts by at most that many rows in sum, whatever the number of axes. Substituting one unit for another
    takes its rows away and puts as many elsewhere: twice as much.
    """
    if max_rows_per_unit < 1:
        raise ValueError("max_rows_per_unit must be at least 1")
    return 2 * max_rows_per_unit if neighbours == "substitute" else max_rows_per_unit


# A cron line of five fields.
Schedule = Annotated[Text, Field(pattern=r"^\s*([0-9A-Za-z*/,#?-]+\s+){4}[0-9A-Za-z*/,#?-]+\s*$")]


class DeclaredRelease(EngineField):
    """One release as declared: fields in the order in which their checks build on each other.

    `source`, how its files are read, and `privacy_unit` are fields of `sources.RecordSource`, since operators allow
    them without a spec; `deps` and `require` of `UpstreamFields`, `engine` of `EngineField`. They are checked first.
    What it needs of mechanisms is handed to it from above: see `releasing.release_spec.ReleaseSpec`.
    """

    registry: ClassVar[Registry]
    component: ClassVar[str] = COMPONENT  # the `type` of its file
    other_names: ClassVar[tuple[str, ...]] = ("neighbors", FOR_EACH)  # that a file may have beside the fields

    release: Annotated[
        ReleaseName, spec_field(digest=True, description="the release's name, such as weekly_admissions")
    ]
    title: Annotated[Title, NOT_IN_DIGEST] = ""
    # Words for people: what a row is, in the plural, and who is protected.
    counted: Annotated[Title, NOT_IN_DIGEST] = ""
    unit_label: Annotated[Title, NOT_IN_DIGEST] = ""
    language: Annotated[Code | None, NOT_IN_DIGEST] = None
    show_below: ShowBelow = None
    trusted_sql: Annotated[Flag, LATER] = False
    source_sql: Annotated[SqlFile | None, LATER] = None
    derive: Annotated[Derive, Field(examples=[f"[{DERIVE_EXAMPLE}]"]), LATER] = ()
    keep: Annotated[Keep, Field(examples=[f"[{KEEP_EXAMPLE}]"]), LATER] = ()
    max_rows_per_unit: Annotated[
        int,
        Field(strict=True, ge=1, le=LARGEST_BOUND),
        spec_field(
            digest=True, description="how many rows of one person count, per period; the privacy promise rests on it"
        ),
    ]
    neighbours: Annotated[
        Neighbours,
        BeforeValidator(lambda word: _SPELLINGS.get(word, word) if isinstance(word, str) else word),
        spec_field(
            digest=True,
            description="add_remove or substitute",
            validation_alias=AliasChoices("neighbours", "neighbors"),
        ),
    ]
    epsilon: Annotated[Epsilon, spec_field(digest=True, description="the privacy budget of one period, such as 0.5")]
    account: Annotated[Name, spec_field(digest=True, description="the ledger account that pays, such as health")]
    mechanism: Annotated[
        Text,
        spec_field(digest=True, description="the name of a mechanism, such as geometric; there is no default"),
    ]
    settings: Annotated[dict[str, Any], IN_DIGEST] = Field(default={})
    max_cells: Annotated[int, Field(strict=True, ge=1, le=10 * MOST_CELLS), IN_DIGEST] = MOST_CELLS
    tables: Annotated[Tables, LATER] = None
    axes: Annotated[
        Axes, spec_field(digest=True, description=f"a list of axes, such as {EXAMPLE}", examples=[f"[{EXAMPLE}]"])
    ]
    take: Annotated[Take, LATER] = "all"
    quality: Annotated[Quality, LATER] = None
    figures: Annotated[Figures, Field(examples=[f"[{FIGURE_EXAMPLE}]"]), NOT_IN_DIGEST] = ()
    period: Annotated[Length, IN_DIGEST] = "none"
    period_column: Annotated[Text | None, IN_DIGEST] = None
    period_format: Annotated[TextFormat | None, LATER] = None
    # Files beside those of the period that are read for its rows: by months with `{month}`, by days with `{day}`.
    files_before: Annotated[int, Field(strict=True, ge=0, le=MOST_FILES_AROUND), LATER] = 0
    files_after: Annotated[int, Field(strict=True, ge=0, le=MOST_FILES_AROUND), LATER] = 0
    week_starts: Annotated[WeekStart, IN_DIGEST] = "monday"
    quarter_starts: Annotated[Month, LATER] = "january"
    time_zone: Annotated[Text, AfterValidator(known_zone), IN_DIGEST] = "UTC"
    release_delay_days: Annotated[int, Field(strict=True, ge=0, le=LONGEST_DELAY), NOT_IN_DIGEST] = 0
    # Earlier and later periods are for the command line.
    first_period: Annotated[str | None, NOT_IN_DIGEST] = None
    last_period: Annotated[str | None, NOT_IN_DIGEST] = None
    schedule: Annotated[
        Schedule | None,
        spec_field(digest=False, description='a cron line of five fields such as "0 6 * * MON"'),
    ] = None
    automation: Annotated[Literal["eager", "on_cron"] | None, NOT_IN_DIGEST] = None
    freshness: Annotated[int | None, Field(strict=True, ge=0, le=LONGEST_DELAY), NOT_IN_DIGEST] = None
    publish: Annotated[Literal["automatic", "manual", "if_plausible"], NOT_IN_DIGEST] = "automatic"
    store_resource: Annotated[Name | None, NOT_IN_DIGEST] = None
    translation: Annotated[TranslationField, NOT_IN_DIGEST] = None
    owners: Annotated[Owners, NOT_IN_DIGEST] = ()

    @model_validator(mode="before")
    @classmethod
    def _rows_are_bounded_by_one(cls, fields: dict[str, object]) -> dict[str, object]:
        fields = with_columns(fields)
        return {"max_rows_per_unit": 1, **fields} if fields.get("privacy_unit") == EVERY_ROW else fields

    @field_validator("source_sql", mode="before")
    @classmethod
    def _query_is_read(cls, written: object, info: ValidationInfo) -> SqlFile | None:
        if written is None and info.data.get("trusted_sql"):
            raise ValueError("is required with `trusted_sql: true`: the file with the query")
        return None if written is None else sources.read_query(written, info)

    @field_validator("derive")
    @classmethod
    def _unit_is_of_the_source(cls, derived: Derive, info: ValidationInfo) -> Derive:
        if "privacy_unit" in info.data:
            mistakes = unit_mistakes(derived, info.data["privacy_unit"].columns)
            if mistakes:
                raise MistakesError(mistakes)
        return derived

    @field_validator("max_rows_per_unit")
    @classmethod
    def _rows_are_units(cls, bound: int, info: ValidationInfo) -> int:
        if info.data.get("privacy_unit") == EVERY_ROW and bound != 1:
            raise ValueError(
                "must be 1 with `privacy_unit: row`, where every row is another person; name the person's column"
            )
        return bound

    @field_validator("epsilon")
    @classmethod
    def _noise_can_be_drawn(cls, epsilon: Fraction, info: ValidationInfo) -> Fraction:
        if {"max_rows_per_unit", "neighbours"} <= info.data.keys():
            sensitivity = l1_sensitivity(info.data["max_rows_per_unit"], info.data["neighbours"])
            if sensitivity / epsilon > LARGEST_SCALE:
                raise ValueError(
                    f"is too small for a sensitivity of {sensitivity:,}: their ratio may be at most 10^7; "
                    "raise epsilon or lower `max_rows_per_unit`"
                )
        return epsilon

    @field_validator("mechanism")
    @classmethod
    def _known_mechanism(cls, name: str) -> str:
        if name not in (names := cls.registry.names()):
            raise ValueError(f"there is no mechanism {echo(name)}. {did_you_mean(name[:LONGEST_ECHO], names)}")
        return name

    @field_validator("settings", mode="before")
    @classmethod
    def _settings_of_the_mechanism(cls, settings: object, info: ValidationInfo) -> object:
        if not isinstance(settings, Mapping):
            return settings
        settings_asked = with_queries({as_key(key): value for key, value in settings.items()}, info)
        try:
            if "mechanism" in info.data:
                plain = by_cells(settings_asked, None)
                built = cls.registry.build(info.data["mechanism"], plain)
                # `_mechanism_serves` takes it from the validation's context, so it is built once for a spec.
                if plain == settings_asked and info.context is not None:  # else one query stands for those of a file
                    info.context["built_mechanism"] = built
        except DphistError as error:
            setting = getattr(error, "setting", None)
            at: Location = (setting,) if isinstance(setting, str) and setting in settings_asked else ()
            mistakes = MistakesError([(at, str(error))])
        else:
            return settings_asked
        raise mistakes

    @field_validator("axes")
    @classmethod
    def _cells_are_few(cls, axes: Axes, info: ValidationInfo) -> Axes:
        sizes, most = [axis.size for axis in axes], info.data.get("max_cells")
        if most is not None and prod(sizes) > most and info.data.get("tables") is None:
            product = " x ".join(f"{size:,}" for size in sizes)
            raise ValueError(f"make {product} cells, more than the {most:,} of `max_cells`; use fewer or wider bins")
        return axes

    @field_validator("tables")
    @classmethod
    def _tables_have_their_mechanism(cls, tables: TablesSpec | None, info: ValidationInfo) -> TablesSpec | None:
        if tables is not None and info.data.get("mechanism") not in (None, TABLES):
            raise ValueError(f"needs `mechanism: {TABLES}`, which measures what serves the tables together")
        return tables

    @field_validator("take")
    @classmethod
    def _cells_of_persons(cls, take: Take, info: ValidationInfo) -> Take:
        if take == "all":
            return take
        if info.data.get("privacy_unit") == EVERY_ROW:
            raise ValueError("has no use with `privacy_unit: row`, where every row is another person; remove it")
        if take in ("first", "last"):
            if info.data.get("max_rows_per_unit", 1) > 1:
                raise ValueError(
                    f"leaves one row of a unit: `{take}` needs `max_rows_per_unit: 1`, which has less noise"
                )
            return take
        levels = any(getattr(axis, "levels", ()) for axis in info.data.get("axes", ()))
        if info.data.get("max_rows_per_unit", 1) > 1 and (levels or info.data.get("tables") is not None):
            raise ValueError(
                f"needs `max_rows_per_unit: 1` with `{'levels' if levels else 'tables'}`: a unit in two cells would "
                "count twice in one of a coarser table"
            )
        return take

    @field_validator("quality")
    @classmethod
    def _quality_fits(cls, quality: QualitySpec | None, info: ValidationInfo) -> QualitySpec | None:
        return None if quality is None else check_quality(quality, info.data)

    @field_validator("figures")
    @classmethod
    def _populations_are_found(cls, figures: Figures, info: ValidationInfo) -> Figures:
        context = info.context or {}
        for rate in filter(None, (figure.rate for figure in figures)):
            rate.below(context.get("base") or Path(), context.get("code_lists"))
        return figures

    @field_validator("period")
    @classmethod
    def _placeholders_need_periods(cls, length: Length, info: ValidationInfo) -> Length:
        refuse_timeless(length, info)
        return length

    @field_validator("period_column")
    @classmethod
    def _column_where_periods(cls, column: str | None, info: ValidationInfo) -> str | None:
        period = info.data.get("period")
        if column is None and period not in (None, "none"):
            raise ValueError(f"is required with `period: {period}`: the column with the date or time of a row")
        if column is not None and period == "none":
            raise ValueError("has no use with `period: none`; remove it, or add `period: week` or another length")
        return column

    @field_validator("period_format")
    @classmethod
    def _format_of_a_column(cls, written: str | None, info: ValidationInfo) -> str | None:
        if written is not None and info.data.get("period_column", "") is None:
            raise ValueError("has no use without `period_column`; remove it")
        return written

    @field_validator("files_before", "files_after")
    @classmethod
    def _files_of_periods(cls, files: int, info: ValidationInfo) -> int:
        if files and "source" in info.data and not placeholders_of(resolved_address(info.data["source"])):
            raise ValueError(f"has no use where `source` does not say which files a period needs; use {NAMES} in it")
        return files

    @field_validator("first_period", "last_period", mode="before")
    @classmethod
    def _first_day(cls, day: object, info: ValidationInfo) -> str | None:
        return None if day is None else day_not_before(info.data.get("first_period"), day)

    @field_validator("automation")
    @classmethod
    def _automation_is_declared(cls, word: str | None, info: ValidationInfo) -> str | None:
        return check_automation(word, info)

    @model_validator(mode="after")
    def _tables_fit(self) -> Self:
        if self.family is not None and self.quality is not None:
            refuse_unpublished_axes(self.quality, [axis.name for axis in self.family.domain.axes])
        refuse_untold_figures(self.figures, self.grids)
        return self

    @model_validator(mode="after")
    def _amount_fits(self) -> Self:
        if self.domain.amount is not None and (mistakes := refused_with_amount(self)):
            raise MistakesError(mistakes)
        return self

    @model_validator(mode="after")
    def _units_are_walked(self) -> Self:
        """Refuses what follows from several rows of a unit where there is no unit, time or engine for it."""
        mistakes = [(at, problem) for at, problem in self._unwalkable() if problem]
        if mistakes:
            raise MistakesError(mistakes)
        return self

    def _unwalkable(self) -> Iterator[tuple[Location, str]]:
        asked: list[tuple[Location, str]] = [
            (("axes", number, OF_UNIT), f"`of_unit: {axis.of_unit}`")
            for number, axis in enumerate(self.axes)
            if isinstance(axis, UnitAxisSpec)
        ]
        asked += [(("take",), f"`take: {self.take}`")] if self.take in ("first", "last") else []
        for at, what in asked:
            if self.period_column is None:
                yield at, f"{what} puts rows in the order of their time; add `period` and `period_column`"
            if self.privacy_unit == EVERY_ROW:
                yield at, f"{what} is about the rows of a unit, and with `privacy_unit: row` each has one"
            if self.engine != "duckdb":
                yield at, f"`engine: {self.engine}` does not serve {what}; use `engine: duckdb`"
        for number, axis in enumerate(self.axes):
            if isinstance(axis, UnitAxisSpec) and axis.of_unit in AHEAD and self.take not in ("first", "last"):
                problem = f"`{axis.of_unit}` looks ahead of a row; it needs `take: first` or `take: last`"
                yield ("axes", number, OF_UNIT), problem

    @model_validator(mode="after")
    def _mechanism_serves(self, info: ValidationInfo) -> Self:
        """The last check: whether the mechanism can serve these axes with this budget."""
        context: Mapping[str, Any] = info.context or {}
        if "built_mechanism" in context:
            self.__dict__["built_mechanism"] = context["built_mechanism"]
        try:
            mechanism = self.built_mechanism
            if self.family is not None:
                mechanism.check_family(self.family, self.sensitivity, self.mechanism_epsilon)
            else:
                mechanism.check(self.domain, self.sensitivity, self.mechanism_epsilon)
        except DphistError as error:
            problem = str(error)
        else:
            return self
        raise ValueError(problem)

    @classmethod
    def from_attributes(
        cls,
        attributes: Mapping[str, object],
        base: Path,
        where: str = "attributes",
        code_lists: Decided | None = None,
    ) -> Self:
        """A spec from the mapping under `attributes`, with its templates resolved.

        Relative paths start from `base`; messages call the mapping `where`; without `code_lists`, no code list is read.
        """
        if not isinstance(attributes, Mapping):
            raise SpecError([(where, f"must be a mapping with the fields of the release, not {echo(attributes)}")])
        try:
            context = {"base": Path(base).resolve(), "code_lists": code_lists}
            return cls.model_validate({as_key(key): value for key, value in attributes.items()}, context=context)
        except ValidationError as error:
            problems = [(place(where, at), problem) for at, problem in with_location(error, cls.model_fields, KINDS)]
        raise SpecError(problems)

    @classmethod
    def load(cls, path: Path | str, code_lists: Decided | None = None) -> Self:
        """The release spec in a YAML file, checked whole; no data is opened.

        Of a file with `for_each`, the path is `FILE#RELEASE`. Without `code_lists`, no code list is read.

        Raises:
            SpecError: with every mistake that was found, its place in the file and its mend.
            WhichSpec: the file makes several releases, and the path names none of them.
        """
        file, mark, wanted = str(path).rpartition("#")
        if not mark or Path(path).exists():
            file, wanted = str(path), ""
        specs = cls.load_all(file, code_lists)
        names = [spec.release for spec in specs]
        if wanted in names:
            return specs[names.index(wanted)]
        if wanted or len(specs) > 1:
            raise WhichSpec(file, names, wanted)
        return specs[0]

    @classmethod
    def load_all(cls, path: Path | str, code_lists: Decided | None = None) -> list[Self]:
        """All release specs of a YAML file: one, or one for each item of `for_each`; otherwise as `load`."""
        return from_file(path, COMPONENT, "release", cls._build(lambda attributes: code_lists), ADDRESSES, {})

    @classmethod
    def of_fields(
        cls,
        attributes: Mapping[str, object],
        base: Path,
        problems: Sequence[tuple[str, str]] = (),
        code_lists: Decided | None = None,
    ) -> Self:
        """The one release spec in a mapping whose templates are not resolved yet.

        `problems` were found before, and are named in the same message.
        """
        build = cls._build(lambda fields: code_lists)
        (spec,) = from_templates(build, attributes, base, problems, addresses=ADDRESSES)
        return spec

    @classmethod
    def all_of_fields(
        cls,
        attributes: Mapping[str, object],
        base: Path,
        problems: Sequence[tuple[str, str]],
        code_lists_of: CodeListsOf,
        variables: Mapping[str, object],
    ) -> list[Self]:
        """The release specs in a mapping whose templates and loops are not resolved yet; otherwise as `of_fields`.

        `code_lists_of`: what an operator decided about code lists, by the attributes of a spec. `variables`: of a
        project.
        """
        build = cls._build(code_lists_of)
        return from_templates(build, attributes, base, problems, "release", ADDRESSES, variables)

    @classmethod
    def _build(cls, code_lists_of: CodeListsOf) -> Build[Self]:
        return lambda attributes, base: cls.from_attributes(attributes, base, code_lists=code_lists_of(attributes))

    @classmethod
    def editor_schema(cls) -> dict[str, Any]:
        """The JSON schema of a release's attributes, for editors: `properties` by field, `required` and more."""
        from dphist_pipeline.spec._editor_schema import release_schema

        return release_schema(cls.model_fields, cls.registry.names())

    @cached_property
    def domain(self) -> Domain:
        """The declared grid."""
        return Domain(tuple(axis.axis for axis in self.axes))

    @cached_property
    def family(self) -> Family | None:
        """The tables that are released together; None where the whole grid is released."""
        return None if self.tables is None else family_of(self.tables, self.domain.axes, self.max_cells)

    @property
    def first_grid(self) -> Domain:
        """The declared grid, or that of the first table of a family."""
        return self.domain if self.family is None else self.family.grid(self.family.tables[0])

    @property
    def grids(self) -> dict[str, Domain]:
        """The declared grid of each published table, by the suffix of the table's name; '' for the only table."""
        if self.family is None:
            return {"": self.domain}
        return dict(zip(self.family.names, map(self.family.grid, self.family.tables), strict=True))

    @property
    def cells(self) -> int:
        """The number of cells that are published."""
        if self.family is None:
            return self.domain.cells
        return sum(self.family.grid(axes).cells for axes in self.family.tables)

    @property
    def parts(self) -> int:
        """M, the parts into which an amount splits a row, 1 without one: as fine as noise can be drawn for."""
        return 1 if self.domain.amount is None else parts_for(self.sensitivity, self.mechanism_epsilon) or FEWEST_PARTS

    @property
    def sensitivity(self) -> int:
        """The most that one privacy unit moves all counts together, in rows."""
        return l1_sensitivity(self.max_rows_per_unit, self.neighbours)

    def sensitivity_at(self, max_rows_per_unit: int) -> int:
        """The sensitivity under another bound on the rows of a unit."""
        return l1_sensitivity(max_rows_per_unit, self.neighbours)

    @property
    def mechanism_epsilon(self) -> Fraction:
        """The mechanism's part of epsilon: all that no quality table takes."""
        return self.epsilon if self.quality is None else self.epsilon * (1 - self.quality.share)

    @property
    def remarks(self) -> list[str]:
        """What to know about the name, the query, the settings and the bound of the spec, a sentence or two each."""
        remarks = remarks_of_name(self.release) + sources.remarks(
            self.source_sql, self.trusted_sql, self.account, self.privacy_unit.columns
        )
        remarks += self.registry.advice_on_settings(self.built_mechanism, self.settings)
        remarks += [remark for axis in self.axes for remark in getattr(axis, "remarks", ())]
        remarks += sources.remarks_of_letters(self.source, self.csv_encoding, self.domain)
        if self.has_placeholders:
            remarks.append(self._rows_elsewhere)
        if not self.bound_drops_rows or self.quality is not None:
            return remarks
        return [*remarks, UNSEEN_CUT]

    @property
    def bound_drops_rows(self) -> bool:
        """Whether a unit may have more rows than the bound keeps; not where each row is a unit, or `take` keeps one."""
        return self.privacy_unit != EVERY_ROW and self.take not in ("first", "last")

    @property
    def _rows_elsewhere(self) -> str:
        """What to know of rows that lie in files of another period."""
        around = self.files_before or self.files_after
        which = "a farther" if around else "another"
        lost = f"a row in a file of {which} period than its `{self.period_column}` is counted in no period, for ever"
        if not around:
            is_asked = self.quality is not None and self.quality.misfiled
            published = "" if is_asked else ", and `quality: {misfiled: true}` publishes about how many"
            return (
                f"Rows are looked for in the files of their period alone: {lost}. Where files are by another day, as "
                "that of a discharge or an entry, write `files_after: 1` (the file after those of the period is read, "
                f"too) or `files_before: 1`. `dphist look` tells an operator how many rows there are{published}."
            )
        waits = "; those after a period must be complete before it is released (`release_delay_days`)"
        return (
            f"Rows are looked for in the files of their period, in {self.files_before} before and {self.files_after} "
            f"after them{waits if self.files_after else ''}: {lost}."
        )

    @property
    def bound_in_words(self) -> str:
        """How many rows of a unit count at most, such as 3 rows; cells, where equal rows of a unit are one."""
        one = "cell" if self.take == "one_per_cell" else "row"
        return f"1 {one}" if self.max_rows_per_unit == 1 else f"{self.max_rows_per_unit} {one}s"

    @property
    def walks_units(self) -> bool:
        """Whether something follows from several rows of a unit, so that its rows are put in order first."""
        return self.take in ("first", "last") or any(isinstance(axis, UnitAxisSpec) for axis in self.axes)

    @property
    def read_axes(self) -> tuple[Axis, ...]:
        """The axes whose columns are read."""
        return read_axes(self.axes)[0]

    @property
    def history_days(self) -> int:
        """The number of days before a period that some of its rows look back to."""
        return max((axis.days for axis in self.axes if isinstance(axis, UnitAxisSpec)), default=0)

    @property
    def counts_person_cells(self) -> bool:
        """Whether a sum over cells counts a unit once in each of them."""
        return self.take == "one_per_cell" and self.max_rows_per_unit > 1

    def with_usual_quality(self) -> Self:
        """The spec with the quality table that is advised where it has none: a twentieth of epsilon for rows cut."""
        rows = min(MOST_ROWS, max(DEFAULT_ROWS, 2 * self.max_rows_per_unit))
        return self.model_copy(update={"quality": QualitySpec(share=DEFAULT_SHARE, rows=rows)})

    @property
    def text_format(self) -> str | None:
        """How the dates of a period column that is text are written; None for ISO dates."""
        return None if self.period_format == ISO else self.period_format

    @property
    def undeclared_dates(self) -> dict[str, str]:
        """The columns that hold dates and must not be text, since no format is declared: the field that would do so."""
        fields_by_column = {
            axis.column: "format" for axis in self.axes if isinstance(axis, CalendarAxisSpec) and axis.format is None
        }
        if self.period_column is not None and self.period_format is None:
            fields_by_column[self.period_column] = "period_format"
        return fields_by_column

    @property
    def plain_settings(self) -> dict[str, Any]:
        """The settings as the mechanism takes them: a file of queries as cells of the grid."""
        return by_cells(self.settings, self.domain)

    @property
    def queries(self) -> Sequence[tuple[object, ...]]:
        """The queries of a file: axis, first cell, the cell after the last, weight; empty where the spec names none."""
        return self.plain_settings.get(SETTING, ()) if self.mechanism == WORKLOAD else ()

    @cached_property
    def built_mechanism(self) -> NamedMechanism:
        """The mechanism with its settings."""
        mechanism: NamedMechanism = self.registry.build(self.mechanism, self.plain_settings)
        return mechanism

    def as_json(self) -> dict[str, object]:
        """Every field as a JSON value: exact fractions as text, defaults filled in, `source` as written."""
        special: dict[str, object] = {
            "epsilon": str(self.epsilon),
            "settings": self.registry.settings_of(self.built_mechanism),
            "axes": [axis.as_json() for axis in self.axes],
            "owners": list(self.owners),
            "deps": list(self.deps),
            "translation": self.translation and self.translation.as_json(),
            "source": str(self.source),
            "privacy_unit": str(self.privacy_unit),
            "quality": self.quality and self.quality.as_json(),
            "tables": self.tables and self.tables.as_json(),
            "derive": [one.as_json() for one in self.derive],
            "keep": [condition.as_json() for condition in self.keep],
            "figures": [figure.as_json() for figure in self.figures],
            # A file may move, but what the query says may not change unnoticed.
            "source_sql": self.source_sql and f"sha256:{self.source_sql.query.sha256}",
        }
        if len(self.privacy_unit.columns) > 1:
            special["privacy_unit"] = list(self.privacy_unit.columns)
        return {field: getattr(self, field) for field in type(self).model_fields} | special

    @cached_property
    def digest_facts(self) -> Mapping[str, object]:
        """The fields that are part of the digest, as JSON values."""
        facts = digest_fields_of(self, {**self.as_json(), "axes": digested_axes(self.axes)})
        # What says the default aloud changes nothing.
        return {name: value for name, value in facts.items() if (name, value) != ("period_format", ISO)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex."""
        return sha256(self.digest_facts)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The spec with other fields; what was derived from it before is derived anew."""
        copy = super().model_copy(update=update, deep=deep)
        for name in vars(copy).keys() - type(self).model_fields:
            del vars(copy)[name]
        return copy

    def period_named(self, key: str) -> Period:
        """The period with that key; raises PeriodError for another day than the first of a period."""
        return self.period_rule.period_of(key)

    def latest_period(self, now: datetime) -> Period:
        """The last period that ended at least `release_delay_days` ago."""
        return self.period_rule.latest(now)

    def period_before(self, period: Period) -> Period:
        """The period that ends when this one starts."""
        return self.period_rule.before(period)

    def expected_files(self, period: Period) -> tuple[tuple[str, str], ...]:
        """The addresses of the source that a period needs, each as messages call it and as it is looked for."""
        before, looked_at = self.files_before, self.with_history(period)
        if looked_at.start is not None and "period" in placeholders_of(resolved_address(self.source)):
            # The address is looked for once a period, so days of history are told as a number of earlier periods.
            first = period
            while first.start is not None and first.start > looked_at.start:
                first, before = self.period_before(first), before + 1
            looked_at = period
        return self.expected_addresses(looked_at, self.period_rule, before, self.files_after)

    def with_history(self, period: Period) -> Period:
        """The period with the days before it that its rows look back to, where files are of some time."""
        if period.start is None or not placeholders_of(resolved_address(self.source)):
            return period
        return replace(period, start=period.start - timedelta(days=self.history_days))

    def own_files_span(self, period: Period) -> Period:
        """The stretch of time whose rows some period looks for in the own files of a period: see `sources`."""
        return sources.own_files_span(
            resolved_address(self.source), period, self.period_rule, self.files_before, self.files_after
        )

    def refuse_unfinished(self, period: Period, now: datetime) -> None:
        """Raises PeriodError if the period, with its delay, is not over."""
        self.period_rule.refuse_unfinished(period, now)

    @property
    def period_rule(self) -> PeriodRule:
        """The rule by which the release cuts time."""
        first_month = MONTHS.index(self.quarter_starts) + 1
        return PeriodRule(
            self.period, self.week_starts, self.time_zone, self.release_delay_days, first_month, self.last_period
        )


class CubeSpec(BaseModel):
    """The arguments of a count, checked as the fields of a spec are; `domain` is None where a grid is given."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    domain: Axes | None
    privacy_unit: Annotated[PrivacyUnit, BeforeValidator(unit_of)]
    max_rows_per_unit: Annotated[int, Field(strict=True, ge=1, le=LARGEST_BOUND)]
    neighbours: Neighbours
    unit_normalise: Annotated[tuple[NormalForm, ...], tuple_of()]
    derive: Derive
    keep: Keep

    _given: Domain | None = PrivateAttr(None)

    @property
    def grid(self) -> Domain:
        """The declared grid."""
        return self._given or Domain(tuple(axis.axis for axis in self.domain or ()))

    @property
    def sensitivity(self) -> int:
        """The most that one privacy unit moves all counts together, in rows."""
        return l1_sensitivity(self.max_rows_per_unit, self.neighbours)

    @classmethod
    def of_arguments(cls, domain: object, written: Mapping[str, object], asker: str) -> Self:
        """The arguments, without mistakes.

        `domain`: a grid, or its axes as a spec writes them. `asker`: the function that was called, for messages.

        Raises:
            SpecError: naming each argument with a mistake.
        """
        mistakes: list[tuple[Location, str]] = []
        try:
            spec = cls.model_validate({**written, "domain": None if isinstance(domain, Domain) else domain})
        except ValidationError as error:
            mistakes = with_location(error, cls.model_fields, KINDS)
        else:
            spec._given = domain if isinstance(domain, Domain) else None
            if spec.grid.cells > MOST_CELLS:
                problem = f"has {spec.grid.cells:,} cells, more than {MOST_CELLS:,}; use fewer or wider bins"
                mistakes = [(("domain",), problem)]
            elif walked := [number for number, axis in enumerate(spec.domain or ()) if isinstance(axis, UnitAxisSpec)]:
                problem = "is for releases, whose rows have a time and a period"
                mistakes = [(("domain", number, OF_UNIT), problem) for number in walked]
            elif spec.grid.amount is not None:
                problem = (
                    "has an amount, which is released from a spec alone: how finely it is split depends on epsilon"
                )
                mistakes = [(("domain",), problem)]
            elif taken := unit_mistakes(spec.derive, spec.privacy_unit.columns):
                mistakes = [(("derive", *at), problem) for at, problem in taken]
            elif spec.privacy_unit == EVERY_ROW and spec.max_rows_per_unit != 1:
                mistakes = [(("max_rows_per_unit",), "must be 1, or left out, with `privacy_unit: row`")]
            else:
                return spec
        raise SpecError([(place("", at).removeprefix("."), problem) for at, problem in mistakes], file=asker)
