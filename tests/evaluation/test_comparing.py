"""Comparisons: who takes part, what is measured, and how it is shown."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from error_codes import coded

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.workbench.evaluation import comparison, measuring, score_tables
from dphist_pipeline.workbench.evaluation._recommendation import recommendations
from dphist_pipeline.workbench.evaluation.comparison import prepare
from dphist_pipeline.workbench.evaluation.contenders import choose_contenders, parse_contender
from dphist_pipeline.workbench.evaluation.measuring import (
    AS_GEOMETRIC,
    MeasureResult,
    aggregate_scores,
    compare,
    measure,
)
from dphist_pipeline.workbench.evaluation.workloads import parse_workloads

ONE = Fraction(1)
COUNTS = np.arange(60).reshape(6, 10)


@pytest.fixture
def line(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text("bin,count\n" + "".join(f"{place},{place * place % 37}\n" for place in range(60)))
    return str(path)


def test_a_contender_is_written_as_a_name_with_settings():
    written = parse_contender("noise_first:penalty=bic")
    assert (written.mechanism, written.settings) == ("noise_first", (("penalty", "bic"),))
    several = parse_contender("dpcube: structure_share = 1/3, max_depth=5")
    assert dict(several.settings) == {"structure_share": "1/3", "max_depth": "5"}
    several.check(Domain.from_shape((4, 4)), 1, [ONE])


@pytest.mark.parametrize("written", ["dphr:", "dphr:order_share", "dphr:=1/2", "dphr:a=1,a=2", "dphr:a=1,"])
def test_settings_that_cannot_be_read_are_refused(written):
    with pytest.raises(Refused, check=coded("bad_contender"), match="NAME:SETTING=VALUE"):
        parse_contender(written)


@pytest.mark.parametrize("written", ["geometrik", "geometric:colour=red", "dpcube:max_depth=many", "noise_first"])
def test_a_contender_that_does_not_exist_or_serve_is_refused(written):
    with pytest.raises(DphistError):
        parse_contender(written).check(Domain.from_shape((4, 4)), 1, [ONE])


def test_without_names_all_that_serve_take_part_and_the_others_say_why():
    serving, refused = choose_contenders([], Domain.from_shape((4, 4)), 1, [ONE])
    assert sorted([one.mechanism for one in serving] + list(refused)) == mechanisms.names()
    assert {"geometric", "dpcube"} <= {one.mechanism for one in serving}
    assert "serves one axis" in refused["noise_first"]


def test_a_comparison_without_a_serving_mechanism_is_refused(line, monkeypatch):
    monkeypatch.setattr(comparison, "choose_contenders", lambda *asked: ((), {"one": "it rests"}))
    with pytest.raises(Refused, check=coded("no_mechanism_serves"), match="it rests"):
        prepare(line, [ONE])


def test_every_contender_is_scored_at_every_epsilon(line):
    told: list[str] = []
    prepared = prepare(line, [ONE, Fraction(1, 10), ONE], ["geometric", "noise_first:penalty=bic"], repeat=3)
    assert prepared.epsilons == (ONE, Fraction(1, 10)) and prepared.releases == 12
    found = prepared.run(told.append)
    assert len(told) == 12 and told[-1] == "noise_first:penalty=bic, epsilon 0.1"
    groups = {(score.mechanism, score.epsilon) for score in found.scores}
    assert len(groups) == 4 and all(score.repeats == 3 for score in found.scores)
    measured = {score.measure for score in found.scores if score.mechanism == "geometric"}
    over = {"mse", "sse", "mae", "mre", "kl", "seconds", "as_geometric", "range_mse", "range_mre", "range_mae"}
    over |= {"range_max", "range_useful", "mre_of_value"}
    assert measured == over
    grouped = {score.measure for score in found.scores if score.mechanism != "geometric"}
    assert grouped == over | {"weighted_variance", "reconstruction_sse"}


def test_settings_reach_the_mechanism():
    made = measuring.sanitize_with(COUNTS, parse_contender("dpcube:max_depth=1,threshold=0"), Fraction(50))
    assert made.groups is not None and made.groups.max() == 1


def test_noise_is_fresh_for_every_release(line):
    found = prepare(line, [ONE], ["geometric"], repeat=8).run()
    (mse,) = [score for score in found.scores if score.measure == "mse"]
    # The same draws again would have no spread; 60 cells have the same squares with probability below 10^-9.
    assert mse.standard_error is not None and mse.standard_error > 0
    # The law's mean is 1.84; the mean of 480 squares, each of variance 24 or so, lies within 10 standard errors.
    assert abs(mse.mean - 1.84) < 10 * (26 / 480) ** 0.5


def test_sensitivity_scales_the_noise(line):
    wide, narrow = (prepare(line, [ONE], ["geometric"], repeat=10, sensitivity=by).run() for by in (30, 1))
    errors = [next(score.mean for score in found.scores if score.measure == "mae") for found in (wide, narrow)]
    assert errors[0] > 10 * errors[1]


def test_measures_are_those_of_the_estimate():
    groups = np.repeat(np.arange(6), 10).reshape(6, 10)
    means = COUNTS.mean(axis=1, keepdims=True) + np.zeros(10)
    made = Estimate(Domain.from_shape(COUNTS.shape), means, (("counts", ONE),), groups=groups)
    workloads = parse_workloads(["boxes:20"], COUNTS.shape)
    found = measure(COUNTS, made, workloads, [workload.answers(COUNTS) for workload in workloads])
    assert found["mse", ""] == 8.25 and found["sse", ""] == found["reconstruction_sse", ""] == 495
    assert found["weighted_variance", ""] == pytest.approx(8.25 * COUNTS.sum())
    assert found["mre_of_value", "0"] == 4.5 and ("mre_of_value", "59") in found
    assert ("mre", "0") in found and ("mre", "51-100") in found and ("box_mae", "") in found


def test_scores_are_means_with_their_standard_errors():
    (score,) = aggregate_scores("m", ONE, [{("mse", ""): value} for value in (1.0, 2.0, 6.0)])
    assert (score.mean, score.repeats) == (3, 3) and score.standard_error == pytest.approx(np.sqrt(7 / 3))
    (alone,) = aggregate_scores("m", ONE, [{("mse", ""): 5.0}])
    assert (alone.mean, alone.standard_error) == (5, None)


def test_compilation_is_not_timed(monkeypatch):
    shapes: list[tuple[int, ...]] = []

    def sanitize_with(exact, *others):
        shapes.append(exact.shape)
        return Estimate(Domain.from_shape(exact.shape), exact.astype(float), (("counts", ONE),))

    monkeypatch.setattr(measuring, "sanitize_with", sanitize_with)
    compare(COUNTS, [parse_contender("geometric")], [ONE], 2, [])
    assert shapes == [(4, 4), (6, 10), (6, 10)]


def test_facts_are_plain_json_and_name_every_score(line):
    found = prepare(line, [Fraction(1, 3)], ["geometric"], ["ranges:1,5", "boxes:30"], repeat=2).run()
    facts = json.loads(json.dumps(found.facts(), allow_nan=False))
    assert (facts["shape"], facts["repeats"], facts["left_out"]) == ([60], 2, {})
    assert facts["workloads"] == ["all ranges of 1, 5 cells", "30 random boxes"]
    fields = {"mechanism", "epsilon", "epsilon_exact", "measure", "at", "mean", "standard_error", "repeats"}
    assert all(set(score) == fields and score["epsilon_exact"] == "1/3" for score in facts["scores"])
    assert {score["at"] for score in facts["scores"] if score["measure"] == "range_mre"} == {"", "1", "5"}


def scored(mechanism: str, mean: float, error: float | None = 0.1, measure: str = "mse", at: str = "") -> MeasureResult:
    return MeasureResult(mechanism, ONE, measure, at, mean, error, 20)


def columns(**means: float) -> list[MeasureResult]:
    return [scored(name, mean, measure=kind) for kind in score_tables.CELLS for name, mean in means.items()]


def test_the_best_of_a_column_has_the_star():
    scores = columns(a=2, b=0.5)
    ((title, head, rows),) = score_tables.tables(scores, [])
    assert title == "epsilon 1: all cells" and [name.strip() for name in head] == [
        "mechanism",
        *score_tables.CELLS.values(),
    ]
    assert [name.strip() for name in rows[0]] == ["a", "2±5%", "2", "2±5%", "2±5%", "2,000±5%"]
    assert [name.strip() for name in rows[1]] == ["b", "*0.5±20%", "*0.5", "*0.5±20%", "*0.5±20%", "*500±20%"]


def test_what_grouping_costs_has_a_table_of_the_mechanisms_that_group():
    grouped = [scored("b", 40, measure="weighted_variance"), scored("b", 3, measure="reconstruction_sse")]
    grouped += [scored("c", 90, measure="weighted_variance"), scored("c", 2, measure="reconstruction_sse")]
    _, (title, head, rows) = score_tables.tables([*columns(a=2, b=0.5, c=1), *grouped], [])
    assert title == "epsilon 1: groups"
    assert [name.strip() for name in head] == ["mechanism", "weighted variance", "SSE of exact means"]
    assert [[cell.strip() for cell in row] for row in rows] == [["b", "*40±0.2%", "3±3%"], ["c", "90±0.1%", "*2±5%"]]


def test_no_star_where_the_releases_do_not_tell_two_apart():
    # Student's t with 19 degrees of freedom at 0.995 is 2.86; the difference has a standard error of 0.1414.
    ((_, _, close),), ((_, _, apart),) = (score_tables.tables(columns(a=1, b=1 + gap), []) for gap in (0.40, 0.41))
    assert "*" not in close[0][1] and "*" in apart[0][1]
    lone = [scored(name, mean, None, kind) for kind in score_tables.CELLS for name, mean in (("a", 1), ("b", 99))]
    assert "*" not in str(score_tables.tables(lone, []))


def test_a_mechanism_that_is_geometric_takes_no_star_from_it():
    same = [scored("boost", 1, 0, AS_GEOMETRIC), scored("geometric", 1, 0, AS_GEOMETRIC)]
    ((_, _, rows),) = score_tables.tables(columns(geometric=1, boost=1, ahp=9) + same, [])
    stars = {row[0]: "*" in row[1] for row in rows}
    assert stars == {"geometric": True, "boost": False, "ahp": False}
    ((_, _, rows),) = score_tables.tables(columns(boost=1, ahp=9) + same[:1], [])
    assert "*" in rows[0][1]  # alone, it competes for itself


def test_the_recommendation_is_the_best_and_the_simplest_of_those_alike():
    asked = parse_workloads(["ranges:1,5"], (60,))
    for means, chosen, alike in (
        ({"geometric": 2.0, "ahp": 1.0, "ihp": 5.0}, "ahp", ()),
        ({"geometric": 2.0, "ahp": 1.9, "ihp": 5.0}, "geometric", ("ahp",)),
        ({"dphr": 2.0, "ahp": 1.9}, "ahp", ("dphr",)),
    ):
        scores = [scored(name, mean, measure=kind) for kind in ("mse", "range_mse") for name, mean in means.items()]
        of_cells, of_ranges = recommendations(scores, asked)
        assert (of_cells.mechanism, of_cells.alike, of_cells.questions) == (chosen, alike, "cells")
        assert (of_ranges.mechanism, of_ranges.questions) == (chosen, "all ranges of 1, 5 cells")
    assert (
        of_cells.sentence()
        == "For cells: ahp, of the least mean squared error; these releases do not tell it from dphr."
    )


def test_a_comparison_says_who_fell_back_to_geometric(line):
    found = prepare(line, [ONE], ["geometric", "boost:branching=2", "boost"], ["boxes:5"], repeat=2).run()
    assert "Here boost publishes" not in "\n".join(found.notes())  # 60 cells: a tree pays
    found = prepare("synthetic:waitakere", [ONE], ["boost"], repeat=1, shape=None).run()
    assert found.facts()["recommended"][0]["mechanism"] == "boost"
    small = compare(COUNTS[:2], [parse_contender("boost")], [ONE], 2, [])
    assert [score.mean for score in small if score.measure == AS_GEOMETRIC] == [1]


def test_a_long_name_has_a_line_for_each_setting():
    long = "dpcube:threshold=5,max_depth=3"
    scores = [scored(name, 1, measure=kind) for kind in score_tables.CELLS for name in ("dpcube:max_depth=3", long)]
    ((_, _, rows),) = score_tables.tables(scores, [])
    assert [row[0] for row in rows] == ["dpcube:max_depth=3", "dpcube:\n  threshold=5,\n  max_depth=3"]


@pytest.mark.parametrize(
    ("mean", "error", "shown"),
    [
        (1234.5, 2.0, "*1,230±0.2%"),
        (99_949, 1e5, "*99,900±100%"),
        (99_951, None, "*1.00e5"),
        (2.29e9, 1e6, "*2.29e9±0.0%"),
        (0.0012345, 1e-4, "*0.00123±8%"),
        (0.00012345, 1e-6, "*1.23e-4±0.8%"),
        (0.0, 0.0, "*0"),
    ],
)
def test_numbers_have_three_digits(mean, error, shown):
    scores = [scored("a", mean, error, measure=kind) for kind in score_tables.CELLS]
    assert score_tables.tables(scores, [])[0][2][0][1].strip() == shown


def test_epsilon_is_shown_as_people_write_it():
    written = [score_tables.format_epsilon(Fraction(text)) for text in ("1", "0.01", "1/3", "0.0000010")]
    assert written == ["1", "0.01", "1/3", "1e-06"]
