"""The release card: what it says, to whom, and that nothing in it can do harm."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest
from by_hand import AGE, HEIGHT, WARD
from carded import (
    FACTS,
    HOSTILE,
    SHOWN_HOSTILE,
    Read,
    assert_can_be_read_without_eyes_and_mouse,
    assert_fetches_and_runs_nothing,
    card,
    made,
    noisy,
    without_bars,
)
from quick_catalogue import build_catalogue

from dphist_pipeline import mechanisms
from dphist_pipeline.estimates.estimate import Finding
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NoisyCells, NoisySums
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing._card import mechanism_card, promise_to
from dphist_pipeline.publishing.formatting import epsilon_text, likelihood_ratio, posterior_odds
from dphist_pipeline.publishing.pictures import Picture

DAY: dict[str, Any] = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02", "other": True}
COUNTY: dict[str, Any] = {
    **{"column": "county", "values": ["01", "02"], "labels": ["Autauga", "Kodiak"]},
    "levels": {"state": ["Alabama", "Alaska"]},
}
GRIDS = {"one": [AGE], "two": [AGE, WARD], "three": [WARD, DAY, COUNTY], "five": [AGE, WARD, HEIGHT, DAY, COUNTY]}


@pytest.mark.slow
@pytest.mark.parametrize("axes", GRIDS.values(), ids=GRIDS)
def test_a_card_is_one_page_that_fetches_nothing_and_runs_nothing(axes: list[dict[str, Any]]) -> None:
    assert_fetches_and_runs_nothing(card(axes))


@pytest.mark.parametrize("axes", GRIDS.values(), ids=GRIDS)
def test_a_card_can_be_read_without_eyes_and_without_a_mouse(axes: list[dict[str, Any]]) -> None:
    assert_can_be_read_without_eyes_and_mouse(card(axes))


def test_it_says_what_was_counted_for_whom_and_at_what_price() -> None:
    text = Read(card([AGE, WARD], title="Visits by age and ward")).text
    assert text.startswith("Visits by age and ward, 2026-03-02: release card") and "\ufffd" not in text
    promised = ("at most 3 rows of this period are counted", "Sensitivity Δ 3", "with ε = 0.5", "at most 1.65 times")
    for said in (*promised, "no less than 37 % and no more than 63 %", "ab" * 32, "5" * 64, "7" * 64):
        assert said in text


def test_words_of_the_spec_stand_for_rows_and_for_the_unit() -> None:
    page = card([AGE, WARD], counted="admissions", unit_label="per<b>son")
    text = Read(page).text
    assert "Admissions counted, at most 3 of each per<b>son" in text.replace(" ,", ",") and "per<b>son" not in page
    assert (
        re.search(r"\d admissions \(at most 3 of each per<b>son ?\) in", text)
        and "one patient" not in text
        and "one per<b>son" in text
    )


def test_a_name_whose_letters_run_to_the_left_stands_apart_from_its_sentence() -> None:
    page = card([{**WARD, "values": ["כירורגיה", "٣", "surgery"]}], unit_label="מטופל")
    assert all(f"<bdi>{name}</bdi>" in page for name in ("מטופל", "כירורגיה", "٣")) and "<bdi>surgery" not in page


def test_it_says_how_many_cells_are_good_on_its_first_screen_and_what_that_means() -> None:
    page = card([AGE, WARD])
    said = RELIABILITY.sentence([made([AGE, WARD]).unbiased])
    assert said and Read(page[: page.index("<nav")]).text.count(said) == 1
    text = Read(page).text
    assert all(RELIABILITY.legend[word] in text for word in ("good", "fair", "poor"))


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"privacy_unit": "row", "max_rows_per_unit": 1}, "every row is taken for another person"),
        ({"neighbours": "substitute"}, "Had any one patient held other rows instead"),
        ({"approved": {"by": "Ada", "at": "2026-03-18T00:00:00Z", "entry": 3}}, "Approved by Ada"),
    ],
    ids=["rows", "substitute", "approved"],
)
def test_it_follows_the_facts(changes: dict[str, Any], said: str) -> None:
    assert said in Read(card([AGE], **changes)).text


def test_without_noisy_cells_no_interval_is_claimed() -> None:
    text = Read(card([AGE, WARD], without_bars([AGE, WARD]), unbiased_noise_scale=None)).text
    assert "no cell has an interval" in text and "no interval" in text
    assert "95 %" not in text
    assert "Not that neighbours are alike" in text


def test_smoothing_is_warned_of_exactly_where_estimates_are_not_the_noisy_counts() -> None:
    plain, smooth = (Read(card([AGE], made([AGE], off=off))).text for off in (0, 0.25))
    assert "so this is the whole error that publishing adds" in plain and "Not that neighbours are alike" not in plain
    assert "biased where unlike cells" in smooth and "Not that neighbours are alike" in smooth


def test_it_tells_what_the_mechanism_found_where_it_found_something() -> None:
    found = Finding("smooth", "counts differ from the mean of neighbours", 0.75, 6.25)
    told = Read(card([AGE], replace(made([AGE]), findings=(found,)))).text
    assert re.search(r"smooth\s*counts differ from the mean of neighbours\s*75 %\s*2\.5", told)
    assert "Ways to estimate a cell" not in card([AGE])


def test_ways_without_a_part_in_the_estimate_are_one_sentence() -> None:
    ways = [Finding("used", "about", 1.0, 1.0), *(Finding(f"idle{one}", "about", 0.001, 9.0) for one in range(3))]
    told = Read(card([AGE], replace(made([AGE]), findings=tuple(ways)))).text
    assert "idle" not in told and "3 other ways had less than 1 % of the estimate" in told


def test_the_errors_are_those_of_the_law_of_the_noise() -> None:
    many = [{"column": "income", "start": 0, "stop": 2000, "width": 1}, WARD]
    text = Read(card(many)).text
    for cells in (1, 10, 100, 1000, 6000):
        assert f"{cells:,} {noise_law(Fraction(6)).half_width_of_sum(cells):,}" in text
    assert f"goes beyond ± {noise_law(Fraction(6)).half_width_of_sum(1)} records" in text


def test_a_card_of_an_amount_has_cells_axes_and_errors_of_rows() -> None:
    many = [{"column": "income", "start": 0, "stop": 2000, "width": 1}, {"column": "cost", "amount": [0, 10]}]
    estimate, parts = made(many), 1 << 16
    assert isinstance(estimate.unbiased, NoisyCells)
    amount = {"axis": "cost", "parts": parts, "worth_of_part": 10 / parts}
    text = Read(card(many, replace(estimate, unbiased=replace(estimate.unbiased, parts=parts)), amount=amount)).text
    assert "by income, in 2,000 cells" in text and "Cells 2,000; declared" in text
    for cells in (1, 10, 100, 1000):
        assert f" {cells:,} {noise_law(Fraction(6), parts).half_width_of_sum(2 * cells):.3g}" in text


def test_one_error_is_told_of_the_sum_of_all_cells_where_groups_know_it_better() -> None:
    estimate = made([WARD])
    assert estimate.unbiased is not None
    size, total = estimate.domain.cells, estimate.unbiased.values.sum()
    sums = NoisySums(np.array([total]), np.array([size]), Fraction(2))
    page = card([WARD], replace(estimate, groups=np.zeros(size, dtype=np.int64), sums=sums))
    (told,) = re.findall(r"the sum of all cells by at most ([0-9.]+)", Read(page).text)
    (row,) = re.findall(r">all cells</th><td[^>]*>[0-9,]+</td><td[^>]*>([0-9,.]+)<", page)
    assert row == told != re.findall(r">all cells</th><td[^>]*>[0-9,]+</td><td[^>]*>([0-9,.]+)<", card([WARD]))[0]


def test_every_name_is_shown_and_none_is_markup() -> None:
    axis = {"column": HOSTILE[:200], "name": "age", "edges": [0, 1, 2]}
    changed = {"title": HOSTILE, "privacy_unit": HOSTILE, "reason": HOSTILE, "account": HOSTILE, "mechanism": HOSTILE}
    page = card([axis], made([{**axis, "column": "x"}]), **changed, settings={"a": HOSTILE})
    read = Read(page)
    assert not read.named("script")
    assert len(read.named("style")) == len(read.named("title")) == 1
    assert read.text.count(SHOWN_HOSTILE) >= 5
    assert not {"\u202e", "\u202c", "\x07"} & set(page)


def test_equal_values_and_facts_give_equal_bytes_whatever_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    first = card([AGE, WARD])
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LANG", "ar_EG.UTF-8")
    assert card([AGE, WARD]) == first


def test_a_card_without_a_drawn_picture_still_has_all_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(picture: object) -> str:
        raise RuntimeError("no engine")

    whole = card([AGE])
    monkeypatch.setattr(Picture, "drawing", broken)
    without = card([AGE])
    assert "could not be drawn" in without and "could not be drawn" not in whole
    assert "<svg" not in without and without.count("<td") == whole.count("<td")


@pytest.mark.slow
def test_a_card_says_nothing_of_where_it_was_made(tmp_path: Path) -> None:
    seen = []
    for name in ("planted_7c1f", "elsewhere"):
        folder = by_hand.publish(tmp_path / name, by_hand.estimate([AGE, WARD]), [AGE, WARD], pictures=True).path
        seen.append([(folder / file).read_bytes() for file in ("card.html", "deployment.yaml")])
    assert seen[0] == seen[1]
    assert b"planted" not in seen[0][0] + seen[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("axes", GRIDS.values(), ids=GRIDS)
def test_its_sql_runs_as_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axes: list[Any]) -> None:
    odd = {**WARD, "values": ["surgery's", "medicine"]}
    axes = [odd if axis is WARD else axis for axis in axes]
    folder = by_hand.publish(tmp_path, by_hand.estimate(axes), axes, release="weekly").path
    (tmp_path / "draft").mkdir()
    build_catalogue(tmp_path, tmp_path / "draft")
    read = Read((folder / "card.html").read_text(encoding="utf-8"))
    sql = "".join(words for words in read.words if words.startswith("-- "))
    monkeypatch.chdir(folder)
    statements = [statement for statement in sql.split(";") if statement.strip()]
    with duckdb.connect() as connection:
        connection.execute(statements[0])
        rows = [connection.execute(statement).fetchall() for statement in statements[1:]]
    cells = by_hand.estimate(axes).domain.cells
    assert [len(found) for found in rows] == [1, 1, cells, cells]


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(50)])
def test_epsilon_in_words_is_never_told_too_small(epsilon: Fraction) -> None:
    told = likelihood_ratio(epsilon)
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    power = re.fullmatch("10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", told)
    most = 10.0 ** int(power[1].translate(digits)) if power else float(told.replace(",", ""))
    assert most >= math.exp(epsilon)
    assert power or most <= math.exp(epsilon) * 1.03 + 0.01
    low, high = posterior_odds(epsilon)
    if not high.startswith("above"):
        assert float(high[:-2]) / 100 >= 1 / (1 + math.exp(-epsilon)) > float(high[:-2]) / 100 - 0.011
        assert float(low[:-2]) + float(high[:-2]) == pytest.approx(100)


def test_people_together_are_promised_as_one_with_the_sum_of_their_epsilons() -> None:
    epsilon = Fraction(1, 3)
    assert promise_to(10, epsilon) == {**promise_to(1, 10 * epsilon), "people": "10"}
    assert promise_to(10, epsilon)["ratio"] == likelihood_ratio(10 * epsilon) != likelihood_ratio(epsilon)


def test_fractions_are_told_exactly_where_their_digits_end() -> None:
    assert [epsilon_text(Fraction(text)) for text in ("1/2", "3", "0.125", "1/3")] == [
        "0.5",
        "3",
        "0.125",
        "1/3 (about 0.3333)",
    ]


@pytest.mark.parametrize("name", mechanisms.names())
def test_every_mechanisms_card_is_found_without_loading_it(name: str) -> None:
    what, fields = mechanism_card(name)
    assert what and mechanisms.card(name).partition("\n")[0].endswith(what)
    assert {"Paper", "Privacy", "Domain", "Bars"} <= set(fields)


@pytest.mark.slow
def test_a_million_cells_make_a_small_card_soon() -> None:
    axes = [{"column": name, "start": 0, "stop": 1000, "width": 1} for name in ("x", "y")]
    values = (np.arange(1_000_000, dtype=np.float64) % 97).reshape(1000, 1000)
    estimate = noisy(axes, values, Fraction(6))
    page = card(axes, estimate)
    assert len(page.encode()) < 300_000
    assert "1,000,000" in page
    assert FACTS["release"] in page


def test_a_card_of_thirty_numbers_is_small() -> None:
    """It stands alone, so it has its style and its pictures in it; what marks have in common is written once."""
    axes = [{"column": "age", "start": 0, "stop": 100, "width": 10}, {"column": "sex", "values": ["f", "m", "x"]}]
    assert len(card(axes).encode()) <= 30_000
