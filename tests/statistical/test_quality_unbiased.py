"""What a quality table says of the rows cut is unbiased, with the noise that it states: over many releases."""

from __future__ import annotations

import secrets
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from unit.spec_scenario import spec

from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential._bounding import KEY_BYTES, count_bounded
from dphist_pipeline.confidential.measurements import PrivateRows
from dphist_pipeline.confidential.row_queries import Limits, ObservedRows, RowsCut, RowsCutBy
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.releasing._plans import plan_of

KEYS, DRAWS, KEPT, SEEN, EPSILON = 50, 8, 3, 10, Fraction(1, 4)
RUNS = KEYS * DRAWS
# Readmitted rows (cell 0) belong to units with many of them: of each unit its readmitted rows and its others.
UNITS = [(0, 1)] * 300 + [(1, 3)] * 60 + [(4, 4)] * 40 + [(9, 6)] * 10
AXES = [{"column": "readmitted", "values": ["yes", "no"]}]
SPEC = spec(axes=AXES, max_rows_per_unit=KEPT, quality={"rows": SEEN}, period=..., period_column=...)
NEVER = 6.6  # standard errors of independent draws; those of one key have the same rows, which adds 8 % to them


class Nowhere:
    """Answers that are kept nowhere, as in a study."""

    def answer(self, step: str, question: object, draw: object) -> object:
        return draw()  # type: ignore[operator]


def expected(cell: int) -> float:
    """Of each unit's first ten rows in random order, those after the third, as far as they lie in a cell."""
    return sum((min(sum(rows), SEEN) - KEPT) * rows[cell] / sum(rows) for rows in UNITS if sum(rows) > KEPT)


def released() -> tuple[np.ndarray, np.ndarray]:
    """Estimates of the rows cut, of all and by cell, from releases with fresh keys and fresh noise; and exact ones."""
    rows = [(unit, cell) for unit, held in enumerate(UNITS) for cell in (0, 1) for _ in range(held[cell])]
    frame = pl.DataFrame(
        [(*row, 0) for row in rows], {"unit": pl.Int64, "code": pl.Int32, "marks": pl.Int64}, orient="row"
    )
    plan, found, exact = plan_of(SPEC, SPEC.period_named("all")), [], []
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder) / "rows.parquet"
        frame.write_parquet(staged)
        for _ in range(KEYS):
            key = secrets.token_bytes(KEY_BYTES)
            seen = row_tables.observe_rows(plan, SEEN, staged, count_bounded(staged, 2, KEPT, key), key)
            found += [_noisy(seen) for _ in range(DRAWS)]
            exact += [[*seen.cut, *seen.cut_by]] * DRAWS
    return np.array(found), np.array(exact)


def _noisy(seen: ObservedRows) -> list[float]:
    private_counts = PrivateRows(Limits(KEPT, SEEN, substitute=False), lambda: seen, Nowhere())  # type: ignore[arg-type]
    whole, _ = private_counts.noisy(RowsCut(), Budget(EPSILON, "whole"))
    by, _ = private_counts.noisy(RowsCutBy(0, (2,)), Budget(EPSILON, "by"))
    return [*whole, *by]


@pytest.mark.slow
def test_rows_cut_are_estimated_without_bias_and_with_the_stated_noise() -> None:
    found, exact = released()
    truth = np.array([expected(0) + expected(1), expected(0), expected(1)])
    errors = found.std(axis=0) / RUNS**0.5
    assert (np.abs(found.mean(axis=0) - truth) < NEVER * errors).all()
    for wrong in (0.7 * truth, 1.3 * truth):
        assert (np.abs(found.mean(axis=0) - wrong) > NEVER * errors).all()
    # The interval is about the rows that a release's own order cuts. 1,200 draws tell a spread within 3.2 %.
    scale = Fraction(SEEN - KEPT) / EPSILON
    spread = (found - exact).std() / float(noise_law(scale).variance) ** 0.5
    assert abs(spread - 1) < 0.2
    covered = (np.abs(found - exact) <= noise_law(scale).half_width_of_sum(1)).mean()
    assert covered > 0.91
