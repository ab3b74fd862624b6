"""A draft of an entry for the OpenDP deployments registry, as YAML, for both models of privacy.

The words are in `templates/deployment_*.yaml.j2`. The draft fills in what the audit says, and a comment names the other
fields, for the person who completes the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dphist_pipeline.publishing._card import question_facts
from dphist_pipeline.publishing.rendering import render


def deployment_yaml(audit: Mapping[str, Any], smoothed: bool) -> str:
    """The registry's fields for a publication; `smoothed`: its estimates differ from the noisy counts."""
    facts: dict[str, Any] = {
        "audit": audit,
        "title": str(audit.get("title") or audit["release"]),
        "axes": ", ".join(str(axis.get("name", axis["column"])) for axis in audit["axes"]),
        "periodic": audit["period"] != "all",
        "version": (audit.get("versions") or {}).get("dphist-pipeline", ""),
    }
    if audit.get("model") == "local":
        question = question_facts(audit)
        in_words = " ".join(render("report_in_words.txt.j2", asked=question).split())
        return render("deployment_local.yaml.j2", **facts, asked=question, in_words=in_words) + "\n"
    settings = ", ".join(f"{name} {value}" for name, value in (audit.get("settings") or {}).items())
    steps = [
        f"{charge['step']}: epsilon {charge['epsilon']}"
        + (f", noise scale {float(Fraction(charge['noise_scale'])):g}" if charge["noise_scale"] else "")
        for charge in audit["charges"]
    ]
    settings = settings and f" ({settings})"
    return render("deployment_central.yaml.j2", **facts, smoothed=smoothed, settings=settings, steps=steps) + "\n"
