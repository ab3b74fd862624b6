"""Placeholders in the address of a source, such as `data/{year}-{month}.parquet`: which files a period needs.

The finest placeholder decides: with `{day}` a period needs the files of each of its days, with `{month}` those of each
month that it touches. So a file that is not there is noticed before anything is charged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec.periods import Period, PeriodRule

# Each placeholder as a glob, which finds the files of all periods.
GLOBS = {
    "year": "[0-9]" * 4,
    "month": "[0-9]" * 2,
    "week": "[0-9]" * 2,
    "day": "[0-9]" * 2,
    "period": "-".join("[0-9]" * digits for digits in (4, 2, 2)),
}
# Doubled braces belong to `{{ env.X }}`.
PLACEHOLDER = re.compile(r"(?<!\{)\{([^{}/]*)\}(?!\})")
NAMES = ", ".join(f"{{{name}}}" for name in GLOBS)


def placeholders_of(address: str) -> frozenset[str]:
    """The names of all placeholders of an address.

    Args:
        address: as written or resolved; `{{ env.X }}` is no placeholder.
    """
    return frozenset(PLACEHOLDER.findall(address))


def check_placeholders(address: str, secret: bool = False) -> None:
    """Refuses unknown placeholders, and those that name no stretch of time without others.

    Args:
        address: with `{{ env.X }}` resolved.
        secret: whether a message may not show it.

    Raises:
        ValueError: with what to write.
    """
    found = placeholders_of(address)
    for name in sorted(found - GLOBS.keys()):
        told = "a placeholder" if secret else f"{{{name[:60]}}}"
        hint = "" if secret else f". {did_you_mean(name[:60], GLOBS)}"
        raise ValueError(f"holds {told} in braces, which is none of {NAMES}{hint}")
    if "week" in found and found & {"month", "day"}:
        raise ValueError(
            "holds {week} beside {month} or {day}; weeks lie across months, so use {year} and {week} alone"
        )
    for name, needed in (("month", {"year"}), ("week", {"year"}), ("day", {"year", "month"})):
        if name in found and needed - found:
            missing = " and ".join(f"{{{other}}}" for other in sorted(needed - found, reverse=True))
            raise ValueError(f"holds {{{name}}}, which names a file only together with {missing}")


def as_glob(address: str) -> str:
    """The address with each placeholder as a glob: finds the files of every period.

    Args:
        address: may be a glob already.
    """
    return PLACEHOLDER.sub(lambda match: GLOBS.get(match[1], match[0]), address)


def fillings(address: str, period: Period, rule: PeriodRule) -> list[dict[str, str]]:
    """What stands for each placeholder, for one address after another that a period needs; for `filled`.

    Args:
        address: with `{{ env.X }}` resolved; without a placeholder there is one filling, which is empty.
        period: whose addresses; its days are those of its time zone.
        rule: that cut the period; says on which day weeks start.
    """
    found = placeholders_of(address)
    if not found or period.start is None or period.end is None:
        return [{}]
    made = []
    for day in _first_days(found, period.start.date(), period.end.date() - timedelta(days=1), rule):
        year, week = rule.week_number(day)
        parts = {
            "year": f"{year if 'week' in found else day.year:04}",
            "month": f"{day.month:02}",
            "week": f"{week:02}",
            "day": f"{day.day:02}",
            "period": period.key,
        }
        made.append(parts)
    return made


def filled(address: str, parts: Mapping[str, str]) -> str:
    """The address with some of its placeholders replaced.

    Args:
        address: may be a glob.
        parts: text for each placeholder that is replaced, by name.
    """
    return PLACEHOLDER.sub(lambda match: parts.get(match[1], match[0]), address)


def _first_days(found: frozenset[str], first: date, last: date, rule: PeriodRule) -> Iterator[date]:
    """A day in each stretch of time that the finest placeholder names, from the first day on."""
    following: Callable[[date], date]
    if "day" in found:
        following = _next_day
    elif "week" in found:
        following = rule.next_week
    elif "month" in found:
        following = _next_month
    else:
        following = _next_year if "year" in found else lambda day: last + timedelta(days=1)
    day = first
    while day <= last:
        yield day
        day = following(day)


def _next_day(day: date) -> date:
    return day + timedelta(days=1)


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


def _next_year(day: date) -> date:
    return date(day.year + 1, 1, 1)
