"""The spec of a collection under local privacy: what one YAML file declares, checked whole before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
)

from dphist_pipeline.domain import BinnedAxis, Domain
from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.languages.texts import Code
from dphist_pipeline.local.consumers import EXAMPLE, Consumer, declared_consumers
from dphist_pipeline.local.question import EVERY_ROUND, LEAST_EPSILON, MOST_EPSILON, MOST_VALUES, Combine
from dphist_pipeline.spec import fields, sources
from dphist_pipeline.spec.fields import (
    Edge,
    Flag,
    Name,
    Owners,
    PublishedName,
    ShowBelow,
    Text,
    Title,
    declared,
    digest_of,
    digits,
    exact,
    whole,
)
from dphist_pipeline.spec.loading import COLLECTION, from_file, from_templates
from dphist_pipeline.spec.mistakes import SpecError, as_key, located, place, shown

FINEST_PARTICIPATION = 10**9
EVERYBODY = Fraction(1)
IN_DIGEST, NOT_IN_DIGEST = declared(digest=True), declared(digest=False)

Protocol = Literal["shp", "chp", "split_budget", "sampled"]
PROTOCOLS = get_args(Protocol)


def _no_column_of_ours(word: str) -> str:
    if fields.OUR_COLUMNS & {f"{word}_lower", f"{word}_upper"}:
        raise ValueError(f"{shown(word)} would publish a column that every release has; choose another name")
    return word


def _above_start(stop: Fraction, info: ValidationInfo) -> Fraction:
    if "start" in info.data and stop <= info.data["start"]:
        raise ValueError(f"{digits(stop)} must lie above `start`")
    return stop


def _serves_consumers(protocol: Protocol, info: ValidationInfo) -> Protocol:
    readers: tuple[Consumer, ...] = info.data.get("consumers", ())
    if protocol == "shp" and len(readers) > 1:
        raise ValueError(
            f"shp serves one consumer, and there are {len(readers)}; use chp, which asks once for all of them"
        )
    if protocol == "split_budget" and readers and _least_epsilon(readers) / len(readers) < LEAST_EPSILON:
        raise ValueError(f"leaves each of {len(readers)} consumers an epsilon below 10^-6; use chp, or raise `epsilon`")
    return protocol


def _participation(value: object, info: ValidationInfo) -> Fraction:
    protocol = info.data.get("protocol")
    if value is EVERYBODY:
        if protocol == "sampled":
            raise ValueError(
                'is required with `protocol: sampled`: how likely a report is sent, such as "0.8" or "4/5"'
            )
        return EVERYBODY
    number = exact(value)
    if not 0 < number < 1 or number.denominator > FINEST_PARTICIPATION:
        raise ValueError(f'must lie above 0 and below 1, with at most 9 decimals, such as "0.8", not {shown(value)}')
    if protocol not in ("sampled", None):
        raise ValueError(f"has no use with `protocol: {protocol}`, under which everybody reports; remove it")
    return number


def _protects(values: int, info: ValidationInfo) -> int:
    readers: tuple[Consumer, ...] = info.data.get("consumers", ())
    if readers and values * _least_epsilon(readers) > MOST_EPSILON:
        raise ValueError(
            f"times the epsilon of a report is more than {MOST_EPSILON}, which promises a contributor nothing; "
            "ask for fewer values, or lower `epsilon`"
        )
    return values


def _can_be_summed(values: Combine, info: ValidationInfo) -> Combine:
    problems = {
        "values_per_contributor": (
            1,
            "has no use with one value a contributor; remove it, or set `values_per_contributor`",
        ),
        "encoding": ("grr", "adds up bits, which grr does not send; use `separate`, or another `encoding`"),
        "protocol": ("sampled", "hides how many values were sent, which sampled needs; use `separate`, or chp"),
    }
    for field, (unfit, problem) in problems.items():
        if values == "summed" and info.data.get(field) == unfit:
            raise ValueError(f"summed {problem}")
    return values


def _round(value: object) -> str:
    try:
        if isinstance(value, str) and (value == EVERY_ROUND or date.fromisoformat(value).isoformat() == value):
            return str(value)
    except ValueError:
        pass
    raise ValueError(f'must be `all`, or the first day of a round such as "2026-03-02", not {shown(value)}')


def _reports(name: str | None) -> str | None:
    if name is None:
        return None
    if "://" in name or sources.ending_of(name) != ".parquet":
        raise ValueError(f"must name Parquet files of this machine, such as reports/*.parquet, not {shown(name)}")
    return name


def _least_epsilon(readers: tuple[Consumer, ...]) -> Fraction:
    return min(consumer.epsilon for consumer in readers)


class CollectionSpec(BaseModel):
    """One collection as declared: fields in the order in which their checks build on each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: Annotated[
        Name, declared(True, description="the collection's name, such as ages; its releases are called ages_<consumer>")
    ]
    title: Annotated[Title, NOT_IN_DIGEST] = ""
    language: Annotated[Code | None, NOT_IN_DIGEST] = None
    show_below: ShowBelow = None
    value: Annotated[
        PublishedName,
        AfterValidator(_no_column_of_ours),
        declared(True, description="what contributors report, such as age; it names the axis of the releases"),
    ]
    start: Annotated[Edge, declared(True, description="the lower end of the first interval, such as 0")]
    stop: Annotated[
        Edge,
        AfterValidator(_above_start),
        declared(True, description="the upper end of the last interval, such as 100"),
    ]
    consumers: Annotated[
        tuple[Consumer, ...],
        BeforeValidator(declared_consumers),
        declared(True, description=f"a list of who reads a histogram, such as {EXAMPLE}"),
    ]
    protocol: Annotated[
        Protocol,
        AfterValidator(_serves_consumers),
        declared(True, description=f"one of {', '.join(PROTOCOLS)}; with several consumers usually chp"),
    ]
    encoding: Annotated[Literal[Encoding, "auto"], IN_DIGEST] = "auto"
    participation: Annotated[Fraction, BeforeValidator(_participation), IN_DIGEST] = EVERYBODY
    values_per_contributor: Annotated[
        int, BeforeValidator(lambda value: whole(value, 1, MOST_VALUES)), AfterValidator(_protects), IN_DIGEST
    ] = 1
    values: Annotated[Combine, AfterValidator(_can_be_summed), IN_DIGEST] = "separate"
    round: Annotated[str, BeforeValidator(_round), IN_DIGEST] = EVERY_ROUND
    nonnegative: Annotated[Flag, IN_DIGEST] = False
    reports: Annotated[Text | None, AfterValidator(_reports), NOT_IN_DIGEST] = None
    owners: Annotated[Owners, NOT_IN_DIGEST] = ()

    _base: Path = PrivateAttr(default_factory=Path.cwd)

    def model_post_init(self, context: Any) -> None:
        """Keeps the folder that relative paths start from, which is told beside the fields."""
        if context:
            self._base = context["base"]

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, object], base: Path, where: str = "attributes") -> CollectionSpec:
        """A spec from the mapping under `attributes`, which holds no templates.

        Args:
            base: folder that relative paths start from.
            where: what messages call the mapping.

        Raises:
            SpecError: with every mistake.
        """
        given = {as_key(key): value for key, value in attributes.items() if value is not None}
        try:
            return cls.model_validate(given, context={"base": Path(base).resolve()})
        except ValidationError as error:
            problems = [(place(where, at), what) for at, what in located(error, cls.model_fields)]
        raise SpecError(problems, of_what="collection")

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self._base

    @property
    def report_epsilon(self) -> Fraction:
        """The epsilon of one report under every protocol: the least that a consumer declares."""
        return _least_epsilon(self.consumers)

    @property
    def epsilon(self) -> Fraction:
        """What a contributor spends by answering once, with all values; participation does not lower it."""
        return self.values_per_contributor * self.report_epsilon

    @property
    def reports_pattern(self) -> str | None:
        """The reports as an absolute glob."""
        return None if self.reports is None else sources.absolute_pattern(self.reports, self.base)

    def release_of(self, consumer: Consumer) -> str:
        """The name of the consumer's release."""
        return f"{self.collection}_{consumer.name}"

    def domain_of(self, consumer: Consumer) -> Domain:
        """The declared grid of the consumer's release: its intervals, on one axis."""
        return Domain((BinnedAxis(str(self.value), str(self.value), tuple(map(float, consumer.edges))),))

    def normalised(self) -> dict[str, object]:
        """Every field as a JSON value: exact fractions as text, intervals as edges, `reports` as written."""
        return {field: _plain(getattr(self, field)) for field in type(self).model_fields}

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex."""
        return digest_of(self, self.normalised())


def load_collection(path: Path | str) -> CollectionSpec:
    """The spec of a collection in a YAML file, checked whole; no report is opened.

    Args:
        path: of the file; paths inside it start from its project, see `folder_of_spec`.

    Raises:
        SpecError: with every mistake, its place in the file and its mend.
    """
    (spec,) = from_file(path, COLLECTION, "collection", CollectionSpec.from_attributes)
    return spec


def collection_from_attributes(
    attributes: Mapping[str, object], base: Path, problems: Sequence[tuple[str, str]] = ()
) -> CollectionSpec:
    """The spec in a mapping as written, where no template is resolved.

    Args:
        attributes: fields of the spec by name.

    Raises:
        SpecError: with every mistake that was found.
    """
    (spec,) = from_templates(CollectionSpec.from_attributes, attributes, base, problems, "collection")
    return spec


def _plain(value: object) -> object:
    if isinstance(value, Consumer):
        return {name: _plain(held) for name, held in vars(value).items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return str(value) if isinstance(value, str | Fraction) else value
