"""The tables of a family as assets of their own, below the family's published asset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.integrations.dagster._shown import public_address
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release

# Every asset writes events of its own: of a larger family, the published asset alone is shown.
MOST_ASSETS = 100


def table_assets(spec: ReleaseSpec, group: base.Group, tags: Mapping[str, str]) -> tuple[dg.AssetSpec, ...]:
    """An asset for each table of a family; none for one grid, or for more tables than can be shown."""
    family = spec.family
    if family is None or len(family.names) > MOST_ASSETS:
        return ()
    return tuple(
        group.table(
            name,
            family.grid(axes),
            f"How many rows are there by {', '.join(axis.name for axis in family.grid(axes).axes)}? "
            f"In DuckDB: `FROM r.{spec.release}_{name}`. It agrees with the other tables of {spec.release}.",
            "published",
            tags,
            f"{spec.release}_{name}",
            skippable=True,
        )
        for name, axes in zip(family.names, family.tables, strict=True)
    )


def table_results(
    context: dg.AssetExecutionContext,
    assets: Sequence[dg.AssetSpec],
    publications: Sequence[tuple[str | None, Release]],
) -> Iterator[dg.MaterializeResult[Any]]:
    """One result for each table; each partition has metadata of its own."""
    for asset in assets:
        name = asset.key.path[-1]
        metadata_by_key = {key: shown_of_table(family.tables[name]) for key, family in publications}
        for key, metadata in metadata_by_key.items():
            if key is not None:
                context.add_asset_metadata(metadata, asset.key, key)
        yield dg.MaterializeResult(asset_key=asset.key, metadata=metadata_by_key.get(None))


def shown_of_table(table: Release) -> dict[str, Any]:
    """What the page shows of a table of a published family."""
    total, address = table.answer(), public_address(table.path.parents[1])
    place = f"{address}/tables/{table.path.name}" if address else table.path.as_uri()
    return {
        "total": total.estimate,
        "total_ci_lower": total.ci_lower,
        "total_ci_upper": total.ci_upper,
        "dagster/row_count": int(table.audit["cells"]),
        "dagster/uri": f"{place}/histogram.parquet",
    }
