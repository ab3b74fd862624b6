"""The days of periods in SQL, as the last columns of every answer."""

from __future__ import annotations

import re

from dphist_pipeline.answering._asked_boxes import piece


def end_of(row: str) -> str:
    """SQL for the day after the last one of the period of a row.

    Args:
        row: alias of a table with a period.
    """
    return f"(SELECT max(c.period_end) FROM chosen AS c WHERE c.period = {row}.period)"


def days() -> dict[str, str]:
    """SQL for the first day of a period and the day after its last: columns of answers, by where the period stands."""
    ends = {
        **{f"of_{row}": (f"{row}.period", end_of(row)) for row in ("inside", "barred", "grouped")},
        "flowing": ("barred.period", "barred.period_end"),
        "of_chosen": ("chosen.period", "chosen.period_end"),
        "of_both": ("barred.first_period", "barred.first_end"),
        "of_span": ("barred.first_period", "barred.period_end"),
        "of_law": ("answered.period", "answered._period_end"),
        "of_shown": ("shown.period", "(SELECT max(a._period_end) FROM answered AS a WHERE a.period = shown.period)"),
    }
    pieces = {f"days_{name}": piece("days", period=period, end=end) for name, (period, end) in ends.items()}
    two = (piece("days", period=f"barred.{one}_period", end=f"barred.{one}_end") for one in ("first", "second"))
    named = (
        re.sub(r"AS period_", f"AS {one}_period_", days) for one, days in zip(("first", "second"), two, strict=True)
    )
    return {**pieces, "days_of_two": ",\n    ".join(named)}
