"""From how many rows on a quality table tells something: from its share of epsilon alone, before a record is counted.

It tells what the bound cuts where the 95 % interval of the rows cut is no wider than all rows (see
`estimates.row_quality`): below that, neither card nor forecast shows the number, and epsilon was spent for nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.row_quality import half_widths

MOST_SHARE = Fraction(1, 2)


def rows_for_quality(spec: ReleaseSpec) -> int | None:
    """The rows of a period below which the quality table cannot tell what it is bought for; None without a table."""
    widths = half_widths(spec)
    return 2 * widths.get("cut", widths["rows"]) if widths else None


def say_quality(spec: ReleaseSpec, per: str) -> str:
    """From how many rows on the quality table tells something, in words; empty without one.

    Args:
        per: what a period is called.
    """
    needed = rows_for_quality(spec)
    if needed is None:
        return ""
    fewer = f"where a {per} holds fewer than {needed:,} rows, and little below {2 * needed:,}"
    return f"tells nothing of {_what(spec)} {fewer}"


def small_share(spec: ReleaseSpec, rows: float, where: str) -> list[str]:
    """What to know of a share that tells nothing of so many rows, a sentence or two; nothing where it tells something.

    Args:
        where: a period that holds so many, as in "where a week holds 700 rows".
    """
    needed = rows_for_quality(spec)
    if spec.quality is None or needed is None or needed <= rows:
        return []
    # Widths fall as the share grows; hundredths are enough. Up to twice the rows needed, a table tells little.
    share = Fraction(math.ceil(100 * spec.quality.share * 2 * needed / max(1, rows)), 100)
    which = f"A share of {as_text(share)}" if share <= MOST_SHARE else "No share up to a half"
    mend = f"{which} would tell more than a little there"
    less = ", and fewer `rows` need less" if spec.max_rows_per_unit + 1 < spec.quality.rows else ""
    return [
        f"The share of `quality` buys nothing {where}: below {needed:,} rows its table cannot tell {_what(spec)}. "
        f"{mend}{less}; or leave `quality` out, and all of epsilon goes to the counts."
    ]


def notes_on_quality(spec: ReleaseSpec, rows: float) -> list[str]:
    """What a forecast says of the quality table; nothing without one.

    Args:
        rows: that a period is expected to hold.
    """
    per = "release" if spec.period == "none" else spec.period
    said = say_quality(spec, per)
    warned = small_share(spec, rows, f"where a {per} holds {round(rows):,} rows")
    return warned or ([f"At the spec's epsilon the quality table {said}."] if said else [])


def _what(spec: ReleaseSpec) -> str:
    return "where rows fell" if "cut" not in half_widths(spec) else "what the bound cuts"
