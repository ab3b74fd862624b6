"""What public figures will tell of the tables of a family, by its spec alone."""

from __future__ import annotations

from typing import Any

from dphist_pipeline.base.domain import Family, finest
from dphist_pipeline.estimates.known_figures import KnownFigures, figures_as_facts, known_figures
from dphist_pipeline.releasing.release_spec import ReleaseSpec


def figures_of(family: Family, spec: ReleaseSpec) -> dict[str, Any]:
    """The public figures that counts meet, at their finest levels, as an audit has them."""
    invariants = spec.tables and spec.tables.invariants
    if not invariants:
        return {}
    figures = invariants.finest(finest([family.domain]).axes)
    return {"invariants": figures_as_facts(figures, invariants.counts)}


def known_tables(spec: ReleaseSpec) -> dict[str, KnownFigures]:
    """The figures that each table of a spec meets, by its name; empty where none are known."""
    if spec.family is None:
        return {}
    facts = {
        "privacy_unit": spec.privacy_unit,
        "max_rows_per_unit": spec.max_rows_per_unit,
        **figures_of(spec.family, spec),
    }
    whole, known = finest([spec.family.domain]), dict[str, KnownFigures]()
    for name, axes in zip(spec.family.names, spec.family.tables, strict=True):
        if (of_table := known_figures(facts, spec.family.grid(axes), whole)) is not None:
            known[name] = of_table
    return known


def wholly_known(spec: ReleaseSpec) -> list[str]:
    """The tables of which every cell is known from public figures, so that their error is 0."""
    return [name for name, known in known_tables(spec).items() if known.tell_all]
