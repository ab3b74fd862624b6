"""What an audit says of the noise in `unbiased_estimate`, from which `published_unbiased` reads it back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.lines import facts_of_line
from dphist_pipeline.estimates.noisy import NestedCells, ReportedCells


def unbiased_facts(estimate: Estimate) -> dict[str, Any]:
    """The law of the noise in `unbiased_estimate`.

    Its scale and, for linear estimates, the covariance of two cells, and the weights of what was measured along each
    axis if these were chosen for declared questions; for estimates from reports their law and atoms of cells.
    """
    unbiased = estimate.unbiased
    if isinstance(unbiased, ReportedCells):
        law, atoms = asdict(unbiased.law), unbiased.atoms.tolist()
        return {"unbiased_noise_scale": None, "unbiased_covariance": None, "report_law": law, "atoms": atoms}
    shared = unbiased.shared if isinstance(unbiased, NestedCells) else None
    tail = unbiased.tail if isinstance(unbiased, NestedCells) else None
    lines = unbiased.lines if isinstance(unbiased, NestedCells) else ()
    return {
        "unbiased_noise_scale": None if unbiased is None else unbiased.law.scale_text,
        "unbiased_covariance": None
        if shared is None
        else [{"coefficient": part.coefficient, "widths": list(part.widths)} for part in shared],
        **({} if tail is None else {"unbiased_tail": asdict(tail)}),
        **({"unbiased_lines": [facts_of_line(line) for line in lines]} if lines else {}),
    }
