"""Individual accounts: a unit pays for its own counted rows, and is not counted once its year is paid for.

What each unit paid is confidential, and stands in files (`confidential.row_filter`). Here stands what is public: the
price of a row, how many rows of a unit a year pays for, and what a charge states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

# D. Prices are whole parts of an epsilon of 1: exact for every epsilon of at most six decimals over 1 to 16 rows. It
# never changes: by a common denominator of the prices of a year, one spec could end the year for all units.
PARTS = 720_720 * 10**6
KINDS = {"text", "whole number", "UUID"}  # of columns that name a unit; 7 as a decimal is staged as 7, 7.0 or 7.00
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Granted:
    """What a charge to an individual account states of the state of its year, which was durable before the charge.

    Attributes:
        rows: R, the most rows of a unit that it counts.
        state: the name of the file that says how many rows of each unit it counts, and what each has paid.
        after: number of the latest entry that had changed what units paid when that file was made; see `Books.paid_at`.
        everybody: epsilon that every unit paid beside its own rows, since earlier files of the year were lost.
        year: of the file; the entry's own year.
        left_out: epsilon of the number of units that it is the first of the year to leave out; 0 where it buys none.
    """

    rows: int
    state: str
    after: int
    everybody: Fraction
    year: int
    left_out: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        whole = type(self.rows) is int and self.rows >= 1 and type(self.after) is int
        if not (whole and _ID.fullmatch(self.state) and self.everybody >= 0):
            raise ValueError("not a state as the ledger writes it")


def price_of_row(epsilon: Fraction, rows: int) -> int:
    """The price of a counted row, in parts, rounded up: one row moves every measurement by epsilon/R."""
    return ceil(epsilon * PARTS / rows)


def price_of_left_out(total: Fraction, share: Fraction, everybody: Fraction) -> Fraction:
    """What a charge pays for the number of units that it is the first of the year to leave out; 0 where it buys none.

    Once `everybody` paid for a lost file, nobody knows who was left out before: such a unit would move a second number.
    """
    return Fraction(0) if everybody else Fraction(floor(total * share * PARTS), PARTS)


def paid_by_year(total: Fraction, left_out: Fraction, everybody: Fraction) -> int:
    """The most that the rows of a unit may cost in a year, in parts: the total less `left_out` and `everybody`."""
    return floor((total * (1 - left_out) - everybody) * PARTS)


def first_left_out(rows: int, year: int, prices: Iterable[tuple[int, int]]) -> int | None:
    """The number, from 0, of the first charge of a year that counts no row of a unit with so many rows in each.

    None where each counts one. `year`: what its rows may cost; `prices`: of a row, and R, for each charge in order.
    """
    for number, (price, most) in enumerate(prices):
        kept = min(rows, most, max(year, 0) // price)
        if kept < 1:
            return number
        year -= kept * price
    return None


def left_out_in_words(year: int, prices: Sequence[tuple[int, int]], names: Sequence[str]) -> str:
    """From which charge on units with 1, 3 and 10 rows in each are left out; `names`: of the charges, in order."""
    found = {rows: first_left_out(rows, year, prices) for rows in (1, 3, 10)}
    return "; ".join(
        f"with {rows} row{'s' if rows > 1 else ''} in each "
        f"{'counted in all' if number is None else f'left out from {names[number]} on'}"
        for rows, number in found.items()
    )
