"""What became of the papers' claims, for the documentation: from the list and from what studies kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from hook_tables import table

PROJECT = Path(__file__).resolve().parent.parent
HEAD = (
    "of the paper",
    "claim",
    "here, private",
    "as printed, not private",
    "figures of the private form",
    "study",
    "measured",
)
LIST, KEPT = PROJECT / "benchmarks/papers/listed.json", PROJECT / "docs/measured/papers.json"


def paper_claims() -> str:
    """For every paper its studies, and a row for every table, figure and claim."""
    kept, parts = _studies(), []
    for paper, items in groupby(_listed(), key=lambda item: item["paper"]):
        of_paper = list(items)
        named = dict.fromkeys(item["study"] for item in of_paper if "study" in item)
        rows = [row for item in _joined(of_paper) for row in _rows(item)]
        told = "\n".join(f"- {_study(name, kept[name])}" for name in named)
        parts.append(f"### {paper}\n\n{told}\n\n{table(HEAD, rows)}")
    return "\n\n".join(parts)


def paper_contenders() -> str:
    """Every contender of every study, with its shares and settings."""
    rows = [[f"`{name}`", who, told] for name, study in _studies().items() for who, told in study["contenders"].items()]
    return table(("study", "who", "shares and settings"), rows)


def classifier_accuracy() -> str:
    """Figure 17 in figures: the accuracy of trees by epsilon."""
    rows = _studies()["classification"]["drawn"]["figure 17"]
    alphas = sorted({row["α"] for row in rows})
    found: dict[str, dict[float, str]] = {}
    for row in rows:
        found.setdefault(row["who"], {})[row["α"]] = f"{row['accuracy']:.1%}"
    lines = ([who, *(told[alpha] for alpha in alphas)] for who, told in found.items())
    return table(("right on test records", *(f"ε = {alpha:g}" for alpha in alphas)), lines)


def _listed() -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))
    return held


def _studies() -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return held


def _study(name: str, kept: dict[str, Any]) -> str:
    """What a study counts, with which settings, which files it needs, and how long it takes."""
    files = ", ".join(f"`{file}`" for file in kept["files"]) or "none"
    whole, quick = (f"{seconds} s" if seconds else "less than 1 s" for seconds in _takes(kept))
    few = "" if kept["few"] == "nothing" else f", with `--quick` {quick} ({kept['few']})"
    return f"`{name}`: {kept['setting']} Data: {kept['data']}. Files: {files}. Takes {whole}{few}."


def _takes(kept: dict[str, Any]) -> tuple[int, int]:
    """Seconds of the whole and with `--quick`."""
    return kept["takes"]["whole"], kept["takes"]["quick"]


def _joined(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The items; neighbours of which the same is to be said, and no more, are one: `Figures 2 to 8`."""
    for _, found in groupby(items, key=_said):
        first, *others = found
        kind, _, number = first["name"].partition(" ")
        yield {**first, "name": f"{kind}s {number} to {others[-1]['name'].split()[-1]}"} if others else first


def _said(item: dict[str, Any]) -> tuple[str, ...]:
    """Alike for tables or figures without a study of which the same is to be said."""
    return item["name"].split()[0], item["status"], item["why"], item["name"] if "study" in item else ""


def _rows(item: dict[str, Any]) -> list[list[str]]:
    if item["name"].startswith(("Theorem", "Lemma")) and item["status"] == "held" and not _fails_as_printed(item):
        return []
    name, why = f"**{item['name']}**", item["why"]
    told = f"**{item['status']}**: {why}"
    source = [f"`{item['study']}`" if "study" in item else "", item.get("measured", "")]
    rows = [[name, told, "", "", "", *source]]
    for claim in item.get("claims", ()):
        says = claim["says"] + (" (not in the paper)" if claim.get("beside") else "")
        printed = f"{claim['printed']} (not private)" if "printed" in claim else ""
        if measured := claim.get("printed_figures"):
            printed = f"{printed}: {measured}" if printed else measured
        told = [claim["verdict"], printed, claim.get("figures", "")]
        rows.append([claim.get("where", item["name"]), says, *told, "", ""])
    return rows


def _fails_as_printed(item: dict[str, Any]) -> bool:
    """Whether the printed form of a claim does not hold in some setting."""
    return any(claim.get("printed", "").startswith(("fails", "in part")) for claim in item.get("claims", ()))
