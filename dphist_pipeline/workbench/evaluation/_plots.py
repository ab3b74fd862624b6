"""Scores drawn as the papers draw them: errors against epsilon, against the length of a range, by size of cell."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist_pipeline.errors import Refused, how_to_install
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult

if TYPE_CHECKING:
    import altair as alt

OVER_CELLS = {"mse": "mean squared error of a cell", "mre": "mean relative error of a cell", "kl": "KL divergence"}
DIVERGENCE = {"kl": OVER_CELLS["kl"]}
OVER_RANGES = {"range_mse": "mean squared error", "range_mre": "mean relative error", "range_mae": "mean |error|"}
OVER_BOXES = {"box_mse": "mean squared error", "box_mre": "mean relative error", "box_mae": "mean |error|"}
WIDTH, HEIGHT = 300, 240
LETTERS = 48  # of a line of a title, for each picture of that width
EXACT_SIZE, NOISY_SIZE = "exact count of a cell", "count of a cell as published, with its noise"
# Colours that differ clearly on white; with the shapes they make 112 different lines.
COLOURS = (
    *("#1b6ca8", "#d1495b", "#2e933c", "#e08e0b", "#6a4c93", "#17a398", "#8d5524", "#c2498f", "#7a9e1f", "#3b3bc4"),
    *("#ff7b54", "#5b7a99", "#b39c00", "#a4161a", "#0f7173", "#444444"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")


def draw(scores: Sequence[MeasureResult], title: str, folder: Path, noisy: bool = False) -> list[Path]:
    """Writes every picture that the scores allow, as SVG and as PNG; gives the files.

    Args:
        folder: created if it does not exist.
        noisy: whether the counts are estimates that were published, not exact ones.
    """
    size = NOISY_SIZE if noisy else EXACT_SIZE
    if find_spec("altair") is None:
        raise _plots_refused()
    charts = {
        "errors_by_epsilon": _lines(scores, OVER_CELLS, title, "all cells", along="epsilon"),
        "divergence_by_epsilon": _lines(scores, DIVERGENCE, title, "all cells", along="epsilon"),
        "errors_by_range_length": _lines(scores, OVER_RANGES, title, "all ranges of a length", along="length"),
        "errors_of_boxes_by_epsilon": _lines(scores, OVER_BOXES, title, "random boxes", along="epsilon"),
        "relative_error_by_size": _by_size(scores, title, "mre", size),
        "relative_error_by_value": _by_size(scores, title, "mre_of_value", f"{size}, the smallest ones"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, chart in charts.items():
        for ending in ("svg", "png") if chart is not None else ():
            path = folder / f"{name}.{ending}"
            try:
                chart.save(str(path), scale_factor=2 if ending == "png" else 1)
            except ImportError:  # of what turns a chart into a file
                raise _plots_refused() from None
            files.append(path)
    return files


def _plots_refused() -> Refused:
    """The pictures of a comparison without what draws them."""
    return Refused(
        f"--plots needs Altair and vl-convert. To install them: {how_to_install('study')}", code="plots_refused"
    )


def _lines(scores: Sequence[MeasureResult], kinds: dict[str, str], title: str, about: str, along: str) -> Any:
    """A line per mechanism on log axes; a column of pictures per measure, a row per epsilon."""
    import altair as alt

    by_length = along == "length"
    rows = [_row(score) for score in scores if score.measure in kinds and bool(score.at) == by_length]
    rows = [row for row in rows if row["mean"] > 0]
    if not rows or len({row["at"] if by_length else row["epsilon"] for row in rows}) < 2:
        return None
    names, epsilons = _names(scores), sorted({row["epsilon"] for row in rows}, reverse=True)
    marks = alt.Axis(values=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], format=",~g")
    x = alt.X("length:Q", title="cells in a range", scale=alt.Scale(type="log", nice=False), axis=marks)
    if not by_length:
        x = alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=epsilons))
    panels, most = [], 1
    for epsilon in epsilons if by_length else [None]:
        beside = []
        for kind, head in kinds.items():
            part = [row for row in rows if row["measure"] == kind and epsilon in (None, row["epsilon"])]
            above = head if epsilon is None else f"{head}, ε = {epsilon:g}"
            if part:
                beside.append(_panel(part, x, above, names))
        panels.append(alt.hconcat(*beside))
        most = max(most, len(beside))
    return _whole(alt.vconcat(*panels), f"{title}: {about}", most)


def _by_size(scores: Sequence[MeasureResult], title: str, measure: str, along: str) -> Any:
    """Mean relative error against the size of cells: one picture per epsilon."""
    import altair as alt

    rows = [_row(score) for score in scores if score.measure == measure and score.at and score.mean > 0]
    if not rows:
        return None
    names = _names(scores)
    sizes = [_in_words(size) for size in sorted({row["at"] for row in rows}, key=_lowest)]
    rows = [{**row, "at": _in_words(row["at"])} for row in rows]
    x = alt.X("at:O", title=along, sort=sizes, axis=alt.Axis(labelAngle=-60))
    beside = [
        _panel([row for row in rows if row["epsilon"] == epsilon], x, f"mean relative error, ε = {epsilon:g}", names)
        for epsilon in sorted({row["epsilon"] for row in rows}, reverse=True)
    ]
    return _whole(alt.hconcat(*beside), f"{title}: by size of cell", len(beside))


def _lowest(size: str) -> int:
    """The lowest count of a class such as 2-5, or a count; what was published may be below 0."""
    return int(size[0] + size[1:].partition("-")[0])


def _in_words(size: str) -> str:
    """A class of counts such as 1,000–1,999, or a count."""
    low, to, high = size[1:].partition("-")
    return f"{int(size[0] + low):,}" + (f"–{int(high):,}" if to else "")


def _panel(rows: list[dict[str, Any]], x: alt.X, title: str, names: list[str]) -> Any:
    import altair as alt

    base = alt.Chart(alt.InlineData(values=rows), title=title, width=WIDTH, height=HEIGHT)
    colours, shapes = ([kinds[place % len(kinds)] for place in range(len(names))] for kinds in (COLOURS, SHAPES))
    colour = alt.Color("mechanism:N", sort=names, scale=alt.Scale(domain=names, range=colours), title=None)
    low, high = (round(math.log10(end(row["mean"] for row in rows))) for end in (min, max))
    steps = (1, 2, 5) if high - low < 3 else (1,)  # powers of ten alone would be few
    ticks = [step * 10.0**power for power in range(low - 1, high + 2) for step in steps]
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=ticks, format=",~g"))
    bars = base.mark_rule(opacity=0.5).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour)
    shape = alt.Shape("mechanism:N", sort=names, scale=alt.Scale(domain=names, range=shapes), title=None)
    lines = base.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour)
    points = base.mark_point(filled=True, size=40, opacity=0.9).encode(x=x, y=y, color=colour, shape=shape)
    return bars + lines + points


def _whole(chart: Any, title: str, beside: int) -> Any:
    """The chart with its title, in lines that are no wider than the pictures beside each other."""
    lines = textwrap.wrap(title, beside * LETTERS)
    return (
        chart.properties(title={"text": lines, "anchor": "start"})
        .configure_view(stroke="#dddddd")
        .configure_legend(symbolLimit=0)
    )


def _names(scores: Sequence[MeasureResult]) -> list[str]:
    return list(dict.fromkeys(score.mechanism for score in scores))


def _row(score: MeasureResult) -> dict[str, Any]:
    """One point with a bar of one standard error in each direction, kept above 0 for the log axis."""
    error = score.standard_error or 0.0
    return {
        "mechanism": score.mechanism,
        "epsilon": float(score.epsilon),
        "measure": score.measure,
        "at": score.at,
        "length": int(score.at) if score.at.isdecimal() else None,
        "mean": score.mean,
        "low": max(score.mean - error, score.mean / 10),
        "high": score.mean + error,
    }
