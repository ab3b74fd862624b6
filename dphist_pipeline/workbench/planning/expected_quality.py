"""From how many rows on a quality table tells something: from its share of epsilon alone, before a record is counted.

It tells what the bound cuts where the 95 % interval of the rows cut is no wider than all rows (see
`estimates.row_quality`): below that, neither card nor forecast shows the number, and epsilon was spent in vain.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.releasing.quality_queries import half_widths
from dphist_pipeline.releasing.release_spec import ReleaseSpec

MOST_SHARE = Fraction(1, 2)


def rows_for_quality(spec: ReleaseSpec) -> int | None:
    """The rows of a period below which the quality table cannot tell what it is bought for; None without a table."""
    widths = half_widths(spec)
    return 2 * widths.get("cut", widths["rows"]) if widths else None


def say_quality(spec: ReleaseSpec, per: str) -> str:
    """From how many rows on the quality table tells something, in words; empty without one."""
    rows_needed = rows_for_quality(spec)
    if rows_needed is None:
        return ""
    fewer = f"where a {per} holds fewer than {rows_needed:,} rows, and little below {2 * rows_needed:,}"
    return f"tells nothing of {_bought_for(spec)} {fewer}"


def quality_left_out(spec: ReleaseSpec, per: str) -> list[str]:
    """From how many rows on a quality table would tell something, where a spec has none; in a sentence."""
    # Other engines buy no quality table.
    if spec.quality is not None or spec.engine != "duckdb" or not spec.bound_drops_rows:
        return []
    bought = spec.with_usual_quality()
    assert bought.quality is not None
    field = f"`quality: {{share: {bought.quality.share}, rows: {bought.quality.rows}}}`"
    rows_needed = rows_for_quality(bought)
    return [
        f"{field} would tell {_bought_for(bought)} where a {per} holds {rows_needed:,} rows or more; with fewer, do "
        "without it."
    ]


def small_share(spec: ReleaseSpec, rows: float, per: str, expected: bool = False) -> list[str]:
    """What to know of a share that tells nothing of so many rows, in sentences; nothing where it tells something.

    Args:
        rows: of a period; enough for its average cell not to be poor, or as many as are expected.
        expected: whether so many are expected; else only the office knows how many a period holds, and decides by that.
    """
    rows_needed = rows_for_quality(spec)
    if spec.quality is None or rows_needed is None or rows_needed <= rows:
        return []
    # Widths fall as the share grows; hundredths are enough. Up to twice the rows needed, a table tells little.
    share = Fraction(math.ceil(100 * spec.quality.share * 2 * rows_needed / max(1, rows)), 100)
    fewer = spec.max_rows_per_unit + 1 < spec.quality.rows
    ways = [f"take a share of {as_text(share)}"] if share <= MOST_SHARE else []
    ways += ["fewer `rows`"] if fewer else []
    leave = "leave `quality` out, and all of epsilon goes to the counts"
    mend = f"{' and '.join(ways)}, or {leave}" if share <= MOST_SHARE else leave
    if not expected:
        return [
            f"Keep `quality` if a {per} holds {rows_needed:,} rows or more. With fewer its table cannot tell "
            f"{_bought_for(spec)}, though {rows:,} are enough for the average cell: for so many, {mend}."
        ]
    return [
        f"The share of `quality` buys nothing where a {per} holds {rows:,} rows: below {rows_needed:,} its table "
        f"cannot tell {_bought_for(spec)}. {mend[0].upper()}{mend[1:]}."
    ]


def notes_on_quality(spec: ReleaseSpec, rows: float | None) -> list[str]:
    """What a forecast says of the quality table; nothing without one.

    Args:
        rows: that a period is expected to hold; None where nobody said it.
    """
    per = "release" if spec.period == "none" else spec.period
    sentence = say_quality(spec, per)
    warnings = [] if rows is None else small_share(spec, round(rows), per, expected=True)
    return warnings or ([f"At the spec's epsilon the quality table {sentence}."] if sentence else [])


def _bought_for(spec: ReleaseSpec) -> str:
    """What the quality table of a spec is bought for, in words."""
    return "where rows fell" if "cut" not in half_widths(spec) else "what the bound cuts"
