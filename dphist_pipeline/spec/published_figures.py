"""Figures that are computed from each published table at no cost: rates of a population, shares, means.

A figure is in no digest: it may be added or changed at any time. A population is a public file, read by the rules of
code lists when it is asked for: by `check`, before a charge, and when a period is published. A spec stays valid when
the file is gone, so that a period that was charged is still published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from dphist_pipeline.base.domain import AmountAxis, BinnedAxis, CalendarAxis, Domain
from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.estimates.chosen_cells import Condition, QuestionRefused, chosen_cells
from dphist_pipeline.estimates.family_choice import names_of_table
from dphist_pipeline.spec.fields import LONGEST_NAME, PublishedName, Text, no_flag, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, mapping_of
from dphist_pipeline.spec.sources import LARGEST_FILE, Decided, content_of_list

MOST_FIGURES, MOST_BY, LARGEST_PER = 50, 4, 1e9
EXAMPLE = "{name: rate, rate: {population: codes/population.csv, per: 100000}, by: [county]}"
# Columns of the files and views of figures, beside those of axes.
COLUMNS = (
    *("release", "period", "revision", "figure", "value", "ci_lower", "ci_upper", "unit", "note", "source_digest"),
)
ENDINGS = (".csv", ".parquet")


def _file(path: str) -> str:
    if not path.lower().endswith(ENDINGS):
        raise ValueError(f"must be the path of a .csv or .parquet file, not {echo(path)}")
    return path


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names an axis twice; keep one of them")
    return names


class Rate(BaseModel):
    """Counts for each `per` people of a population."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    population: Annotated[Text, AfterValidator(_file), Field(description="a public file, as codes/population.csv")]
    per: Annotated[float, Field(gt=0, le=LARGEST_PER, allow_inf_nan=False), BeforeValidator(no_flag)] = 100_000
    _file: Path | None = PrivateAttr(default=None)
    _decided: Decided | None = PrivateAttr(default=None)

    def below(self, base: Path, decided: Decided | None) -> None:
        """Says where the path of the file starts, and what an operator decided about such files."""
        self._file, self._decided = base / self.population, decided

    def content(self) -> bytes:
        """The content of the file.

        Raises:
            ValueError: no operator declared its folder public, or it is not there, or too large.
        """
        content = content_of_list(self._file or Path(self.population), self._decided)
        if len(content) > LARGEST_FILE:
            raise ValueError(f"is larger than {LARGEST_FILE >> 20} MB")
        return content


class Mean(BaseModel):
    """The mean of a binned axis over the rows; `low` and `high`: within them lie all values of open bins."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    axis: PublishedName
    low: Annotated[float | None, Field(allow_inf_nan=False), BeforeValidator(no_flag)] = None
    high: Annotated[float | None, Field(allow_inf_nan=False), BeforeValidator(no_flag)] = None


RateField = Annotated[Rate | None, mapping_of(Rate, "{population: codes/population.csv, per: 100000}")]
MeanField = Annotated[
    Mean | None,
    mapping_of(Mean, "{axis: los_days, high: 60}"),
    BeforeValidator(lambda written: {"axis": written} if isinstance(written, str) else written),
]


class Figure(BaseModel):
    """A figure of each period: one of `rate`, `share` and `mean`, for each value of some axes or levels.

    Attributes:
        share: of the rows with each value of `by`, the part in this box: a value or a list of values by axis or level,
            two ends by binned axis.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        Text,
        Field(
            pattern=rf"^[a-z][a-z0-9_]{{0,{LONGEST_NAME - 1}}}$",
            description="a name of lower-case letters, digits and _, such as rate",
        ),
    ]
    rate: RateField = None
    share: Annotated[dict[PublishedName, Any] | None, Field(min_length=1)] = None
    mean: MeanField = None
    by: Annotated[tuple[PublishedName, ...], AfterValidator(_distinct), tuple_of(0, MOST_BY)] = ()

    @property
    def kind(self) -> str:
        """`rate`, `share` or `mean`."""
        return next(kind for kind in ("rate", "share", "mean") if getattr(self, kind) is not None)

    @property
    def in_words(self) -> str:
        """Its name, with what it is and of which axes."""
        by = f" by {' and '.join(self.by)}" if self.by else ""
        return f"{self.name} ({self.kind}{f' of {self.mean.axis}' if self.mean else ''}{by})"

    @property
    def names(self) -> tuple[str, ...]:
        """The axes and levels that it is about."""
        return (*self.by, *(self.share or ()), *([self.mean.axis] if self.mean else []))

    def part(self, domain: Domain) -> dict[str, Condition]:
        """The box of a share: a list of two ends is a range along a binned axis."""
        binned = {axis.name for axis in domain.axes if isinstance(axis, BinnedAxis)}
        return {
            name: (wanted[0], wanted[1]) if name in binned and isinstance(wanted, list) and len(wanted) == 2 else wanted
            for name, wanted in (self.share or {}).items()
        }

    def grid(self, grids: Mapping[str, Domain]) -> str | None:
        """The name of the smallest grid that has its axes; None if no grid has."""
        having = [name for name, grid in grids.items() if {*self.names} <= names_of_table(grid)]
        return min(having, key=lambda name: grids[name].cells, default=None)

    def as_json(self) -> dict[str, Any]:
        """All fields that are set, as a JSON value."""
        return self.model_dump(mode="json", exclude_none=True)


Figures = Annotated[tuple[Annotated[Figure, mapping_of(Figure, EXAMPLE)], ...], tuple_of(0, MOST_FIGURES)]


def refuse_untold(figures: Sequence[Figure], grids: Mapping[str, Domain]) -> None:
    """Refuses figures that a release cannot tell: its grid, or the grids of its tables, lack what they need.

    Raises:
        MistakesError: by number and field of a figure.
    """
    mistakes: list[tuple[Location, str]] = []
    if figures and any(isinstance(axis, AmountAxis) for grid in grids.values() for axis in grid.axes):
        problem = "cannot stand beside an amount yet, whose rows, sum and mean are told without being declared"
        raise MistakesError([(("figures",), problem)])
    for number, figure in enumerate(figures):
        if figure.name in [earlier.name for earlier in figures[:number]]:
            mistakes.append((("figures", number, "name"), f"{echo(figure.name)} is another figure; choose a new name"))
        mistakes += [(("figures", number, *at), problem) for at, problem in _problems(figure, grids)]
    if mistakes:
        raise MistakesError(mistakes)


def _problems(figure: Figure, grids: Mapping[str, Domain]) -> list[tuple[Location, str]]:
    kinds = [kind for kind in ("rate", "share", "mean") if getattr(figure, kind) is not None]
    if len(kinds) != 1:
        return [((), "needs one of `rate`, `share` and `mean`" + (f", not {' and '.join(kinds)}" if kinds else ""))]
    known = frozenset[str]().union(*map(names_of_table, grids.values()))
    fields: list[tuple[Location, str]] = [(("by", place), name) for place, name in enumerate(figure.by)]
    fields += [(("share", name), name) for name in figure.share or ()]
    fields += [(("mean",), figure.mean.axis)] if figure.mean else []
    if unknown := [(at, name) for at, name in fields if name not in known]:
        problem = "is no axis of the release and no level of one"
        return [(at, f"{echo(name)} {problem}. {did_you_mean(name, sorted(known))}") for at, name in unknown]
    if taken := [place for place, name in enumerate(figure.by) if name in COLUMNS]:
        return [
            (("by", place), f"{echo(figure.by[place])} is a column that figures have themselves") for place in taken
        ]
    name = figure.grid(grids)
    if name is None:
        return [((), f"no table of the release has {', '.join(figure.names)} together")]
    axes = grids[name].axes
    axis_of = {name: axis.name for axis in axes for name in (axis.name, *axis.levels)}
    asked = {axis_of[name] for name in (*(figure.share or ()), *([figure.mean.axis] if figure.mean else []))}
    if twice := [place for place, name in enumerate(figure.by) if axis_of[name] in asked]:
        return [
            (("by", place), f"{echo(figure.by[place])} is the axis that the {figure.kind} is of") for place in twice
        ]
    if figure.share is not None:
        try:
            chosen_cells(grids[name], figure.part(grids[name]))
        except QuestionRefused as refused:
            return [(("share", *([refused.axis] if refused.axis else [])), refused.problem)]
    if figure.mean is not None:
        axis = next(axis for axis in axes if axis.name == axis_of[figure.mean.axis])
        if not isinstance(axis, BinnedAxis) or isinstance(axis, CalendarAxis):
            return [(("mean",), f"{echo(axis.name)} has no bins of numbers, so it has no mean")]
        edges = {
            "low": (axis.below, axis.lowest, figure.mean.low),
            "high": (axis.above, axis.highest, figure.mean.high),
        }
        if missing := [
            end for end, (is_open, known_end, given) in edges.items() if is_open and (known_end, given) == (None, None)
        ]:
            ends = " and ".join(f"`{end}`" for end in missing)
            example = ", ".join(["axis: " + axis.name, *(f"{end}: …" for end in missing)])
            return [(("mean",), f"needs {ends} for its open bin: no value lies beyond, as in {{{example}}}")]
    return []


def figure_of(described: object) -> Figure:
    """The figure that a JSON value describes, as `Figure.as_json` gives it.

    Raises:
        ValueError: it describes none.
    """
    return Figure.model_validate(described)
