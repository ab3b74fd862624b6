"""Releases of the local model answer every question, in SQL as in Python, beside those of an office."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import reported
from answering_scenario import as_json, assert_rows_told, assert_told, attached, rows_of, without_days
from error_codes import coded
from oracle import Oracle
from quick_catalogue import build_catalogue

from dphist_pipeline.base.published_columns import KINDS_OF_VALUES
from dphist_pipeline.errors import Halted
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import LEVEL, ReportLaw, normal_factor, report_reach
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from dphist_pipeline.releasing.releases import Release
from examples import SOAKING, mostly_soaked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]

AXES = {"age": [reported.AGE], "day": [reported.DAY]}
# Of each period how contributors answered: encoding, epsilon, reports, share that takes part, how far off.
PERIODS: dict[str, tuple[Any, ...]] = {
    "2026-03-02": ("symmetric", 2.0, 2500),
    "2026-03-09": ("symmetric", 2.0, 2600),
    "2026-03-16": ("optimized", 1.5, 2500),
    "2026-03-23": ("grr", 3.0, 2500, 1, 37.0),
    "2026-03-30": ("grr", 8.0, 2500, 0.2),
    "2026-04-06": ("symmetric", 0.5, 40, 1, 1e4),
}
TOLD = ("2026-03-16", "2026-03-23")  # the periods that Python is asked for, too: each takes its time
RANGES: dict[str, list[tuple[Any, Any]]] = {
    "age": [(None, None), (0, 90), (6, 45), (45, None), (90 - 15, 90), (None, 6)],
    "day": [(None, None), ("2026-01-05", "2026-01-12"), ("2026-01-12", "2026-03-23"), (None, "2026-02-09")],
}
CUT: dict[str, list[tuple[Any, Any]]] = {
    "age": [(7, 50), (7, 9), (0, 31.5), (None, 89)],
    "day": [("2026-01-06", "2026-02-20")],
}


@dataclass(frozen=True)
class Town:
    """A catalogue, what was published by axis and period, and a release of an office beside it."""

    catalogue: Path
    releases: dict[str, dict[str, Release]]
    made: dict[str, dict[str, Estimate]]
    oracles: dict[str, dict[str, Oracle]]
    office: Release


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    public = tmp_path_factory.mktemp("public")
    made = {axis: {p: reported.estimate(axes, *how) for p, how in PERIODS.items()} for axis, axes in AXES.items()}
    releases = {
        axis: {
            period: reported.publish(public, one, AXES[axis], f"town_{axis}", period) for period, one in periods.items()
        }
        for axis, periods in made.items()
    }
    axes = [by_hand.AGE, by_hand.WARD]
    office = by_hand.publish(public, by_hand.estimate(axes), axes, "wards")
    oracles = {axis: {period: Oracle.of(one) for period, one in ones.items()} for axis, ones in releases.items()}
    return Town(build_catalogue(public, tmp_path_factory.mktemp("scratch")), releases, made, oracles, office)


def ask(town: Town, question: str, *parameters: object) -> list[dict[str, Any]]:
    with attached(town.catalogue) as connection:
        return rows_of(connection, f"FROM r.{question}", *parameters)


ASKED = [(axis, ends) for axis, all_ends in RANGES.items() for ends in all_ends]


@pytest.mark.parametrize(("axis", "ends"), mostly_soaked(ASKED, [8]), ids=str)
def test_boxes_totals_and_changes_are_the_same_in_sql_and_python(town: Town, axis: str, ends: Any) -> None:
    releases = town.releases[axis]
    rows = ask(town, f"dph_box('r.town_{axis}', ?)", as_json({axis: ends}))
    assert [row["period"] for row in rows] == list(PERIODS)
    for row in rows:
        estimate = town.made[axis][row["period"]].box(**{axis: ends})
        assert_told(row, town.oracles[axis][row["period"]].answer(**{axis: ends}), estimate)
        assert row["basis"] == "linear"
        assert row["period"] not in TOLD or releases[row["period"]].answer(**{axis: ends}) == estimate
    if ends == (None, None):
        assert repr(ask(town, f"dph_total('r.town_{axis}')")) == repr(rows)
    (back,) = ask(town, f"dph_compare('r.town_{axis}', '2026-04-06', '2026-03-02', ?)", as_json({axis: ends}))
    changes = ask(town, f"dph_changes('r.town_{axis}', ?)", as_json({axis: ends}))
    assert [row["second_period"] for row in changes] == list(PERIODS)[1:]
    for row in [*changes, back]:
        first, second = row["first_period"], row["second_period"]
        told = releases[second].change_since(releases[first], {axis: ends}) if second in TOLD else None
        assert_told(row, town.oracles[axis][second].change_since(town.oracles[axis][first], {axis: ends}), told)


@pytest.mark.parametrize(
    ("axis", "ends"),
    mostly_soaked(ASKED + [(axis, ends) for axis in CUT for ends in CUT[axis]], [4, 8, 9, 12, 14]),
    ids=str,
)
def test_ranges_are_the_same_in_sql_and_python(town: Town, axis: str, ends: Any) -> None:
    rows = ask(town, f"dph_range('r.town_{axis}', ?, ?, ?)", axis, *ends)
    for period, oracle in town.oracles[axis].items():
        expected = oracle.range(axis, *ends, {})
        told = town.releases[axis][period].range(axis, *ends) if period in TOLD else None
        mine = {row["covers"]: row for row in rows if row["period"] == period}
        if expected.covers == "exactly":
            assert list(mine) == ["exactly"]
            assert_told(mine["exactly"], expected.outer, told and told.outer)
        else:
            assert_told(mine["inner"], expected.inner, told and told.inner)
            assert_told(mine["outer"], expected.outer, told and told.outer)
    assert {row["covers"] for row in rows} == ({"inner", "outer"} if ends in CUT[axis] else {"exactly"})


@pytest.mark.parametrize(("axis", "ends"), mostly_soaked(ASKED, [4]), ids=str)
def test_shares_are_the_same_in_sql_and_python(town: Town, axis: str, ends: Any) -> None:
    for whole in RANGES[axis][: 4 : 1 if SOAKING else 2]:
        try:
            found = {period: town.releases[axis][period].share({axis: ends}, {axis: whole}) for period in TOLD}
        except QuestionRefused:  # the part lies outside of the whole: SQL refuses it, too
            with pytest.raises(duckdb.Error, match="part and whole have no cells in common"):
                ask(town, f"dph_share('r.town_{axis}', ?, ?)", as_json({axis: ends}), as_json({axis: whole}))
            continue
        for row in ask(town, f"dph_share('r.town_{axis}', ?, ?)", as_json({axis: ends}), as_json({axis: whole})):
            told = found.get(row["period"])
            assert_told(row, town.oracles[axis][row["period"]].share({axis: ends}, {axis: whole}), told)


@pytest.mark.parametrize(("axis", "ends"), mostly_soaked(ASKED, [2]), ids=str)
def test_marginals_bands_and_whole_counts_are_the_same_in_sql_and_python(town: Town, axis: str, ends: Any) -> None:
    box = {axis: ends}
    for by in ([axis], []):
        rows = ask(town, f"dph_marginal('r.town_{axis}', ?, ?)", by, as_json(box))
        for period, release in town.releases[axis].items():
            mine = [row for row in rows if row["period"] == period]
            told = release.marginal(by, box) if period in TOLD else None
            assert_rows_told(mine, release, town.oracles[axis][period].marginal(by, box), told)
            assert {row["basis"] for row in mine} == {"linear"}
    for level in (0.5, 0.95, 0.999) if SOAKING else (0.5, 0.95):
        rows = ask(town, f"dph_band('r.town_{axis}', ?, ?)", level, as_json(box))
        for period, release in town.releases[axis].items():
            mine = [row for row in rows if row["period"] == period]
            told = release.band(level, box) if period in TOLD and level == 0.95 else None
            assert_rows_told(mine, release, town.oracles[axis][period].band(level, box), told)
    rows = ask(town, f"dph_whole('r.town_{axis}')")
    for period, release in town.releases[axis].items():
        told = release.whole().rows()
        assert [without_days(row) for row in rows if row["period"] == period] == told


@pytest.mark.parametrize(("axis", "ends"), mostly_soaked(ASKED, [7]), ids=str)
def test_quantiles_are_the_same_in_sql_and_python(town: Town, axis: str, ends: Any) -> None:
    widths = set()
    for q in (0.02, 0.25, 0.5, 0.9) if SOAKING else (0.02, 0.5, 0.9):
        for row in ask(town, f"dph_quantile('r.town_{axis}', ?, ?, ?)", axis, q, as_json({axis: ends})):
            release = town.releases[axis][row["period"]]
            told = release.quantile(axis, q, {axis: ends}) if row["period"] in TOLD else None
            assert_told(row, town.oracles[axis][row["period"]].quantile(axis, q, {axis: ends}), told)
            widths.add(row["ci_upper"] - row["ci_lower"])
    assert len(widths) > 1 or ends in ((0, 6), (75, 90), (None, 6), ("2026-01-05", "2026-01-12"))


def test_a_row_of_a_marginal_is_its_boxs_answer_with_its_cells_interval(town: Town) -> None:
    for period in list(town.releases["age"])[-1:]:
        release = town.releases["age"][period]
        published = release.table.to_dicts()
        for row, cell in zip(release.marginal(["age"]).to_dicts(), published, strict=True):
            found = release.answer(age=(row["age_lower"], row["age_upper"]))
            assert (row["ci_lower"], row["ci_upper"], row["noise_error"]) == pytest.approx(
                (found.ci_lower, found.ci_upper, found.noise_error)
            )
            assert (cell["ci_lower"], cell["ci_upper"]) == pytest.approx((found.ci_lower, found.ci_upper))
        widths = {round(cell["ci_upper"] - cell["ci_lower"], 6) for cell in published}
        assert len(widths) > 1, period
        unbiased = Oracle.of(release).unbiased
        assert unbiased is not None and max(widths) == pytest.approx(2 * unbiased.half_width_of_cell(), abs=1e-5)


def test_an_interval_is_that_of_the_law_at_the_estimate(town: Town) -> None:
    made = town.made["age"]["2026-03-23"]
    assert isinstance(made.unbiased, ReportedCells)
    law, atoms, count = made.unbiased.law, 3 + 2 + 1, float(made.unbiased.values[1:4].sum())
    variance = law.alpha * atoms - law.beta * atoms**2 + (law.gamma + law.delta * atoms) * count
    slope = abs(law.gamma + law.delta * atoms)
    found = made.box(age=(6, 45))
    assert found.noise_error == pytest.approx(math.sqrt(variance))
    reach = float(report_reach(normal_factor(LEVEL), variance, slope, law.step))
    assert (found.ci_lower, found.ci_upper) == pytest.approx((count - reach, count + reach))
    assert reach > 1.959964 * math.sqrt(variance)


def test_a_count_below_zero_has_the_variance_of_zero_in_sql_too(town: Town) -> None:
    for row in ask(town, "dph_box('r.town_age', {'age': [45, 60]})"):
        made = town.made["age"][row["period"]].unbiased
        assert isinstance(made, ReportedCells) and row["unbiased"] < 0
        law, atoms = made.law, 4
        assert row["noise_error"] == pytest.approx(math.sqrt(law.alpha * atoms - law.beta * atoms**2))


def test_cells_of_equal_variances_and_other_slopes_are_a_row_each(tmp_path: Path) -> None:
    axes = [{"column": "age", "edges": [0, 18, 65]}]
    made = reported.estimate(axes)
    cells = ReportedCells(np.array([-5.0, -5.0]), np.array([1, 2]), ReportLaw(3.0, 1.0, 0.5, -0.25, 1.0))
    release = reported.publish(tmp_path, Estimate(made.domain, made.values, made.charges, cells), axes)
    rows = release.marginal(["age"]).to_dicts()
    assert [row["noise_error"] for row in rows] == pytest.approx([math.sqrt(2)] * 2)
    reaches = [float(report_reach(normal_factor(LEVEL), 2.0, slope, 1.0)) for slope in (0.25, 0.0)]
    assert [row["ci_upper"] for row in rows] == pytest.approx([reach - 5 for reach in reaches])


def test_audit_and_catalogue_hold_the_law_beside_releases_of_an_office(town: Town) -> None:
    made = town.made["age"]["2026-03-30"].unbiased
    assert isinstance(made, ReportedCells)
    audit = json.loads((town.releases["age"]["2026-03-30"].path / "audit.json").read_bytes())
    assert audit["report_law"] == asdict(made.law)
    assert audit["atoms"] == made.atoms.tolist()
    assert (audit["unbiased_noise_scale"], audit["unbiased_covariance"]) == (None, None)
    assert audit["charges"] == [{"step": "reports", "epsilon": "8", "noise_scale": None}]
    assert "discrete Laplace" not in audit["noise"]
    rows = ask(town, "dph_releases ORDER BY release, period")
    laws = [{name: row[name] for name in asdict(made.law)} for row in rows if row["release"] == "town_age"]
    assert laws[list(PERIODS).index("2026-03-30")] == asdict(made.law)
    (central,) = [row for row in rows if row["release"] == "wards"]
    assert [central[name] for name in ("model", *asdict(made.law))] == ["central", *[None] * 5]
    assert {row["model"] for row in rows if row["release"] != "wards"} == {"local"}
    assert {row["charged_at"] for row in rows if row["release"] != "wards"} == {None}
    grid = central["grid"]
    assert {row["atoms"] for row in ask(town, f"internals.dph_bins WHERE grid = '{grid}'")} == {None}
    (local,) = {row["grid"] for row in rows if row["release"] == "town_age"}
    mine = ask(town, f"internals.dph_bins WHERE grid = '{local}' ORDER BY position")
    assert [row["atoms"] for row in mine] == made.atoms.tolist()
    columns = [list(row) for row in ask(town, "town_age LIMIT 1") + ask(town, "wards LIMIT 1")]
    assert [name for name in columns[0] if name not in columns[1]] == []


def test_what_an_office_published_answers_beside_it_as_it_does_alone(town: Town, tmp_path: Path) -> None:
    axes = [by_hand.AGE, by_hand.WARD]
    by_hand.publish(tmp_path, by_hand.estimate(axes), axes, "wards")
    (tmp_path / "scratch").mkdir()
    alone = build_catalogue(tmp_path, tmp_path / "scratch")
    questions = [
        *["dph_box('r.wards', {'ward': 'surgery'})", "dph_range('r.wards', 'age', 10, 70)"],
        *["dph_marginal('r.wards', ['age'])", "dph_share('r.wards', {'ward': 'surgery'})"],
        *["dph_quantile('r.wards', 'age', 0.3)", "dph_band('r.wards')", "dph_whole('r.wards')"],
    ]
    for question in questions:
        with attached(alone) as connection:
            expected = rows_of(connection, f"FROM r.{question}")
        found = ask(town, question)
        assert repr(found) == repr(expected)
        assert {row.get("basis", "unbiased") for row in found} == {"unbiased"}
    assert_central(ask(town, "dph_box('r.wards', {'ward': 'surgery'})"), town.office.answer(ward="surgery"))


def assert_central(rows: list[dict[str, Any]], found: Answer) -> None:
    assert [(row["estimate"], row["ci_lower"], row["ci_upper"]) for row in rows] == [
        (found.estimate, found.ci_lower, found.ci_upper)
    ]


def test_equal_edges_with_other_atoms_are_another_grid(tmp_path: Path) -> None:
    made = reported.estimate([reported.AGE])
    assert isinstance(made.unbiased, ReportedCells)
    other = ReportedCells(made.unbiased.values, made.unbiased.atoms * 2, made.unbiased.law)
    one = reported.publish(tmp_path, made, [reported.AGE], "one")
    two = reported.publish(tmp_path, Estimate(made.domain, made.values, made.charges, other), [reported.AGE], "two")
    (tmp_path / "scratch").mkdir()
    with attached(build_catalogue(tmp_path, tmp_path / "scratch")) as connection:
        for name, release in (("one", one), ("two", two)):
            (row,) = rows_of(connection, f"FROM r.dph_box('r.{name}', {{'age': [0, 18]}})")
            assert_told(row, Oracle.of(release).answer(age=(0, 18)), release.answer(age=(0, 18)))
    assert one.answer(age=(0, 18)).noise_error < two.answer(age=(0, 18)).noise_error


def test_files_have_the_columns_of_every_release_and_null_without_a_draw(town: Town) -> None:
    folder = town.releases["age"]["2026-03-02"].path
    groups = pq.read_table(folder / "groups.parquet").to_pylist()
    assert groups == [{"group_id": 0, "cells": 7, "noise_scale": None, "noise_variance": None}]
    (charge,) = pq.read_table(folder / "audit.parquet").to_pylist()
    assert (charge["step"], charge["noise_scale"], charge["account"], charge["ledger_hash"]) == ("reports", *[None] * 3)
    names = pq.read_schema(folder / "histogram.parquet").names
    assert names == ["age_lower", "age_upper", *KINDS_OF_VALUES]


def test_an_estimate_from_reports_has_one_axis_and_atoms_for_each_cell() -> None:
    made = reported.estimate([reported.AGE])
    cells = made.unbiased
    assert isinstance(cells, ReportedCells)
    short = ReportedCells(cells.values, cells.atoms[:-1], cells.law)
    with pytest.raises(Halted, check=coded("bad_estimate"), match="atoms"):
        Estimate(made.domain, made.values, made.charges, short)
    domain = by_hand.estimate([by_hand.WARD, by_hand.HEIGHT]).domain
    square = ReportedCells(np.zeros(domain.shape), np.ones(domain.shape, dtype=np.int64), cells.law)
    with pytest.raises(Halted, check=coded("bad_estimate"), match="one axis"):
        Estimate(domain, np.zeros(domain.shape), made.charges, square)


def test_an_altered_law_is_found_and_an_audit_without_a_model_is_central(tmp_path: Path) -> None:
    local = reported.publish(tmp_path, reported.estimate([reported.AGE]), [reported.AGE])
    central = by_hand.publish(tmp_path, by_hand.estimate([by_hand.AGE]), [by_hand.AGE], "older")
    (tmp_path / "scratch").mkdir()
    assert "model" not in json.loads((central.path / "audit.json").read_bytes())
    with attached(build_catalogue(tmp_path, tmp_path / "scratch")) as connection:
        rows = rows_of(connection, "FROM r.dph_releases ORDER BY release")
        assert [(row["release"], row["model"]) for row in rows] == [("older", "central"), ("town_age", "local")]
    audit = json.loads((local.path / "audit.json").read_bytes())
    audit["report_law"]["alpha"] /= 100
    (local.path / "audit.json").write_text(json.dumps(audit))
    with pytest.raises(PublishedFilesDamaged, match=r"altered audit\.json"):
        local.answer()
    (tmp_path / "catalog.duckdb").unlink()
    with pytest.raises(PublishedFilesDamaged, match=r"altered audit\.json"):
        build_catalogue(tmp_path, tmp_path / "scratch")


@pytest.mark.parametrize(
    ("encoding", "epsilon", "share"), mostly_soaked([("grr", 8.0, 0.05), ("optimized", 2.0, 0.1)], [0])
)
def test_quantiles_over_many_bins_are_the_same_in_sql_and_python(
    tmp_path: Path, encoding: reported.Encoding, epsilon: float, share: float
) -> None:
    axes = [{"column": "income", "start": 0, "stop": 600, "width": 1}]
    made = reported.estimate(axes, encoding, epsilon, 2000, share)
    assert isinstance(made.unbiased, ReportedCells)
    few = ReportedCells(made.unbiased.values / 10, made.unbiased.atoms, made.unbiased.law)
    release = reported.publish(tmp_path, Estimate(made.domain, few.values, made.charges, few), axes)
    oracle = Oracle.of(release)
    (tmp_path / "scratch").mkdir()
    with attached(build_catalogue(tmp_path, tmp_path / "scratch")) as connection:
        for q in np.arange(1, 20, 3 if SOAKING else 9) / 20:
            (row,) = rows_of(connection, "FROM r.dph_quantile('r.town_age', 'income', ?)", float(q))
            assert row["ci_upper"] - row["ci_lower"] > 5
            told = release.quantile("income", float(q)) if q == 0.5 else None
            assert_told(row, oracle.quantile("income", float(q), {}), told)
