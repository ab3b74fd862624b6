"""What single fields of a collection must be, and how they must agree with the fields before them."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Literal

from pydantic import ValidationInfo

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.local.collection_consumers import Consumer
from dphist_pipeline.local.question import EVERY_ROUND, LEAST_EPSILON, MOST_EPSILON, MOST_VALUES, Combine
from dphist_pipeline.spec import sources, words
from dphist_pipeline.spec.fields import whole
from dphist_pipeline.spec.numbers import edge, exact
from dphist_pipeline.spec.refusals import shown
from dphist_pipeline.spec.words import published_name

FINEST_PARTICIPATION = 10**9

Protocol = Literal["shp", "chp", "split_budget", "sampled"]
PROTOCOLS: tuple[Protocol, ...] = ("shp", "chp", "split_budget", "sampled")


def name(value: object) -> str:
    if value is None:
        raise ValueError("is required: the collection's name, such as ages; its releases are called ages_<consumer>")
    return words.name(value)


def value(value: object) -> str:
    if value is None:
        raise ValueError("is required: what contributors report, such as age; it names the axis of the releases")
    word = published_name(value)
    if words.OUR_COLUMNS & {f"{word}_lower", f"{word}_upper"}:
        raise ValueError(f"{shown(word)} would publish a column that every release has; choose another name")
    return word


def start(value: object) -> Fraction:
    if value is None:
        raise ValueError("is required: the lower end of the first interval, such as 0")
    return edge(value)


def stop(value: object, info: ValidationInfo) -> Fraction:
    if value is None:
        raise ValueError("is required: the upper end of the last interval, such as 100")
    stop, start = edge(value), info.data.get("start")
    if start is not None and stop <= start:
        raise ValueError(f"{shown(value)} must lie above `start`")
    return stop


def protocol(value: object, info: ValidationInfo) -> Protocol:
    if value is None:
        raise ValueError(f"is required: one of {', '.join(PROTOCOLS)}; with several consumers usually chp")
    if value not in PROTOCOLS:
        hint = did_you_mean(value[:60] if isinstance(value, str) else "", PROTOCOLS)
        raise ValueError(f"must be one of {', '.join(PROTOCOLS)}, not {shown(value)}. {hint}")
    readers: tuple[Consumer, ...] = info.data.get("consumers", ())
    if value == "shp" and len(readers) > 1:
        raise ValueError(
            f"shp serves one consumer, and there are {len(readers)}; use chp, which asks once for all of them"
        )
    if value == "split_budget" and readers and least_epsilon(readers) / len(readers) < LEAST_EPSILON:
        raise ValueError(f"leaves each of {len(readers)} consumers an epsilon below 10^-6; use chp, or raise `epsilon`")
    return next(known for known in PROTOCOLS if known == value)


def participation(value: object, info: ValidationInfo) -> Fraction:
    protocol = info.data.get("protocol")
    if value is None:
        if protocol == "sampled":
            raise ValueError(
                'is required with `protocol: sampled`: how likely a report is sent, such as "0.8" or "4/5"'
            )
        return Fraction(1)
    number = exact(value)
    if not 0 < number < 1 or number.denominator > FINEST_PARTICIPATION:
        raise ValueError(f'must lie above 0 and below 1, with at most 9 decimals, such as "0.8", not {shown(value)}')
    if protocol not in ("sampled", None):
        raise ValueError(f"has no use with `protocol: {protocol}`, under which everybody reports; remove it")
    return number


def values_per_contributor(value: object, info: ValidationInfo) -> int:
    values = whole(value, 1, MOST_VALUES)
    readers: tuple[Consumer, ...] = info.data.get("consumers", ())
    if readers and values * least_epsilon(readers) > MOST_EPSILON:
        raise ValueError(
            f"times the epsilon of a report is more than {MOST_EPSILON}, which promises a contributor nothing; "
            "ask for fewer values, or lower `epsilon`"
        )
    return values


def values(value: object, info: ValidationInfo) -> Combine:
    if value not in ("separate", "summed"):
        hint = did_you_mean(value[:60] if isinstance(value, str) else "", ("separate", "summed"))
        raise ValueError(f"must be separate or summed, not {shown(value)}. {hint}")
    if value == "separate":
        return "separate"
    if info.data.get("values_per_contributor") == 1:
        raise ValueError("summed has no use with one value a contributor; remove it, or set `values_per_contributor`")
    if info.data.get("encoding") == "grr":
        raise ValueError("summed adds up bits, which grr does not send; use `separate`, or another `encoding`")
    if info.data.get("protocol") == "sampled":
        raise ValueError("summed hides how many values were sent, which sampled needs; use `separate`, or chp")
    return "summed"


def round_(value: object) -> str:
    try:
        if isinstance(value, str) and (value == EVERY_ROUND or date.fromisoformat(value).isoformat() == value):
            return str(value)
    except ValueError:
        pass
    raise ValueError(f'must be `all`, or the first day of a round such as "2026-03-02", not {shown(value)}')


def reports(value: object) -> str | None:
    if value is None:
        return None
    name = words.text(value)
    if "://" in name or sources.ending_of(name) != ".parquet":
        raise ValueError(f"must name Parquet files of this machine, such as reports/*.parquet, not {shown(name)}")
    return name


def least_epsilon(readers: tuple[Consumer, ...]) -> Fraction:
    return min(consumer.epsilon for consumer in readers)
