"""Reports as lines of text, as programs send them through a pipe: question, id and body in hex, a space between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.local.question import Question
from dphist_pipeline.local.reports import ID_BYTES, NAMED, OTHER_QUESTION, UNREADABLE, report_file

Bytes = NDArray[np.uint8]

CHUNK = 1 << 22
_REPORT = re.compile(rb"[0-9a-f]{%d} [0-9A-Fa-f]{%d} [0-9A-Fa-f]+" % (NAMED, 2 * ID_BYTES))  # to any question
_DIGITS = np.full(256, 0xFF, dtype=np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16, dtype=np.uint8)
_DIGITS[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16, dtype=np.uint8)


def keep_lines(question: Question, lines: BinaryIO, path: Path) -> Counter[str]:
    """Copies reports from lines of text into a new Parquet file, in batches of bounded memory.

    Args:
        question: which they answer.
        lines: open in bytes; read to its end. Empty lines do not count.
        path: of the new file.

    Returns:
        How many lines are no report to this question, by reason.
    """
    refused = Counter[str]()
    with report_file(question, path) as add:
        for chunk in _chunks(lines, _width(question) + len(b"\r")):
            ids, bodies, left_out = _parsed(question, chunk)
            add(ids, bodies)
            refused += left_out
    return refused


def _chunks(lines: BinaryIO, longest: int) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; of one that is longer, and longer than any report, one sign is left."""
    rest = b""
    while chunk := lines.read(CHUNK):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            yield whole
        rest = rest if len(rest) <= max(CHUNK, longest) else b"?"
    if rest:
        yield rest


def _width(question: Question) -> int:
    """How many signs a line has that is a report."""
    return NAMED + 1 + 2 * ID_BYTES + 1 + 2 * question.report_bytes


def _parsed(question: Question, chunk: bytes) -> tuple[Bytes, Bytes, Counter[str]]:
    """Ids and bodies of the lines that are reports, and how many are not, by reason."""
    name, width = question.digest[:NAMED].encode() + b" ", _width(question)
    lines = [line for line in chunk.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n") if line]
    fitting = [line for line in lines if len(line) == width and line.startswith(name)]
    signs = np.frombuffer(b"".join(fitting), dtype=np.uint8).reshape(-1, width)[:, len(name) :]
    digits = _DIGITS[np.delete(signs, 2 * ID_BYTES, axis=1)]
    sound = (signs[:, 2 * ID_BYTES] == ord(" ")) & (digits != 0xFF).all(axis=1)
    digits = digits[sound]
    read = digits[:, ::2] << 4 | digits[:, 1::2]
    others = sum(not line.startswith(name) and _REPORT.fullmatch(line) is not None for line in lines)
    refused = Counter({UNREADABLE: len(lines) - len(read) - others, OTHER_QUESTION: others})
    return read[:, :ID_BYTES], read[:, ID_BYTES:], refused
