"""Which pictures show a release: bars along each axis, colours for two axes, small multiples for more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dphist_pipeline.domain import CategoricalAxis
from dphist_pipeline.publishing.plots_axes import notes
from dphist_pipeline.publishing.plots_drawing import Drawing, bars
from dphist_pipeline.publishing.plots_heat import heat, small_multiples
from dphist_pipeline.publishing.plots_sums import Grid, Sums, sums

MOST_BARS, MOST_ROWS = 60, 30
MOST_ACROSS, MOST_DOWN = 24, 24
SMALL_ACROSS, SMALL_DOWN, SMALL_PANELS = 12, 12, 12
MOST_PICTURES = 8


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture with the sums that it shows.

    Attributes:
        drawing: what is drawn; its note says what was summed so that it can be read.
        sums: the numbers of it.
        title: what it shows, in words.
    """

    drawing: Drawing
    sums: Sums
    title: str


def main_picture(grid: Grid) -> Picture:
    """One picture of all that is shown: bars, colours or small multiples, by the number of axes that vary."""
    varying = [number for number, chosen in enumerate(grid.chosen) if chosen.size > 1] or [0]
    if len(varying) == 1:
        return bars_along(grid, varying[0])
    if len(varying) == 2:
        across, down = _across_first(grid, varying)
        return _picture(grid, [across, down], [MOST_ACROSS, MOST_DOWN])
    # The axis with the fewest cells makes the panels; of the others the first two are drawn, the rest summed over.
    third = min(varying, key=lambda number: (grid.chosen[number].size, -number))
    pair = [number for number in varying if number != third][:2]
    return _picture(grid, [*_across_first(grid, pair), third], [SMALL_ACROSS, SMALL_DOWN, SMALL_PANELS])


def all_pictures(grid: Grid) -> list[Picture]:
    """Bars along each axis, summed over the others; then, of several axes, all together."""
    axes = len(grid.chosen)
    single = [bars_along(grid, number) for number in range(min(axes, MOST_PICTURES))]
    return single if axes == 1 else [*single, main_picture(grid)]


def bars_along(grid: Grid, number: int) -> Picture:
    """Bars along one axis, summed over all others."""
    categorical = isinstance(grid.domain.axes[number], CategoricalAxis)
    return _picture(grid, [number], [MOST_ROWS if categorical else MOST_BARS])


def _across_first(grid: Grid, pair: list[int]) -> list[int]:
    """Numbers and time run from left to right, long names of categories stand beneath each other."""
    first, second = (isinstance(grid.domain.axes[number], CategoricalAxis) for number in pair)
    return pair[::-1] if first and not second else pair


def _picture(grid: Grid, shown: list[int], most: list[int]) -> Picture:
    found = sums(grid, shown, most)
    drawing = (bars, heat, small_multiples)[len(shown) - 1](found)
    names = [axis.name for axis in found.axes]
    others = [
        axis.name
        for number, (axis, chosen) in enumerate(zip(grid.domain.axes, grid.chosen, strict=True))
        if number not in shown and chosen.size > 1
    ]
    remarks = notes(found.axes)
    if others:
        remarks.append(f"summed over {_listed(others)}")
    if remarks:
        drawing = replace(drawing, note=f"{drawing.note} Drawn here: {'; '.join(remarks)}.")
    return Picture(drawing, found, f"Counts by {_listed(names)}")


def _listed(names: list[str]) -> str:
    """Names with commas and an `and`."""
    return f"{', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}"
