"""What a publication of the local model knows of itself, in the registry's fields; see `deployment`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist_pipeline.publishing.card_pieces.local_asked import Asked
from dphist_pipeline.publishing.card_pieces.local_promise import how

UNKNOWN = (
    "deployment.basic: data_curators, intended_use, data_product_region, data_product_sector, publication_date",
    "deployment.deployment_model: actors, data_source_type",
    "deployment.implementation: preprocessing_and_hyperparameter_tuning, justification",
    "deployment.administrative: evidence_sources, registry_authors",
)
UNKNOWN_UNITS = "deployment.privacy_loss: number_of_privacy_units, because not every report was sent"


def unknown(audit: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that the audit says nothing of."""
    return UNKNOWN if Asked.of(audit).contributors else (*UNKNOWN, UNKNOWN_UNITS)


def local_deployment(audit: Mapping[str, Any]) -> dict[str, object]:
    """The registry's fields for a publication of the local model."""
    asked, rounds = Asked.of(audit), audit["period"] != "all"
    return {
        "basic": _basic(audit, rounds),
        "dp_variant": {
            "variant_name": "Pure DP",
            "data_domain": _data_domain(asked),
            "unprotected_quantities": "Who contributed, when, and how many reports were sent: nothing of a value "
            "decides about these, and nothing hides them.",
        },
        "privacy_loss": _privacy_loss(audit, asked, rounds),
        "deployment_model": {
            "model_name": "Local",
            "model_name_details": "Contributors make their values random before they send anything. The curator counts "
            "random reports, and never sees a value.",
            "trust_assumptions": "A contributor trusts the program that makes the reports, on a machine of their own, "
            "and nobody else. Readers trust contributors to report as they were asked; nothing detects who does not.",
            "release_type": "Many releases" if rounds else "One release",
            "release_type_details": _release_type(audit, rounds),
            "access_type": "Non-interactive",
        },
        "implementation": _implementation(audit, asked),
        "administrative": {"status": "Draft"},
    }


def _basic(audit: Mapping[str, Any], rounds: bool) -> dict[str, object]:
    (axis,) = audit["axes"]
    when = f" Round {audit['period']}, revision {audit['revision']}." if rounds else ""
    return {
        "name": str(audit.get("title") or audit["release"]),
        "description": f"Estimated numbers of reported values by {axis.get('name', axis['column'])}: "
        f"{audit['cells']:,} declared intervals, from {audit['reports']['accepted']:,} random reports.{when}",
        "data_product_type": "Summary statistics",
    }


def _data_domain(asked: Asked) -> str:
    each = "One value" if asked.values == 1 else f"{asked.values} values"
    where = f"in one of {asked.intervals:,} declared intervals or in none"
    return f"{each} of each contributor, every one {where}."


def _privacy_loss(audit: Mapping[str, Any], asked: Asked, rounds: bool) -> dict[str, object]:
    each = "the value" if asked.values == 1 else f"all {asked.values} values"
    fields: dict[str, object] = {
        "privacy_unit": "contributor, for one round" if rounds else "contributor",
        "privacy_unit_details": f"Neighbours are any two answers of one contributor: {each} may be in other intervals, "
        "or in none. Whether somebody contributed is not hidden.",
    }
    if asked.contributors:
        fields["number_of_privacy_units"] = asked.contributors
    each = f", {asked.report_epsilon} for each of {asked.values} values" if asked.values > 1 else ""
    together = " in this round" if rounds else ""
    sampling = " Sampling of reports lowers it for nobody." if asked.sampled else ""
    return fields | {
        "privacy_parameters": {"epsilon": audit["epsilon_double"]},
        "privacy_parameters_details": f"Exactly {audit['epsilon']} for a contributor{each}, for all releases of "
        f"collection {audit['collection']}{together}; delta is 0.{sampling} What contributors answer elsewhere adds up "
        "in their own records; the curator keeps no account.",
    }


def _release_type(audit: Mapping[str, Any], rounds: bool) -> str:
    again = "A revision, such as one with late reports, costs contributors nothing more."
    if not rounds:
        return f"Published once. {again}"
    return f"A table for each round, of which each spends epsilon anew of those who answer it. {again}"


def _implementation(audit: Mapping[str, Any], asked: Asked) -> dict[str, object]:
    version = (audit.get("versions") or {}).get("dphist-pipeline", "")
    sampling = f", reports sent with probability {asked.participation}" if asked.sampled else ""
    parts = f", of which {asked.part_epsilon} is for this release" if asked.parted else ""
    return {
        "mechanisms": f"Protocol {audit['mechanism']} of dphist-pipeline {version}, after Zheng et al. 2021; encoding "
        f"{asked.encoding}{sampling}: {how(asked)}. Coins are drawn exactly from the cryptographic source of each "
        "contributor's operating system; no floating point decides about one.",
        "composition": f"Sequential, by exact fractions: {asked.values} x {asked.report_epsilon} for the values of a "
        f"contributor{parts}.",
        "post_processing": "Unbiased estimates of the numbers of values in each interval, then the nearest values that "
        "are not negative and have the same sum; not rounded."
        if asked.nonnegative
        else "Unbiased estimates of the numbers of values in each interval; not rounded, not cut off at 0.",
        "utility": "Intervals of 95 % for declared intervals and ranges of them chosen before looking, by the exact "
        "variance of the random reports; calibrated.",
    }
