"""`deployment.yaml`: a draft in the fields of the deployments registry, with what the audit knows and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from carded import FACTS
from carded_reports import ALONE, SAMPLED, made

from dphist_pipeline.publishing._deployment import deployment_yaml

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
REQUIRED = [
    *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
    *("publication_date", "status", "registry_authors", "tier"),
]


def entry_text(**changes: Any) -> str:
    facts = {**FACTS, "axes": [{"column": "age", "name": "age"}], "cells": 15, **changes}
    return deployment_yaml(facts, smoothed=False)


def entry(**changes: Any) -> dict[str, Any]:
    read: dict[str, Any] = _on_one_line(yaml.safe_load(entry_text(**changes)))
    return read


def _on_one_line(part: Any) -> Any:
    """The texts of an entry as Markdown shows them."""
    if isinstance(part, dict):
        return {name: _on_one_line(value) for name, value in part.items()}
    return " ".join(part.split("\n")) if isinstance(part, str) else part


def of_reports(folder: Path, **changes: Any) -> tuple[str, dict[str, Any]]:
    """The file of a release of the local model, and what it says."""
    text = (made(folder / "store", **changes).folder / "deployment.yaml").read_text(encoding="utf-8")
    return text, _on_one_line(yaml.safe_load(text))


def assert_fields_of_the_registry(found: dict[str, Any]) -> None:
    assert list(found) == ["url_slug", "deployment"]
    assert list(found["deployment"]) == list(FIELDS)
    for part, fields in found["deployment"].items():
        assert set(fields) <= set(FIELDS[part])
        assert all(fields.values())


def test_it_has_fields_of_the_registry_only_and_none_is_empty() -> None:
    assert_fields_of_the_registry(entry())


def assert_passes_the_registry_s_checks(text: str) -> None:
    """Its schema wants some fields, which a person adds; its checks refuse texts that are folded."""
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)} <= {None, "|", '"', "'"}
    comment = text.partition("url_slug")[0]
    filled = {name for part in yaml.safe_load(text)["deployment"].values() for name in part}
    assert all(name in filled or f"{name}*" in comment for name in REQUIRED)
    assert not any(f"{name}*" in comment for name in filled)


@pytest.mark.parametrize("changes", [{}, {"period": "all"}, {"neighbours": "substitute"}])
def test_it_passes_the_registry_s_checks_but_for_what_it_names(changes: dict[str, Any]) -> None:
    assert_passes_the_registry_s_checks(entry_text(**changes))


def test_of_reports_it_passes_the_registry_s_checks_too(tmp_path: Path) -> None:
    assert_passes_the_registry_s_checks(of_reports(tmp_path)[0])


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


@pytest.mark.parametrize("changes", [{}, ALONE, SAMPLED, {"nonnegative": True}], ids=["chp", "shp", "sampled", "moved"])
def test_of_reports_it_has_fields_of_the_registry_only_too(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert_fields_of_the_registry(of_reports(tmp_path, **changes)[1])


def test_of_reports_it_says_that_the_model_is_local(tmp_path: Path) -> None:
    text, found = of_reports(tmp_path, values_per_contributor=3, title="Ages", round="2026-03-02")
    said = found["deployment"]
    assert said["basic"]["name"] == "Ages" and "20,000 random reports" in said["basic"]["description"]
    assert said["deployment_model"]["model_name"] == "Local"
    assert "never sees a value" in said["deployment_model"]["model_name_details"]
    assert said["deployment_model"]["release_type"] == "Many releases"
    assert said["privacy_loss"]["privacy_unit"] == "contributor, for one round"
    assert said["privacy_loss"]["privacy_parameters"] == {"epsilon": 3.0}
    assert "Exactly 3 for a contributor, 1 for each of 3 values" in said["privacy_loss"]["privacy_parameters_details"]
    assert "Whether somebody contributed is not hidden" in said["privacy_loss"]["privacy_unit_details"]
    assert "Who contributed" in said["dp_variant"]["unprotected_quantities"]
    assert "Protocol chp" in said["implementation"]["mechanisms"] and "Zheng" in said["implementation"]["mechanisms"]
    assert "ledger" not in text and "sensitivity" not in text and "None" not in text


@pytest.mark.slow
def test_of_reports_the_number_of_contributors_is_told_where_reports_tell_it(tmp_path: Path) -> None:
    for name, changes, contributors in (
        ("one", {}, 20_000),
        ("several", {"values_per_contributor": 4}, 5_000),
        ("summed", {"values_per_contributor": 4, "values": "summed"}, 20_000),
        ("sampled", SAMPLED, None),
    ):
        text, found = of_reports(tmp_path, collection=name, **changes)
        assert found["deployment"]["privacy_loss"].get("number_of_privacy_units") == contributors
        assert ("# deployment.privacy_loss: number_of_privacy_units" in text) == (contributors is None)


def test_of_reports_what_is_left_out_is_named(tmp_path: Path) -> None:
    text, found = of_reports(tmp_path)
    assert "publication_date" in text.partition("url_slug")[0]
    assert "publication_date" not in found["deployment"]["basic"]
