"""The spec of a collection under local privacy, and its consumers: checked whole before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
)

from dphist_pipeline.base.domain import BinnedAxis, Domain
from dphist_pipeline.base.languages.texts import Code
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.estimates.randomized_response import MOST_ASKED, Encoding
from dphist_pipeline.spec import fields, sources
from dphist_pipeline.spec._binned_axes import BinnedAxisSpec
from dphist_pipeline.spec.fields import (
    Edge,
    Epsilon,
    Flag,
    Name,
    Owners,
    PublishedName,
    ShowBelow,
    Text,
    Title,
    digest_of,
    digits,
    exact,
    spec_field,
    whole,
)
from dphist_pipeline.spec.fields import edge as exact_edge
from dphist_pipeline.spec.loading import COLLECTION, from_file, from_templates
from dphist_pipeline.spec.mistakes import Location, MistakesError, SpecError, as_key, echo, place, with_location
from dphist_pipeline.spec.periods import EVERYTHING

MOST_CONSUMERS = 100
MOST_EDGES = 50_000  # of all consumers together, so that a question stays a file that is read at once
LONGEST_NUMBER = 60  # digits above and below the line of an edge, the most that a question may hold
EXAMPLE = "{name: city, epsilon: 1, width: 5}"


@dataclass(frozen=True)
class Consumer:
    """Who reads one of the histograms.

    Attributes:
        epsilon: the most that a report may spend to serve it.
        edges: of its intervals, exact and rising, from the collection's start to its stop.
    """

    name: str
    epsilon: Fraction
    edges: tuple[Fraction, ...]

    @property
    def intervals(self) -> int:
        """Number of its intervals."""
        return len(self.edges) - 1

    @property
    def is_cut_short(self) -> bool:
        """Whether its intervals have one width, and the last one is shorter."""
        widths = [high - low for low, high in pairwise(self.edges)]
        return len(set(widths[:-1])) == 1 and widths[-1] < widths[0]


def declared_consumers(value: object, info: ValidationInfo) -> tuple[Consumer, ...]:
    """The consumers as declared, whose intervals cover the range exactly."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list such as [{EXAMPLE}], not {echo(value)}")
    if not 1 <= len(value) <= MOST_CONSUMERS:
        raise ValueError(f"must name between 1 and {MOST_CONSUMERS} consumers, not {len(value)}; one is {EXAMPLE}")
    read: list[Consumer] = []
    mistakes: list[tuple[Location, str]] = []
    seen: dict[str, int] = {}
    for number, item in enumerate(value):
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, str) and (first := seen.setdefault(name.casefold(), number)) != number:
            what = f"{echo(name)} is the name of consumers[{first}], case ignored; each makes a release of its own"
            mistakes.append(((number, "name"), f"{what}, so give each another"))
        try:
            read.append(_consumer(item, info.data))
        except MistakesError as error:
            mistakes += [((number, *at), problem) for at, problem in error.found]
    if mistakes:
        raise MistakesError(mistakes)
    if "start" in info.data and "stop" in info.data:
        _check_together(read)
    return tuple(read)


def _with_release_name(word: str, info: ValidationInfo) -> str:
    collection = (info.context or {}).get("collection")
    try:
        fields.release_name(f"{collection}_{word}" if collection else word)
    except ValueError:
        raise ValueError(
            f"{echo(word)} makes no name of a release: <collection>_<name> may have at most {fields.LONGEST_NAME} "
            "characters and be none of the names that every store uses itself; choose another"
        ) from None
    return word


class _Declared(BaseModel):
    """A consumer as written; `_edges_of` checks the ways to cut the range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Name, AfterValidator(_with_release_name)] = Field(
        description="a plain name, such as city; the release is called <collection>_city"
    )
    epsilon: Epsilon = Field(description="what a report may spend at most for it, such as 1")
    width: Any = None
    bins: Any = None
    edges: Any = None


def _consumer(item: object, collection: Mapping[str, Any]) -> Consumer:
    if not isinstance(item, Mapping):
        raise MistakesError([((), f"must be a mapping such as {EXAMPLE}, not {echo(item)}")])
    fields, problems = {as_key(key): value for key, value in item.items() if value is not None}, []
    try:
        read = _Declared.model_validate(fields, context=collection)
    except ValidationError as error:
        problems += with_location(error, _Declared.model_fields)
    try:
        edges = _edges_of(fields, collection.get("start"), collection.get("stop"))
    except MistakesError as error:
        problems += error.found
    if problems:
        raise MistakesError(problems)
    return Consumer(str(read.name), read.epsilon, edges)


def _edges_of(fields: Mapping[str, Any], start: Fraction | None, stop: Fraction | None) -> tuple[Fraction, ...]:
    """The edges of a consumer's intervals; none where the collection's range is missing, which is reported there."""
    ways = [way for way in ("width", "bins", "edges") if fields.get(way) is not None]
    if not ways:
        problem = "is required, unless `width` or `bins` is given: how this consumer cuts the range"
        raise MistakesError([(("edges",), problem)])
    if len(ways) > 1:
        names = " and ".join(f"`{way}`" for way in ways)
        raise MistakesError([(("edges",), f"{names} are given: keep one way to cut the range")])
    (way,) = ways
    if way == "edges":
        edges = _axis(way, edges=fields[way]).edges or ()
        ends = zip((0, len(edges) - 1), ("start", "stop"), (start, stop), strict=True)
        problems = [
            ((way, at), f"must be the collection's `{end}`: every consumer's intervals cover the whole range")
            for at, end, exact in ends
            if exact is not None and edges[at] != exact
        ]
        if problems:
            raise MistakesError(problems)
        return edges
    if start is None or stop is None:
        return ()
    try:
        width = (stop - start) / whole(fields[way], 1, MOST_ASKED.intervals) if way == "bins" else fields[way]
        whole_stop = _stop_of_whole_intervals(start, stop, width)
    except ValueError as error:
        raise MistakesError([((way,), str(error))]) from None
    axis = _axis(way, start=start, stop=whole_stop, width=width)
    if axis.bins > MOST_ASKED.intervals:
        problem = f"makes more than {MOST_ASKED.intervals:,} intervals, the most that a report may have; use wider ones"
        raise MistakesError([((way,), problem)])
    return (*(start + number * (whole_stop - start) / axis.bins for number in range(axis.bins)), stop)


def _stop_of_whole_intervals(start: Fraction, stop: Fraction, width: object) -> Fraction:
    """Where intervals of this width end that cover the range: at `stop`, or beyond it where the last one is cut off.

    As in the paper (Zheng et al. 2021, equation 5), where interval j ends at the lower end plus j widths, and the range
    where it ends. A width that is none is refused by the rules of an axis.
    """
    try:
        exact = exact_edge(width)
    except ValueError:
        return stop
    if exact > stop - start > 0:
        problem = f"is more than the {digits(stop - start)} from start to stop; use `bins: 1`, or a smaller width"
        raise ValueError(f"{digits(exact)} {problem}")
    return start + math.ceil((stop - start) / exact) * exact if exact > 0 else stop


def _axis(way: str, **declared: object) -> BinnedAxisSpec:
    """Bins by the rules of a release's axes, and refused in the same words."""
    try:
        return BinnedAxisSpec.model_validate({"column": "value", **declared})
    except ValidationError as error:
        problems = [((way, *at[1:]), problem) for at, problem in with_location(error, BinnedAxisSpec.model_fields)]
    raise MistakesError(problems)


def _check_together(read: list[Consumer]) -> None:
    """Refuses what no report can hold: too many intervals, and edges that are too close or have too many digits."""
    if sum(len(consumer.edges) for consumer in read) > MOST_EDGES:
        raise ValueError(f"have more than {MOST_EDGES:,} edges together; use wider intervals, or fewer consumers")
    owners = {edge: number for number, consumer in enumerate(read) for edge in consumer.edges}
    boundaries = sorted(owners)
    if len(boundaries) > MOST_ASKED.intervals + 1:
        raise ValueError(
            f"cut the range into {len(boundaries) - 1:,} intervals, all boundaries merged, and at most "
            f"{MOST_ASKED.intervals:,} are possible; use wider intervals, or widths that divide each other"
        )
    mistakes: dict[Location, str] = {}
    for low, high in pairwise(boundaries):
        if float(low) == float(high):
            one, other = sorted((owners[low], owners[high]))
            problem = f"an edge is the same double as one of consumers[{one}], but not the same number"
            mistakes[(other,)] = f"{problem}; write both alike, or use wider intervals"
    for edge in boundaries:
        if max(abs(edge.numerator), edge.denominator) >= 10**LONGEST_NUMBER:
            problem = (
                f"has an edge of more than {LONGEST_NUMBER} digits; write `start`, `stop` and the edges with fewer"
            )
            mistakes[(owners[edge],)] = problem
    if mistakes:
        raise MistakesError(mistakes.items())


FINEST_PARTICIPATION = 10**9
EVERYBODY = Fraction(1)
IN_DIGEST, NOT_IN_DIGEST = spec_field(digest=True), spec_field(digest=False)

Protocol = Literal["shp", "chp", "split_budget", "sampled"]
Combine = Literal["separate", "summed"]
PROTOCOLS = get_args(Protocol)


def _no_column_of_ours(word: str) -> str:
    if fields.OUR_COLUMNS & {f"{word}_lower", f"{word}_upper"}:
        raise ValueError(f"{echo(word)} would publish a column that every release has; choose another name")
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
    if protocol == "split_budget" and readers and _least_epsilon(readers) / len(readers) < SMALLEST_EPSILON:
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
        raise ValueError(f'must lie above 0 and below 1, with at most 9 decimals, such as "0.8", not {echo(value)}')
    if protocol not in ("sampled", None):
        raise ValueError(f"has no use with `protocol: {protocol}`, under which everybody reports; remove it")
    return number


def _protects(values: int, info: ValidationInfo) -> int:
    readers: tuple[Consumer, ...] = info.data.get("consumers", ())
    if readers and values * _least_epsilon(readers) > LARGEST_EPSILON:
        raise ValueError(
            f"times the epsilon of a report is more than {LARGEST_EPSILON}, which promises a contributor nothing; "
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
        if isinstance(value, str) and (value == EVERYTHING or date.fromisoformat(value).isoformat() == value):
            return str(value)
    except ValueError:
        pass
    raise ValueError(f'must be `all`, or the first day of a round such as "2026-03-02", not {echo(value)}')


def _reports(name: str | None) -> str | None:
    if name is None:
        return None
    if "://" in name or sources.ending_of(name) != ".parquet":
        raise ValueError(f"must name Parquet files of this machine, such as reports/*.parquet, not {echo(name)}")
    return name


def _least_epsilon(readers: tuple[Consumer, ...]) -> Fraction:
    return min(consumer.epsilon for consumer in readers)


class CollectionSpec(BaseModel):
    """One collection as declared: fields in the order in which their checks build on each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: Annotated[
        Name,
        spec_field(
            digest=True, description="the collection's name, such as ages; its releases are called ages_<consumer>"
        ),
    ]
    title: Annotated[Title, NOT_IN_DIGEST] = ""
    language: Annotated[Code | None, NOT_IN_DIGEST] = None
    show_below: ShowBelow = None
    value: Annotated[
        PublishedName,
        AfterValidator(_no_column_of_ours),
        spec_field(digest=True, description="what contributors report, such as age; it names the axis of the releases"),
    ]
    start: Annotated[Edge, spec_field(digest=True, description="the lower end of the first interval, such as 0")]
    stop: Annotated[
        Edge,
        AfterValidator(_above_start),
        spec_field(digest=True, description="the upper end of the last interval, such as 100"),
    ]
    consumers: Annotated[
        tuple[Consumer, ...],
        BeforeValidator(declared_consumers),
        spec_field(digest=True, description=f"a list of who reads a histogram, such as {EXAMPLE}"),
    ]
    protocol: Annotated[
        Protocol,
        AfterValidator(_serves_consumers),
        spec_field(digest=True, description=f"one of {', '.join(PROTOCOLS)}; with several consumers usually chp"),
    ]
    encoding: Annotated[Literal[Encoding, "auto"], IN_DIGEST] = "auto"
    participation: Annotated[Fraction, BeforeValidator(_participation), IN_DIGEST] = EVERYBODY
    values_per_contributor: Annotated[
        int, BeforeValidator(lambda value: whole(value, 1, MOST_ASKED.values)), AfterValidator(_protects), IN_DIGEST
    ] = 1
    values: Annotated[Combine, AfterValidator(_can_be_summed), IN_DIGEST] = "separate"
    round: Annotated[str, BeforeValidator(_round), IN_DIGEST] = EVERYTHING
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

        Relative paths start from `base`; messages call the mapping `where`.
        """
        settings = {as_key(key): value for key, value in attributes.items() if value is not None}
        try:
            return cls.model_validate(settings, context={"base": Path(base).resolve()})
        except ValidationError as error:
            problems = [(place(where, at), problem) for at, problem in with_location(error, cls.model_fields)]
        raise SpecError(problems, of_what="collection")

    @classmethod
    def of_fields(
        cls, attributes: Mapping[str, object], base: Path, problems: Sequence[tuple[str, str]] = ()
    ) -> CollectionSpec:
        """The spec in a mapping as written, where no template is resolved.

        Relative paths start from `base`; `problems` were found before, and are named in the same message.
        """
        (spec,) = from_templates(cls.from_attributes, attributes, base, problems, "collection")
        return spec

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

    def axes_of(self, consumer: Consumer) -> list[dict[str, object]]:
        """The axes of the consumer's release as JSON values, as the spec of a release writes them."""
        return [BinnedAxisSpec.model_validate({"column": str(self.value), "edges": consumer.edges}).as_json()]

    def as_json(self) -> dict[str, object]:
        """Every field as a JSON value: exact fractions as text, intervals as edges, `reports` as written."""
        return {field: _plain(getattr(self, field)) for field in type(self).model_fields}

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex."""
        return digest_of(self, self.as_json())


def load_collection(path: Path | str) -> CollectionSpec:
    """The spec of a collection in a YAML file, checked whole; no report is opened.

    Paths inside it start from its project, see `folder_of_spec`.
    """
    (spec,) = from_file(path, COLLECTION, "collection", CollectionSpec.from_attributes)
    return spec


def _plain(value: object) -> object:
    if isinstance(value, Consumer):
        return {name: _plain(item) for name, item in vars(value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str | Fraction) else value
