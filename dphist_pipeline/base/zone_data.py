"""Zone data: when clocks are changed where. Python and DuckDB each have a copy, which may be of another year.

DuckDB's decide where a record belongs. Python's say when a period is over and when a schedule runs. Both are public
facts. No function here opens a source.
"""

from __future__ import annotations

import zoneinfo
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

HALF_HOUR, DAYS = 1800, 366
FARTHEST = 16 * 3600  # seconds that local time is never away from UTC
MEND = (
    "Update the older copy: the tzdata of this machine (or set PYTHONTZPATH= so that Python uses its package tzdata, "
    "and update that), or DuckDB"
)

_LOCAL = "CAST(epoch(timezone($zone, make_timestamptz(instant * 1000000))) AS BIGINT)"


@dataclass(frozen=True)
class ZoneDifference:
    """The first instant of a year at which Python and DuckDB disagree on the local time of a zone."""

    zone: str
    instant: datetime
    python: int  # seconds east of UTC
    duckdb: int

    @property
    def says(self) -> str:
        """The difference, in a sentence."""
        version = zone_data_version(self.zone)
        return (
            f"the zone data of Python{f' ({version})' if version else ''} and of DuckDB differ for {self.zone} from "
            f"{self.instant:%Y-%m-%d %H:%M} UTC on: {_offset(self.python)} and {_offset(self.duckdb)}. "
            "Records are counted by DuckDB's, and schedules run by Python's"
        )


def zone_difference(zone: str, since: datetime) -> ZoneDifference | None:
    """Where Python and DuckDB disagree on a zone in the year after an aware moment, by half hours; None where nowhere.

    None, too, for a zone that DuckDB does not know, since no release is made by it.
    """
    first = int(since.timestamp()) // HALF_HOUR * HALF_HOUR
    every = f"range({first}, {first + DAYS * 24 * 3600}, {HALF_HOUR})"
    by_duckdb = _query_rows(f"SELECT {_LOCAL} FROM (SELECT unnest({every}) AS instant) ORDER BY instant", zone)
    if by_duckdb is None:
        return None
    rules = zoneinfo.ZoneInfo(zone)
    for instant, (seconds,) in zip(range(first, first + DAYS * 24 * 3600, HALF_HOUR), by_duckdb, strict=True):
        moment = datetime.fromtimestamp(instant, rules)
        offset = int(moment.utcoffset().total_seconds())  # type: ignore[union-attr]
        if seconds - instant != offset:
            return ZoneDifference(zone, moment.astimezone(UTC), offset, seconds - instant)
    return None


def zone_data_version(zone: str) -> str:
    """The version of the zone data that Python has of a zone, such as `2026f`; empty where nothing tells it."""
    for folder in zoneinfo.TZPATH:
        if Path(folder, zone).is_file():
            with suppress(OSError, UnicodeDecodeError), Path(folder, "tzdata.zi").open(encoding="ascii") as file:
                sign, _, version = file.readline().strip().partition(" version ")
                return version if sign == "#" else ""
            return ""
    with suppress(ImportError):
        return str(import_module("tzdata").IANA_VERSION)
    return ""


def zone_data_facts(zone: str) -> dict[str, str]:
    """What an audit says of zone data: Python's version, and the DuckDB, which does not name the version of its own."""
    version = zone_data_version(zone)
    python = {"python": version} if version else {}
    return {"time_zone": zone, **python, "duckdb": f"of DuckDB {metadata.version('duckdb')}"}


def spans_of(zone: str, start: datetime, end: datetime) -> list[tuple[int, int]]:
    """The instants at which clocks of a zone show a time from `start` up to but without `end`, by DuckDB's zone data.

    It is one span, or more where clocks are put back over an end.

    Args:
        start, end: without a zone, two days or more apart.

    Returns:
        First second, and the one after the last, since 1970 in UTC.
    """
    bounds = [int((moment - datetime(1970, 1, 1)).total_seconds()) for moment in (start, end)]
    instants = " UNION ALL ".join(f"SELECT unnest(range({at - FARTHEST}, {at + FARTHEST})) AS instant" for at in bounds)
    inside = f"SELECT instant, {_LOCAL} >= {bounds[0]} AND {_LOCAL} < {bounds[1]} AS inside FROM ({instants})"
    before = f"SELECT *, lag(inside, 1, false) OVER (ORDER BY instant) AS before FROM ({inside})"
    changed = _query_rows(f"SELECT instant FROM ({before}) WHERE inside <> before ORDER BY instant", zone)
    changes = [instant for (instant,) in changed or ()]
    return list(zip(changes[::2], changes[1::2], strict=True))


def _query_rows(sql: str, zone: str) -> list[Any] | None:
    """Rows that a DuckDB without any file gives; None where it does not know the zone."""
    import duckdb

    settings: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "enable_external_access": False,
    }
    with closing(duckdb.connect(config=settings)) as connection, suppress(duckdb.NotImplementedException):
        return connection.execute(sql, {"zone": zone}).fetchall()
    return None


def _offset(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"UTC{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
