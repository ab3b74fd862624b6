"""Files as offices have them: in folders, compressed, with dates and numbers of their own, and units of any kind."""

from __future__ import annotations

import gzip
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_scenario import AGE, SECRET, WARD, counted, refused, spec

from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.spec.mistakes import FromEnvironment, SpecError

PEOPLE = b"person,age\nA,5\nB,15\nB,15\n"
REGION = {"column": "region", "values": ["north", "a b", "2026"], "other": True}
CSV = {"source": "*.csv"}


def people(**columns: Any) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"person": np.arange(rows), "age": [15.0] * rows} | columns)


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


PACKED = [("csv.gz", gzip.compress), ("csv.zst", zstd)]


@pytest.mark.parametrize(("ending", "pack"), PACKED)
@pytest.mark.parametrize("content", [PEOPLE, b"\xef\xbb\xbf" + PEOPLE.replace(b"\n", b"\r\n"), PEOPLE.rstrip()])
def test_compressed_csv_is_read_as_it_was_before(ending: str, pack: Any, content: bytes):
    other = b"age,person\n25,C\n"
    files = {f"a.{ending}": pack(content), f"b.{ending}": pack(other)}
    assert counted(files, source=f"*.{ending}") == [1, 2, 1, 0, 0]


@pytest.mark.parametrize(("ending", "pack"), PACKED)
def test_several_archives_after_each_other_are_one(ending: str, pack: Any):
    assert counted({f"a.{ending}": pack(PEOPLE) + pack(b"C,25\n")}, source=f"*.{ending}") == [1, 2, 1, 0, 0]


MANY = b"person,age\n" + b"".join(b"Zacharias%d,61\n" % number for number in range(40_000))


@pytest.mark.parametrize(("ending", "pack"), PACKED)
@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[: len(packed) // 2],
        lambda packed: packed[:-3],
        lambda packed: packed + b"Zacharias",
        lambda packed: MANY,
        lambda packed: packed[:5],
    ],
    ids=["half", "without its end", "with more", "not packed", "beginning"],
)
def test_a_damaged_archive_is_refused_by_its_name(ending: str, pack: Any, damage: Any):
    message = refused({f"a.{ending}": damage(pack(MANY))}, SourceRefused, source=f"*.{ending}")
    assert f"a.{ending}: is damaged, cut off, or no archive of its kind. Write it anew." in message


def test_an_archive_whose_checksum_is_wrong_is_refused():
    packed = bytearray(gzip.compress(MANY))
    packed[-6] ^= 255
    assert "is damaged" in refused({"a.csv.gz": bytes(packed)}, SourceRefused, source="*.csv.gz")


def test_an_empty_archive_has_no_header_line():
    message = refused({"a.csv.gz": gzip.compress(b"")}, SourceRefused, source="*.csv.gz")
    assert "no usable header line" in message


@pytest.mark.parametrize(("ending", "pack"), PACKED)
def test_no_record_in_an_archive_makes_it_fail(ending: str, pack: Any):
    content = b'person,age\nA,5\n\xff\xfe,5\n"A,\n\0\nB,x,y,z\n' + b"x" * 100_000 + b",5\n"
    assert sum(counted({f"a.{ending}": pack(content)}, source=f"*.{ending}")) == 2


FOLDERS = ["region=north/year=2026", "region=a%20b/year=2025", "region=__HIVE_DEFAULT_PARTITION__/year="]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_folders_that_are_declared_to_name_columns_give_them_as_text(kind: str):
    content = {"csv": PEOPLE, "csv.gz": gzip.compress(PEOPLE), "parquet": people(age=[5, 15, 15])}[kind]
    files = {f"{folder}/x.{kind}": content for folder in FOLDERS}
    found = {"source": f"**/*.{kind}", "axes": [REGION], "hive": True}
    assert counted(files, **found) == [3, 3, 0, 3]
    years = {"column": "year", "start": 2025, "stop": 2027, "width": 1, "other": True}
    assert counted(files, **{**found, "axes": [years]}) == [3, 3, 3]
    seen = {"period": "year", "period_column": "year", "period_format": "%Y", "at": "2026-01-01"}
    assert counted(files, **{**found, "axes": [AGE]}, **seen) == [1, 2, 0, 0, 0]


@pytest.mark.parametrize(("kind", "content"), [("csv", PEOPLE), ("parquet", people(age=[5, 15, 15]))])
def test_the_text_of_a_folder_is_no_number_and_no_day(kind: str, content: Any):
    for value in ("-0", "2024-1-5"):
        axes = [{"column": "region", "values": [value], "other": True}]
        assert counted({f"region={value}/x.{kind}": content}, source=f"**/*.{kind}", axes=axes, hive=True) == [3, 0]


@pytest.mark.parametrize("content", [b"person,age,Region\nA,5,x\n", people(Region=["x"])], ids=["csv", "parquet"])
def test_a_folder_never_takes_the_place_of_a_column(content: Any):
    kind = "csv" if isinstance(content, bytes) else "parquet"
    files = {f"region=north/x.{kind}": content}
    message = refused(files, SourceRefused, source=f"**/*.{kind}", hive=True)
    assert "folders that are called as a column of its files" in message
    axes = [{**REGION, "column": "Region", "name": "region", "values": ["x", "north"]}]
    assert counted(files, source=f"**/*.{kind}", axes=axes) == [1, 0, 0]


@pytest.mark.parametrize("folder", ["north", "other=1/region=north", "region=north/x=1", "=north"])
def test_files_outside_of_declared_folders_are_refused(folder: str):
    files = {"region=south/x.csv": PEOPLE, f"{folder}/x.csv": PEOPLE}
    message = refused(files, SourceRefused, source="**/*.csv", hive=True)
    assert "not all files lie in folders called `column=value`" in message


@pytest.mark.parametrize("folders", [["Zacharias"], ["Zacharias", "region=south"], ["Zacharias\\region=b"]])
def test_a_folder_that_is_not_called_after_its_column_is_not_told(folders: list[str]):
    files = {f"{folder}/x.csv": PEOPLE for folder in folders}
    message = refused(files, SourceRefused, source="**/*.csv", axes=[REGION], hive=True)
    assert "folders" in message and "Zacharias" not in message


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["region=Zacharias%FF", "region=Zacharias%ED%A0%80", "region=b=Zacharias"])
def test_a_folder_whose_value_cannot_be_read_is_refused_by_its_column_alone(kind: str, folder: str):
    content = {"csv": PEOPLE, "parquet": people(age=[5])}[kind]
    files = {f"{name}/x.{kind}": content for name in ("region=Zacharias", folder)}
    message = refused(files, SourceRefused, source=f"**/*.{kind}", axes=[REGION], hive=True)
    assert "folders called `region=…` whose value cannot be read: it must be UTF-8" in message


@pytest.mark.parametrize("value", ["%", "%G1", "a%2Fb", "%00", "%EF%BF%BF", "%f0%9f%98%80"])
def test_a_folder_may_hold_any_text(value: str):
    files = {f"region={value}/x.csv": PEOPLE, "region=north/x.csv": PEOPLE}
    assert counted(files, source="**/*.csv", axes=[REGION], hive=True) == [3, 0, 0, 3]


@pytest.mark.parametrize("hive", [True, False])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_damaged_file_is_named_without_the_values_of_its_folders(kind: str, hive: bool):
    files = {f"region=Zacharias/year=2026/x.{kind}": b"" if kind == "csv" else b"damaged"}
    message = refused(files, SourceRefused, source=f"**/*.{kind}", axes=[AGE], hive=hive)
    assert f"region=…/year=…/x.{kind}: " in message and "2026" not in message


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"b.csv/c": b""}, "region=…/b.csv: is not a file"),
        ({"b?.csv": PEOPLE}, "region=…/b?.csv: has one of the characters"),
    ],
)
def test_files_that_do_not_serve_are_named_without_the_values_of_their_folders(other: dict[str, bytes], says: str):
    files = {f"region=Zacharias/{name}": content for name, content in {"a.csv": PEOPLE, **other}.items()}
    assert says in refused(files, SourceRefused, source="**/*.csv")


def test_a_column_of_csv_that_is_not_used_may_be_missing_or_differ_and_each_row_counts():
    files = {
        "1.csv": b"person,age,old\na,5,x\n",
        "2.csv": b"new,age,person\nx,15,b\n,5,c\n",
        "3.csv": b"person,age\nd,25\n",
    }
    assert counted(files, source="*.csv", axes=[AGE]) == [2, 1, 1, 0, 0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_a_file_lacks_is_refused_where_messages_call_files_alike(kind: str):
    tables = [pa.table({"person": ["a"], "age": ["5"]}), pa.table({"person": ["b"], "years": ["5"]})]
    files: dict[str, Any] = dict(zip(("region=north/x.parquet", "region=south/x.parquet"), tables, strict=True))
    if kind == "csv":
        files = {"region=north/x.csv": b"person,age\na,5\n", "region=south/x.csv": b"person,years\nb,5\n"}
    message = refused(files, ColumnRefused, source=f"**/*.{kind}", hive=True, axes=[AGE])
    assert "column 'age' is not in" in message and f"region=…/x.{kind}, and other files" in message


def test_a_missing_column_of_folders_is_refused():
    files = {"region=south/x.csv": PEOPLE}
    message = refused(files, ColumnRefused, source="**/*.csv", hive=True, axes=[{**REGION, "column": "regions"}])
    assert "column 'regions' is not in the source" in message


LOANS = "person;Art;age\nJürgen;Bücher „neu“ – 5 €;9,5\nJörgen;Bücher „neu“ – 5 €;15,0\nJ\u201crgen;Spiel;25,0\n"
ENCODED: dict[str, Any] = {
    **{"source": "*.csv", "csv_delimiter": ";", "decimal_comma": True, "max_rows_per_unit": 1},
    "axes": [AGE, {"column": "Art", "name": "kind", "values": ["Bücher „neu“ – 5 €", "Spiel"], "other": True}],
}
AS_MEANT = {(0, 0): 1, (1, 0): 1, (2, 1): 1}


def where(files: dict[str, bytes], **changes: Any) -> dict[tuple[int, int], int]:
    cube = np.array(counted(files, **{**ENCODED, **changes})).reshape(5, 3)
    return {(int(age), int(kind)): int(cube[age, kind]) for age, kind in zip(*cube.nonzero(), strict=True)}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("utf-8", LOANS.encode()),
        ("utf-8", LOANS.encode("utf-8-sig")),
        ("windows-1252", LOANS.encode("cp1252")),
        ("cp1252", LOANS.encode("cp1252")),
        ("CP1252", LOANS.encode("cp1252")),
    ],
)
def test_csv_is_read_in_its_declared_encoding(name: str, content: bytes, pack: Any):
    file = "a.csv" if pack is bytes else "a.csv.gz"
    assert where({file: pack(content)}, source=f"*{file[1:]}", csv_encoding=name) == AS_MEANT


def test_latin_1_gives_every_byte_a_sign_of_its_own():
    content = LOANS.encode("cp1252")
    names = {
        "csv_encoding": "latin-1",
        "axes": [AGE, {"column": "Art", "name": "kind", "values": ["Bücher", "Spiel"], "other": True}],
    }
    assert where({"a.csv": content}, **names) == {(0, 2): 1, (1, 2): 1, (2, 1): 1}
    every = b"person;Art;age\n" + b"".join(b"p%c;Spiel;5,0\n" % byte for byte in range(128, 256))
    for name in ("latin-1", "windows-1252"):
        assert where({"a.csv": every}, csv_encoding=name) == {(0, 1): 128}


def test_bytes_of_another_encoding_cost_the_values_that_hold_them_and_no_more():
    plain = "person;Art;age\n" + "".join(f"ann{number};Spiel;5,0\n" for number in range(3000))
    content = plain.encode() + b"bob;B\xfccher;15,0\nJ\xfcrgen;Spiel;25,0\nJ\xf6rgen;Spiel;25,0\ncid;Spiel;25,0\n"
    assert where({"a.csv": content}, max_rows_per_unit=9000) == {(0, 1): 3000, (1, 2): 1, (2, 1): 1}


def test_files_in_folders_are_read_in_their_encoding_too():
    files = {f"kind={kind}/a.csv": f"person;age\n{kind};5,0\nJürgen;15,0\n".encode("cp1252") for kind in ("ä", "b")}
    axes = [{"column": "kind", "values": ["ä", "b"]}]
    given = {**ENCODED, "source": "*/*.csv", "hive": True, "max_rows_per_unit": 9, "axes": axes}
    assert counted(files, **given, csv_encoding="windows-1252") == [2, 2]


def test_an_encoding_that_nobody_reads_is_refused(tmp_path: Path):
    says = "csv_encoding: must be one of utf-8, windows-1252, latin-1, not 'utf-16'"
    with pytest.raises(SpecError, match=says):
        spec(tmp_path, **CSV, csv_encoding="utf-16")
    with pytest.raises(SpecError, match="csv_encoding: must be one of"):
        spec(tmp_path, **CSV, csv_encoding=8)


GERMAN = {"source": "*.csv", "csv_delimiter": ";"}


def test_numbers_with_a_declared_decimal_comma_are_read():
    content = b"person;age\nA;9,5\nB;10,0\nC;20\nD;1.000\nE;-0,5\nF;1,5e1\nG;9,9,9\nH;\nI;,5\n"
    assert counted({"a.csv": content}, **GERMAN, decimal_comma=True) == [2, 2, 1, 0, 4]
    assert counted({"a.csv": content}, **GERMAN) == [1, 0, 1, 0, 7]


def test_a_decimal_comma_changes_text_that_is_a_number_and_nothing_else():
    table = pa.table({"person": ["1,5", "1,5", "1.5"], "age": ["1,5", "15,5", "1.5"], "real": [1.5, 15.5, 25.5]})
    axes = [AGE, {**AGE, "column": "real"}, {"column": "age", "name": "as_text", "values": ["1,5"], "other": True}]
    more = {"decimal_comma": True, "max_rows_per_unit": 1}
    cube = np.array(counted({"a.parquet": table}, axes=axes, **more)).reshape(5, 5, 2)
    assert cube.sum() == 2 and cube[4, 2, 1] == 1 and cube[0, 0, 0] + cube[1, 1, 1] == 1


def test_a_decimal_comma_between_commas_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="decimal_comma: cannot be used where commas separate the fields"):
        spec(tmp_path, source="*.csv", csv_quote="none", decimal_comma=True)
    quoted = b'person,age\nA,"9,5"\n'
    assert counted({"a.csv": quoted}, source="*.csv", csv_quote='"', decimal_comma=True) == [1, 0, 0, 0, 0]


DAYS = ["02/03/2026", "2/3/2026", "08/03/2026", "09/03/2026", "31/02/2026", "2026-03-03", "", None, "03/02/2026", "x"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_dates_with_a_declared_format_are_read(kind: str):
    lines = "".join(f"{number},5,{day or ''}\n" for number, day in enumerate(DAYS))
    csv = f"person,age,seen\n{lines}".encode()
    content = csv if kind == "csv" else people(seen=DAYS, age=[5] * len(DAYS))
    week = {"period": "week", "period_column": "seen", "period_format": "%d/%m/%Y", "at": "2026-03-02"}
    assert sum(counted({f"a.{kind}": content}, source=f"*.{kind}", **week)) == 3


def test_times_with_a_declared_format_are_in_the_zone_of_the_release():
    seen = ["29.03.2026 23:59", "30.03.2026 00:00", "05.04.2026 23:59", "06.04.2026 00:00"]
    week = {"period": "week", "period_column": "seen", "period_format": "%d.%m.%Y %H:%M", "at": "2026-03-30"}
    for zone in ("UTC", "Europe/Brussels", "America/Sao_Paulo"):
        assert sum(counted({"a.parquet": people(seen=seen)}, time_zone=zone, **week)) == 2


def test_a_format_for_what_is_no_text_is_refused():
    week = {"period": "week", "period_column": "seen", "period_format": "%d/%m/%Y", "at": "2026-03-02"}
    table = people(seen=pa.array([0], pa.date32()))
    assert "has type DATE, which needs no `period_format`" in refused({"a.parquet": table}, ColumnRefused, **week)
    assert sum(counted({"a.parquet": people(seen=pa.nulls(3))}, **week)) == 0


@pytest.mark.parametrize("value", ["", "d/m/Y", "%d/%m", "%Y %z", "%Y-%m-%d %Z", "%Q %Y", 5, "%"])
def test_what_is_no_format_of_dates_is_refused(tmp_path: Path, value: object):
    with pytest.raises(SpecError, match="period_format"):
        spec(tmp_path, period="week", period_column="seen", period_format=value)


def test_a_format_without_a_column_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="period_format: has no use without `period_column`"):
        spec(tmp_path, period_format="%Y")


parts = st.one_of(st.none(), st.text(alphabet=["a", "b", ":", "1", "2", "|", "é", "\0", ","], max_size=4))


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(units=st.lists(st.tuples(parts, parts, st.one_of(st.none(), st.integers(0, 2))), min_size=1, max_size=12))
def test_several_unit_columns_never_merge_two_units_and_drop_unclear_rows(units: list[Any]):
    table = pa.table(
        {
            "a": pa.array([unit[0] for unit in units], pa.string()),
            "b": pa.array([unit[1] for unit in units], pa.string()),
            "c": pa.array([unit[2] for unit in units], pa.int64()),
            "age": [5.0] * len(units),
        }
    )
    told = {unit for unit in units if None not in unit}
    assert sum(counted({"a.parquet": table}, privacy_unit=["a", "b", "c"], max_rows_per_unit=1)) == len(told)


def test_parts_of_a_unit_never_run_into_each_other():
    pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("", "abc"),
        ("1:a", "2:bc"),
        ("1:a2", ":bc"),
        ("a2", "bc"),
        ("a", "1:"),
    ]
    table = pa.table(
        {"a": [first for first, _ in pairs], "b": [second for _, second in pairs], "age": [5] * len(pairs)}
    )
    found = counted({"a.parquet": table}, privacy_unit=["a", "b"], max_rows_per_unit=1)
    assert sum(found) == len(pairs)


def test_a_unit_of_several_columns_may_have_any_types():
    table = pa.table(
        {
            "text": ["x", "x", "x", "a?b", "x"],
            "real": [0.0, -0.0, float("nan"), 1.0, None],
            "uuid": pa.array([uuid.UUID(int=1).bytes] * 5, pa.binary(16)).cast(pa.uuid()),
            "age": [5] * 5,
        }
    )
    assert sum(counted({"a.parquet": table}, privacy_unit=["text", "real", "uuid"], max_rows_per_unit=1)) == 1


def test_a_unit_of_one_column_in_a_list_is_that_column(tmp_path: Path):
    one, listed = spec(tmp_path), spec(tmp_path, privacy_unit=["person"])
    assert one.digest == listed.digest and one.privacy_unit == listed.privacy_unit == "person"


def test_the_account_knows_several_columns_by_their_names_with_commas(tmp_path: Path):
    both, other = spec(tmp_path, privacy_unit=["hospital", "person"]), spec(tmp_path, privacy_unit="hospital,person")
    assert both.privacy_unit == "hospital,person" and both.privacy_unit.columns == ("hospital", "person")
    assert other.digest != both.digest


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "needs at least 1"),
        (["x"] * 11, "more than 10 items"),
        (["a", "a"], "named twice"),
        (["a", "row"], "`row` means that every row is another person"),
        (["a,b", "c"], "holds a comma"),
        (["a", 5], "quote it"),
        (["a", ""], "is empty"),
        (["a" * 150, "b" * 150], "more than 200 characters"),
        ({"a": 1}, "must be text"),
    ],
)
def test_what_cannot_name_a_unit_is_refused(tmp_path: Path, value: object, says: str):
    with pytest.raises(SpecError, match="privacy_unit") as caught:
        spec(tmp_path, privacy_unit=value)
    assert says in str(caught.value)


def test_a_missing_column_of_a_unit_is_refused():
    message = refused({"a.csv": PEOPLE}, ColumnRefused, source="*.csv", privacy_unit=["person", "hospital"])
    assert "column 'hospital' is not in the source" in message


NAMES = ["Ann", "ann ", "\tANN\u00a0", "A\u0308nn", "\u00c4nn", "  ", "ann?"]


@pytest.mark.parametrize(
    ("forms", "units"),
    [([], 6), (["trim"], 5), (["lower"], 6), (["trim", "lower"], 3), (["trim", "lower", "nfc"], 2), (["nfc"], 5)],
)
def test_text_that_names_a_unit_is_brought_into_declared_forms_only(forms: list[str], units: int):
    table = pa.table({"person": NAMES, "age": [5] * len(NAMES)})
    more = {"max_rows_per_unit": 1, "unit_normalise": forms}
    assert sum(counted({"a.parquet": table}, **more)) == units
    csv = ("person,age\n" + "".join(f"{name},5\n" for name in NAMES[:-1])).encode()
    assert sum(counted({"a.csv": csv}, source="*.csv", **more)) == units


def test_forms_leave_numbers_as_they_are_and_each_part_of_a_unit_has_them():
    table = pa.table({"person": [1, 1, 2], "house": [" A", "a", "a"], "age": [5] * 3})
    more = {"max_rows_per_unit": 1, "unit_normalise": ["trim", "lower"]}
    assert sum(counted({"a.parquet": table}, **more)) == 2
    assert sum(counted({"a.parquet": table}, privacy_unit=["person", "house"], **more)) == 2


@pytest.mark.parametrize(("person", "holds"), [(SECRET, "text"), (1.5, "number")])
def test_a_unit_of_another_kind_than_was_decided_on_is_refused(person: object, holds: str):
    files = {"a.parquet": pa.table({"person": [person], "age": [5]})}
    assert f"holds {holds}, and was whole number" in refused(files, ColumnRefused, kinds=("whole number",))
    assert sum(counted(files, kinds=(holds,))) == 1


@pytest.mark.parametrize("value", ["trim", ["upper"], ["trim", "trim"], [None], 5])
def test_forms_that_do_not_exist_are_refused(tmp_path: Path, value: object):
    with pytest.raises(SpecError, match="unit_normalise"):
        spec(tmp_path, unit_normalise=value)


def test_forms_for_rows_are_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="has no use with `privacy_unit: row`"):
        spec(tmp_path, privacy_unit="row", max_rows_per_unit=1, unit_normalise=["trim"])


def test_no_refusal_of_a_source_shows_a_value_out_of_the_environment(tmp_path: Path):
    for value in (FromEnvironment("S3CR3T ../", "{{ env.TOKEN }}"), [FromEnvironment("S3CR3T", "{{ env.TOKEN }}")]):
        with pytest.raises(SpecError) as caught:
            spec(tmp_path, source=value)
        assert "S3CR3T" not in str(caught.value) and "attributes.source" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"hive": True},
        {"decimal_comma": True},
        {"unit_normalise": ["trim"]},
        {"unit_normalise": ["lower", "trim"]},
        {"privacy_unit": ["person", "house"]},
        {"period": "week", "period_column": "seen", "period_format": "%Y"},
    ],
)
def test_what_changes_how_records_are_read_changes_the_digest(tmp_path: Path, change: dict[str, Any]):
    assert len({spec(tmp_path, **some).digest for some in ({}, change, {**change, "epsilon": 2})}) == 3


def test_a_category_and_a_unit_may_be_one_column():
    table = pa.table({"ward": ["surgery", "surgery", "x"], "age": [5] * 3})
    more = {"axes": [WARD], "max_rows_per_unit": 1, "unit_normalise": ["lower"]}
    assert counted({"a.parquet": table}, privacy_unit="ward", **more) == [1, 0, 1]


@pytest.mark.parametrize("forms", [..., ["trim"], ["lower"], ["nfc"], ["nfc", "lower", "trim"]], ids=str)
@pytest.mark.parametrize("unit", ["person", ["person", "age"]], ids=str)
def test_bad_bytes_name_nobody_in_any_form(unit: Any, forms: Any):
    content = b"person,age\n\xff%s,5\nA,5\n" % SECRET.encode()
    assert sum(counted({"a.csv": content}, **CSV, unit_normalise=forms, privacy_unit=unit)) == 1
