"""The consumers of a collection: whose histograms are wanted, each with intervals of its own over the whole range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from dphist_pipeline.local.question import MOST_INTERVALS
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.binned_axes import BinnedAxisSpec
from dphist_pipeline.spec.fields import Epsilon, Name, digits, whole
from dphist_pipeline.spec.fields import edge as exact_edge
from dphist_pipeline.spec.mistakes import Location, MistakesError, as_key, located, shown

MOST_CONSUMERS = 100
MOST_EDGES = 50_000  # of all consumers together, so that a question stays a file that is read at once
LONGEST_NUMBER = 60  # digits above and below the line of an edge, the most that a question may hold
EXAMPLE = "{name: city, epsilon: 1, width: 5}"


@dataclass(frozen=True)
class Consumer:
    """Who reads one of the histograms.

    Attributes:
        name: its release is `<collection>_<name>`.
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
    """The consumers as declared, whose intervals cover the range exactly.

    Args:
        info: holds `collection`, `start` and `stop`, where they are valid.

    Raises:
        MistakesError: with every mistake of every consumer.
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list such as [{EXAMPLE}], not {shown(value)}")
    if not 1 <= len(value) <= MOST_CONSUMERS:
        raise ValueError(f"must name between 1 and {MOST_CONSUMERS} consumers, not {len(value)}; one is {EXAMPLE}")
    read: list[Consumer] = []
    found: list[tuple[Location, str]] = []
    seen: dict[str, int] = {}
    for number, item in enumerate(value):
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, str) and (first := seen.setdefault(name.casefold(), number)) != number:
            what = f"{shown(name)} is the name of consumers[{first}], case ignored; each makes a release of its own"
            found.append(((number, "name"), f"{what}, so give each another"))
        try:
            read.append(_consumer(item, info.data))
        except MistakesError as error:
            found += [((number, *at), what) for at, what in error.found]
    if found:
        raise MistakesError(found)
    if "start" in info.data and "stop" in info.data:
        _check_together(read)
    return tuple(read)


def _with_release_name(word: str, info: ValidationInfo) -> str:
    collection = (info.context or {}).get("collection")
    try:
        fields.release_name(f"{collection}_{word}" if collection else word)
    except ValueError:
        raise ValueError(
            f"{shown(word)} makes no name of a release: <collection>_<name> may have at most {fields.LONGEST_NAME} "
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
        raise MistakesError([((), f"must be a mapping such as {EXAMPLE}, not {shown(item)}")])
    fields, found = {as_key(key): given for key, given in item.items() if given is not None}, []
    try:
        read = _Declared.model_validate(fields, context=collection)
    except ValidationError as error:
        found += located(error, _Declared.model_fields)
    try:
        edges = _edges_of(fields, collection.get("start"), collection.get("stop"))
    except MistakesError as error:
        found += error.found
    if found:
        raise MistakesError(found)
    return Consumer(str(read.name), read.epsilon, edges)


def _edges_of(fields: Mapping[str, Any], start: Fraction | None, stop: Fraction | None) -> tuple[Fraction, ...]:
    """The edges of a consumer's intervals; none where the collection's range is missing, which is reported there."""
    given = [way for way in ("width", "bins", "edges") if fields.get(way) is not None]
    if not given:
        problem = "is required, unless `width` or `bins` is given: how this consumer cuts the range"
        raise MistakesError([(("edges",), problem)])
    if len(given) > 1:
        names = " and ".join(f"`{way}`" for way in given)
        raise MistakesError([(("edges",), f"{names} are given: keep one way to cut the range")])
    (way,) = given
    if way == "edges":
        edges = _axis(way, edges=fields[way]).edges or ()
        ends = zip((0, len(edges) - 1), ("start", "stop"), (start, stop), strict=True)
        found = [
            ((way, at), f"must be the collection's `{end}`: every consumer's intervals cover the whole range")
            for at, end, exact in ends
            if exact is not None and edges[at] != exact
        ]
        if found:
            raise MistakesError(found)
        return edges
    if start is None or stop is None:
        return ()
    try:
        width = (stop - start) / whole(fields[way], 1, MOST_INTERVALS) if way == "bins" else fields[way]
        whole_stop = _stop_of_whole_intervals(start, stop, width)
    except ValueError as error:
        raise MistakesError([((way,), str(error))]) from None
    axis = _axis(way, start=start, stop=whole_stop, width=width)
    if axis.bins > MOST_INTERVALS:
        problem = f"makes more than {MOST_INTERVALS:,} intervals, the most that a report may have; use wider ones"
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
        found = [((way, *at[1:]), what) for at, what in located(error, BinnedAxisSpec.model_fields)]
    raise MistakesError(found)


def _check_together(read: list[Consumer]) -> None:
    """Refuses what no report can hold: too many intervals, and edges that are too close or have too many digits."""
    if sum(len(consumer.edges) for consumer in read) > MOST_EDGES:
        raise ValueError(f"have more than {MOST_EDGES:,} edges together; use wider intervals, or fewer consumers")
    owners = {edge: number for number, consumer in enumerate(read) for edge in consumer.edges}
    boundaries = sorted(owners)
    if len(boundaries) > MOST_INTERVALS + 1:
        raise ValueError(
            f"cut the range into {len(boundaries) - 1:,} intervals, all boundaries merged, and at most "
            f"{MOST_INTERVALS:,} are possible; use wider intervals, or widths that divide each other"
        )
    found: dict[Location, str] = {}
    for low, high in pairwise(boundaries):
        if float(low) == float(high):
            one, other = sorted((owners[low], owners[high]))
            what = f"an edge is the same double as one of consumers[{one}], but not the same number"
            found[(other,)] = f"{what}; write both alike, or use wider intervals"
    for edge in boundaries:
        if max(abs(edge.numerator), edge.denominator) >= 10**LONGEST_NUMBER:
            what = f"has an edge of more than {LONGEST_NUMBER} digits; give `start`, `stop` or edges fewer"
            found[(owners[edge],)] = what
    if found:
        raise MistakesError(found.items())
