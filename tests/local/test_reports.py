"""Files of reports as strangers write them: whatever is none is refused and counted; no content raises anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from error_codes import coded
from reports_scenario import (
    ALL_FINE,
    FIRST_BIT,
    MALFORMED,
    NAME,
    NO_BIT,
    OTHER_NAME,
    QUESTION,
    SUMMED,
    columns,
    name_of,
    random_ids,
    written,
)

from dphist_pipeline.errors import Refused
from dphist_pipeline.local import reports
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import report_file, tally_of
from examples import SOAKING

HOSTILE = columns(
    [FIRST_BIT, b"", b"\x80", b"\x80\x00\x00", None, MALFORMED, FIRST_BIT, FIRST_BIT, FIRST_BIT, NO_BIT, FIRST_BIT],
    [*map(name_of, range(7)), b"", b"short", None, b"17 bytes, no less"],
    [NAME] * 6 + [OTHER_NAME, NAME, NAME, NAME, NAME],
)
REFUSED = {"unreadable": 5, "other question": 1, "wrong length": 3, "malformed": 1, "duplicate": 0}


def counted(*files: Path) -> tuple[list[int], dict[str, int]]:
    """Ones in each interval, and what was refused; all rows are one or the other."""
    tally, refused = tally_of(QUESTION, files)
    assert tally.reports + sum(refused.values()) == sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    return tally.ones[0].tolist(), refused


def first(ones: int) -> list[int]:
    return [ones, *[0] * 9]


def test_each_refusal_has_one_reason_and_all_rows_add_up(tmp_path: Path) -> None:
    assert counted(written(tmp_path / "a.parquet", HOSTILE)) == (first(1), REFUSED)


def test_what_report_file_writes_is_read_back(tmp_path: Path) -> None:
    bodies = np.random.default_rng(1).integers(0, 256, (500, 2), dtype=np.uint8) & np.array([0xFF, 0xC0], np.uint8)
    with report_file(QUESTION, tmp_path / "a.parquet") as add:
        add(random_ids(500)[:300], bodies[:300])
        add(random_ids(0), bodies[:0])
        add(random_ids(500)[300:], bodies[300:])
    ones, refused = counted(tmp_path / "a.parquet")
    assert (ones, refused) == (np.unpackbits(bodies, axis=1).sum(axis=0)[:10].tolist(), ALL_FINE)


def _cast(**kinds: Any) -> Callable[[dict[str, Any]], pa.Table]:
    def cast(held: dict[str, Any]) -> pa.Table:
        return pa.table({name: column.cast(kinds[name]) if name in kinds else column for name, column in held.items()})

    return cast


def _more_columns(held: dict[str, Any]) -> pa.Table:
    numbers = pa.array(range(len(held["report"])))
    nested = pa.array([{"report": b"x", "id": [1]}] * len(held["report"]))
    # Dots in names are the way to what is nested, and could lead elsewhere.
    return pa.table({"report_id.x": numbers, "report.y": nested, "age": numbers, **dict(reversed(held.items()))})


WRITERS: dict[str, Callable[[dict[str, Any]], pa.Table]] = {
    "plain": pa.table,
    "large": _cast(question=pa.large_string(), report_id=pa.large_binary(), report=pa.large_binary()),
    "dictionaries": lambda held: pa.table({name: column.dictionary_encode() for name, column in held.items()}),
    "large dictionaries": lambda held: pa.table(
        {name: _cast(report=pa.large_binary())(held)[name].combine_chunks().dictionary_encode() for name in held}
    ),
    "fixed ids": lambda held: pa.table(
        {**held, "report_id": pa.array([name_of(number) for number in range(11)], pa.binary(16))}
    ),
    "more columns": _more_columns,
    "sliced": lambda held: pa.concat_tables([pa.table(held), pa.table(held)]).slice(11, 11),
}


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "options", [{}, {"compression": "zstd", "row_group_size": 2}, {"use_dictionary": False, "data_page_version": "2.0"}]
)
def test_every_writer_of_parquet_is_understood(tmp_path: Path, writer: str, options: dict[str, Any]) -> None:
    file = written(tmp_path / "a.parquet", WRITERS[writer](HOSTILE), **options)
    expected = {**REFUSED, "unreadable": 1, "wrong length": 3} if writer == "fixed ids" else REFUSED
    ones, refused = counted(file)
    assert refused == expected and ones == first(4 if writer == "fixed ids" else 1)


def test_files_by_polars_and_bodies_of_fixed_length_are_read(tmp_path: Path) -> None:
    held = columns([FIRST_BIT, None, NO_BIT])
    pl.DataFrame(pa.table(held)).write_parquet(tmp_path / "polars.parquet")
    fixed = written(tmp_path / "fixed.parquet", _cast(report=pa.binary(2))(columns([FIRST_BIT, None, NO_BIT])))
    for file in (tmp_path / "polars.parquet", fixed):
        assert counted(file) == (first(1), {**ALL_FINE, "unreadable": 1})


def test_an_empty_file_and_one_of_nulls_hold_nothing(tmp_path: Path) -> None:
    assert counted(written(tmp_path / "a.parquet", columns([]))) == (first(0), ALL_FINE)
    nulls = columns([None] * 3, [None] * 3, [None] * 3)
    assert counted(written(tmp_path / "b.parquet", nulls)) == (first(0), {**ALL_FINE, "unreadable": 3})
    assert counted() == (first(0), ALL_FINE)


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 1 << 18])
def test_the_first_of_an_id_counts_across_batches_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(reports, "BATCH", batch)
    one, two = name_of(1), name_of(2)
    files = [
        # What is refused for another reason takes nobody's id; a malformed one does.
        written(tmp_path / "a.parquet", columns([b"long body", FIRST_BIT, NO_BIT, MALFORMED], [one, one, one, two])),
        written(tmp_path / "b.parquet", columns([FIRST_BIT, b"\x40\x00", FIRST_BIT], [two, one, name_of(3)])),
    ]
    assert counted(*files) == (first(2), {**ALL_FINE, "wrong length": 1, "malformed": 1, "duplicate": 3})
    turned = {**ALL_FINE, "wrong length": 1, "malformed": 0, "duplicate": 3}
    assert counted(*reversed(files)) == ([2, 1, *[0] * 8], turned)


def test_the_same_file_twice_counts_once(tmp_path: Path) -> None:
    bodies = [FIRST_BIT] * 5000
    file = written(tmp_path / "a.parquet", columns(bodies, [row.tobytes() for row in random_ids(5000)]))
    assert counted(file, file) == (first(5000), {**ALL_FINE, "duplicate": 5000})


def test_an_id_sent_a_hundred_thousand_times_counts_once(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", columns([FIRST_BIT] * 100_000, [name_of(9)] * 100_000))
    assert counted(file) == (first(1), {**ALL_FINE, "duplicate": 99_999})


def test_sums_that_nobody_can_have_are_malformed(tmp_path: Path) -> None:
    sums = [b"\x80\x00\x80\x00", b"\x00\x00\x00\x01", b"\x00\x20\x00\x00"]
    held = columns(sums, names=[SUMMED.digest[:16]] * 3)
    tally, refused = tally_of(SUMMED, [written(tmp_path / "a.parquet", held)])
    assert (tally.ones[0].tolist(), refused["malformed"]) == (first(3), 2)


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda file: None, "are not there"),
    "folder": (Path.mkdir, "are a folder"),
    "empty": (Path.touch, "are no Parquet file"),
    "text": (lambda file: file.write_text(f"{NAME} 00 00\n" * 100), "lines of text go to standard input"),
    "footer only": (lambda file: file.write_bytes(b"PAR1" + b"\xff" * 40 + b"PAR1"), "are no Parquet file"),
    "cut off": (
        lambda file: file.write_bytes(written(file, HOSTILE).read_bytes()[:-20]),
        "are no Parquet file",
    ),
    "renamed": (lambda file: written(file, {**HOSTILE, "report_id": HOSTILE["question"]}), "'report_id'"),
    "hex": (lambda file: written(file, {**HOSTILE, "report": pa.array(["8000"] * 11)}), "'report'"),
    "numbers": (lambda file: written(file, {**HOSTILE, "question": pa.array(range(11))}), "'question'"),
    "nested": (lambda file: written(file, {**HOSTILE, "report": pa.array([[b"\x80\x00"]] * 11)}), "'report'"),
    "struct": (lambda file: written(file, {**HOSTILE, "report": pa.array([{"report": b"8"}] * 11)}), "'report'"),
    "twice": (
        lambda file: written(
            file, pa.table([*HOSTILE.values(), HOSTILE["report"]], names=[*HOSTILE, "report"]), store_schema=False
        ),
        "or two of them",
    ),
    "lacking": (lambda file: written(file, {"report": HOSTILE["report"]}), "'question'"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_holds_no_reports_is_refused_by_one_message_with_its_path(tmp_path: Path, case: str) -> None:
    make, says = UNREADABLE[case]
    file = tmp_path / "strange.parquet"
    make(file)
    with pytest.raises(Refused, check=coded("reports_unreadable")) as refused:
        counted(file)
    assert says in str(refused.value) and str(file) in str(refused.value)


def test_another_column_twice_does_no_harm(tmp_path: Path) -> None:
    names = pa.table([*HOSTILE.values(), HOSTILE["report"], HOSTILE["report"]], names=[*HOSTILE, "x", "x"])
    assert counted(written(tmp_path / "a.parquet", names, store_schema=False)) == (first(1), REFUSED)


def test_slices_of_columns_are_read_from_their_beginning() -> None:
    for kind in (pa.binary(), pa.binary(2)):
        sliced = pa.array([b"ab", b"cd", b"ef"], kind).slice(1)
        assert reports.as_matrix(sliced, 2).tobytes() == b"cdef"


@pytest.mark.slow
@pytest.mark.many_examples
def test_damaged_bytes_are_refused_or_counted_and_nothing_else(tmp_path: Path) -> None:
    rng, outcomes = np.random.default_rng(3), set()
    sound = written(tmp_path / "a.parquet", HOSTILE, compression="snappy", write_page_checksum=True).read_bytes()
    for number in range(300 if SOAKING else 90):
        content = bytearray(sound)
        for place in rng.integers(4, len(content), 1 + number % 3):
            content[place] ^= 1 << rng.integers(8)
        (tmp_path / "b.parquet").write_bytes(content)
        try:
            tally_of(QUESTION, [tmp_path / "b.parquet"])
            outcomes.add("counted")
        except Refused:
            outcomes.add("refused")
    assert outcomes == {"counted", "refused"}


PEAK = """
import re, sys
from pathlib import Path
from reports_scenario import QUESTION
from dphist_pipeline.local.reports import tally_of
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
tally, refused = tally_of(QUESTION, [Path(name) for name in sys.argv[1:]])
print(tally.reports, sum(refused.values()), (peak() - before) // 1024)
"""


@pytest.mark.slow
def test_a_million_rows_and_long_bodies_take_little_memory(tmp_path: Path) -> None:
    with report_file(QUESTION, tmp_path / "many.parquet") as add:
        add(random_ids(500_000), np.zeros((500_000, 2), dtype=np.uint8))
    # Of another question, 400 MB of them, in one row group.
    long = pa.table(columns([bytes(40_000)] * 10_000))
    written(tmp_path / "long.parquet", long, use_dictionary=False, compression="lz4")
    files = [tmp_path / "many.parquet", tmp_path / "many.parquet", tmp_path / "long.parquet"]
    paths = {"PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", PEAK, *files], env=paths, capture_output=True, text=True, check=True)
    accepted, refused, megabytes = map(int, ran.stdout.split())
    assert (accepted, refused) == (500_000, 510_000)
    assert megabytes < 320  # DuckDB takes some of them, to find ids that come twice


@pytest.mark.slow
def test_a_dictionary_with_a_huge_word_fills_no_memory(tmp_path: Path) -> None:
    # Written out, these would be 64 GB.
    words = pa.array([b"x" * (1 << 22), bytes(QUESTION.report_bytes)], pa.binary())
    many = pa.array(np.zeros(16_000, dtype=np.int32))
    rows = pa.table(
        {
            "question": pa.array([QUESTION.digest[:16]] * 16_000),
            "report_id": pa.array([number.to_bytes(16, "big") for number in range(16_000)], pa.binary()),
            "report": pa.DictionaryArray.from_arrays(many, words),
        }
    )
    pq.write_table(rows, tmp_path / "bomb.parquet")
    tally, refused = tally_of(QUESTION, [tmp_path / "bomb.parquet"])
    assert (tally.reports, refused["wrong length"]) == (0, 16_000)


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_few_huge_reports_in_a_small_file_are_read_one_at_a_time(tmp_path: Path, dictionary: bool) -> None:
    rows = pa.table(columns([bytes(1 << 22)] * 50))
    written(tmp_path / "long.parquet", rows, use_dictionary=dictionary, compression="zstd")
    assert (tmp_path / "long.parquet").stat().st_size < 100_000
    assert max(batch.refused["wrong length"] for batch in reports.batches(QUESTION, [tmp_path / "long.parquet"])) <= 4


def test_a_pipe_among_the_reports_is_left_out_and_refused_by_its_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    assert reports.files_at(f"{tmp_path}/*.parquet") == []
    with pytest.raises(Refused, match="a pipe or a device"):
        tally_of(QUESTION, [tmp_path / "pipe.parquet"])


def test_a_file_that_changes_while_it_is_counted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    ids = np.arange(48, dtype=np.uint8).reshape(3, 16)
    with report_file(QUESTION, file) as add:
        add(ids, np.zeros((3, QUESTION.report_bytes), dtype=np.uint8))
    real = reports.batches

    def changing(question: Question, files: Sequence[Path]) -> Iterator[Any]:
        for batch in real(question, files):
            yield batch
            with report_file(QUESTION, file) as again:
                again(ids, np.zeros((3, QUESTION.report_bytes), dtype=np.uint8))

    monkeypatch.setattr(reports, "batches", changing)
    with pytest.raises(Refused, check=coded("reports_unreadable"), match="changed while they were counted"):
        tally_of(QUESTION, [file])
