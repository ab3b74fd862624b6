"""The forms of names give in DuckDB what they give in Python, and name one person once."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.make_folded_letters import FILE, VERSION, written
from unit.test_frames import by_file, by_frame

from dphist_pipeline.base import unit_forms as forms
from dphist_pipeline.confidential.reading.source import SourceRefused

SIGNS = [chr(number) for number in range(0x110000) if not 0xD800 <= number < 0xE000]
NAMES = [["STRASSE", "stra\u00dfe", "STRA\u1e9eE"], ["\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"]]
NAMES += [["\u0130", "i\u0307", "I", "i", "\u0131"], ["\ufb01", "fi"], ["\u212a", "k"], ["\u01c5", "\u01c6", "\u01c4"]]
SEVEN = ["7", "7.0", "007", " 7 ", "+7", "7.", "7e0", "70e-1", "0.7E+1", "\ufeff7"]
WARD = {"column": "age", "start": 0, "stop": 10, "width": 10}


def in_sql(texts: list[str], form: str, point: str = ".") -> list[str | None]:
    query = "SELECT x FROM given"
    for step in forms.form_steps(form, "x", point):
        query = f"SELECT * REPLACE ({step} AS x) FROM ({query})"
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"x": pa.array(texts, pa.string())}))
        return [text for (text,) in connection.execute(query).fetchall()]


@pytest.mark.slow
def test_every_sign_folds_in_duckdb_as_in_python() -> None:
    assert in_sql(SIGNS, "fold") == [forms.fold_text(sign) for sign in SIGNS]


@pytest.mark.slow
def test_every_sign_that_meets_marks_folds_in_duckdb_as_in_python() -> None:
    folded = {f"a{sign}\u0301\u0307b": forms.fold_text(f"a{sign}\u0301\u0307b") for sign in SIGNS}
    # Each sign alone is tried above; of those that change nothing here, every twentieth is enough.
    same = [text for text, other in folded.items() if other == text][::20]
    texts = [*(text for text, other in folded.items() if other != text), *same]
    assert len(texts) > 50_000 and in_sql(texts, "fold") == [folded[text] for text in texts]


def test_mixed_texts_fold_in_duckdb_as_in_python() -> None:
    draws = random.Random(1)
    signs = (
        "a\u00dfS\u0130\u0131Ii\u0307\u0301\u0345\u0391\u03b1\u039f\u03c2\u11a7\u0378\u01c5\ufb03\uac00\0\u1ffc \u00c9e"
    )
    texts = ["".join(draws.choices(signs, k=draws.randint(1, 7))) for _ in range(5_000)]
    assert in_sql(texts, "fold") == [forms.fold_text(text) for text in texts]


def test_spellings_of_one_name_fold_alike_and_others_stay_apart() -> None:
    folded = [{forms.fold_text(spelling) for spelling in name} for name in NAMES]
    assert all(len(name) == 1 for name in folded) and len(set.union(*folded)) == len(NAMES)


def test_the_table_is_case_folding_for_what_the_running_python_knows() -> None:
    if unicodedata.unidata_version == VERSION:
        assert written() == FILE.read_text(encoding="ascii")
    of_python: dict[str, set[str]] = {}
    for sign in SIGNS[128:]:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", sign).casefold())
        if sign not in "\u0130\u0131" and forms._unknown_letters().search(sign) is None:
            of_python.setdefault(folded, set()).add(forms.fold_text(sign))
    assert all(len(ours) == 1 for ours in of_python.values())


def test_trim_all_takes_away_its_signs_at_both_ends_only() -> None:
    texts = [f"{sign}7{sign}7{sign}" for sign in SIGNS[:0x3200]]
    assert in_sql(texts, "trim_all") == [forms.trim_all(text) or None for text in texts]
    for sign in "\u3000\u202f\u2007\u0085\u200b\ufeff\v\f\0":
        assert forms.trim_all(f"{sign}7{sign}") == "7"


@pytest.mark.parametrize("point", [".", ","])
def test_numbers_have_one_text_in_duckdb_and_in_python(point: str) -> None:
    draws = random.Random(2)
    texts = ["".join(draws.choices("0017.,eE+- \u3000x5", k=draws.randint(0, 9))) for _ in range(20_000)]
    assert in_sql(texts, "number", point) == [forms.as_number(text, point) for text in texts]


def test_number_keeps_every_digit_and_what_is_no_number() -> None:
    assert {forms.as_number(text) for text in SEVEN} == {"7"}
    assert (
        forms.as_number("1e+05") == "100000" and forms.as_number("-0.0") == "0" and forms.as_number("-7.50") == "-7.5"
    )
    assert forms.as_number("9007199254740993.0") == "9007199254740993"
    for text in ["", ".", "+", "e5", "7a", "0x7", "1e1000", "7 7", "1,5", "nan"]:
        assert forms.as_number(text) == text


def units_of(folder: Path, tables: list[pa.Table], **more: Any) -> int:
    for number, table in enumerate(tables):
        pq.write_table(table.append_column("age", pa.array([5] * len(table))), folder / f"{number}.parquet")
    return sum(by_file(pa.table({}), source=f"{folder}/*.parquet", axes=[WARD], max_rows_per_unit=1, **more))


OF_SEVEN: dict[str, Callable[[], pa.Array]] = {
    "whole": lambda: pa.array([7, 2**53 + 1]),
    "double": lambda: pa.array([7.0, float(2**53)]),
    "float": lambda: pa.array([7.0, float("nan")], pa.float32()),
    "text": lambda: pa.array(["007", "9007199254740993"]),
    "decimal": lambda: pa.array([7, None], pa.decimal128(9, 2)),
}


def test_one_person_in_files_of_all_types_is_one_unit_by_number(tmp_path: Path) -> None:
    tables = [pa.table({"person": values()}) for values in OF_SEVEN.values()]
    assert units_of(tmp_path, tables, unit_normalise=["number"]) == 2
    with pytest.raises(Exception, match="in some files and"):
        units_of(tmp_path, tables)


def test_a_byte_order_mark_before_a_text_is_no_part_of_a_unit(tmp_path: Path) -> None:
    assert units_of(tmp_path, [pa.table({"person": ["7", "\ufeff7", "\ufeff\ufeff7", "7\ufeff", "\ufeff"]})]) == 2


def test_a_file_with_two_columns_of_one_name_is_refused_without_values(tmp_path: Path) -> None:
    for names in (["person", "person"], ["person", "PERSON"]):
        table = pa.Table.from_arrays([pa.array(["Zacharias"]), pa.array(["7"])], names=names)
        with pytest.raises(SourceRefused, match="two columns of one name") as refused:
            units_of(tmp_path, [table])
        assert "0.parquet" in str(refused.value) and "Zacharias" not in str(refused.value)
    nested = pa.table({"person": ["7"], "more": pa.array([{"person": "8", "PERSON": "9"}])})
    assert units_of(tmp_path, [nested]) == 1


def test_forms_serve_frames_as_they_serve_files() -> None:
    table = pa.table({"person": [*SEVEN, "Stra\u00dfe ", "\u200bSTRASSE"], "age": [5.0] * 12})
    assert sum(by_frame(table, [WARD], most=1, unit_normalise=["trim_all", "number", "fold"])) == 2
