"""The release card: one page in every published folder that says what was counted, how sure it is, and what it costs.

Its bytes are a function of the published values and the audit alone: no time of day, no place on a disk, nothing that
a browser would have to fetch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.publishing.card_pieces import grid_words
from dphist_pipeline.publishing.card_pieces.central import CENTRAL
from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, entries
from dphist_pipeline.publishing.card_pieces.local_card import LOCAL
from dphist_pipeline.publishing.card_pieces.pieces import Pieces
from dphist_pipeline.publishing.plots import all_pictures
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import figure, named, page, table
from dphist_pipeline.publishing.plots_sums import Grid


def release_card(estimate: Estimate, audit: Mapping[str, Any]) -> str:
    """The card of a publication, as HTML.

    Args:
        estimate: what is published.
        audit: its facts with charges and versions; digests of files need not be in it.
    """
    facts = Facts(_grid(estimate), audit)
    pieces = LOCAL if audit.get("model") == "local" else CENTRAL
    sections = {
        "counted": ("What was counted", _counted(facts, pieces)),
        "counts": ("The counts", _pictures(facts)),
        "protected": ("Who is protected, and how", pieces.promise(facts)),
        "cost": ("What it cost", pieces.cost(facts)),
        "error": ("What error to expect", pieces.errors(facts)),
        "conclude": ("What not to conclude", pieces.warnings(facts)),
        "made": ("How it was made", pieces.method(facts)),
        "ask": ("Ask in SQL", _queries(facts)),
        "record": ("For the record", _record(facts, pieces)),
    }
    links = "".join(f'<li><a href="#{key}">{heading}</a></li>' for key, (heading, _) in sections.items())
    parts = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}" tabindex="-1">{heading}</h2>{content}</section>'
        for key, (heading, content) in sections.items()
    )
    return page(
        f"{facts.title}{'' if audit['period'] == 'all' else ', ' + audit['period']}: release card",
        f'<a class="skip" href="#main">Skip to the content</a>{_header(facts, pieces, links)}'
        f'<main id="main">{_key_facts(pieces.key(facts))}{parts}</main>{_footer()}',
    )


def smoothed(estimate: Estimate) -> bool:
    """Whether estimates differ from the noisy counts that intervals come from."""
    return Facts(_grid(estimate), {}).smoothed


def _grid(estimate: Estimate) -> Grid:
    return Grid.of_all(estimate.domain, estimate.values, estimate.unbiased)


def _header(facts: Facts, pieces: Pieces, links: str) -> str:
    audit = facts.audit
    revision = f", revision {audit['revision']}"
    reason = f" ({named(str(audit['reason']))})" if audit.get("reason") else ""
    when = f", {pieces.when(facts)}" if pieces.when(facts) else ""
    return (
        f"<header><h1>{named(facts.title)}</h1>"
        f'<p class="kind">{pieces.kind}: <code>{xml(str(audit["release"]))}</code>{when}'
        f"{revision}{reason}</p>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
    )


def _key_facts(shown: Mapping[str, str]) -> str:
    return (
        f'<dl class="key">{"".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in shown.items())}</dl>'
    )


def _counted(facts: Facts, pieces: Pieces) -> str:
    axes = facts.grid.domain.axes
    shown = {"Release": f"<code>{xml(str(facts.audit['release']))}</code>", **pieces.counted(facts)}
    rows = [[named(axis.name), f'<div class="long">{pieces.axis(axis)}</div>', f"{axis.size:,}"] for axis in axes]
    return entries(shown) + table("Axes", pieces.axis_header, rows, 1) + pieces.after_axes(facts)


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


def _record(facts: Facts, pieces: Pieces) -> str:
    audit = facts.audit
    shown = {
        **pieces.record(facts),
        "Spec digest": f"<code>{xml(str(audit.get('spec_digest', 'not recorded')))}</code>",
        "Values digest": f"<code>{xml(str(audit.get('values_digest', 'not recorded')))}</code>",
    }
    if audit.get("approved"):
        shown["Approved by"] = f"{named(str(audit['approved']['by']))}, {xml(str(audit['approved']['at']))}"
    versions = audit.get("versions") or {}
    if versions:
        shown["Versions"] = ", ".join(f"{xml(name)} {xml(str(number))}" for name, number in versions.items())
    rows = [[f"<code>{name}</code>", f'<div class="long">{what}</div>'] for name, what in pieces.files.items()]
    return entries(shown) + table("Files beside this page", ["file", "what it holds"], rows)


def _footer() -> str:
    return (
        "<footer><p>This page was made from the published values and the audit alone. "
        "It runs no scripts and loads nothing.</p></footer>"
    )
