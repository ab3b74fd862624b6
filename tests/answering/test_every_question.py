"""Every question in SQL and in Python: the same answers, in every place from which it can be asked."""

from __future__ import annotations

import itertools
import math
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest
from answering_scenario import (
    AXES,
    BOXES,
    PERIODS,
    TOLD,
    Asked,
    Box,
    as_json,
    assert_rows_told,
    assert_told,
    attached,
    made,
    published_once,
    rows_of,
    without_days,
)
from error_codes import coded
from oracle import Oracle
from quick_catalogue import build_catalogue

from dphist_pipeline.answering._macros import MACROS
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.integrations.duckdb import install
from dphist_pipeline.solvers.trees.regular_tree import branching_tree, covariance
from examples import SOAKING, mostly_soaked

pytestmark = pytest.mark.slow

# All macros but those that read a second table.
QUESTIONS = {
    "dph_total": "dph_total('{}weekly')",
    "dph_box": "dph_box('{}weekly', {{'state': 'A'}})",
    "dph_range": "dph_range('{}weekly', 'day', '2026-01-14', NULL, {{'state': 'A'}})",
    "dph_marginal": "dph_marginal('{}weekly', ['state', 'age'], {{'region': 'S'}})",
    "dph_share": "dph_share('{}weekly', {{'state': 'A'}}, {{'age': [18, NULL]}})",
    "dph_quantile": "dph_quantile('{}weekly', 'day', 0.25)",
    "dph_mean": "dph_mean('{}weekly', 'age', -5, 120, {{'state': 'A'}})",
    "dph_sum": "dph_sum('{}weekly', 'age', box := {{'age': [0, 65]}})",
    "dph_ranks": "dph_ranks('{}weekly', 'state')",
    "dph_difference": "dph_difference('{}weekly', {{'state': 'A'}}, {{'state': {{'not': 'B'}}}})",
    "dph_ratio": "dph_ratio('{}weekly', {{'state': 'A'}}, {{'age': [18, NULL]}})",
    "dph_changes": "dph_changes('{}weekly', {{'county': 'Mobile'}})",
    "dph_over": "dph_over('{}weekly', '2026-03-02', '2026-03-16')",
    "dph_compare": "dph_compare('{}weekly', '2026-03-02', '2026-03-16')",
    "dph_band": "dph_band('{}weekly', 0.9, {{'region': 'N'}})",
    "dph_whole": "dph_whole('{}weekly')",
    "dph_distances": "dph_distances('{}weekly')",
    "dph_quality": "dph_quality('{}weekly')",
}


@pytest.fixture(scope="module")
def store() -> Asked:
    return published_once()


def none_as_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def ask(store: Asked, question: str, *parameters: object) -> list[dict[str, Any]]:
    with attached(store.catalogue) as connection:
        return rows_of(connection, f"FROM r.{question}", *parameters)


@pytest.mark.parametrize("box", mostly_soaked(BOXES, [1]), ids=str)
def test_boxes_shares_and_changes_are_the_same_in_sql_and_python(store: Asked, box: Box) -> None:
    for row in ask(store, "dph_box('r.weekly', ?)", as_json(box)):
        told = store.releases[row["period"]].answer(**box) if row["period"] in TOLD else None
        assert_told(row, store.oracles[row["period"]].answer(**box), told)
    for part in BOXES[1:] if SOAKING else BOXES[2:3]:
        for row in ask(store, "dph_share('r.weekly', ?, ?)", as_json(part), as_json(box)):
            told = store.releases[row["period"]].share(part, box) if row["period"] in TOLD else None
            assert_told(row, store.oracles[row["period"]].share(part, box), told)
            if row["estimate"] is not None:
                assert row["part_estimate"] / row["whole_estimate"] == pytest.approx(row["estimate"])
    changes = ask(store, "dph_changes('r.weekly', ?)", as_json(box))
    for row, (first, second) in zip(changes, pairwise(PERIODS), strict=True):
        told = store.releases[second].change_since(store.releases[first], box) if second in TOLD else None
        assert_told(row, store.oracles[second].change_since(store.oracles[first], box), told)
        assert (row["first_period"], row["second_period"]) == (first, second)
        assert row["second_estimate"] - row["first_estimate"] == pytest.approx(row["estimate"])
    # Two periods that are named, of two kinds of noise, the later one first.
    first, second = list(PERIODS)[3], list(PERIODS)[2]
    (row,) = ask(store, f"dph_compare('r.weekly', '{first}', '{second}', ?)", as_json(box))
    assert_told(row, store.oracles[second].change_since(store.oracles[first], box))


def test_a_change_asks_for_a_release_and_says_how_to_get_one(store: Asked) -> None:
    earlier, later = list(store.releases)[:2]
    with pytest.raises(
        Refused,
        check=coded("not_a_release"),
        match=r"not a str: .*Release\.published\(Store\.open\(FOLDER\), 'weekly', PERIOD",
    ):
        store.releases[later].change_since(earlier)  # type: ignore[arg-type]


RANGES: list[tuple[str, Any, Any]] = [
    *[("age", 0, 65), ("age", 10, 70), ("age", 20, 30), ("age", None, 5), ("age", 18, None), ("age", None, None)],
    *[("day", "2026-01-12", "2026-01-26"), ("day", "2026-01-13", "2026-02-25"), ("day", None, "2026-01-14")],
]


@pytest.mark.parametrize(("axis", "low", "high"), mostly_soaked(RANGES, [0, 2, 7]))
def test_a_range_says_what_it_covers_in_sql_and_python(store: Asked, axis: str, low: Any, high: Any) -> None:
    for box in ({}, {"state": "A"}):
        rows = ask(store, "dph_range('r.weekly', ?, ?, ?, ?)", axis, low, high, as_json(box))
        for period, oracle in store.oracles.items():
            expected = oracle.range(axis, low, high, box)
            told = store.releases[period].range(axis, low, high, box) if period in TOLD else None
            mine = {row["covers"]: row for row in rows if row["period"] == period}
            assert told is None or told.covers == expected.covers
            if expected.covers == "exactly":
                assert list(mine) == ["exactly"]
                assert_told(mine["exactly"], expected.outer, told and told.outer)
                assert told is None or repr(told.inner) == repr(told.outer)
                continue
            assert sorted(mine) == ["inner", "outer"]
            assert_told(mine["inner"], expected.inner, told and told.inner)
            assert_told(mine["outer"], expected.outer, told and told.outer)


def test_ends_that_cut_bins_name_the_edges_that_were_taken(store: Asked) -> None:
    found = ask(store, "dph_range('r.weekly', 'age', 10, 70, period := '2026-03-02')")
    assert [(row["covers"], row["lower_end"], row["upper_end"]) for row in found] == [
        ("inner", "18.0", "65.0"),
        ("outer", "0.0", "and above"),
    ]
    below = ask(store, "dph_range('r.weekly', 'age', NULL, 0, period := '2026-03-02')")
    assert [(row["lower_end"], row["upper_end"]) for row in below] == [("and below", "0.0")]
    (inner, _) = ask(store, "dph_range('r.weekly', 'age', 20, 30, period := '2026-03-02')")
    assert (inner["cells"], inner["estimate"], inner["ci_upper"], inner["lower_end"]) == (0, 0, 0, None)


MARGINALS = [["age"], ["day", "county"], ["state"], ["region", "state"], ["state", "day"], []]


@pytest.mark.parametrize(
    ("by", "box"), mostly_soaked(list(itertools.product(MARGINALS, BOXES)), [5, 10, 15, 20]), ids=str
)
def test_marginals_are_the_same_in_sql_and_python_and_add_up(store: Asked, by: list[str], box: Box) -> None:
    rows = ask(store, "dph_marginal('r.weekly', ?, ?)", by, as_json(box))
    for period, oracle in store.oracles.items():
        mine, release = [row for row in rows if row["period"] == period], store.releases[period]
        told = release.marginal(by, box) if period in TOLD else None
        assert_rows_told(mine, release, oracle.marginal(by, box), told)
        whole = oracle.answer(**box)
        assert sum(row["cells"] for row in mine) == whole.cells
        assert sum(row["estimate"] for row in mine) == pytest.approx(whole.estimate)


# One period has no interval; three of those left out ask of others, and `dph_quality` is about rows.
@pytest.mark.parametrize("question", sorted({*QUESTIONS} - {"dph_compare", "dph_over", "dph_distances", "dph_quality"}))
def test_nothing_is_said_of_an_interval_where_there_is_none(store: Asked, question: str) -> None:
    asked = f"SELECT told FROM r.{QUESTIONS[question].format('r.')} AS told"
    with attached(store.catalogue) as connection:
        rows = [told for (told,) in connection.execute(asked).fetchall()]
    # `capped` says that neither estimate nor interval covers what the bound cut.
    bare = [row | {"capped": None} for row in rows if row.get("ci_lower", 0.0) is None]
    said = [text for row in bare for text in row.values() if isinstance(text, str) and "interval" in text]
    assert [text for text in said if not text.startswith("no interval")] == []
    assert bare or question == "dph_whole"


def test_a_row_of_a_marginal_is_the_answer_to_its_box(store: Asked) -> None:
    for release in (store.releases[period] for period in TOLD[1:2]):
        for row in release.marginal(["state", "age"], {"region": ["S", None]}).to_dicts()[:: 1 if SOAKING else 3]:
            ages = (
                None if row["age_upper"] is None and row["age_lower"] is None else (row["age_lower"], row["age_upper"])
            )
            if ages is None:
                continue
            ends = tuple(None if end is None or math.isinf(end) else end for end in ages)
            if ends[0] is None and ends[1] is None:
                continue
            found = release.answer(age=ends, state=row["state"], region=["S", None])
            assert row["estimate"] == pytest.approx(found.estimate)
            assert row["cells"] == found.cells
            assert none_as_nan(row["ci_upper"]) == pytest.approx(found.ci_upper, nan_ok=True)
            assert none_as_nan(row["noise_error"]) == pytest.approx(found.noise_error, nan_ok=True)


@pytest.mark.parametrize(
    ("axis", "box"),
    mostly_soaked(list(itertools.product(["age", "day"], [*BOXES[:2], BOXES[3]])), [0, 4, 5]),
    ids=str,
)
def test_quantiles_are_the_same_in_sql_and_python(store: Asked, axis: str, box: Box) -> None:
    shares = (0.02, 0.5, 0.9)
    rows = ask(store, "dph_quantile('r.weekly', ?, ?, ?)", axis, list(shares), as_json(box))
    assert [(row["period"], row["q"]) for row in rows] == list(itertools.product(PERIODS, shares))
    told = {
        period: dict(zip(shares, store.releases[period].quantile(axis, shares, box), strict=True)) for period in TOLD
    }
    for row in rows:
        expected = store.oracles[row["period"]].quantile(axis, row["q"], box)
        assert_told(row, expected, told.get(row["period"], {}).get(row["q"]))


@pytest.mark.parametrize("kind", mostly_soaked(["cells", "tree"], [1]))
def test_quantiles_that_noise_leaves_wide_are_the_same_in_sql_and_python(tmp_path: Path, kind: str) -> None:
    axes = [{"column": "income", "start": 0, "stop": 600, "width": 1}, by_hand.WARD]
    start = by_hand.estimate(axes, np.full((600, 3), 40.0), scale=Fraction(100), off=0)
    if kind == "tree":
        tree = branching_tree(start.domain.shape, 2)
        parts = covariance(tree, [noise_law(Fraction(100)).variance] * len(tree.widths))
        unbiased = NestedCells(start.values, Fraction(100), tuple(map(SharedNoise, parts, tree.widths)))
        start = replace(start, unbiased=unbiased)
    release = by_hand.publish(tmp_path, start, axes)
    oracle = Oracle.of(release)
    (tmp_path / "scratch").mkdir()
    with attached(build_catalogue(tmp_path, tmp_path / "scratch")) as connection:
        asked = itertools.product((0.1, 0.5, 0.8), ({}, {"ward": "medicine", "income": (77, 501)}))
        for q, box in itertools.islice(asked, 0, None, 1 if SOAKING else 3):
            (row,) = rows_of(connection, "FROM r.dph_quantile('r.weekly', 'income', ?, ?)", q, as_json(box))
            found = release.quantile("income", q, box)
            assert found.ci_upper - found.ci_lower > 20
            assert found.ci_lower < found.estimate < found.ci_upper
            assert_told(row, oracle.quantile("income", q, box), found)


def test_a_quantile_of_two_bins_pays_for_the_one_edge_between_them(tmp_path: Path) -> None:
    axes = [{"column": "stay", "edges": [0, 50, 100]}]
    law = noise_law(by_hand.SCALE)
    one_edge, two = (float(law.chernoff_reach(np.array([law.variance / 2]), missed)[0]) for missed in (0.05, 0.025))
    balance = (one_edge + two) / 2
    values = np.array([1000 + balance, 1000 - balance])
    found = by_hand.publish(tmp_path, by_hand.estimate(axes, values, off=0), axes).quantile("stay", 0.5)
    assert (found.ci_lower, found.ci_upper) == (0, 50)


@pytest.mark.parametrize("box", mostly_soaked(BOXES, [3]), ids=str)
def test_bands_and_whole_counts_are_the_same_in_sql_and_python(store: Asked, box: Box) -> None:
    for level in (0.5, 0.95, 0.999) if SOAKING else (0.5, 0.95):
        rows = ask(store, "dph_band('r.weekly', ?, ?)", level, as_json(box))
        for period, release in store.releases.items():
            mine = [row for row in rows if row["period"] == period]
            told = release.band(level, box) if period in TOLD and level == 0.95 else None
            assert_rows_told(mine, release, store.oracles[period].band(level, box), told)
    rows = ask(store, "dph_whole('r.weekly')")
    for period, release in store.releases.items():
        mine = [without_days(row) for row in rows if row["period"] == period]
        assert mine == list(release.whole().rows())


REFUSED = {
    "dph_marginal('r.weekly', ['wrad'])": "there is no axis wrad in period 2026-03-02; the axes are age, county, reg",
    "dph_marginal('r.weekly', ['age'], {'wrad': 'x'})": "there is no axis wrad",
    "dph_marginal('r.weekly', ['age'], period := 'x')": "there is no period x; it has 2026-03-02 to 2026-04-20",
    "dph_range('r.weekly', 'county', 1, 2)": "there is no binned axis county in period 2026-03-02; those are age, day",
    "dph_range('r.weekly', 'age', 65, 18)": "axis age takes two ends, low below high",
    "dph_range('r.weekly', 'age', 'x', 18)": "axis age takes two ends",
    "dph_range('r.weekly', 'day', NULL, '2026-03-31')": "axis day has bins from 2026-01-05 to 2026-03-30 only",
    "dph_share('r.weekly', {'state': 'a'})": "axis state has no category a; it has A, B, C",
    "dph_share('r.weekly', {'state': 'A'}, {'region': 'N'})": "no cells in common along axis county",
    "dph_share('r.weekly', {'state': []}, {'region': 'N'})": "no cells lie where axis county is asked",
    "dph_share('r.weekly', {'state': 'x'}, {'region': 'N'})": "axis state has no category x; it has A, B, C",
    "dph_quantile('r.weekly', 'wrad')": "there is no binned axis wrad in period 2026-03-02; those are age, day",
    "dph_quantile('r.weekly', 'age', 1.5)": "a quantile lies between 0 and 1",
    "dph_quantile('r.weekly', 'age', [0.5, 1])": "a quantile lies between 0 and 1",
    "dph_quantile('r.weekly', 'age', [])": "a quantile lies between 0 and 1",
    "dph_quantile('r.weekly', 'age', 'x')": "a quantile lies between 0 and 1",
    "dph_compare('r.weekly', '2026-03-02', '2026-03-03')": "there is no period 2026-03-03",
    "dph_compare('r.weekly', '2026-03-02', '2026-03-02')": "a comparison takes two periods",
    "dph_band('r.weekly', 1)": "the level lies between 0 and 1",
    "dph_band('r.weekly', box := {'age': [1, 2]})": "is not an edge",
    "dph_whole('r.weekly', 'x')": "there is no period x",
}


@pytest.mark.parametrize(("question", "message"), mostly_soaked(REFUSED.items(), range(0, len(REFUSED), 2)))
def test_a_wrong_name_is_told_the_right_ones(store: Asked, question: str, message: str) -> None:
    name = question.partition("(")[0]
    for columns in ("*", "count(*)"):
        with attached(store.catalogue) as connection, pytest.raises(duckdb.Error, match=f"{name}: .*{message}"):
            connection.execute(f"SELECT {columns} FROM r.{question}").fetchall()


def test_python_refuses_the_same(store: Asked) -> None:
    release = store.releases["2026-03-02"]
    questions: dict[str, Callable[[], object]] = {
        "no such axis. Did you mean 'county'": lambda: release.marginal(["conty"]),
        "give a list of axes": lambda: release.marginal("age"),
        "no binned axis county in period 2026-03-02; those are age, day": lambda: release.range("county", 1, 2),
        "low below high": lambda: release.range("age", 65, 18),
        "has bins from 2026-01-05": lambda: release.range("day", "2025-12-01", None),
        "part and whole have no cells in common along axis county": lambda: release.share(
            {"state": "A"}, {"region": "N"}
        ),
        "between 0 and 1, as 0.5": lambda: release.quantile("age", 1.0),
        "the level lies between 0 and 1, as 0.95": lambda: release.band(1.0),
    }
    for message, question in questions.items():
        with pytest.raises(QuestionRefused, match=message):
            question()


def test_an_axis_may_be_called_self_or_as_a_column_of_an_answer(tmp_path: Path) -> None:
    names = ("self", "cells", "note", "basis", "noise_error", "count", "level")
    axes = [{"column": name, "values": ["a", "b"]} for name in names]
    estimate = by_hand.estimate(axes)
    release = by_hand.publish(tmp_path, estimate, axes)
    (tmp_path / "scratch").mkdir()
    catalogue = build_catalogue(tmp_path, tmp_path / "scratch")
    for name in ("self", "count"):
        told = release.answer(**{name: "a"})
        assert (told.cells, told.estimate) == (64, estimate.box(**{name: "a"}).estimate)
    with attached(catalogue) as connection:
        for name in names:
            found = connection.execute(f"FROM r.dph_marginal('r.weekly', ['{name}'])").fetchall()
            assert [(row[2], row[9]) for row in found] == [("a", 64), ("b", 64)]
            assert [row[3] for row in found] == [estimate.box(**{name: value}).estimate for value in "ab"]
        for question in ("dph_band('r.weekly')", "dph_whole('r.weekly')"):
            assert len(connection.execute(f"FROM r.{question}").fetchall()) == 128


Way = Callable[[Asked, Path, pytest.MonkeyPatch], tuple[Any, str]]


def opened(store: Asked, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str]:
    return duckdb.connect(str(store.catalogue), read_only=True), ""


def copied(store: Asked, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str]:
    connection = duckdb.connect()
    connection.execute(
        f"ATTACH '{shutil.copy(store.catalogue, folder / 'copy.db')}' AS \"Our numbers.2026\" (READ_ONLY)"
    )
    return connection, '"Our numbers.2026".'


def from_another_folder(store: Asked, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str]:
    shutil.copy(store.catalogue, folder / "mine.duckdb")
    patch.chdir(folder)
    connection = duckdb.connect()
    connection.execute("ATTACH 'mine.duckdb' AS m (READ_ONLY)")
    return connection, "m.main."


def installed(store: Asked, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str]:
    connection = duckdb.connect(str(folder / "warehouse.duckdb"))
    connection.execute("CREATE TABLE weekly AS SELECT 'something else' AS kept")
    assert install(connection, store.catalogue.parent) == ["weekly"]
    connection.close()
    return duckdb.connect(str(folder / "warehouse.duckdb"), read_only=True), "dph."


@cache
def every_answer(catalogue: Path) -> dict[str, list[dict[str, Any]]]:
    with attached(catalogue) as connection:
        return {name: rows_of(connection, f"FROM r.{asked.format('r.')}") for name, asked in QUESTIONS.items()}


@pytest.mark.parametrize("way", mostly_soaked([opened, copied, from_another_folder, installed], [3]))
def test_every_macro_answers_however_it_is_reached(
    store: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    assert {*QUESTIONS, "dph_rate", "dph_standardised", "dph_compare_releases"} == set(MACROS)
    connection, before = way(store, tmp_path, monkeypatch)
    with connection:
        for name, question in QUESTIONS.items():
            expected = [list(row.values()) for row in every_answer(store.catalogue)[name]]
            assert expected
            assert repr(
                [list(row) for row in connection.execute(f"FROM {before}{question.format(before)}").fetchall()]
            ) == (repr(expected))


@pytest.mark.many_examples
def test_macros_answer_while_a_new_period_is_published(tmp_path: Path) -> None:
    public, scratch = tmp_path / "public", tmp_path / "scratch"
    public.mkdir()
    scratch.mkdir()
    for period in ("2026-03-02", "2026-03-16"):
        by_hand.publish(public, made("cells"), AXES, period=period)
    catalogue = build_catalogue(public, scratch)
    ended = threading.Event()
    questions = dict(list(QUESTIONS.items())[:: 1 if SOAKING else 5])

    def publish() -> None:
        for number in range(4 if SOAKING else 1):
            by_hand.publish(public, made("cells"), AXES, period=f"2026-0{number + 4}-06")
            build_catalogue(public, scratch)
        ended.set()

    with attached(catalogue) as before:
        expected = {
            name: before.execute(f"FROM r.{asked.format('r.')}").fetchall() for name, asked in questions.items()
        }
        publisher = threading.Thread(target=publish)
        publisher.start()
        rounds = 0
        while not ended.is_set() or rounds == 0:
            with attached(catalogue) as fresh:
                for name, asked in questions.items():
                    assert before.execute(f"FROM r.{asked.format('r.')}").fetchall() == expected[name]
                    assert len(fresh.execute(f"FROM r.{asked.format('r.')}").fetchall()) >= len(expected[name])
            rounds += 1
        publisher.join()
    with attached(catalogue) as after:
        assert len(after.execute("FROM r.dph_total('r.weekly')").fetchall()) == (6 if SOAKING else 3)
