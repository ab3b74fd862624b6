"""A pivot holds the numbers of marginals, and totals with intervals of their own, everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import by_hand
import duckdb
import pytest
from answering_scenario import AXES, attached, published_once
from by_hand import AGE
from office import Ran, ran
from quick_catalogue import build_catalogue

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.pivots import NUMBERS, TOTAL, Pivot
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.cli import terminal
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from examples import mostly_soaked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    by_hand.publish(opened.public, by_hand.estimate(AXES), AXES)
    by_hand.publish(opened.public, by_hand.estimate(AXES, scale=None), AXES, "unmeasured")
    build_catalogue(opened.public, tmp_path_factory.mktemp("scratch"))
    return opened


@pytest.fixture(scope="module")
def release(store: Store) -> Release:
    return Release.published(store, "weekly")


def asked(store: Store, *words: str, release: str = "weekly") -> Ran:
    return ran("answer", release, "--store", store.root, *words)


@pytest.mark.parametrize(
    ("rows", "column", "box", "heads"),
    mostly_soaked(
        [
            (["age"], "state", {}, ["A", "B", "C", "other"]),
            (
                ["region"],
                "age",
                {"state": ["A", "B"]},
                ["below 0", "0 to under 18", "18 to under 65", "65 or more", "other"],
            ),
            (
                ["state", "age"],
                "day",
                {"day": ("2026-01-05", "2026-01-19")},
                ["2026-01-05 to 2026-01-11", "2026-01-12 to 2026-01-18"],
            ),
            (["state"], "county", {}, ["01", "02", "03", "04", "other"]),
        ],
        [1, 3],
    ),
)
def test_a_pivot_holds_the_numbers_of_the_marginals(
    release: Release, rows: list[str], column: str, box: dict[str, Any], heads: list[str]
) -> None:
    found = Pivot.of(Publication.read(release.path), rows, column, box)
    assert list(found.heads) == [*heads, TOTAL]
    flat = [cells[head] for cells in found.answers for head in heads if head in cells]
    both = release.marginal([*rows, column], box)
    assert sorted(tuple(one[name] for name in NUMBERS) for one in flat) == sorted(both.select(NUMBERS).rows())
    by_row = release.marginal(rows, box)
    assert [cells[TOTAL]["ci_lower"] for cells in found.answers] == by_row["ci_lower"].to_list()
    columns, answer = release.marginal([column], box), release.answer(**box)
    assert [found.totals[head]["estimate"] for head in heads] == columns["estimate"].to_list()
    assert found.totals[TOTAL]["ci_upper"] == answer.ci_upper
    frame = release.pivot(rows, column, box)
    assert frame["is_total"].to_list() == [False] * by_row.height + [True]
    assert frame[f"{TOTAL}_estimate"].to_list() == [*by_row["estimate"], answer.estimate]
    assert [frame[f"{head}_ci_lower"][-1] for head in heads] == columns["ci_lower"].to_list()


def test_an_axis_named_is_total_keeps_its_name(tmp_path: Path) -> None:
    axes: list[dict[str, Any]] = [AGE, {"column": "is_total", "values": ["yes", "no"]}]
    made = by_hand.publish(tmp_path / "public", by_hand.estimate(axes), axes)
    frame = made.pivot(["is_total"], "age")
    assert frame["is_total"].to_list() == ["yes", "no", None]
    assert frame["is_total_"].to_list() == [False, False, True]


def test_intervals_of_totals_are_narrower_than_the_sum_of_theirs(release: Release) -> None:
    (row, *_) = Pivot.of(Publication.read(release.path), ["age"], "county", {}).answers
    widths = [cell["ci_upper"] - cell["ci_lower"] for head, cell in row.items() if head != TOTAL]
    assert row[TOTAL]["ci_upper"] - row[TOTAL]["ci_lower"] < 0.6 * sum(widths)


def test_the_command_prints_a_pivot_with_totals(
    store: Store, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal.out, "_width", 120)  # it reads the environment once
    done = asked(store, "--by", "age", "--pivot", "state")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == PublishedQuality(release.path, release.audit).cap_in_words()
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["age", "A", "B", "C", "other", "total"]
    answer = release.answer()
    assert lines[6][0] == "total" and lines[6][-2] == f"{answer.unbiased:,.0f}"
    assert lines[6][-1] == f"±{(answer.ci_upper - answer.ci_lower) / 2:,.0f}"
    facts = asked(store, "--by", "age", "--pivot", "state", "--json").json
    assert facts["columns"] == ["A", "B", "C", "other", "total"] and facts["pivot"] == "state"
    assert facts["rows"][1]["A_estimate"] == release.answer(age=(0, 18), state="A").estimate
    assert [row["is_total"] for row in facts["rows"]] == [False] * 5 + [True]
    assert facts["rows"][-1]["A_estimate"] == release.answer(state="A").estimate
    assert facts["rows"][-1]["total_ci_upper"] == answer.ci_upper
    assert "±" not in asked(store, "--by", "age", "--pivot", "state", release="unmeasured").out.splitlines()[1]


@pytest.mark.parametrize("width", mostly_soaked([40, 60, 80], [0]))
def test_on_a_narrow_terminal_columns_stand_below_and_no_number_is_cut(
    store: Store, release: Release, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(terminal.out, "_width", width)
    done = asked(store, "--by", "age", "--pivot", "county")
    parts = [part.splitlines() for part in done.out.split("\n\n")]
    assert len(parts) > 1 and max(map(len, done.out.splitlines()[:-2])) <= width
    assert all(lines[0].split()[0] == "age" for lines in parts)
    assert " ".join(" ".join(lines[0].split()[1:]) for lines in parts) == (
        "01 Autauga 02 03 Mobile 04 Kodiak other total"
    )
    told = release.pivot(["age"], "county")
    shown = done.out.replace(" ~", "").replace(" !", "")
    for head in ("01", "other", "total"):
        for _, unbiased, low, high in told[[f"{head}_{number}" for number in NUMBERS]].rows():
            assert f" {unbiased:,.0f} ±{(high - low) / 2:,.0f}" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--pivot", "state"], "--pivot goes with --by"),
        (["--by", "age", "--pivot", "age"], "another axis for its columns"),
        (["--by", "age", "--pivot", "sate"], "Did you mean 'state'"),
        (["--by", "age", "--pivot", "state", "--changes"], "--pivot goes with --by and no other question"),
        (["--pivot", "state", "--mean", "age"], "--pivot goes with --by"),
        (["--by", "age", "--pivot", "state", "--where", "age >= 20"], "cuts the bin"),
    ],
)
def test_what_is_no_pivot_is_refused(store: Store, words: list[str], says: str) -> None:
    done = asked(store, *words)
    assert done.code == 1 and says in done.err, done.err


def test_heads_that_look_alike_are_told_apart(tmp_path: Path) -> None:
    axes: list[dict[str, Any]] = [AGE, {"column": "kind", "values": ["total", "a"], "other": True}]
    made = by_hand.publish(tmp_path / "public", by_hand.estimate(axes), axes)
    found = Pivot.of(Publication.read(made.path), ["age"], "kind", {})
    assert found.heads == ("total (1)", "a", "other", "total")
    with pytest.raises(QuestionRefused, match="takes a list of axes"):
        made.pivot("age", "kind")


def test_duckdb_pivots_a_marginal_by_its_own_statement() -> None:
    store = published_once()
    with attached(store.catalogue) as connection:
        rows = connection.execute(
            "PIVOT (FROM r.dph_marginal('r.weekly', ['age', 'state'], period := '2026-03-09')) ON state "
            "USING first(estimate) AS estimate, first(ci_lower) AS ci_lower GROUP BY age_lower, age_upper"
        )
        names = [column[0] for column in rows.description]
        found = {row[:2]: dict(zip(names, row, strict=True)) for row in rows.fetchall()}
    frame = store.releases["2026-03-09"].pivot(["age"], "state")
    rows_of_ages = [row for row in frame.iter_rows(named=True) if not row["is_total"]]
    for row in rows_of_ages:
        assert found[row["age_lower"], row["age_upper"]]["A_ci_lower"] == row["A_ci_lower"]
    assert duckdb.__version__ and len(found) == len(rows_of_ages)
