"""Public folders made by hand: any axes and values, without records, ledger or spec.

Their cards have no pictures unless a test asks for them: to draw these takes fifteen times as long as all the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from quick_pictures import UNDRAWN

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.row_quality import RowTable
from dphist_pipeline.publishing.release_files import write_release
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

SCALE = Fraction(6)
QUALITY = (
    RowTable(
        ("rows",) * 3,
        (None,) * 3,
        (None,) * 3,
        ("declared", "other", "dropped"),
        np.array([300.0, 20.0, 1.0]),
        SCALE,
        "quality_rows",
        Fraction(1, 6),
    ),
    RowTable(("cut",), (None,), (None,), (None,), np.array([40.0]), SCALE, "quality_cut", Fraction(1, 6)),
)
AGE: dict[str, Any] = {"column": "age", "edges": [0, 18, 65], "below": True, "above": True, "other": True}
WARD: dict[str, Any] = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
HEIGHT: dict[str, Any] = {"column": "height", "start": 0, "stop": "0.4", "width": "0.1", "closed": "right"}


def estimate(
    axes: list[dict[str, Any]],
    values: NDArray[np.float64] | None = None,
    scale: Fraction | None = SCALE,
    off: float = 0.25,
) -> Estimate:
    """Noisy cells that start at -3 and never repeat, and estimates that are `off` beside them.

    Args:
        axes: as a spec writes them.
        values: noisy cells instead.
        scale: of their noise; None where no noisy cells were paid for.
        off: between an estimate and its noisy cell.
    """
    domain = domain_of(axes)
    numbers = np.arange(domain.cells, dtype=np.float64)
    noisy = (numbers * 7 % 1009 + numbers // 1009 - 3).reshape(domain.shape) if values is None else values
    unbiased = None if scale is None else NoisyCells(noisy, scale)
    return Estimate(domain, noisy + off, (("counts", 1 / (scale or SCALE)),), unbiased)


def charged(folder: Path) -> dict[str, Any]:
    """What an audit tells of the ledger's entry; every publication has been charged by one of its own."""
    entry = hashlib.sha256("/".join(folder.parts[-3:]).encode()).hexdigest()
    return {"number": 1, "hash": entry, "charged_at": "2026-03-10T06:00:00Z"}


def publish(
    public: Path,
    made: Estimate,
    axes: list[dict[str, Any]],
    release: str = "weekly",
    period: str = "2026-03-02",
    revision: int = 1,
    pictures: bool = False,
    **other_facts: Any,
) -> Release:
    """Writes the files of a release where a store would have them; other facts are those of its audit."""
    folder = public / release / f"period={period}" / f"revision={revision}"
    folder.mkdir(parents=True)
    facts = {
        **{"format": 1, "release": release, "period": period, "revision": revision, "account": "health"},
        **{"privacy_unit": "patient", "max_rows_per_unit": 1, "neighbours": "add_remove", "sensitivity": 1},
        **{"mechanism": "geometric", "cells": made.domain.cells, "axes": axes},
        "ledger": charged(folder),
        **({"quality": {"share": "1/20", "rows": 4, "by": []}} if made.quality else {}),
        **other_facts,
    }
    with on_cards(pictures):
        write_release(made, {}, facts, folder)
    return Release(folder, facts, replayed=False)


@contextmanager
def on_cards(pictures: bool) -> Iterator[None]:
    """Cards have their pictures, or empty ones."""
    if pictures:
        yield
        return
    with ExitStack() as stack:
        for owner, name, instead in UNDRAWN:
            stack.enter_context(mock.patch.object(owner, name, instead))
        yield
