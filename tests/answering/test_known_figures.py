"""Public figures of a family are told as known wherever they are asked for, and no other number contradicts them."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from families_by_hand import publish_family
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.asking import Publication, marginals
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.answering.exports.px import contents_of, px_lines
from dphist_pipeline.answering.exports.rows import Exported, facts_of, masks_of
from dphist_pipeline.answering.exports.sdmx import sdmx_lines, sdmx_structure
from dphist_pipeline.answering.figure_lines import Asking, PublicationWithFigures
from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.base.domain import Domain, Figures, finest
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer, found_in_row
from dphist_pipeline.estimates.chosen_cells import box_as_json, chosen_cells
from dphist_pipeline.estimates.estimate import answer_box, with_known
from dphist_pipeline.estimates.known_figures import KnownFigures, totals_are_known
from dphist_pipeline.mechanisms import tables as mechanism
from dphist_pipeline.publishing._figure_tables import figure_tables
from dphist_pipeline.publishing._release_history import history, number_in_words
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.figure_files import DeclaredFigures, FigurePopulation, for_people
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.picture_sums import Grid, marginal
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec._family_tables import TablesSpec, family_of
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.published_figures import figure_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]
AGE: dict[str, Any] = {"column": "age", "edges": [0, 18, 65], "below": True}
SEX: dict[str, Any] = {"column": "sex", "values": ["f", "m"]}
STATES = ["b", "a", "b", "c", "a"]
REGIONS = ["N" if state in "ab" else "S" for state in STATES]
COUNTY: dict[str, Any] = {
    "column": "county",
    "values": [f"c{number}" for number in range(len(STATES))],
    "other": True,
    "levels": {"state": STATES, "region": REGIONS},
}
AXES = [AGE, SEX, COUNTY]
TABLES = [["county", "sex"], ["state", "age"], ["region"], ["age", "sex"]]
FIGURES = {"b": 801, "a": 655, "c": 350, "other": 3}
TOTAL = sum(FIGURES.values())
MET = {"level": "state", "counts": "persons", "figures": FIGURES}
BY_SEX = {state: {"f": figure // 3, "m": figure - figure // 3} for state, figure in FIGURES.items()}
MET_BY_SEX = {"levels": ["state", "sex"], "counts": "persons", "figures": BY_SEX}
WEEKS = ("2026-03-02", "2026-03-09")
LATER = 7  # by how much each figure of the second period is larger


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("known")


@pytest.fixture(scope="module")
def by_sex(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    """The same family, with figures by state and sex."""
    public = tmp_path_factory.mktemp("by_sex")
    return publish_family(public, AXES, TABLES, invariants=MET_BY_SEX, epsilon=Fraction(1, 8))


@cache
def published(folder: Path) -> dict[str, dict[str, Release]]:
    """A family in two periods, each with figures of its own, by the first day."""
    public = folder / "public"
    public.mkdir()
    (folder / "scratch").mkdir()
    made = {}
    for number, week in enumerate(WEEKS):
        met = {**MET, "figures": {value: figure + LATER * number for value, figure in FIGURES.items()}}
        made[week] = publish_family(
            public, AXES, TABLES, period=week, seed=number, invariants=met, show_below=5, epsilon=Fraction(1, 8)
        )
    build_catalogue(public, folder / "scratch")
    return made


def table_of(folder: Path, name: str, week: str = WEEKS[0]) -> Publication:
    return Publication.read(published(folder)[week][name].path)


def is_known(answer: Answer, figure: float) -> bool:
    numbers = (answer.estimate, answer.unbiased, answer.ci_lower, answer.ci_upper)
    return numbers == (figure,) * 4 and (answer.basis, answer.noise_error) == ("known", 0.0)


def agrees(one: Answer, two: Answer) -> bool:
    numbers = ("estimate", "unbiased", "ci_lower", "ci_upper", "noise_error")
    words = [(answer.basis, answer.note, answer.cells) for answer in (one, two)]
    return words[0] == words[1] and all(
        math.isclose(getattr(one, name), getattr(two, name), abs_tol=1e-6) for name in numbers
    )


def test_a_known_count_is_told_without_noise_and_others_within_what_it_leaves(folder: Path) -> None:
    table = table_of(folder, "county_sex")
    known = table.answer({"state": "a"})
    assert is_known(known, 655) and (known.note, known.reliability) == (notes.KNOWN, "known")
    assert is_known(table.answer({}), TOTAL) and is_known(table.answer({"region": "N"}), 801 + 655)
    assert is_known(table.answer({"county": "c3"}), 350), "the only county of its state"
    assert is_known(table.answer({"state": {"not": ["a", "b"]}}), 353)
    parts = [table.answer({"state": "a", "sex": sex}) for sex in "fm"]
    assert all(one.basis == "linear" and 0 <= one.ci_lower <= one.unbiased <= one.ci_upper <= 655 for one in parts)
    assert math.isclose(sum(one.unbiased for one in parts), 655)
    part = table.answer({"region": "N", "sex": "f"})
    assert part.noise_error > 0 and part.ci_upper <= 801 + 655


# By table, boxes of which each axis has one condition or none.
CHOICES: dict[str, dict[str, list[Any]]] = {
    "county_sex": {
        "county": [*(["c0"], ["c0", "c2"], ["c1", "c4"], ["c1", "c2", "c4"], ["c3"], [None], ["c3", None]), "all"],
        "sex": [["f"], ["f", "m"], "all"],
    },
    "state_age": {
        "state": [["a"], ["a", "b"], [None], "all"],
        "age": [(0, 18), (None, None), (18, None), (10, 40), "all"],
    },
    "region": {"region": [["N"], ["S", None], "all"]},
    "age_sex": {"age": [(0, 18), (None, None), "all"], "sex": [["m"], "all"]},
}


def in_span(domain: Domain, positions: list[np.ndarray], labels: np.ndarray) -> bool:
    """Whether the indicator of a box is a sum or difference of those of groups of cells; exact: ranks of 0 and 1."""
    box = np.zeros(domain.shape)
    box[np.ix_(*positions)] = 1
    groups = np.stack([(labels == label).ravel() for label in np.unique(labels)]).astype(float)
    return np.linalg.matrix_rank(np.vstack([groups, box.ravel()])) == np.linalg.matrix_rank(groups)


def figure_groups(domain: Domain, *more: str) -> np.ndarray:
    """By hand: a number for every cell, equal where cells lie in one group with a figure by state, and by `more`."""
    labels = np.zeros(domain.shape)
    for number, axis in enumerate(domain.axes):
        along = {
            "county": [*(ord(state) for state in STATES), 0],
            "state": list(range(4)),
            "region": list(range(3)),
            "sex": [0.25, 0.5] if "sex" in more else None,
        }.get(axis.name)
        if along is not None:
            labels += np.array(along).reshape([-1 if one == number else 1 for one in range(labels.ndim)])
    return labels


@pytest.mark.parametrize(
    ("name", "more"), [*((name, ()) for name in CHOICES), ("county_sex", ("sex",)), ("age_sex", ("sex",))]
)
def test_every_box_is_known_exactly_where_figures_add_up_to_it(
    folder: Path, by_sex: dict[str, Release], name: str, more: tuple[str, ...]
) -> None:
    """And Python's answers before publication are SQL's after it; all numbers lie in their intervals."""
    table = Publication.read(by_sex[name].path) if more else table_of(folder, name)
    axes = CHOICES[name]
    estimate = published_estimate(table.folder, table.audit)
    alone = duckdb.connect()  # no other table of the family answers
    create_tables(alone, [(table.folder, table.audit)], macros=["dph_box"], described=False)
    groups = figure_groups(table.domain, *more)
    for chosen in [*product(*axes.values())][:: 3 if more else 1]:
        box = {axis: one for axis, one in zip(axes, chosen, strict=True) if one != "all"}
        question = {"box": box_as_json(table.domain, box)}
        asked = alone.sql(f"FROM dph_box('family_{name}', $box)", params=question).to_arrow_table()
        answer = found_in_row(Answer, asked.to_pylist()[0])
        assert agrees(answer, answer_box(estimate, box)), box
        assert answer.ci_lower <= answer.unbiased <= answer.ci_upper and answer.ci_upper >= 0
        if box.get("age") == (10, 40):
            assert answer.basis == "linear" and "ends cut bins of age" in answer.note
        else:
            positions = chosen_cells(table.domain, box)
            assert (answer.basis == "known") == in_span(table.domain, list(positions), groups), box
            least, most = estimate.known.limits(positions) if estimate.known else (0, math.inf)
            assert answer.ci_lower <= most and answer.ci_upper >= least
            if answer.basis == "known":
                assert is_known(answer, least)


def test_margins_cells_and_views_tell_the_same_known_counts(folder: Path) -> None:
    table = table_of(folder, "county_sex")
    by_state = table.marginal(["state"], {}).to_pylist()
    assert {row["state"]: row["estimate"] for row in by_state} == {
        None if value == "other" else value: figure for value, figure in FIGURES.items()
    }
    assert all(row["basis"] == "known" and row["ci_lower"] == row["ci_upper"] for row in by_state)
    crossed = table.marginal(["county", "sex"], {}).to_pylist()
    assert {row["basis"] for row in crossed} == {"linear"}
    assert all(row["ci_lower"] <= row["estimate"] <= row["ci_upper"] for row in crossed)
    assert math.isclose(sum(row["estimate"] for row in crossed), TOTAL)
    at_once = marginals([table_of(folder, "region")])[WEEKS[0], 1].to_pylist()
    assert [row["estimate"] for row in at_once] == [801 + 655, 350, 3]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'public/catalog.duckdb'}' AS r (READ_ONLY)")
        view = connection.sql(
            f"SELECT estimate, unbiased_estimate, ci_lower, ci_upper FROM r.family_region WHERE period = '{WEEKS[0]}'"
        ).fetchall()
        assert view == [(figure,) * 4 for figure in (1456.0, 350.0, 3.0)]
        cells = connection.sql(f"SELECT * FROM r.family_county_sex WHERE period = '{WEEKS[0]}'").to_arrow_table()
        own = [row["estimate"] for row in cells.to_pylist()]
        assert own == pytest.approx([row["estimate"] for row in crossed])
        band = connection.sql(
            f"SELECT * FROM r.dph_band('r.family_region') WHERE period = '{WEEKS[0]}'"
        ).to_arrow_table()
        assert {row["basis"] for row in band.to_pylist()} == {"known"}
        narrow = connection.sql(
            "SELECT count(*) FROM r.dph_band('r.family_county_sex') WHERE ci_upper > 808"
        ).fetchall()
        assert narrow == [(0,)]
    (beyond,) = (row for row in crossed if row["county"] is None and row["estimate"] > 3)
    assert beyond["note"] == notes.BEYOND and beyond["ci_upper"] == beyond["estimate"]


def test_what_is_made_of_known_counts_alone_is_known(folder: Path) -> None:
    table = table_of(folder, "county_sex", WEEKS[1])
    assert is_known(table.over(None, None, {"state": "a"}), 655 + 655 + LATER)
    (change,) = table.changes({"state": "a"}).to_pylist()
    assert (change["estimate"], change["ci_lower"], change["ci_upper"], change["basis"]) == (
        LATER,
        LATER,
        LATER,
        "known",
    )
    (change,) = table.changes({"county": "c0"}).to_pylist()
    assert change["basis"] == "linear" and change["ci_upper"] > change["ci_lower"]
    table = table_of(folder, "county_sex")
    assert is_known(table.difference({"state": "a"}, {"state": "b"}), 655 - 801)
    chance = Publication(table.folder, table.audit, with_chance=True).difference({"state": "a"}, {"state": "b"})
    assert chance.basis == "linear" and chance.ci_lower < 655 - 801 < chance.ci_upper
    assert is_known(table.ratio({"state": "a"}, {"state": "b"}), 655 / 801)
    assert is_known(table.share({"state": "a"}, {}), 655 / TOTAL)
    chance = Publication(table.folder, table.audit, with_chance=True).share({"state": "a"}, {})
    assert chance.basis == "linear" and chance.ci_lower < chance.estimate < chance.ci_upper
    ages = table_of(folder, "state_age").range("age", (None, None), {"state": "a"})
    assert is_known(ages.inner, 655) and ages.covers == "exactly"
    people = pa.table({"state": ["a", "b", "c"], "population": [1310, 1602, 700]})
    rates = table.rate(["state"], people, 1000, {}).to_pylist()
    assert [row["estimate"] for row in rates] == [500, 500, 500]
    assert all(row["ci_lower"] == row["ci_upper"] == 500 and row["note"] == notes.KNOWN for row in rates)
    people = people.append_column("standard", [[2, 1, 1]])
    (rate,) = table.standardised([], "state", people, 1000, {}).to_pylist()
    assert rate["estimate"] == rate["ci_lower"] == rate["ci_upper"] == 500 and rate["basis"] == "known"
    ranks = table.ranks("state", {}).to_pylist()
    assert [(row["state"], row["rank_lower"], row["rank_upper"]) for row in ranks[:2]] == [("b", 1, 1), ("a", 2, 2)]
    assert all(row["ci_lower"] == row["ci_upper"] == row["estimate"] for row in ranks)


def test_shares_of_a_known_whole_add_up_and_are_no_wider_than_without_figures(folder: Path, tmp_path: Path) -> None:
    table = table_of(folder, "county_sex")
    shares = [table.share({"sex": sex}, {"state": "a"}) for sex in "fm"]
    assert math.isclose(sum(one.estimate for one in shares), 1)
    (tmp_path / "public").mkdir()
    without = publish_family(tmp_path / "public", AXES, TABLES, seed=0, epsilon=Fraction(1, 8))["county_sex"]
    plain = Publication.read(without.path).share({"sex": "f"}, {"state": "a"})
    width, own = (one.ci_upper - one.ci_lower for one in (plain, shares[0]))
    assert 0 < own < 1.05 * width
    part = table.share({"state": "a", "sex": "f"}, {"region": "N"})
    assert part.ci_lower < part.estimate < part.ci_upper


def test_files_tell_known_counts_and_hide_none_of_them(folder: Path) -> None:
    """The publisher hides figures below 5; one that is public, such as the 3 of `other`, stays."""
    table = table_of(folder, "region")
    (rows,) = Exported((table,)).tables()
    assert rows["estimate"].to_pylist() == rows["ci_lower"].to_pylist() == rows["whole_count"].to_pylist()
    assert rows["estimate"].to_pylist() == [1456, 350, 3] and set(rows["note"].to_pylist()) == {notes.KNOWN}
    assert not any(mask.any() for masks in masks_of(table, rows).values() for mask in masks)
    DerivedFiles(folder / "public").write_current_files(folder / "scratch")
    write_latest_cells(folder / "public", folder / "scratch")
    with (folder / "public/family/latest/region/cells.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["period"] == WEEKS[0]]
    assert [line["estimate"] for line in lines] == ["1456", "350", "3"]


def test_pages_tell_the_known_total_without_an_interval(folder: Path) -> None:
    published(folder)
    newest, first = history(folder / "public/family", {})
    assert (
        number_in_words(newest) == f"{TOTAL + 4 * LATER:,} (known)" and number_in_words(first) == f"{TOTAL:,} (known)"
    )
    number = HeadlineFigure.of(vars(table_of(folder, "region").answer({})))
    assert (str(number), number.has_ends) == (f"{TOTAL:,} (known)", False)
    card = " ".join((folder / f"public/family/period={WEEKS[0]}/revision=1/card.html").read_text().split())
    assert f"{TOTAL:,}</span> (known)" in card and f"{TOTAL:,} ±" not in card
    assert "(known) (at most" not in card, "a figure that was public before counts all persons"
    estimate = published_estimate(published(folder)[WEEKS[0]]["county_sex"].path, table_of(folder, "county_sex").audit)
    sums = marginal(Grid.of_all(estimate.domain, estimate.values, estimate.unbiased, estimate.known), [1], [10])
    assert sums.is_known.tolist() == [False, False, False, True, False, True]
    assert sums.values[3] == sums.low[3] == sums.high[3] == 350 and not sums.is_hidden[5]  # type: ignore[index]


def test_figures_that_count_something_else_are_not_told_as_known(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    for release, facts in {
        "persons": {"max_rows_per_unit": 3, "invariants": MET},
        "rows": {"invariants": {**MET, "counts": "rows"}},
    }.items():
        made = publish_family(public, AXES, [["state"]], release=release, **facts)["state"]
        table = Publication.read(made.path)
        assert not totals_are_known(table.audit) and table.answer({"state": "a"}).basis == "linear"
    for counts in ("persons", "rows"):
        assert totals_are_known({"privacy_unit": "row", "max_rows_per_unit": 1, "invariants": {"counts": counts}})


def test_figures_over_two_axes_are_told_as_known_in_all_tables(by_sex: dict[str, Release]) -> None:
    """By both axes, by each alone, at coarser levels, and in whole counts; what is within them adds up to them."""
    table = {name: Publication.read(one.path) for name, one in by_sex.items()}
    women = {state: of_sex["f"] for state, of_sex in BY_SEX.items()}
    assert is_known(table["county_sex"].answer({"state": "a", "sex": "f"}), women["a"])
    assert is_known(table["county_sex"].answer({"sex": "f"}), sum(women.values()))
    assert is_known(table["age_sex"].answer({"sex": "f"}), sum(women.values())), "its axis of states is summed over"
    assert is_known(table["state_age"].answer({"state": "a"}), FIGURES["a"])
    assert is_known(table["region"].answer({"region": "N"}), FIGURES["a"] + FIGURES["b"])
    part = table["county_sex"].answer({"county": "c1", "sex": "f"})
    assert part.basis == "linear" and 0 <= part.ci_lower <= part.unbiased <= part.ci_upper <= women["a"]
    crossed = table["county_sex"].marginal(["county", "sex"], {}).to_pylist()
    of_a = [row["estimate"] for row in crossed if row["county"] in ("c1", "c4") and row["sex"] == "f"]
    assert math.isclose(sum(of_a), women["a"])
    whole = by_sex["county_sex"].whole().group_by("state", "sex").agg(pl.col("whole_count").sum())
    assert {(state or "other", sex): count for state, sex, count in whole.iter_rows()} == {
        (state, sex): figure for state, of_sex in BY_SEX.items() for sex, figure in of_sex.items()
    }
    (rows,) = Exported((table["county_sex"],)).tables()
    (fact,) = [text for _, text in facts_of(Exported((table["county_sex"],))) if "public figures" in text]
    assert "by state × sex, and sums" in fact and rows.num_rows == 12
    card = " ".join((by_sex["county_sex"].path.parents[1] / "card.html").read_text().split())
    assert "Counts by <q>state × sex</q>, and sums of them, are public figures" in card
    assert f"{TOTAL:,}</span> (known)" in card and f"{TOTAL:,} ±" not in card


def test_px_and_sdmx_tell_known_counts(folder: Path) -> None:
    """As numbers of which both ends are the same, with an error of 0 and, in SDMX, the word and why."""
    table = table_of(folder, "region")
    text = "".join(px_lines(Exported((table,))))
    lines = [line.split() for line in text.partition("DATA=\n")[2].splitlines()[:-1]]
    names = [column.name for column in contents_of(Exported((table,)))]
    for line, figure in zip(lines, (1456, 350, 3), strict=True):
        numbers = {name: float(number) for name, number in zip(names, line, strict=True)}
        assert numbers.pop("standard_error") == 0 and set(numbers.values()) == {figure}
    assert "known: Counts by state, and sums of them, are public figures" in text.replace('"\n"', "")
    header, *cells = sdmx_lines(Exported((table,)))
    told = [dict(zip(header, line, strict=True)) for line in cells]
    assert [one["OBS_VALUE"] for one in told] == ["1456", "350", "3"]
    for one in told:
        assert one["CI_LOWER"] == one["CI_UPPER"] == one["OBS_VALUE"]
        assert (one["OBS_STATUS"], one["RELIABILITY"], one["NOTE"]) == ("A", "known", notes.KNOWN)
    structure = sdmx_structure(Exported((table,)), "region.csv", folder / "region.csv")
    assert f"known: {notes.KNOWN}" in structure


def test_declared_figures_of_known_counts_are_told_as_known(folder: Path) -> None:
    """Also where they are smaller than the publisher shows; no count is known that noise has moved."""
    table = table_of(folder, "county_sex")
    people = FigurePopulation("0" * 64, WEEKS[0], ("state", "population"), (("a", "1000"), ("b", "801")))
    figures = [
        {"name": "rate", "rate": {"population": "people.csv", "per": 1000}, "by": ["state"]},
        {"name": "north", "share": {"region": "N"}},
        {"name": "others", "share": {"state": [None]}},
        {"name": "women", "share": {"sex": "f"}, "by": ["state"]},
    ]
    declared = DeclaredFigures(tuple(map(figure_of, figures)), {"people.csv": people})
    audit = {**table.audit, "tables": {"county_sex": {"axes": table.audit["axes"]}}}
    connection = duckdb.connect()
    macros = ["dph_rate", "dph_share"]
    create_tables(connection, [(table.folder, table.audit)], macros=macros, described=False)
    one = PublicationWithFigures("family", audit, table.folder)
    lines = [*Asking(connection).lines([one], declared, declared.figures)]
    rates = {line["state"]: line for line in lines if line["figure"] == "rate"}
    for state, rate in (("a", 655.0), ("b", 1000.0)):
        line = rates[state]
        assert line["value"] == line["ci_lower"] == line["ci_upper"] == rate, line
        assert notes.KNOWN[1:] in line["note"]
    north, others = (line for line in lines if line["figure"] in ("north", "others"))
    assert math.isclose(others["value"], 3 / TOTAL) and notes.KNOWN[1:] in others["note"]
    assert math.isclose(north["value"], 1456 / TOTAL) and for_people(north)["value"] == round(1456 / TOTAL, 4)
    women = {line["state"]: line for line in lines if line["figure"] == "women"}
    assert women["b"]["ci_lower"] < women["b"]["value"] < women["b"]["ci_upper"] and women["other"]["value"] is None
    tables = {one["name"]: one for one in figure_tables(lines, audit)["tables"]}
    assert tables["north"]["rows"] == [("north", f"{100 * 1456 / TOTAL:.2f}", "known")]
    assert ("a", "655", "known") in tables["rate"]["rows"]


@pytest.mark.outside
def test_dagster_shows_a_known_total_without_an_interval(folder: Path) -> None:
    from dphist_pipeline.integrations.dagster._shown import published_metadata

    audit = read_audit(folder / f"public/family/period={WEEKS[0]}/revision=1")
    release = Release(folder / f"public/family/period={WEEKS[0]}/revision=1", audit, replayed=False)
    shown = published_metadata(release, release.first_table.answer())
    assert f"**{TOTAL:,} rows** (known) in" in shown["essence"].value
    assert shown["total"] == shown["total_ci_lower"] == shown["total_ci_upper"] == TOTAL
    assert shown["total_noise_error"] == 0


@pytest.mark.parametrize("level", ["state", "county", "county and sex"])
def test_moved_numbers_lie_in_their_intervals_as_often_as_promised(level: str) -> None:
    """And moving them to the figures makes their errors smaller; the draws are the same in every run."""
    family = family_of(TablesSpec(list=tuple(map(tuple, TABLES))), domain_of(AXES).axes, 10**6)
    shares, draws = mechanism.shares_for(family), np.random.Generator(np.random.PCG64(7))
    # Every record by its own cell of all axes: age, sex and county.
    shape = tuple(axis.size for axis in domain_of(AXES).axes)
    records = draws.multinomial(3000, draws.dirichlet(np.full(math.prod(shape), 0.5))).reshape(shape)
    states, regions = np.array([0, 1, 0, 2, 1, 3]), np.array([0, 0, 1, 2])

    def counted(names: list[str]) -> np.ndarray:
        table = records
        for axis, name in reversed(list(enumerate(("age", "sex")))):
            table = table if name in names else table.sum(axis=axis, keepdims=True)
        by = {"county": np.arange(6), "state": states, "region": regions[states]}
        place = next((name for name in names if name in by), None)
        along = np.zeros(6, dtype=int) if place is None else by[place]
        grouped = np.stack([table[..., along == one].sum(axis=-1) for one in range(along.max() + 1)], axis=-1)
        return grouped.reshape([side for side in grouped.shape if side > 1])

    names = [[family.domain.axes[axis].name for axis in sorted(axes)] for axes in shares.marginals]
    scales = {axes: 1 / (part * Fraction(1, 4)) for axes, part in zip(shares.marginals, shares.parts, strict=True)}
    county = records.sum(axis=(0, 1))
    places = ["b", "a", "c", "other"] if level == "state" else [*(f"c{n}" for n in range(5)), "other"]
    along = states if level == "state" else np.arange(6)
    rows = np.array([county[along == n].sum() for n in range(len(places))])
    figures = Figures((level,), (tuple(places),), rows)
    if level == "county and sex":
        figures = Figures(("county", "sex"), (tuple(places), ("f", "m")), records.sum(axis=0).T)
    boxes: list[tuple[str, dict[str, Any]]] = [
        ("county_sex", {"county": "c0", "sex": "f"}),
        ("county_sex", {"county": ["c0", "c1"]}),
        ("county_sex", {"sex": "m"}),
        ("state_age", {"state": ["a", "b"], "age": (0, 18)}),
        ("state_age", {"state": None, "age": (18, None)}),
        ("age_sex", {"age": (0, 18), "sex": "f"}),
    ]
    whole = finest(family.grid(table) for table in family.tables)
    missed, squares = np.zeros(len(boxes)), np.zeros((2, len(boxes)))
    every = 200
    for _ in range(every):
        noisy = {}
        for axes, of in zip(shares.marginals, names, strict=True):
            exact, decay = counted(of), math.exp(-1 / float(scales[axes]))
            noise = draws.geometric(1 - decay, exact.shape) - draws.geometric(1 - decay, exact.shape)
            noisy[axes] = (exact + noise).reshape(family.grid(axes).shape).astype(float)
        made = mechanism._estimates(family, noisy, scales, ())
        for number, (name, box) in enumerate(boxes):
            table = made.tables[name]
            true = counted(name.split("_"))[np.ix_(*chosen_cells(table.domain, box))].sum()
            known = KnownFigures.of(figures, table.domain, whole)
            answers = [answer_box(one, box) for one in (table, with_known(table, known))]
            missed[number] += not answers[1].ci_lower - 1e-6 <= true <= answers[1].ci_upper + 1e-6
            squares[:, number] += [(answer.unbiased - true) ** 2 for answer in answers]
    assert (missed <= 0.05 * every + 3 * math.sqrt(0.05 * every)).all()
    assert (squares[1] <= 1.02 * squares[0]).all() and squares[1].sum() < 0.95 * squares[0].sum()
