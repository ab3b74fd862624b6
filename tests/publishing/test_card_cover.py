"""The cover of a card: its headline, the period before, who publishes, and links to files beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import AGE, WARD
from carded import FACTS, HOSTILE, Read, noisy

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.chance_of_persons import CHANCE
from dphist_pipeline.publishing._card import release_card
from dphist_pipeline.publishing._card_cover import Before, PublicationNeighbours, when_in_words
from dphist_pipeline.publishing.release_files import write_release
from dphist_pipeline.publishing.surroundings import following, surroundings_of
from dphist_pipeline.spec.axes import domain_of

AXES = [AGE, WARD]
BEFORE = Before("2026-02-23 to 2026-03-01", "period=2026-02-23/revision=2", "15,000 ± 50", 15e3, 14_950.0, 15_050.0)


def cover(total: float, around: PublicationNeighbours, **changes: Any) -> str:
    """The cover of a card whose cells are equal."""
    domain: Domain = domain_of(AXES)
    made = noisy(AXES, np.full(domain.shape, total / domain.cells), Fraction(6))
    page = release_card(made, {**FACTS, "axes": AXES, "cells": domain.cells, **changes}, around=around)
    return page[page.index('<div class="cover">') : page.index('<div class="first">')]


def words(page: str) -> str:
    return Read(page).text.replace(" ,", ",")


@pytest.mark.parametrize(
    ("total", "said"),
    [(15_030.0, "no clear difference from"), (18_000.0, ", more than in"), (12_000.0, ", fewer than in")],
)
def test_a_total_differs_from_the_one_before_only_beyond_noise_and_chance(total: float, said: str) -> None:
    told = words(cover(total, PublicationNeighbours(before=BEFORE, is_alike=True)))
    assert (
        f"{total:,.0f} ± " in told and f"{said} the period before (" in told and "15,000 ± 50 in its revision 2" in told
    )
    assert "rows (at most 3 of each patient) in the week of 2 March 2026" in told


def test_where_each_unit_pays_for_its_own_rows_a_difference_says_who_is_counted() -> None:
    around, mixes = (
        PublicationNeighbours(before=BEFORE, is_alike=True),
        "such a difference mixes what happened with who",
    )
    assert mixes in words(cover(18_000.0, around, year_rows=12)) and mixes not in words(cover(18_000.0, around))
    assert mixes not in words(cover(18_000.0, PublicationNeighbours(), year_rows=12))


def test_chance_of_people_with_several_rows_is_allowed_for() -> None:
    """1.96 standard deviations of chance are 345 for independent rows, and 598 where each person has up to three."""
    told = [
        words(cover(15_500.0, PublicationNeighbours(before=BEFORE, is_alike=True), max_rows_per_unit=cap))
        for cap in (1, 3)
    ]
    assert "more than in" in told[0] and "clear difference" not in told[1]
    half = CHANCE.half_width(15_000, 15_500, (50, 65), 3)  # 65: the half width of these cells' total
    (said,) = re.findall(r"500 more were counted \((.*?)\)\. Counts differ as much by chance \((.*?)\)", told[1])
    assert said == ("418 to 582", f"−{half - 500:,.0f} to +{half + 500:,.0f}")


def test_counts_of_another_kind_and_empty_periods_are_not_compared() -> None:
    told = words(cover(18_000.0, PublicationNeighbours(before=BEFORE)))
    assert "Period before: 2026-02-23 to 2026-03-01" in told and "15,000" not in told
    empty = words(cover(15.0, PublicationNeighbours(before=BEFORE, is_alike=True)))
    assert "than in" not in empty and "15,000" not in empty


def test_it_names_the_publisher_the_dates_and_the_notice_and_no_text_is_markup() -> None:
    about = About(
        license="CC BY 4.0", publisher=HOSTILE, contact="data@office.example", notice="These people are invented."
    )
    page = cover(9_000.0, PublicationNeighbours(about), published_on="2026-03-17")
    told = words(page)
    assert "<script" not in page and "alert('1')" in told and 'href="mailto:data@office.example"' in page
    for said in ("Licence: CC BY 4.0", "2026-03-17", "These people are invented."):
        assert said in told


@pytest.mark.parametrize(
    ("first", "after", "said"),
    [
        ("2026-01-05", "2026-01-12", "in the week of 5 January 2026"),
        ("2026-01-05", "2026-01-06", "on 5 January 2026"),
        ("2026-12-01", "2027-01-01", "in December 2026"),
        ("2026-01-01", "2027-01-01", "in 2026"),
        ("2026-04-01", "2026-07-01", "from 1 April 2026 to 30 June 2026"),
    ],
)
def test_a_period_is_told_as_people_say_it(first: str, after: str, said: str) -> None:
    assert when_in_words({"period_start": first, "period_end": after}) == said
    assert when_in_words({"period_start": None, "period_end": None}) == ""


def test_the_period_before_is_read_from_public_files_and_must_count_the_same(tmp_path: Path) -> None:
    release = tmp_path / "wards"
    week = {**FACTS, "axes": AXES, "cells": 15, "period": "2026-02-23"}
    week |= {"period_start": "2026-02-23T00:00:00+01:00", "period_end": "2026-03-02T00:00:00+01:00"}
    del week["charges"], week["versions"], week["values_digest"]
    made = noisy(AXES, np.full(domain_of(AXES).shape, 100.0), Fraction(6))
    made = replace(made, charges=(("counts", Fraction(1, 2)),))
    folder = release / "period=2026-02-23" / "revision=1"
    folder.mkdir(parents=True)
    write_release(made, {"counts": Fraction(6)}, week, folder)
    facts = {**FACTS, "axes": AXES}
    found = surroundings_of(release, facts)
    assert found.before is not None and found.before.total == 1500.0 and found.is_alike
    assert not surroundings_of(release, {**facts, "max_rows_per_unit": 4}).is_alike
    assert not surroundings_of(release, {**facts, "axes": AXES[:1]}).is_alike
    assert surroundings_of(release, {**facts, "period_start": "2026-03-09T00:00:00+01:00"}).before is None
    assert surroundings_of(tmp_path / "new", facts) == PublicationNeighbours()
    earlier = {**facts, "period_start": "2026-02-16T00:00:00+01:00", "period_end": "2026-02-23T00:00:00+01:00"}
    assert following(release, earlier) == folder
    assert following(release, {**earlier, "period_end": "2026-02-22T00:00:00+01:00"}) is None
