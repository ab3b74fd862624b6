"""One record's size decides nothing: long values are read as their short twins are, and never fail a release.

Every limit below is scaled down where memory is: values of 60 MB under 400 MB are as 600 MB under 4 GB.
"""

from __future__ import annotations

import gzip
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_engine import one_engine

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading import source
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.fields import comparable
from examples import examples

PLAIN = {"person": "p", "age": "15", "ward": "surgery", "note": "n", "day": "2026-03-02"}
AGE = {"column": "age", "start": 0, "stop": 30, "width": 10, "above": True, "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
KB, MB = 1000, 1_000_000


def long_texts(size: int, rows: int, letter: str = "x") -> pa.LargeStringArray:
    """`rows` texts of `size` times the letter."""
    ends = np.arange(rows + 1, dtype=np.int64) * size
    return pa.LargeStringArray.from_buffers(
        rows, pa.py_buffer(ends), pa.py_buffer(np.full(size * rows, ord(letter), np.uint8))
    )


def parquet(path: Path, column: str, size: int, groups: int = 3, rows: int = 1) -> Path:
    """Row groups of `rows` records with one long value each."""
    columns: dict[str, Any] = {name: pa.array([text] * rows, pa.large_string()) for name, text in PLAIN.items()}
    table = pa.table(columns | {column: long_texts(size, rows)})
    compact: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    with pq.ParquetWriter(path, table.schema, **compact) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return path


def csv(path: Path, column: str, size: int, records: int = 3) -> Path:
    """Lines of records with one long value each, and a short record before each of them."""
    plain = ",".join(PLAIN.values())
    line = ",".join("x" * size if name == column else text for name, text in PLAIN.items())
    content = (",".join(PLAIN) + "\n" + f"{plain}\n{line}\n" * records).encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


def database(path: Path, column: str, size: int, records: int = 3) -> Path:
    """A table `visits` of records with one long value each."""
    values = {name: f"'{text}'" for name, text in PLAIN.items()} | {column: f"repeat('x', {size})"}
    with duckdb.connect(str(path), config={"threads": 1, "memory_limit": "4GB"}) as made:
        made.execute(f"CREATE TABLE visits ({', '.join(f'{name} VARCHAR' for name in PLAIN)})")
        for _ in range(records):
            made.execute(f"INSERT INTO visits SELECT {', '.join(values.values())}")
            made.execute("CHECKPOINT")
    return path


def declared(file: Path, **changes: Any) -> ReleaseSpec:
    """A spec over a file."""
    attributes = {
        **{"release": "admissions", "source": file.name, "privacy_unit": "person", "max_rows_per_unit": 1000},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric"},
        **{"axes": [AGE, WARD], "period": "week", "period_column": "day"},
        **({"source_table": "visits"} if file.suffix == ".duckdb" else {}),
        **changes,
    }
    return ReleaseSpec.from_attributes(
        {key: value for key, value in attributes.items() if value is not ...}, file.parent
    )


def cube(file: Path, **changes: Any) -> list[int]:
    """The cube of a file; nothing else is left in the run's folder."""
    spec = declared(file, **changes)
    with tempfile.TemporaryDirectory() as run:
        plan = plan_of(spec, spec.period_named("2026-03-02" if spec.period_column else "all"))
        counts = read_and_count(plan, Path(run))
        assert [path.name for path in Path(run).rglob("*") if path.is_file()] == ["cube.npy"]
    return [int(count) for count in counts]


def staged_units(file: Path, **changes: Any) -> list[str]:
    """The units of the staged rows."""
    spec = declared(file, **changes)
    with tempfile.TemporaryDirectory() as run:
        rows = stage_rows(plan_of(spec, spec.period_named("2026-03-02" if spec.period_column else "all")), Path(run))
        return pl.read_parquet(rows)["unit"].to_list()


SOAK = pytest.mark.soak
FORMATS: dict[str, Callable[[Path, str, int], Path]] = {
    "parquet": parquet,
    "csv": csv,
    "csv.gz": csv,
    "duckdb": database,
}
ALL_FORMS = ["trim", "lower", "nfc"]
LONGEST_DIGEST = 84


@pytest.fixture
def little_memory() -> Iterator[None]:
    tenth = "400MB"
    means = ({"memory_limit": tenth}, {"threads": 1, "memory_limit": tenth}, {"threads": 1, "memory_limit": "2GB"})
    with patch.object(source, "ALL_MEANS", means):
        yield


def twins(folder: Path, kind: str, column: str, size: int) -> tuple[Path, Path]:
    return tuple(FORMATS[kind](folder / f"{length}.{kind}", column, length) for length in (1, size))  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [KB, pytest.param(MB, marks=SOAK), pytest.param(60 * MB, marks=SOAK), pytest.param(600 * MB, marks=SOAK)]
)
@pytest.mark.parametrize("column", PLAIN)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_long_value_counts_as_its_short_twin(tmp_path: Path, kind: str, column: str, size: int) -> None:
    if kind.startswith("csv") and size > MB:
        pytest.skip("a line of more than 1 MiB is no row")
    short, long = twins(tmp_path, kind, column, size)
    assert cube(long) == cube(short)


@pytest.mark.soak
def test_values_of_600_megabytes_in_row_groups_of_their_own_count_as_short_ones(tmp_path: Path) -> None:
    file = parquet(tmp_path / "long.parquet", "ward", 600 * MB)
    assert file.stat().st_size < MB
    assert cube(file) == cube(parquet(tmp_path / "short.parquet", "ward", 1))


@SOAK
@pytest.mark.parametrize("column", PLAIN)
@pytest.mark.parametrize(("groups", "rows"), [(6, 1), (1, 3)], ids=["six row groups", "one row group"])
def test_many_values_of_600_megabytes_count_as_short_ones(tmp_path: Path, column: str, groups: int, rows: int) -> None:
    long = parquet(tmp_path / "long.parquet", column, 600 * MB, groups, rows)
    assert cube(long) == cube(parquet(tmp_path / "short.parquet", column, 1, groups, rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "groups", "rows"),
    [
        ("age", 1, 4),
        *(pytest.param(*way, marks=SOAK) for way in (("age", 6, 1), ("day", 6, 1), ("day", 1, 4))),
        *(pytest.param("person", *way, marks=SOAK) for way in ((6, 1), (1, 4))),
    ],
)
def test_memory_that_runs_out_decides_nothing(
    tmp_path: Path, little_memory: None, column: str, groups: int, rows: int
) -> None:
    long = parquet(tmp_path / "long.parquet", column, 60 * MB, groups, rows)
    assert cube(long) == cube(parquet(tmp_path / "short.parquet", column, 1, groups, rows))


@pytest.mark.slow
def test_a_long_name_is_normalised_as_far_as_its_limit_and_staged_short(tmp_path: Path) -> None:
    for size in (KB, MB, 2 * MB):
        file = parquet(tmp_path / f"{size}.parquet", "person", size)
        for forms in ([], ALL_FORMS):
            units = staged_units(file, unit_normalise=forms)
            assert len(units) == 3 and len(set(units)) == 1
            assert lengths.LONGEST_NAME < len(units[0]) <= LONGEST_DIGEST


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("csv", {"csv_quote": '"'}),
        *(pytest.param(*way, marks=SOAK) for way in (("csv", {}), ("csv.gz", {}), ("csv.gz", {"csv_quote": '"'}))),
    ],
)
def test_a_line_beyond_the_longest_is_no_row_and_spares_the_others(
    tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    for size in (2 * MB, 40 * MB):
        file = csv(tmp_path / f"{size}.{kind}", "ward", size)
        assert cube(file, **options) == [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


@SOAK
@pytest.mark.parametrize("options", [{}, {"csv_quote": '"'}], ids=["plain", "quoted"])
def test_thousands_of_the_longest_lines_fit_the_memory(tmp_path: Path, options: dict[str, str]) -> None:
    file = csv(tmp_path / "long.csv.gz", "ward", MB, records=2500)
    with patch.object(source, "ALL_MEANS", source.ALL_MEANS[:2]):
        assert sum(cube(file, **{"max_rows_per_unit": 10_000, **options})) == 5000


def test_a_query_sees_null_for_a_text_above_a_mebibyte(tmp_path: Path) -> None:
    made = "coalesce(replace(TRY_CAST(ward AS VARCHAR), 'x', 'y'), 'surgery')"
    (tmp_path / "rows.sql").write_text(f"SELECT person, age, day, {made} AS ward FROM source")
    query = {"source_sql": "rows.sql"}
    for column, size, cell in [("ward", 2 * MB, 3), ("ward", KB, 5), ("person", 2 * MB, None)]:
        counts = cube(parquet(tmp_path / "long.parquet", column, size), **query)
        assert counts == [3 * (number == cell) for number in range(15)]  # without a name a row is nobody's


@pytest.mark.slow
def test_numbers_and_days_stand_in_at_most_4096_bytes(tmp_path: Path) -> None:
    def read(column: str, text: str, **changes: Any) -> list[int]:
        pq.write_table(pa.table({name: [text if name == column else plain] for name, plain in PLAIN.items()}), file)
        return cube(file, **changes)

    file, limit = tmp_path / "one.parquet", lengths.LONGEST_VALUE
    inside, outside = read("age", "15"), read("age", "none")
    assert read("age", "15".rjust(limit, "0")) == read("age", "15".rjust(limit)) == inside
    assert read("age", "15".rjust(limit + 1, "0")) == read("age", "15".rjust(limit + 1)) == outside
    comma = {"decimal_comma": True}
    assert read("age", "15,0".rjust(limit, "0"), **comma) == inside
    assert read("age", "15,0".rjust(limit + 1, "0"), **comma) == outside
    assert sum(read("day", PLAIN["day"].rjust(limit))) == 1
    assert sum(read("day", PLAIN["day"].rjust(limit + 1))) == 0


letters = st.sampled_from(["a", "A", "ä", "Ä", "a\u0308", "€", "😀", "\0", " ", "\u00a0", "\u023a", "?"])
pieces = st.lists(letters, max_size=12).map("".join)


@st.composite
def categories_and_values(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Categories, some the beginnings of others, and values a letter more or less."""
    base = draw(st.lists(pieces.filter(bool), min_size=1, max_size=4))
    names = list(dict.fromkeys([*base, *(text[: draw(st.integers(1, 12))] for text in base)]))
    near = [near for text in names for near in (text, text[:-1], text + draw(letters), text * 40)]
    return names, near + draw(st.lists(pieces, max_size=5))


@pytest.mark.slow
@examples(25)
@given(drawn=categories_and_values())
def test_no_match_changes(drawn: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    names, values = drawn
    # A spec refuses categories that people could not tell apart or see; the model below needs no such rule.
    distinct = {comparable(name): name for name in names if name.strip() == name and name.isprintable()}
    names = [*distinct.values()] or ["a"]
    file = tmp_path_factory.mktemp("match") / "rows.parquet"
    pq.write_table(pa.table({"person": range(len(values)), "ward": values}), file)
    axis = {"column": "ward", "values": names, "other": True}
    found = [names.index(value) if value in names else len(names) for value in values]
    expected = [found.count(number) for number in range(len(names) + 1)]
    with one_engine():
        assert cube(file, axes=[axis], period=..., period_column=...) == expected


@st.composite
def persons(draw: st.DrawFn) -> list[str]:
    """Names around the length at which they become digests, and texts that look like digests."""
    fill = draw(st.sampled_from(["", "b" * 50, "b" * 60, "b" * 64, "ä" * 30, "b" * 200]))
    names = draw(st.lists(pieces.map(lambda text: fill + text), min_size=1, max_size=12))
    return [*names, *(f"sha256:{'0' * 64}"[: 64 + number] for number in range(8))]


@pytest.mark.slow
@examples(25)
@given(
    drawn=persons(), forms=st.sampled_from([[], ["trim"], ["lower"], ["trim", "nfc"]]), columns=st.sampled_from([1, 2])
)
def test_long_names_are_as_many_units_as_a_plain_reading_finds(
    drawn: list[str], forms: list[str], columns: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [(first, drawn[-1 - place]) for place, first in enumerate(drawn)] * 2
    file = tmp_path_factory.mktemp("units") / "rows.parquet"
    pq.write_table(
        pa.table({"person": [a for a, _ in rows], "part": [b for _, b in rows], "age": [5] * len(rows)}), file
    )
    named = {"privacy_unit": ["person", "part"][:columns] if columns > 1 else "person", "unit_normalise": forms}
    units = {tuple(plain(text, forms) for text in row[:columns]) for row in rows}
    expected = sum(None not in unit for unit in units)
    axis = {"column": "age", "start": 0, "stop": 10, "width": 10}
    changes = {**named, "axes": [axis], "period": ..., "period_column": ..., "max_rows_per_unit": 1}
    with one_engine():
        assert cube(file, **changes) == [expected]


def plain(text: str, forms: list[str]) -> str | None:
    """A name in its declared form, as Python makes it; None where it cannot be told."""
    if "?" in text:
        return None
    for form in forms:
        if form == "trim":
            text = text.strip(" \t\n\r\u00a0")
            if not text:
                return None
        elif form == "lower":
            text = text.lower()
        elif "\0" in text:
            return None
        else:
            text = unicodedata.normalize("NFC", text)
    return text


def test_digests_are_of_two_kinds_and_longer_than_any_name_that_stays(tmp_path: Path) -> None:
    assert declared(tmp_path / "none.parquet").source == "none.parquet"
    for tag in (lengths.NAME_DIGEST, lengths.TEXT_DIGEST):
        assert lengths.LONGEST_NAME < len(tag.strip("'")) + 64 <= LONGEST_DIGEST
    assert lengths.NAME_DIGEST != lengths.TEXT_DIGEST
