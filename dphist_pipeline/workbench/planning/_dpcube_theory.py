"""What the error theory of DPCube says of a release before it: how alike the cells of a box must be."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dphist_pipeline import mechanisms
from dphist_pipeline.mechanisms.dpcube import DPCube
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.evaluation.contenders import Contender
from dphist_pipeline.workbench.evaluation.theory import (
    QueryParameters,
    break_even_smoothness,
    cells_error,
    least_squares_error,
)

BOXES = (10, 100, 1000)


def dpcube_theory(spec: ReleaseSpec, contenders: Iterable[Contender]) -> list[str]:
    """Lines for each `dpcube` among the mechanisms, at the spec's epsilon: theorems 4.4 and 4.6 of Xiao et al. 2012.

    Boxes are no larger than the cube. The theory has Laplace noise; whole-number noise is near it at small epsilons.
    """
    lines = list[str]()
    for contender in contenders:
        mechanism = mechanisms.build(contender.mechanism, dict(contender.settings))
        if isinstance(mechanism, DPCube) and spec.domain.cells > 1:
            lines += _lines(contender.written, mechanism, spec)
    return lines


def _lines(mechanism_text: str, mechanism: DPCube, spec: ReleaseSpec) -> list[str]:
    sizes = sorted({min(size, spec.domain.cells) for size in BOXES})
    epsilon = spec.mechanism_epsilon
    first = float(epsilon * Fraction(mechanism.structure_share))
    settings = [QueryParameters(size, 1, first, float(epsilon) - first, sensitivity=spec.sensitivity) for size in sizes]
    of = [f"({size:,} cells)" for size in sizes]
    heading = f"{mechanism_text}, theory at epsilon {spec.epsilon}:"
    if mechanism.estimation == "uniform":
        differences = ", ".join(
            f"{break_even_smoothness(setting):.3g} {cells}" for setting, cells in zip(settings, of, strict=True)
        )
        return [
            f"{heading} a cell has a smaller error than plain noise while the cells",
            f"of its box differ by fewer records than {differences}.",
        ]
    ratios = (least_squares_error(setting) / cells_error(setting) for setting in settings)
    times = ", ".join(f"{ratio:.2f} {cells}" for ratio, cells in zip(ratios, of, strict=True))
    return [f"{heading} whatever the counts, a cell has the error of plain", f"noise times {times}."]
