"""The card of a family of tables: one page with the list of tables, how far each can be trusted, and what all cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dphist_pipeline.base.languages.texts import days_text, gettext, in_language, pgettext, whole
from dphist_pipeline.base.shown_below import hidden_in_words, limit_of
from dphist_pipeline.base.sql_files import literal
from dphist_pipeline.estimates.cells_near_zero import CellsNearZero, first_in_words
from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate, answer_box
from dphist_pipeline.estimates.family_choice import FamilyChoice
from dphist_pipeline.estimates.known_figures import levels_in_words, totals_are_known
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.publishing import _card as card
from dphist_pipeline.publishing._card import comparison_facts
from dphist_pipeline.publishing._card_cover import ALONE, PublicationNeighbours
from dphist_pipeline.publishing.formatting import comma_list, epsilon_text, shown_number, visible
from dphist_pipeline.publishing.pages import picture_facts, picture_page
from dphist_pipeline.publishing.picture_sums import Grid
from dphist_pipeline.publishing.pictures import Picture
from dphist_pipeline.publishing.rendering import render
from dphist_pipeline.publishing.unbiased_facts import unbiased_facts

MOST_LISTED, MOST_ON_CARD = 200, 6


def family_card(
    family: FamilyEstimate,
    audit: Mapping[str, Any],
    rows: card.Rows | None = None,
    around: PublicationNeighbours = ALONE,
) -> str:
    """The card of a family, as HTML; see `release_card`."""
    rows = QualityTable.of(family.quality).rows if rows is None else rows
    with in_language(around.about.language_of(audit)):
        return _page(family, audit, rows, around)


def _page(family: FamilyEstimate, audit: Mapping[str, Any], rows: card.Rows, around: PublicationNeighbours) -> str:
    # A picture of mostly noise tells nothing: the table with the least noise beside its counts leads.
    # So does one of public figures alone.
    tables = {name: table for name, table in family.tables.items() if not _is_known(table)} or family.tables
    name, first = min(tables.items(), key=lambda one: _relative_noise(one[1]))
    mechanism, fields = card.mechanism_card(str(audit["mechanism"]))
    epsilon = Fraction(audit["epsilon"])
    tables_drawn = {name: first} | (dict(family.tables) if has_pictures_on_card(family) else {})
    domains = {table: estimate.domain for table, estimate in family.tables.items()}
    choice = FamilyChoice(domains, lambda table: unbiased_facts(family.tables[table]))
    total = answer_box(family.tables[choice.best_of_total], {})
    total_in_words = card.total_facts(total, limit_of(audit))
    quality = card.quality_facts(list(family.tables.values()), rows, audit)
    axes = {axis.name: axis for estimate in family.tables.values() for axis in estimate.domain.axes}
    near = [CellsNearZero.of_estimate(estimate) for estimate in family.tables.values()]
    return render(
        "card_family.html.j2",
        audit=audit,
        title=str(audit.get("title") or audit["release"]),
        days=card.days_of(audit),
        tables=[_table_entry(table, estimate, audit) for table, estimate in list(family.tables.items())[:MOST_LISTED]],
        more=max(0, len(family.tables) - MOST_LISTED),
        many=len(family.tables),
        cells=family.cells,
        pictures=[
            picture_facts(_picture(table, estimate, audit).told_as(audit)) for table, estimate in tables_drawn.items()
        ],
        hidden=hidden_in_words(limit) if (limit := limit_of(audit)) is not None else "",
        **comparison_facts(audit),
        left_out=0,
        rendered=card.rendered_by(audit),
        cover=card.cover_of(audit, around, total),
        pages=[] if has_pictures_on_card(family) else list(family.tables)[:MOST_LISTED],
        quality=quality,
        left_out_units=QualityTable(rows).left_out_in_words(audit),
        covers=card.cover_of_total(total_in_words, first, quality, audit),
        reliability=RELIABILITY.sentence(
            [table.unbiased for table in family.tables.values()],
            known=[None if table.known is None else table.known.are_known for table in family.tables.values()],
        ),
        legend=card.legend(),
        cells_near_zero=[first_in_words(audit, near), CellsNearZero.together(near).below_in_words()],
        **{"reach": True, "smoothed": False, "outside": ""},
        **total_in_words,
        figures_are_known=totals_are_known(audit),
        leaves_noise_out=any(table.known and table.known.leaves_noise_out for table in family.tables.values()),
        figures_by=levels_in_words(audit["invariants"]) if "invariants" in audit else "",
        epsilon=epsilon_text(epsilon),
        promised=[card.promise_to(people, epsilon) for people in (1, 2, 5, 10)],
        **{"by_row": audit["privacy_unit"] == "row", "substitute": audit["neighbours"] == "substitute"},
        **{"mechanism": mechanism, "fields": fields},
        charges=card.charges_in_words(audit),
        axes=[card.axis_facts(axis, audit) for axis in axes.values()],
        sql={
            "name": f"{audit['release']}_{name}",
            "period": literal(audit["period"]),
            "box": card.example_box(first.domain),
            "file": literal(f"tables/{name}/histogram.parquet"),
        },
    )


def has_pictures_on_card(family: FamilyEstimate) -> bool:
    """Whether the card shows every table; else each has a page of its own."""
    return len(family.tables) <= MOST_ON_CARD


def pages_of_tables(
    family: FamilyEstimate, audit: Mapping[str, Any], around: PublicationNeighbours = ALONE
) -> dict[str, str]:
    """The pages of tables that the card does not show, by the name of the table."""
    paged = [] if has_pictures_on_card(family) else list(family.tables)[:MOST_LISTED]
    with in_language(around.about.language_of(audit)):
        when = "" if audit["period"] == "all" else f", {days_text(audit['period'])}"
        title = f"{audit.get('title') or audit['release']}{when}"
        return {
            name: picture_page(
                _picture(name, family.tables[name], audit).told_as(audit),
                f"{title}: {name}",
                back="../../card.html",
                rendered=card.rendered_by(audit),
            )
            for name in paged
        }


def _picture(name: str, estimate: Estimate, audit: Mapping[str, Any]) -> Picture:
    # A table is the least squares fit to all marginals that were measured, not noisy counts.
    picture = Picture.of_grid(
        Grid.of_all(
            estimate.domain.called(audit.get("axis_labels")), estimate.values, estimate.unbiased, estimate.known
        ),
        is_fitted=True,
    )
    axes = comma_list([axis.name for axis in picture.sums.axes])
    return replace(picture, title=visible(gettext("Table %(name)s: counts by %(axes)s", name=name, axes=axes)))


def _is_known(table: Estimate) -> bool:
    """Whether every cell is known from public figures."""
    return table.known is not None and table.known.tell_all


def _relative_noise(table: Estimate) -> float:
    """How far noise moves a cell, in cells of which each holds the same part of all rows."""
    assert table.unbiased is not None
    return table.unbiased.half_width_of_cell() * table.cells


def _table_entry(name: str, estimate: Estimate, audit: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """A table in the list: its name, its axes, its cells, how far noise moves one of them, and how many are poor."""
    assert estimate.unbiased is not None
    axes = " × ".join(
        f"{axis.name} ({whole(axis.size)})" for axis in estimate.domain.called(audit.get("axis_labels")).axes
    )
    if _is_known(estimate):
        return name, axes, whole(estimate.domain.cells), pgettext("reliability", "known"), whole(0)
    known = None if estimate.known is None else estimate.known.are_known
    poor = RELIABILITY.cells(estimate.unbiased, known)["poor"]
    return name, axes, whole(estimate.domain.cells), shown_number(estimate.unbiased.half_width_of_cell()), whole(poor)
