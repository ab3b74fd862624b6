"""`dphist export`: each format as a library of its field reads it."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from by_hand import AGE
from error_codes import coded
from office import Office

from dphist_pipeline.answering import _views
from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exports import columns as exported_columns
from dphist_pipeline.answering.exports import csv as csv_files
from dphist_pipeline.answering.exports.codes import code_list
from dphist_pipeline.answering.exports.formats import write_export
from dphist_pipeline.answering.exports.rows import Exported, _nulls, facts_of
from dphist_pipeline.answering.exports.sdmx import sdmx_lines
from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.answering.published import NotPublished
from dphist_pipeline.base.published_columns import ValueColumn
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.notes import BELOW, SMOOTHED
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing import parquet_tables
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.formatting import is_formula
from dphist_pipeline.publishing.published_files import PublishedFolder

pytestmark = pytest.mark.stand_in("pictures", why="exports are numbers; cards are tried in publishing/")

# Texts that a spreadsheet would take for formulas, or SDMX for no code.
ODD = ["=1+1", "+65", "-5 to 0", "@home", "<=50K", "O'Brien", "A-1", "null"]
CLASS: dict[str, Any] = {"column": "class", "values": ODD, "labels": ["=2", "", *ODD[2:]], "other": True}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-01-19"}
AXES = [AGE, CLASS, DAY]
WEEKS = ("2026-03-02", "2026-03-09")
CELLS = 5 * 9 * 2


def publish(public: Path, period: str = WEEKS[0], axes: list[dict[str, Any]] = AXES, **more: Any) -> Path:
    day = period[:10]
    ends = {"period_start": f"{day}T00:00:00+01:00", "period_end": f"{day[:8]}{int(day[8:]) + 7:02}T00:00:00+01:00"}
    return by_hand.publish(
        public, by_hand.estimate(axes), axes, period=period, title="=Visits", **{**ends, **more}
    ).path


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Two weeks, the first of which was revised."""
    for period, revision in ((WEEKS[0], 1), (WEEKS[0], 2), (WEEKS[1], 1)):
        publish(tmp_path / "public", period, revision=revision)
    return tmp_path / "public"


def exported(public: Path, to: str, file: Path, **asked: Any) -> Path:
    write_export(Exported.read(public, "weekly", **asked), to, file)
    return file


def exported_as(of: Exported, to: str, file: Path) -> Path:
    write_export(of, to, file)
    return file


def expected(public: Path, column: str) -> list[Any]:
    """A column of the published tables of the latest revisions, in order."""
    folders = [
        public / "weekly" / f"period={WEEKS[0]}" / "revision=2",
        public / "weekly" / f"period={WEEKS[1]}" / "revision=1",
    ]
    return [
        value
        for folder in folders
        for value in pq.ParquetFile(folder / "histogram.parquet").read([column])[0].to_pylist()
    ]


@pytest.mark.parametrize(("limit", "first"), [({}, "0.5"), ({"show_below": 100_000}, "")])
def test_a_column_that_a_later_version_publishes_is_exported_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], first: str
) -> None:
    column, values = ValueColumn("doubt", "double", "", "how much"), parquet_tables._value_columns
    publish(tmp_path / "public", WEEKS[0])  # without it
    monkeypatch.setattr(
        parquet_tables, "_value_columns", lambda *given: values(*given) | {"doubt": np.full(CELLS, 0.5)[given[2]]}
    )
    monkeypatch.setattr(parquet_tables, "KINDS_OF_VALUES", parquet_tables.KINDS_OF_VALUES | {"doubt": "double"})
    publish(tmp_path / "public", WEEKS[1], **limit)
    monkeypatch.setitem(_views._COMMENTS, "doubt", column.in_views)
    read = exported_columns._as_published("doubt")
    further = exported_columns.ExportColumn(column.name, column.kind, column.in_views, read, is_hidden=True)
    monkeypatch.setattr(exported_columns, "COLUMNS", (*exported_columns.COLUMNS, further))
    file = exported(tmp_path / "public", "csv", tmp_path / "weekly.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    told = {period: {row["doubt"] for row in rows if row["period"] == period} for period in WEEKS}
    assert told == {WEEKS[0]: {""}, WEEKS[1]: {first}}, "what would tell a hidden figure stays empty, too"
    described = json.loads(file.with_name("weekly.datapackage.json").read_bytes())["resources"][0]["schema"]["fields"]
    assert {field["name"]: field["type"] for field in described}["doubt"] == ("string" if limit else "number")
    for to, says in (("px", '"Doubt"'), ("sdmx-csv", ",DOUBT")):
        assert says in exported(tmp_path / "public", to, tmp_path / f"x.{to}").read_text(encoding="utf-8")
    assert 'id="DOUBT"' in (tmp_path / "x.xml").read_text(encoding="utf-8")
    parquet = pq.read_table(exported(tmp_path / "public", "parquet", tmp_path / "x.parquet"))
    assert set(parquet["doubt"].to_pylist()) == {None, 0.5}
    DerivedFiles(tmp_path / "public").write_current_files(scratch := tmp_path)
    write_latest_cells(tmp_path / "public", scratch)
    assert (tmp_path / "public/weekly/latest/cells.csv").read_text(encoding="utf-8") == file.read_text(encoding="utf-8")
    described = json.loads(exported(tmp_path / "public", "croissant", tmp_path / "x.json").read_bytes())
    assert "weekly/doubt" in [field["name"] for field in described["recordSet"][0]["field"]]
    sheet = pytest.importorskip("openpyxl").load_workbook(tmp_path / "public/weekly/latest/cells.xlsx")["data"]
    assert [cell.value for cell in next(sheet.iter_rows())] == parquet.column_names


@pytest.mark.slow
def test_csv_holds_every_cell_of_the_latest_revisions_for_pandas(public: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = pandas.read_csv(
        exported(public, "csv", tmp_path / "weekly.csv", decimals=15), keep_default_na=False, na_values=[""]
    )
    assert len(rows) == 2 * CELLS and set(zip(rows["period"], rows["revision"], strict=True)) == {
        (WEEKS[0], 2),
        (WEEKS[1], 1),
    }
    for column in ("estimate", "ci_lower", "ci_upper"):
        assert rows[column].tolist() == expected(public, column)
    assert rows["unbiased"].tolist() == expected(public, "unbiased_estimate")
    (error,) = set(rows["standard_error"])
    assert error == pytest.approx(math.sqrt(2 * math.exp(-1 / 6)) / (1 - math.exp(-1 / 6)))
    assert rows["class"].isna().tolist() == rows["class_is_other"].tolist()
    assert set(rows["reliability"]) <= set(RELIABILITY.legend) and "good" in set(rows["reliability"])
    assert rows["day_lower"].tolist() == expected(public, "day_lower")
    days = pandas.to_datetime(rows["period_end"]) - pandas.to_datetime(rows["period_start"])
    assert {rows["period_start"][0], *days.dt.days} == {WEEKS[0], 7}


def test_cells_are_exported_as_the_macro_answers_them(tmp_path: Path) -> None:
    """Good, fair and poor ones, below 0, smoothed out of their intervals, and one of no rows but for its sign."""
    made = by_hand.estimate([CLASS], np.array([1e6, 50, 13, 100, 0, -50, 3, 0, 7]), off=0)
    estimates = made.values + np.array([0, 0.5, 0, 90, -0.3, 0, -60, -0.0, 0])
    estimates[7] = -0.0
    folder = by_hand.publish(tmp_path / "public", replace(made, values=estimates), [CLASS]).path
    publication = Publication.read(folder)
    (rows,) = Exported((publication,)).tables()
    asked = publication.marginal(["class"], {})
    for name in ("estimate", "unbiased", "ci_lower", "ci_upper", "note", "reliability"):
        assert repr(rows[name].to_pylist()) == repr(asked[name].to_pylist()), name
    assert repr(rows["standard_error"].to_pylist()) == repr(asked["noise_error"].to_pylist())
    assert {*rows["note"].to_pylist()} == {None, BELOW, SMOOTHED}
    assert {*rows["reliability"].to_pylist()} == {"good", "fair", "poor"}


@pytest.mark.slow
def test_no_text_of_a_csv_begins_as_a_formula_and_numbers_stay_numbers(public: Path, tmp_path: Path) -> None:
    text = exported(public, "csv", tmp_path / "weekly.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(io.StringIO(text))
    numbers = {"estimate", "unbiased", "standard_error", "ci_lower", "ci_upper"}
    for row in rows:
        for name, value in zip(header, row, strict=True):
            if name in numbers:
                float(value)
            elif value not in ("+65", "-5 to 0"):
                assert not value.startswith(("=", "+", "-", "@")), (name, value)
    assert {row[header.index("class")] for row in rows} == {"'=1+1", "+65", "-5 to 0", "'@home", *ODD[4:], ""}


def test_a_number_is_no_formula_and_what_may_run_is_one() -> None:
    numbers = ["-2", "+65", "-0.5", "-2,5", "-.5", "-1e-9", "-5 to 0", "-5 bis unter +5", "-5 or more", "−2"]
    formulas = [
        "-2+3",
        "-A1",
        "=-2",
        "-2|x",
        "+cmd|' /C calc'!A0",
        "-2 A1!B2",
        "-2(3)",
        "@a",
        "\t-2",
        *("＝1+1", "＋1+1", "－1+1", "＠a"),
        "-",
        "--2",
        "-2\n",
    ]
    assert [text for text in numbers if is_formula(text)] == ["-5 bis unter +5"]
    assert [text for text in formulas if not is_formula(text)] == []


@pytest.mark.slow
def test_a_workbook_has_typed_cells_and_notes_and_no_formula(public: Path, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.load_workbook(exported(public, "xlsx", tmp_path / "weekly.xlsx"))
    assert book.sheetnames == ["data", "notes"]
    for sheet in book:
        assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "n", "b", "d"}, "f is a formula"
    header, *rows = book["data"].iter_rows(values_only=True)
    assert header[:4] == ("period", "revision", "age_lower", "age_upper") and len(rows) == 2 * CELLS
    assert f"{rows[0][header.index('period_start')]:%Y-%m-%d}" == WEEKS[0]
    for column in ("estimate", "ci_lower", "class", "age_upper"):
        assert [row[header.index(column)] for row in rows] == expected(public, column), column
    labels = zip([row[header.index("class_label")] for row in rows], expected(public, "class_label"), strict=True)
    assert all(told == (published or told) and told is not None for told, published in labels)
    notes = {row[0]: row[1] for row in book["notes"].iter_rows(values_only=True) if row[0]}
    assert notes["title"] == "=Visits" and notes["periods"] == f"{WEEKS[0]} to {WEEKS[1]} (2)"
    assert set(header) <= set(notes) and notes["poor"] == RELIABILITY.legend["poor"]


@pytest.mark.slow
def test_the_same_release_gives_the_same_files(public: Path, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    for to in ("csv", "xlsx", "sdmx-csv"):
        files = [exported(public, to, tmp_path / f"{number}.{to}").read_bytes() for number in (1, 2)]
        assert files[0] == files[1]


@pytest.mark.slow
def test_sdmx_csv_is_read_by_pysdmx_with_codes_and_errors(public: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    pysdmx = pytest.importorskip("pysdmx.io", reason="pysdmx is not installed")
    (data,) = pysdmx.get_datasets(exported(public, "sdmx-csv", tmp_path / "weekly.csv", decimals=15))
    assert data.structure == "Dataflow=DPHIST:weekly(1.0)"
    rows = data.data
    assert len(rows) == 2 * CELLS
    assert set(rows["TIME_PERIOD"]) == {"2026-03-02/P7D", "2026-03-09/P7D"}
    assert set(rows["CLASS"]) == {"2", "65", "MINUS_5_TO_0", "HOME", "50K", "O_BRIEN", "A-1", "null", "_O"}
    assert {"BELOW_0", "0_TO_UNDER_18", "18_TO_UNDER_65", "65_OR_MORE"} >= set(rows["AGE"]) - {"_O"}
    poor = rows["RELIABILITY"] == "poor"
    assert set(rows["OBS_STATUS"][poor]) == {"U"} and set(rows["OBS_STATUS"][~poor]) == {"A"}
    assert not rows.duplicated(["AGE", "CLASS", "DAY", "TIME_PERIOD"]).any()
    for column, published in (("OBS_VALUE", "estimate"), ("UNBIASED", "unbiased_estimate"), ("CI_LOWER", "ci_lower")):
        assert [float(value) for value in rows[column]] == expected(public, published)
    assert set(rows["DAY"]) == {"2026_01_05_TO_2026_01_11", "2026_01_12_TO_2026_01_18"}


@pytest.mark.slow
def test_codes_that_labels_do_not_give_are_numbers(tmp_path: Path) -> None:
    axes = [{"column": "ward", "values": ["Ärzte 1", "ärzte-1", "病院"]}, {"column": "x", "edges": [-0.5, 0, 1.5]}]
    publish(tmp_path, axes=axes)
    lines = list(sdmx_lines(Exported.read(tmp_path, "weekly")))
    assert [line[3] for line in lines[1::2]] == ["C0", "C1", "C2"]
    assert {line[4] for line in lines[1:]} == {"MINUS_0_POINT_5_TO_UNDER_0", "0_TO_UNDER_1_POINT_5"}
    publications = Exported.read(tmp_path, "weekly").publications
    labels = {axis: [code.label for code in code_list(publications, axis).values()] for axis in ("ward", "x")}
    assert labels == {"ward": ["Ärzte 1", "ärzte-1", "病院"], "x": ["-0.5 to under 0", "0 to under 1.5"]}


@pytest.mark.slow
def test_text_files_have_the_decimals_of_the_noise_or_those_asked_for(public: Path, tmp_path: Path) -> None:
    exact = Exported.read(public, "weekly", decimals=15)
    full, usual = (
        list(csv.DictReader(exported(public, "csv", tmp_path / f"{of}.csv", decimals=of).read_text().splitlines()))
        for of in (15, None)
    )
    for name in ("estimate", "ci_lower"):
        assert [float(row[name]) for row in full] == expected(public, name)
        assert [row[name] for row in usual] == [f"{value:.0f}" for value in expected(public, name)]
    sent = list(sdmx_lines(replace(exact, decimals=2)))
    assert all(len(str(line[sent[0].index("OBS_VALUE")]).partition(".")[2]) == 2 for line in sent[1:])


@pytest.mark.slow
def test_a_workbook_keeps_full_numbers_and_shows_few_decimals(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    by_hand.publish(tmp_path, by_hand.estimate([CLASS], np.full(9, 1234.56), off=0), [CLASS], period="all")
    for decimals, shown in ((None, "#,##0"), (2, "#,##0.00")):
        file = exported(tmp_path, "xlsx", tmp_path / f"{decimals}.xlsx", decimals=decimals)
        header, row, *_ = openpyxl.load_workbook(file)["data"].iter_rows()
        cell = next(cell for head, cell in zip(header, row, strict=True) if head.value == "estimate")
        assert (cell.value, cell.number_format) == (1234.56, shown)


def test_a_period_or_a_revision_is_exported_when_asked(public: Path, tmp_path: Path) -> None:
    def keys(**asked: Any) -> list[tuple[str, int]]:
        found = Exported.read(public, "weekly", **asked).publications
        return [(one.audit["period"], one.audit["revision"]) for one in found]

    assert keys(period=WEEKS[1]) == [(WEEKS[1], 1)]
    assert keys(revision=1) == [(WEEKS[0], 1), (WEEKS[1], 1)]
    assert keys(period=WEEKS[0], revision=1) == [(WEEKS[0], 1)]
    with pytest.raises(NotPublished, match="no revision of 'weekly' '7'"):
        keys(revision=7)
    with pytest.raises(NotPublished, match="Did you mean"):
        keys(period="2026-03-03")
    (tmp_path / "scratch").mkdir()
    note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
    PublishedFolder(public / "weekly" / f"period={WEEKS[1]}" / "revision=1").mark_withdrawn(note, tmp_path / "scratch")
    assert keys() == [(WEEKS[0], 2)]
    with pytest.raises(Refused, check=coded("publication_withdrawn")):
        keys(period=WEEKS[1])


@pytest.mark.slow
def test_other_axes_in_a_later_period_have_columns_of_their_own(tmp_path: Path) -> None:
    public = tmp_path / "public"
    publish(public, WEEKS[0], [AGE])
    publish(public, WEEKS[1], [{"column": "note", "values": ["a"]}])
    header, *rows = csv.reader(exported(public, "csv", tmp_path / "x.csv").read_text().splitlines())
    assert len(rows) == 5 + 1 and [row[header.index("note")] for row in rows] == [*[""] * 5, "a"]
    assert header.count("note") == 1
    with pytest.raises(Refused, check=coded("cannot_export"), match="its periods have different axes"):
        exported(public, "sdmx-csv", tmp_path / "y.csv")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["x.csv", "x.datapackage.json"]


def test_a_file_that_cannot_be_written_is_answered_with_the_mend(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, check=coded("cannot_export"), match="No such file or directory"):
        exported(public, "csv", tmp_path / "nowhere" / "x.csv")
    with pytest.raises(Refused, match="its description would have the same name"):
        exported(public, "sdmx-csv", tmp_path / "x.xml")
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(
        Refused,
        check=coded("cannot_export"),
        match=r"xlsxwriter is missing\. To install it: in a checkout .*'\.\[export\]'; from the archive ",
    ):
        exported(public, "xlsx", tmp_path / "x.xlsx")
    assert not (tmp_path / "x.xlsx").exists()


@pytest.mark.slow
def test_a_file_that_is_there_is_not_replaced_unasked(public: Path, tmp_path: Path) -> None:
    records = tmp_path / "weekly.csv"
    records.write_text("somebody's records", encoding="utf-8")
    with pytest.raises(
        Refused, check=coded("cannot_export"), match=r"there already; choose another --output, or say --overwrite"
    ):
        exported(public, "csv", records)
    assert records.read_text(encoding="utf-8") == "somebody's records"
    records.rename(tmp_path / "other.csv")
    (tmp_path / "weekly.datapackage.json").write_text("theirs", encoding="utf-8")
    with pytest.raises(Refused, match=r"weekly\.datapackage\.json cannot be written: it is there already"):
        exported(public, "csv", records)
    assert not records.exists()
    write_export(Exported.read(public, "weekly"), "csv", records, overwrite=True)
    assert records.read_text(encoding="utf-8").startswith("period,")


@pytest.mark.slow
def test_a_workbook_holds_no_more_rows_than_a_sheet(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    monkeypatch.setattr("dphist_pipeline.answering.exports.xlsx.MOST_ROWS", 2 * CELLS)
    with pytest.raises(
        Refused, check=coded("cannot_export"), match="180 rows are more than a sheet holds; choose a period"
    ):
        exported(public, "xlsx", tmp_path / "x.xlsx")
    assert exported(public, "xlsx", tmp_path / "x.xlsx", period=WEEKS[1]).exists()


def test_reliability_follows_the_error() -> None:
    cases = {(100, 40): "good", (99, 40): "fair", (40, 1): "fair", (39, 1): "poor", (900, 0): "poor", (-3, -23): "poor"}
    for (unbiased, lower), word in cases.items():
        assert RELIABILITY.word(unbiased, 10, lower) == word
    assert RELIABILITY.word(math.nan, math.nan, math.nan) == ""


@pytest.mark.slow
def test_the_command_writes_a_file_and_says_where(office: Office) -> None:
    office.with_release()
    done = office.run("export", "wards", "--to", "csv")
    assert (done.code, "Written: wards_published.csv, wards_published.datapackage.json" in done.out) == (0, True)
    assert len((office.folder / "wards_published.csv").read_text().splitlines()) == 1 + 21
    assert office.run("export", "wards", "--to", "csv").code == 1
    assert office.run("export", "wards", "--to", "csv", "--overwrite").code == 0
    assert "no release 'ward'" in office.run("export", "ward", "--to", "csv").err
    assert office.run("export", "wards", "--to", "pdf").code == 2
    done = office.run("export", "wards", "--to", "sdmx-csv", "--output", "x.csv", "--revision", "1")
    assert done.code == 0 and "DPHIST:wards(1.0)" in (office.folder / "x.csv").read_text()


@pytest.mark.slow
def test_whole_numbers_are_those_of_the_macro_and_first_in_sparse_tables(public: Path, tmp_path: Path) -> None:
    one = Exported.read(public, "weekly")
    for publication, table in zip(one.publications, one.tables(), strict=True):
        assert table["whole_count"].to_pylist() == publication.whole()["whole_count"].to_pylist()
    assert [*one.columns].index("whole_count") > [*one.columns].index("ci_upper")
    wards = {"column": "ward", "values": list("abcdef")}
    # The first period decides for all, so that columns stay where they are.
    for week, values in zip(WEEKS, ([0.0, 5, -30, 70, 90, 9], [80.0, 60, 70, 70, 90, 99]), strict=True):
        made = by_hand.estimate([wards], np.array(values), off=0)
        by_hand.publish(tmp_path / "sparse", made, [wards], period=week)
    sparse = Exported.read(tmp_path / "sparse", "weekly")
    assert [*sparse.columns].index("whole_count") == [*sparse.columns].index("estimate") - 1
    header = exported_as(sparse, "csv", tmp_path / "x.csv").read_text(encoding="utf-8").partition("\n")[0].split(",")
    assert header == [*sparse.columns]
    early, late = (Exported.read(tmp_path / "sparse", "weekly", period=week) for week in WEEKS)
    assert early.has_whole_first and not late.has_whole_first
    facts = dict(facts_of(early))
    assert facts["whole_count"].startswith("Most cells cannot be told from empty ones (4 of 6)")
    assert facts["ci_upper"].startswith("Of 6 cells, 1 has an interval wholly below 0.")
    assert not {"whole_count", "ci_upper"} & dict(facts_of(late)).keys()


@pytest.mark.parametrize("limit", [10, None])
@pytest.mark.parametrize("values", [(-8.0, 9.0, 11.0, 57.0), (9.9, 9.9, 9.9, 57.0)])
def test_a_whole_number_below_the_least_figure_or_beside_a_hidden_one_is_not_told(
    tmp_path: Path, limit: int | None, values: tuple[float, ...]
) -> None:
    wards = {"column": "ward", "values": ["a", "b", "c", "d"]}
    made = by_hand.estimate([wards], np.array(values), off=0)
    by_hand.publish(tmp_path, made, [wards], period="all", **({"show_below": limit} if limit else {}))
    one = Exported.read(tmp_path, "weekly")
    (table,) = one.tables()
    counts = table["whole_count"].to_pylist()
    assert values[0] < 0 or counts[0] == 10, "a hidden figure beside a whole number that is not below the limit"
    file = exported_as(one, "csv", tmp_path / "x.csv")
    found = [row["whole_count"] for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())]
    below = limit or -100
    assert found == [
        "below 10" if count < below else "" if value < below else str(count)
        for count, value in zip(counts, values, strict=True)
    ]


@pytest.mark.parametrize("places", [0, 1, 2, 5, 10])
def test_csv_rounds_as_arrow_does(places: int) -> None:
    values = np.concatenate([np.random.default_rng(1).normal(0, 1e4, 1_000), np.arange(-50, 50) / 8, [0.005, -0.001]])
    arrow = pc.add(pc.round(pa.array(values), places), 0.0).to_numpy()
    assert csv_files._decimals(values, places).tobytes() == arrow.tobytes()
    assert csv_files._decimals(np.array([7.426067411234568]), 11).tolist() == [7.42606741123]


def test_nulls_are_found_in_parts_of_chunks() -> None:
    texts = pa.array([None, "a", "b", None, "c"] * 4)
    for chunks in ([], [texts], [texts.slice(3, 9), pa.array(["a"]), texts.slice(1)]):
        column = pa.chunked_array(chunks, pa.string())
        assert _nulls(column).tolist() == column.is_null().to_pylist()


@pytest.mark.parametrize("number", [1, csv_files.FEW])
def test_texts_are_marked_alike_whether_few_or_many(number: int) -> None:
    column = pa.chunked_array([["=1+1", "-5 to 0", "", None, "plain", "@x"] * number])
    assert (
        csv_files._texts_without_formulas(column).to_pylist() == ["'=1+1", "-5 to 0", "", None, "plain", "'@x"] * number
    )
