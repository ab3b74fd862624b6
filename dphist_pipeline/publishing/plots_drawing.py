"""Pictures of sums as SVG: bars with intervals, squares of colour, many small ones. No scripts, no fonts of its own.

All lengths are in the picture's own units; 420 of them are the width of a page on a telephone and of half a desk's.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from html import escape

from dphist_pipeline.publishing.plots_axes import Along, seen
from dphist_pipeline.publishing.plots_sums import Reals, Sums

WIDTH, RIGHT, LETTERS = 420.0, 10.0, 12.0
TALL, ROW = 190.0, 19.0
LONGEST_LABEL = 150.0
STEPS = 9
MOST_WORDS = 200
NARROW = "iljtfr.,:;'|!() -"

LIGHT = {
    **{"page": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "line": "#d1d9e0", "bar": "#4f86c0", "end": "#16191d"},
    **{f"q{step}": colour for step, colour in enumerate(
        ("#f2f5f8", "#dfeaf4", "#c5daec", "#a3c5e2", "#7babd3", "#548fc1", "#3673a9", "#1f568a", "#0d3a66")
    )},
}  # fmt: skip
DARK = {
    **{"page": "#12161b", "ink": "#e6edf3", "faint": "#9aa6b2", "line": "#343c46", "bar": "#4279b5", "end": "#f4f7fa"},
    **{f"q{step}": colour for step, colour in enumerate(
        ("#1c232b", "#1d3146", "#1e4162", "#23537e", "#2d689b", "#4480b5", "#649bcb", "#8fbbe0", "#c2dcf3")
    )},
}  # fmt: skip
RULES = (
    "svg.dph{font-family:Arial,'Liberation Sans',Helvetica,sans-serif;font-size:12px}"
    "svg.dph text{fill:var(--ink);unicode-bidi:isolate}svg.dph .faint{fill:var(--faint)}svg.dph .head{font-weight:600}"
    "svg.dph .line{stroke:var(--line);fill:none}svg.dph .zero{stroke:var(--faint);fill:none}"
    "svg.dph .bar{fill:var(--bar)}svg.dph .end{stroke:var(--end);stroke-width:1.3;fill:none}"
    "svg.dph .dots{stroke:var(--end);stroke-width:2.4;stroke-linecap:round;fill:none}"
    "svg.dph .frame{stroke:var(--line);fill:none}svg.dph .page{fill:var(--page)}"
    + "".join(f"svg.dph .q{step}{{fill:var(--q{step})}}" for step in range(STEPS))
)


@dataclass(frozen=True)
class Drawing:
    """The inside of a picture, its height, and what it does not say itself."""

    body: str
    height: float
    note: str = ""


def page_style() -> str:
    """The rules and colours of pictures for the head of a page, light and dark."""
    colours = [";".join(f"--{name}:{colour}" for name, colour in part.items()) for part in (LIGHT, DARK)]
    return (
        f":root{{{colours[0]}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{colours[1]}}}}}"
        f"{RULES}svg.dph{{forced-color-adjust:none}}"
    )


def in_page(drawing: Drawing, label: str) -> str:
    """A picture within a page that has `page_style`; `label` is read out in its place."""
    return (
        f'<svg class="dph" viewBox="0 0 {WIDTH:g} {drawing.height:g}" role="img" aria-label="{attribute(label)}">'
        f"{drawing.body}</svg>"
    )


def alone(drawing: Drawing, title: str, dark: bool = True) -> str:
    """A picture as a file of its own, with its title above and its note below.

    Args:
        drawing: what is in it.
        title: above it; wrapped.
        dark: whether it turns dark where its reader prefers that; for programs that know no such rule, not.
    """
    heads = wrapped(title, WIDTH - 16)
    notes = wrapped(drawing.note, WIDTH - 16, most=12) if drawing.note else []
    above, below = 12 + 17 * len(heads), 10 + 15 * len(notes)
    height = above + drawing.height + below
    lines = [f'<text class="head" x="8" y="{20 + 17 * row}">{xml(line)}</text>' for row, line in enumerate(heads)]
    lines += [
        f'<text class="faint" x="8" y="{above + drawing.height + 12 + 15 * row:g}">{xml(line)}</text>'
        for row, line in enumerate(notes)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dph" viewBox="0 0 {WIDTH:g} {height:g}" '
        f'width="{1.5 * WIDTH:g}" height="{1.5 * height:g}" role="img"><title>{xml(title)}</title>'
        f'<style>{_own_style(dark)}</style><rect class="page" width="100%" height="100%"/>'
        f'<g transform="translate(0 {above})">{drawing.body}</g>{"".join(lines)}</svg>'
    )


def _own_style(dark: bool) -> str:
    """The rules with the colours written out: not every program that shows SVG knows variables."""

    def coloured(part: dict[str, str]) -> str:
        return re.sub(r"var\(--(\w+)\)", lambda found: part[found[1]], RULES)

    night = f"@media screen and (prefers-color-scheme:dark){{{coloured(DARK)}}}" if dark else ""
    return coloured(LIGHT) + night


def bars(sums: Sums) -> Drawing:
    """Bars from a common zero, each with its interval; stretches stand side by side, categories below each other."""
    (axis,) = sums.axes
    return _standing(axis, sums) if axis.ordered else _lying(axis, sums)


def _standing(axis: Along, sums: Sums) -> Drawing:
    scale = scale_of(sums)
    left = max(wide(shown_number(mark)) for mark in scale.marks) + 12
    step = (WIDTH - left - RIGHT) / axis.size
    bottom = 8.0 + TALL

    def y(value: float) -> float:
        return bottom - scale.share(value) * TALL

    parts = [
        f'<path class="{"zero" if mark == 0 else "line"}" d="M{left:.1f} {y(mark):.1f}H{WIDTH - RIGHT:.1f}"/>'
        f'<text class="faint" x="{left - 6:.1f}" y="{y(mark) + 4:.1f}" text-anchor="end">{shown_number(mark)}</text>'
        for mark in scale.marks
    ]
    gap = min(0.12 * step, 4)
    drawn = [
        f"M{left + place * step + gap:.2f} {y(0):.1f}V{y(value):.1f}h{step - 2 * gap:.2f}V{y(0):.1f}z"
        for place, value in enumerate(sums.values.tolist())
    ]
    parts.append(f'<path class="bar" d="{"".join(drawn)}"/>')
    if sums.low is not None and sums.high is not None:
        cap = min(3.5, 0.3 * step)
        parts.append(
            '<path class="end" d="'
            + "".join(
                f"M{left + (place + 0.5) * step:.2f} {y(low):.1f}V{y(high):.1f}m{-cap:.2f} 0h{2 * cap:.2f}"
                f"M{left + (place + 0.5) * step - cap:.2f} {y(low):.1f}h{2 * cap:.2f}"
                for place, (low, high) in enumerate(zip(sums.low.tolist(), sums.high.tolist(), strict=True))
            )
            + '"/>'
        )
    parts += below_labels(axis, left, step, bottom)
    parts.append(_name_below(axis.name, (left + WIDTH - RIGHT) / 2, bottom + 33))
    return Drawing("".join(parts), bottom + 40, _bars_note(sums))


def _lying(axis: Along, sums: Sums) -> Drawing:
    scale = scale_of(sums)
    left = min(max(map(wide, axis.ticks)), LONGEST_LABEL) + 12
    right = WIDTH - max(RIGHT, wide(shown_number(scale.high)) / 2 + 2)
    top, bottom = 4.0, 4.0 + ROW * axis.size

    def x(value: float) -> float:
        return left + scale.share(value) * (right - left)

    parts = [
        f'<path class="{"zero" if mark == 0 else "line"}" d="M{x(mark):.1f} {top:g}V{bottom + 3:.1f}"/>'
        f'<text class="faint" x="{x(mark):.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{shown_number(mark)}</text>'
        for mark in scale.marks
    ]
    for place, (value, tick) in enumerate(zip(sums.values.tolist(), axis.ticks, strict=True)):
        middle = top + (place + 0.5) * ROW
        parts.append(
            f'<text x="{left - 6:.1f}" y="{middle + 4:.1f}" text-anchor="end">{xml(fitted(tick, LONGEST_LABEL))}</text>'
            f'<path class="bar" d="M{x(0):.1f} {middle - 6:.1f}H{x(value):.1f}v12H{x(0):.1f}z"/>'
        )
        if sums.low is not None and sums.high is not None:
            low, high = x(float(sums.low[place])), x(float(sums.high[place]))
            parts.append(
                f'<path class="end" d="M{low:.1f} {middle:.1f}H{high:.1f}m0 -3.5v7M{low:.1f} {middle - 3.5:.1f}v7"/>'
            )
    parts.append(_name_below(axis.name, left, bottom + 33, "start"))
    return Drawing("".join(parts), bottom + 40, _bars_note(sums))


def _bars_note(sums: Sums) -> str:
    if sums.low is None:
        return "Bars: estimates. There are no intervals: this mechanism paid for no noisy cells."
    if sums.reported:
        return "Bars: estimates. Lines: 95 % intervals of the true numbers of values, by the law of the random reports."
    return "Bars: estimates. Lines: 95 % intervals of the true (bounded) counts, by the law of the noise."


def _name_below(name: str, x: float, y: float, anchor: str = "middle") -> str:
    return f'<text class="faint" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{xml(name)}</text>'


def below_labels(axis: Along, left: float, step: float, bottom: float) -> list[str]:
    """What stands below the bars or squares of an axis, as much of it as has room."""
    y = bottom + 16
    if max(map(wide, axis.ticks)) + 6 <= step:
        return [_label(tick, left + (place + 0.5) * step, y) for place, tick in enumerate(axis.ticks)]
    if not axis.ordered:
        return [_leaning(tick, left + (place + 0.5) * step, y - 6) for place, tick in enumerate(axis.ticks)]
    # The cells beyond the bins first, which have no end to be written at, then as many ends as there is room for.
    wanted = [
        (left + (place + 0.5) * step, tick)
        for place, tick in enumerate(axis.ticks)
        if axis.edges[place] is None or tick.endswith("+") or tick.startswith(">")
    ]
    ends = [(left + place * step, str(edge)) for place, edge in enumerate(axis.edges) if edge is not None]
    room = max((wide(text) for _, text in ends), default=0) + 10
    stride = next(many for many in _strides() if many * step >= room)
    parts, taken = list[str](), list[tuple[float, float]]()
    for x, text in [*wanted, *ends[::stride]]:
        half = wide(text) / 2 + 3
        x = min(x, WIDTH - half)
        if all(x + half <= start or x - half >= stop for start, stop in taken):
            taken.append((x - half, x + half))
            parts.append(_label(text, x, y))
            parts.append(f'<path class="zero" d="M{x:.1f} {bottom:.1f}v4"/>')
    return parts


def _strides() -> list[int]:
    return [step * 10**power for power in range(7) for step in (1, 2, 5)]


def _label(text: str, x: float, y: float) -> str:
    return f'<text class="faint" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{xml(text)}</text>'


def _leaning(text: str, x: float, y: float) -> str:
    shown = xml(fitted(text, 72))
    return (
        f'<text class="faint" x="{x + 4:.1f}" y="{y:.1f}" text-anchor="end" '
        f'transform="rotate(-45 {x + 4:.1f} {y:.1f})">{shown}</text>'
    )


@dataclass(frozen=True)
class Scale:
    """From the least value, or 0, to a round number that nothing exceeds; `marks` are the round numbers between."""

    low: float
    high: float
    marks: tuple[float, ...]

    def share(self, value: float) -> float:
        """How far along the scale a value lies, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def scale_of(sums: Sums) -> Scale:
    """The scale of values and intervals; it always has 0, and goes below it no further than an estimate does."""
    tops: list[Reals] = [sums.values] if sums.high is None else [sums.values, sums.high]
    most = max(1.0, *(float(part.max(initial=0)) for part in tops))
    least = min(0.0, float(sums.values.min(initial=0)))
    rough = (most - least) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
    marks = tuple(number * step for number in range(math.ceil(least / step), math.ceil(most / step) + 1))
    return Scale(least, marks[-1], marks)


def shown_number(value: float) -> str:
    """A number in few letters: whole from 10 on, millions from ten millions on."""
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    if abs(value) >= 1e7:
        return f"{value / 1e6:,.5g}M"
    text = f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text.replace("-", "−")


def wide(text: str) -> float:
    """About how much room a text takes."""
    return LETTERS * sum(map(_units, text))


@cache
def _units(sign: str) -> float:
    """About how wide a sign is, in sizes of the font."""
    if unicodedata.combining(sign):
        return 0.0
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.05
    if sign in NARROW:
        return 0.31
    return 0.87 if sign in "mwMW@%" else 0.68 if sign.isupper() else 0.56


def fitted(text: str, room: float) -> str:
    """A text cut off where its room ends, with a sign for the rest."""
    if wide(text) <= room:
        return text
    taken = 0.0
    for place, sign in enumerate(text):
        taken += LETTERS * _units(sign)
        if taken > room - LETTERS:
            return text[:place].rstrip() + "…"
    return text


def wrapped(text: str, room: float, most: int = 4) -> list[str]:
    """Lines of a text, at most so many."""
    lines = [""]
    for word in seen(text).split()[:MOST_WORDS]:
        longer = f"{lines[-1]} {word}".strip()
        if wide(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(fitted(word, room))
    lines = [line for line in lines if line] or [""]
    return lines if len(lines) <= most else [*lines[: most - 1], fitted(lines[most - 1], room - 12) + " …"]


def xml(text: str) -> str:
    """Text as XML and HTML take it."""
    return escape(seen(text))


def attribute(text: str) -> str:
    """Text between double quotes."""
    return escape(seen(text), quote=True)
