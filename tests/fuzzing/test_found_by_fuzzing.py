"""What fuzzing found, each in its smallest form."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from declared_lists import below
from spec_seeds import COMMON, ENVIRONMENT, HEAD, written

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.fields import digits
from dphist_pipeline.spec.mistakes import SpecError

LISTED = "{column: code, values_from: codes.csv}"
RELEASE: dict[str, Any] = {
    **{"release": "x", "source": "*.parquet", "privacy_unit": "row", "neighbours": "add_remove", "epsilon": 1},
    **{"account": "y", "mechanism": "geometric", "axes": [{"column": "age", "edges": [0, 1]}]},
}
Refuse = Callable[[str], str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return written(tmp_path)


@pytest.fixture
def refuses(folder: Path) -> Refuse:
    """What refuses a file with this text, told without its folder."""

    def message(text: str) -> str:
        (folder / "defs.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            ReleaseSpec.load(folder / "defs.yaml", below(folder))
        return str(caught.value).replace(str(folder), "")

    return message


@pytest.fixture
def refused(refuses: Refuse) -> Refuse:
    """What refuses a spec with these axes."""
    return lambda axes: refuses(f"{HEAD}{COMMON}  axes: [{axes}]\n")


@pytest.mark.parametrize(
    "text",
    ['a: "\\UFFFFFFFF"\n', 'a: "\\U00110000"\n', f"%YAML 1.{'9' * 5000}\n---\na: b\n"],
    ids=["int", "chr", "digits"],
)
def test_numbers_beyond_all_ranges_in_escapes_and_directives_are_refused(refuses: Refuse, text: str):
    # What names no type of ours is not quoted, whatever it is.
    message = refuses(f"{text}# type: dphist_pipeline.HistogramRelease\n")
    assert "line 1, column" in message and "no number in range" in message


@pytest.mark.parametrize("keys", ["edges: null", "start: 0, stop: null, width: 5", "values: null", "edges: ~, stop: 1"])
def test_an_axis_whose_bins_are_null_lacks_them(refused: Refuse, keys: str):
    assert "attributes.axes[0]: needs" in refused(f"{{column: age, {keys}}}")


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ("{name: x, values_from: codes.csv}", "axes[0].column: is required"),
        ("{column: 5, values_from: codes.csv}", "axes[0].column: must be text"),
        ("{column: '', values_from: codes.csv}", "axes[0].column: is empty"),
    ],
)
def test_a_code_list_without_a_column_is_refused(refused: Refuse, axis: str, says: str):
    assert says in refused(axis)


def test_a_code_list_whose_name_is_too_long_for_a_file_is_not_there(refused: Refuse):
    assert "is no file below a folder" in refused(f"{{column: code, values_from: {'é' * 150}.csv}}")


def test_a_code_list_that_cannot_be_read_to_its_end_is_refused_whole(folder: Path, refused: Refuse):
    (folder / "codes.csv").write_text('code\nA\nB\n"C" and more\nD\n')
    assert "is not a readable table" in refused(LISTED)


def test_a_code_that_looks_like_our_own_message_is_a_code(folder: Path, refused: Refuse):
    (folder / "codes.csv").write_text('code\nA\n"repeats values[9]\\"\n')
    assert "line 3: holds \\, which" in refused(LISTED)
    (folder / "codes.csv").write_text("code\nA\nb repeats values[0]\nB repeats values[0]\n")
    assert "line 4: repeats an earlier code, case and hidden signs ignored" in refused(LISTED)


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ns")])
def test_a_code_list_with_times_that_python_does_not_know_is_refused(folder: Path, refused: Refuse, kind: pa.DataType):
    table = pa.table({"code": pa.array([2**63 - 1], pa.int64()).view(kind)})
    pq.write_table(table, folder / "codes.parquet")
    assert "is not a readable table" in refused(LISTED.replace("csv", "parquet"))


TIMES = [-(2**63), -(2**63) + 1, -(2**63) + 10**6, 1_767_571_200_000_000, 2**63 - 1]
SEEN = "SELECT *, TRY_CAST(day AS VARCHAR) AS said, TRY_CAST(day AS TIMESTAMPTZ) AS moment FROM source"


@pytest.mark.parametrize("axis", ["day", "moment"])
@pytest.mark.parametrize("query", [False, True])
@pytest.mark.parametrize("stored", ["parquet", "duckdb"])
def test_no_time_stamp_of_a_record_makes_a_release_fail(tmp_path: Path, axis: str, query: bool, stored: str):
    times = pa.array(TIMES, pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"day": times, "moment": times}), tmp_path / "seen.parquet")
    if stored == "duckdb":
        with duckdb.connect(str(tmp_path / "seen.duckdb")) as connection:
            connection.execute(f"CREATE TABLE seen AS FROM '{tmp_path}/seen.parquet'")
    (tmp_path / "query.sql").write_text(SEEN.replace("*,", "* EXCLUDE (moment),"))
    days = {"column": axis, "calendar": "day", "start": "2026-01-05", "stop": "2026-01-06", "other": True}
    changes = {"source": f"seen.{stored}", "axes": [days]}
    changes |= {"source_table": "seen"} if stored == "duckdb" else {}
    spec = ReleaseSpec.from_attributes(RELEASE | changes | ({"source_sql": "query.sql"} if query else {}), tmp_path)
    (tmp_path / "run").mkdir()
    assert read_and_count(plan_of(spec, spec.period_named("all")), tmp_path / "run").tolist() == [1, 4]


@pytest.mark.slow
@pytest.mark.parametrize("moment", [-(2**63), -(2**63) + 2, -(2**63) + 10**6])
@pytest.mark.parametrize("encoded", [True, False], ids=["dictionary", "plain"])
def test_a_time_before_the_calendar_lies_in_no_period_and_fails_none(tmp_path: Path, moment: int, encoded: bool):
    # NaT stored as a value: a null in its place kept the value below it, which a later cast of a dictionary met.
    times = pa.array([1_767_657_600_000_000, moment], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"day": times}), tmp_path / "seen.parquet", use_dictionary=encoded)
    days = {"column": "day", "calendar": "day", "start": "2026-01-05", "stop": "2026-01-12", "other": True}
    weekly = {"axes": [days], "period": "week", "period_column": "day"}
    spec = ReleaseSpec.from_attributes(RELEASE | weekly, tmp_path)
    (tmp_path / "run").mkdir()
    for week, cells in (("2026-01-05", [0, 1, 0, 0, 0, 0, 0, 0]), ("2026-01-12", [0] * 8)):
        assert read_and_count(plan_of(spec, spec.period_named(week)), tmp_path / "run").tolist() == cells


def test_a_time_that_is_null_stays_null(tmp_path: Path):
    times = pa.array([None, 0, -(2**63)], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"day": times}), tmp_path / "seen.parquet")
    (tmp_path / "query.sql").write_text(
        "SELECT CASE WHEN TRY_CAST(day AS TIMESTAMP) IS NULL THEN 'none' ELSE 'one' END AS has, "
        "TRY_CAST(day AS VARCHAR) AS said FROM source"
    )
    axes = [{"column": "has", "values": ["none", "one"]}, {"column": "said", "values": ["-infinity"], "other": True}]
    spec = ReleaseSpec.from_attributes(RELEASE | {"axes": axes, "source_sql": "query.sql"}, tmp_path)
    (tmp_path / "run").mkdir()
    assert read_and_count(plan_of(spec, spec.period_named("all")), tmp_path / "run").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("moment", [-(2**63), 0])
def test_a_column_that_nobody_names_makes_no_release_fail(tmp_path: Path, moment: int):
    # The file's statistics hold the value, and DuckDB read those of every column.
    day = pa.array([moment], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"age": [0.5], "day": day}), tmp_path / "seen.parquet")
    spec = ReleaseSpec.from_attributes(RELEASE, tmp_path)
    (tmp_path / "run").mkdir()
    assert read_and_count(plan_of(spec, spec.period_named("all")), tmp_path / "run").tolist() == [1]


def ingest_refusal(folder: Path, **columns: Any) -> str:
    """What refuses Parquet files with these columns, a value a file."""
    for number in range(len(next(iter(columns.values())))):
        file = io.BytesIO()
        pq.write_table(pa.table({name: values[number : number + 1][0] for name, values in columns.items()}), file)
        (folder / f"{number}.parquet").write_bytes(file.getvalue())
    spec = ReleaseSpec.from_attributes(RELEASE, folder)
    with pytest.raises(ColumnRefused) as caught:
        stage_rows(plan_of(spec, spec.period_named("all")), folder)
    return str(caught.value)


def test_a_list_of_decimals_is_no_decimal(tmp_path: Path):
    ages = [pa.array([[Decimal("1.5")]], pa.list_(pa.decimal128(4, 2)))]
    assert "column 'age' has type DECIMAL[], which cannot serve" in ingest_refusal(tmp_path, age=ages)


def test_names_inside_of_a_type_are_not_told(tmp_path: Path):
    ages = [pa.array([1.0]), pa.array([{"Zacharias": 1}])]
    assert "has type DOUBLE in some files and STRUCT in others" in ingest_refusal(tmp_path, age=ages)


def test_a_number_of_a_thousand_digits_is_told_shortly() -> None:
    assert digits(Fraction(1, 10**999)) == "about 0.0"
    assert digits(Fraction(1, 3)) == "1/3" and digits(Fraction(3, 2)) == "1.5" and digits(Fraction(7)) == "7"
