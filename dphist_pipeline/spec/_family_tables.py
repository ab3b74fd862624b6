"""The tables of a family as a spec asks for them: sets of axes, or of levels of axes, with weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from math import prod
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from dphist_pipeline.base.domain import Axis, CategoricalAxis, Domain, Family, finest
from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec._invariants import FiguresSpec, read_figures
from dphist_pipeline.spec.fields import LONGEST_NAME, PublishedName, no_flag, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, mapping_of

MECHANISM = "tables"
MOST_TABLES, MOST_TOGETHER = 5_000, 4
EXAMPLE = "{list: [[age, sex], [state]], all: 2}"

# Every release has assets of these names in Dagster, beside those of its tables.
OUR_ASSETS = ("records", "cube", "sanitized", "published")

Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), BeforeValidator(no_flag)]
Target = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False), BeforeValidator(no_flag)]


class TablesSpec(BaseModel):
    """Which tables a release publishes together.

    Attributes:
        list: tables, each a list of axes or of their levels.
        all: every table of so many axes, too.
        weights: how much the accuracy of a table counts, by its name (its axes, joined by _); 1 where none is given.
        targets: wanted standard error of a cell by table, in rows, for `dphist forecast`; no release depends on it.
        invariants: public figures that all tables meet; a spec names their file, or a list of files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    list: Annotated[tuple[Annotated[tuple[PublishedName, ...], tuple_of(1)], ...], tuple_of(0, MOST_TABLES)] = ()
    all: int | None = Field(default=None, strict=True, ge=1, le=MOST_TOGETHER)
    weights: dict[str, Weight] = {}
    targets: dict[str, Target] = {}
    invariants: FiguresSpec | None = None

    def as_json(self) -> dict[str, object]:
        """All fields that a release depends on, as JSON values."""
        fields: dict[str, object] = {"list": [list(table) for table in self.list], "all": self.all}
        fields["weights"] = dict(self.weights)
        return fields if self.invariants is None else {**fields, "invariants": self.invariants.as_json()}


def _with_figures(value: object, info: ValidationInfo) -> object:
    """The mapping with the content of the files of figures that it names."""
    if not isinstance(value, dict) or value.get("invariants") is None:
        return value
    try:
        return {**value, "invariants": read_figures(value["invariants"], info)}
    except MistakesError as mistakes:
        problems = [(("invariants", *at), problem) for at, problem in mistakes.found]
    raise MistakesError(problems)


Tables = Annotated[TablesSpec | None, mapping_of(TablesSpec, EXAMPLE), BeforeValidator(_with_figures)]


def family_of(tables: TablesSpec, axes: tuple[Axis, ...], most_cells: int) -> Family:
    """The tables on the axes of a spec; `most_cells` is the limit of each."""
    by_name = {name: (number, axis) for number, one in enumerate(axes) for name, axis in _with_levels(one).items()}
    mistakes: list[tuple[Location, str]] = [
        (
            ("list", number, place),
            f"{echo(name)} is no axis of the spec and no level of one. {did_you_mean(name, by_name)}",
        )
        for number, table in enumerate(tables.list)
        for place, name in enumerate(table)
        if name not in by_name
    ]
    if mistakes:
        raise _of_tables(mistakes)
    used = {name for table in tables.list for name in table}
    by_level = {by_name[name][0] for name in used}
    used |= {axis.name for number, axis in enumerate(axes) if tables.all and number not in by_level}
    mistakes += _levels_clash(tables, by_name, used)
    order = [name for name in by_name if name in used]
    # Named as written, with axes in declared order.
    wanted = {tuple(sorted(set(table), key=order.index)): "_".join(table) for table in tables.list}
    if not mistakes and tables.all:
        sizes = Counter(by_name[name][0] for name in order)
        together = min(tables.all, len(sizes))
        if (many := _ways(sizes.values(), together)) > MOST_TABLES:
            raise _of_tables([_too_many(many)])
        every = combinations(order, together)
        apart = [table for table in every if len({by_name[name][0] for name in table}) == len(table)]
        wanted = {table: "_".join(table) for table in apart} | wanted
    names = list(wanted.values())
    domain = Domain(tuple(by_name[name][1] for name in order))
    family = Family(
        domain,
        tuple(by_name[name][0] for name in order),
        tuple(names),
        tuple(tuple(order.index(name) for name in table) for table in wanted),
        tuple(float(tables.weights.get(name, 1)) for name in names),
        most_cells,
    )
    if mistakes := mistakes or _unfit(tables, family):
        raise _of_tables(mistakes)
    return family


def _ways(sizes: Iterable[int], together: int) -> int:
    """How many tables of so many axes there are, each axis at one of its levels; counted without making them."""
    ways = [1, *[0] * together]
    for size in sizes:
        for axes in range(together, 0, -1):
            ways[axes] += ways[axes - 1] * size
    return ways[together]


def _too_many(tables: int) -> tuple[Location, str]:
    return (), f"asks for {tables:,} tables, and at most {MOST_TABLES:,} are made; ask for fewer"


def _of_tables(mistakes: list[tuple[Location, str]]) -> MistakesError:
    return MistakesError([(("tables", *at), problem) for at, problem in mistakes])


def _with_levels(axis: Axis) -> dict[str, Axis]:
    """An axis and its levels by name; a level is an axis of the groups, in the order of their first categories."""
    if not isinstance(axis, CategoricalAxis) or not axis.levels:
        return {axis.name: axis}
    axes: dict[str, Axis] = {axis.name: axis}
    for name, groups in axis.levels.items():
        values = tuple(dict.fromkeys(groups))
        above: dict[str, tuple[str, ...]] = {}
        for level, of in axis.levels.items():
            pairs = dict(zip(groups, of, strict=True))
            if level != name and len(set(zip(groups, of, strict=True))) == len(values):
                above[level] = tuple(pairs[value] for value in values)
        axes[name] = CategoricalAxis(name, axis.column, values, axis.other, above)
    return axes


def _levels_clash(
    tables: TablesSpec, levels_by_name: Mapping[str, tuple[int, Any]], used: set[str]
) -> list[tuple[Location, str]]:
    """Whether a table names two levels of one axis, or levels do not nest."""
    mistakes: list[tuple[Location, str]] = []
    for number, table in enumerate(tables.list):
        by_axis: dict[int, str] = {}
        for name in dict.fromkeys(table):
            other = by_axis.setdefault(levels_by_name[name][0], name)
            if other != name:
                problem = f"names {echo(other)} and {echo(name)}, which are levels of one axis; keep the finer one"
                mistakes.append((("list", number), problem))
    levels: dict[int, list[str]] = {}
    for name in (name for name in levels_by_name if name in used):
        levels.setdefault(levels_by_name[name][0], []).append(name)
    several = [
        sorted(names, key=lambda name: -levels_by_name[name][1].size) for names in levels.values() if len(names) > 1
    ]
    for names in several:
        for fine, coarse in pairwise(names):
            if coarse not in levels_by_name[fine][1].levels:
                problem = f"uses {echo(fine)} and {echo(coarse)}, which cut across each other; keep one of them"
                mistakes.append((("list",), f"{problem} in all tables"))
    return mistakes


def _unfit(tables: TablesSpec, family: Family) -> list[tuple[Location, str]]:
    """Too many tables or cells, names that clash or are too long, weights of no table."""
    if not family.names:
        return [((), f"asks for no table; use `list:` or `all:`, such as {EXAMPLE}")]
    if len(family.names) > MOST_TABLES:
        return [_too_many(len(family.names))]
    problems: list[tuple[Location, str]] = []
    first: dict[str, int] = {}
    for number, name in enumerate(family.names):
        cells = prod(family.domain.shape[axis] for axis in family.tables[number])
        if cells > family.most_cells:
            problems.append(
                ((), f"table {name} has {cells:,} cells, more than the {family.most_cells:,} of `max_cells`")
            )
        if first.setdefault(name, number) != number:
            problems.append(((), f"has two tables that are called {echo(name)}; give an axis another `name:`"))
        if name in OUR_ASSETS:
            problems.append(((), f"table {echo(name)} has a name that every release's asset has; rename the axis"))
        if len(name) > LONGEST_NAME:
            problems.append(
                ((), f"table {echo(name)} needs a name of at most {LONGEST_NAME} letters; shorten axes' names")
            )
    problems += [
        ((field, name), f"is no table of this release. {did_you_mean(name, family.names)}")
        for field, named in (("weights", tables.weights), ("targets", tables.targets))
        for name in named
        if name not in family.names
    ]
    if tables.invariants is not None and not problems:
        try:
            tables.invariants.finest(finest([family.domain]).axes)
        except MistakesError as mistakes:
            problems += [(("invariants", *at), problem) for at, problem in mistakes.found]
    return problems[:20]
