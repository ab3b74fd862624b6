"""The card of a release of the local model: what it says of reports, of contributors, and of what nobody can know."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from by_hand import AGE
from carded import (
    HOSTILE,
    SHOWN_HOSTILE,
    Read,
    assert_can_be_read_without_eyes_and_mouse,
    assert_fetches_and_runs_nothing,
    card,
)
from carded_reports import ALONE, SAMPLED, Made, made
from quick_catalogue import build_catalogue

from dphist_pipeline.estimates.laws import LEVEL
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.notices import with_notice

Release = Callable[..., Made]
WAYS: dict[str, dict[str, Any]] = {
    "chp": {},
    "shp": ALONE,
    "split_budget": {"protocol": "split_budget", "round": "2026-03-02"},
    "sampled": SAMPLED,
    "separate": {"values_per_contributor": 3, "encoding": "grr"},
    "summed": {"values_per_contributor": 3, "values": "summed"},
    "nonnegative": {"nonnegative": True, "encoding": "optimized"},
    "one interval": {"protocol": "shp", "consumers": [{"name": "city", "epsilon": 1, "bins": 1}]},
}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """Publishes and gives back a release."""
    return lambda **changes: made(tmp_path / "store", **changes)


def section(page: str, key: str) -> str:
    """The words below one heading."""
    part = re.search(rf'<section aria-labelledby="{key}">(.*?)</section>\s*(?=<section aria|</main>)', page, re.DOTALL)
    assert part is not None
    return Read(part[1]).text


@pytest.mark.slow
@pytest.mark.parametrize("changes", WAYS.values(), ids=WAYS)
def test_it_is_a_page_like_every_card(release: Release, changes: dict[str, Any]) -> None:
    page = release(**changes).card()
    assert_fetches_and_runs_nothing(page)
    assert_can_be_read_without_eyes_and_mouse(page)
    assert not re.search(r"\ufffd|\b(None|nan|noisy|add_remove|[Ss]ensitivity)\b", page)  # of a curator's cards alone
    central = Read(card([AGE]))
    links = [[link["href"].partition("#period-")[0] for link in one.named("a")] for one in (Read(page), central)]
    assert links[0] == links[1]


def test_it_says_that_nobody_saw_a_value(release: Release) -> None:
    said = section(release().card(), "protected")
    assert "nobody but the contributor" in said and "the curator got these reports, and nothing else" in said


@pytest.mark.parametrize(
    "encoding, chance, says",
    [
        ("symmetric", 1 / (1 + math.exp(0.5)), "each bit is flipped with a probability of {} %"),
        ("optimized", 1 / (1 + math.e), "each 0 is turned into a 1 with a probability of {} %"),
        ("grr", math.e / (math.e + 20), "sent as it is with a probability of {} %"),
    ],
)
def test_it_says_with_which_chances_a_value_is_reported(
    release: Release, encoding: str, chance: float, says: str
) -> None:
    made_here = release(encoding=encoding, **ALONE)
    assert says.format(f"{100 * chance:.1f}") in section(made_here.card(), "protected")
    assert f"= {chance:.6g}" in section(made_here.card(), "made")


def test_epsilon_is_of_all_values_of_a_contributor_and_told_in_words(release: Release) -> None:
    one, three = release(**ALONE), release(collection="more", values_per_contributor=3, **ALONE)
    said = section(one.card(), "protected")
    assert "with ε = 1, δ = 0" in said and "at most 2.72 times as large" in said
    assert (
        "which of two values a certain contributor reported" in said
        and "no less than 26 % and no more than 74 %" in said
    )
    said = section(three.card(), "protected")
    assert "with ε = 3, δ = 0" in said and "at most 21 times as large" in said
    assert "which of two lists of 3 values a certain contributor" in said and "no more than 96 %" in said
    assert "one value, for all consumers 1 all 3 values: 3 times as much 3" in section(three.card(), "cost")


def test_whether_somebody_contributed_is_not_said_to_be_hidden(release: Release) -> None:
    assert "Not hidden whether somebody contributed" in section(release().card(), "protected")


@pytest.mark.slow
def test_sampling_is_said_to_lower_no_epsilon(release: Release) -> None:
    sampled, all_sent = release(**SAMPLED), release(collection="other")
    said = section(sampled.card(), "protected")
    assert "sent with a probability of 0.8" in said and "lowers no ε" in said
    assert "with ε = 1, δ = 0" in said and "also if their report was not sent" in section(sampled.card(), "cost")
    assert "20,000, of about 25,000 that were made" in section(sampled.card(), "counted")
    assert "probability of 0.8" not in all_sent.text() and "lowers no ε" not in all_sent.text()


def test_a_contributors_own_record_takes_the_place_of_an_account(release: Release) -> None:
    page = release(round="2026-03-02").card()
    said = section(page, "protected")
    assert "No ledger has an account of it: each contributor’s own record adds up what its owner has spent" in said
    assert "in other rounds, adds up" in said
    assert "all releases of the collection ages in this round together" in section(page, "cost")
    assert "Ledger entry none" in section(page, "record")
    assert "the round of 2026-03-02" in Read(page).text and "no rounds" not in Read(page).text


def test_what_split_budget_spends_on_one_consumer_is_part_of_what_it_spends(release: Release) -> None:
    page = release(**WAYS["split_budget"]).card()
    assert "this consumer’s part of the report of one value 0.5 one value, for all consumers 1" in section(page, "cost")
    assert f"{100 / (1 + math.exp(0.25)):.1f} %" in section(page, "protected")


@pytest.mark.slow
def test_it_says_how_many_reports_were_accepted_and_refused(release: Release) -> None:
    page = release().card()
    said = section(page, "counted")
    assert "Reports accepted 20,000" in said
    for reason, reports in (("other question", 17), ("malformed", 23), ("duplicate", 31)):
        assert re.search(rf"{reason} [^0-9]* {reports}\b", said)
    assert "wrong length" not in said and "unreadable" not in said
    none = release(refused={"malformed": 0, "duplicate": 0}, collection="clean").card()
    assert "No report was refused." in section(none, "counted")


def test_the_last_interval_is_closed_in_words_and_pictures(release: Release) -> None:
    page = release().card()
    assert "an interval includes its lower end, and the last one its upper end too" in section(page, "counted")
    words = [word.replace("\u00a0", " ") for word in Read(page).words]
    assert {"90 to under 95", "95 to 100"} <= set(words) and "95 to under 100" not in words
    single = release(collection="single", **WAYS["one interval"]).card()
    assert "1 interval with ends at 0, 100; both ends belong to it" in section(single, "counted")


@pytest.mark.parametrize("way", ["chp", "separate", "sampled"])
def test_errors_are_those_of_all_ranges_worked_out_one_by_one(release: Release, way: str) -> None:
    made_here = release(**WAYS[way])
    cells = made_here.estimate.unbiased
    assert isinstance(cells, ReportedCells)
    said = section(made_here.card(), "error")
    for length, what in ((1, "1 interval"), (2, "2 neighbouring intervals"), (10, "10 neighbouring intervals")):
        reaches = [cells.half_width_of_box([np.arange(start, start + length)], LEVEL) for start in range(21 - length)]
        told = (min(reaches), float(np.median(reaches)), max(reaches))
        assert f"{what} {' '.join(map(shown_number, told))} " in said
    (whole,) = {shown_number(cells.half_width_of_box([np.arange(20)], LEVEL))}
    assert f"all 20 intervals {whole} {whole} {whole}" in said
    one = np.array([cells.half_width_of_box([np.array([place])], LEVEL) for place in range(20)])
    assert f"that ± is {shown_number(one.min())} to {shown_number(one.max())}" in said
    near = int(np.count_nonzero(cells.values <= one))
    assert 0 < near < 20 and f"Of 20 intervals, {near} cannot be told from empty" in said
    assert (
        f"± {shown_number(one.min())} to {shown_number(one.max())}"
        in made_here.text().partition("What was counted Release")[0]
    )


def test_every_name_is_shown_and_none_is_markup(release: Release) -> None:
    here = release()
    changed = dict.fromkeys(("title", "reason", "collection", "consumer", "release", "mechanism"), HOSTILE)
    reports = {**here.audit["reports"], "refused": {HOSTILE: 3}}
    page = here.card(**changed, period=HOSTILE, question_digest=HOSTILE, reports=reports)
    read = Read(page)
    assert not read.named("script")
    assert len(read.named("style")) == len(read.named("title")) == 1
    assert read.text.count(SHOWN_HOSTILE) >= 9
    assert not {"\u202e", "\u202c", "\x07"} & set(page)


def test_equal_values_and_facts_give_equal_bytes(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    here = release()
    first = (here.folder / "card.html").read_text(encoding="utf-8")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    assert here.card() == first


def test_a_withdrawal_is_marked_and_can_be_taken_out(release: Release) -> None:
    here = release()
    audit = {**here.audit, "withdrawn": {"at": "2026-04-01T00:00:00Z", "reason": "a wrong question"}}
    marked = with_notice(here.card(), audit)
    assert "Withdrawn: do not use" in Read(marked).text
    assert with_notice(marked, {}) == here.card()


def test_a_release_that_names_no_model_is_of_the_central_one() -> None:
    assert card([AGE]) == card([AGE], model="central")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["chp", "split_budget"])
def test_its_sql_runs_as_it_is_copied(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    here = release(**WAYS[way])
    (tmp_path / "draft").mkdir()
    build_catalogue(tmp_path / "store" / "public", tmp_path / "draft")
    sql = "".join(words for words in Read(here.card()).words if words.startswith("-- "))
    monkeypatch.chdir(here.folder)
    statements = [statement for statement in sql.split(";") if statement.strip()]
    with duckdb.connect() as connection:
        connection.execute(statements[0])
        rows = [connection.execute(statement).fetchall() for statement in statements[1:]]
    assert [len(found) for found in rows] == [1, 1, 20, 20]


@pytest.mark.slow
def test_a_thousand_intervals_make_a_small_card(release: Release) -> None:
    fine = {"protocol": "shp", "consumers": [{"name": "fine", "epsilon": "1/3", "width": "0.1"}]}
    here = release(**fine)
    assert len(here.card().encode()) < 100_000
    assert "1,000 intervals of equal width with ends at 0, 0.1, 0.2, 0.3, …, 100" in here.text()
    assert Fraction(here.audit["epsilon"]) == Fraction(1, 3) and "1/3 (about 0.3333)" in here.text()
