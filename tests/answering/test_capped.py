"""What shares say of the rows that the bound cut: the estimated bias and its interval, over many noisy publications."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest
import reported

from dphist_pipeline.answering._macro_calls import IDLE_OPTIMIZERS
from dphist_pipeline.answering.catalogue import Catalogue, create_tables
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.row_quality import BoundingEffect, RowTable
from dphist_pipeline.releasing.releases import Release

pytestmark = pytest.mark.slow

# By its name, the axis whose rows cut are published stands before the other one.
AXES: list[dict[str, Any]] = [
    {"column": "readmitted", "values": ["yes", "no"], "other": True},
    {"column": "stay", "edges": [0, 50, 100]},
]
# Counted and cut, by category; of each category a third is of a stay of 50 and more.
COUNTED, CUT = np.array([7_800.0, 71_400.0, 800.0]), np.array([1_650.0, 1_000.0, 0.0])
SCALE, CUT_SCALE, PERIODS = Fraction(12), Fraction(140), 1_500
SHARE = "dph_share('noisy', {'readmitted': 'yes'})"
POINTS = r"([+-][\d.,]+)"
BEGINNING = f"among the first 10 rows of each unit ({notes.UNSEEN})"
SAID = re.compile(
    rf"^{re.escape(BEGINNING)}, the bound moves this (?:share|ratio|rate) by about {POINTS}(?: points)? "
    rf"\(95 %: {POINTS} to {POINTS}\)$"
)
RATIO = "dph_ratio('noisy', {'readmitted': 'yes'}, {'readmitted': ['yes', 'no']})"
ASKED = ["dph_share", "dph_ratio", "dph_mean", "dph_sum", "dph_quantile", "dph_rate", "dph_standardised"]
SUM = "dph_sum('noisy', 'stay')"
PART_AND_WHOLE = "{'readmitted': 'no', 'stay': [0, 50]}", "{'stay': [0, 50]}"
# Of each period its rows cut and how far their interval reaches on both sides.
LARGE = {10: 5, 143_800: 5, 10**9: 5, 10**12: 5}
CUTS = {-145: 1_198, -1_198: 1_198, 1_500: 1_198, 60_000: 1_000, **LARGE}


def tables(cut: np.ndarray) -> tuple[RowTable, ...]:
    held = [str(number) for number in range(1, 11)]
    nothing = (None,) * 10
    rows = tuple(range(1, 11))
    units = RowTable(("units",) * 10, nothing, rows, tuple(held), np.zeros(10), CUT_SCALE, "u", Fraction(1))
    whole = RowTable(("cut",), (None,), (None,), (None,), cut.sum(keepdims=True), CUT_SCALE, "w", Fraction(1))
    places, names = (0, 1, 2), ("yes", "no", None)
    by = RowTable(("cut",) * 3, ("readmitted",) * 3, places, names, cut, CUT_SCALE, "b", Fraction(1))
    return units, whole, by


def published(
    public: Path,
    quality: bool = True,
    period: str = "2026-03-02",
    release: str = "noisy",
    axes: list[dict[str, Any]] = AXES,
    **facts: Any,
) -> Release:
    cells = np.outer(COUNTED, [2 / 3, 1 / 3])
    made = by_hand.estimate(axes, cells, SCALE, off=0.0)
    made = replace(made, quality=tables(CUT) if quality else ())
    return by_hand.publish(public, made, axes, release, period, **facts)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """In memory one publication without noise, `renamed` with another name of an axis, and `many`: the same in a period
    of each number of rows cut.
    """
    public = tmp_path_factory.mktemp("public")
    published(public)
    published(public, release="renamed", axes=[AXES[0], {**AXES[1], "column": "days"}])
    published(public, release="persons", take="one_per_cell")
    published(public, release="many", period="p0")
    with duckdb.connect() as connection:
        create_tables(connection, Catalogue(public).publications(), macros=ASKED, described=False)
        connection.execute(f"SET disabled_optimizers = '{IDLE_OPTIMIZERS},cte_inlining'")
        for table in ("dph_releases", "internals.dph_cells_many", "internals.dph_quality_rows"):
            only = "" if "cells" in table else "WHERE release = 'many'"
            rows = connection.sql(f"FROM {table} {only}").to_arrow_table().to_pylist()
            for number, (cut, reach) in enumerate(CUTS.items(), 1):
                said = {"estimate": cut, "ci_lower": cut - reach, "ci_upper": cut + reach}
                more = [
                    row | {"period": f"p{number}"} | (said if row.get("statistic") == "cut" and not row["axis"] else {})
                    for row in rows
                ]
                insert(connection, table, more)
        yield connection


@pytest.fixture(scope="module")
def many(catalogue: duckdb.DuckDBPyConnection) -> Callable[[str], dict[int, str]]:
    """What a question is told in each period, by the rows cut: asked once of all, since that takes its time."""

    @cache
    def answers(question: str) -> dict[int, str]:
        texts = asked(catalogue, question.replace("'noisy'", "'many'"))[1:]
        return dict(zip(CUTS, map(str, texts), strict=True))

    return answers


@pytest.fixture
def changed(catalogue: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same, as it was again afterwards."""
    catalogue.execute("BEGIN")
    yield catalogue
    catalogue.execute("ROLLBACK")


def test_where_a_unit_counts_once_in_a_cell_the_bound_cuts_cells(catalogue: duckdb.DuckDBPyConnection) -> None:
    (rows,), (cells,) = (asked(catalogue, SUM.replace("noisy", name)) for name in ("noisy", "persons"))
    assert rows is not None and cells is not None and "rows of each unit" in rows and "cells of each unit" in cells
    assert re.search(r"the bound cut about [0-9,]+ rows \(", rows) and "cells (95 %" in cells


def asked(connection: duckdb.DuckDBPyConnection, question: str) -> list[str | None]:
    return [text for (text,) in connection.execute(f"SELECT capped FROM {question}").fetchall()]


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    connection.register("more", pa.Table.from_pylist(rows))
    connection.execute(f"INSERT INTO {table} BY NAME FROM more")
    connection.unregister("more")


def told(text: str | None) -> tuple[float, ...]:
    found = SAID.search(text or "")
    assert found is not None, text
    return tuple(float(number.replace(",", "")) for number in found.groups())


def bias(part: list[int], whole: list[int]) -> float:
    """In percentage points, as published minus with the rows cut."""
    share = COUNTED[part].sum() / COUNTED[whole].sum()
    return float(100 * (share - (COUNTED + CUT)[part].sum() / (COUNTED + CUT)[whole].sum()))


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        ("{'readmitted': 'yes'}", "'{}'", bias([0], [0, 1, 2])),
        ("{'readmitted': ['no', NULL]}", "'{}'", bias([1, 2], [0, 1, 2])),
        ("{'readmitted': 'yes'}", "{'readmitted': ['yes', 'no']}", bias([0], [0, 1])),
        ("{'readmitted': 'yes'}", "{'readmitted': ['yes', 'no', NULL], 'stay': [0, 100]}", bias([0], [0, 1, 2])),
        ("{'readmitted': 'yes', 'stay': [0, 100]}", "'{}'", bias([0], [0, 1, 2])),
    ],
)
def test_a_share_along_the_axis_says_how_far_the_bound_moves_it(
    catalogue: duckdb.DuckDBPyConnection, part: str, whole: str, expected: float
) -> None:
    points, lower, upper = told(asked(catalogue, f"dph_share('noisy', {part}, {whole})")[0])
    assert points == pytest.approx(expected, abs=0.0051)
    assert lower < points < upper


def test_an_axis_that_is_spelled_out_is_not_the_one_that_is_asked_for(catalogue: duckdb.DuckDBPyConnection) -> None:
    """By its name, it stands before the axis whose rows cut are published."""
    points, _, _ = told(asked(catalogue, "dph_share('renamed', {'readmitted': 'yes', 'days': [0, 100]})")[0])
    assert points == pytest.approx(bias([0], [0, 1, 2]), abs=0.0051)


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ("{'readmitted': 'yes'}", "{'readmitted': 'no'}", ([0], [1])),
        ("{'readmitted': 'yes'}", "{'stay': [0, 100]}", ([0], [0, 1, 2])),
        ("{'readmitted': ['yes', 'no']}", "{'readmitted': ['no', NULL]}", ([0, 1], [1, 2])),
    ],
)
def test_a_ratio_along_the_axis_says_how_far_the_bound_moves_it(
    catalogue: duckdb.DuckDBPyConnection, first: str, second: str, places: tuple[list[int], list[int]]
) -> None:
    shift, lower, upper = told(asked(catalogue, f"dph_ratio('noisy', {first}, {second})")[0])
    assert shift == pytest.approx(bias(*places) / 100, rel=0.005)
    assert lower < shift < upper


def test_a_ratio_by_a_count_near_0_says_how_many_rows_were_cut(catalogue: duckdb.DuckDBPyConnection) -> None:
    """The noise of the rows cut in the category of 800 is a third of them: how far they move it is not told."""
    (text,) = asked(catalogue, "dph_ratio('noisy', {'readmitted': 'yes'}, {'readmitted': NULL})")
    assert text is not None and text.endswith("rows (95 %: 2,231 to 3,069); no interval covers them")


@pytest.mark.parametrize(
    "question",
    [
        "dph_share('noisy', {'stay': [50, 100]})",
        "dph_share('noisy', {'readmitted': 'yes', 'stay': [50, 100]})",
        "dph_share('noisy', {'readmitted': 'yes'}, {'stay': [50, 100]})",
        "dph_quantile('noisy', 'stay')",
    ],
)
def test_other_questions_say_how_many_rows_the_bound_cut(catalogue: duckdb.DuckDBPyConnection, question: str) -> None:
    (text,) = asked(catalogue, question)
    reach = "2,231 to 3,069"  # 140·ln 20 is 419.4
    said = f"{BEGINNING}, the bound cut about 2,650 rows (95 %: {reach}); no interval covers them"
    assert text == said


@pytest.mark.parametrize(
    "question",
    [
        "dph_share('noisy', {'stay': [50, 100]})",
        "dph_ratio('noisy', {'stay': [50, 100]}, {'stay': [0, 50]})",
        "dph_mean('noisy', 'stay')",
        SUM,
        "dph_quantile('noisy', 'stay')",
    ],
)
def test_every_sentence_gives_the_rows_cut_one_interval_cut_off_at_0(
    many: Callable[[str], dict[int, str]], question: str
) -> None:
    """As drawn, cut off at 0: not 1,198 around 0. Where all of it lies below 0, surely nothing was cut is not said."""
    for cut, ends in {-145: "0 to 1,053", -1_198: "0 to 1,198", 1_500: "302 to 2,698"}.items():
        most = ends.rpartition(" ")[2]
        said = f"{BEGINNING}, the bound cut about {cut:,} rows (95 %: {ends}); no interval covers them"
        none = f"no cut rows detected among the first 10 of each unit; at most {most} (95 %)"
        assert many(question)[cut] == (said if cut > 0 else none)
        lower, upper = BoundingEffect(None, 80_000, cut, cut - 1_198, cut + 1_198).possible
        assert f"{lower:,.0f} to {upper:,.0f}" == ends


@pytest.mark.parametrize(
    "question",
    [
        "dph_share('noisy', {'stay': [50, 100]})",
        "dph_ratio('noisy', {'stay': [50, 100]}, {'stay': [0, 50]})",
        "dph_mean('noisy', 'stay')",
        SUM,
        RATIO,
    ],
)
def test_no_number_of_what_was_cut_is_a_power_of_ten(many: Callable[[str], dict[int, str]], question: str) -> None:
    texts = many(question)
    for cut in LARGE:
        assert texts[cut] and not re.search(r"\de[+-]\d", texts[cut]), texts[cut]


RATES = {
    "people": pa.table({"readmitted": ["yes", "no"], "population": [1e5, 2e5], "standard": [1, 3]}),
    "stays": pa.table({"stay_lower": [0, 50], "stay_upper": [50, 100], "population": [1e5, 2e5], "standard": [1, 3]}),
    "all_people": pa.table({"population": [1e5]}),
}


def test_a_rate_along_the_axis_says_how_far_the_bound_moves_it(changed: duckdb.DuckDBPyConnection) -> None:
    """A rate of `per` people is too low by the rows cut, by person; a standardised one by their weighted sum."""
    for name, people in RATES.items():
        changed.register(name, people)
    by_group = [0 - CUT[0], 0 - CUT[1] / 2]
    in_part = "{'readmitted': ['yes', 'no'], 'stay': [0, 100]}"
    for question, expected in (
        ("dph_rate('noisy', ['readmitted'], 'people'", by_group),
        (f"dph_rate('noisy', ['readmitted'], 'people', box := {in_part}", by_group),
        ("dph_rate('noisy', [], 'all_people'", [-CUT.sum()]),
        (f"dph_rate('noisy', [], 'all_people', box := {in_part}", [-CUT[:2].sum()]),
        ("dph_standardised('noisy', [], 'readmitted', 'people'", [by_group[0] / 4 + 3 * by_group[1] / 4]),
    ):
        moved = [told(text) for text in asked(changed, f"{question}, per := 1e5)")]
        assert [shift for shift, *_ in moved] == pytest.approx(expected, abs=0.5)
        assert all(lower < shift < upper <= 0 for shift, lower, upper in moved)


@pytest.mark.parametrize(("cut", "expected"), [(-145, "+0 (95 %: -274.4 to +0)"), (-10_000, "+0 (95 %: -419.4 to +0)")])
def test_the_rows_cut_of_a_rate_are_cut_off_as_all_rows_cut(
    changed: duckdb.DuckDBPyConnection, cut: int, expected: str
) -> None:
    changed.register("people", RATES["people"])
    changed.execute(
        f"UPDATE internals.dph_quality_rows SET estimate = {cut}, ci_lower = {cut} - 419.4, "
        f"ci_upper = {cut} + 419.4 WHERE axis = 'readmitted' AND position = 0"
    )
    assert str(asked(changed, "dph_rate('noisy', ['readmitted'], 'people', per := 1e5)")[0]).endswith(expected)
    changed.execute("UPDATE internals.dph_quality_rows SET estimate = 1e6 WHERE axis = 'readmitted' AND position = 0")
    assert told(asked(changed, "dph_rate('noisy', ['readmitted'], 'people', per := 1)")[0])[0] == -0.03069


def test_a_comparison_says_it_of_both_periods(tmp_path: Path) -> None:
    first, second = (published(tmp_path, period=period) for period in ("2026-03-02", "2026-03-09"))
    text = second.change_since(first).capped
    assert text.startswith(f"in the first period {BEGINNING}, the bound cut about 2,650 rows")
    assert f". In the second one {BEGINNING}, the bound cut about 2,650 rows" in text
    assert second.changes()["capped"].to_list() == [text]


def test_a_comparison_says_of_the_side_without_a_quality_table_that_it_is_not_known(tmp_path: Path) -> None:
    first, second = published(tmp_path), published(tmp_path, quality=False, period="2026-03-09")
    text = second.change_since(first).capped
    assert text.startswith(f"in the first period {BEGINNING}, the bound cut about 2,650 rows")
    assert text.endswith(f". In the second one the count is {notes.CAP_UNKNOWN}")


def test_two_revisions_of_one_period_are_no_two_periods(tmp_path: Path) -> None:
    first, second = (published(tmp_path, revision=number) for number in (1, 2))
    said = second.change_since(first)
    begins = f"{BEGINNING}, the bound cut"
    assert said.capped.startswith(f"in revision 1 {begins}") and f". In revision 2 {begins}" in said.capped


def test_two_releases_of_one_period_are_no_two_periods(tmp_path: Path) -> None:
    first, other = published(tmp_path), published(tmp_path, quality=False, release="plain")
    said = other.change_since(first)
    begins = f"in release noisy {BEGINNING}, the bound cut"
    assert said.capped.startswith(begins) and ". In release plain the count is" in said.capped
    assert said.chance == notes.CHANCE_OF_RELEASES and "with_chance" not in said.chance


def test_python_gives_the_same_sentence(tmp_path: Path, catalogue: duckdb.DuckDBPyConnection) -> None:
    made = published(tmp_path / "again")
    assert [made.share({"readmitted": "yes"}).capped] == asked(catalogue, SHARE)
    boxes: tuple[dict[str, Any], ...] = ({"readmitted": "yes"}, {"readmitted": ["yes", "no"]})
    assert [made.ratio(*boxes).capped] == asked(catalogue, RATIO)
    assert made.answer(readmitted="yes").capped == ""


def test_without_a_quality_table_a_share_says_that_the_caps_bias_is_unknown(tmp_path: Path) -> None:
    made = published(tmp_path, quality=False)
    assert made.quantile("stay").capped == notes.CAP_UNKNOWN
    told = made.share({"readmitted": "yes"}), made.mean("stay"), made.ratio({"readmitted": "yes"}, {"readmitted": "no"})
    assert {one.capped for one in (*told, made.sum("stay"))} == {notes.CAP_UNKNOWN}
    people = pa.table({"readmitted": ["yes", "no"], "population": [1e5, 1e5]})
    assert set(made.rate(["readmitted"], people)["capped"]) == {notes.CAP_UNKNOWN}


def test_where_every_row_is_a_unit_or_a_report_no_cap_is_spoken_of(tmp_path: Path) -> None:
    made = published(tmp_path / "rows", quality=False, privacy_unit="row")
    assert made.share({"readmitted": "yes"}).capped == made.mean("stay").capped == ""
    town = reported.publish(tmp_path / "town", reported.estimate([reported.AGE]), [reported.AGE])
    assert town.mean("age").capped == town.share({"age": (0, 18)}).capped == ""


@pytest.mark.parametrize("cut", [-9_000, 10**7])
def test_no_share_lies_below_0_or_above_1_without_the_bound(changed: duckdb.DuckDBPyConnection, cut: int) -> None:
    """Noise may say that fewer than no rows of a category were cut."""
    changed.execute(
        f"UPDATE internals.dph_quality_rows SET estimate = {cut} WHERE axis = 'readmitted' AND position = 0"
    )
    share = 100 * COUNTED[0] / COUNTED.sum()
    points, lower, upper = told(asked(changed, SHARE)[0])
    assert share - 100.01 <= lower <= points <= upper <= share + 0.01
    assert points == pytest.approx(share if cut < 0 else share - 100, abs=1.1)


@pytest.mark.parametrize(
    ("question", "truth", "least"),
    [
        (SHARE, bias([0], [0, 1, 2]), 0.005),
        (RATIO, bias([0], [0, 1]) / 100, 5e-5),
        ("dph_ratio('noisy', {'readmitted': 'yes'}, {'readmitted': 'no'})", bias([0], [1]) / 100, 5e-5),
        ("dph_rate('noisy', [], 'one', 100, {'readmitted': 'yes'})", -CUT[0] / 10, 0.05),
        ("dph_standardised('noisy', [], 'readmitted', 'people', 1e4)", -CUT @ [1 / 40, 3 / 80, 0], 0.05),
    ],
)
def test_the_bias_is_estimated_without_bias_and_its_interval_covers(
    changed: duckdb.DuckDBPyConnection, question: str, truth: float, least: float
) -> None:
    """1,500 publications of the same records: intervals cover at least 92 %, 30 % narrower ones do not."""
    random = np.random.default_rng(16)
    changed.register("one", pa.table({"population": [1e3]}))
    changed.register("people", RATES["people"])
    for table, values, scale in (
        ("dph_releases", (), SCALE),
        ("internals.dph_cells_noisy", ("unbiased_estimate",), SCALE),
        ("internals.dph_quality_rows", ("estimate", "ci_lower", "ci_upper"), CUT_SCALE),
    ):
        only = "" if "cells" in table else "WHERE release = 'noisy'"
        rows = changed.sql(f"FROM {table} {only}").to_arrow_table().to_pylist()
        more = [
            row | {"period": f"p{number:04}"} | {value: row[value] + drawn for value in values}
            for number in range(PERIODS)
            for row in rows
            for drawn in [noise(random, scale) if values else 0]
        ]
        insert(changed, table, more)
    found = np.array([told(text) for text in asked(changed, question)[1:]])
    assert len(found) == PERIODS
    spread = found[:, 0].std() / PERIODS**0.5
    assert abs(found[:, 0].mean() - truth) < 6 * spread + least
    assert all(abs(found[:, 0].mean() - wrong * truth) > 6 * spread for wrong in (0.7, 1.3))
    reach = (found[:, 2] - found[:, 1]) / 2
    missed = np.abs(found[:, 0] - truth)
    assert 0.92 <= (missed <= reach).mean() <= 0.99
    assert (missed <= 0.7 * reach).mean() < 0.92


def noise(random: np.random.Generator, scale: Fraction) -> float:
    one, other = random.geometric(1 - np.exp(-1 / float(scale)), 2)
    return float(one - other)


def test_what_the_cap_leaves_out_is_one_sentence_with_a_quality_table_and_without(tmp_path: Path) -> None:
    known = published(tmp_path / "known")
    said = PublishedQuality(known.path, known.audit).cap_in_words()
    assert re.search(r"are not counted: about 2,650 \(2,231 to 3,069, 95 %\) among the first 10 of each\.$", said), said
    few = by_hand.estimate(AXES, np.outer(COUNTED / 1_000, [2 / 3, 1 / 3]), SCALE, off=0.0)
    small = by_hand.publish(tmp_path / "few", replace(few, quality=tables(CUT * 0)), AXES, "noisy")
    none = PublishedQuality(small.path, small.audit).cap_in_words()
    assert none.endswith("no cut rows detected among the first 10 of each; at most 419 (95 %).")
    unknown = published(tmp_path / "unknown", quality=False)
    assert "how many these are is not known." in PublishedQuality(unknown.path, unknown.audit).cap_in_words()
    assert PublishedQuality(unknown.path, {**unknown.audit, "privacy_unit": "row"}).cap_in_words() == ""
