"""The answers worked out cell by cell with NumPy: an independent check of the SQL macros, for small grids."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer, Basis, Quantile, RangeAnswer
from dphist_pipeline.estimates.chosen_cells import Condition, chosen_cells, end_of
from dphist_pipeline.estimates.laws import LEVEL, LEVEL_OF_TWO, bernstein_factor, noise_law, normal_factor, report_reach
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, Unbiased
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

Box = dict[str, Condition]
Mask = NDArray[np.bool_]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Oracle:
    """The cells of a publication, which answers as `Release` does."""

    domain: Domain
    values: Reals
    unbiased: Unbiased | None

    @classmethod
    def of(cls, release: Release) -> Oracle:
        audit = read_audit(release.path)
        domain = domain_of(audit["axes"])
        rows = pq.ParquetFile(release.path / "histogram.parquet").read(["estimate", "unbiased_estimate"])
        values, unbiased = (column.to_numpy().reshape(domain.shape) for column in rows.columns)
        return cls(domain, values, published_unbiased(audit, unbiased))

    @property
    def basis(self) -> Basis:
        if self.unbiased is None:
            return "noise_only"
        return "unbiased" if isinstance(self.unbiased, NoisyCells) else "linear"

    def mask(self, box: Box) -> Mask:
        found = np.zeros(self.domain.shape, dtype=bool)
        found[np.ix_(*chosen_cells(self.domain, box))] = True
        return found

    def variance(self, weights: NDArray[Any]) -> float:
        """Variance of a weighted sum of the unbiased cells."""
        if isinstance(self.unbiased, NoisyCells):
            return float((weights.astype(float) ** 2).sum()) * self.unbiased.variance
        if isinstance(self.unbiased, NestedCells) and self.unbiased.lines:
            found = weights.astype(float)
            for axis, line in enumerate(self.unbiased.lines):
                measured = np.vstack([np.diag(line.weights[0]), line.weights[1:]]).astype(float)
                found = np.moveaxis(
                    np.tensordot(np.linalg.inv(measured.T @ measured), np.moveaxis(found, axis, 0), axes=1), 0, axis
                )
            return self.unbiased.shared[0].coefficient * float((weights * found).sum())
        if isinstance(self.unbiased, NestedCells):
            total = 0.0
            for part in self.unbiased.shared:
                sums = np.bincount(_nodes(self.domain.shape, part.widths), weights.ravel())
                total += part.coefficient * float(sums @ sums)
            return total
        assert isinstance(self.unbiased, ReportedCells)
        sets = [(float(weight), weights == weight) for weight in np.unique(weights) if weight]
        parts = [(weight, *self.reports_in(cells)) for weight, cells in sets]
        return float(self.unbiased.law.weighted_variance(parts)) if parts else 0.0

    def reports_in(self, cells: Mask) -> tuple[NDArray[np.int64], Reals]:
        """Atoms and estimated count of a set of cells, for estimates from reports."""
        assert isinstance(self.unbiased, ReportedCells)
        return np.asarray(self.unbiased.atoms[cells].sum()), np.asarray(self.unbiased.values[cells].sum())

    def reach(self, cells: Mask, level: Fraction = LEVEL, factor: float | None = None) -> float:
        """Half the width of the interval of a sum of cells; a factor replaces the level for reports."""
        if not cells.any():
            return 0.0
        if isinstance(self.unbiased, NoisyCells):
            return noise_law(self.unbiased.scale).half_width_of_sum(int(cells.sum()), level)
        if isinstance(self.unbiased, NestedCells):
            return noise_law(self.unbiased.scale).half_width_of_linear(self.variance(cells), level)
        assert isinstance(self.unbiased, ReportedCells)
        law, (atoms, _) = self.unbiased.law, self.reports_in(cells)
        return float(report_reach(factor or normal_factor(level), self.variance(cells), law.slope(atoms), law.step))

    def around(self, cells: Mask, reach: float | None = None) -> Answer:
        """The answer for a set of cells, with the half width `reach`, by itself if it is None."""
        estimate, number = float(self.values[cells].sum()), int(cells.sum())
        if self.unbiased is None:
            return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", number, note=notes.NO_INTERVAL)
        centre, error = float(self.unbiased.values[cells].sum()), math.sqrt(self.variance(cells))
        reach = self.reach(cells) if reach is None else reach
        note = notes.note_of(estimate, centre - reach, centre + reach)
        return Answer(estimate, centre, centre - reach, centre + reach, self.basis, number, error, note)

    def answer(self, /, **box: Condition) -> Answer:
        return self.around(self.mask(box))

    def range(self, name: str, low: Any, high: Any, box: Box) -> RangeAnswer:
        number = [axis.name for axis in self.domain.axes].index(name)
        axis = self.domain.axes[number]
        assert isinstance(axis, BinnedAxis)
        ends, (lower, upper) = (end_of(axis, low, -math.inf), end_of(axis, high, math.inf)), axis.bounds
        shape = [-1 if place == number else 1 for place in range(len(self.domain.axes))]
        within = ((lower >= ends[0]) & (upper <= ends[1])).reshape(shape)
        overlap = ((upper > ends[0]) & (lower < ends[1])).reshape(shape)
        return RangeAnswer(*(self.around(self.mask(box) & along) for along in (within, overlap)))

    def marginal(self, by: list[str], box: Box) -> list[dict[str, Any]]:
        """The number of the first cell of each row, and its answer."""
        groups: dict[tuple[Any, ...], Mask] = {}
        for cell in np.argwhere(self.mask(box)):
            key = tuple(_group(axis, int(place), by) for axis, place in zip(self.domain.axes, cell, strict=True))
            groups.setdefault(key, np.zeros(self.domain.shape, dtype=bool))[tuple(cell)] = True
        return [{"first": int(np.flatnonzero(cells)[0]), "answer": self.around(cells)} for cells in groups.values()]

    def band(self, level: float, box: Box) -> list[dict[str, Any]]:
        """The number of each cell, and its answer with an interval of the band."""
        cells, rows = self.mask(box), []
        for number in np.flatnonzero(cells):
            one = np.zeros(self.domain.shape, dtype=bool)
            one.ravel()[number] = True
            found = self.around(one, self.band_reach(one, int(cells.sum()), level))
            if isinstance(self.unbiased, NestedCells):
                found = replace(found, noise_error=math.sqrt(self.unbiased.variances.max()))
            rows.append({"first": int(number), "answer": replace(found, cells=int(cells.sum()))})
        return rows

    def band_reach(self, one: Mask, cells: int, level: float) -> float:
        """Half the width of the interval of one cell in a band over so many cells."""
        if isinstance(self.unbiased, NoisyCells):
            decay, missed = float(1 / self.unbiased.scale), -math.expm1(math.log(level) / cells)
            return max(0.0, math.ceil(math.log(2 / (missed * (1 + math.exp(-decay)))) / decay - 1 + 1e-9))
        missed = (1 - level) / cells
        if isinstance(self.unbiased, NestedCells):
            largest = self.unbiased.variances.max()
            reach = float(noise_law(self.unbiased.scale).chernoff_reach(np.array([largest]), missed)[0])
            tail = self.unbiased.tail
            return reach if tail is None else min(reach, max(0.0, math.log(tail.factor / missed) / tail.rate))
        return math.nan if self.unbiased is None else self.reach(one, factor=bernstein_factor(missed))

    def share(self, part: Box, whole: Box) -> Answer:
        around = self.mask(whole)
        inside = around & self.mask(part)
        total, cells = float(self.values[around].sum()), int(inside.sum())
        share = float(self.values[inside].sum()) / total if total > 0 else math.nan
        if self.unbiased is None:
            note = notes.NO_WHOLE if math.isnan(share) else notes.NO_INTERVAL
            return Answer(share, math.nan, math.nan, math.nan, "noise_only", cells, note=note)
        lower, upper, error = *self.share_ends(inside, around), math.nan
        if not math.isnan(share):
            error = self.share_error(inside, around, min(1.0, max(0.0, share))) / total
        sums = [float(self.unbiased.values[one].sum()) for one in (inside, around)]
        unbiased, note = sums[0] / sums[1] if sums[1] > 0 else math.nan, ""
        if not lower - 1e-9 <= share <= upper + 1e-9:
            note = notes.NO_WHOLE if math.isnan(share) else notes.SMOOTHED if 0 <= share <= 1 else notes.NO_SHARE
        return Answer(share, unbiased, lower, upper, self.basis, cells, error, note)

    def share_ends(self, inside: Mask, around: Mask) -> tuple[float, float]:
        if inside.sum() in (0, around.sum()):
            return float(inside.any()), float(inside.any())
        if isinstance(self.unbiased, NestedCells) or (
            isinstance(self.unbiased, NoisyCells) and self.unbiased.scale >= 1
        ):
            return self.fieller_ends(inside, around)
        least, most = self.ends_of_two(inside)
        rest_least, rest_most = self.ends_of_two(around & ~inside)
        upper = most / (most + rest_least) if rest_least > 0 else 1.0
        return least / (least + rest_most) if least > 0 else 0.0, upper

    def fieller_ends(self, inside: Mask, around: Mask) -> tuple[float, float]:
        """The least and the greatest share in [0, 1] at which part - share · whole is not too far from 0."""
        assert isinstance(self.unbiased, NoisyCells | NestedCells)
        scale, draw = self.unbiased.scale, noise_law(self.unbiased.scale).variance
        # The variance is a parabola in the share, from its values at 0, 1 and -1.
        fixed, *sides = (self.variance(inside * 1.0 - share * around) for share in (0.0, 1.0, -1.0))
        parabola = np.array([sum(sides) / 2 - fixed, (sides[0] - sides[1]) / 2, fixed])
        if isinstance(self.unbiased, NestedCells):
            draws = max(1.0, np.polyval(parabola, -parabola[1] / parabola[0] / 2) / draw * (1 + 1e-9))
        else:
            draws = float(min(inside.sum(), around.sum() - inside.sum()))
        factor = max(pair for pair in noise_law(scale).linear_reach_grid(math.ceil(draws)) if pair[0] <= draws)[1]
        part, whole = (float(self.unbiased.values[cells].sum()) for cells in (inside, around))
        too_far = np.array([whole**2, -2 * part * whole, part**2]) - factor**2 * parabola
        roots = np.sort(np.roots(too_far).real)
        if too_far[0] > 0:
            return tuple(np.clip(roots, 0.0, 1.0).tolist())
        if np.iscomplexobj(np.roots(too_far)) or (roots[0] < 0 and roots[1] > 1):
            return 0.0, 1.0
        return max(0.0, float(roots[1])) if roots[0] < 0 else 0.0, min(1.0, float(roots[0])) if roots[1] > 1 else 1.0

    def ends_of_two(self, cells: Mask) -> tuple[float, float]:
        """The ends of an interval that holds together with another one, not below 0."""
        assert self.unbiased is not None
        centre, reach = float(self.unbiased.values[cells].sum()), self.reach(cells, LEVEL_OF_TWO)
        return max(0.0, centre - reach), max(0.0, centre + reach)

    def share_error(self, inside: Mask, around: Mask, share: float) -> float:
        return math.sqrt(self.variance(inside * 1.0 - share * around))

    def change_since(self, earlier: Oracle, box: Box) -> Answer:
        before, after = earlier.around(earlier.mask(box)), self.around(self.mask(box))
        estimate, cells = after.estimate - before.estimate, after.cells + before.cells
        one, two = earlier.unbiased, self.unbiased
        if one is None or two is None:
            return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", cells, note=notes.NO_INTERVAL)
        variance = earlier.variance(earlier.mask(box)) + self.variance(self.mask(box))
        if isinstance(one, ReportedCells) and isinstance(two, ReportedCells):
            laws = ((one.law, earlier.reports_in(earlier.mask(box))), (two.law, self.reports_in(self.mask(box))))
            slope, step = max(abs(float(law.slope(atoms))) for law, (atoms, _) in laws), max(one.law.step, two.law.step)
            reach = float(report_reach(normal_factor(LEVEL), variance, slope, step))
        elif isinstance(one, NoisyCells) and isinstance(two, NoisyCells) and one.scale == two.scale:
            reach = noise_law(one.scale).half_width_of_sum(cells)
        elif isinstance(one, NestedCells) and isinstance(two, NestedCells) and one.scale == two.scale:
            reach = noise_law(one.scale).half_width_of_linear(variance)
        else:
            reach = earlier.reach(earlier.mask(box), LEVEL_OF_TWO) + self.reach(self.mask(box), LEVEL_OF_TWO)
        centre, kinds = after.unbiased - before.unbiased, {earlier.basis, self.basis}
        note = notes.SMOOTHED if abs(estimate - centre) > reach + notes.ROUNDING else ""
        basis: Basis = "unbiased" if kinds == {"unbiased"} else "linear"
        return Answer(estimate, centre, centre - reach, centre + reach, basis, cells, math.sqrt(variance), note)

    def quantile(self, name: str, q: float, box: Box) -> Quantile:
        number = [axis.name for axis in self.domain.axes].index(name)
        positions = chosen_cells(self.domain, {name: (None, None), **box})
        axis, bins = self.domain.axes[number], positions[number]
        assert isinstance(axis, BinnedAxis)
        lower, upper = (ends[bins] for ends in axis.bounds)
        inside, along = self.mask({name: (None, None), **box}), np.indices(self.domain.shape)[number]
        below = np.cumsum([self.values[inside & (along == place)].sum() for place in bins])
        ends = (math.nan, math.nan)
        if self.unbiased is not None:
            least, most = self.open_bins(inside, along, bins, q)
            ends = float(lower[least]), float(upper[most])
        if below[-1] <= 0:
            return Quantile(math.nan, *ends, self.basis, int(inside.sum()), math.nan, math.nan, notes.NO_WHOLE)
        middle = int(np.argmax(below >= q * below[-1]))
        low, high = float(lower[middle]), float(upper[middle])
        start = float(below[middle - 1]) if middle else 0.0
        is_open = not (math.isfinite(low) and math.isfinite(high))
        within = min(1.0, max(0.0, (q * float(below[-1]) - start) / (float(below[middle]) - start)))
        estimate, note = math.nan if is_open else low + within * (high - low), notes.OPEN_BIN if is_open else ""
        if not (low >= ends[0] and high <= ends[1]):
            note = notes.NO_INTERVAL if self.unbiased is None else notes.SMOOTHED
        return Quantile(estimate, *ends, self.basis, int(inside.sum()), low, high, note)

    def open_bins(self, inside: Mask, along: NDArray[Any], bins: NDArray[np.int64], q: float) -> tuple[int, int]:
        """The first and the last bin in which the quantile may lie."""
        assert self.unbiased is not None
        least, most, missed = 0, len(bins) - 1, 0.05 / max(1, len(bins) - 1)
        for index, place in list(enumerate(bins))[-2::-1]:
            weights = inside * np.where(along <= place, 1 - q, -q)
            balance, reach = float((weights * self.unbiased.values).sum()), self.balance_reach(weights, q, missed)
            if balance + reach < 0:
                least = max(least, index + 1)
            if balance - reach >= 0:
                most = index
        return min(least, most), max(least, most)

    def balance_reach(self, weights: Reals, q: float, missed: float) -> float:
        """Half the width of (1-q) · (count below an edge) - q · (count above), missed with at most `missed`."""
        variance = self.variance(weights)
        if not isinstance(self.unbiased, ReportedCells):
            assert self.unbiased is not None
            return float(noise_law(self.unbiased.scale).chernoff_reach(np.array([variance]), missed)[0])
        law, atoms = self.unbiased.law, self.unbiased.atoms
        both = law.delta * float((weights * atoms).sum())
        slope = max(abs(law.gamma * (1 - q) + both), abs(law.gamma * q - both))
        return float(report_reach(bernstein_factor(missed), variance, slope, law.step))


@cache
def _nodes(shape: tuple[int, ...], widths: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of the node of each cell; a node is `widths` cells wide."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.unique(places // np.array(widths)[:, np.newaxis], axis=1, return_inverse=True)[1].ravel()


def _group(axis: Any, place: int, by: list[str]) -> Any:
    """The group of a position along an axis: itself, the groups of the asked levels, or nothing."""
    if axis.name in by:
        return place
    levels = axis.levels if isinstance(axis, CategoricalAxis) else {}
    return tuple(groups[place] if place < len(groups) else None for name, groups in levels.items() if name in by)
