"""What Dagster's pages show of a published release; all of it is public."""

from __future__ import annotations

import base64
from typing import Any

import dagster as dg

from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.publishing.plot import release_svg
from dphist_pipeline.publishing.tables import OUR_COLUMNS, axis_columns
from dphist_pipeline.releases import Release

MEANINGS = {
    "estimate": "the released count: the one to use",
    "unbiased_estimate": "the exact count plus noise, or a linear estimate of it, where the mechanism paid for such",
    "ci_lower": "95 % interval of the true bounded count, lower end",
    "ci_upper": "95 % interval of the true bounded count, upper end",
    "group_id": "cells that were measured together, where the mechanism makes groups",
}


def columns_of(domain: Domain) -> list[dg.TableColumn]:
    """The published histogram's columns: name, type, meaning."""
    columns = [
        dg.TableColumn(name, str(kind), _meaning(axis, name))
        for axis in domain.axes
        for name, kind in axis_columns(axis).items()
    ]
    kinds = {name: "int64" if name == "group_id" else "double" for name in OUR_COLUMNS}
    return columns + [dg.TableColumn(name, kind, MEANINGS[name]) for name, kind in kinds.items()]


def _meaning(axis: Axis, column: str) -> str:
    if isinstance(axis, BinnedAxis):
        end = "lower" if column == f"{axis.name}_lower" else "upper"
        included = (axis.closed == "left") == (end == "lower")
        return f"{end} end of the bin, {'included' if included else 'not included'}; null where there is none"
    meanings = {axis.name: "category", f"{axis.name}_label": "what the category is called"}
    what = meanings.get(column, "what the category lies in")
    return f"{what}; null for all others" if axis.other else what


def published_metadata(made: Release) -> dict[str, Any]:
    """Epsilon, the audit as a table, where the files and their card are, and the picture that the card shows, too."""
    audit = made.audit
    charges = [
        dg.TableRecord({"step": row["step"], "epsilon": row["epsilon"], "noise_scale": row["noise_scale"]})
        for row in audit["charges"]
    ]
    card = made.path / "card.html"
    picture = base64.b64encode(release_svg(made.path).encode()).decode()
    return {
        "epsilon": dg.MetadataValue.text(audit["epsilon"]),
        "replayed": dg.MetadataValue.bool(made.replayed),
        "protects": dg.MetadataValue.text(
            f"each {audit['privacy_unit']} with up to {audit['max_rows_per_unit']} rows ({audit['neighbours']})"
        ),
        "audit": dg.MetadataValue.table(records=charges),
        "files": dg.MetadataValue.path(str(made.path)),
        **({"card": dg.MetadataValue.path(str(card))} if card.exists() else {}),
        "picture": dg.MetadataValue.md(f"![{audit['release']}](data:image/svg+xml;base64,{picture})"),
    }
