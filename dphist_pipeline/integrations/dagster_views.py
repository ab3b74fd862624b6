"""What Dagster's pages show of a published release; all of it is public."""

from __future__ import annotations

import base64
from typing import Any

import dagster as dg

from dphist_pipeline.domain import BinnedAxis, Domain
from dphist_pipeline.publishing.plot import release_svg
from dphist_pipeline.publishing.tables import OUR_COLUMNS
from dphist_pipeline.releases import Release


def column_types(domain: Domain) -> list[tuple[str, str]]:
    """Names and types of the published histogram's columns."""
    columns: list[tuple[str, str]] = []
    for axis in domain.axes:
        if isinstance(axis, BinnedAxis):
            columns += [(f"{axis.name}_lower", "double"), (f"{axis.name}_upper", "double")]
        else:
            columns.append((axis.name, "string"))
    return columns + [(name, "int64" if name == "group_id" else "double") for name in OUR_COLUMNS]


def published_metadata(made: Release) -> dict[str, Any]:
    """Epsilon, the audit as a table, where the files are, and a picture."""
    audit = made.audit
    charges = [
        dg.TableRecord({"step": row["step"], "epsilon": row["epsilon"], "noise_scale": row["noise_scale"]})
        for row in audit["charges"]
    ]
    picture = base64.b64encode(release_svg(made.path).encode()).decode()
    return {
        "epsilon": dg.MetadataValue.text(audit["epsilon"]),
        "replayed": dg.MetadataValue.bool(made.replayed),
        "protects": dg.MetadataValue.text(
            f"{audit['privacy_unit']}, up to {audit['max_rows_per_unit']} rows ({audit['neighbours']})"
        ),
        "audit": dg.MetadataValue.table(records=charges),
        "files": dg.MetadataValue.path(str(made.path)),
        "picture": dg.MetadataValue.md(f"![{audit['release']}](data:image/svg+xml;base64,{picture})"),
    }
