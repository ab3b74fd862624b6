"""A card of the central model: a curator who may see all records counted them, and added noise."""

from __future__ import annotations

from dphist_pipeline.answering.intervals import half_width_of_cell
from dphist_pipeline.publishing.card_pieces import errors, grid_words, method, promise
from dphist_pipeline.publishing.card_pieces.facts import Facts, number, rounded
from dphist_pipeline.publishing.card_pieces.pieces import Pieces
from dphist_pipeline.publishing.plots_drawing import xml

FILES = {
    "histogram.parquet": "every cell with its estimate, noisy count and interval",
    "groups.parquet": "the noise in the cells of each group",
    "audit.parquet": "the charges",
    "audit.json": "all facts, digests of all files; whether this was withdrawn later",
    "deployment.yaml": "the same facts for the OpenDP deployments registry, as far as they are known",
}


def _key(facts: Facts) -> dict[str, str]:
    return {
        "Cells": f"{facts.grid.domain.cells:,}",
        "Protected": "each row" if facts.by_row else f"each {facts.unit}",
        "Privacy": f"ε = {number(facts.epsilon)}",
        "Error of a cell": "no interval"
        if facts.drawn is None
        else f"± {rounded(half_width_of_cell(facts.drawn))} (95 %)",
    }


def _counted(facts: Facts) -> dict[str, str]:
    product = " × ".join(f"{axis.size:,}" for axis in facts.grid.domain.axes)
    cells = f"{facts.grid.domain.cells:,}" + (f" = {product}" if len(facts.grid.domain.axes) > 1 else "")
    return {
        "Period": xml(facts.period or "no period: all records"),
        "Counted": f"rows of records{', every row a person of its own' if facts.by_row else ''}",
        "Cells": f"{cells}; declared before any record was read, and all published, empty ones too",
    }


def _record(facts: Facts) -> dict[str, str]:
    ledger = facts.audit["ledger"]
    return {
        "Ledger entry": f"{ledger['number']}, charged {xml(str(ledger['charged_at']))}, hash "
        f"<code>{xml(str(ledger['hash']))}</code>"
    }


CENTRAL = Pieces(
    kind="Differentially private counts",
    when=lambda facts: facts.period,
    key=_key,
    counted=_counted,
    after_axes=lambda facts: "",
    axis=grid_words.in_words,
    axis_header=("axis", "cells along it", "number"),
    promise=promise.promise,
    cost=promise.charges,
    errors=errors.expected,
    warnings=errors.warnings,
    method=method.method,
    record=_record,
    files=FILES,
)
