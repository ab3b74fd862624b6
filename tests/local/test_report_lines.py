"""Reports as lines of text: what a pipe may bring, wherever its pieces are cut."""

from __future__ import annotations

import io
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reports_scenario import ALL_FINE, FIRST_BIT, NAME, NO_BIT, OTHER, QUESTION, name_of

from dphist_pipeline.local import reports
from dphist_pipeline.local.contributor import Contributor, Report
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.reports import keep_lines, tally_of


def line(number: int, body: bytes = FIRST_BIT, question: Question = QUESTION) -> bytes:
    return Report(name_of(number), body).line(question).encode()


def kept(folder: Path, content: bytes) -> tuple[int, int, int]:
    """How many lines became reports, how many are none, and how many are reports to another question."""
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    refused = keep_lines(QUESTION, io.BytesIO(content), file)
    tally, others = tally_of(QUESTION, [file])
    assert others == ALL_FINE and tally.ones[0].tolist() == [tally.reports, *[0] * 9]
    assert set(refused) <= {"unreadable", "other question"}
    return tally.reports, refused["unreadable"], refused["other question"]


FINE = line(0)
OTHERS = line(0, question=OTHER)
STRANGE: dict[str, tuple[bytes, tuple[int, int] | tuple[int, int, int]]] = {
    "nothing": (b"", (0, 0)),
    "no final newline": (FINE + b"\n" + line(1), (2, 0)),
    "windows": (FINE + b"\r\n" + line(1) + b"\r\n", (2, 0)),
    "windows, cut off": (FINE + b"\r\n" + line(1) + b"\r", (2, 0)),
    "empty lines": (b"\n\r\n\n" + FINE + b"\n\n\n\r\n", (1, 0)),
    "upper case": (FINE[:17] + FINE[17:].upper() + b"\n", (1, 0)),
    "upper question": (FINE[:16].upper() + FINE[16:] + b"\n", (0, 1)),
    "blanks": (b" \n\t\n " + FINE + b"\n" + FINE + b" \n", (0, 4)),
    "tabs": (FINE.replace(b" ", b"\t"), (0, 1)),
    "old mac": (FINE + b"\r" + line(1), (0, 1)),
    "return within": (FINE[:20] + b"\r" + FINE[20:], (0, 1)),
    "null signs": (FINE[:-2] + b"\0\0\n\0\0\0\n" + line(1), (1, 2)),
    "utf-16": ((FINE + b"\n").decode().encode("utf-16"), (0, 2)),
    "utf-8 with a mark": ("\ufeff".encode() + FINE + b"\n" + line(1), (1, 1)),
    "no hex": (FINE[:-1] + b"g\n" + FINE[:17] + b"-" + FINE[18:] + b"\n" + FINE[:17] + "\u0661".encode(), (0, 3)),
    "longer and shorter": (FINE + b"00\n" + FINE[:-2] + b"\n", (0, 2)),
    "another question": (OTHERS + b"\n" + FINE + b"\n" + OTHERS + b"\r\n", (1, 0, 2)),
    "another question, no body": (OTHERS[:49] + b"\n" + OTHERS[:50] + b"\n" + FINE, (1, 2)),
    "another question, shorter": (OTHERS[:52] + b"\n" + OTHERS[:40] + b"\n" + FINE, (1, 1, 1)),
    "another question, no hex": (OTHERS[:-1] + b"g\n" + OTHERS.replace(b" ", b"-") + b"\n" + FINE, (1, 2)),
    "another question, upper": (
        OTHERS[:16].upper() + OTHERS[16:] + b"\n" + OTHERS[:17] + OTHERS[17:].upper(),
        (0, 1, 1),
    ),
    "three words": (FINE + b" " + FINE, (0, 1)),
    "parquet": (b"PAR1\x15\x04\x15\n\x80\xff", (0, 2)),
}


@pytest.mark.parametrize("chunk", [1, len(FINE) + 1])
@pytest.mark.parametrize("case", STRANGE)
def test_every_line_is_a_report_or_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, chunk: int
) -> None:
    monkeypatch.setattr(reports, "CHUNK", chunk)
    content, expected = STRANGE[case]
    assert kept(tmp_path, content) == (*expected, 0)[:3]


@pytest.mark.parametrize("chunk", [1, 10, 64, 100, 333])
def test_pieces_may_be_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(reports, "CHUNK", chunk)
    ends = [b"\n", b"\r\n", b"\n\n"]
    content = b"".join(line(number) + ends[number % 3] + (b"x" * (number + 1) + b"\n") for number in range(40))
    assert kept(tmp_path, content) == (40, 40, 0)
    assert kept(tmp_path, b"y" * 1000 + b"\n" + FINE + b"\n" + b"z" * 1000) == (1, 2, 0)


def test_a_line_that_never_ends_takes_no_memory(tmp_path: Path) -> None:
    content = FINE + b"\n" + b"a" * 50_000_000 + b"\n" + line(1) + b"\n" + b"b" * 20_000_000
    tracemalloc.start()
    assert kept(tmp_path, content) == (2, 2, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000


def test_reports_longer_than_a_piece_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "CHUNK", 1000)
    wide = Question("ages", (Part(tuple(map(Fraction, range(9001))), Fraction(1), "symmetric"),))
    body = np.zeros(wide.report_bytes, dtype=np.uint8).tobytes()
    assert len(body) > 1000
    lines = b"".join(line(number, body, wide) + b"\r\n" for number in range(5)) + b"q" * 10_000
    assert keep_lines(wide, io.BytesIO(lines), tmp_path / "a.parquet") == {"unreadable": 1}
    assert tally_of(wide, [tmp_path / "a.parquet"])[0].reports == 5


def test_what_a_contributor_sends_comes_back_whole(tmp_path: Path) -> None:
    question = Question("ages", QUESTION.parts, values=3)
    contributor = Contributor.create(tmp_path / "record.json", Fraction(3))
    sent = contributor.answer(question, [1.0, 5.0])
    lines = "\n".join(report.line(question) for report in sent).encode()
    assert keep_lines(question, io.BytesIO(lines), tmp_path / "a.parquet") == {}
    tally, refused = tally_of(question, [tmp_path / "a.parquet"])
    bits = np.unpackbits(np.frombuffer(b"".join(report.body for report in sent), np.uint8).reshape(3, -1), axis=1)
    assert (tally.ones[0].tolist(), refused) == (bits.sum(axis=0)[:10].tolist(), ALL_FINE)


def test_hex_is_read_in_either_case(tmp_path: Path) -> None:
    told = Report(bytes.fromhex("0123456789abcdef") * 2, b"\xab\xc0").line(QUESTION)
    lines = f"{told}\n{told[:17]}{told[17:].upper()}\n".encode()
    assert keep_lines(QUESTION, io.BytesIO(lines), tmp_path / "a.parquet") == {}
    tally, refused = tally_of(QUESTION, [tmp_path / "a.parquet"])
    assert (tally.ones[0].tolist(), refused["duplicate"]) == ([1, 0, 1, 0, 1, 0, 1, 1, 1, 1], 1)


def test_lines_and_files_name_a_question_alike() -> None:
    assert FINE.startswith(NAME.encode() + b" ") and FINE.endswith(b" 8000") and NO_BIT.hex() == "0000"
