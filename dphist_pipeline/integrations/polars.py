"""Polars frames that count themselves: `df.dphist.count_cube(…)`, once this module was imported.

import dphist_pipeline.integrations.polars  # noqa: F401
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.releasing.frames import PrivateCounts, count_cube
from dphist_pipeline.spec.model import Neighbours
from dphist_pipeline.spec.sources import NormalForm


@pl.api.register_lazyframe_namespace("dphist")
@pl.api.register_dataframe_namespace("dphist")
class DphistFrame:
    """What `df.dphist` and `lf.dphist` offer."""

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def count_cube(
        self,
        domain: Domain | Sequence[Mapping[str, Any]],
        *,
        privacy_unit: str | Sequence[str],
        max_rows_per_unit: int | None = None,
        neighbours: Neighbours = "add_remove",
        unit_normalise: Sequence[NormalForm] = (),
        time_zone: str = "UTC",
        derive: Sequence[Mapping[str, Any]] = (),
        keep: Sequence[Mapping[str, Any]] = (),
    ) -> PrivateCounts:
        """Bounded counts of the frame, behind measurements; arguments and errors as of `dphist_pipeline.count_cube`."""
        return count_cube(
            self._frame,
            domain,
            privacy_unit=privacy_unit,
            max_rows_per_unit=max_rows_per_unit,
            neighbours=neighbours,
            unit_normalise=unit_normalise,
            time_zone=time_zone,
            derive=derive,
            keep=keep,
        )
