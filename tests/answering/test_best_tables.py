"""A question is answered from the table of a family that tells its names best, whichever table was named."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from answering_scenario import attached, rows_of
from families_by_hand import estimate_family, publish_family
from quick_catalogue import build_catalogue
from test_catalogue_growing import anew, held

from dphist_pipeline.answering._macros import MACROS
from dphist_pipeline.answering.asking import Box, Publication
from dphist_pipeline.answering.best_table import best_of_folder
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.estimates.chosen_cells import overlapped_cells
from dphist_pipeline.estimates.family_choice import FamilyChoice
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.publishing._card import total_facts
from dphist_pipeline.publishing._release_history import history
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit
from dphist_pipeline.publishing.unbiased_facts import unbiased_facts
from dphist_pipeline.releasing.releases import Release
from examples import mostly_soaked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]
AGE: dict[str, Any] = {"column": "age", "edges": [0, 18, 65], "below": True, "other": True}
SEX: dict[str, Any] = {"column": "sex", "values": ["f", "m"]}
STATES = ["b", "a", "b", "c", "a", "a", "c", "b", "a", "d"]
COUNTY: dict[str, Any] = {
    "column": "county",
    "values": [f"c{number}" for number in range(len(STATES))],
    "labels": [f"County {number}" for number in range(len(STATES))],
    "other": True,
    "levels": {"state": STATES, "region": ["N" if state in "ab" else "S" for state in STATES]},
}
WARD: dict[str, Any] = {"column": "ward", "values": ["p", "q", "r"], "levels": {"house": ["x", "y", "x"]}}
Axes = list[dict[str, Any]]
FAMILIES: dict[str, tuple[Axes, list[list[str]]]] = {
    "levels": ([AGE, SEX, COUNTY], [["state"], ["state", "age"], ["county", "age", "sex"], ["region"]]),
    "crossed": ([AGE, WARD, COUNTY], [["county", "ward"], ["state", "age"], ["house", "state"], ["house"]]),
    "fine_only": ([COUNTY], [["county"], ["state"]]),
}
WEEKS = ("2026-03-02", "2026-03-09", "2026-03-16")
# By macro what it is asked; of a table, those that have its axes.
QUESTIONS = {
    "dph_total": "'{}'",
    "dph_box": "'{}', {'state': ['a', 'b']}",
    "dph_range": "'{}', 'age', 5, NULL, {'region': 'N'}",
    "dph_marginal": "'{}', ['state', 'age'], {'region': {'not': 'S'}}",
    "dph_share": "'{}', {'age': [18, NULL]}, {'state': ['a', 'b']}",
    "dph_quantile": "'{}', 'age', [0.25, 0.5], {'state': 'a'}",
    "dph_mean": "'{}', 'age', -5, 120, {'state': 'a'}",
    "dph_sum": "'{}', 'age', box := {'age': [0, 65], 'state': 'b'}",
    "dph_ranks": "'{}', 'state'",
    "dph_difference": "'{}', {'state': 'b'}, {'state': 'a'}",
    "dph_ratio": "'{}', {'state': 'b'}, {'region': 'N'}",
    "dph_changes": "'{}', {'state': {'not': NULL}}",
    "dph_over": "'{}', box := {'region': 'S'}",
    "dph_compare": "'{}', '2026-03-02', '2026-03-09', {'state': 'c'}",
    "dph_rate": "'{}', ['state'], 'people', box := {'state': {'not': NULL}}",
    "dph_standardised": "'{}', [], 'state', 'people', box := {'state': {'not': NULL}}",
}
PEOPLE = pa.table({"state": ["a", "b", "c", "d"], "population": [10, 20, 30, 40], "standard": [1, 2, 3, 4]})


@cache
def published(name: str, folder: Path) -> tuple[Path, dict[str, dict[str, Release]]]:
    """The catalogue of a family in two periods, and its tables by period."""
    public, (axes, tables) = folder / name / "public", FAMILIES[name]
    public.mkdir(parents=True)
    (folder / name / "scratch").mkdir()
    made = {week: publish_family(public, axes, tables, period=week, seed=n) for n, week in enumerate(WEEKS[:2])}
    return build_catalogue(public, folder / name / "scratch"), made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


def alone(tables: list[Release], macro: str) -> duckdb.DuckDBPyConnection:
    """The catalogue of one table of a family, in some periods: no other table can answer."""
    connection = duckdb.connect()
    create_tables(
        connection, [(table.path, read_audit(table.path)) for table in tables], macros=[macro], described=False
    )
    return connection


def ask(
    connection: duckdb.DuckDBPyConnection, macro: str, table: str, question: str = "", before: str = ""
) -> tuple[list[dict[str, Any]], list[Any]]:
    """The rows of a macro asked of a table, and the names and types of its columns."""
    connection.register("people", PEOPLE)
    asked = (question or QUESTIONS[macro]).replace("'{}'", f"'{before}family_{table}'")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE answered AS FROM {before}{macro}({asked})")  # planned once
    kinds = [(one[0], one[1]) for one in connection.execute("DESCRIBE answered").fetchall()]
    return rows_of(connection, "FROM answered"), kinds


def widths(row: dict[str, Any]) -> float:
    return float(row["ci_upper"] - row["ci_lower"])


def assert_as_alone(mine: list[dict[str, Any]], own: list[dict[str, Any]]) -> None:
    """The same rows in the same order with the same estimates, and no wider intervals."""
    noise = {
        "unbiased",
        "noise_error",
        "ci_lower",
        "ci_upper",
        "cells",
        "note",
        "reliability",
        "rank_lower",
        "rank_upper",
        "ci_bins",
    }
    assert own and len(mine) == len(own)
    for row, one in zip(mine, own, strict=True):
        for name in one.keys() - noise:
            near = pytest.approx(one[name], rel=1e-9, abs=1e-9) if isinstance(one[name], float) else one[name]
            assert row[name] == near, name
        assert widths(row) <= widths(one) * (1 + 1e-9)
        if "unbiased" in one:
            assert row["unbiased"] == pytest.approx(one["unbiased"], rel=1e-9)
            assert row["noise_error"] <= one["noise_error"] * (1 + 1e-9)


@pytest.mark.parametrize("macro", mostly_soaked(QUESTIONS, range(0, len(QUESTIONS), 2)))
def test_a_macro_asked_of_counties_answers_from_states_with_the_same_columns(folder: Path, macro: str) -> None:
    catalogue, made = published("levels", folder)
    with (
        attached(catalogue) as connection,
        alone([tables["county_age_sex"] for tables in made.values()], macro) as own,
    ):
        (mine, kinds), (theirs, same) = (
            ask(connection, macro, "county_age_sex", before="r."),
            ask(own, macro, "county_age_sex"),
        )
    assert kinds == same
    assert_as_alone(mine, theirs)
    # The ends of a quantile's interval are those of bins.
    narrower = any(widths(row) < 0.999 * widths(one) for row, one in zip(mine, theirs, strict=True))
    assert narrower or macro == "dph_quantile"


@pytest.mark.parametrize(
    ("name", "table", "question"),
    mostly_soaked(
        [
            ("crossed", "county_ward", "'{}', ['house'], {'state': ['a', 'c']}"),
            ("crossed", "county_ward", "'{}', ['state', 'house']"),
            ("crossed", "state_age", "'{}', ['region']"),
            ("fine_only", "state", "'{}', ['region', 'state']"),
            ("levels", "county_age_sex", "'{}', ['county', 'state']"),
        ],
        [0, 3],
    ),
)
def test_other_families_give_their_estimates_with_no_wider_intervals(
    folder: Path, name: str, table: str, question: str
) -> None:
    catalogue, made = published(name, folder)
    with attached(catalogue) as connection, alone([one[table] for one in made.values()], "dph_marginal") as own:
        (mine, kinds), (theirs, same) = (
            ask(connection, "dph_marginal", table, question, "r."),
            ask(own, "dph_marginal", table, question),
        )
    assert kinds == same
    assert_as_alone(mine, theirs)


def test_parameters_and_boxes_as_text_choose_the_same_table(folder: Path) -> None:
    catalogue, _ = published("levels", folder)
    with attached(catalogue) as connection:
        told = rows_of(connection, "FROM r.dph_box('r.family_state', {'state': 'b'})")
        for box in ({"state": "b"}, json.dumps({"state": "b"})):
            assert rows_of(connection, "FROM r.dph_box('r.family_county_age_sex', ?)", box) == told
        prepared = "FROM r.dph_marginal('r.family_county_age_sex', ['state'], ?, period := ?)"
        told = rows_of(connection, "FROM r.dph_marginal('r.family_state', ['state'], {'state': ['a', 'd']})")
        for number, week in enumerate(WEEKS[:2]):
            found = rows_of(connection, prepared, json.dumps({"state": ["a", "d"]}), week)
            assert found == told[2 * number : 2 * number + 2]


def test_python_and_the_command_line_ask_the_table_that_sql_asks(folder: Path) -> None:
    catalogue, made = published("levels", folder)
    table = made[WEEKS[0]]["county_age_sex"]
    assert table.answer(state="b") == made[WEEKS[0]]["state"].answer(state="b")
    told: list[tuple[str, Any]] = [
        ("dph_marginal('{}', ['state', 'age'], period := '{week}')", table.marginal(["state", "age"]).to_dicts()),
        ("dph_share('{}', {'state': 'b'}, {'region': 'N'}, '{week}')", table.share({"state": "b"}, {"region": "N"})),
        ("dph_mean('{}', 'age', -5, 120, {'state': 'a'}, '{week}')", table.mean("age", -5, 120, {"state": "a"})),
        ("dph_over('{}', box := {'state': 'a'})", table.over(box={"state": "a"})),
    ]
    with attached(catalogue) as connection:
        for question, answer in told:
            asked = question.replace("{}", "r.family_county_age_sex").replace("{week}", WEEKS[0])
            rows = rows_of(connection, f"FROM r.{asked}")
            for row, one in zip(rows, answer if isinstance(answer, list) else [vars(answer)], strict=True):
                assert {name: row[name] for name in ("estimate", "ci_lower", "ci_upper")} == {
                    name: one[name] for name in ("estimate", "ci_lower", "ci_upper")
                }


def test_a_wrong_name_is_told_those_of_the_table_that_was_named(folder: Path) -> None:
    catalogue, _ = published("levels", folder)
    refused = {
        "dph_marginal('r.family_county_age_sex', ['stat'])": "the axes are age, sex, county, region, state",
        "dph_box('r.family_county_age_sex', {'wrd': 'x'})": "the axes are age, sex, county, region, state",
        "dph_box('r.family_county_age_sex', 'state')": "the box is a struct or a JSON object.*{'sex'",
        "dph_quantile('r.family_county_age_sex', 'county')": "no binned axis county.*those are age",
        "dph_quantile('r.family_county_age_sex', NULL)": "no binned axis null.*those are age",
        "dph_box('r.family_county_age_sex', {'state': 'e'})": "axis state has no category e; it has b, a, c, d",
    }
    with attached(catalogue) as connection:
        for question, message in refused.items():
            with pytest.raises(duckdb.Error, match=message):
                connection.execute(f"FROM r.{question}").fetchall()


def test_the_cells_of_a_table_are_its_own(folder: Path) -> None:
    catalogue, made = published("levels", folder)
    cells = made[WEEKS[0]]["county_age_sex"].table.height
    with attached(catalogue) as connection:
        for asked in (
            "family_county_age_sex",
            "dph_whole('r.family_county_age_sex')",
            "dph_band('r.family_county_age_sex')",
        ):
            ((rows,),) = connection.execute(f"SELECT count(*) FROM r.{asked}").fetchall()
            assert rows == 2 * cells


def test_each_publication_is_answered_by_the_best_table_that_it_has(tmp_path: Path) -> None:
    """After a period without states, a revision, and a withdrawal; and a catalogue grows to one that is built anew."""
    public, (axes, tables) = tmp_path / "public", FAMILIES["levels"]
    public.mkdir()
    (tmp_path / "scratch").mkdir()

    def wide(catalogue: Path) -> dict[tuple[str, int], float]:
        """The widths of a state's interval by publication, asked of counties."""
        with attached(catalogue) as connection:
            one = "FROM r.dph_box('r.family_county_age_sex', {{'state': 'b'}}{})"
            rows = [*rows_of(connection, one.format("")), *rows_of(connection, one.format(f", '{WEEKS[0]}', 1"))]
        return {(row["period"], row["revision"]): widths(row) for row in rows}

    publish_family(public, axes, tables, period=WEEKS[0])
    first = wide(build_catalogue(public, tmp_path / "scratch"))[WEEKS[0], 1]
    publish_family(public, axes, [["county", "age", "sex"]], period=WEEKS[1])
    publish_family(public, axes, [["county", "age", "sex"]], period=WEEKS[0], revision=2)
    publish_family(public, axes, [["county", "age", "sex"], ["sex", "state"]], period=WEEKS[2])
    found = wide(build_catalogue(public, tmp_path / "scratch"))
    assert found[WEEKS[0], 1] == first and found[WEEKS[0], 2] == found[WEEKS[1], 1] != first
    assert found[WEEKS[2], 1] < found[WEEKS[1], 1]
    assert held(public / "catalog.duckdb") == held(anew(public))
    note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
    PublishedFolder(public / "family" / f"period={WEEKS[0]}" / "revision=2").mark_withdrawn(note, tmp_path / "scratch")
    publish_family(public, [AGE], [["age"]], release="other")
    found = wide(build_catalogue(public, tmp_path / "scratch"))
    assert found[WEEKS[0], 1] == first and (WEEKS[0], 2) not in found


@pytest.mark.parametrize("seed", mostly_soaked(range(12), range(4)))
def test_no_sum_has_more_noise_in_the_table_that_is_chosen(seed: int) -> None:
    """For random trees and sets of groups; and asking the chosen table again chooses it."""
    draws = np.random.Generator(np.random.PCG64(seed))
    states = draws.integers(0, draws.integers(2, 7), size=draws.integers(6, 30)).astype(str).tolist()
    county = {"column": "county", "values": [f"c{n}" for n in range(len(states))], "levels": {"state": states}}
    if seed % 2:
        axes, tables = [WARD, county], [["county", "ward"], ["house", "state"], ["state"]]
    else:
        axes, tables = [AGE, county], [["county", "age"], ["state", "age"], ["state"]]
    made, _ = estimate_family(axes, tables, Fraction(1, 10), seed)
    audits = {name: unbiased_facts(table) for name, table in made.tables.items()}
    choice = FamilyChoice({name: table.domain for name, table in made.tables.items()}, audits.__getitem__)
    replaced = list(choice.all_better())
    for named, by, boxed, best in replaced:
        assert choice.best(named, by, boxed) == choice.best(best, by, boxed) == best
        for _ in range(10):
            box: dict[str, Any] = {
                name: sorted(set(draws.choice(values, 1 if name in by else 3).tolist()))
                for name, values in (("state", states), ("house", ["x", "y"]))
                if name in (*by, *boxed)
            }
            if "age" in (*by, *boxed):
                box["age"] = (0, 18) if "age" in by else (None, [18, 65, None][draws.integers(3)])
            noise = []
            for table in (made.tables[named], made.tables[best]):
                assert isinstance(table.unbiased, NestedCells)
                variance = table.unbiased.variance_of_sum(overlapped_cells(table.domain, box)[0])
                noise.append((variance, noise_law(table.unbiased.scale).half_width_of_linear(variance)))
            assert noise[1][0] <= noise[0][0] * (1 + 1e-9)
            assert noise[1][1] <= 1.03 * noise[0][1]
    assert replaced


@pytest.mark.parametrize(
    "tables", [[["year", "sex"], ["ward"], ["year", "ward"]], [["county"], ["state", "sex"], ["sex"]]]
)
def test_a_family_has_one_total_whichever_table_is_named(tables: list[list[str]]) -> None:
    """Without levels all tables tell one variance of the total, but not one interval: their draws have other scales."""
    year = {"column": "year", "start": 0, "stop": 100, "width": 1}
    made, _ = estimate_family([year, SEX, WARD, COUNTY], tables, Fraction(1, 2), 1)
    audits = {name: unbiased_facts(table) for name, table in made.tables.items()}
    choice = FamilyChoice({name: table.domain for name, table in made.tables.items()}, audits.__getitem__)
    (best,) = {choice.best(name, [], []) for name in made.tables}
    widths = {name: one.ci_upper - one.ci_lower for name, one in ((n, t.box()) for n, t in made.tables.items())}
    assert len(set(widths.values())) > 1 and widths[best] <= 1.03 * min(widths.values())
    others = {(named, *by, *boxed, found) for named, by, boxed, found in choice.all_better() if not by and not boxed}
    assert others == {(name, best) for name in made.tables if name != best}


@pytest.mark.parametrize("seed", range(4))
def test_card_page_answers_and_all_tables_of_a_generated_family_tell_one_total(tmp_path: Path, seed: int) -> None:
    """And the card leads with the table of which noise moves a cell least, beside an equal part of all rows."""
    draws = np.random.Generator(np.random.PCG64(seed))
    names = ["age", "sex", "ward", "county", "state"]
    sizes = draws.integers(1, 3, size=4)
    chosen = {tuple(sorted(draws.choice(names, size, replace=False).tolist())) for size in sizes}
    tables = [[*names] for names in sorted(chosen) if not {"county", "state"} <= {*names}] or [["age"]]
    public, scratch = tmp_path / "public", tmp_path / "scratch"
    public.mkdir()
    scratch.mkdir()
    made = publish_family(public, [AGE, SEX, WARD, COUNTY], tables, seed=seed)
    with attached(build_catalogue(public, scratch)) as connection:
        totals = [rows_of(connection, f"FROM r.dph_total('r.family_{name}')")[0] for name in made]
    told = {(one["unbiased"], one["ci_lower"], one["ci_upper"]) for one in totals}
    folder = next(iter(made.values())).path.parents[1]
    answer = best_of_folder(folder, [], [{}]).answer({})
    assert told == {(answer.unbiased, answer.ci_lower, answer.ci_upper)}
    (listed,) = history(folder.parents[1], {})
    assert (listed.total, listed.lower, listed.upper) == pytest.approx(next(iter(told)))
    card = (folder / "card.html").read_text()
    facts = total_facts(answer)
    assert facts["total"] in card and str(facts["total_reach"] or facts["total_ends"]) in card
    estimates = estimate_family([AGE, SEX, WARD, COUNTY], tables, Fraction(1, 2), seed)[0].tables
    noise = {name: one.unbiased.half_width_of_cell() * one.cells for name, one in estimates.items() if one.unbiased}
    first = re.findall(r"Table (\w+): counts by", card)[0]
    assert noise[first] == min(noise.values())


def test_a_table_that_knows_one_cell_worse_does_not_answer_for_that_cell() -> None:
    """State d is one county and house y one ward: the finer table knows their cell better, and most others worse."""
    made, _ = estimate_family(*FAMILIES["crossed"], Fraction(1, 2), 1)
    audits = {name: unbiased_facts(table) for name, table in made.tables.items()}
    choice = FamilyChoice({name: table.domain for name, table in made.tables.items()}, audits.__getitem__)
    noise = {}
    for name in ("county_ward", "house_state"):
        table = made.tables[name]
        assert isinstance(table.unbiased, NestedCells)
        for box in ({"state": "d", "house": "y"}, {"state": "a", "house": "x"}):
            cells = overlapped_cells(table.domain, box)[0]
            noise[name, box["state"]] = table.unbiased.variance_of_sum(cells)
    assert noise["county_ward", "d"] < noise["house_state", "d"]
    assert noise["county_ward", "a"] > 2 * noise["house_state", "a"]
    assert choice.best("county_ward", ["house", "state"], []) == "county_ward"
    assert choice.best("county_ward", ["state"], []) == "house_state"


def test_two_tables_of_a_family_are_compared_knowing_that_they_share_noise(folder: Path) -> None:
    catalogue, made = published("levels", folder)
    with attached(catalogue) as connection:
        (found, _) = rows_of(
            connection,
            "FROM r.dph_compare_releases('r.family_state_age', 'r.family_county_age_sex', {'age': [0, 18]}, "
            "second_box := {'sex': 'f'})",
        )
        sides = [
            rows_of(connection, f"FROM r.dph_box('r.family_{table}', {box}, '{WEEKS[0]}')")[0]
            for table, box in (("state_age", "{'age': [0, 18]}"), ("county_age_sex", "{'sex': 'f'}"))
        ]
    # Whatever the correlation, the error of a difference is at most the sum of both errors.
    assert found["noise_error"] == pytest.approx(sum(side["noise_error"] for side in sides))
    assert widths(found) > sum(widths(side) for side in sides)
    box: Box = {"age": (0, 18)}
    mine, before, later = (
        Publication.read(made[week][table].path)
        for week, table in ((WEEKS[0], "state_age"), (WEEKS[0], "county_age_sex"), (WEEKS[1], "county_age_sex"))
    )
    both = mine.answer(box).noise_error + before.answer(box).noise_error
    assert mine.change_since(before, box).noise_error == pytest.approx(both, rel=0.03)
    assert later.change_since(mine, box).noise_error == pytest.approx(both / 2**0.5, rel=0.2)


OTHERS = {
    "dph_range": "'{}', 'age', 18, NULL",
    "dph_quantile": "'{}', 'age'",
    "dph_band": "'{}'",
    "dph_whole": "'{}'",
    "dph_distances": "'{}'",
    "dph_quality": "'{}'",
    "dph_compare_releases": "'{}', '{}_state'",
}


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_asked_of_a_family_names_its_tables(folder: Path, macro: str) -> None:
    catalogue, tables = published("levels", folder)
    names = ", ".join(sorted(f"family_{table}" for table in tables[WEEKS[0]]))
    problem = (
        "no period asked for has a quality table" if macro == "dph_quality" else "family is a family of tables; name"
    )
    with attached(catalogue) as connection:
        connection.register("people", PEOPLE)
        asked = (QUESTIONS | OTHERS)[macro].replace("{}", "r.family")
        with pytest.raises(duckdb.Error, match=f"{macro}: .*{problem}") as refused:
            connection.execute(f"FROM r.{macro}({asked})").fetchall()
        assert macro == "dph_quality" or str(refused.value).endswith(f"one of them: {names}")


def test_the_view_of_a_family_lists_its_tables(tmp_path: Path) -> None:
    public, (axes, tables) = tmp_path / "public", FAMILIES["levels"]
    (tmp_path / "scratch").mkdir()
    for number, week in enumerate(WEEKS[:2], 1):
        made = publish_family(public, axes, tables, period=week)
        with attached(build_catalogue(public, tmp_path / "scratch")) as connection:  # the second one grows
            rows = rows_of(connection, "FROM r.family")
            assert [row["release"] for row in rows] == sorted(f"family_{table}" for table in made)
            assert {row["periods"] for row in rows} == {number}
            assert {row["axes"][0] for row in rows} <= {axis for row in rows for axis in row["axes"]}
            told = "SELECT DISTINCT family FROM r.dph_releases"
            assert connection.sql(told).fetchall() == [("family",)]
            # Tables of a family are charged together, so their steps stand once.
            charged = connection.sql("SELECT release, period, number FROM r.dph_charges").fetchall()
            assert {(release, period) for release, period, _ in charged} == {("family", one) for one in WEEKS[:number]}
            assert len(charged) == len(set(charged)) > 0


def test_a_release_keeps_its_name_where_it_became_a_family(tmp_path: Path) -> None:
    public, (axes, tables) = tmp_path / "public", FAMILIES["levels"]
    by_hand.publish(public, by_hand.estimate(axes), axes, "family", WEEKS[0])
    publish_family(public, axes, tables, period=WEEKS[1])
    (tmp_path / "scratch").mkdir()
    with attached(build_catalogue(public, tmp_path / "scratch")) as connection:
        assert [row["period"] for row in rows_of(connection, "FROM r.dph_total('r.family')")] == [WEEKS[0]]
        assert "cell_number" in rows_of(connection, "FROM r.family LIMIT 1")[0]
