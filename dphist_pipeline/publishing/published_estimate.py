"""What a mechanism estimated, read back from published files, as far as pages show it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dphist_pipeline.base.domain import Domain, finest
from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate, Finding, with_known
from dphist_pipeline.estimates.known_figures import KnownFigures, known_figures
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.publishing.published_files import AUDIT, PublishedFolder, read_audit, read_sealed_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of


def published_estimate(folder: Path, audit: Mapping[str, Any]) -> Estimate:
    """The estimate of one table, whose files were checked, without what was bought about rows.

    Raises:
        KeyError: the version that published it wrote less than is needed.
    """
    domain = domain_of(audit["axes"])
    columns = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate", "group_id"])
    values, noisy = (columns[name].to_numpy().reshape(domain.shape) for name in ("estimate", "unbiased_estimate"))
    is_grouped = columns["group_id"].null_count == 0
    estimate = Estimate(
        domain,
        values,
        _charges(audit),
        unbiased=published_unbiased(audit, noisy),
        groups=columns["group_id"].to_numpy().astype(np.int64).reshape(domain.shape) if is_grouped else None,
        sums=_sums(folder),
        findings=tuple(Finding(**finding) for finding in audit.get("findings", ())),
    )
    return with_known(estimate, published_figures(folder, audit))


def published_family(folder: Path, audit: Mapping[str, Any]) -> FamilyEstimate:
    """The estimates of all tables of a family, whose files were checked, without what was bought about rows."""
    places = {name: PublishedFolder(folder).table(name) for name in audit["tables"]}
    tables = {name: published_estimate(place, read_audit(place)) for name, place in places.items()}
    return FamilyEstimate(tables, _charges(audit))


def published_figures(folder: Path, audit: Mapping[str, Any]) -> KnownFigures | None:
    """The public figures that the counts of a table meet, by its audit and that of its family; None without any."""
    if "invariants" not in audit:
        return None
    file = PublishedFolder(folder).publication / AUDIT
    status = file.stat()
    return known_figures(audit, domain_of(audit["axes"]), _finest_axes(file, status.st_ino, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _finest_axes(file: Path, *_identity: int) -> Domain:
    """The finest axes of a family by its audit, which is read once for all tables."""
    tables = read_sealed_audit(file.parent)["tables"]
    return finest(domain_of(table["axes"]) for table in tables.values())


def _charges(audit: Mapping[str, Any]) -> tuple[tuple[str, Fraction], ...]:
    """The charges of a publication; the audit of a table of a family names none."""
    return tuple((charge["step"], Fraction(charge["epsilon"])) for charge in audit.get("charges", ()))


def _sums(folder: Path) -> NestedSums | None:
    file = PublishedFolder(folder).sums
    if not file.exists():
        return None
    rows = pq.ParquetFile(file).read()
    column = {name: rows[name].to_numpy() for name in ("noisy_sum", "cells", "first_group", "last_group")}
    parents = rows["parent"].fill_null(-1).to_numpy()
    sums = column["noisy_sum"], column["cells"], parents, column["first_group"], column["last_group"]
    return NestedSums(*sums, Fraction(rows["noise_scale"][0].as_py()))
