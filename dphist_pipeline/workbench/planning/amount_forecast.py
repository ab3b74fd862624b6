"""How far rows, sum and mean of an amount will be off, before records are read: it follows from the noise law alone."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.base.domain import AmountAxis
from dphist_pipeline.estimates.amounts import AmountFigures
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.amount_axes import AmountAxisSpec
from dphist_pipeline.spec.unit_axes import UnitAxisSpec

ROWS_OF_MEAN = 400  # for which the error of a mean is told


def amount_of(spec: ReleaseSpec) -> dict[str, Any]:
    """How far the rows, the sum and the mean of an amount will be off in a cell, as JSON values; none without one.

    Half widths of 95 % intervals, from the law of the noise alone; of a mean in the middle of the ends, for 400 rows.
    """
    if (number := spec.domain.amount) is None:
        return {}
    axis = spec.domain.axes[number]
    assert isinstance(axis, AmountAxis)
    law = noise_law(spec.sensitivity / spec.mechanism_epsilon, spec.parts)
    none = AmountFigures(axis, law, spec.parts, 0.0, 0.0, 1)
    many = AmountFigures(axis, law, spec.parts, ROWS_OF_MEAN / 2, ROWS_OF_MEAN / 2, 1)
    halves = {one.what: (one.upper - one.lower) / 2 for one in (none.rows, none.sum, many.mean)}
    return {"amount": {"axis": axis.name, "parts": spec.parts, "worth_of_part": none.worth_of_part, **halves}}


def amount_in_words(spec: ReleaseSpec) -> dict[str, str]:
    """The same for a terminal."""
    if not (amount := amount_of(spec).get("amount")):
        return {}

    def shown(number: float) -> str:
        return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"

    units = [
        axis.measured_in for axis in spec.axes if isinstance(axis, AmountAxisSpec | UnitAxisSpec) and axis.measured_in
    ]
    unit = "".join(f" {one}" for one in units)
    return {
        "amount": f"95 % in a cell: rows ± {amount['rows']:,.0f}, sum ± {shown(amount['sum'])}{unit}, mean of "
        f"{ROWS_OF_MEAN} rows ± {shown(amount['mean'])}{unit}; {amount['parts']:,} parts a row, "
        f"each worth {amount['worth_of_part']:.2g}{unit}"
    }
