"""What the measurements said of rows: what the bound cut, what is no declared value; and how readers are told. Public.

*Failed rows.* What the counts hold under `other` limits how many rows can be missing or undeclared on an axis. A
quality table sees the first T rows of a unit, the counts hold R of them: `other` bounds the rows that failed, but not
by itself. Of n rows of a unit in cells, o of them in `other`, bounding keeps a random sample. So in the mean it keeps
o·min(R, n)/n of them, and a quality table sees at most o·min(T, n)/n, which is at most T/R times as much. Units are
sampled independently. By Chernoff's inequality, with a probability of at least 1 - δ each, for L = log(1/δ),
    the mean of what is kept is at most  M = ((√(2RL) + √(2RL + 4K)) / 2)²,  where K rows were kept;
    what is seen is at most              μ + TL/3 + √((TL/3)² + 2TLμ),       where μ = M·T/R.
K is at most its noisy number and the reach of its noise. Rows that another axis drops lie in no cell; they are at most
the noisy number of dropped rows and the reach of its noise. Where every row is a unit, all rows are kept and seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.languages.texts import gettext, mark_text, number_text, translate, whole
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.estimates.laws import LEVEL, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, Unbiased, exact_sum

PLACES = ("declared", "other", "dropped")
FAILURES = ("unparsed", "undeclared")
NEARLY_ALL = 10  # so many times the rows in cells of declared values alone
# Without numbers: it may be told of a release that is not published yet.
NEARLY_ALL_FAILED = mark_text(
    "By the quality table, nearly all rows hold, on some axis, a value that is missing, does not parse or is not "
    "declared: does the spec fit the source?"
)
Row = Mapping[str, Any]
# Bounds may miss with a tenth of what intervals may: these then hold, joined with them, at their stated level.
MISSED = (1 - LEVEL) / 10


@dataclass(frozen=True, eq=False)
class RowTable:
    """Noisy numbers of one kind, bought together.

    Attributes:
        statistics: what each number counts: `units`, `rows`, `unparsed`, `undeclared`, `cut`, `misfiled` or `left_out`.
        axes: the axis that each number is about; None for all of them.
        positions: along the axis, from 0, or the rows held, from 1; None for other numbers.
        categories: what the position is called; None for `other`.
        values: the numbers, not rounded up to 0.
        scale: of the discrete Laplace noise in each.
    """

    statistics: tuple[str, ...]
    axes: tuple[str | None, ...]
    positions: tuple[int | None, ...]
    categories: tuple[str | None, ...]
    values: NDArray[np.float64]
    scale: Fraction
    step: str
    epsilon: Fraction

    def concerns(self, axes: Collection[str]) -> bool:
        """Whether the numbers say something of a table with these axes: all but rows cut by another axis do."""
        return self.statistics[0] != "cut" or self.axes[0] is None or self.axes[0] in axes

    @staticmethod
    def key_of(statistic: str, axis: str | None) -> tuple[str, str | None]:
        """Names the table that a number about rows was bought in; numbers of one table stand together."""
        return (FAILURES[0], None) if statistic in FAILURES else (statistic, axis)


@dataclass(frozen=True)
class BoundingEffect:
    """Rows that were counted and rows that the bound cut, of all or in one position along an axis.

    Attributes:
        category: what the position is called; None for `other`.
        counted: estimated rows in the histogram.
        cut: estimated rows that the bound keeps out, among those that are seen.
        ci_lower, ci_upper: interval of the rows cut, not cut off: at 95 %, of a position along an axis at 95 % for all
            numbers about axes together.
        most: upper end for all rows, above which no part of them lies.
    """

    category: str | None
    counted: float
    cut: float
    ci_lower: float
    ci_upper: float
    most: float = math.inf

    @property
    def stands_out(self) -> bool:
        """Whether noise alone would not make the number, among all those that are told."""
        return self.ci_lower > 0

    @property
    def possible(self) -> tuple[float, float]:
        """The part of the 95 % interval from 0 to what all rows can be; see `highest`.

        It encloses the truth wherever the other interval does. `pieces/cut_of_all.sql` says the same.
        """
        upper = highest(self.ci_upper, (self.ci_upper - self.ci_lower) / 2)
        return min(self.most, max(0.0, self.ci_lower)), min(self.most, upper)

    @property
    def about(self) -> float:
        """The estimate as readers see it: at least 0, and not above what all rows can be."""
        return min(self.most, max(0.0, self.cut))

    @property
    def share(self) -> float | None:
        """The share of the rows seen that was cut, from 0 to 1; None where noise leaves no rows."""
        seen = self.counted + min(self.most, self.cut)
        return min(1.0, max(0.0, min(self.most, self.cut) / seen)) if seen > 0 else None

    @property
    def share_in_words(self) -> str:
        """The share in percent; where the interval reaches 0, how large it may be; empty where noise leaves no rows."""
        if self.ci_lower > 0:
            return "" if self.share is None else number_text(f"{100 * self.share:.1f} %")
        upper = self.possible[1]
        most = self.counted + upper
        share = number_text(f"{100 * min(1.0, upper / most):.1f} %") if most > 0 else ""
        return share and gettext("up to %(share)s", share=share)


def highest(upper: float, reach: float) -> float:
    """The upper end of an interval, `reach` wide on each side, of a number of at least 0.

    An interval that lies below 0 as a whole, by its noise, would say that there is surely nothing: then the reach of
    the noise around 0 is told.
    """
    return upper if upper > 0 else reach


def _reach_together(row: Row, lines: int, missed: Fraction = 1 - LEVEL) -> int:
    """Half the width of the interval of a number that misses with `missed` for so many numbers together."""
    return int(noise_law(Fraction(row["noise_scale"])).half_width(1 - missed / max(1, lines)))


ONE_ROW = "first", "last"  # what `take` says where one row of a unit stands for all
CAP_TEXTS = CAP_UNKNOWN, CAP_HIDDEN, CAP_NOT_DETECTED, CAP_DETECTED = (
    mark_text("%(counted)s beyond %(bound)s of each %(unit)s are not counted; how many these are is not known."),
    mark_text(
        "%(counted)s beyond %(bound)s of each %(unit)s are not counted: among the first %(first)s of each, their "
        "published figure is below %(limit)s."
    ),
    mark_text(
        "%(counted)s beyond %(bound)s of each %(unit)s are not counted: no cut rows detected among the first %(first)s "
        "of each; at most %(upper)s (95 %%)."
    ),
    mark_text(
        "%(counted)s beyond %(bound)s of each %(unit)s are not counted: about %(number)s (%(lower)s to %(upper)s, "
        "95 %%) among the first %(first)s of each."
    ),
)


LEFT_OUT_TEXTS = LEFT_OUT_HIDDEN, LEFT_OUT = (
    mark_text(
        "Units (%(unit)s) that are left out for the first time in the calendar year: their published figure is below "
        "%(limit)s."
    ),
    mark_text(
        "Units (%(unit)s) that are left out for the first time in the calendar year: about %(number)s (%(lower)s to "
        "%(upper)s, 95 %%)."
    ),
)


def bound_drops_rows(audit: Row) -> bool:
    """Whether the bound may keep rows of a unit out of a publication: not where `take` leaves one row, nor of `row`."""
    return audit.get("model") != "local" and audit["privacy_unit"] != "row" and audit.get("take") not in ONE_ROW


def cap_in_words(audit: Row, first: int, cut: BoundingEffect | None) -> str:
    """What the bound leaves out of the counts: one sentence for cards, pages, forms and copied answers; empty without.

    Args:
        first: how many rows of each unit the quality table looks at.
        cut: of all rows, by that table; None without one.
    """
    if not bound_drops_rows(audit):
        return ""
    of_cells = audit.get("take") == "one_per_cell"
    counted, limit = (
        gettext("cells") if of_cells else str(audit.get("counted") or gettext("rows")),
        limit_of(audit) or 0,
    )
    values: dict[str, object] = {
        "counted": counted[:1].upper() + counted[1:],
        "bound": whole(int(audit["max_rows_per_unit"])),
        "unit": audit.get("unit_label") or audit["privacy_unit"],
        **{"first": first, "limit": limit},
    }
    if cut is None:
        return translate(CAP_UNKNOWN) % values
    ends = zip(("number", "lower", "upper"), (cut.about, *cut.possible), strict=True)
    values |= {name: number_text(f"{end:,.0f}") for name, end in ends}
    if cut.about < limit:
        return translate(CAP_HIDDEN) % values
    return translate(CAP_DETECTED if cut.stands_out else CAP_NOT_DETECTED) % values


def standing_out(
    numbers: Sequence[Row], lines: int, called: str, counted: str, tops: Sequence[float] = (), least: int = 0
) -> tuple[list[Row], str]:
    """The numbers that stand out from the noise of all that are told together, and a sentence on the others.

    Args:
        tops: that each of the numbers can be at most, together but with a probability of `MISSED`. A number whose
            interval lies above it is not shown: noise made it.
        least: no smaller number is told of the others; see `shown_below`.

    Returns:
        Rows whose interval is the one for all together, and a sentence that may be empty.
    """
    tops = tops or [math.inf] * len(numbers)
    missed = 1 - LEVEL - (MISSED if any(map(math.isfinite, tops)) else 0)
    reaches = [_reach_together(row, lines, missed) for row in numbers]
    clear_rows, others = list[Row](), list[float]()
    for row, reach, top in zip(numbers, reaches, tops, strict=True):
        lower, upper = row["estimate"] - reach, min(top, highest(row["estimate"] + reach, reach))
        if 0 < lower <= top:
            clear_rows.append({**row, "estimate": min(top, row["estimate"]), "ci_lower": lower, "ci_upper": upper})
        else:
            others.append(upper)
    if not others:
        return clear_rows, ""
    other, most = "other " if clear_rows else "", f"{max(least, *others):,.0f} {counted}"
    if len(others) == 1:
        one = called.removeprefix("numbers")
        return clear_rows, f"One {other}number{one} does not stand out from the noise (95 %): it is at most {most}."
    return clear_rows, (
        f"Of {len(others):,} {other}{called}, none stands out from the noise (95 % for all together): each is at most "
        f"{most}."
    )


@dataclass(frozen=True)
class QualityTable:
    """The rows of `quality.parquet`, and what readers are told of them; no row where none were bought.

    Attributes:
        rows: one for each number, in the order of the file, with its 95 % interval, not cut off.
    """

    rows: Sequence[Row]

    @classmethod
    def of(cls, tables: Sequence[RowTable]) -> QualityTable:
        """What the measurements said: each number with its 95 % interval, not cut off."""
        rows = []
        for table in tables:
            reach = noise_law(table.scale).half_width_of_sum(1)
            names = zip(table.statistics, table.axes, table.positions, table.categories, strict=True)
            for (statistic, axis, position, category), value in zip(names, table.values.tolist(), strict=True):
                row = {
                    **{"statistic": statistic, "axis": axis, "position": position, "category": category},
                    **{"estimate": value, "ci_lower": value - reach, "ci_upper": value + reach},
                    "noise_scale": float(table.scale),
                }
                rows.append(row)
        return cls(rows)

    @property
    def rows_seen(self) -> int:
        """How many rows of each unit the table looks at; 1 where it does not count units by their rows."""
        return int(max((row["position"] for row in self.rows if row["statistic"] == "units"), default=1))

    def cuts(self, counted: Callable[[str | None], NDArray[np.float64]]) -> dict[str | None, list[BoundingEffect]]:
        """What the bound cut: under None of all rows, under an axis by position along it; empty without numbers.

        Args:
            counted: gives the estimated counts by position along an axis, or for None their total, as
                `Domain.sums_along`.
        """
        cuts: dict[str | None, list[BoundingEffect]] = {}
        known: dict[str | None, NDArray[np.float64]] = {}
        most = math.inf
        for row in sorted(self.rows, key=lambda row: row["axis"] is not None):
            if row["statistic"] != "cut":
                continue
            axis = row["axis"]
            if axis not in known:
                known[axis] = counted(axis)
            inside = known[axis][0 if axis is None else row["position"]]
            lower, upper = (row["ci_lower"], row["ci_upper"]) if axis is None else self.together(row)
            cut = BoundingEffect(row["category"], float(inside), row["estimate"], lower, upper, most)
            if axis is None:
                most = cut.possible[1]
            cuts.setdefault(axis, []).append(cut)
        return cuts

    def together(self, row: Row) -> tuple[float, float]:
        """The interval of a number about an axis that holds with 95 % for all such numbers together, not cut off."""
        reach = _reach_together(row, sum(one["axis"] is not None for one in self.rows))
        return row["estimate"] - reach, row["estimate"] + reach

    def sentences(self, audit: Row, cuts: Mapping[str | None, Sequence[BoundingEffect]]) -> list[str]:
        """What a reader should know first, a sentence each."""
        capped = [cap_in_words(audit, self.rows_seen, *cuts[None])] if None in cuts else []
        return [*filter(None, [self.failed_nearly_all, self.left_out_in_words(audit)]), *capped]

    def left_out_in_words(self, audit: Row) -> str:
        """How many units a release to an individual account is the first of the year to leave out; empty without."""
        row = next((row for row in self.rows if row["statistic"] == "left_out"), None)
        if row is None:
            return ""
        reach, limit = (row["ci_upper"] - row["ci_lower"]) / 2, limit_of(audit) or 0
        numbers = (row["estimate"], row["ci_lower"], highest(row["ci_upper"], reach))
        number, lower, upper = (number_text(f"{max(0.0, one):,.0f}") for one in numbers)
        values = {"unit": audit.get("unit_label") or audit["privacy_unit"], "limit": limit}
        values |= {"number": number, "lower": lower, "upper": upper}
        return translate(LEFT_OUT_HIDDEN if row["estimate"] < limit else LEFT_OUT) % values

    def failures(self, most: Mapping[str | None, float] | None = None, least: int = 0) -> tuple[list[Row], str]:
        """The numbers of missing and undeclared values that stand out, as `standing_out` tells them."""
        rows = [row for row in self.rows if row["statistic"] in ("unparsed", "undeclared")]
        lines = sum(row["axis"] is not None for row in self.rows)
        tops = [(most or {}).get(row["axis"], math.inf) for row in rows]
        return standing_out(rows, lines, "numbers of missing or undeclared values", "rows", tops, least)

    def misfiled_rows(self, least: int = 0) -> tuple[list[Row], str]:
        """The number of rows in files of another period, as `standing_out` tells it; without it, nothing."""
        rows = [row for row in self.rows if row["statistic"] == "misfiled"]
        return standing_out(rows, len(rows), "numbers of rows in files of another period", "rows", least=least)

    def numbers(
        self, statistic: str, called: str, most: Mapping[str | None, float], least: int = 0
    ) -> tuple[list[Row], str] | None:
        """As `failures`, for the numbers of `units` or of `rows`; None where an interval is wider than their sum."""
        rows = [row for row in self.rows if row["statistic"] == statistic]
        count = sum(row["estimate"] for row in rows)
        if not all(row["ci_upper"] - row["ci_lower"] <= count for row in rows):
            return None
        tops = [most.get(None, math.inf) if self.is_in_other(row) else math.inf for row in rows]
        return standing_out(rows, len(rows), called, statistic, tops, least)

    @staticmethod
    def is_in_other(row: Row) -> bool:
        """Whether a number counts rows that `other` of the counts bounds: see `most_failed`."""
        return row["statistic"] in FAILURES or (row["statistic"], row["category"]) == ("rows", "other")

    def most_failed(
        self, has_other: Mapping[str, bool], tables: Iterable[tuple[Domain, Unbiased | None]], bound: int | None
    ) -> dict[str | None, float]:
        """The rows that can have failed on an axis at most; see the function `most_failed`."""
        return most_failed(self.rows, has_other, tables, bound, self.rows_seen)

    @property
    def failed_nearly_all(self) -> str:
        """A sentence where the ends of the intervals say that nearly no row holds declared values alone."""
        places = {row["category"]: row for row in self.rows if row["statistic"] == "rows"}
        if not places:
            return ""
        declared, *failed = (places[place] for place in PLACES)
        least = sum(row["ci_lower"] for row in failed)
        if least <= 0 or NEARLY_ALL * max(0.0, declared["ci_upper"]) > least:
            return ""
        return translate(NEARLY_ALL_FAILED)


@dataclass(frozen=True)
class RowsInOther:
    """What noisy counts say of the rows under `other` of an axis.

    Attributes:
        count: unbiased.
        cells: whose noise is in it: positions along each axis.
    """

    count: float
    cells: Sequence[Any]
    unbiased: NoisyCells | NestedCells

    def most(self, missed: float) -> float:
        """The rows at most, but with a probability of `missed`."""
        variance = np.array([self.unbiased.variance_of_sum(self.cells)])
        return max(0.0, self.count + float(self.unbiased.law.chernoff_reach(variance, 2 * missed)[0]))


def rows_in_other(domain: Domain, unbiased: Unbiased | None) -> dict[str, RowsInOther]:
    """The rows under `other` by name of axis, for the axes that have it; empty where no noisy cells are published.

    Noise in groups of cells alone bounds nothing, nor do reports.
    """
    if not isinstance(unbiased, NoisyCells | NestedCells):
        return {}
    by_axis = {}
    for number, axis in enumerate(domain.axes):
        if axis.other_cell is not None:
            cells = [np.arange(size) for size in domain.shape]
            cells[number] = np.array([axis.other_cell])
            by_axis[axis.name] = RowsInOther(
                exact_sum(np.atleast_1d(unbiased.values.take(axis.other_cell, number))), cells, unbiased
            )
    return by_axis


def most_failed(
    rows: Sequence[Row],
    has_other: Mapping[str, bool],
    tables: Iterable[tuple[Domain, Unbiased | None]],
    bound: int | None,
    seen: int,
) -> dict[str | None, float]:
    """The rows that can have failed on an axis at most, and under None those in `other` of any axis; in rows.

    All hold together, but with a probability of `MISSED`. An axis that nothing bounds is not named.

    Args:
        rows: of a quality table; without its rows by place, nothing is bounded.
        has_other: by axis of the spec, whether rows that fail on it are counted under `other`; else they are dropped.
        tables: that are published; the first one that has an axis tells of it.
        bound: R, the most rows of a unit that count; None where every row is a unit.
        seen: T, the most rows of a unit that the quality table sees.
    """
    missed = float(MISSED) / (1 + 3 * len(has_other))
    dropped = next((row for row in rows if (row["statistic"], row["category"]) == ("rows", "dropped")), None)
    if dropped is None:
        return {}
    reach = noise_law(Fraction(dropped["noise_scale"])).half_width(Fraction(1 - 2 * missed))
    others: dict[str, RowsInOther] = {}
    for domain, unbiased in tables:
        others = rows_in_other(domain, unbiased) | others
    lost = max(0.0, dropped["estimate"] + reach)
    inside = {
        name: _seen_at_most(others[name].most(missed), bound, seen, missed) for name in has_other if name in others
    }
    most: dict[str | None, float] = {}
    for axis, kept in has_other.items():
        elsewhere = lost if any(not other for name, other in has_other.items() if name != axis) else 0.0
        if not kept:
            most[axis] = lost
        elif axis in inside:
            most[axis] = math.ceil(inside[axis] + elsewhere)
    if {axis for axis, kept in has_other.items() if kept} <= inside.keys():
        most[None] = math.ceil(math.fsum(inside.values()))
    return most


def _seen_at_most(in_other: float, bound: int | None, seen: int, missed: float) -> float:
    """Rows in cells that a quality table sees at most, if the counts hold at most `kept` of them."""
    if bound is None:
        return in_other
    log = math.log(1 / missed)
    mean = ((math.sqrt(2 * bound * log) + math.sqrt(2 * bound * log + 4 * in_other)) / 2) ** 2
    mean, third = mean * seen / bound, seen * log / 3
    return mean + third + math.sqrt(third**2 + 2 * seen * log * mean)
