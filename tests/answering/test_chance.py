"""Intervals with chance hold for a rate that is constant: weeks whose counts vary as chance makes them seldom differ.

The noise is drawn by NumPy with the law of measurements; the answers are those of macros, over many periods at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pyarrow as pa
import pytest
from answering_scenario import attached
from quick_catalogue import build_catalogue
from scipy import stats  # type: ignore[import-untyped]

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.cli.ask._answer_rows import AnswerOptions, answer_rows, print_rows
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]
# Of each ward the rows expected in a week, and people of whom they come.
EXPECTED = np.array([3.0, 40.0, 400.0, 4_000.0])
PEOPLE = np.array([100.0, 1_000.0, 10_000.0, 100_000.0])
WARDS = [f"w{number}" for number in range(EXPECTED.size)]
AXES: list[dict[str, Any]] = [
    {"column": "ward", "values": WARDS},
    {"column": "place", "values": [f"p{n}" for n in range(10)]},
]
EDGES = np.array([0.0, 10, 20, 40, 90])
BY_AGE = np.array([30.0, 200.0, 500.0, 60.0])  # rows expected in a week in a place, by age
AGES: list[dict[str, Any]] = [{"column": "age", "edges": EDGES.tolist()}, AXES[1]]
SCALES = {"little": Fraction(1, 2), "much": Fraction(20)}
PERIODS = 24  # a question costs the same for many periods as for few
UNLIKELY = 1e-9


def laplace(source: np.random.Generator, scale: Fraction, shape: tuple[int, ...]) -> np.ndarray:
    chance = 1 - np.exp(-1 / float(scale))
    drawn: np.ndarray = source.geometric(chance, shape) - source.geometric(chance, shape)
    return drawn


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 weeks of counts of a constant rate in ten places, with little and much noise: four wards, ages, fixed ages."""
    public, source = tmp_path_factory.mktemp("public"), np.random.default_rng(random_words(4))
    for noise, scale in SCALES.items():
        for axes, expected, name in (
            (AXES, EXPECTED, noise),
            (AGES, BY_AGE, f"{noise}_ages"),
            (AGES, BY_AGE, f"{noise}_fixed"),
        ):
            domain = domain_of(axes)
            for week in range(PERIODS):
                counts = np.broadcast_to(expected[:, np.newaxis], domain.shape)
                if not name.endswith("fixed"):
                    counts = source.poisson(counts)
                noisy = (counts + laplace(source, scale, domain.shape)).astype(np.float64)
                made = Estimate(domain, noisy, (("counts", 1 / scale),), NoisyCells(noisy, scale))
                by_hand.publish(public, made, axes, name, str(date(2026, 1, 5) + timedelta(weeks=week)))
    return build_catalogue(public, tmp_path_factory.mktemp("scratch"))


@pytest.fixture
def asked(catalogue: Path) -> Iterator[Any]:
    with attached(catalogue) as connection:
        connection.register("people", pa.table(people()))
        yield connection


def people() -> dict[str, list[Any]]:
    cells = [(ward, place, PEOPLE[number]) for number, ward in enumerate(WARDS) for place in AXES[1]["values"]]
    return dict(zip(("ward", "place", "population"), map(list, zip(*cells, strict=True)), strict=True))


def held(inside: list[bool]) -> str:
    """`as promised` if 95 % can be true, `seldom` if fewer are inside than that allows."""
    return "seldom" if stats.binom.cdf(sum(inside), len(inside), 0.95) < UNLIKELY else "as promised"


@pytest.mark.parametrize("noise", SCALES)
def test_rates_that_are_constant_lie_in_their_intervals_with_chance(asked: Any, noise: str) -> None:
    found = {}
    for with_chance in (False, True):
        asking = "['ward', 'place'], 'people', per := 1, with_chance := {}"
        query = f"SELECT ward, ci_lower, ci_upper FROM r.dph_rate('r.{{}}', {asking})"
        rows = asked.execute(query.format(noise, with_chance)).fetchall()
        rates = dict(zip(WARDS, EXPECTED / PEOPLE, strict=True))
        found[with_chance] = {
            ward: held([low <= rates[ward] <= high for name, low, high in rows if name == ward]) for ward in WARDS
        }
    assert set(found[True].values()) == {"as promised"}
    assert found[False]["w3"] == "seldom"  # 4,000 rows vary by 63


@pytest.mark.parametrize(("noise", "ward"), [("little", 0), ("little", 3), ("much", 2)])
def test_changes_of_a_constant_rate_hold_0_as_often_as_promised_with_chance(asked: Any, noise: str, ward: int) -> None:
    assert held(changes(asked, noise, ward, "true")) == "as promised"
    if noise == "little" and ward == 3:
        assert held(changes(asked, noise, ward, "false")) == "seldom"


def changes(asked: Any, noise: str, ward: int, with_chance: str) -> list[bool]:
    """Whether each change of a ward, in every place, has an interval that holds 0."""
    question = f"dph_changes('r.{noise}', {{'ward': 'w{ward}'}}, \"by\" := ['place'], with_chance := {with_chance})"
    rows = asked.execute(f"SELECT ci_lower, ci_upper FROM r.{question}").fetchall()
    assert len(rows) == 10 * (PERIODS - 1)
    return [low <= 0 <= high for low, high in rows]


def test_standardised_rates_that_are_constant_lie_in_their_intervals_with_chance(asked: Any, catalogue: Path) -> None:
    standard = pa.table({**people(), "standard": [1.0] * len(people()["ward"])})
    asked.register("standard", standard)
    weeks = sorted((catalogue.parent / "little").glob("period=*/revision=1"))
    for with_chance, expected in ((True, "as promised"), (False, "seldom")):
        query = f"'place', 'standard', per := 1, with_chance := {with_chance}"
        rows = asked.execute(
            f"SELECT ci_lower, ci_upper FROM r.dph_standardised('r.little', ['ward'], {query})"
        ).fetchall()
        rates = [*(EXPECTED / PEOPLE)] * PERIODS
        assert held([low <= rate <= high for rate, (low, high) in zip(rates, rows, strict=True)]) == expected
        told = read_release(weeks[0]).standardised(["ward"], "place", standard, 1, with_chance=with_chance)
        assert np.allclose(told.select("ci_lower", "ci_upper").to_numpy(), rows[: len(WARDS)])


def test_ratios_of_equal_rates_hold_1_as_often_as_promised_with_chance(asked: Any) -> None:
    boxes = ", ".join(f"{{'ward': ['w1', 'w2', 'w3'], 'place': '{one}'}}" for one in ("p0", "p5"))
    question = f"dph_ratio('r.little', {boxes}, \"by\" := ['ward'], with_chance := true)"
    rows = asked.execute(f"SELECT ci_lower, ci_upper FROM r.{question}").fetchall()
    assert len(rows) == 3 * PERIODS
    assert held([low <= 1 <= high for low, high in rows]) == "as promised"


def answers(asked: Any, question: str) -> list[tuple[float, float]]:
    """The intervals of a question with `{place}` in it, of two places and all weeks."""
    found: list[tuple[float, float]] = []
    for place in AXES[1]["values"][:2]:
        found += asked.execute(f"SELECT ci_lower, ci_upper FROM r.{question.replace('{place}', place)}").fetchall()
    return found


@pytest.mark.parametrize(
    ("noise", "ward", "other", "without"), [("little", 2, 3, "seldom"), ("much", 1, 2, ""), ("little", 0, 1, "")]
)
def test_differences_and_shares_of_constant_rates_are_held_with_chance(
    asked: Any, noise: str, ward: int, other: int, without: str
) -> None:
    one, two = (f"{{'ward': 'w{number}', 'place': '{{place}}'}}" for number in (ward, other))
    first, second = EXPECTED[[ward, other]]
    share = f"{{'ward': 'w{ward}'}}, {{'ward': ['w{ward}', 'w{other}']}}, \"by\" := ['place']"
    for with_chance, expected in (("true", "as promised"), ("false", without))[: 1 + bool(without)]:
        rows = answers(asked, f"dph_difference('r.{noise}', {one}, {two}, with_chance := {with_chance})")
        assert held([low <= first - second <= high for low, high in rows]) == expected
        question = f"dph_share('r.{noise}', {share}, with_chance := {with_chance})"
        rows = asked.execute(f"SELECT ci_lower, ci_upper FROM r.{question}").fetchall()
        assert held([low <= first / (first + second) <= high for low, high in rows]) == expected


@pytest.mark.parametrize(("noise", "without"), [("little", "seldom"), ("much", "")])
def test_means_and_sums_of_constant_rates_are_held_with_chance_wherever_rows_lie(
    asked: Any, noise: str, without: str
) -> None:
    """All rows at the lower ends of their bins give a true mean, all at the upper ends another: both lie within."""
    for macro, rows in (("dph_mean", BY_AGE.sum()), ("dph_sum", 1.0)):
        lowest, highest = (BY_AGE @ EDGES[:-1]) / rows, (BY_AGE @ EDGES[1:]) / rows
        for release, with_chance, expected in (
            ("ages", "true", "as promised"),
            ("fixed", "false", "as promised"),
            ("ages", "false", without),
        )[: 2 + bool(without)]:
            question = f"{macro}('r.{noise}_{release}', 'age', box := {{'place': '{{place}}'}}, with_chance := "
            found = answers(asked, f"{question}{with_chance})")
            inside = [low <= lowest and highest <= high for low, high in found]
            assert held(inside) == expected, (macro, release)


def read_release(folder: Path) -> Release:
    return Release(folder, json.loads((folder / "audit.json").read_bytes()), replayed=True)


def test_what_covers_chance_and_what_does_not_is_said_beside_it(
    asked: Any, catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In SQL, in Python and in a terminal; an interval with chance is wider."""
    questions = [
        *["dph_rate('r.little', ['ward', 'place'], 'people'{})", "dph_ranks('r.little', 'ward'{})"],
        *["dph_ratio('r.little', {{'ward': 'w2'}}, {{'ward': 'w3'}}{})", "dph_changes('r.little'{})"],
        *["dph_compare('r.little', '2026-01-05', '2026-01-12'{})", "dph_share('r.little', {{'ward': 'w2'}}{})"],
        "dph_difference('r.little', {{'ward': 'w2'}}, {{'ward': 'w3'}}{})",
        *["dph_mean('r.little_ages', 'age'{})", "dph_sum('r.little_ages', 'age'{})"],
    ]
    for question in questions:
        said, widths = [], []
        for given in ("", ", with_chance := true"):
            rows = asked.execute(f"SELECT chance, ci_lower, ci_upper FROM r.{question.format(given)}").fetchall()
            said.append({chance for chance, *_ in rows})
            widths.append(rows[0][2] - rows[0][1])
        assert said == [{notes.CHANCE_LEFT_OUT}, {notes.CHANCE_WITHIN}] and widths[1] > widths[0], question
    release = read_release(catalogue.parent / "little" / "period=2026-01-12" / "revision=1")
    for with_chance, words in ((False, notes.CHANCE_LEFT_OUT), (True, notes.CHANCE_WITHIN)):
        assert set(release.changes(with_chance=with_chance)["chance"]) == {words}
        publication = Publication(release.path, release.audit, with_chance)
        print_rows(publication, AnswerOptions(changes=True), answer_rows(publication, AnswerOptions(changes=True), {}))
        assert words[1:60] in " ".join(capsys.readouterr().out.split())
    ratio = release.ratio({"ward": "w2"}, {"ward": "w3"}, with_chance=True)
    difference = release.difference({"ward": "w2"}, {"ward": "w3"}, with_chance=True)
    told = {one.chance for one in (ratio, difference, release.share({"ward": "w2"}, with_chance=True))}
    assert told == {notes.CHANCE_WITHIN}


def test_two_revisions_of_a_period_differ_by_noise_alone(tmp_path: Path) -> None:
    public = tmp_path / "public"
    (tmp_path / "scratch").mkdir()
    for revision in (1, 2):
        made = by_hand.estimate(AXES)
        why = {"reason": "two files were late"} if revision == 2 else {}
        by_hand.publish(public, made, AXES, "twice", "2026-01-05", revision=revision, **why)
    with attached(build_catalogue(public, tmp_path / "scratch")) as connection:
        asked = "'2026-01-05', '2026-01-05', revision := [1, 2], with_chance := "
        told = [
            connection.execute(
                f"SELECT chance, ci_upper - ci_lower FROM r.dph_compare('r.twice', {asked}{chance})"
            ).fetchone()
            for chance in ("false", "true")
        ]
    assert told[0] == told[1] and told[0] is not None
    assert told[0][0] == f"{notes.CHANCE_SAME}; revision 2 was made because: two files were late"
