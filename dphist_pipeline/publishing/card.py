"""The release card: one page in every published folder that says what was counted, how sure it is, and what it costs.

Its bytes are a function of the published values and the audit alone: no time of day, no place on a disk, nothing that
a browser would have to fetch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist_pipeline.answering.intervals import half_width_of_cell
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.publishing.card_pieces import errors, grid_words, method, promise
from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, number, rounded
from dphist_pipeline.publishing.plots import all_pictures
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import figure, named, page, table
from dphist_pipeline.publishing.plots_sums import Grid

FILES = {
    "histogram.parquet": "every cell with its estimate, noisy count and interval",
    "groups.parquet": "the noise in the cells of each group",
    "audit.parquet": "the charges",
    "audit.json": "all facts, digests of all files; whether this was withdrawn later",
    "deployment.yaml": "the same facts for the OpenDP deployments registry, as far as they are known",
}


def release_card(estimate: Estimate, audit: Mapping[str, Any]) -> str:
    """The card of a publication, as HTML.

    Args:
        estimate: what is published.
        audit: its facts with charges and versions; digests of files need not be in it.
    """
    facts = Facts(_grid(estimate), audit)
    sections = {
        "counted": ("What was counted", _counted(facts)),
        "counts": ("The counts", _pictures(facts)),
        "protected": ("Who is protected, and how", promise.promise(facts)),
        "cost": ("What it cost", promise.charges(facts)),
        "error": ("What error to expect", errors.expected(facts)),
        "conclude": ("What not to conclude", errors.warnings(facts)),
        "made": ("How it was made", method.method(facts)),
        "ask": ("Ask in SQL", _queries(facts)),
        "record": ("For the record", _record(facts)),
    }
    links = "".join(f'<li><a href="#{key}">{heading}</a></li>' for key, (heading, _) in sections.items())
    parts = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}" tabindex="-1">{heading}</h2>{content}</section>'
        for key, (heading, content) in sections.items()
    )
    return page(
        f"{facts.title}{'' if audit['period'] == 'all' else ', ' + audit['period']}: release card",
        f'<a class="skip" href="#main">Skip to the content</a>{_header(facts, links)}'
        f'<main id="main">{_key_facts(facts)}{parts}</main>{_footer()}',
    )


def smoothed(estimate: Estimate) -> bool:
    """Whether estimates differ from the noisy counts that intervals come from."""
    return Facts(_grid(estimate), {}).smoothed


def _grid(estimate: Estimate) -> Grid:
    return Grid.of_all(estimate.domain, estimate.values, estimate.unbiased)


def _header(facts: Facts, links: str) -> str:
    audit = facts.audit
    revision = f", revision {audit['revision']}"
    reason = f" ({named(str(audit['reason']))})" if audit.get("reason") else ""
    when = f", {facts.period}" if facts.period else ""
    return (
        f"<header><h1>{named(facts.title)}</h1>"
        f'<p class="kind">Differentially private counts: <code>{xml(str(audit["release"]))}</code>{when}'
        f"{revision}{reason}</p>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )


def _key_facts(facts: Facts) -> str:
    shown = {
        "Cells": f"{facts.grid.domain.cells:,}",
        "Protected": "each row" if facts.by_row else f"each {facts.unit}",
        "Privacy": f"ε = {number(facts.epsilon)}",
        "Error of a cell": "no interval"
        if facts.grid.unbiased is None
        else f"± {rounded(half_width_of_cell(facts.grid.unbiased))} (95 %)",
    }
    return (
        f'<dl class="key">{"".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in shown.items())}</dl>'
    )


def _counted(facts: Facts) -> str:
    audit, axes = facts.audit, facts.grid.domain.axes
    rows = [
        [named(axis.name), f'<div class="long">{grid_words.in_words(axis)}</div>', f"{axis.size:,}"] for axis in axes
    ]
    product = " × ".join(f"{axis.size:,}" for axis in axes)
    cells = f"{facts.grid.domain.cells:,}" + (f" = {product}" if len(axes) > 1 else "")
    period = facts.period or "no period: all records"
    return (
        "<dl class='facts'>"
        f"<dt>Release</dt><dd><code>{xml(str(audit['release']))}</code></dd>"
        f"<dt>Period</dt><dd>{xml(period)}</dd>"
        f"<dt>Counted</dt><dd>rows of records{', every row a person of its own' if facts.by_row else ''}</dd>"
        f"<dt>Cells</dt><dd>{cells}; declared before any record was read, and all published, empty ones too</dd></dl>"
        + table("Axes", ["axis", "cells along it", "number"], rows, 1)
    )


def _pictures(facts: Facts) -> str:
    domain = facts.grid.domain
    pictures = all_pictures(facts.grid)
    left_out = len(domain.axes) - len(pictures) + (1 if len(domain.axes) > 1 else 0)
    more = f" {counted(left_out, 'further axis has', 'further axes have')} no picture." if left_out > 0 else ""
    about = (
        "<p>Pictures and the numbers below them are sums of the published cells; "
        f"<code>histogram.parquet</code> has each of the {domain.cells:,}.{more}</p>"
    )
    return f'{about}<div class="figures">{"".join(figure(picture) for picture in pictures)}</div>'


def _queries(facts: Facts) -> str:
    audit = facts.audit
    text = grid_words.queries(audit["release"], audit["period"], audit["revision"], facts.grid.domain.axes)
    lines = "\n".join(map(xml, text.splitlines()))
    return (
        "<p>In DuckDB. Both macros give the estimate of a box of cells with its interval; a box left out is everything."
        "</p>"
        f'<pre tabindex="0" role="region" aria-label="SQL to copy"><code>{lines}</code></pre>'
    )


def _record(facts: Facts) -> str:
    audit = facts.audit
    ledger = audit["ledger"]
    shown = {
        "Ledger entry": f"{ledger['number']}, charged {xml(str(ledger['charged_at']))}, hash "
        f"<code>{xml(str(ledger['hash']))}</code>",
        "Spec digest": f"<code>{xml(str(audit.get('spec_digest', 'not recorded')))}</code>",
        "Values digest": f"<code>{xml(str(audit.get('values_digest', 'not recorded')))}</code>",
    }
    if audit.get("approved"):
        shown["Approved by"] = f"{named(str(audit['approved']['by']))}, {xml(str(audit['approved']['at']))}"
    versions = audit.get("versions") or {}
    if versions:
        shown["Versions"] = ", ".join(f"{xml(name)} {xml(str(number))}" for name, number in versions.items())
    entries = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in shown.items())
    rows = [[f"<code>{name}</code>", f'<div class="long">{what}</div>'] for name, what in FILES.items()]
    return f"<dl class='facts'>{entries}</dl>{table('Files beside this page', ['file', 'what it holds'], rows)}"


def _footer() -> str:
    return (
        "<footer><p>This page was made from the published values and the audit alone. "
        "It runs no scripts and loads nothing.</p></footer>"
    )
