"""A picture of a published release from its public files: counts along the first axis, with error bars, as SVG."""

from __future__ import annotations

import json
import math
import re
from html import escape
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.chosen_cells import written_end
from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.domain import Axis, BinnedAxis
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 280, 64, 56, 34
MOST_BARS = 60

Reals = NDArray[np.float64]


def release_svg(folder: Path) -> str:
    """Bars of the estimates summed over all axes but the first, with 95 % intervals where unbiased ones are known."""
    audit = json.loads((folder / "audit.json").read_bytes())
    domain = domain_of(audit["axes"])
    rows = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    others = tuple(range(1, len(domain.shape)))
    values, noisy = (column.to_numpy().reshape(domain.shape) for column in rows.columns)
    bars = low = high = values.sum(axis=others)
    unbiased = published_unbiased(audit, noisy)
    if unbiased is not None:
        # The same for every bar: each lies in one box of every level.
        reach = half_width_of_box(unbiased, [np.zeros(1, dtype=np.int64), *map(np.arange, domain.shape[1:])])
        centre = noisy.sum(axis=others)
        low, high = np.maximum(centre - reach, 0), np.maximum(centre + reach, 0)
    labels = cell_labels(domain.axes[0])
    title = f"{audit['release']} {'' if audit['period'] == 'all' else audit['period']}".strip()
    if bars.size > MOST_BARS:  # the picture stays readable; the table has every cell
        bars, low, high, labels = bars[:MOST_BARS], low[:MOST_BARS], high[:MOST_BARS], labels[:MOST_BARS]
        title += f", first {MOST_BARS} of {domain.shape[0]} cells"
    return _svg(f"{title}, by {domain.axes[0].name}", labels, bars, low, high)


def cell_labels(axis: Axis) -> list[str]:
    """A short name of every cell along an axis."""
    if not isinstance(axis, BinnedAxis):
        return [*axis.values, *["other"] * axis.other]
    labels = []
    for lower, upper in zip(*(ends.tolist() for ends in axis.bounds), strict=True):
        if math.isnan(lower):
            labels.append("other")
        elif math.isinf(lower):
            labels.append(f"below {written_end(axis, upper)}")
        else:
            labels.append(
                f"{written_end(axis, lower)}+"
                if math.isinf(upper)
                else f"{written_end(axis, lower)}–{written_end(axis, upper)}"
            )
    return labels


def _svg(title: str, labels: list[str], bars: Reals, low: Reals, high: Reals) -> str:
    top = max(float(high.max(initial=0)), float(bars.max(initial=0)), 1.0)
    step = (WIDTH - LEFT - 8) / bars.size

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - max(0.0, value) / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11" role="img">',
        f'<title>{_in_xml(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="18" font-size="13" fill="#222222">{_in_xml(title)}</text>',
    ]
    for tick in (0.0, top / 2, top):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#555555">{_tick(tick)}</text>'
        )
    every = math.ceil(bars.size / 12)
    for place, label in enumerate(labels):
        x, middle = LEFT + place * step, LEFT + (place + 0.5) * step
        parts.append(
            f'<rect x="{x + step * 0.12:.1f}" y="{y(bars[place]):.1f}" width="{step * 0.76:.1f}" '
            f'height="{y(0) - y(bars[place]):.1f}" fill="#4a7ebb"/>'
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y(low[place]):.1f}" y2="{y(high[place]):.1f}" '
            'stroke="#222222"/>'
        )
        if place % every == 0:
            parts.append(
                f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="end" fill="#555555" '
                f'transform="rotate(-35 {middle:.1f} {HEIGHT - BOTTOM + 14})">{_in_xml(label[:18])}</text>'
            )
    note = "bars: estimates; lines: 95 % intervals of the noise"
    parts.append(f'<text x="{WIDTH - 8}" y="18" text-anchor="end" fill="#777777">{note}</text></svg>')
    return "".join(parts)


def _tick(value: float) -> str:
    """A number that fits beside the picture."""
    return f"{value:,.1f}".removesuffix(".0") if value < 1e8 else f"{value:.3g}"


def _in_xml(text: str) -> str:
    """Text as XML takes it: two characters that a category may hold are in none."""
    return escape(re.sub("[\ufffe\uffff]", "?", text))
