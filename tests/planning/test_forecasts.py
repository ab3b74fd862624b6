"""`dphist forecast`: errors by law or by simulation, what a target costs, before records are read."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from planned import LINE
from refusing import check_changes_nothing
from rich.console import Console

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.cli import terminal
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.evaluation.contenders import Contender
from dphist_pipeline.workbench.evaluation.measuring import sanitize_with
from dphist_pipeline.workbench.planning._expected_errors import (
    CELL,
    WIDER,
    WIDER_OF_ONE,
    Expected,
    Forecaster,
    questions,
)
from dphist_pipeline.workbench.planning._least_epsilon import epsilon_at, least_epsilon, smallest, step_of
from dphist_pipeline.workbench.planning.forecast import Forecast, prepare, short
from dphist_pipeline.workbench.planning.stand_ins import declared_shapes, published_before, read_stand_in

QUICK = ["--mechanism", "geometric", "--epsilon", "1"]
LAWFUL = ["geometric", "boost"]
SIZES = [question.cells for question in questions((64,))]
SHAPES = {"flat", "skewed", "sparse", "rough flat", "rough skewed", "rough sparse", "rough steep", "peak"}


def forecaster(shape: tuple[int, ...], sensitivity: int = 1, repeat: int = 1, records: int = 5000) -> Forecaster:
    return Forecaster(shape, sensitivity, questions(shape), declared_shapes(shape, records), repeat)


def rmse(ran: Any, mechanism: str, shape: str = "any") -> dict[str, float]:
    found: dict[str, float] = next(one for one in ran.json["expected"] if one["mechanism"] == mechanism)["rmse"][shape]
    return found


def test_a_forecast_that_takes_long_says_at_a_terminal_what_it_does(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line a mechanism, on standard error; a quick one, or one without a terminal, says nothing of its steps."""
    office.write_spec()
    words = ["forecast", "spec.yaml", "--epsilon", "1", "--mechanism", "geometric", "--mechanism", "boost"]
    for seconds, force, lines in ((60.0, True, []), (0.0, False, []), (0.0, True, ["geometric", "boost"])):
        shown = io.StringIO()
        monkeypatch.setattr(terminal, "SECONDS_WITHOUT_LINES", seconds)
        monkeypatch.setattr(terminal, "err", Console(file=shown, force_terminal=force, color_system=None, width=200))
        assert office.run(*words).code == 0
        assert re.findall(r"· (\w+), epsilon 1", shown.getvalue()) == lines


def test_plain_noise_is_forecast_by_its_law(office: Office) -> None:
    office.write_spec()
    ran = office.run("forecast", "spec.yaml", "--json", *QUICK)
    assert (ran.code, ran.err) == (0, "")
    variance = noise_law(Fraction(2)).variance
    assert rmse(ran, "geometric") == pytest.approx({str(n): math.sqrt(n * variance) for n in (1, 2, 10, 21)})
    (one,) = ran.json["expected"]
    assert (one["basis"], one["interval_half_width"]) == ("law", noise_law(Fraction(2)).half_width(Fraction(95, 100)))
    assert one["box_interval_half_width"]["21"] == noise_law(Fraction(2)).half_width_of_sum(21)


@pytest.mark.parametrize("shape", [(300,), (40, 30)])
def test_a_law_is_what_releases_show(shape: tuple[int, ...]) -> None:
    many = forecaster(shape, sensitivity=2, repeat=20)
    for name in LAWFUL:
        told = many.expected(Contender(name, name), Fraction(1))
        assert told.by_law
        seen = many._simulated(Contender(name, name), Fraction(1), many.counts["sparse"], many.asked)
        assert seen[CELL] == pytest.approx(told.errors["any"][CELL], rel=0.12)
        # Boxes overlap, so that fewer of them than there are tell something of their own.
        for cells in told.errors["any"]:
            assert seen[cells] < 4 * told.errors["any"][cells] and told.errors["any"][cells] < 4 * seen[cells]


@pytest.mark.slow
@pytest.mark.parametrize("name", mechanisms.names())
def test_whether_a_mechanism_has_a_law_does_not_depend_on_the_counts(name: str) -> None:
    contender, shape = Contender(name, name), (64,)
    shapes = {"nothing": np.zeros(shape, dtype=np.int64), **declared_shapes(shape, 3000)}
    lawful = {sanitize_with(counts, contender, Fraction(1)).is_unbiased for counts in shapes.values()}
    assert len(lawful) == 1
    assert name not in LAWFUL or lawful == {True}


def test_groups_are_no_law_even_where_each_holds_one_cell() -> None:
    noisy = NoisyCells(np.zeros(3), Fraction(1))
    alone = Estimate(Domain.from_shape((3,)), noisy.values, (), unbiased=noisy, groups=np.arange(3))
    assert replace(alone, groups=None).is_unbiased and not alone.is_unbiased


def test_mechanisms_that_look_at_counts_are_simulated_on_shapes_and_shown_as_a_range(office: Office) -> None:
    office.write_spec(axes=[LINE])
    words = ["forecast", "spec.yaml", "--epsilon", "0.1", "--mechanism", "dpcube", "--mechanism", "geometric"]
    ran = office.run(*words, "--records", "200", "--json")
    dpcube, geometric = ran.json["expected"]
    assert (dpcube["basis"], geometric["basis"]) == ("simulated", "law")
    assert set(dpcube["rmse"]) == SHAPES
    assert "200 records" in ran.json["simulated_on"]
    shown = office.run(*words, "--records", "200").out
    assert "simulated on flat, skewed and sparse (smooth, rough), steep and peaked counts" in shown
    row = next(line for line in shown.splitlines() if line.startswith("dpcube "))
    assert "–" in row and " sim " in row


@pytest.mark.parametrize(
    ("mechanism", "words", "named"),
    [("dpcube", [], "dpcube"), ("geometric", ["--mechanism", "boost", "--mechanism", "dpcube"], "dpcube")],
)
def test_errors_that_follow_from_the_counts_need_a_number_of_records(
    office: Office, mechanism: str, words: list[str], named: str
) -> None:
    office.write_spec(mechanism=mechanism)
    says = f"a forecast for {named} needs the number of records that a period will hold"
    check_changes_nothing(office, lambda: office.run("forecast", "spec.yaml", "--json", *words), says)


def test_plain_noise_needs_no_number_of_records_and_only_laws_are_compared(office: Office) -> None:
    office.write_spec(period="week", period_column="admitted_on")
    ran = office.run("forecast", "spec.yaml", "--json")
    assert {one["basis"] for one in ran.json["expected"]} == {"law"} and ran.json["simulated_on"] is None
    assert {"geometric", "boost"} <= {one["mechanism"] for one in ran.json["expected"]}
    words = " ".join(office.run("forecast", "spec.yaml").out.split())
    assert "Nobody said how many records a period will hold." in words and "dpcube" in words
    assert "poor:" not in words and "lengths of period" not in words


def test_what_is_poor_names_the_shapes_that_decide_it(office: Office) -> None:
    """On 64 cells of 31 records each, a standard deviation of 2.8 is less than a quarter. At a peak most are empty."""
    office.write_spec(axes=[LINE])
    words = " ".join(office.run("forecast", "spec.yaml", *QUICK, "--records", "2000").out.split())
    assert "0% on `flat` counts" in words and "on `peak` counts" in words and "--stand-in FILE" in words


@pytest.mark.slow
def test_every_mechanism_that_serves_is_forecast_the_specs_own_first(office: Office) -> None:
    office.write_spec(mechanism="dpcube", settings={"structure_share": "1/3"}, epsilon=1)
    for more, epsilons in (([], {"1"}), (["--all", "--mechanism", "geometric"], {"2", "1", "1/2"})):
        ran = office.run("forecast", "spec.yaml", "--repeat", "1", "--records", "1000", "--json", *more)
        names = [one["mechanism"] for one in ran.json["expected"]]
        assert more or (names[0] == "dpcube:structure_share=1/3" and {"geometric", "boost", "dpcube"} <= set(names))
        assert more or "noise_first" in ran.json["left_out"]
        assert {one["epsilon_exact"] for one in ran.json["expected"]} == epsilons


def test_the_theory_of_dpcube_says_how_alike_cells_of_a_box_must_be(office: Office) -> None:
    office.write_spec()
    both = ["--mechanism", "dpcube", "--mechanism", "dpcube:estimation=least_squares", "--records", "1000"]
    ran = office.run("forecast", "spec.yaml", *both, "--json")
    assert "dpcube, theory at epsilon" in ran.json["theory"] and "differ by fewer records than" in ran.json["theory"]
    assert "least_squares, theory at epsilon" in ran.json["theory"] and "noise times 1.9" in ran.json["theory"]


def test_public_counts_may_stand_in(office: Office) -> None:
    office.write_spec(axes=[LINE])
    pq.write_table(pa.table({"age": range(64), "count": [1000] * 64}), "public.parquet")
    words = ["forecast", "spec.yaml", "--mechanism", "noise_first", "--epsilon", "0.1", "--stand-in"]
    ran = office.run(*words, "public.parquet", "--json")
    assert ran.json["simulated_on"] == "public counts of public.parquet"
    assert list(ran.json["expected"][0]["rmse"]) == ["stand-in"]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"age": [0]}, "has 1 axis; the spec has 2 axes"),
        ({"age": [7], "ward": [0]}, "axis 1 has 8 cells or more; in the spec it has 7"),
    ],
)
def test_public_counts_of_another_grid_do_not_stand_in(
    office: Office, columns: dict[str, list[int]], says: str
) -> None:
    pq.write_table(pa.table({**columns, "count": [1000]}), "public.parquet")
    office.write_spec()
    ran = office.run("forecast", "spec.yaml", "--stand-in", "public.parquet")
    assert ran.code == 1 and says in ran.err and "--shape" not in ran.err


def test_public_counts_that_end_before_the_grid_are_empty_from_there(office: Office) -> None:
    office.write_spec()
    pq.write_table(pa.table({"age": [1], "ward": [1], "count": [1000]}), "public.parquet")
    _, found = read_stand_in("public.parquet", ReleaseSpec.load("spec.yaml"), None)
    assert found.shape == (7, 3) and found[1, 1] == found.sum() == 1000


@pytest.mark.slow
def test_what_was_published_may_stand_in(office: Office) -> None:
    office.with_release()
    before = office.state()
    asked = ["forecast", "spec.yaml", "--stand-in", "wards", "--mechanism", "dpcube", "--repeat", "1"]
    ran = office.run(*asked, "--json")
    assert "wards, period all, as published (its own noise is in it)" in ran.json["simulated_on"]
    office.write_spec(axes=[LINE])
    assert "has a grid of 7 × 3 cells, and the spec one of 64" in office.run(*asked).err
    office.write_spec()
    assert office.state() == before


@pytest.mark.slow
def test_what_this_release_published_stands_in_unless_records_are_told(office: Office) -> None:
    office.with_release()
    asked = ["forecast", "spec.yaml", "--mechanism", "dpcube", "--repeat", "1", "--json"]
    assert "wards, period all, as published" in office.run(*asked).json["simulated_on"]
    assert "counts of 900 records" in office.run(*asked, "--records", "900").json["simulated_on"]
    office.write_spec(axes=[LINE])
    assert office.run(*asked).json["error"]["code"] == "records_unknown"
    office.write_spec()
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    assert office.run(*asked).json["error"]["code"] == "records_unknown"


@pytest.mark.slow
def test_what_a_related_release_published_stands_in_summed_over_its_other_axes(office: Office) -> None:
    office.with_release()
    estimates = pq.read_table(office.published() / "histogram.parquet")["estimate"].to_numpy().reshape(7, 3)
    own = ReleaseSpec.load("spec.yaml")
    office.write_spec(release="by_ward", axes=[own.as_json()["axes"][1]])
    found = published_before(ReleaseSpec.load("spec.yaml"), office.store / "public")
    assert (
        found is not None and found.about.startswith("wards, period all, as published") and "summed over" in found.about
    )
    assert found.counts.tolist() == np.rint(np.maximum(estimates.sum(axis=0), 0)).astype(int).tolist()
    asked = ["forecast", "spec.yaml", "--mechanism", "dpcube", "--repeat", "1", "--json"]
    assert "wards, period all" in office.run(*asked).json["simulated_on"]
    office.write_spec(release="turned", axes=own.as_json()["axes"][::-1])
    turned = published_before(ReleaseSpec.load("spec.yaml"), office.store / "public")
    assert turned is not None and "summed" not in turned.about
    assert turned.counts.tolist() == np.rint(np.maximum(estimates.T, 0)).astype(int).tolist()
    for changed in ({"axes": [LINE]}, {"account": "another"}, {"privacy_unit": "row", "max_rows_per_unit": 1}):
        office.write_spec(**{"release": "by_ward", "axes": [own.as_json()["axes"][1]], **changed})
        assert published_before(ReleaseSpec.load("spec.yaml"), office.store / "public") is None, changed
    office.write_spec()
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    office.write_spec(release="by_ward", axes=[own.as_json()["axes"][1]])
    assert published_before(ReleaseSpec.load("spec.yaml"), office.store / "public") is None


def test_what_takes_a_minute_on_a_long_line_is_left_to_all(office: Office) -> None:
    office.write_spec(axes=[{**LINE, "stop": 2001}], mechanism="geometric")
    spec = ReleaseSpec.load("spec.yaml")
    asked = partial(prepare, spec, [], stand_in=None, target=None, records=100, repeat=1, store=None)
    for more, there in (({}, False), ({"whole": True}, True)):
        assert ("workload" in {one.mechanism for one in asked([], **more).contenders}) == there  # type: ignore[arg-type]
    assert "workload" in {one.mechanism for one in asked(["workload"]).contenders}


def told_errors(mechanism: str, by: dict[str, float], by_law: bool = False) -> Expected:
    errors = {name: dict.fromkeys([CELL, 6, 32, 64], error) for name, error in by.items()}
    return Expected(mechanism, Fraction(1), by_law, errors, None, {}, {})


def test_being_nearer_where_hardly_anything_is_to_be_told_is_no_gain_in_rank() -> None:
    """Plain noise has an error of 1.36. On an empty table 0 counts as a third of that; elsewhere `empty` is far off."""
    held = Forecaster((64,), 1, questions((64,)), {"empty": np.zeros(64), "full": np.arange(64) * 9}, 1)  # type: ignore[dict-item]
    found = [
        told_errors("plain", {"any": 1.36}, by_law=True),
        told_errors("near", {"empty": 0.5, "full": 1.0}),
        told_errors("empty", {"empty": 0.0001, "full": 60.0}),
        told_errors("nothing", {"empty": 0.0001, "full": 0.9 * 9 * np.arange(64).std()}),
    ]
    ranks = held.ranks(found, [CELL], Fraction(1))
    assert sorted(range(4), key=ranks.__getitem__) == [1, 0, 2, 3]
    assert [held.says_little(one) for one in found] == [False, False, False, True]


@pytest.mark.parametrize(
    ("others", "alike"),
    [
        ({"flat": 5.2, "sparse": 9.0}, []),
        ({"flat": 1.9, "sparse": 9.0}, ["dawa"]),
        ({"flat": 3.0, "sparse": 9.0}, ["dawa"]),
    ],
)
def test_a_best_mechanism_is_named_where_no_range_overlaps_with_its_own(
    office: Office, others: dict[str, float], alike: list[str]
) -> None:
    """The best one has errors of 1 to 2, simulated; all ranges are wider."""
    office.write_spec(axes=[LINE], mechanism="dpcube")
    plan = prepare(ReleaseSpec.load("spec.yaml"), [Fraction(1)], ["dpcube", "dawa"], None, None, 100, 1, None)
    errors = {"dpcube": {"flat": 1.0, "sparse": 2.0}, "dawa": others}
    found = [
        Expected(
            one.written,
            Fraction(1),
            False,
            {name: dict.fromkeys([CELL, *SIZES], error) for name, error in by.items()},
            None,
            {},
            {},
        )
        for one, by in zip(plan.contenders, errors.values(), strict=True)
    ]
    told = Forecast(plan, tuple(found), (), ("dpcube", "dawa")).recommended()
    assert [(one["questions"], one["mechanism"], one["alike"]) for one in told] == [
        ("cells", "dpcube", alike),
        ("sums of 6 cells", "dpcube", alike),
    ]


def test_told_ranges_are_wider_than_simulated_errors() -> None:
    contender = Contender("bayes", "bayes")
    for counts, wider in ((declared_shapes((40,), 900), WIDER), ({"stand-in": np.arange(40)}, WIDER_OF_ONE)):
        told = Forecaster((40,), 1, questions((40,)), counts, 1).expected(contender, Fraction(1))
        for cells, times in zip((CELL, 4), wider, strict=True):
            errors = [by_size[cells] for by_size in told.errors.values()]
            assert times > 1
            assert told.between(cells) == pytest.approx((min(errors) / times, max(errors) * times))
            assert told.facts()["told"][str(cells)] == list(told.between(cells))


@pytest.mark.slow
def test_sums_of_most_cells_reach_further_by_few_releases() -> None:
    contender, cells = Contender("bayes", "bayes"), 40
    for repeat, asked, (down, up) in (
        (1, 40, (3.2, 40.0)),
        (1, 20, (2.5, 8.0)),
        (4, 40, (2.5, 3.2)),
        (5, 40, (2.5, 2.5)),
    ):
        told = Forecaster((cells,), 1, questions((cells,)), {"stand-in": np.arange(cells)}, repeat)
        found = told.expected(contender, Fraction(1))
        (error,) = (by_size[asked] for by_size in found.errors.values())
        assert found.between(asked) == pytest.approx((error / down, error * up))
    shapes = Forecaster((cells,), 1, questions((cells,)), declared_shapes((cells,), 900), 1).expected(
        contender, Fraction(1)
    )
    assert shapes.between(40)[1] == pytest.approx(WIDER[1] * max(by_size[40] for by_size in shapes.errors.values()))


@pytest.mark.slow
def test_what_was_withdrawn_does_not_stand_in(office: Office) -> None:
    office.with_release()
    audit = office.published() / "audit.json"
    audit.write_text(json.dumps({**json.loads(audit.read_text()), "withdrawn": {"reason": "wrong"}}))
    ran = office.run("forecast", "spec.yaml", "--stand-in", "wards", "--json")
    assert ran.code == 1 and "was withdrawn" in ran.err


def test_the_source_itself_cannot_stand_in_under_any_name(office: Office) -> None:
    office.opened()
    Path("linked.parquet").symlink_to("data/admissions.parquet")
    for named in ("data/admissions.parquet", "linked.parquet"):
        asked = ["forecast", "spec.yaml", "--stand-in", named, "--json"]
        check_changes_nothing(office, lambda asked=asked: office.run(*asked), "is the source of the release itself")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--stand-in", "nothing.parquet"], "there is no such file"),
        (["--stand-in", "nothing"], "there is no store with releases"),
        (["--stand-in", "synthetic:waitakere"], "has a grid of 7725 cells, and the spec one of 7 × 3"),
        (["--mechanism", "nothing"], "there is no mechanism 'nothing'"),
        (["--mechanism", "noise_first"], "serves one axis"),
        (["--epsilon", "0"], "epsilon must lie between"),
        (["--target-error", "0"], "--target-error takes a number of records above 0"),
        (["--target-error", "nan"], "--target-error takes a number of records above 0"),
        (["--records", "0"], "--records"),
    ],
)
def test_what_cannot_be_forecast_is_refused_in_one_message(office: Office, words: list[str], says: str) -> None:
    office.write_spec()
    check_changes_nothing(office, lambda: office.run("forecast", "spec.yaml", "--json", *words), says)


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("target", [0.4, 3.0, 170.0])
def test_the_least_epsilon_for_plain_noise_is_the_least_of_two_digits(sensitivity: int, target: float) -> None:
    (found,) = least_epsilon(
        forecaster((50,), sensitivity), Contender("geometric", "geometric"), target
    ).epsilons.values()
    assert found is not None
    below = epsilon_at(step_of(found) - 1)
    errors = [math.sqrt(noise_law(sensitivity / epsilon).variance) for epsilon in (found, below)]
    assert errors[0] <= target < errors[1]


@pytest.mark.slow
def test_the_least_epsilon_of_a_simulation_is_about_that_of_the_law() -> None:
    many, plain = forecaster((60, 50), repeat=3), Contender("geometric", "geometric")
    (exact,) = least_epsilon(many, plain, 5.0).epsilons.values()
    assert exact is not None
    for name in many.counts:
        found = smallest(partial(many.cell_error, plain, name), 5.0, step_of(exact) + 60, exactly=False)
        assert found is not None and 0.85 < float(found / exact) < 1.25
    assert set(least_epsilon(many, Contender("dpcube", "dpcube"), 5.0).epsilons) == SHAPES


@pytest.mark.parametrize("first", [-540, -90, 0, 130])
def test_the_search_ends_where_errors_are_odd(first: int) -> None:
    always, never = (lambda epsilon: 0.0), (lambda epsilon: math.inf)
    assert smallest(always, 1.0, first, exactly=True) == Fraction(1, 10**6)
    assert smallest(never, 1.0, first, exactly=True) is None
    for wanted in (-540, -539, -91, 0, 77, 130):
        steep = partial(_steep, wanted)
        assert smallest(steep, 1.0, first, exactly=True) == epsilon_at(wanted)


def _steep(wanted: int, epsilon: Fraction) -> float:
    return 0.0 if step_of(epsilon) >= wanted else math.inf


def test_a_target_that_is_never_reached_is_said(office: Office) -> None:
    office.write_spec()
    ran = office.run("forecast", "spec.yaml", *QUICK, "--target-error", "1e-30", "--json")
    assert ran.json["needed"] == [{"mechanism": "geometric", "basis": "law", "epsilon": {"any": None}}]


def test_steps_are_numbers_of_two_digits_in_order() -> None:
    numbers = [epsilon_at(step) for step in range(-540, 131)]
    assert (numbers[0], numbers[-1]) == (Fraction(1, 10**6), Fraction(50))
    assert numbers == sorted(set(numbers)) and Fraction(99, 1000) in numbers and Fraction(11, 100) in numbers
    assert [step_of(number) for number in numbers] == list(range(-540, 131))


def test_declared_shapes_hold_the_records_that_were_asked_for() -> None:
    for shape in ((1,), (7, 3), (1000,), (2, 3, 4, 5)):
        for records in (1, 10, 12_345):
            shapes = declared_shapes(shape, records)
            assert {counts.shape for counts in shapes.values()} == {shape}
            assert {int(counts.sum()) for counts in shapes.values()} == {records}
            assert min(int(counts.min()) for counts in shapes.values()) >= 0
    made = declared_shapes((1000,), 10_000)
    assert set(made) == SHAPES and (made["sparse"] > 0).sum() <= 50
    assert made["peak"].max() >= 9_000 and (made["peak"] > 0).sum() <= 21
    assert made["flat"].std() == 0 and made["rough flat"].std() > made["rough flat"].mean()
    assert ((made["rough sparse"] > 0) <= (made["sparse"] > 0)).all()


def test_questions_lie_inside_the_grid_and_have_the_cells_they_say() -> None:
    for shape in ((1,), (2,), (100,), (7, 3), (20, 6, 22)):
        domain = Domain.from_shape(shape)
        for question in questions(shape):
            assert (question.boxes.low >= 0).all() and (question.boxes.high <= domain.shape).all()
            assert (question.boxes.cells == question.cells).all()
    assert [question.cells for question in questions((100,))] == [10, 50, 100]


def test_a_mechanism_that_does_not_serve_a_small_epsilon_is_infinitely_wrong_there() -> None:
    found = forecaster((10,), sensitivity=1000).cell_error(
        Contender("geometric", "geometric"), "any", Fraction(1, 10**6)
    )
    assert found == math.inf
    with pytest.raises(DphistError):
        forecaster((10,), sensitivity=1000).expected(Contender("geometric", "geometric"), Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        *((0, "0"), (0.0123, "0.012"), (0.99, "0.99"), (0.999, "1"), (12.34, "12"), (123.4, "120"), (999.9, "1k")),
        *((1234, "1.2k"), (99_600, "100k"), (1.26e6, "1.3M"), (1e9, "1.0e9"), (5.5e12, "5.5e12")),
    ],
)
def test_numbers_are_shown_with_two_digits(number: float, shown: str) -> None:
    assert short(number) == shown


def test_a_mechanism_is_recommended_for_each_workload_that_is_named(office: Office) -> None:
    """With plain noise on 7 by 3 cells, the sum over a window of 3 along both axes has 9 variances."""
    office.write_spec()
    named = ["--mechanism", "boost", "--mechanism", "geometric", "--workload", "prefixes", "--workload", "windows:3"]
    ran = office.run("forecast", "spec.yaml", "--epsilon", "1", *named, "--json")
    assert (ran.code, ran.err) == (0, "")
    variance = noise_law(Fraction(2)).variance
    found = rmse(ran, "geometric")
    assert found["windows:3"] == pytest.approx(math.sqrt(9 * variance))
    best = {one["questions"]: one for one in ran.json["recommended"]}
    assert list(best) == ["cells", "sums of 2 cells", "prefixes", "windows:3"]
    for asked, size in {"cells": "1", "sums of 2 cells": "2", "prefixes": "prefixes", "windows:3": "windows:3"}.items():
        one, errors = best[asked], {name: rmse(ran, name)[size] for name in ("boost", "geometric")}
        assert one["rmse"] == min(errors.values()) == errors[one["mechanism"]]
        equal = sorted(name for name in errors if errors[name] == one["rmse"] and name != one["mechanism"])
        assert one["alike"] == equal, "laws that are equal have no winner, whatever their order"
    ran = office.run("forecast", "spec.yaml", "--epsilon", "1", *named)
    assert "Least error of prefixes, epsilon 1: " in ran.out
    assert "; as small with " in " ".join(ran.out.split()) or not any(one["alike"] for one in best.values())
    ran = office.run("forecast", "spec.yaml", "--workload", "circles")
    assert (ran.code, ran.err.splitlines()[0][:27]) == (1, "error: workload 'circles': ")
