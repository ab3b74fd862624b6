"""What a check and a charge cost in a ledger of 10^2, 10^4 and 10^5 entries, and what opening and verifying cost.

    python benchmarks/ledger.py [--server ADDRESS] [--output FILE]

Every size is a ledger of its own with one account: charges, each followed by its publication. Reported are medians of
`REPEATS` checks and as many charges, in milliseconds of wall time with the least and the worst beside, and seconds of a
first opening, which judges every entry, of a later one, which judges what is new, and of `verify`. CPU time of this
process stands beside, which other programs on the machine change less. Most of a charge's time waits for the disk, so
beside it stands the same transaction without a ledger: one row, committed.
`--server` measures in databases that it names by {size}, `postgresql://me@/ledger_{size}?host=/run/postgresql`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.ledger.database import SqliteFile
from dphist_pipeline.ledger.entries import Account, ChargeRequest, charge_of, exact_text
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.opened import Writing, utc_now

SIZES = (100, 10_000, 100_000)
REPEATS = 21
ACCOUNT = Account("health", "patient_id", "add_remove", Fraction(1_000_000), None, "store-1")


def request(number: int) -> ChargeRequest:
    """The charge of one more period."""
    terms = (ACCOUNT.privacy_unit, ACCOUNT.neighbours, ACCOUNT.store_id)
    return ChargeRequest(ACCOUNT.name, "weekly", f"period-{number}", 1, Fraction(1, 2), "digest", "", *terms)


def filled(url: str | sa.URL, size: int) -> Ledger:
    """A ledger with so many entries, made in one transaction."""
    made = Ledger.create(url)
    made.open_account(ACCOUNT)
    with made._file.transaction("write") as connection:
        writing = Writing(connection, made._current_books(connection), utc_now())
        number = 0
        while writing.books.last is not None and writing.books.last.number < size:
            number += 1
            facts: dict[str, Any] = {"epsilon": exact_text(Fraction(1, 2)), "digest": "digest", "reason": ""}
            asked = request(number)
            entry = writing._post(writing.append("charged", facts, ACCOUNT.name, asked))
            if entry.number < size:
                published = {"charge": entry.number, "digest": f"values-{number}"}
                writing._post(writing.append("published", published, ACCOUNT.name, charge_of(entry, entry.facts)))
    return made


def seconds(act: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Wall time, and CPU time of this process, of one call."""
    begun = time.process_time()
    return seconds(act), time.process_time() - begun


def in_milliseconds(taken: list[tuple[float, float]]) -> dict[str, float]:
    """Median, least and most wall time, and median CPU time, of several calls."""
    wall, cpu = ([1000 * one for one in each] for each in zip(*taken, strict=True))
    middle = statistics.median
    found = {"ms": middle(wall), "ms_least": min(wall), "ms_worst": max(wall), "cpu_ms": middle(cpu)}
    return {name: round(value, 2) for name, value in found.items()}


def cpu_seconds(act: Callable[[], object]) -> float:
    """CPU time of this process in one call."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def measured(url: str | sa.URL, size: int) -> dict[str, Any]:
    """The costs in one ledger."""
    made = filled(url, size)
    first, first_cpu = timed(lambda: Ledger.open(url, made.id))
    later, later_cpu = timed(lambda: Ledger.open(url, made.id))
    ledger = Ledger.open(url, made.id)
    first_check = 1000 * seconds(lambda: ledger.check(request(1_000_000 + REPEATS)))
    checks, charges, commits = [], [], []
    for number in range(REPEATS):
        asked = request(1_000_000 + number)
        checks.append(timed(lambda asked=asked: ledger.check(asked)))
        charges.append(timed(lambda asked=asked: ledger.charge(asked)))
        commits.append(timed(lambda: _one_row(ledger)))
    found = {
        "entries": size,
        **{
            f"{name}_{kind}": value
            for name, taken in (("check", checks), ("charge", charges), ("one_committed_row", commits))
            for kind, value in in_milliseconds(taken).items()
        },
        "first_check_ms": round(first_check, 2),
        "first_open_s": round(first, 3),
        "first_open_cpu_s": round(first_cpu, 3),
        "open_s": round(later, 3),
        "open_cpu_s": round(later_cpu, 3),
        "verify_s": round(seconds(ledger.verify), 3),
        "standing_cpu_s": round(cpu_seconds(ledger.standing), 3),
    }
    print(found, flush=True)
    return found


def _one_row(ledger: Ledger) -> None:
    with ledger._file.transaction("write") as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS beside (a INTEGER)")
        connection.exec_driver_sql("INSERT INTO beside VALUES (1)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="address of databases on a PostgreSQL server, with {size}")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/ledger.json"))
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": f"{platform.machine()}, Python {platform.python_version()}", "repeats": REPEATS}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # what this user judged before does not count here
        files = [SqliteFile(Path(folder) / f"{size}.sqlite").url for size in SIZES]
        found["sqlite"] = [measured(url, size) for url, size in zip(files, SIZES, strict=True)]
        if options.server:
            found["postgresql"] = [measured(options.server.format(size=size), size) for size in SIZES]
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
