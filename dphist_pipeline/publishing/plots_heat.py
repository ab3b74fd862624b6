"""Squares of colour for two axes, and one such picture for each bar of a third."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.publishing.plots_axes import Along
from dphist_pipeline.publishing.plots_drawing import (
    LONGEST_LABEL,
    RIGHT,
    STEPS,
    WIDTH,
    Drawing,
    below_labels,
    fitted,
    shown_number,
    wide,
    xml,
)
from dphist_pipeline.publishing.plots_sums import Reals, Sums

DOTS = " Dots: the interval reaches 0."


def heat(sums: Sums) -> Drawing:
    """The first axis from left to right, the second from top to bottom."""
    across, down = sums.axes
    bounds = colour_bounds(sums.values)
    left = min(max(map(wide, down.ticks)), LONGEST_LABEL * 0.8) + 12
    high = min(22.0, max(11.0, 260 / down.size))
    step = (WIDTH - left - RIGHT) / across.size
    top = 22.0
    bottom = top + high * down.size
    parts = [f'<text class="faint" x="{left:.1f}" y="13">{xml(f"{down.name} (down) by {across.name} (across)")}</text>']
    parts += _squares(sums, bounds, (left, top, step, high), ())
    parts += _row_names(down, left, top, high)
    parts += below_labels(across, left, step, bottom)
    leaning = not across.ordered and max(map(wide, across.ticks)) + 6 > step
    legend, y = _legend(bounds, bottom + (66 if leaning else 28))
    return Drawing("".join([*parts, *legend]), y, _note(sums))


def small_multiples(sums: Sums) -> Drawing:
    """One picture for each bar of the third axis, all with the same colours."""
    across, down, third = sums.axes
    bounds = colour_bounds(sums.values)
    left = min(max(map(wide, down.ticks)), 84.0) + 10
    beside = 2 if third.size > 1 else 1
    room = (WIDTH - left - RIGHT - 12 * (beside - 1)) / beside
    step, high = room / across.size, min(16.0, max(11.0, 150 / down.size))
    leaning = not across.ordered and max(map(wide, across.ticks)) + 6 > step
    tall = high * down.size + 22
    lines = -(-third.size // beside)
    names = f"{down.name} (down) by {across.name} (across), for each {third.name}"
    parts = [f'<text class="faint" x="4" y="13">{xml(fitted(names, WIDTH - 8))}</text>']
    for place, tick in enumerate(third.ticks):
        column, row = place % beside, place // beside
        x, y = left + column * (room + 12), 18 + row * tall + 18
        parts.append(f'<text class="head" x="{x:.1f}" y="{y - 5:.1f}">{xml(fitted(tick, room))}</text>')
        parts += _squares(sums, bounds, (x, y, step, high), (place,))
        if column == 0:
            parts += _row_names(down, left, y, high)
        if place + beside >= third.size:
            parts += below_labels(_without_wide_ends(across, step), x, step, y + high * down.size)
    bottom = 18 + lines * tall
    legend, y = _legend(bounds, bottom + (64 if leaning else 26))
    return Drawing("".join([*parts, *legend]), y, _note(sums))


def _without_wide_ends(axis: Along, step: float) -> Along:
    """An axis without its last end, which would reach into the next picture."""
    if not axis.ordered or max(map(wide, axis.ticks)) + 6 <= step:
        return axis
    return Along(axis.name, axis.groups, axis.labels, axis.ticks, (*axis.edges[:-1], None), axis.ordered, axis.note)


def colour_bounds(values: Reals) -> list[float]:
    """Where one colour ends and the next begins: steps that grow as squares do, so that small counts are told apart."""
    most = max(float(values.max(initial=0)), 1.0)
    bounds = [0.0]
    for step in range(1, STEPS):
        exact = most * (step / STEPS) ** 2
        power = 10.0 ** (np.floor(np.log10(exact)) - 1)
        bounds.append(float(np.round(exact / power) * power))
    return [*bounds, most]


def _squares(
    sums: Sums, bounds: list[float], frame: tuple[float, float, float, float], place: tuple[int, ...]
) -> list[str]:
    left, top, step, high = frame
    values = _of_panel(sums.values, place)
    colours: NDArray[np.int64] = np.clip(np.searchsorted(bounds[1:-1], values, side="right"), 0, STEPS - 1)
    parts = []
    for colour in range(STEPS):
        where = np.argwhere(colours == colour)
        if where.size:
            drawn = "".join(
                f"M{left + x * step:.1f} {top + y * high:.1f}h{step:.2f}v{high:.2f}h{-step:.2f}z" for x, y in where
            )
            parts.append(f'<path class="q{colour}" d="{drawn}"/>')
    if sums.low is not None:
        low = _of_panel(sums.low, place)
        dots = "".join(
            f"M{left + (x + 0.5) * step:.1f} {top + (y + 0.5) * high:.1f}h0" for x, y in np.argwhere(low <= 0)
        )
        parts.append(f'<path class="dots" d="{dots}"/>' if dots else "")
    wide_, tall = step * values.shape[0], high * values.shape[1]
    return [*parts, f'<path class="frame" d="M{left:.1f} {top:.1f}h{wide_:.1f}v{tall:.1f}h{-wide_:.1f}z"/>']


def _of_panel(numbers: Reals, place: tuple[int, ...]) -> Reals:
    """The numbers of one picture; `place` is empty where there is but one."""
    return numbers[:, :, place[0]] if place else numbers


def _row_names(axis: Along, left: float, top: float, high: float) -> list[str]:
    every = 1 if high >= 13 else 2
    return [
        f'<text class="faint" x="{left - 6:.1f}" y="{top + (place + 0.5) * high + 4:.1f}" text-anchor="end">'
        f"{xml(fitted(tick, left - 10))}</text>"
        for place, tick in enumerate(axis.ticks)
        if place % every == 0
    ]


def _legend(bounds: Sequence[float], top: float) -> tuple[list[str], float]:
    """The colours with their bounds, and where the picture ends."""
    left, room = 14.0, WIDTH - 40
    step = room / STEPS
    parts = [
        f'<path class="q{number}" d="M{left + number * step:.1f} {top:.1f}h{step:.1f}v10h{-step:.1f}z"/>'
        for number in range(STEPS)
    ]
    parts.append(f'<path class="frame" d="M{left:.1f} {top:.1f}h{room:.1f}v10h{-room:.1f}z"/>')
    shown = [shown_number(bound) for bound in bounds]
    every = 1 if all(wide(text) + 4 <= step for text in shown) else 3
    texts = [(number, text) for number, text in enumerate(shown) if number % every == 0]
    parts += [
        f'<text class="faint" x="{left + number * step:.1f}" y="{top + 24:.1f}" text-anchor="middle">{xml(text)}</text>'
        for number, text in texts
    ]
    return parts, top + 32


def _note(sums: Sums) -> str:
    below = " Estimates below 0 have the first colour." if float(sums.values.min(initial=0)) < 0 else ""
    if sums.reach is None:
        return "Colours: estimates. There are no intervals: this mechanism paid for no noisy cells." + below
    reaches = list(dict.fromkeys(shown_number(float(end)) for end in (sums.reach.min(), sums.reach.max())))
    each = f"± {reaches[0]}" if len(reaches) == 1 else f"± {' to '.join(reaches)}"
    dots = DOTS if sums.low is not None and bool((sums.low <= 0).any()) else ""
    return f"Colours: estimates. The 95 % interval of each is its noisy count {each}.{dots}{below}"
