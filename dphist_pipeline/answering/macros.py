"""The SQL macros, put together from the pieces that they share.

A macro of an attached catalogue cannot call another one of it.
"""

from __future__ import annotations

from functools import cache

from dphist_pipeline.answering import notes
from dphist_pipeline.sql_files import identifier, literal, statement

MACROS = (
    "dph_total",
    "dph_box",
    "dph_range",
    "dph_marginal",
    "dph_share",
    "dph_quantile",
    "dph_compare",
    "dph_band",
    "dph_counts",
)
_ONE_PERIOD = "CASE WHEN period IS NOT NULL THEN [CAST(period AS VARCHAR)] END"
_TWO_PERIODS = "[CAST(first_period AS VARCHAR), CAST(second_period AS VARCHAR)]"
_NONE_APART = "SELECT CAST(NULL AS VARCHAR) AS grid, CAST(NULL AS VARCHAR) AS axis WHERE false"
_ROLLED_APART = "SELECT DISTINCT w.grid, w.level_of AS axis FROM wanted_axes AS w WHERE w.is_asked"
_SPAN_APART = "SELECT spans.grid, spans.axis FROM spans"
_APART = {"dph_marginal": _ROLLED_APART, "dph_quantile": _SPAN_APART}


@cache
def macro(name: str, schema: str | None = None) -> str:
    """The statement that makes a macro, in a schema or where the connection is."""
    inside, trials = _piece("inside"), _piece("trials")
    parts = {
        "schema": "" if schema is None else f"{identifier(schema)}.",
        "chosen": _piece("chosen", periods=_TWO_PERIODS if name == "dph_compare" else _ONE_PERIOD),
        "bins": _piece("bins"),
        "boxes": _piece("boxes", more_positions=_piece("range_positions") if name == "dph_range" else ""),
        "nested": _piece("nested", apart=_APART.get(name, _NONE_APART)),
        "sums": _piece("sums", inside=inside),
        "inside": inside,
        "reach": _piece("reach", half_width="half_width", deviations="deviations"),
        "reach_of_two": _piece("reach", half_width="half_width_of_two", deviations="deviations_of_two"),
        "bound": _piece("bound", trials=trials),
        "answer": _piece("answer", **_NOTES),
        "found": _piece("found"),
    }
    return statement(f"answering/{name}", **parts, **_NOTES)


def _piece(name: str, **parts: str) -> str:
    """A piece without the comment that opens it, as it stands within a statement."""
    lines = statement(f"answering/pieces/{name}", **parts).splitlines()
    while lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines)


_NOTES = {
    name: literal(text)[1:-1]
    for name, text in {
        "no_interval": notes.NO_INTERVAL,
        "smoothed": notes.SMOOTHED,
        "below": notes.BELOW,
        "no_whole": notes.NO_WHOLE,
        "no_share": notes.NO_SHARE,
        "open_bin": notes.OPEN_BIN,
    }.items()
}
