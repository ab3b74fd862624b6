"""What became of the papers' claims, for the documentation: from the list and from what studies kept."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from hook_tables import table

PROJECT = Path(__file__).resolve().parent.parent
LIST, KEPT = PROJECT / "benchmarks/papers/listed.json", PROJECT / "docs/measured/papers.json"


def paper_claims() -> str:
    """A row for every claim of a table or figure, and for every theorem that does not hold as it is printed."""
    parts = []
    for paper, items in groupby(_listed(), key=lambda item: item["paper"]):
        rows = [row for item in items for row in _rows(item)]
        head = ("of the paper", "claim", "here", "as printed, not private", "figures", "data", "study", "measured")
        parts.append(f"### {paper}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def paper_contenders() -> str:
    """Every contender of every study, with its shares and settings."""
    rows = [
        [f"`{name}`", who, told]
        for name, study in json.loads(KEPT.read_text(encoding="utf-8")).items()
        for who, told in study["contenders"].items()
    ]
    return table(("study", "who", "shares and settings"), rows)


def classifier_accuracy() -> str:
    """Figure 17 in figures: the accuracy of trees by epsilon."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["classification"]["drawn"]["figure 17"]
    alphas = sorted({row["α"] for row in rows})
    found: dict[str, dict[float, str]] = {}
    for row in rows:
        found.setdefault(row["who"], {})[row["α"]] = f"{row['accuracy']:.1%}"
    lines = ([who, *(told[alpha] for alpha in alphas)] for who, told in found.items())
    return table(("right on test records", *(f"ε = {alpha:g}" for alpha in alphas)), lines)


def _listed() -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))
    return held


def _rows(item: dict[str, Any]) -> list[list[str]]:
    if item["name"].startswith(("Theorem", "Lemma")) and item["status"] == "held":
        return []
    if item["status"] == "not reproduced":
        return []
    name, why = f"**{item['name']}**", item["why"]
    told = f"**{item['status']}**: {why}"
    source = [item.get("data", ""), f"`{item['study']}`" if "study" in item else "", item.get("measured", "")]
    rows = [[name, told, "", "", "", *source]]
    for claim in item.get("claims", ()):
        says = claim["says"] + (" (not in the paper)" if claim.get("beside") else "")
        told = [claim["verdict"], claim.get("printed", ""), claim.get("figures", "")]
        rows.append([claim.get("where", item["name"]), says, *told, "", "", ""])
    return rows
