"""What the bound cut and what failed, as people read it: on the card, by the command, in SQL, before an approval."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from carded import Read
from office import AGE, WARD, Office

from dphist_pipeline.cli.ask import quality as quality_command
from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates.row_quality import NEARLY_ALL_FAILED, BoundingEffect, QualityTable
from dphist_pipeline.spec.model import UNSEEN_CUT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]

# 100 patients with one row in surgery, and 50 with five in medicine, of which two are kept, and two of three are seen.
RECORDS: dict[str, list[Any]] = {
    "patient": [f"p{number}" for number in range(100)] + [f"q{number % 50}" for number in range(250)],
    "age": [30.0] * 350,
    "ward": ["surgery"] * 100 + ["medicine"] * 250,
}
QUALITY = {"share": "1/2", "rows": 4, "by": ["ward"]}
BEYOND = "Rows beyond 2 of each patient are not counted: "
SAYS = f"{BEYOND}no cut rows detected among the first 4 of each; at most 220 (95 %)."

OF_MACRO = ["period", "revision", "most", "reliability", "period_start", "period_end"]  # columns beyond the file's
CUT_TABLE = "What the cap cut of the first 4 rows of each, by ward"


@pytest.fixture
def office(office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office without a store whose noise will be 0: what is written of it stays an interval."""
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: noise.np.zeros(size, dtype=noise.np.int64))
    return office


@pytest.fixture
def opened(office: Office) -> Office:
    office.opened().write_records(RECORDS)
    office.write_spec(quality=QUALITY)
    return office


def card(office: Office) -> str:
    return Read((office.published() / "card.html").read_text(encoding="utf-8")).text


def test_the_card_says_at_once_what_the_cap_cut_and_by_which_category(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY)
    page = card(office)
    assert page.index(SAYS) < page.index("declared before any record was read")
    assert page.count(SAYS) == 1 and "What the cap cut of the first" not in page
    assert "the quality table tells how many of them are among the first 4 rows of each." in page
    assert "a share of 1/2 of ε paid for noisy numbers" in page
    assert "quality.parquet what the cap cut" in page


def test_of_what_the_cap_cut_only_what_stands_out_has_a_line(opened: Office) -> None:
    """5,000 rows of medicine are cut, of which 4,000 are seen; of surgery none, but the noise reaches 198 rows."""
    opened.write_records({"patient": [f"q{row // 5}" for row in range(10_000)]} | held_in_medicine(10_000))
    opened.released()
    page = card(opened)
    line = "medicine 4,000 4,000 3,802 to 4,120 50.0 %"
    assert f"{CUT_TABLE} ward counted cut 95 %, all lines together share cut {line}" in page
    assert "surgery 0 0" not in page and f"{BEYOND}about 4,000 (3,880 to 4,120, 95 %) among the first 4" in page
    lines = [" ".join(line.split()) for line in opened.run("quality", "wards").out.splitlines()]
    assert line in lines and not any(line.startswith("surgery") for line in lines)


def held_in_medicine(rows: int) -> dict[str, list[Any]]:
    return {"age": [30.0] * rows, "ward": ["medicine"] * rows}


def test_no_line_of_what_was_cut_is_above_the_upper_end_of_all_rows_cut() -> None:
    """As noise may draw it: 1,704 of one value where all rows together are at most 250."""
    line = {"statistic": "cut", "position": 0, "category": None, "noise_scale": 400.0}
    rows = [
        {**line, "axis": "ward", "estimate": 3_704.0, "ci_lower": 2_506.0, "ci_upper": 4_902.0},
        {**line, "axis": None, "estimate": 10.0, "ci_lower": -230.0, "ci_upper": 250.0},
    ]
    (cut,) = QualityTable(rows).cuts(lambda axis: np.array([1_000.0]))["ward"]
    assert cut.stands_out and cut.possible == (250, 250) and cut.about == 250 and cut.share == pytest.approx(0.2)


def test_lines_of_noise_alone_stand_out_in_one_table_of_twenty() -> None:
    """24 numbers of 12 axes, all 0: one stands out in at most 5 % of the tables, and not in half as many."""
    source, tables, scale = np.random.default_rng(5), 4_000, 30
    chance = 1 - math.exp(-1 / scale)
    drawn = source.geometric(chance, (2, tables, 24))
    reach = [
        {"statistic": "cut", "axis": f"a{line % 12}", "noise_scale": float(scale), "estimate": 0.0}
        for line in range(24)
    ]
    lower, upper = QualityTable([*reach, {"statistic": "cut", "axis": None}]).together(reach[0])
    worst = (drawn[0] - drawn[1]).max(axis=1)
    false = int((worst + lower > 0).sum())
    assert upper == -lower and 0.015 * tables < false < 0.035 * tables  # one side of 5 %


def test_a_draw_far_below_none_does_not_say_that_surely_nothing_was_cut() -> None:
    cut = BoundingEffect("medicine", counted=1_000, cut=-300, ci_lower=-420, ci_upper=-180)
    assert cut.possible == (0, 120)
    assert cut.share_in_words == "up to 10.7 %"
    assert BoundingEffect("medicine", counted=1_000, cut=-30, ci_lower=-150, ci_upper=90).possible == (0, 90)


def test_a_card_without_a_quality_table_speaks_of_none(office: Office) -> None:
    office.with_release(RECORDS)
    page = card(office)
    assert f"{BEYOND[:-2]}; how many these are is not known." in page
    assert "the cap cut" not in page and "quality" not in page


def test_the_command_shows_the_same_numbers(opened: Office) -> None:
    opened.write_spec(quality=QUALITY, epsilon="2")
    opened.released()
    ran = opened.run("quality", "wards")
    assert ran.code == 0, ran.err
    says = f"{BEYOND}about 100 (70 to 130, 95 %) among the first 4 of each."
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[:2] == ["wards, period all, revision 1", says]
    for line in (
        "declared 300 216 to 384",
        "1 100 78 to 122",
        "4 or more 50 28 to 72",
    ):
        assert line in lines, lines
    told = opened.run("quality", "wards", "--period", "all", "--json").json
    assert told["says"] == [says]
    assert told["rows"] == pq.read_table(opened.published() / "quality.parquet").to_pylist()
    assert (told["quality"], told["max_rows_per_unit"]) == (QUALITY, 2)


def test_the_command_hides_figures_below_the_rule_of_a_minimum_frequency(opened: Office) -> None:
    """Numbers below 200 are told as words, of 300, 100 and 50 and of 100 rows cut of 300; --json has them all."""
    opened.write_spec(quality=QUALITY, epsilon="2", show_below=200)
    opened.released()
    ran = opened.run("quality", "wards")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    for line in ("declared 300 216 to 384", "1 below 200", "4 or more below 200"):
        assert line in lines, lines
    few = "their published figure is below 200."
    told = " ".join(ran.out.split())
    assert few in told and "70 to 130" not in told and "22 to 78" not in told and "28 to 72" not in told
    assert not [most for most in re.findall(r"at most (\d+)(?= rows| units| of each)", told) if 2 < int(most) < 200]
    assert "Figures below 200 are told as words" in told
    assert few in card(opened)
    shown = opened.run("quality", "wards", "--json").json["rows"]
    assert shown == pq.read_table(opened.published() / "quality.parquet").to_pylist()


@pytest.mark.parametrize(
    ("counted", "cut", "told"),
    [
        (40, 25, ("medicine", "40", "25", "15 to 35", "38.5 %")),
        (40, 15, ("medicine", "40", "below 20", "", "")),
        (15, 25, ("medicine", "below 20", "25", "", "")),
    ],
)
def test_values_that_the_cap_cut_are_hidden_where_either_number_is_below_the_rule(
    counted: float, cut: float, told: tuple[str, ...]
) -> None:
    made = BoundingEffect("medicine", counted=counted, cut=cut, ci_lower=cut - 10, ci_upper=cut + 10)
    assert quality_command._QualityText(20, 0).of_cut(made, {}) == told


def test_tables_whose_intervals_are_wider_than_their_count_are_not_shown(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY)
    told = office.run("quality", "wards").out
    assert "speak of: rows by where they fell. --json shows all" in " ".join(told.split())
    assert "declared  " not in told


def test_of_a_week_without_rows_neither_card_nor_command_shows_a_quality_table(opened: Office) -> None:
    opened.write_records({name: column[:3] for name, column in RECORDS.items()})
    opened.released()
    says = "no cut rows detected among the first 4 of each; at most 120 (95 %)."
    assert says in card(opened) and "What the cap cut of the first" not in card(opened)
    told = " ".join(opened.run("quality", "wards").out.split())
    assert says in told and "share cut" not in told
    forecast = opened.run("forecast", "spec.yaml", "--mechanism", "geometric", "--epsilon", "1/2", "--json").json
    assert forecast["bounds"]["tried"] == [] and forecast["bounds"]["advice"] == (
        "No bound is advised: the intervals of the quality table of wards, period all are wider than the count of rows "
        "that they speak of."
    )
    assert "what a bound cuts" not in opened.run("forecast", "spec.yaml", "--mechanism", "geometric", "--all").out


def test_missing_values_are_bounded_by_the_published_other(opened: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise draws 2,000 missing wards where none is missing and `other` of the counts is 0, with noise of scale 8."""
    drawn = noise.discrete_laplace

    def draws(scale: Fraction, size: int) -> Any:
        return drawn(scale, size) + (noise.np.array([0, 0, 2_000, 0]) if size == 4 else 0)

    monkeypatch.setattr(noise, "discrete_laplace", draws)
    opened.write_spec(quality=QUALITY | {"rows": 5}, axes=[AGE, WARD])
    opened.released()
    told = " ".join(opened.run("quality", "wards").out.split())
    assert "Of 4 numbers of missing or undeclared values, none stands out" in told and "2,000" not in told
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{opened.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        asked = "SELECT most, estimate, reliability FROM r.dph_quality('r.wards')"
        asked = f"{asked} WHERE statistic = 'unparsed' AND axis = 'ward'"
        ((most, estimate, reliability),) = connection.sql(asked).fetchall()
    assert estimate == 2_000 and 0 < most < 1_000 and reliability == "poor"
    assert f"each is at most {most:,.0f} rows" in told


def test_the_command_shows_sixty_rows_of_a_long_table_and_names_the_option_for_all(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality_command, "MOST_ROWS", 1)
    office.with_release(RECORDS, quality=QUALITY, epsilon=5)
    lines = [" ".join(line.split()) for line in office.run("quality", "wards").out.splitlines()]
    assert "… and 1 more row: --json shows all" in lines


def test_decimals_of_a_quality_table_follow_its_noise_unless_others_are_asked_for(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY, epsilon=5)
    whole, asked = (office.run("quality", "wards", *more).out for more in ([], ["--decimals", "2"]))
    assert re.search(r"^1 +100 +", whole, re.MULTILINE) and re.search(r"^1 +100\.00 +", asked, re.MULTILINE)


def test_sql_gives_the_published_rows_of_the_latest_revision(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY)
    office.released("--revise", "--reason", "again")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        found = connection.sql("FROM r.dph_quality('r.wards')").to_arrow_table()
        with pytest.raises(duckdb.Error, match="there is no period 2020-01-01"):
            connection.sql("FROM r.dph_quality('r.wards', period := '2020-01-01')").fetchall()
    rows = pq.read_table(office.published(revision=2) / "quality.parquet")
    assert found.drop_columns(OF_MACRO).to_pylist() == rows.to_pylist()
    named = zip(found["statistic"].to_pylist(), found["category"].to_pylist(), strict=True)
    words = dict(zip(named, found["reliability"].to_pylist(), strict=True))
    # The noise of 300 declared rows has a standard deviation of 113, of 100 units 28, of no failures 226.
    assert words["rows", "declared"] == words["units", "1"] == words["undeclared", None] == "poor"
    assert set(found["revision"].to_pylist()) == {2}


def test_without_a_quality_table_command_and_macro_say_so(office: Office) -> None:
    office.with_release(RECORDS)
    ran = office.run("quality", "wards")
    assert (ran.code, "has no quality table" in ran.err) == (1, True)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        with pytest.raises(duckdb.Error, match="no period asked for has a quality table"):
            connection.sql("FROM r.dph_quality('r.wards')").fetchall()


def test_check_warns_of_a_bound_whose_cut_nobody_will_see(opened: Office) -> None:
    assert UNSEEN_CUT not in opened.run("check", "spec.yaml").out
    opened.write_spec()
    assert UNSEEN_CUT in opened.run("check", "spec.yaml").out
    by_row = {"privacy_unit": "row", "max_rows_per_unit": ...}
    opened.write_spec(**by_row)
    assert UNSEEN_CUT not in opened.run("check", "spec.yaml").out


def write_failing(office: Office, rows: int = 100_000) -> None:
    """Records none of whose wards is declared."""
    office.write_records({"patient": list(range(rows)), "age": [30.0] * rows, "ward": ["ward 7"] * rows})


def test_a_release_whose_rows_nearly_all_failed_says_so_first(opened: Office) -> None:
    write_failing(opened)
    opened.released()
    page = card(opened)
    assert page.index(NEARLY_ALL_FAILED) < page.index("declared before any record was read")
    assert NEARLY_ALL_FAILED in opened.run("quality", "wards").out


def test_a_few_failures_are_no_reason_to_warn(opened: Office) -> None:
    write_failing(opened, 300)  # too few to be told from noise
    opened.released()
    assert NEARLY_ALL_FAILED not in card(opened)


def test_what_waits_for_a_person_says_that_nearly_all_rows_failed(opened: Office) -> None:
    write_failing(opened)
    opened.write_spec(quality=QUALITY, publish="manual")
    waits = opened.release()
    assert waits.code == 0
    assert NEARLY_ALL_FAILED in waits.out and "waits for approval" in waits.out
    assert not opened.published().exists()
    show = opened.run("ledger", "show", "health", "--json").json[0]
    assert show["spent"] == "1/2"
    assert opened.run("ledger", "report", "--json").json["accounts"][0]["held"] == {"waits": 1}
    assert opened.run("reject", "wards", "all", "--reason", "another file").code == 0
    assert opened.run("ledger", "report", "--json").json["accounts"][0]["held"] == {"rejected": 1}


def test_where_every_row_is_a_unit_there_are_failures_and_no_cut(opened: Office) -> None:
    words = ["open", "rows_alone", "--privacy-unit", "row", "--neighbours", "add_remove", "--total", "10"]
    assert opened.run("ledger", *words).code == 0
    opened.write_records(RECORDS, "data/visits.parquet")
    by_row = {"privacy_unit": "row", "max_rows_per_unit": ..., "account": "rows_alone", "quality": {"share": "1/2"}}
    opened.write_spec(source="data/visits.parquet", **by_row)
    assert opened.run("ledger", "allow", "rows_alone", "--source", "data/visits.parquet").code == 0
    opened.released()
    rows = pq.read_table(opened.published() / "quality.parquet").to_pylist()
    assert {row["statistic"] for row in rows} == {"rows", "unparsed", "undeclared"}
    assert {row["noise_scale"] for row in rows} == {8.0, 16.0}  # one row, or one on each of two axes, at 1/8
    assert "This cap" not in card(opened)


FAMILY: dict[str, Any] = {
    "mechanism": "tables",
    "tables": {"list": [["house"], ["ward"], ["age"]]},
    "axes": [AGE, {**WARD, "levels": {"house": ["east", "west"]}}],
}


def test_a_family_tells_what_the_cap_cut_once_and_by_the_axes_of_each_table(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY, **FAMILY)
    ran = office.run("quality", "wards")
    assert ran.code == 0, ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[:2] == ["wards, period all, revision 1", SAYS]
    page = card(office)
    assert page.count(SAYS) == 1
    assert "quality.parquet what the cap cut" in page and "Rows beyond the bound" not in page
    told = {name: office.run("quality", f"wards_{name}", "--json").json["rows"] for name in ("house", "ward", "age")}
    whole = pq.read_table(office.published() / "quality.parquet").to_pylist()
    assert told["ward"] == whole
    assert told["house"] == told["age"] == [row for row in whole if (row["statistic"], row["axis"]) != ("cut", "ward")]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store}/public/catalog.duckdb' AS r (READ_ONLY)")
        found = connection.sql("FROM r.dph_quality('r.wards_ward')").to_arrow_table()
        total = connection.sql("SELECT capped FROM r.dph_share('r.wards_ward', {'ward': 'surgery'})").fetchall()
        named = connection.sql("FROM r.dph_quality('r.wards', period := 'all')").to_arrow_table()
        with pytest.raises(duckdb.Error, match="there is no period x; it has all to all"):
            connection.sql("FROM r.dph_quality('r.wards', period := 'x')").fetchall()
    assert found == named and found.drop_columns(OF_MACRO).to_pylist() == whole and total != [("",)]


def test_the_quality_table_of_a_family_is_part_of_its_one_charge(office: Office) -> None:
    office.with_release(RECORDS, quality=QUALITY, **FAMILY)
    audit, table = (
        json.loads((folder / "audit.json").read_bytes())
        for folder in (office.published(), office.published() / "tables" / "age")
    )
    bought = [Fraction(one["epsilon"]) for one in audit["charges"] if one["step"].startswith("quality")]
    assert sum(bought) == Fraction(audit["epsilon"]) * Fraction(QUALITY["share"]) and len(bought) == 5
    assert sum(Fraction(one["epsilon"]) for one in audit["charges"]) == Fraction(audit["epsilon"])
    # A table has the epsilon of all; the list of charges stands once, in the family's audit.
    assert table["epsilon"] == audit["epsilon"] and "charges" not in table
    before = (office.published() / "audit.json").read_bytes()
    assert "Already published" in office.released().out
    assert (office.published() / "audit.json").read_bytes() == before


def test_a_family_of_fifty_axes_tells_which_values_failed_on_each(opened: Office) -> None:
    """Marks of so many axes take two words."""
    names = [f"a{number}" for number in range(50)]
    held = {name: ["x"] * 90 + [None if name == "a45" else "z"] * 10 for name in names}
    opened.write_records({"patient": [str(number) for number in range(100)], **held})
    axes = [{"column": name, "values": ["x", "y"], "other": name != "a49"} for name in names]
    spec = {"mechanism": "tables", "tables": {"list": [["a0", "a1"], ["a2"]]}, "axes": axes}
    opened.write_spec(quality={"share": "1/2", "rows": 3, "by": ["a0"]}, epsilon=4, **spec)
    opened.released()
    told = opened.run("quality", "wards", "--json").json["rows"]
    failed = {
        (row["axis"], row["statistic"]): row["estimate"] for row in told if row["axis"] and row["position"] is None
    }
    expected = {(name, "undeclared"): 0 if name == "a45" else 10 for name in names}
    assert failed == expected | {(name, "unparsed"): 10 if name == "a45" else 0 for name in names}
    assert {row["category"]: row["estimate"] for row in told if row["statistic"] == "rows"} == {
        "declared": 90,
        "other": 0,
        "dropped": 10,
    }
