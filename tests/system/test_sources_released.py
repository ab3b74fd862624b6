"""Sources as offices have them, through the command line and Dagster: released alike, or refused with one message."""

from __future__ import annotations

import gzip
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from office import AGE, OPEN_HEALTH, WARD, Office
from orchestrated import charges, defined, materialized, public_files
from refusing import check_changes_nothing

from examples import mostly_soaked

pytestmark = pytest.mark.draws_alike

HEADER = b"patient,age,ward\n"
ROWS = b"ann,3,surgery\nbob,30,medicine\ncid,120,\n"
CSV = {"source": "data/*.csv"}
QUERY = """
-- One row for each row of the hospital's file.
SELECT TRY_CAST(patient AS VARCHAR) AS patient, TRY_CAST(age AS DOUBLE) AS age, lower(TRY_CAST(ward AS VARCHAR)) AS ward
FROM source WHERE age IS NOT NULL
"""


def with_files(office: Office, files: dict[str, bytes], **changes: Any) -> Office:
    office.opened().write_spec(**changes)
    for name, content in files.items():
        (office.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (office.folder / name).write_bytes(content)
    return office


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        HEADER + ROWS,
        b"\xef\xbb\xbf" + HEADER + ROWS,
        (HEADER + ROWS).replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + (HEADER + ROWS).replace(b"\n", b"\r\n"),
        HEADER + ROWS + b"d\xe9d\xe9,5,surgery\n" + "dédé,5,surgery\n".encode("utf-16") + b"\n",
        HEADER + ROWS + b"\x80\x81,\xff,\xfe\n",
        HEADER,
    ],
    ids=["plain", "BOM", "Windows", "both", "mixed encodings", "no encoding", "empty"],
)
def test_csv_is_released_however_it_was_written(office: Office, content: bytes) -> None:
    with_files(office, {"data/a.csv": content}, **CSV).released()
    assert charges(office) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"pati\xebnt,age,ward\n", "its bytes look like windows-1252: declare `csv_encoding: windows-1252`"),
        (
            "patient,age,ward\n".encode("utf-16"),
            "its bytes look like UTF-16, which is not read: write it anew as UTF-8",
        ),
        (b"a,b,a\n", "column names in utf-8, each once, apart by the declared `csv_delimiter`. Nothing"),
        (b"a,,b\n", "column names in utf-8, each once, apart by the declared `csv_delimiter`. Nothing"),
        (b"\n", "column names in utf-8, each once, apart by the declared `csv_delimiter`. Nothing"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused_by_its_file(office: Office, header: bytes, says: str) -> None:
    with_files(office, {"data/a.csv": header + ROWS}, **CSV)
    check_changes_nothing(office, office.release, "data/a.csv: ", "no usable header line", says)


def test_a_mark_of_utf8_is_no_name_of_a_column_in_another_encoding(office: Office) -> None:
    with_files(office, {"data/a.csv": b"\xef\xbb\xbf" + HEADER + ROWS}, **CSV, csv_encoding="windows-1252")
    says = "column names in windows-1252, each once"
    check_changes_nothing(office, office.release, says, "declare `csv_encoding: utf-8`")


@pytest.mark.parametrize(
    ("files", "changes", "says"),
    [
        ({}, CSV, "data/*.csv: no such file. Check `source`"),
        ({"data/a.csv/x": b""}, CSV, "data/a.csv: is not a file; name files"),
        ({"data/a.csv": HEADER, "data/b.csv": b"patient,years,ward\n"}, CSV, "'age' is not in"),
        ({"data/a.csv.gz": gzip.compress(HEADER + ROWS)[:-9]}, {"source": "data/*.csv.gz"}, "is damaged, cut off"),
        ({"data/a.csv.gz": HEADER + ROWS}, {"source": "data/*.csv.gz"}, "no archive of its kind"),
        ({"data/x=1/a.csv": HEADER, "data/a.csv": HEADER}, {"source": "data/**/*.csv", "hive": True}, "column=value"),
        ({"data/ward=1/a.csv": HEADER}, {"source": "data/**/*.csv", "hive": True}, "called as a column of its files"),
        (
            {"data/a.csv": HEADER},
            {**CSV, "decimal_comma": True, "csv_quote": "none"},
            "attributes.decimal_comma: cannot be",
        ),
        (
            {"data/a.csv": HEADER},
            {**CSV, "privacy_unit": ["patient", "patient"]},
            "privacy_unit[1]: 'patient' is named",
        ),
        ({"data/a.csv": HEADER}, {**CSV, "privacy_unit": ["patient", "ward"]}, "privacy_unit is 'patient' there but"),
        ({"data/a.csv": HEADER}, {**CSV, "source_sql": "q.sql"}, "attributes.source_sql: q.sql there is no such file"),
        ({"q.sql": b"SELECT random() AS age FROM source"}, {"source_sql": "q.sql"}, "line 1: random() gives"),
        ({"q.sql": b"SELECT patient, age FROM source"}, {"source_sql": "q.sql"}, "column 'ward' is not in the source"),
        ({"q.sql": b"SELECT patient, ages FROM source"}, {"source_sql": "q.sql"}, "q.sql: does not fit the columns of"),
        ({}, {"trusted_sql": True}, "attributes.source_sql: is required with `trusted_sql: true`"),
        ({}, {"source": "postgres:host=db"}, "write `postgres:{{ env.NAME }}`"),
        ({}, {"source": "gs://bucket/x.parquet"}, "copy the files here first"),
    ],
)
def test_sources_that_cannot_be_are_refused(
    office: Office, files: dict[str, bytes], changes: dict[str, Any], says: str
) -> None:
    with_files(office, files, **changes)
    if "q.sql" in files and "random" not in str(files):
        assert office.run("ledger", "allow", "health", "--query", "q.sql", "--reason", "a test").code == 0
    check_changes_nothing(office, office.release, says)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "more", "says"),
    [
        (pa.array([1.5]), {}, "column 'day' has type DOUBLE, which cannot serve as a period column"),
        (pa.array([[1]]), {}, "which cannot serve as a period column, which takes dates, time stamps in micro-"),
        (pa.array([0], pa.timestamp("ms")), {}, "has type TIMESTAMP_MS, which cannot serve as a period column"),
        (pa.array([0], pa.date32()), {"period_format": "%Y"}, "has type DATE, which needs no `period_format`"),
        (pa.array(["x"]), {"period_format": "Y"}, "attributes.period_format: must say how a date is written"),
    ],
)
def test_period_columns_of_a_wrong_type_are_refused(
    office: Office, column: pa.Array, more: dict[str, Any], says: str
) -> None:
    office.opened().write_spec(period="month", period_column="day", **more)
    office.write_records({"patient": ["ann"], "age": [3.0], "ward": ["surgery"], "day": column})
    check_changes_nothing(office, lambda: office.release("--period", "2026-01-01"), says)


def test_parquet_files_that_differ_in_columns_are_refused_where_it_matters(office: Office) -> None:
    office.opened().write_spec(source="data/*.parquet")
    office.write_records({"patient": ["dan"], "ward": ["surgery"], "note": [1]}, "data/more.parquet")
    check_changes_nothing(office, office.release, "data/more.parquet, and other files of the source have it")


AXES = [{**AGE, "above": True}, WARD]
WAYS: dict[str, tuple[dict[str, bytes], dict[str, Any]]] = {
    "a query": ({"q.sql": QUERY.encode()}, {"source_sql": "q.sql"}),
    "archives": ({"data/a.csv.gz": gzip.compress(HEADER + ROWS)}, {"source": "data/*.csv.gz"}),
    "folders": ({"data/place=a/a.csv": HEADER + ROWS}, {"source": "data/**/*.csv", "hive": True}),
    "normal forms": ({}, {"unit_normalise": ["trim", "lower"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", mostly_soaked(WAYS, [0, 2]))
def test_dagster_releases_what_the_command_line_does_and_replays_it(office: Office, way: str) -> None:
    files, changes = WAYS[way]
    with_files(office, files, axes=AXES, **changes)
    with dg.DagsterInstance.ephemeral() as instance:
        assert materialized(defined(office, axes=AXES, **changes), instance).success
    before = public_files(office)
    office.released()
    assert charges(office) == 1 and public_files(office) == before


@pytest.mark.slow
def test_an_account_of_several_columns_pays_for_their_releases(office: Office) -> None:
    with_files(office, {"data/a.csv": HEADER + ROWS}, **CSV, privacy_unit=["ward", "patient"], account="wards")
    words = [word.replace("health", "wards") for word in OPEN_HEALTH]
    words[words.index("patient")] = "ward,patient"
    assert office.run("ledger", *words, "--store", office.store).code == 0
    office.allow()
    office.released()
    assert "each ward,patient with up to 2 rows" in office.run("check", office.folder / "spec.yaml").out
