"""What single fields of a release must be, and how they must agree with the fields before them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from typing import Protocol
from zoneinfo import ZoneInfo, available_timezones

from pydantic import ValidationInfo

from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, LARGEST_SCALE
from dphist_pipeline.mechanisms import build, names
from dphist_pipeline.spec.epsilon import checked_epsilon
from dphist_pipeline.spec.fields import whole
from dphist_pipeline.spec.refusals import Location, MistakesError, as_key, shown
from dphist_pipeline.spec.sensitivity import l1_sensitivity
from dphist_pipeline.spec.sources import EVERY_ROW
from dphist_pipeline.spec.words import text

LARGEST_BOUND = int(LARGEST_SCALE * LARGEST_EPSILON)

_OWNER = re.compile(r"team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?-]+", re.ASCII)
_MACHINE_ZONES = ("localtime", "Factory", "posixrules", "posix/", "right/")


class Sized(Protocol):
    """An axis, as far as counting cells goes."""

    @property
    def size(self) -> int:
        """Number of cells along the axis."""


def title(value: object) -> str:
    """A title for people: any text, or none."""
    return "" if value == "" else text(value)


def max_rows_per_unit(value: object, info: ValidationInfo) -> int:
    """The bound on rows of one person, in agreement with `privacy_unit`."""
    unit = info.data.get("privacy_unit")
    if value is None:
        if unit is not None and unit != EVERY_ROW:
            raise ValueError(
                "is required: how many rows of one person count, per period; the privacy promise rests on it"
            )
        return 1
    bound = whole(value, 1, LARGEST_BOUND)
    if unit == EVERY_ROW and bound != 1:
        raise ValueError(
            "must be 1 with `privacy_unit: row`, where every row is another person; name the person's column"
        )
    return bound


def epsilon(value: object, info: ValidationInfo) -> Fraction:
    """The budget of one period, exact, with noise that stays within the sampler's range."""
    number = checked_epsilon(value)
    bound, neighbours = info.data.get("max_rows_per_unit"), info.data.get("neighbours")
    if bound is None or neighbours is None:
        return number
    sensitivity = l1_sensitivity(bound, neighbours)
    if Fraction(sensitivity) / number > LARGEST_SCALE:
        raise ValueError(
            f"is too small for a sensitivity of {sensitivity:,}: their ratio may be at most 10^7; "
            "raise epsilon or lower `max_rows_per_unit`"
        )
    return number


def mechanism(value: object) -> str:
    """The name of a mechanism that exists."""
    if not isinstance(value, str):
        raise ValueError(f"must be the name of a mechanism, not {shown(value)}. {did_you_mean('', names())}")
    if value not in names():
        raise ValueError(f"there is no mechanism {shown(value)}. {did_you_mean(value[:60], names())}")
    return value


def settings(value: object, info: ValidationInfo) -> dict[str, object]:
    """Settings that the mechanism takes; defaults are its own."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of the mechanism's settings, not {shown(value)}")
    chosen = {as_key(key): item for key, item in value.items()}
    if "mechanism" not in info.data:
        return chosen
    try:
        build(info.data["mechanism"], chosen)
    except DphistError as error:
        setting = getattr(error, "setting", None)
        at: Location = (setting,) if isinstance(setting, str) and setting in chosen else ()
        mistakes = MistakesError([(at, str(error))])
    else:
        return chosen
    raise mistakes


def number_of_cells(axes: Iterable[Sized], most: int | None) -> None:
    """Refuses more cells than allowed, before any is made."""
    sizes = [axis.size for axis in axes]
    if most is not None and math.prod(sizes) > most:
        product = " x ".join(f"{size:,}" for size in sizes)
        raise ValueError(f"make {product} cells, more than the {most:,} of `max_cells`; use fewer or wider bins")


def period_column(value: object, info: ValidationInfo) -> str | None:
    """The column that says when a row happened: there exactly where the release has periods."""
    period = info.data.get("period")
    if value is None:
        if period not in (None, "none"):
            raise ValueError(f"is required with `period: {period}`: the column with the date or time of a row")
        return None
    if period == "none":
        raise ValueError("has no use with `period: none`; remove it, or add `period: week` or another length")
    return text(value)


def time_zone(value: object) -> str:
    """An IANA time zone that means the same on every machine."""
    zone = text(value)
    try:
        if not zone.startswith(_MACHINE_ZONES):
            ZoneInfo(zone)
            return zone
    except (KeyError, ValueError, OSError):
        pass
    near = get_close_matches(zone[:60], sorted(available_timezones()), n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"there is no time zone {shown(zone)}; use a name such as UTC or Europe/Brussels.{hint}")


def first_period(value: object) -> str | None:
    """The first day that an orchestrator offers, as an ISO date; earlier periods are for the command line."""
    if value is None:
        return None
    with suppress(ValueError):
        if isinstance(value, str):
            return date.fromisoformat(value).isoformat()
    raise ValueError(f'must be a day such as "2026-01-05", not {shown(value)}')


def schedule(value: object) -> str | None:
    """A cron line of five fields, or none."""
    if value is None:
        return None
    line = text(value)
    fields = line.split()
    if len(fields) != 5 or not all(map(_CRON_FIELD.fullmatch, fields)):
        raise ValueError(f'must be a cron line of five fields such as "0 6 * * MON", not {shown(value)}')
    return line


def owners(value: object) -> tuple[str, ...]:
    """Who answers for the release: e-mail addresses or `team:` names."""
    if not isinstance(value, list | tuple):
        raise ValueError(f'must be a list such as ["team:statistics"], not {shown(value)}')
    found: list[tuple[Location, str]] = []
    for number, owner in enumerate(value):
        try:
            if not _OWNER.fullmatch(text(owner)):
                raise ValueError(f'must be an e-mail address, or a team such as "team:statistics", not {shown(owner)}')
        except ValueError as error:
            found.append(((number,), str(error)))
    if found:
        raise MistakesError(found)
    return tuple(value)
