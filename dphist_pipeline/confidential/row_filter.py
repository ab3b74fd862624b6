"""Individual accounts: the filter between reading and bounding, and the states that say what each unit has paid.

A charge of epsilon that counts at most R rows of a unit costs a unit epsilon/R for each row that is counted. The filter
lets a unit have r rows: the most, up to R, that what it may pay in the year still covers. Bounding keeps r rows then,
in its keyed order, and the state after the charge, one immutable file, adds what those cost. It is durable before the
charge is, which names it. Whoever draws for the charge, now or after a crash, counts anew by its `rows`, and who is not
in it is not counted. So no key of bounding is kept: any r rows cost the same.

Proof. Take two histories of records, one without unit i, and any answers that all charges of a year may give. Fix
these answers. Then specs, prices and what states say of others are the same in both histories: a unit's r, and the
rows that are kept of it, depend on its own rows, on public numbers and on keys that are independent of all records.
Which charges are made, repeated or revised must follow from published things alone. With others' kept rows equal, the
counts of charge t differ by the r_t rows of i, and every measurement loses at most its own epsilon times |x - x'|/R
(`_queries`, `scores`): each is shown there for any distance, and a mechanism's measurements add up to the charge's
epsilon_t. So the answers of charge t are as probable in both histories but for a factor of exp(r_t epsilon_t/R_t) at
most. Whoever draws for charge t in several runs keeps at most r_t rows of i in each measurement, so that holds for
them, too. The filter keeps the sum of r_t times the price of a row within what the year pays, and a price, rounded up
to whole parts, is at least epsilon_t/R_t. A charge whose state was lost adds its whole epsilon_t to what everybody
paid, which is at least r_t epsilon_t/R_t.

`left_out`, the number of units that a charge is the first of its year to leave out: each number that is measured has
noise of scale 1/e, where e is at most the share of the total that the filter sets aside. A state marks i as left out
once in the year, in the first charge that finds rows of it in cells and none that it can pay for; each later state is
made of the one before and knows it. So over all charges of the year i moves one number by 1 and the others by nothing,
and all of them together are as probable in both histories but for a factor of exp(e). Whoever draws for a charge takes
its number from its state. Once a state was lost, no charge of the year has such a number any more. A charge that was
dated ahead, and counts in this year, too, may have had i in the number of its own year: then everybody pays e for it.
Together the loss is at most the total, on every path: so specs, and records that come later, may depend on all that was
published before.

What the state says never shows: no error, name of a file, or file beside these depends on who has paid what. (Their
sizes do, as those of all files here.)
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from dphist_pipeline.base.engine_versions import installed_minor
from dphist_pipeline.base.files import make_folder, sync_file, sync_folder
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.base.sql_files import literal, statement
from dphist_pipeline.confidential.cube import count_each
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading.source import engine_settings, with_enough_memory, withheld
from dphist_pipeline.confidential.row_queries import FilteredUnits

NOBODY = 'SELECT CAST(NULL AS UUID) AS unit, 0 AS paid, 0 AS "left" WHERE false'
PROBLEM = "what its units have paid could not be worked out: no memory or disk left? Nothing was charged for it."
KEY_BYTES = 24  # 32 letters, which are one block of SHA-256 with a name of at most 23 bytes
# The checksum stands in a file's last bytes, after this mark.
MARK, DIGITS, LAST_BYTES, BYTES_AT_ONCE = b"dphist checksum ", 64, 1 << 14, 1 << 20


@dataclass(frozen=True)
class State:
    """A state that was found whole: its file, what it says of itself, and the key by which it names units."""

    path: Path
    facts: Mapping[str, str]

    @property
    def key(self) -> str:
        """The year's key, secret."""
        return self.facts["key"]


def form_of_units(reading: Reading) -> str:
    """The facts that decide how a unit's name is staged as text: another form would be another person.

    Rules of Unicode may move with DuckDB's minor version, so that is part of it where names are normalised.
    """
    version = installed_minor("duckdb") if reading.unit_normalise else ""
    return json.dumps([reading.unit, reading.unit_kinds, reading.unit_normalise, reading.decimal_comma, version])


def whole_state(path: Path, facts: Mapping[str, str]) -> State | None:
    """The state in a file, if it is whole and says these things of itself; None for any other file, or none."""
    try:
        found = json.loads(parquet.read_metadata(path).metadata[b"dphist_state"])
        with path.open("rb") as file:
            place, checksum = _checksum(file)
            file.seek(place)
            whole = facts.items() <= found.items() and file.read(DIGITS) == checksum
    except MemoryError:  # the file may be whole
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None
    return State(path, found) if whole else None


def write_state(
    plan: CountingPlan, staged: Path, path: Path, facts: Mapping[str, str], before: State | None, price: int, pays: int
) -> State:
    """Filters: writes, durably, what each unit has paid after a charge, and how many of its rows that counts.

    Args:
        staged: that `stage_rows` wrote; it stays.
        path: of the new file, in a folder that only this user may enter; nothing is there yet.
        facts: what the file says of itself, without the year's key.
        before: the state before, by whose key units are named; None for a new key, and units that paid nothing.
        price: of a row, at least 1; `pays`: the most that the rows of a unit may cost in the year.

    Raises:
        SourceRefused: there is no memory or disk for it.
    """
    held = {**facts, "key": before.key if before is not None else secrets.token_urlsafe(KEY_BYTES)}
    query = statement(
        "ingest/next_state",
        units=literal(str(_named_units(plan, staged, held["key"]))),
        before=NOBODY if before is None else f"SELECT * FROM read_parquet({literal(str(before.path))})",
        rows=str(plan.max_rows_per_unit),
        pays=str(pays),
        price=str(price),
        facts=literal(json.dumps(held, sort_keys=True)),
        checksum=literal(MARK.decode() + "0" * DIGITS),
        target=literal(str(path)),
    )
    make_folder(path.parent)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    _run(plan, query, staged.parent, path.parent)
    with path.open("r+b") as file:
        place, checksum = _checksum(file)
        file.seek(place)
        file.write(checksum)
    sync_file(path)
    sync_folder(path.parent)
    return State(path, held)


def count_granted(plan: CountingPlan, staged: Path, state: State) -> NDArray[np.int64]:
    """Bounds and counts the staged rows, of each unit as many as a charge's state grants it; shape (cells,).

    Raises:
        SourceRefused: the rows cannot be counted, mostly for lack of memory or disk.
    """
    folder = staged.parent / "granted"
    query = statement(
        "ingest/granted_rows",
        staged=literal(str(staged)),
        units=literal(str(_named_units(plan, staged, state.key))),
        state=literal(str(state.path)),
        target=literal(str(folder)),
    )
    _run(plan, query, staged.parent, state.path.parent)
    granted = {int(part.name.removeprefix("granted=")): part for part in folder.glob("granted=*")}
    counts = count_each(plan, granted)
    shutil.rmtree(folder, ignore_errors=True)
    return counts


def units_left_out(plan: CountingPlan, state: State) -> FilteredUnits:
    """How many units the charge of a state is the first of its year to leave out; all other numbers are 0."""
    read = lambda: parquet.read_table(state.path, columns=["left"])["left"].to_numpy()  # noqa: E731
    left, none = withheld(plan.source.written, PROBLEM, read), np.zeros(0, dtype=np.int64)
    return FilteredUnits(none, none, none, none, none, left_out=np.array([np.count_nonzero(left == 2)]))


def _named_units(plan: CountingPlan, staged: Path, key: str) -> Path:
    """The units of staged rows with their names by a year's key, in a file beside those rows that is written once."""
    units = staged.with_name(f"{staged.stem}_{hashlib.sha256(key.encode()).hexdigest()}.parquet")
    rows = f"read_parquet({literal(str(staged))})"
    query = statement(
        "ingest/named_units",
        key=literal(key),
        staged=f"(SELECT DISTINCT * FROM {rows})" if plan.distinct else rows,
        target=literal(str(units)),
    )
    if not units.exists():
        _run(plan, query, staged.parent)
    return units


def _run(plan: CountingPlan, query: str, *folders: Path) -> None:
    """Runs a statement in a DuckDB that reaches these folders, the first of them a run's, and nothing else."""

    def run() -> None:
        with closing(duckdb.connect(config=engine_settings(folders[0]))) as connection:
            allowed = ", ".join(literal(f"{path}/") for path in folders)
            connection.execute(f"SET allowed_directories = [{allowed}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            connection.execute(query)

    withheld(plan.source.written, PROBLEM, lambda: with_enough_memory(run))


def _checksum(file: BinaryIO) -> tuple[int, bytes]:
    """Where in a state's file its checksum stands, and what it is: a digest of all other bytes."""
    last, digest = max(0, file.seek(0, os.SEEK_END) - LAST_BYTES), hashlib.sha256()
    file.seek(0)
    for begin in range(0, last, BYTES_AT_ONCE):
        digest.update(file.read(min(BYTES_AT_ONCE, last - begin)))
    rest = file.read()
    place = rest.rfind(MARK) + len(MARK)
    digest.update(rest[:place] + rest[place + DIGITS :])
    return last + place, digest.hexdigest().encode()
