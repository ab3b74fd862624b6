"""Files of values: whatever is no number is a value in no interval, and no message holds a value."""

from __future__ import annotations

import datetime as dt
import gzip
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.local.value_files import read_values

NAN = math.nan


def parquet(folder: Path, values: Any, who: Any = None) -> Path:
    held = pa.array(values)
    pq.write_table(pa.table({"v": held, "who": ["a"] * len(held) if who is None else who}), folder / "x.parquet")
    return folder / "x.parquet"


def csv(folder: Path, content: bytes, name: str = "x.csv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def read(file: Path) -> tuple[list[str], list[float]]:
    names, values = read_values(file, "v", "who")
    assert values.dtype == np.float64 and values.shape == (len(names),)
    return names, values.tolist()


def same(found: Sequence[float], expected: Sequence[float]) -> bool:
    return np.array_equal(np.array(found), np.array(expected, dtype=np.float64), equal_nan=True)


COLUMNS: list[tuple[Any, list[float]]] = [
    (
        ["1", "x", None, "1e400", "-inf", "nan", "", "2,5", "0x1F"],
        [1, NAN, NAN, math.inf, -math.inf, NAN, NAN, NAN, NAN],
    ),
    ([1.5, None, NAN, math.inf, -0.0], [1.5, NAN, NAN, math.inf, 0.0]),
    (pa.array([2**64 - 1, None], pa.uint64()), [2.0**64, NAN]),
    (pa.array([Decimal("1.25"), None]), [1.25, NAN]),
    (pa.array(np.float32([0.5])), [0.5]),
    ([True, False, None], [1, 0, NAN]),
    (pa.nulls(2), [NAN, NAN]),
    (pa.array(["7", "seven", None]).dictionary_encode(), [7, NAN, NAN]),
    (pa.array(["7"], pa.large_string()), [7]),
]


@pytest.mark.parametrize(("values", "expected"), COLUMNS, ids=range(len(COLUMNS)))
def test_a_value_that_is_no_number_is_none_and_fails_nothing(
    tmp_path: Path, values: Any, expected: list[float]
) -> None:
    assert same(read(parquet(tmp_path, values))[1], expected)


WITHOUT_NUMBERS = [
    pa.array([dt.date(2020, 1, 1)]),
    pa.array([dt.datetime(2020, 1, 1)]),
    pa.array([dt.timedelta(1)]),
    pa.array([b"3"]),
    pa.array([[1.0]]),
    pa.array([{"a": 1.0}]),
]


@pytest.mark.parametrize("values", WITHOUT_NUMBERS, ids=lambda values: str(values.type))
def test_a_column_whose_type_holds_no_numbers_is_refused_whatever_is_in_it(tmp_path: Path, values: Any) -> None:
    for held in (values, values[:0], pa.nulls(1, values.type)):
        with pytest.raises(
            Refused, check=coded("values_unreadable"), match=r"have a column 'v' of type \w+; give numbers, or text"
        ):
            read(parquet(tmp_path, held))


def test_rows_without_a_contributor_are_left_out(tmp_path: Path) -> None:
    who = ["a", None, "", "b", "a"]
    assert read(parquet(tmp_path, [1.0, 2.0, 3.0, 4.0, 5.0], who)) == (["a", "b", "a"], [1, 4, 5])
    assert read(csv(tmp_path, b'v,who\n1,a\n2\n3,\n4,""\n5,b\n')) == (["a", "b"], [1, 5])


def test_a_number_names_the_same_contributor_in_every_type(tmp_path: Path) -> None:
    for who in (
        ["1", "20", None],
        [1, 20, None],
        [1.0, 20.0, NAN],
        [1.0, 20.0, None],
        pa.array([1, 20, None], pa.int8()),
    ):
        assert read(parquet(tmp_path, [5.0, 6.0, 7.0], who)) == (["1", "20"], [5, 6])
    assert read(parquet(tmp_path, [5.0, 6.0], [1.5, 1e300]))[0] == ["1.5", "1e+300"]


def test_every_row_may_be_another_contributor(tmp_path: Path) -> None:
    names, values = read_values(parquet(tmp_path, ["3", "x"]), "v", "row")
    assert names == ["row 0 of x.parquet", "row 1 of x.parquet"] and same(values.tolist(), [3, NAN])


def test_one_column_may_be_both(tmp_path: Path) -> None:
    names, values = read_values(parquet(tmp_path, ["3", "x", None]), "v", "v")
    assert names == ["3", "x"] and same(values.tolist(), [3, NAN])


TEXTS: dict[str, tuple[bytes, list[str], list[float]]] = {
    "windows with a mark": (b"\xef\xbb\xbfv,who\r\n1,a\r\n2,b\r\n", ["a", "b"], [1, 2]),
    "ragged": (b"v,who\n1,a,more,and more\n2\n,c\n3,d\n", ["a", "c", "d"], [1, NAN, 3]),
    "bad utf-8": (b"v,who\n\xff\xfe,a\n2,b\n", ["a", "b"], [NAN, 2]),
    "late text": (b"v,who\n" + b"1,a\n" * 3000 + b"x,b\n", ["a"] * 3000 + ["b"], [1.0] * 3000 + [NAN]),
    "quotes": (b'v,who\n"1",a\n"2\n3","b, c"\n"""",d\n', ["a", "b, c", "d"], [1, NAN, NAN]),
    "null signs": (b"v,who\n\0,a\n1\0,b\n", ["a", "b"], [NAN, NAN]),
    "names only": (b"v,who\n", [], []),
    "other order": (b"x,who,v\n9,a,1\n", ["a"], [1]),
    "huge": (b"v,who\n1e400,a\n-1e999,b\n" + b"9" * 400 + b",c\n", ["a", "b", "c"], [math.inf, -math.inf, math.inf]),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_is_read_as_it_comes(tmp_path: Path, case: str) -> None:
    content, names, expected = TEXTS[case]
    for file in (csv(tmp_path, content), csv(tmp_path, gzip.compress(content), "x.csv.gz")):
        found, values = read(file)
        assert found == names and same(values, expected)


CANARY = "ann of the third ward"
UNREADABLE: dict[str, tuple[str, bytes]] = {
    "no column": ("x.csv", f"{CANARY},37\nbob,40\n".encode()),
    "open quote": ("x.csv", f'v,who\n1,a\n"{CANARY},b\n2,c\n'.encode()),
    "empty": ("x.csv", b""),
    "utf-16": ("x.csv", f"v,who\n{CANARY},a\n".encode("utf-16")),
    "cut off": ("x.csv.gz", gzip.compress(f"v,who\n1,{CANARY}\n".encode() * 99)[:-9]),
    "no parquet": ("x.parquet", f"v,who\n1,{CANARY}\n".encode()),
    "excel": ("x.xlsx", CANARY.encode()),
    "no ending": (CANARY[:3], CANARY.encode()),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused_without_what_it_holds(tmp_path: Path, case: str) -> None:
    name, content = UNREADABLE[case]
    with pytest.raises(Refused, check=coded("values_unreadable")) as refused:
        read(csv(tmp_path, content, name))
    told = f"{refused.value} {refused.value.__cause__} {refused.value.__context__}"
    assert CANARY not in told and "ward" not in told and str(tmp_path / name) in told


def test_a_file_that_cannot_be_read_is_refused_with_what_to_look_for(tmp_path: Path) -> None:
    for case, mend in {
        "open quote": "a whole CSV file, with quotation marks in pairs; or give Parquet",
        "cut off": "a whole CSV file, with",
        "no parquet": "a whole Parquet file",
    }.items():
        name, content = UNREADABLE[case]
        with pytest.raises(Refused, check=coded("values_unreadable"), match=f"Look whether this is {mend}"):
            read(csv(tmp_path, content, name))


def test_missing_files_folders_and_patterns_are_no_values(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").mkdir()
    parquet(tmp_path, [1.0])
    for name, says in {"a.parquet": "cannot be read", "b.csv": "are not there", "*.parquet": "are not there"}.items():
        with pytest.raises(Refused, check=coded("values_unreadable"), match=says):
            read(tmp_path / name)


def test_a_missing_column_of_parquet_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(
        Refused, check=coded("values_unreadable"), match=r"have no column 'whom'\. Did you mean 'who'\?"
    ):
        read_values(parquet(tmp_path, [1.0]), "v", "whom")


def test_a_column_called_row_cannot_be_taken_for_the_word(tmp_path: Path) -> None:
    with pytest.raises(Refused, check=coded("values_unreadable"), match="have a column 'row'"):
        read_values(csv(tmp_path, b"v,row\n1,a\n2,a\n"), "v", "row")
