"""What a publication knows of itself, in the fields of the OpenDP deployments registry, as YAML.

Fields:   https://github.com/opendp/deployments-registry-data, tests/good_deployments/template.yaml of 2026 (commit
          057e5d81cf60150dd3307e0cf4504b957802fb3b).
Only what the audit says is filled in; the rest is named in a comment, for whoever makes an entry of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import yaml

from dphist_pipeline.publishing.deployment_local import local_deployment, unknown

SOURCE = (
    "https://github.com/opendp/deployments-registry-data, tests/good_deployments/template.yaml "
    "(057e5d81cf60150dd3307e0cf4504b957802fb3b)"
)
UNKNOWN = (
    *("deployment.basic: data_curators, intended_use, data_product_region, data_product_sector",),
    *("deployment.privacy_loss: number_of_privacy_units",),
    *("deployment.deployment_model: actors, trust_assumptions, data_source_type",),
    *("deployment.implementation: preprocessing_and_hyperparameter_tuning, justification",),
    *("deployment.administrative: evidence_sources, registry_authors",),
)


def deployment_yaml(audit: Mapping[str, Any], smoothed: bool) -> str:
    """The registry's fields for a publication.

    Args:
        audit: its facts with charges and versions.
        smoothed: whether its estimates differ from the noisy counts.
    """
    local = audit.get("model") == "local"
    entry = {
        "url_slug": str(audit["release"]).replace("_", "-"),
        "deployment": local_deployment(audit) if local else _central(audit, smoothed),
    }
    text: str = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)
    notes = [
        "A draft of an entry for the deployments registry of OpenDP. Fields as in",
        SOURCE,
        "Filled in from the audit beside this file. Not known to it, and left out:",
        *(unknown(audit) if local else UNKNOWN),
    ]
    return "".join(f"# {note}\n" for note in notes) + text


def _central(audit: Mapping[str, Any], smoothed: bool) -> dict[str, object]:
    periodic = audit["period"] != "all"
    return {
        "basic": _basic(audit, periodic),
        "dp_variant": {
            "variant_name": "Pure DP",
            "data_domain": _data_domain(audit),
            "unprotected_quantities": _unprotected(audit),
        },
        "privacy_loss": _privacy_loss(audit, periodic),
        "deployment_model": {
            "model_name": "Central",
            "release_type": "Many releases" if periodic else "One release",
            "release_type_details": _release_type(audit, periodic),
            "access_type": "Non-interactive",
        },
        "implementation": _implementation(audit, smoothed),
        "administrative": {"status": "Draft"},
    }


def _basic(audit: Mapping[str, Any], periodic: bool) -> dict[str, object]:
    axes = ", ".join(str(axis.get("name", axis["column"])) for axis in audit["axes"])
    when = f" Period {audit['period']}, revision {audit['revision']}." if periodic else ""
    approved = audit.get("approved") or {}
    return {
        "name": str(audit.get("title") or audit["release"]),
        "description": f"Counts of records by {axes}: {audit['cells']:,} declared cells, each with an estimate.{when}",
        "data_product_type": "Summary statistics",
        "publication_date": str(approved.get("at") or audit["ledger"]["charged_at"])[:10],
    }


def _data_domain(audit: Mapping[str, Any]) -> str:
    one = "every row is another unit" if audit["privacy_unit"] == "row" else f"rows belong to a {audit['privacy_unit']}"
    return f"Tables of records in which {one}; counted into a declared grid of {audit['cells']:,} cells."


def _unprotected(audit: Mapping[str, Any]) -> str:
    if audit["neighbours"] == "substitute":
        return "The number of privacy units, which is public by the definition of neighbours. Nothing else."
    return "None."


def _privacy_loss(audit: Mapping[str, Any], periodic: bool) -> dict[str, object]:
    unit = "row" if audit["privacy_unit"] == "row" else str(audit["privacy_unit"])
    differ = "are in one table and not in the other" if audit["neighbours"] == "add_remove" else "are other rows"
    of_period = " of the period" if periodic else ""
    bound = f"at most {audit['max_rows_per_unit']} rows of a unit are counted"
    return {
        "privacy_unit": f"{unit}, for one period" if periodic else unit,
        "privacy_unit_details": f"Neighbouring tables differ in one unit, all of whose rows{of_period} {differ} "
        f"({audit['neighbours']}); {bound}, so the L1 sensitivity of all counts together is "
        f"{audit['sensitivity']}.",
        "privacy_parameters": {"epsilon": audit["epsilon_double"]},
        "privacy_parameters_details": f"Exactly {audit['epsilon']}; delta is 0. A group of g units together has g "
        "times as much.",
    }


def _release_type(audit: Mapping[str, Any], periodic: bool) -> str:
    if not periodic:
        return "Published once; a revision would be charged anew."
    return (
        "A table for each period, each charged once to a durable ledger; their epsilons add up, and the account has a "
        "total."
    )


def _implementation(audit: Mapping[str, Any], smoothed: bool) -> dict[str, object]:
    version = (audit.get("versions") or {}).get("dphist-pipeline", "")
    steps = "; ".join(
        f"{charge['step']}: epsilon {charge['epsilon']}"
        + (f", noise scale {float(Fraction(charge['noise_scale'])):g}" if charge["noise_scale"] else "")
        for charge in audit["charges"]
    )
    settings = ", ".join(f"{name} {value}" for name, value in (audit.get("settings") or {}).items())
    return {
        "mechanisms": f"{audit['mechanism']}{f' ({settings})' if settings else ''} of dphist-pipeline {version}. "
        "Discrete Laplace noise on whole numbers, drawn exactly from the operating system's cryptographic source; no "
        "floating point before the noise is added.",
        "composition": f"Sequential, by exact fractions: {steps}.",
        "post_processing": "Estimates are smoothed from noisy counts; not rounded, not cut off at 0."
        if smoothed
        else "None: not rounded, not cut off at 0.",
        "utility": "Intervals of 95 % for cells and ranges chosen before looking, by the exact law of the noise."
        if audit["unbiased_noise_scale"]
        else "No intervals: no noisy cells were paid for.",
    }
