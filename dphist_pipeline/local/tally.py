"""The curator's count of reports: the number of them with a 1 in each interval. It needs no value and no epsilon."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.local.question import Part, Question

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]

BATCH = 1 << 18
# Which of the eight bits of each byte are 1, from the first interval's; shape (256, 8).
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)


@dataclass(eq=False)
class Tally:
    """The counted reports to one question.

    Attributes:
        malformed: number of other reports, which were left out.
        ones: for each part, the number of vectors with a 1 in each interval, or with its number.
    """

    question: Question
    reports: int = 0
    malformed: int = 0
    ones: list[Counts] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.ones:
            self.ones = [np.zeros(part.intervals, dtype=np.int64) for part in self.question.parts]

    @property
    def vectors(self) -> int:
        """Number of reported values, in an interval or in none."""
        return self.reports * (self.question.values // self.question.reports)

    def add(self, bodies: Bytes) -> None:
        """Counts reports of the right length, shape (reports, bytes); what no encoder makes is counted as malformed."""
        for start in range(0, len(bodies), BATCH):
            self._add(bodies[start : start + BATCH])

    def _add(self, bodies: Bytes) -> None:
        slices = np.split(bodies, np.cumsum(self.question.part_bytes)[:-1], axis=1)
        parted = list(zip(self.question.parts, slices, strict=True))
        sound = np.ones(len(bodies), dtype=np.bool_)
        for part, vectors in parted:
            sound &= _are_sound(self.question, part, vectors)
        if not sound.all():
            parted = [(part, vectors[sound]) for part, vectors in parted]
        for (part, vectors), ones in zip(parted, self.ones, strict=True):
            ones += _counts_of(part, vectors, self.question.planes)
        self.reports += int(np.count_nonzero(sound))
        self.malformed += int(np.count_nonzero(~sound))


def _are_sound(question: Question, part: Part, vectors: Bytes) -> NDArray[np.bool_]:
    """Whether an encoder can make each vector: no interval beyond the last, no sum above the number of values asked."""
    if part.encoding == "grr":
        return _numbers(vectors) <= part.intervals
    planes = vectors.reshape(len(vectors), question.planes, part.vector_bytes)
    beyond = np.uint8((1 << (-part.intervals % 8)) - 1)
    is_wrong = np.any(planes[:, :, -1] & beyond, axis=1)
    if question.planes > 1:
        is_wrong |= _above(planes, question.values)
    sound: NDArray[np.bool_] = ~is_wrong
    return sound


def _above(planes: Bytes, most: int) -> NDArray[np.bool_]:
    """Whether any entry of a row, written in binary across its planes, is above `most`."""
    above, equal = np.zeros_like(planes[:, 0]), np.full_like(planes[:, 0], 0xFF)
    for place in reversed(range(planes.shape[1])):
        digits = planes[:, place]
        if most >> place & 1:
            equal &= digits
        else:
            above |= equal & digits
    is_above: NDArray[np.bool_] = np.any(above, axis=1)
    return is_above


def _numbers(vectors: Bytes) -> Counts:
    """Big-endian numbers of the bytes of each row."""
    weights = 256 ** np.arange(vectors.shape[1] - 1, -1, -1, dtype=np.int64)
    numbers: Counts = vectors.astype(np.int64) @ weights
    return numbers


def _counts_of(part: Part, vectors: Bytes, planes: int) -> Counts:
    if part.encoding == "grr":
        return np.bincount(_numbers(vectors), minlength=part.intervals + 1)[: part.intervals]
    columns = np.stack([np.bincount(column, minlength=256) @ _BITS for column in vectors.T])
    per_plane = columns.reshape(planes, -1)[:, : part.intervals]
    ones: Counts = (1 << np.arange(planes, dtype=np.int64)) @ per_plane
    return ones
