"""`deployment.yaml`: a draft in the fields of the deployments registry, with what the audit knows and no more."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from carded import FACTS

from dphist_pipeline.publishing.deployment import deployment_yaml

# The registry's template: every field that an entry may have.
FIELDS = {
    "basic": [
        *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
        *("data_product_sector", "publication_date"),
    ],
    "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
    "privacy_loss": [
        *("privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters"),
        "privacy_parameters_details",
    ],
    "deployment_model": [
        *("model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    ],
    "implementation": [
        *("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification"),
        *("utility", "additional_information"),
    ],
    "administrative": ["evidence_sources", "status", "registry_authors", "tier"],
}


def entry(**changes: Any) -> dict[str, Any]:
    facts = {**FACTS, "axes": [{"column": "age", "name": "age"}], "cells": 15, **changes}
    read: dict[str, Any] = yaml.safe_load(deployment_yaml(facts, smoothed=False))
    return read


def test_it_has_fields_of_the_registry_only_and_none_is_empty() -> None:
    found = entry()
    assert list(found) == ["url_slug", "deployment"]
    assert list(found["deployment"]) == list(FIELDS)
    for part, fields in found["deployment"].items():
        assert set(fields) <= set(FIELDS[part])
        assert all(fields.values())


def test_it_says_what_the_audit_says() -> None:
    found = entry(title="Visits")["deployment"]
    assert found["basic"]["name"] == "Visits"
    assert found["basic"]["publication_date"] == "2026-03-17"
    assert found["dp_variant"]["variant_name"] == "Pure DP"
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert "counts: epsilon 1/2, noise scale 6" in found["implementation"]["composition"]
    assert found["deployment_model"]["release_type"] == "Many releases"
    assert entry(period="all")["deployment"]["deployment_model"]["release_type"] == "One release"


@pytest.mark.parametrize("title", ["a: b # c", "- x", "'", '"', "{y: 1}", "multi\u2028line", "<script>", "null"])
def test_any_title_stays_a_title(title: str) -> None:
    assert entry(title=title)["deployment"]["basic"]["name"] == title


def test_substituted_units_leave_their_number_unprotected() -> None:
    assert (
        "number of privacy units"
        in entry(neighbours="substitute")["deployment"]["dp_variant"]["unprotected_quantities"]
    )
