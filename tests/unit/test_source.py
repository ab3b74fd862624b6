"""The files of a source: what is refused about them, in words that hold nothing from them."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.base.csv_text import LONGEST_HEADER
from dphist_pipeline.base.declared_numbers import NUMBERS
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading._source_files import find_files, open_files
from dphist_pipeline.confidential.reading.ingest import CATEGORIES, TIMES, UNITS, opened_source
from dphist_pipeline.confidential.reading.source import (
    ColumnRefused,
    OpenedSource,
    SourceRefused,
)
from dphist_pipeline.spec.sources import Source as Written
from examples import examples

SECRET = "Zacharias"
PEOPLE = pa.table({"person": [SECRET, SECRET], "age": [61.5, 62.5]})
HEADER = b"person,age\n"
ONE_PERSON = b"person,age\n" + SECRET.encode() + b",61\n"


def opened(*files: Path, delimiter: str = ",", quote: str = "") -> OpenedSource:
    with duckdb.connect() as connection:
        source = SourcePlan(Written("people"), Reading("people", None, "csv", None, delimiter, quote), "")
        return open_files(connection, tuple(files), source)


def rows(*files: Path, delimiter: str = ",", quote: str = "") -> list[tuple[Any, ...]]:
    source = opened(*files, delimiter=delimiter, quote=quote)
    with duckdb.connect() as connection:
        return sorted(connection.execute(source.relation, dict(source.parameters)).fetchall(), key=str)


def parquet(path: Path, table: pa.Table = PEOPLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def csv(path: Path, content: bytes = ONE_PERSON) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def refused(work: Callable[[], object], error: type[Exception] = SourceRefused) -> str:
    """What a refusal says; nothing of what a traceback would show of it holds a value."""
    with pytest.raises(error) as caught:
        work()
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    shown = "".join(traceback.format_exception_only(caught.value)) + repr(vars(caught.value))
    # The name of pytest's folder ends in the number of the run, which may hold the digits of the value.
    shown = re.sub(r"/pytest-\d+/", "/pytest/", shown)
    assert SECRET not in shown and "61" not in shown
    return str(caught.value)


def test_finds_files_in_the_same_order_every_time(tmp_path: Path):
    made = [parquet(tmp_path / name) for name in ("b.parquet", "a.parquet", "c/d.parquet")]
    assert find_files(f"{tmp_path}/**/*.parquet") == tuple(sorted(made))


def test_a_pattern_that_finds_nothing_is_refused(tmp_path: Path):
    assert "no such file" in refused(lambda: find_files(f"{tmp_path}/*.parquet"))


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_not_a_file_is_refused_and_never_waited_for(make: Callable[[Path], None], tmp_path: Path):
    make(tmp_path / "people.parquet")
    assert "is not a file" in refused(lambda: find_files(f"{tmp_path}/people.parquet"))


@pytest.mark.parametrize("name", [b"a*.csv", b"a?.csv", b"a[1].csv"])
def test_a_name_that_would_be_read_as_a_pattern_is_refused(name: bytes, tmp_path: Path):
    csv(tmp_path / os.fsdecode(name))
    assert "rename the file" in refused(lambda: find_files(f"{tmp_path}/a*.csv"))


@pytest.mark.parametrize("name", [b"\xff.csv", b"a\nb.csv", b"a\x1b[2J.csv"])
def test_a_name_that_cannot_be_printed_is_refused_without_printing_it(name: bytes, tmp_path: Path):
    csv(tmp_path / os.fsdecode(name))
    message = refused(lambda: find_files(f"{tmp_path}/*.csv"))
    assert "cannot be printed" in message and message.isprintable()


@pytest.mark.parametrize("name", ["a'b\"c", "a{b,c}", "a\\b", "a$b%20#c;--", "é日 😀", "x=5"])
def test_other_names_are_read_as_they_are(name: str, tmp_path: Path):
    assert len(rows(parquet(tmp_path / f"{name}.parquet"))) == 2
    assert len(rows(csv(tmp_path / f"{name}.csv"))) == 1


def test_links_lead_to_their_files(tmp_path: Path):
    (tmp_path / "linked").mkdir()
    link = tmp_path / "linked" / "people.parquet"
    link.symlink_to(parquet(tmp_path / "far" / "people.parquet"))
    assert find_files(f"{tmp_path}/linked/*") == (link,)
    assert len(rows(link)) == 2


def test_files_of_two_kinds_are_refused(tmp_path: Path):
    message = refused(lambda: opened(parquet(tmp_path / "a.parquet"), csv(tmp_path / "b.csv")))
    assert ".csv and .parquet" in message


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_the_end(content: bytes) -> bytes:
    return content[:-4]


def emptied(content: bytes) -> bytes:
    return b""


def text(content: bytes) -> bytes:
    return ONE_PERSON


@pytest.mark.parametrize("damage", [cut, without_the_end, emptied, text])
def test_a_damaged_parquet_file_is_refused_by_its_name(damage: Callable[[bytes], bytes], tmp_path: Path):
    path = parquet(tmp_path / "people.parquet")
    path.write_bytes(damage(path.read_bytes()))
    message = refused(lambda: opened(path))
    assert str(path) in message and "not a readable Parquet file" in message


def test_parquet_files_may_order_their_columns_differently(tmp_path: Path):
    other = parquet(tmp_path / "b.parquet", PEOPLE.select(["age", "person"]))
    assert rows(parquet(tmp_path / "a.parquet"), other) == [(SECRET, 61.5)] * 2 + [(SECRET, 62.5)] * 2


def test_a_parquet_file_without_rows_or_row_groups_is_read(tmp_path: Path):
    with pq.ParquetWriter(tmp_path / "a.parquet", PEOPLE.schema):
        pass
    assert rows(tmp_path / "a.parquet", parquet(tmp_path / "b.parquet", PEOPLE.slice(0, 0))) == []


def test_folders_that_look_like_columns_change_no_column(tmp_path: Path):
    assert rows(parquet(tmp_path / "age=5" / "person=x" / "a.parquet"))[0] == (SECRET, 61.5)
    assert rows(csv(tmp_path / "age=5" / "person=x" / "a.csv"))[0] == (SECRET, "61")


def column(kind: pa.DataType, name: str = "age") -> pa.Table:
    return pa.table({"person": [SECRET], name: pa.nulls(1, kind)})


@pytest.mark.parametrize(
    "kinds",
    [
        (pa.int64(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(38, 0), pa.decimal128(38, 38)),
        (pa.int64(), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("us")),
        (pa.bool_(), pa.int64()),
    ],
)
def test_a_column_of_two_types_is_refused_before_a_cast_can_raise_or_merge_units(
    kinds: tuple[pa.DataType, ...], tmp_path: Path
):
    files = [parquet(tmp_path / f"{number}.parquet", column(kind)) for number, kind in enumerate(kinds)]
    source = opened(*files)
    for allowed in (NUMBERS, CATEGORIES, UNITS, TIMES):
        assert "in some files and" in refused(
            lambda allowed=allowed: source.type_of("age", allowed, "x"), ColumnRefused
        )
    assert source.type_of("person", UNITS, "a privacy unit") == "VARCHAR"


def test_whole_numbers_of_any_width_and_columns_of_nulls_fit_together(tmp_path: Path):
    kinds = [pa.int8(), pa.uint64(), pa.null(), pa.int64()]
    files = [parquet(tmp_path / f"{number}.parquet", column(kind)) for number, kind in enumerate(kinds)]
    assert opened(*files).type_of("age", UNITS, "a privacy unit") == "HUGEINT"
    assert opened(files[2]).type_of("age", TIMES, "a period column") == "NULL"
    assert opened(files[0], files[2]).type_of("age", UNITS, "a privacy unit") == "TINYINT"


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct({"a": pa.int64()}),
        pa.list_(pa.int64()),
        pa.binary(),
        pa.map_(pa.string(), pa.int64()),
        pa.time64("us"),
        pa.timestamp("ms"),
        pa.timestamp("s", "UTC"),
    ],
)
def test_a_type_that_serves_for_nothing_is_refused_as_everything(kind: pa.DataType, tmp_path: Path):
    source = opened(parquet(tmp_path / "a.parquet", column(kind)))
    for allowed in (NUMBERS, CATEGORIES, UNITS, TIMES):
        assert "which cannot serve" in refused(
            lambda allowed=allowed: source.type_of("age", allowed, "x"), ColumnRefused
        )


def test_a_missing_parquet_column_is_refused_with_the_nearest_name(tmp_path: Path):
    source = opened(parquet(tmp_path / "a.parquet"))
    assert "'age'" in refused(lambda: source.type_of("agee", NUMBERS, "a binned axis"), ColumnRefused)


def test_a_missing_csv_column_is_refused_without_showing_the_first_line(tmp_path: Path):
    source = opened(csv(tmp_path / "a.csv", ONE_PERSON.removeprefix(HEADER)))
    message = refused(lambda: source.type_of("person", UNITS, "a privacy unit"), ColumnRefused)
    assert message == "column 'person' is not in the source. Check the header line."
    assert replace(source, unit=("person",)).nearest(f"{next(iter(source.types))}x") == "Check the header line."


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\n" + ONE_PERSON,
        b"Zacharias,\xff\n",
        b"Zacharias,\0\n",
        b"Zacharias,Zacharias\n",
        b"Zacharias,zacharias\n",
        b"Zacharias,,61\n",
        b'"Zacharias,61\n',
        b"Zacharias," + b"x" * 200_000 + b"\n",
        b"Zacharias," + b",".join(b"x%07d" % number for number in range(LONGEST_HEADER // 8)) + b"\n",
    ],
    ids=range(10),
)
def test_a_first_line_that_is_no_header_is_refused_without_repeating_it(header: bytes, tmp_path: Path):
    path = csv(tmp_path / "a.csv", header)
    message = refused(lambda: opened(path))
    assert "no usable header line" in message and "zacharias" not in message.lower()


def test_a_column_that_one_csv_file_lacks_is_refused_by_the_file_where_it_is_used(tmp_path: Path):
    first, other = csv(tmp_path / "a.csv"), csv(tmp_path / "b.csv", b"Zacharias,age\n")
    source = opened(first, other)
    assert source.type_of("age", NUMBERS, "a binned axis") == "VARCHAR"
    message = refused(lambda: source.type_of("person", UNITS, "a privacy unit"), ColumnRefused)
    assert f"column 'person' is not in {other}, and other files" in message and "Zacharias" not in message


def test_a_column_that_one_parquet_file_lacks_is_refused_by_the_file(tmp_path: Path):
    first, other = parquet(tmp_path / "a.parquet"), parquet(tmp_path / "b.parquet", pa.table({"other": [1]}))
    message = refused(lambda: opened(first, other).type_of("age", NUMBERS, "a binned axis"), ColumnRefused)
    assert f"column 'age' is not in {other}, and other files" in message


def test_csv_files_may_order_their_columns_differently(tmp_path: Path):
    first, other = csv(tmp_path / "a.csv"), csv(tmp_path / "b.csv", b"age,person\n61,Zacharias\n")
    assert rows(first, other) == [(SECRET, "61")] * 2


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"person,age\n", []),
        (b"person,age", []),
        (b"person,age\nA,1", [("A", "1")]),
        (b"person,age\r\nA,1\r\nB,2\r\n", [("A", "1"), ("B", "2")]),
        (b"\xef\xbb\xbfperson,age\nA,1\n", [("A", "1")]),
        (b"person,age\nA\nB,2,3\n\n,\nC,4\n", [("C", "4"), (None, None)]),
        (b'person,age\n"A,1\nB,"2"\nC,3"\nD",4\n', [("C", '3"'), ('D"', "4")]),
        (b"person,age\n\xff,2\nC,3\n", [("C", "3")]),
        (b"person,age\n#A,NULL\n", [("#A", "NULL")]),
    ],
)
def test_a_line_of_csv_is_a_row_whatever_the_others_hold(content: bytes, read: list[Any], tmp_path: Path):
    assert rows(csv(tmp_path / "a.csv", content)) == sorted(read, key=str)


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", "$", "{", "*"])
def test_a_declared_delimiter_is_used(delimiter: str, tmp_path: Path):
    content = ONE_PERSON.replace(b",", delimiter.encode())
    assert rows(csv(tmp_path / "a.csv", content), delimiter=delimiter) == [(SECRET, "61")]


def test_declared_quotes_hold_delimiters_and_quotes_and_no_line_breaks(tmp_path: Path):
    content = b'person,"age"\n"A,B",1\n"C""D",2\n"E\nF",3\n'
    assert rows(csv(tmp_path / "a.csv", content), quote='"') == [("A,B", "1"), ('C"D', "2")]


def test_an_overlong_line_of_csv_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dphist_pipeline.base.csv_text.LONGEST_LINE", 1 << 16)
    content = HEADER + b"A,1\n" + b"x" * (1 << 22) + b",2\nB,3\n"
    assert [row for row in rows(csv(tmp_path / "a.csv", content)) if row[1] != "2"] == [("A", "1"), ("B", "3")]


PLAIN = [
    ",",
    "\n",
    "\r",
    "\r\n",
    '"',
    "'",
    "a",
    "1",
    "#",
    "\\",
    " ",
    "\t",
    "\0",
    "\x1a",
    "é",
    "😀",
    "\u2028",
    "\ufeff",
    "NULL",
]
UNDECODABLE = [b"\xff", b"\xc3", b"\xed\xa0\x80"]
pieces = st.sampled_from([*map(str.encode, PLAIN), *UNDECODABLE])


@pytest.mark.slow
@examples(60)
@given(content=st.lists(pieces, max_size=40).map(b"".join), quote=st.sampled_from(['"', "'"]))
def test_any_bytes_of_quoted_csv_give_rows_of_texts_that_stand_in_them(
    content: bytes, quote: str, tmp_path_factory: pytest.TempPathFactory
):
    found = rows(csv(tmp_path_factory.getbasetemp() / "quoted.csv", HEADER + content), quote=quote)
    bare = content.replace(quote.encode(), b"")
    for row in found:
        assert len(row) == 2
        assert all(value is None or value.replace(quote, "").encode() in bare for value in row), row


def test_a_release_reaches_no_other_files(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "run").mkdir()
    for name in ("in/people.csv", "other.csv"):
        (tmp_path / name).write_text("person\nA\n")
    people = SourcePlan(Written("in/people.csv"), Reading("", None, "csv"), f"{tmp_path}/in/people.csv")
    with opened_source(people, tmp_path / "run") as (connection, _):
        assert connection.execute("SELECT * FROM read_text($file)", {"file": str(tmp_path / "in/people.csv")})
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"):
            assert connection.execute("SELECT current_setting(?)", [setting]).fetchone() == (False,), setting
        for forbidden in (
            f"SELECT * FROM read_text('{tmp_path}/other.csv')",
            f"SELECT * FROM read_text('{tmp_path}/in/../other.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/out.db'",
            "SELECT * FROM glob('/*')",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "RESET allowed_directories",
            "SET TimeZone = 'Asia/Tokyo'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(forbidden)
