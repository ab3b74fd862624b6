"""Declared figures: computed by the macros for each period, in files, catalogue and pages; never in the way."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import polars as pl
import pytest
from office import Office

from dphist_pipeline.answering import building
from dphist_pipeline.answering.figure_lines import Asking, PublicationWithFigures

pytestmark = pytest.mark.stand_in("pictures", why="figures are tables")

STRUCTURE = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure}"
AXES = [
    {"column": "county", "values": ["01", "02", "03"], "other": True},
    {"column": "age", "start": 0, "stop": 60, "width": 20, "above": True},
    {"column": "stay", "start": 0, "stop": 30, "width": 10},
]
FIGURES: list[dict[str, Any]] = [
    {"name": "rate", "rate": {"population": "codes/people.csv", "per": 1000}, "by": ["county"]},
    {"name": "long", "share": {"stay": [20, None]}, "by": ["county"]},
    {"name": "mean_stay", "mean": "stay", "by": ["age"]},
    {"name": "mean_stay_of_all", "mean": "stay"},
]
PEOPLE = "county,sex,population\n01,f,400\n01,m,600\n02,f,500\n04,m,7\n"
FIRST, SECOND = "2026-03-02", "2026-03-09"


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Two weeks of three hundred rows each in county 01 and 02, and ten in 03; every age below 60."""
    office = Office(tmp_path / "office").opened()
    monkeypatch.chdir(office.folder)
    monkeypatch.setattr(building, "build_apart", building.build)  # in this process, which reads no more than another
    rows = [
        {
            "patient": 1000 * int(county) + number,
            "county": county,
            "age": number % 60,
            "stay": number % 30,
            "day": f"{month}-{day:02}",
        }
        for month, day in (("2026-03", 3), ("2026-03", 10))
        for county, size in (("01", 300), ("02", 300), ("03", 10))
        for number in range(size)
    ]
    office.write_records(pl.DataFrame(rows).with_columns(pl.col("day").str.to_date()).to_arrow())
    (office.folder / "codes").mkdir()
    (office.folder / "codes" / "people.csv").write_text(PEOPLE)
    assert office.run("ledger", "allow", "--code-lists", office.folder / "codes").code == 0
    declare(office, FIGURES)
    return office


def declare(office: Office, figures: list[dict[str, Any]], **changes: Any) -> None:
    period = {"period": "week", "period_column": "day", "max_rows_per_unit": 1}
    office.write_spec(axes=AXES, epsilon=2, counted="stays", figures=figures, **period, **changes)


def lines(office: Office, period: str = FIRST, figure: str = "") -> list[dict[str, Any]]:
    """The lines of a period in `latest/figures.parquet`, after comparing them with the view of the catalogue."""
    told = pl.read_parquet(office.store / "public" / "wards" / "latest" / "figures.parquet").to_dicts()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        assert connection.sql("FROM r.wards_figures").pl().to_dicts() == told
    return [line for line in told if line["period"] == period and figure in ("", line["figure"])]


def card(office: Office, period: str = FIRST) -> str:
    page = (office.published(period=period) / "card.html").read_text()
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition('id="figures"')[2].partition("</section>")[0]).split())


def test_a_period_tells_its_figures_with_their_intervals(office: Office) -> None:
    office.released("--period", FIRST)
    rate, second, third = lines(office, figure="rate")
    assert (rate["county"], rate["unit"], rate["age_lower"]) == ("01", "stays per 1,000", None)
    assert rate["ci_lower"] < rate["value"] < rate["ci_upper"] and 250 < rate["value"] < 350
    assert rate["note"].startswith("People are added up over sex.") and len(rate["source_digest"]) == 64
    assert second["ci_upper"] - second["ci_lower"] == pytest.approx(2 * (rate["ci_upper"] - rate["ci_lower"]))
    # The same number as `dphist answer`, and no refusal of the others where one group has no people.
    asked = office.run(
        *("answer", "wards", "--by", "county", "--population", office.folder / "codes" / "people.csv"),
        *("--per", "1000", "--period", FIRST, "--json"),
    ).json["rows"]
    assert [(row["unbiased"], row["ci_lower"]) for row in asked[:2]] == [
        (line["value"], line["ci_lower"]) for line in (rate, second)
    ]
    assert (third["value"], third["ci_lower"], third["note"]) == (None, None, "The population has no row for 03.")
    share, *_, other = lines(office, figure="long")
    assert 0.2 < share["ci_lower"] < share["value"] < share["ci_upper"] < 0.5
    assert (other["county"], other["value"], other["note"]) == ("other", None, "The rows are not above their noise.")
    means = lines(office, figure="mean_stay")
    assert [(line["age_lower"], line["age_upper"]) for line in means] == [(0, 20), (20, 40), (40, 60), (60, None)]
    assert [line["value"] is None for line in means] == [False, False, False, True]
    assert "not above their noise" in means[-1]["note"]
    assert len(lines(office, figure="mean_stay_of_all")) == 1
    csv = (office.store / "public" / "wards" / "latest" / "figures.csv").read_text().splitlines()
    assert (
        csv[0]
        == "release,period,revision,figure,county,age_lower,age_upper,value,ci_lower,ci_upper,unit,note,source_digest"
    )
    assert len(csv) == 1 + len(lines(office))


def test_the_card_and_the_page_begin_with_the_figures(office: Office) -> None:
    office.released("--period", FIRST)
    told = card(office)
    assert "county stays per 1,000 95 % interval 01" in told and "03 – The population has no row for 03." in told
    assert "% of stays" in told and "0 to under 20" in told
    page = (office.store / "public" / "wards" / "index.html").read_text()
    assert page.index('id="newest"') < page.index('id="figures"') < page.index('id="periods"')
    # A card is a function of public files: whoever renders it again gets the same one.
    assert office.run("store", "pages", "--json").json["anew"] == []
    assert office.run("doctor", "--json").json


def test_editing_a_figure_costs_nothing_and_reaches_every_period(office: Office) -> None:
    office.released("--period", FIRST)
    office.released("--period", SECOND)
    entries = office.entries()
    declare(office, [{**FIGURES[0], "rate": {"population": "codes/people.csv", "per": 10}}])
    anew = office.run("store", "pages", "spec.yaml", "--json")
    assert anew.code == 0, anew.err
    assert len(anew.json["anew"]) == 2 and office.entries() == entries
    for period in (FIRST, SECOND):
        assert {line["unit"] for line in lines(office, period)} == {"stays per 10"}
        assert "stays per 10 " in card(office, period) and "% of stays" not in card(office, period)
    declare(office, [])
    office.released("--period", SECOND)  # a replay takes what the spec says now, too
    assert office.entries() == entries and card(office) == ""
    assert pl.read_parquet(office.store / "public" / "wards" / "latest" / "figures.parquet").is_empty()


def test_a_population_that_changed_or_went_fails_no_release(office: Office) -> None:
    office.released("--period", FIRST)
    file = office.folder / "codes" / "people.csv"
    file.write_text(PEOPLE.replace("400", "1400"))
    office.released("--period", SECOND)
    (first, *_), (second, *_) = lines(office, FIRST, "rate"), lines(office, SECOND, "rate")
    assert re.search(r"Computed anew with codes/people\.csv on \d{4}-\d\d-\d\d\.", first["note"])
    assert "anew" not in second["note"] and first["source_digest"] == second["source_digest"]
    assert first["value"] < 250 and "Computed anew" in card(office)
    file.unlink()
    told = office.release("--period", SECOND)  # a replay
    assert told.code == 0, told.err
    (second, *_) = lines(office, SECOND, "rate")
    assert (
        second["value"] is not None
        and "declares public" in second["note"]
        and "its rows are those of" in second["note"]
    )


@pytest.mark.parametrize(
    ("people", "problem"),
    [
        (None, "codes/people.csv is no file below a folder that the ledger declares public"),
        ("lan,antal\n01,5\n", "the population has no column county, population. Wanted header: county,population"),
        ("lan,antal\n01,5\n", "which are added up); found: lan,antal"),
        ("county,population\n01,5\n01,6\n", "the population repeats a row for 01"),
        ("", "codes/people.csv: the population has no rows"),
    ],
)
def test_a_population_that_cannot_serve_is_refused_before_the_charge(
    office: Office, people: str | None, problem: str
) -> None:
    file = office.folder / "codes" / "people.csv"
    file.unlink() if people is None else file.write_text(people)
    entries = office.entries()
    for told in (
        office.release("--period", FIRST),
        office.run("check", "spec.yaml"),
    ):
        assert told.code == 1 and problem in " ".join(told.err.split())
    assert office.entries() == entries


def test_check_lists_the_groups_without_people(office: Office) -> None:
    told = office.run("check", "spec.yaml", "--json")
    assert told.json["figures"] == [figure["name"] for figure in FIGURES]
    assert told.json["warnings"][-1] == "figure rate, codes/people.csv: the population has no row for 03"


def test_a_release_may_not_have_the_name_of_a_view_of_figures(office: Office) -> None:
    office.released("--period", FIRST)
    declare(office, [], release="wards_figures")
    told = office.release("--period", FIRST)
    assert told.code == 1 and "wards_figures is the view of figures of wards" in " ".join(told.err.split())


def test_a_new_period_leaves_the_lines_of_others_as_they_are(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.released("--period", FIRST)
    asked, answer = list[list[str]](), Asking.lines

    def noted(self: Asking, told: Sequence[PublicationWithFigures], *more: Any) -> Iterator[dict[str, Any]]:
        asked.append([one.key[0] for one in told])
        return answer(self, told, *more)

    monkeypatch.setattr(Asking, "lines", noted)
    first = lines(office)
    office.released("--period", SECOND)
    assert asked == [[SECOND]] and lines(office) == first


def test_a_figure_with_a_hidden_count_behind_it_is_not_told(office: Office) -> None:
    declare(office, FIGURES, show_below=150)
    office.released("--period", FIRST)
    for figure in ("rate", "long", "mean_stay"):
        told = {str(line.get("county") or line["age_lower"]): line for line in lines(office, figure=figure)}
        for name, line in told.items():
            # Of 300 rows a third stays long; 03 has ten rows and no people, and ages above 60 no row.
            is_hidden = name in {"03", "60.0", "other"} or figure == "long"
            assert (line["value"] is None) == (line["ci_lower"] is None) == is_hidden, (figure, line)
            assert ("a count behind it is below 150" in line["note"]) == (is_hidden and figure != "rate")
    assert "Not shown: a count behind it is below 150." in card(office)


def test_the_figures_of_a_family_are_those_of_its_best_tables(office: Office) -> None:
    tables = {"mechanism": "tables", "tables": {"list": [["county", "stay"], ["age", "stay"], ["county", "age"]]}}
    declare(office, FIGURES, **tables)
    office.released("--period", FIRST)
    assert {line["figure"] for line in lines(office)} == {figure["name"] for figure in FIGURES}
    assert lines(office, figure="rate")[0]["release"] == "wards"
    assert "stays per 1,000" in card(office)


def test_figures_are_exported_in_the_formats_of_offices(office: Office) -> None:
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    office.released("--period", FIRST)
    for to, ending in {"csv": "csv", "parquet": "parquet", "xlsx": "xlsx", "sdmx-csv": "sdmx.csv"}.items():
        done = office.run("export", "wards", "--figures", "all", "--to", to)
        assert done.code == 0 and Path(f"wards_figures.{ending}").exists(), done.err
    told = lines(office)
    assert pl.read_parquet("wards_figures.parquet").to_dicts() == told
    assert Path("wards_figures.csv").read_text() == (office.store / "public/wards/latest/figures.csv").read_text()
    sheet = [*openpyxl.load_workbook("wards_figures.xlsx")["figures"].values]
    values = [line["value"] for line in told]
    assert [row[7] for row in sheet[1:]] == [value if value is None else pytest.approx(value) for value in values]
    header, first, *_ = (line.split(",") for line in Path("wards_figures.sdmx.csv").read_text().splitlines())
    assert header[3:8] == ["FIGURE", "COUNTY", "AGE", "TIME_PERIOD", "OBS_VALUE"]
    assert first[3:7] == ["rate", "01", "_Z", FIRST]
    several = office.run("export", "wards", "--figures", "all", "--to", "px")
    assert several.code == 1 and "a PX file holds one figure" in several.err
    assert office.run("export", "wards", "--figures", "rate", "--to", "px").code == 0
    px = Path("wards_figures.px").read_text()
    assert 'VALUES("county")="01","02","03"' in px and '".." ".." ".."' in px.splitlines()[-2]
    assert office.run("export", "wards", "--to", "xlsx").code == 0
    assert openpyxl.load_workbook("wards_published.xlsx").sheetnames == ["data", "notes", "figures"]
    (office.store / "about.json").write_text('{"language": "de", "agency": "HEALTH", "publisher": "Amt"}')
    for to in ("px", "sdmx-csv"):
        assert office.run("export", "wards", "--figures", "rate", "--to", to, "--overwrite").code == 0
    px = Path("wards_figures.px").read_text()
    assert 'LANGUAGE="de";' in px and 'VALUES("Inhalt")="Wert",' in px and 'CODES("Inhalt")="value",' in px
    structure = ElementTree.parse("wards_figures.sdmx.xml")
    lists = {
        one.get("id"): [code.get("id") for code in one.iter(f"{STRUCTURE}Code")]
        for one in structure.iter(f"{STRUCTURE}Codelist")
    }
    header, *rows = csv.reader(Path("wards_figures.sdmx.csv").read_text().splitlines())
    for name in ("FIGURE", "COUNTY", "OBS_STATUS"):
        assert {row[header.index(name)] for row in rows} <= {*lists[f"CL_{name}"]}
    columns = {
        one.get("id")
        for kind in ("Dimension", "TimeDimension", "Attribute", "PrimaryMeasure")
        for one in structure.iter(f"{STRUCTURE}{kind}")
    }
    assert columns - {None} == {*header[3:]} and rows[0][1] == "HEALTH:wards_figures(1.0)"
    assert "Did you mean 'rate'" in office.run("export", "wards", "--figures", "rat", "--to", "csv").err
