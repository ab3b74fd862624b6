"""Publishing: all files of a release appear at once, whole, or not at all."""

from __future__ import annotations

import errno
import json
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import finest
from dphist_pipeline.base.files import make_folder, sync_file, sync_folder
from dphist_pipeline.base.languages.texts import mark_text
from dphist_pipeline.estimates.estimate import AnyEstimate, Estimate, FamilyEstimate, with_known
from dphist_pipeline.estimates.known_figures import figures_in, known_figures
from dphist_pipeline.estimates.laws import NOISE, ReportLaw, Tail, parts_named
from dphist_pipeline.estimates.lines import lines_from_facts
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, SharedNoise, Unbiased
from dphist_pipeline.publishing._card_cover import ALONE, PublicationNeighbours
from dphist_pipeline.publishing.audit import in_order
from dphist_pipeline.publishing.parquet_tables import (
    ChargeRow,
    rounded_up,
    write_charges,
    write_groups,
    write_histogram,
    write_population,
    write_quality,
    write_sums,
    write_whole,
)
from dphist_pipeline.publishing.published_files import (
    AUDIT,
    CARD,
    PAGES,
    POPULATION,
    QUALITY,
    SEALED,
    SUMS,
    TABLES_OF_FAMILY,
    WHOLE,
    audit_digest,
    digest_of,
)
from dphist_pipeline.publishing.unbiased_facts import unbiased_facts
from dphist_pipeline.publishing.values_digests import values_digest

OF_WHOLE = ("compared", "figures", "total_holds_zero", "publish")  # facts of a family that no table of it repeats
REPORT_LAW = ("alpha", "beta", "gamma", "delta", "step")
NOISE_OF_REPORTS = mark_text("made by every contributor: reports are random, by coins whose chances the settings give")
VERSIONS = ("dphist-pipeline", "numpy", "cryptography", "pyarrow", "polars", "duckdb")


def write_release(
    estimate: AnyEstimate,
    scales: Mapping[str, Fraction],
    facts: dict[str, Any],
    staging: Path,
    around: PublicationNeighbours = ALONE,
) -> dict[str, Any]:
    """Writes the files of a release into a folder that nobody reads yet, and waits until the disk has them.

    A table of a family has a folder below it, which is a publication of its own, without pages unless the card of the
    family has no pictures; its name is that of the release and its own.

    Args:
        scales: of the noise that each step bought; a forfeited step bought none.
        facts: the audit's facts, public, without charges, versions and digests; see `pipeline`. For a family, `tables`
            gives the axes of each table as a spec writes them.
        staging: an empty folder on the file system of the public store.
        around: what the cover of the card tells: the publisher, and the period before.

    Returns:
        The audit, as its file says it.
    """
    if isinstance(estimate, FamilyEstimate):
        return _write_family(estimate, scales, facts, staging, around)
    return _write_one(estimate, scales, facts, staging, around)


def _write_one(
    estimate: Estimate,
    scales: Mapping[str, Fraction],
    facts: dict[str, Any],
    staging: Path,
    around: PublicationNeighbours,
) -> dict[str, Any]:
    # Loaded here: who only reads published files, such as the process that builds the catalogue, needs no templates.
    from dphist_pipeline.publishing._card import is_smoothed, release_card
    from dphist_pipeline.publishing._deployment import deployment_yaml

    facts_of_files = _write_tables(estimate, scales, facts, staging)
    (staging / "card.html").write_text(release_card(estimate, facts_of_files, around=around), encoding="utf-8")
    (staging / "deployment.yaml").write_text(deployment_yaml(facts_of_files, is_smoothed(estimate)), encoding="utf-8")
    return _seal(facts_of_files, staging)


def _as_told(family: FamilyEstimate, facts: Mapping[str, Any]) -> FamilyEstimate:
    """The tables of a family as pages tell them: they meet the public figures that its audit names."""
    whole = finest(table.domain for table in family.tables.values())
    tables = {
        name: with_known(table, known_figures(facts, table.domain, whole)) for name, table in family.tables.items()
    }
    return replace(family, tables=tables)


def _write_family(
    family: FamilyEstimate,
    scales: Mapping[str, Fraction],
    facts: dict[str, Any],
    staging: Path,
    around: PublicationNeighbours,
) -> dict[str, Any]:
    from dphist_pipeline.estimates.whole_families import fit_population
    from dphist_pipeline.publishing._deployment import deployment_yaml
    from dphist_pipeline.publishing._family_card import family_card, pages_of_tables

    met = facts.get("invariants")
    population = fit_population(family.tables, figures_in(met) if met else None)
    common = {name: fact for name, fact in facts.items() if name not in ("tables", *OF_WHOLE)}
    tables, axes = {}, facts["tables"]
    (staging / TABLES_OF_FAMILY).mkdir(mode=0o755)
    told = _as_told(family, facts)
    pages = pages_of_tables(told, {**facts, "versions": _versions()}, around)
    for name, estimate in family.tables.items():
        folder = staging / TABLES_OF_FAMILY / name
        folder.mkdir(mode=0o755)
        of_table = {"release": f"{facts['release']}_{name}", "family": facts["release"], "table": name}
        table_facts = _write_tables(estimate, scales, {**common, **of_table, **axes[name]}, folder)
        write_whole(population.table(estimate.domain), folder / WHOLE)
        if name in pages:
            (folder / CARD).write_text(pages[name], encoding="utf-8")
        _seal(table_facts, folder)
        tables[name] = {**axes[name], "values_digest": table_facts["values_digest"]}
    write_population(population, staging / POPULATION)
    if family.quality:
        write_quality(family, staging / QUALITY)
    charges = _charge_rows(family.charges, scales)
    write_charges(facts, charges, staging / "audit.parquet")
    audit = {
        **common,
        **{name: facts[name] for name in OF_WHOLE if name in facts},
        "tables": tables,
        **_epsilon_facts(family.epsilon),
        "noise": NOISE,
        "charges": _charge_facts(charges),
    }
    family_facts = {**audit, "values_digest": values_digest(family), "versions": _versions()}
    (staging / "card.html").write_text(family_card(told, family_facts, around=around), encoding="utf-8")
    (staging / "deployment.yaml").write_text(deployment_yaml(family_facts, smoothed=False), encoding="utf-8")
    sync_folder(staging / TABLES_OF_FAMILY)
    return _seal(family_facts, staging)


def _write_tables(
    estimate: Estimate, scales: Mapping[str, Fraction], facts: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Writes the Parquet files of an estimate; the facts of its audit without the digests of files."""
    charges = _charge_rows(estimate.charges, scales)
    write_histogram(estimate, folder / "histogram.parquet")
    write_groups(estimate, folder / "groups.parquet")
    if "family" not in facts:
        write_charges(facts, charges, folder / "audit.parquet")
    if estimate.quality:
        write_quality(estimate, folder / QUALITY)
    if estimate.sums is not None:
        write_sums(estimate.sums, folder / SUMS)
    return {
        **facts,
        **_epsilon_facts(estimate.epsilon),
        **unbiased_facts(estimate),
        **({"findings": [asdict(finding) for finding in estimate.findings]} if estimate.findings else {}),
        "noise": NOISE_OF_REPORTS if isinstance(estimate.unbiased, ReportedCells) else NOISE,
        # The audit of a family holds the charges of all its tables: a thousand tables may have a thousand charges.
        **({} if "family" in facts else {"charges": _charge_facts(charges)}),
        "values_digest": values_digest(estimate),
        "versions": _versions(),
    }


def _charge_rows(charges: Sequence[tuple[str, Fraction]], scales: Mapping[str, Fraction]) -> list[ChargeRow]:
    return [ChargeRow(step, epsilon, scales.get(step)) for step, epsilon in charges]


def _epsilon_facts(epsilon: Fraction) -> dict[str, Any]:
    return {"epsilon": str(epsilon), "epsilon_double": rounded_up(epsilon)}


def _charge_facts(charges: Sequence[ChargeRow]) -> list[dict[str, str | None]]:
    return [
        {"step": charged.step, "epsilon": str(charged.epsilon), "noise_scale": charged.scale_text}
        for charged in charges
    ]


@cache  # of what this process runs
def _versions() -> dict[str, str]:
    return {"python": ".".join(map(str, sys.version_info[:3])), **{name: version(name) for name in VERSIONS}}


def _seal(facts: Mapping[str, Any], staging: Path) -> dict[str, Any]:
    """Writes the audit of the Parquet files that are there, waits until the disk has all files, and gives the audit."""
    sealed, pages = ([name for name in names if (staging / name).exists()] for names in (SEALED, PAGES))
    audit = dict(facts) | {"files": {name: digest_of(staging / name) for name in sealed}}
    audit["audit_digest"] = audit_digest(audit)
    text = json.dumps(in_order(audit), indent=2)  # the digest comes last; see `PublishedFolder.stated_digest`
    (staging / AUDIT).write_text(text + "\n", encoding="utf-8")
    for name in (*sealed, *pages, AUDIT):
        (staging / name).chmod(0o644)
        sync_file(staging / name)
    staging.chmod(0o755)
    sync_folder(staging)
    return dict(json.loads(text))


def published_unbiased(audit: Mapping[str, Any], values: NDArray[np.float64]) -> Unbiased | None:
    """The unbiased estimates of a published release with the law of their noise; None if it has none.

    Args:
        audit: of the release; older versions wrote no covariance, and the central model has no law of reports.
        values: the column `unbiased_estimate`, shape of the domain.
    """
    if audit.get("report_law") is not None:
        law = ReportLaw(**{name: float(audit["report_law"][name]) for name in REPORT_LAW})
        return ReportedCells(values, np.array(audit["atoms"], dtype=np.int64), law)
    scale, shared = audit["unbiased_noise_scale"], audit.get("unbiased_covariance")
    if scale is None:
        return None
    if shared is None:
        return NoisyCells(values, Fraction(scale), parts_named(scale))
    parts = (SharedNoise(float(part["coefficient"]), tuple(part["widths"])) for part in shared)
    tail = audit.get("unbiased_tail")  # older versions wrote none
    lines = lines_from_facts(audit.get("unbiased_lines") or [])
    return NestedCells(values, Fraction(scale), tuple(parts), Tail(**tail) if tail else None, lines)


def move_into_place(staging: Path, published: Path) -> bool:
    """Publishes a folder by one rename. False if another run published first; the files of that run stay."""
    new = [folder for folder in (published.parents[1], published.parent) if not folder.is_dir()]
    make_folder(published.parent, 0o755)
    for folder in new:
        with suppress(PermissionError):  # somebody else made it meanwhile
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o755)  # as its files, whatever the mask of this process
    try:
        staging.rename(published)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    sync_folder(published.parent)
    return True
