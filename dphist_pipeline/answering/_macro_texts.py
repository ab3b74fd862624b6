"""The texts that macros share: sums of columns, notes and limits, by their names in `sql/answering/`."""

from __future__ import annotations

from dphist_pipeline.answering._asked_boxes import piece
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.reliability import MOST_FAIR, MOST_GOOD
from dphist_pipeline.sql_files import literal


def exact_sum(number: str) -> str:
    """SQL for a sum whose digits do not depend on the order of rows.

    Args:
        number: SQL for what is summed.
    """
    return piece("exact_sum", number=number)


SUMS = {
    name: exact_sum(number)
    for name, number in {
        "estimate": "t.estimate",
        "unbiased": "t.unbiased_estimate",
        "variance": "nested.coefficient * nested.squares",
        "sum_of_estimate": "estimate",
        "sum_of_unbiased": "unbiased_estimate",
        "sum_of_row": "v.coefficient * v.squares",
        "sum_of_nodes": "nodes.coefficient",
        "sum_of_spans": "s.weight * s.share",
        "sum_of_variances": "s.variance",
        "sum_of_estimates": "s.estimate",
        "sum_of_unbiaseds": "s.unbiased",
        "sum_of_weights": "w.weight",
        "sum_of_products": "one.sign * one.weight * two.weight",
        "sum_of_levels": "l.coefficient * l.product",
        "sum_of_weighted": "w.weight * w.estimate",
        "sum_of_weighted_unbiased": "w.weight * w.unbiased",
        "sum_of_weighted_variances": "w.weight ** 2 * w.variance",
        "sum_of_errors": "w.weight * sqrt(w.variance)",
        "sum_of_rows": "a.estimate",
        "sum_of_unbiased_rows": "a.unbiased",
        "sum_of_middles": "a.estimate * (k.low_end + k.high_end) / 2",
        "sum_of_unbiased_middles": "a.unbiased * (k.low_end + k.high_end) / 2",
        "sum_of_squares": "a.unbiased * k.middle ** 2",
        "sum_of_lows": "a.unbiased * k.above_least",
        "sum_of_highs": "a.unbiased * k.below_most",
    }.items()
}
NOTES = {
    name: literal(text)[1:-1]
    for name, text in {
        "no_interval": notes.NO_INTERVAL,
        "smoothed": notes.SMOOTHED,
        "below": notes.BELOW,
        "no_whole": notes.NO_WHOLE,
        "no_share": notes.NO_SHARE,
        "no_mean": notes.NO_MEAN,
        "no_law": notes.NO_LAW,
        "no_ratio": notes.NO_RATIO,
        "open_bin": notes.OPEN_BIN,
        "ranks_together": notes.RANKS_TOGETHER,
        "missing_day": notes.MISSING_DAY,
        "missing_days": notes.MISSING_DAYS,
        "cap_unknown": notes.CAP_UNKNOWN,
        "unseen": notes.UNSEEN,
        "chance_left_out": notes.CHANCE_LEFT_OUT,
        "chance_never": notes.CHANCE_NEVER,
        "chance_within": notes.CHANCE_WITHIN,
        "chance_of_releases": notes.CHANCE_OF_RELEASES,
        "first_period": notes.FIRST_PERIOD,
        "second_period": notes.SECOND_PERIOD,
        "count_is": notes.COUNT_IS,
        "chance_same": notes.CHANCE_SAME,
        "open_middle": notes.OPEN_MIDDLE,
        "middles_of_estimated_mean": notes.MIDDLES_OF_ESTIMATE.format(what="mean"),
        "middles_of_estimated_sum": notes.MIDDLES_OF_ESTIMATE.format(what="sum"),
        "middles_covered": notes.MIDDLES_COVERED,
        "cut": notes.CUT,
        "cuts_group": notes.CUTS_GROUP,
    }.items()
}
LIMITS = {"most_good": repr(MOST_GOOD), "most_fair": repr(MOST_FAIR)}
CUT_NOTE = (
    "WHEN barred.cut_axes IS NOT NULL THEN '{}' || barred.cut_axes || '{}' "
    "|| coalesce('; did you mean ' || barred.meant || '?', '')\n        "
).format(*NOTES["cut"].split("{axes}"))
