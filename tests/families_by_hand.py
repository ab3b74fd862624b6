"""Public folders of families of tables made by hand: any axes at any levels, without records, ledger or spec."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from by_hand import charged, on_cards

from dphist_pipeline.estimates.estimate import FamilyEstimate
from dphist_pipeline.mechanisms import tables as mechanism
from dphist_pipeline.publishing.release_files import write_release
from dphist_pipeline.releasing._audit_facts import _level
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec._family_tables import TablesSpec, family_of
from dphist_pipeline.spec.axes import domain_of


def estimate_family(
    axes: list[dict[str, Any]], tables: Sequence[Sequence[str]], epsilon: Fraction, seed: int
) -> tuple[FamilyEstimate, dict[str, Any]]:
    """Tables that agree, from invented noisy counts with the scales that a mechanism would buy; and their axes.

    Args:
        axes: as a spec writes them.
        tables: each by axes or levels.
        epsilon: for all tables.
        seed: of the counts.
    """
    family = family_of(TablesSpec(list=tuple(map(tuple, tables))), domain_of(axes).axes, 10**6)
    shares, draws = mechanism.shares_for(family), np.random.Generator(np.random.PCG64(seed))
    scales = {one: 1 / (part * epsilon) for one, part in zip(shares.marginals, shares.parts, strict=True)}
    noisy = {
        one: np.rint(2000 / family.grid(one).cells + draws.laplace(0, float(scale), family.grid(one).shape))
        for one, scale in scales.items()
    }
    charges = tuple((f"step_{number}", part * epsilon) for number, part in enumerate(shares.parts))
    written = {one.get("name", one["column"]): one for one in axes}
    facts = [written.get(axis.name) or _level(axis) for axis in family.domain.axes]
    told = {
        name: {"cells": family.grid(table).cells, "axes": [facts[number] for number in table]}
        for name, table in zip(family.names, family.tables, strict=True)
    }
    return mechanism._estimates(family, noisy, scales, charges), told


def publish_family(
    public: Path,
    axes: list[dict[str, Any]],
    tables: Sequence[Sequence[str]],
    release: str = "family",
    period: str = "2026-03-02",
    revision: int = 1,
    epsilon: Fraction = Fraction(1, 2),
    seed: int = 1,
    pictures: bool = False,
    **more: Any,
) -> dict[str, Release]:
    """Writes the files of a family where a store would have them, and returns its tables by their names.

    `more`: facts of its audit, such as `invariants`.
    """
    made, told = estimate_family(axes, tables, epsilon, seed)
    folder = public / release / f"period={period}" / f"revision={revision}"
    folder.mkdir(parents=True)
    facts = {
        **{"format": 1, "release": release, "period": period, "revision": revision, "account": "health"},
        **{"privacy_unit": "patient", "max_rows_per_unit": 1, "neighbours": "add_remove", "sensitivity": 1},
        **{"mechanism": "tables", "cells": 1, "axes": axes, "tables": told},
        "ledger": charged(folder),
        **more,
    }
    with on_cards(pictures):
        write_release(made, {}, facts, folder)
    read = Release(folder, facts, replayed=False)
    return {name: Release(folder / "tables" / name, {**read.audit}, replayed=False) for name in told}
