"""Texts that are tidied, and other spellings of categories: which cell counts them, and what is refused."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from declared_lists import below
from source_scenario import counted, spec
from spec_scenario import VALID

from dphist_pipeline.base.tidying import STEPS, tidied_sql, tidy
from dphist_pipeline.confidential.engines._spark_columns import columns_of
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.mistakes import SpecError

KIND = {"column": "kind", "values": ["Book", "Café", "DVD"], "other": True}
TIDY = {"tidy": ["trim", "lower", "nfc"]}
FILE = "spelling,value\nBk,Book\nnovel,Book\nDigital Versatile Disc,DVD\n"
AWKWARD = ["", " ", "a\0B", "ΑΣ", "İI", "e\u0301", "\u00a0\tÅ\r\n", "\U0001f4d6 X", "ß", "\ufeffA", "A\u0328\u0301"]


def counts(texts: list[str | None], **more: Any) -> list[int]:
    """The counts of Book, Café, DVD and other."""
    table = pa.table({"person": range(len(texts)), "kind": pa.array(texts, pa.string())})
    return counted({"a.parquet": table}, axes=[{**KIND, **more}])


def declared(folder: Path, **more: Any) -> ReleaseSpec:
    attributes = {**VALID, "axes": [{**KIND, **more}]}
    return ReleaseSpec.from_attributes(attributes, folder, code_lists=below(folder / "codes"))


def refused(folder: Path, **more: Any) -> str:
    with pytest.raises(SpecError) as caught:
        declared(folder, **more)
    return str(caught.value)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / "kinds.csv").write_text(FILE, encoding="utf-8")
    return tmp_path


def by_duckdb(texts: list[str], steps: tuple[str, ...]) -> list[str]:
    asked = f"SELECT {tidied_sql('given', steps)} FROM (SELECT unnest($1::VARCHAR[]) AS given)"
    return [row[0] for row in duckdb.execute(asked, [texts]).fetchall()]


def test_texts_are_compared_as_they_stand_where_nothing_is_declared():
    assert counts(["Book", "book", " Book", "Cafe\u0301", "DVD", None]) == [1, 0, 1, 4]


def test_tidied_texts_are_counted_in_the_category_that_they_equal():
    texts = ["Book", "BOOK", "\u00a0book\t", "CAFE\u0301", "cafÉ ", "dvd", "d v d", "", None]
    assert counts(texts, **TIDY) == [3, 2, 1, 3]


def test_other_spellings_are_counted_as_their_category():
    spellings = {"spellings": {"Bk": "Book", "disc": "DVD"}}
    assert counts(["Bk", "bk", "Book", "disc", "Disc"], **spellings) == [2, 0, 1, 2]
    assert counts(["Bk", "bk", "Book", "disc", "Disc"], **spellings, **TIDY) == [3, 0, 2, 0]


def test_a_row_is_counted_once_though_two_spellings_are_one_text():
    assert counts(["bk", "BK"], spellings={"Bk": "Book", "BK": "Book", "book": "Book"}, **TIDY) == [2, 0, 0, 0]


def test_no_text_makes_a_count_fail_when_it_is_tidied():
    long = ["x" * 5_000_000, " " * 5_000_000 + "Book", "e\u0301" * 2_048]
    assert counts([*AWKWARD, *long], **TIDY) == [0, 0, 0, len(AWKWARD) + len(long)]


@pytest.mark.parametrize("steps", [(step,) for step in STEPS] + list(permutations(STEPS)), ids="-".join)
def test_a_text_is_tidied_alike_in_python_and_in_duckdb(steps):
    assert by_duckdb(AWKWARD, steps) == [tidy(text, steps) for text in AWKWARD]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_every_sign_is_tidied_alike_in_python_and_in_duckdb(step):
    signs = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert by_duckdb(signs, (step,)) == [tidy(sign, (step,)) for sign in signs]


def test_a_file_of_spellings_counts_as_the_same_ones_in_the_spec(lists):
    read = declared(lists, spellings="codes/kinds.csv")
    written = declared(lists, spellings={"Bk": "Book", "novel": "Book", "Digital Versatile Disc": "DVD"})
    assert read.domain.axes[0].texts == {"Book": 0, "Café": 1, "DVD": 2, "Bk": 0, "novel": 0} | {
        "Digital Versatile Disc": 2
    }
    assert read.digest == written.digest


def test_tidying_and_spellings_are_in_the_digest_only_where_they_are_used(lists):
    plain = declared(lists)
    assert plain.digest == declared(lists, tidy=[], spellings={}).digest
    assert not {"tidy", "spellings"} & set(plain.as_json()["axes"][0])
    digests = [declared(lists, **more).digest for more in (TIDY, {"tidy": ["trim"]}, {"spellings": {"Bk": "Book"}})]
    (lists / "codes" / "kinds.csv").write_text(FILE.replace("novel", "tale"), encoding="utf-8")
    assert len({plain.digest, *digests, declared(lists, spellings="codes/kinds.csv").digest}) == 5


def test_how_a_column_is_read_leaves_the_published_grid_as_it_is(lists):
    read = declared(lists, spellings="codes/kinds.csv", **TIDY)
    assert read.domain == declared(lists).domain
    assert domain_of(read.as_json()["axes"]) == read.domain


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"tidy": ["upper"]}, "tidy[0]"),
        ({"tidy": "trim"}, "tidy"),
        ({"tidy": ["trim", "trim"]}, "names a step twice"),
        ({"spellings": {"Bk": "Books"}}, "spellings[0]: stands for a category that `values` does not list"),
        ({"spellings": {"Bk": "Book", "bK": "DVD"}, **TIDY}, "spellings[1]: is, once tidied, counted in another"),
        ({"spellings": {"dvd": "Book"}, **TIDY}, "spellings[0]: is, once tidied, counted in another"),
        ({"values": ["i", "İ"], **TIDY}, "values[1]: is the same as an earlier one once both are tidied"),
        ({"spellings": {"<b>": "Book"}}, "spellings"),
        ({"spellings": ["Bk"]}, "spellings"),
        ({"spellings": 3}, "spellings"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused(lists, more, told):
    assert told in refused(lists, **more)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spelling,value\ncanary,Book\ncanary,Book\n", "line 3: repeats an earlier spelling"),
        ("spelling,value\ncanary,canaries\n", "spellings[0]: stands for a category"),
        ("spelling,value\ncanary,Book\n,Book\n", "line 3: its spelling"),
        ("spelling,value\n<canary>,Book\n", "line 2: its spelling looks like HTML"),
        ("canary,value\nBk,Book\n", "its column 'spelling' is not there"),
    ],
)
def test_a_file_of_spellings_is_refused_by_line_without_what_it_holds(lists, text, told):
    (lists / "codes" / "kinds.csv").write_text(text, encoding="utf-8")
    message = refused(lists, spellings="codes/kinds.csv")
    assert told in message and "canar" not in message


@pytest.mark.parametrize("file", ["elsewhere/kinds.csv", "elsewhere/none.csv", "codes/none.csv"])
def test_a_file_of_spellings_outside_the_public_folders_is_refused(lists, file):
    (lists / "elsewhere").mkdir()
    (lists / "elsewhere" / "kinds.csv").write_text(FILE, encoding="utf-8")
    assert "is no file below a folder that the ledger declares public" in refused(lists, spellings=file)


def test_spark_refuses_what_it_would_tidy_in_another_way(tmp_path):
    pq.write_table(pa.table({"person": [1], "kind": ["canary"]}), tmp_path / "a.parquet")
    read = spec(tmp_path, axes=[{**KIND, **TIDY}])
    with pytest.raises(ColumnRefused, match=r"'kind' is tidied.*use `engine: duckdb`") as caught:
        columns_of(plan_of(read, read.period_named("all")), [pq.read_metadata(tmp_path / "a.parquet")])
    assert "canary" not in str(caught.value)
