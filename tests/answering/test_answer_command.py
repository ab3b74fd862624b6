"""`dphist answer`: one count or a table of counts, with the reason where an estimate lies outside of its interval."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
import reported
from answering_scenario import AXES, made
from office import ran
from quick_catalogue import build_catalogue
from typer.testing import CliRunner, Result

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.cli.app import app
from dphist_pipeline.cli.ask._answer_rows import BY_VALUES, _cuts, _note_on_unbiased, told_once
from dphist_pipeline.cli.terminal import out
from dphist_pipeline.estimates.notes import BELOW, MISSING_DAYS, NO_INTERVAL, SMOOTHED
from dphist_pipeline.estimates.row_quality import RowTable
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="answers are numbers; cards are tried in publishing/"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    for kind in ("cells", "tree", "smoothed", "none"):
        by_hand.publish(opened.public, made(kind), AXES, kind)
    reported.publish(opened.public, reported.estimate([reported.AGE]), [reported.AGE])
    build_catalogue(opened.public, tmp_path_factory.mktemp("scratch"))
    return opened


def answered(store: Store, *words: str) -> Result:
    return _answered(store.root, out.width, *words)


@cache  # what is published stays as it is, and many tests ask the same
def _answered(store: Path, width: int, *words: str) -> Result:
    return CliRunner().invoke(app, ["answer", *words, "--store", str(store)])


def facts(store: Store, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered(store, *words, "--json").stdout)
    return found


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in which no table is cut."""
    monkeypatch.setattr(out, "_width", 200)


@pytest.mark.usefixtures("wide")
def test_a_ratio_by_an_axis_is_that_of_each_value_alone(store: Store) -> None:
    words = ("tree", "--ratio", "region = 'S'", "--where")
    found = facts(store, *words, "state = 'A'", "--by", "age")
    assert (found["by"], len(found["rows"])) == (["age"], 5)
    alone = facts(
        store, "tree", "--ratio", "region = 'S' and age in [18, 65)", "--where", "state = 'A' and age in [18, 65)"
    )
    (row,) = [row for row in found["rows"] if row["age_lower"] == 18]
    assert {name: row[name] for name in alone["rows"][0]} == alone["rows"][0]
    shown = answered(store, *words, "state = 'A'", "--by", "age").stdout.splitlines()
    assert sum(line.startswith(("18 ", "0 ", "65 ", "under 0", "other")) for line in shown) >= 4
    # What the bound cut is one sentence below all rows.
    (capped,) = {row["capped"] for row in found["rows"]}
    assert " ".join(shown).lower().count(capped.lower()) == 1
    for wrong, message in {
        ("--by", "agee", "--ratio", "region = 'S'"): "there is no such axis",
        ("--by", "age", "--difference", ""): "--by and --difference are two questions",
    }.items():
        refused = answered(store, "tree", *wrong)
        assert refused.exit_code != 0 and message in f"{refused.output}{refused.exception}"


def test_a_table_by_axes_is_the_marginal_of_the_release(store: Store) -> None:
    found = facts(store, "cells", "--by", "state, age", "--where", "region = 'S'")
    assert found["by"] == ["state", "age"]
    rows = found["rows"]
    assert [row["state"] for row in rows] == ["A", "B"] * 5
    assert sum(row["estimate"] for row in rows) == pytest.approx(
        facts(store, "cells", "--where", "region = 'S'")["estimate"]
    )
    shown = answered(store, "cells", "--by", "region")
    assert shown.exit_code == 0
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["region", "unbiased", "ci_lower", "ci_upper", "cells"]
    assert [line.split()[0] for line in lines[:2]] == ["S", "N"]


def test_counts_say_how_reliable_they_are(store: Store) -> None:
    rows = facts(store, "cells", "--by", "age,county,day")["rows"]
    assert {row["reliability"] for row in rows} == {"good", "fair", "poor"}
    for row in rows:
        share = row["noise_error"] / row["unbiased"] if row["unbiased"] > 0 else math.inf
        assert row["reliability"] == (
            "poor" if row["ci_lower"] <= 0 or share > 0.25 else "fair" if share > 0.1 else "good"
        )
    assert facts(store, "cells")["reliability"] == "good" and facts(store, "none")["reliability"] is None
    assert "  Reliability: good, the noise is 0.1 % of the count" in answered(store, "cells").stdout
    assert "!" not in answered(store, "cells", "--by", "age").stdout
    shown = answered(store, "cells", "--by", "age,county,day").stdout
    assert (
        shown.count(" !") > 1
        and shown.count(" ~") > 1
        and "\n~ fair: the standard deviation of the noise is between 10 and 25 %" in shown
    )
    first = "age < 0 and county = '01' and day < 2026-01-12"
    assert "Reliability: poor, the noise is more than 100 %" in answered(store, "cells", "--where", first).stdout


def test_quantiles_are_rows_of_one_answer(store: Store) -> None:
    rows = facts(store, "cells", "--quantile", "age=0.5,0.1")["rows"]
    assert [row["q"] for row in rows] == [0.5, 0.1]
    assert rows[1]["bin_upper"] <= rows[0]["bin_upper"]
    head, first, second, *_ = answered(store, "cells", "--quantile", "day=0.5,0.9").stdout.splitlines()
    assert head.split() == ["q", "estimate", "cells", "bin", "ci_bins"]
    assert first.split()[0] == "0.5" and second.split()[1] > first.split()[1] > "2026-01-05"
    for wrong in ("age", "age=", "age=x", "age=0.5,"):
        refused = answered(store, "cells", "--quantile", wrong)
        assert "--quantile takes an axis and shares, as in age=0.25,0.5" in str(refused.exception)


def test_means_and_sums_take_the_ends_of_open_bins(store: Store) -> None:
    row = facts(store, "cells", "--mean", "age", "--low", "-5", "--high", "120")["rows"][0]
    assert 20 < row["ci_lower"] < row["estimate"] < row["ci_upper"] < 60
    assert facts(store, "cells", "--sum", "age", "--where", "age in [0, 65)")["rows"][0]["estimate"] > 1e6
    _, shown, *_ = answered(store, "cells", "--mean", "day").stdout.splitlines()
    assert "2026-01-05" < shown.split()[1] < shown.split()[0] < "2026-03-30"
    refused = str(answered(store, "cells", "--mean", "age").exception)
    assert "say where its values end, for example --low" in refused
    refused = str(answered(store, "cells", "--sum", "age", "--low", "-5", "--high", "3").exception)
    assert "axis age: --high must lie above 65" in refused
    shown = " ".join(answered(store, "cells", "--mean", "day").stdout.split())
    assert "; --with-chance adds that." in shown


def test_two_boxes_periods_and_ranks_are_asked_by_options(store: Store) -> None:
    first, second = "state = A", "state = B"
    one, two = (facts(store, "cells", "--where", where)["estimate"] for where in (first, second))
    for option, expected in (("--difference", one - two), ("--ratio", one / two)):
        (row,) = facts(store, "cells", "--where", first, option, second)["rows"]
        assert row["estimate"] == pytest.approx(expected) and row["ci_lower"] < expected < row["ci_upper"]
        head, line, *said = answered(store, "cells", "--where", first, option, second).stdout.splitlines()
        assert "not chance" in " ".join(said)
        assert ("The bound cut about 40 rows" in " ".join(" ".join(said).split())) == (option == "--ratio")
        assert head.split() == [option[2:], "ci_lower", "ci_upper", "cells"] and len(line.split()) == 4
    for blank in ("", "  "):
        refusal = str(answered(store, "cells", "--where", first, "--ratio", blank).exception)
        assert "--ratio takes the conditions of the count to divide by" in refusal and "use --share" in refusal
    ranks = facts(store, "cells", "--ranks", "state")["rows"]
    assert [row["rank"] for row in ranks] == [1, 2, 3, 4] and ranks[0]["state"] == "A"
    assert answered(store, "cells", "--ranks", "state").stdout.splitlines()[2].split()[:4] == ["other", "2", "2", "2"]
    (total,) = facts(store, "cells", "--over", "2026-03-02,2026-03-02")["rows"]
    assert total["unbiased"] == facts(store, "cells")["unbiased"]
    assert (total["first_period"], total["last_period"], total["periods"]) == ("2026-03-02", "2026-03-02", 1)
    head, line, *said = answered(store, "cells", "--over", "2026-03-01,2026-12-07").stdout.splitlines()
    assert "Biased by the cap; of each period, dphist quality cells tells" in " ".join(" ".join(said).split())
    assert head.split()[:4] == ["first_period", "last_period", "periods", "unbiased"]
    assert line.split()[:3] == ["2026-03-02", "2026-03-02", "1"]
    assert "only one period is published" in str(answered(store, "cells", "--changes").exception)


def test_rates_take_a_population_from_a_file(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("county,population\n01,1000\n02,2000\n03,3000\n04,4000\n")
    rates = facts(store, "cells", "--by", "county", "--population", str(file), "--per", "100")
    counts = facts(store, "cells", "--by", "county")["rows"]
    assert (rates["per"], rates["by"]) == (100, ["county"])
    for rate, count in zip(rates["rows"], counts[:4], strict=True):
        assert rate["estimate"] == pytest.approx(count["estimate"] * 100 / rate["population"])
    shown = answered(store, "cells", "--by", "county", "--population", str(file)).stdout.splitlines()
    assert shown[0].split()[:4] == ["county", "county_label", "population", "rate"]
    file = tmp_path / "by_sex.csv"
    file.write_text("county,sex,population\n01,f,400\n01,m,600\n02,f,0\n04,f,4000\n")
    first, second, third, fourth = facts(store, "cells", "--by", "county", "--population", str(file))["rows"]
    assert first["population"] == 1000 and first["note"].endswith("people are added up over sex")
    assert (second["estimate"], third["estimate"], third["population"]) == (None, None, None)
    assert fourth["estimate"] is not None
    printed = answered(store, "cells", "--by", "county", "--population", str(file)).stdout
    assert "the population is 0 for 02" in printed and "nan" not in printed
    for words, message in {
        (
            "--by",
            "county",
            "--mean",
            "age",
        ): "axis age has an open bin; say where its values end",
        ("--population", str(file)): "--population goes with --by",
        ("--standardise", "age"): "--standardise goes with --population, and with --by or no other question",
        (
            "--standardise",
            "age",
            "--population",
            str(file),
            "--mean",
            "age",
        ): "--standardise goes with --population, and",
        ("--by", "county", "--population", "people.txt"): "must be a file that ends in .csv or .parquet",
        ("--by", "county", "--population", "none.csv"): "the population none.csv cannot be read",
    }.items():
        assert message in str(answered(store, "cells", *words).exception)


def test_a_rate_tells_in_a_column_how_far_the_bound_moves_it(store: Store, tmp_path: Path) -> None:
    """By the rows cut along its axis, or along that of its level; what all rates have in common stands once."""
    codes, cuts = ("01", "02", "03", "04", None), np.array([4.0, 0, 8, 50, 0])
    along = RowTable(("cut",) * 5, ("county",) * 5, tuple(range(5)), codes, cuts, by_hand.SCALE, "b", Fraction(1))
    told = replace(made("cells"), quality=(*by_hand.QUALITY, along))
    opened = Store.create(tmp_path / "project" / "store")
    by_hand.publish(opened.public, told, AXES, "cells")
    for by, groups, lows in (("county", codes[:4], (4, 0, 8, 50)), ("state", "ABC", (12, 0, 50))):
        file = tmp_path / f"{by}.csv"
        file.write_text("\n".join([f"{by},population", *(f"{group},10" for group in groups)]))
        shown = answered(opened, "cells", "--by", by, "--population", str(file), "--per", "10").stdout
        assert re.findall(r"(\S+) \(95 %:", shown) == [f"-{low}" if low else "+0" for low in lows]
        assert " ".join(shown.split()).count("The bound moves this rate by about what the column capped says.") == 1


def test_a_rate_can_be_standardised(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("county,population,standard\n01,1000,1\n02,2000,1\n03,3000,2\n04,4000,0\n")
    given = ("--population", str(file), "--per", "100")
    rates = facts(store, "cells", "--by", "county", *given)["rows"]
    (row,) = facts(store, "cells", "--standardise", "county", *given)["rows"]
    weights = (0.25, 0.25, 0.5, 0)
    assert row["estimate"] == pytest.approx(sum(w * rate["estimate"] for w, rate in zip(weights, rates, strict=True)))
    head, line, *said = answered(store, "cells", "--standardise", "county", *given).stdout.splitlines()
    assert "not chance" in " ".join(said)
    assert head.split() == ["population", "rate", "ci_lower", "ci_upper", "cells"] and line.split()[0] == "10,000"


@pytest.mark.parametrize("question", [["--by", "state"], []])
def test_chance_is_refused_where_no_interval_would_cover_it(store: Store, question: list[str]) -> None:
    refused = answered(store, "cells", *question, "--with-chance")
    assert (
        refused.exit_code != 0
        and "--with-chance is for --changes, --difference, --mean, --ranks, --ratio, --share, --sum and"
        in str(refused.exception)
    )


def test_no_note_is_about_an_estimate_that_is_not_shown(store: Store) -> None:
    rows = facts(store, "smoothed", "--by", "state")["rows"]
    assert SMOOTHED in {row["note"] for row in rows}
    assert "estimate lies outside" not in answered(store, "smoothed", "--by", "state").stdout
    days = f"7{MISSING_DAYS}"
    assert [_note_on_unbiased(note) for note in (f"{days}; {SMOOTHED}", BELOW, days, None)] == [days, "", days, ""]


def test_two_releases_can_be_compared(store: Store) -> None:
    (row,) = facts(store, "cells", "--compare", "tree", "--where", "state = 'A'")["rows"]
    estimates = [facts(store, name, "--where", "state = 'A'")["unbiased"] for name in ("cells", "tree")]
    assert row["unbiased"] == pytest.approx(estimates[0] - estimates[1])
    assert "no release 'x'" in str(answered(store, "cells", "--compare", "x").exception)


def test_an_estimate_outside_of_its_interval_says_why(store: Store) -> None:
    first = "age < 0 and county = '01' and day < 2026-01-12"
    for release, note in (("cells", BELOW), ("smoothed", SMOOTHED), ("none", NO_INTERVAL)):
        found = facts(store, release, "--where", first)
        assert found["note"] == note
        assert note in answered(store, release, "--where", first).stdout
    smoothed = facts(store, "smoothed", "--where", first)
    shown = answered(store, "smoothed", "--where", first).stdout
    assert f"The interval belongs to the unbiased estimate, {smoothed['unbiased']:,.0f}." in shown
    assert facts(store, "cells")["note"] is None
    assert facts(store, "none")["ci_lower"] is None


@pytest.mark.parametrize("where", ["state = 'A'", "age < 20"])
def test_a_sum_without_an_interval_is_told_with_the_reason_alone(store: Store, where: str) -> None:
    # The second one cuts bins, of which it is said where an interval is that it holds however their rows lie.
    told = " ".join(answered(store, "none", "--where", where).stdout.split())
    assert NO_INTERVAL in told
    assert "interval of" not in told
    assert "holds" not in told
    assert "Reliability" not in told


def test_an_unknown_axis_is_refused_with_the_right_names(store: Store) -> None:
    refused = answered(store, "tree", "--by", "stat")
    assert refused.exit_code == 1
    assert "Did you mean 'state'" in str(refused.exception)


def test_a_table_of_a_tree_has_the_bars_of_linear_estimates(store: Store, tmp_path: Path) -> None:
    rows = facts(store, "tree", "--by", "state")["rows"]
    assert {row["basis"] for row in rows} == {"linear"}
    assert all(row["ci_lower"] < row["estimate"] < row["ci_upper"] for row in rows)


def test_a_range_that_cuts_bins_is_answered_by_the_bins_within_and_around(store: Store) -> None:
    found = facts(store, "cells", "--where", "day in [2026-01-07, 2026-01-21) and region = 'S'")
    within = facts(store, "cells", "--where", "day in [2026-01-12, 2026-01-19) and region = 'S'")
    around = facts(store, "cells", "--where", "day in [2026-01-05, 2026-01-26) and region = 'S'")
    assert (found["ci_lower"], found["ci_upper"]) == (within["ci_lower"], around["ci_upper"])
    assert "cut bins of day" in found["note"]
    assert "cut bins of day" in answered(store, "cells", "--where", "day in [2026-01-07, 2026-01-21)").stdout


def test_two_ranges_that_cut_bins_are_answered_together(store: Store) -> None:
    found = facts(store, "cells", "--where", "day < 2026-01-07 and age < 7")
    assert "cut bins of" in found["note"] and "day" in found["note"] and "age" in found["note"]
    assert found["ci_lower"] == 0


def test_a_release_of_the_local_model_is_answered_too(store: Store) -> None:
    made_of = reported.estimate([reported.AGE])
    found, box = facts(store, "town_age", "--where", "age in [6, 45)"), made_of.box(age=(6, 45))
    assert (found["estimate"], found["ci_lower"], found["ci_upper"]) == (box.estimate, box.ci_lower, box.ci_upper)
    assert (found["basis"], found["noise_error"]) == ("linear", box.noise_error)
    cut = facts(store, "town_age", "--where", "age in [7, 45)")
    inner, outer = made_of.box(age=(18, 45)), made_of.box(age=(6, 45))
    assert (cut["ci_lower"], cut["ci_upper"], cut["cells"]) == (inner.ci_lower, outer.ci_upper, outer.cells)
    rows = facts(store, "town_age", "--by", "age")["rows"]
    assert [row["estimate"] for row in rows] == made_of.values.tolist()
    assert {row["basis"] for row in rows} == {"linear"}


@pytest.mark.parametrize(
    ("where", "mend"),
    [
        ("age = 30", "`age in [18, 65)`"),
        ("age == -1", "`age < 0`"),
        ("age = 65", "`age >= 65`"),
        ("age = old", "`age in [0, 18)`"),
        ("day = 2026-01-07", "`day in [2026-01-05, 2026-01-12)`"),
        ("day = 2020-01-01", "`day in [2026-01-05, 2026-01-12)`"),
    ],
)
def test_equality_on_bins_is_refused_with_the_bin_to_ask_for(store: Store, where: str, mend: str) -> None:
    refused = answered(store, "cells", "--where", where)
    assert refused.exit_code == 1
    assert "`=` is for categories" in str(refused.exception) and mend in str(refused.exception)


def test_other_asks_for_the_other_cell_unless_a_category_is_called_that(store: Store) -> None:
    asked = facts(store, "cells", "--where", "county is other")
    assert facts(store, "cells", "--where", "county = other")["estimate"] == asked["estimate"]
    assert facts(store, "cells", "--where", "region in (other)")["estimate"] == asked["estimate"]
    side = {"column": "side", "values": ["other", "left"], "other": True}
    by_hand.publish(store.public, by_hand.estimate([side]), [side], "sides")
    found = [facts(store, "sides", "--where", f"side {what}")["estimate"] for what in ("= other", "is other")]
    assert found == [-2.75, 11.25]


def test_a_table_names_other_cells_and_writes_counts_whole(store: Store) -> None:
    axes = [{**by_hand.HEIGHT, "other": True}, by_hand.WARD]
    values = np.array([[506065.4, -0.4, 3.0]] * 5)
    by_hand.publish(store.public, by_hand.estimate(axes, values, off=0), axes, "heights")
    lines = answered(store, "heights", "--by", "height,ward").stdout.splitlines()
    assert lines[0].split()[:4] == ["height", "ward", "estimate", "ci_lower"]
    assert lines[1].split()[:6] == ["over", "0", "to", "0.1", "surgery", "506,065"]
    assert lines[2].split()[4:6] == ["medicine", "0"]
    assert lines[3].split()[4:6] == ["other", "3"]
    assert lines[15].split()[:3] == ["other", "other", "3"]


def test_a_table_names_its_release_and_period(store: Store) -> None:
    audit = facts(store, "cells", "--by", "age")
    which = f"cells, period {audit['period']}, revision {audit['revision']}"
    for more in (("--by", "age"), ("--by", "age", "--pivot", "county"), ("--quantile", "age=0.5")):
        assert which in answered(store, "cells", *more).stdout.splitlines()


def test_printed_numbers_have_the_decimals_of_their_noise_or_those_asked_for(store: Store) -> None:
    words = ("cells", "--mean", "age", "--low", "-5", "--high", "120")
    row = facts(store, *words)["rows"][0]
    places = HeadlineFigure.decimals_justified(row)
    for asked, decimals in (((), places), (("--decimals", "0"), 0), (("--decimals", "7"), 7)):
        shown = answered(store, *words, *asked).stdout.splitlines()[1].split()
        assert shown[:3] == [f"{row[name]:,.{decimals}f}" for name in ("unbiased", "ci_lower", "ci_upper")]
    assert facts(store, *words, "--decimals", "0")["rows"] == [row]
    single = answered(store, "cells", "--decimals", "2").stdout
    assert f"{facts(store, 'cells')['unbiased']:,.2f} records" in single


def test_a_table_says_each_note_once_below(store: Store) -> None:
    shown = answered(store, "cells", "--by", "age,county,day").stdout
    assert shown.count(BELOW) == 1 and shown.splitlines()[-1] == f"(1) {BELOW}"
    below = [row for row in facts(store, "cells", "--by", "age,county,day")["rows"] if row["note"]]
    assert sum(line.rstrip().endswith(" (1)") for line in shown.splitlines()) == len(below) > 0


def weekly(store: Store, name: str, period: str, end: str, kind: str = "cells", **more: Any) -> None:
    ends = {"period_start": f"{period}T00:00:00+01:00", "period_end": f"{end}T00:00:00+02:00"}
    by_hand.publish(store.public, made(kind), AXES, name, period, **ends, **more)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two releases of the same two weeks."""
    opened = Store.create(tmp_path_factory.mktemp("weeks") / "store")
    for name, kind in (("one", "cells"), ("two", "tree")):
        weekly(opened, name, "2026-01-12", "2026-01-19", kind)
        weekly(opened, name, "2026-01-19", "2026-01-26", kind)
    age = [axis for axis in AXES if axis["column"] == "age"]
    by_hand.publish(opened.public, by_hand.estimate(age), age, "ages", "2026-01-19")
    build_catalogue(opened.public, tmp_path_factory.mktemp("scratch"))
    return opened


def test_a_comparison_by_values_names_both_sides_and_their_real_period(weeks: Store) -> None:
    words = ("one", "--period", "2026-01-12", "--by", "age", "--compare", "two")
    head, *lines = answered(weeks, *words).stdout.splitlines()
    assert head.split() == ["age", "change", "ci_lower", "ci_upper", "cells"]
    which = ", less ".join(f"{name}, period 2026-01-12, revision 1" for name in ("one", "two"))
    assert which in lines and which in answered(weeks, *words[:3], *words[5:]).stdout.splitlines()
    one, two = (Publication.read(weeks.public / name / "period=2026-01-12" / "revision=1") for name in ("one", "two"))
    for row in one.changes_since(two, {}, ["age"]):
        assert row["first_period"] == row["second_period"] == "2026-01-12"
        assert row["first_period_start"] == row["second_period_start"] == date(2026, 1, 12)
        assert row["first_period_end"] == row["second_period_end"] == date(2026, 1, 19)
    refused = str(answered(weeks, "one", "--by", "state", "--compare", "ages").exception)
    assert "axis 'state': there is no such axis. Known: age." in refused


OF_PERIODS = {
    "changes": ["--changes"],
    "compare": ["--compare", "two"],
    "ratio": ["--ratio", "state = A"],
    "share": ["--share", "state = A"],
    "over": ["--over", "2026-01-12,"],
}


@pytest.mark.parametrize("question", OF_PERIODS)
def test_every_answer_about_periods_is_told_as_json(weeks: Store, question: str) -> None:
    assert set(BY_VALUES) - {"mean", "sum"} < set(OF_PERIODS), "those are of amounts, and of one period"
    for by in ([], ["--by", "age"], ["--by", "day,state"]) if question in BY_VALUES else ([],):
        said = answered(weeks, "one", *OF_PERIODS[question], *by, "--json").stdout
        rows = json.loads(said, parse_constant=pytest.fail)["rows"]
        assert (len(rows) > 1) == bool(by) and all(isinstance(row["unbiased"], float) for row in rows)
        days = {row[name] for row in rows for name in row if name.endswith(("period_start", "period_end"))}
        if question == "changes":
            assert days == {"2026-01-12", "2026-01-19", "2026-01-26"}
        else:
            assert days == ({"2026-01-19", "2026-01-26"} if question == "compare" and by else set())


@pytest.mark.usefixtures("wide")
def test_what_is_said_of_some_changes_alone_has_the_number_of_its_rows(tmp_path: Path) -> None:
    opened = Store.create(tmp_path / "store")
    weekly(opened, "one", "2026-01-05", "2026-01-12")
    weekly(opened, "one", "2026-01-19", "2026-01-26", "smoothed")
    by_hand.publish(opened.public, replace(made("cells"), quality=()), AXES, "one", "2026-01-26")
    for by, states in (([], [""]), (["--by", "state"], ["A", "B", "C", "other"])):
        head, *lines = answered(opened, "one", "--changes", *by).stdout.splitlines()
        assert head.split()[-2:] == ["note", "capped"]
        numbers = [line.rpartition("  ")[2] for line in lines[: 2 * len(states)]]
        assert numbers == ["(2)"] * len(states) + ["(3)"] * len(states)
        assert [line.count("(1)") for line in lines[: 2 * len(states)]] == [1] * len(states) + [0] * len(states)
        said = [line for line in lines if line.startswith("(")]
        assert [line[:4] for line in said] == ["(1) ", "(2) ", "(3) "]
        assert said[0].startswith(f"(1) 7{MISSING_DAYS}") and SMOOTHED not in said[0]
        assert said[1].count("the bound cut about 40 rows") == 2 and said[2].count("no quality table counts") == 1


def test_a_share_is_of_all_rows_or_of_those_that_where_names(store: Store) -> None:
    def count(*conditions: str) -> float:
        found: float = facts(store, "cells", "--where", " and ".join(conditions))["estimate"]
        return found

    part, whole = "state = A", "age >= 18"
    (of_all,) = facts(store, "cells", "--share", part)["rows"]
    assert of_all["estimate"] == pytest.approx(count(part) / facts(store, "cells")["estimate"])
    assert 0 < of_all["ci_lower"] < of_all["estimate"] < of_all["ci_upper"] < 1
    (within,) = facts(store, "cells", "--share", part, "--where", whole)["rows"]
    assert within["estimate"] == pytest.approx(count(part, whole) / count(whole))
    by_age = facts(store, "cells", "--share", part, "--by", "age")["rows"]
    of_bins = [row["part_estimate"] / row["whole_estimate"] for row in by_age]
    assert len(by_age) > 1 and [row["estimate"] for row in by_age] == pytest.approx(of_bins)
    assert all(0 < share < 1 for share in of_bins)
    for blank in ("", "  "):
        refusal = str(answered(store, "cells", "--share", blank, "--by", "age").exception)
        assert "--share takes the conditions of the part" in refusal and "--where says within which" in refusal


@pytest.mark.usefixtures("wide")
def test_a_change_between_two_periods_is_asked_by_both(weeks: Store) -> None:
    days = [row["second_period"] for row in facts(weeks, "one", "--changes")["rows"]]
    first, last = facts(weeks, "one", "--changes")["rows"][0]["first_period"], days[-1]
    (row,) = facts(weeks, "one", "--changes", f"{first},{last}")["rows"]
    ends = [facts(weeks, "one", "--period", day)["unbiased"] for day in (first, last)]
    assert (row["first_period"], row["second_period"], row["estimate"]) == (
        first,
        last,
        pytest.approx(ends[1] - ends[0]),
    )
    by_age = facts(weeks, "one", "--changes", f"{last},{first}", "--by", "age")["rows"]
    assert sum(one["unbiased"] for one in by_age) == pytest.approx(ends[0] - ends[1])
    assert {(one["first_period"], one["second_period"]) for one in by_age} == {(last, first)}
    shown = answered(weeks, "one", "--changes", f"{first},{last}").stdout
    assert shown.split()[0] == "change" and f"one, period {last}, revision 1, less one, period {first}" in shown
    for wrong, says in (("2026-01-05", "takes two periods"), (f"{first},", "takes two periods"), ("2031-01-01,1", "")):
        assert answered(weeks, "one", "--changes", wrong).exit_code != 0, says
    assert facts(weeks, "--changes", "one")["rows"] == facts(weeks, "one", "--changes")["rows"], "a name is no period"


@pytest.mark.usefixtures("wide")
def test_a_note_of_all_rows_stands_below_them_and_in_none(store: Store) -> None:
    head, *lines = answered(store, "cells", "--ranks", "age").stdout.splitlines()
    assert "note" not in head.split() and "(1)" not in " ".join(lines)
    assert "All intervals of counts and of ranks hold together with 95 %." in lines


def test_what_the_bound_cut_in_two_periods_is_said_once() -> None:
    seen = "among the first 9 rows of each unit (rows beyond these are not seen, and the 95 % is of noise alone)"
    rest = "no interval covers them"
    both = [f"{seen}, the bound cut about {rows} rows (95 %: 0 to 9); {rest}" for rows in (1, 2)]
    cut = "the bound cut about 1 rows (95 %: 0 to 9) in the first period and about 2 rows (95 %: 0 to 9) in the second"
    assert told_once(f"in the first period {both[0]}. In the second one {both[1]}") == f"{seen}, {cut} one; {rest}"
    for other in ("", "the bound cut nothing", f"in the first period {both[0]}. In the second one the count is biased"):
        assert told_once(other) == other


def test_periods_without_a_cut_that_can_be_seen_are_told_in_one_sentence() -> None:
    uncut = "no cut rows detected among the first 6 of each unit; at most {} (95 %)"
    pairs = [("1,649", "2,625"), ("2,625", "492")]
    rows = [f"in the first period {uncut.format(one)}. In the second one {uncut.format(two)}" for one, two in pairs]
    told = f"In each of these periods {uncut.format('2,625').removesuffix(' (95 %)')} in one (95 %)."
    assert _cuts(rows, 0) == ([], [told])
    assert _cuts([*rows, "another"], 1)[0] == ["(2)", "(3)", "(4)"]


def test_a_week_may_be_asked_by_its_number(store: Store) -> None:
    weekly(store, "weeks", "2026-01-12", "2026-01-19")
    weekly(store, "weeks", "2026-01-18", "2026-01-25")
    weekly(store, "months", "2026-06-01", "2026-07-01")
    assert facts(store, "weeks", "--period", "2026-W03")["period"] == "2026-01-12"
    assert facts(store, "weeks", "--period", "2026-EW03")["period"] == "2026-01-18"
    for name, week in (("weeks", "2026-W05"), ("weeks", "2026-W99"), ("months", "2026-W23"), ("cells", "2026-W10")):
        refused = answered(store, name, "--period", week)
        assert refused.exit_code == 1 and f"'{week}' is published" in str(refused.exception)


def test_a_period_that_was_taken_back_is_refused_with_those_that_stand(store: Store) -> None:
    gone = {"withdrawn": {"reason": "wrong", "at": "2026-05-01T00:00:00Z", "entry": 2}}
    for period, more in (("2026-03-02", {}), ("2026-03-09", gone), ("2026-03-16", {}), ("2026-03-23", gone)):
        by_hand.publish(store.public, made("cells"), AXES, "taken", period, **more)
    by_hand.publish(store.public, made("cells"), AXES, "taken", "2026-03-09", 2)
    by_hand.publish(store.public, made("cells"), AXES, "taken", "2026-03-16", 2, **gone)
    says = str(answered(store, "taken").exception)
    assert "period 2026-03-23, revision 1 was withdrawn" in says
    assert "name another period (these stand: 2026-03-02, 2026-03-09), or publish" in says
    by_hand.publish(store.public, made("cells"), AXES, "alone", **gone)
    assert "name another period, or publish" in str(answered(store, "alone").exception)


def test_a_copied_public_folder_is_enough_and_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store.public, copy)
    DerivedFiles(copy).write_current_files(tmp_path)  # as a release does
    before = {path: path.stat().st_mtime_ns for path in [copy, *copy.rglob("*")]}
    for words in (
        ["answer", "cells", "--by", "region"],
        ["export", "cells", "--to", "csv", "--output", str(tmp_path / "cells.csv")],
        ["plot", "cells", "--output", str(tmp_path / "cells.svg")],
    ):
        done = ran(*words, "--store", copy)
        assert done.code == 0, done.err
    assert {path: path.stat().st_mtime_ns for path in [copy, *copy.rglob("*")]} == before
    refused = ran("answer", "cells", "--store", tmp_path)
    assert refused.code == 1 and "there is no store" in refused.err
