"""What a contributor sends: the interval of each value, perturbed so that no report gives it away.

Each part of a question is answered by a vector with one bit for each of its K intervals, of which at most one is 1
(none for a value in no interval), or by the number of the interval:

    symmetric   every bit is flipped with probability 1 / (1 + e^(epsilon/2))       (Basic RAPPOR; the paper's)
    optimized   a 1 is kept with probability 1/2, a 0 becomes 1 with probability 1 / (1 + e^epsilon)
                                                                    (optimized unary encoding, Wang et al. 2017)
    grr         the number is kept with probability e^epsilon / (e^epsilon + K), else it is replaced by one of the K
                others (the other intervals and `none`), equally likely          (generalized randomized response)

Privacy. The vectors of two values in different intervals differ in two bits; those of a value in an interval and of one
in none differ in one. The probability of any report changes at most by the factor: symmetric, e^(epsilon/2) for each
bit; optimized, (1/2 over 1/(1 + e^epsilon)) · (e^epsilon/(1 + e^epsilon) over 1/2) = e^epsilon for two bits, less for
one; grr, e^epsilon. Intervals are half-open and the last is closed. If they were closed at both ends, a value on an
edge would set two bits, and two such values would differ in four. A value outside the range, or that is no number, lies
in no interval and is reported as well: whether a report is sent, and its length, depend on no value.

A contributor of c values makes c vectors, each with fresh coins, and so spends c times epsilon. Missing values are
replaced by `none`; of more values, c are chosen at random. `summed` sends the sum of the c vectors, which is computed
from them alone. Paper: Zheng, Yan, Duan, Tang, Tian 2021, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.local._coins import Bytes, Chance, coins, uniform_below
from dphist_pipeline.local.question import Part, Question

Places = NDArray[np.int64]
NONE = -1
FEW = 64  # intervals, up to which a table, or a comparison with every edge, is fastest


def places_of(part: Part, values: NDArray[np.float64]) -> Places:
    """The interval of each value, from 0, and -1 for a value in none; shape of `values`.

    Args:
        values: in the unit of the edges, any shape; nan for a missing value.
    """
    edges = np.array(part.doubles)
    if edges.size <= FEW and values.size > edges.size:  # branches of a binary search are unpredictable
        edges_passed = np.zeros(values.shape, dtype=np.uint8)
        for edge in edges:
            edges_passed += (values >= edge).view(np.uint8)
        places = edges_passed.astype(np.int64) - 1
    else:
        places = np.searchsorted(edges, values, side="right") - 1
    places[values == edges[-1]] = part.intervals - 1
    places[~((values >= edges[0]) & (values <= edges[-1]))] = NONE
    return places


def encode(question: Question, values: NDArray[np.float64]) -> Bytes:
    """One packed report for each row of values, or for each value where they are separate; shape (reports, bytes).

    Args:
        values: shape (contributors, values of the question), nan for a missing value.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != question.values:
        raise ValueError("values must have a row for each contributor and a column for each value asked")
    return np.hstack([_answer_part(question, part, places_of(part, values)) for part in question.parts])


def choose_values(values: Sequence[object], number: int) -> NDArray[np.float64]:
    """Exactly `number` of a contributor's values: some chosen at random, or all and nan for missing or other ones."""
    own = np.array([_double(value) for value in values], dtype=np.float64)
    own = own[~np.isnan(own)]
    if own.size > number:
        own = own[np.argsort(random_words(own.size), kind="stable")[:number]]
    return np.concatenate([own, np.full(number - own.size, np.nan)])


def _double(value: object) -> float:
    """The double nearest to a value; nan for a value that is no number, because an error would reveal it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(value)  # type: ignore[arg-type]
        except Exception:
            return math.nan


def sent_reports(question: Question, reports: int) -> NDArray[np.bool_]:
    """Which reports are sent: each with the exact probability `participation`; shape (reports,)."""
    share = question.participation
    if share == 1:
        return np.ones(reports, dtype=np.bool_)
    is_sent: NDArray[np.bool_] = uniform_below(share.denominator, reports) < share.numerator
    return is_sent


def report_ids(reports: int) -> Bytes:
    """Random 16 bytes for each report, so that a curator notices a report that is sent twice; shape (reports, 16)."""
    return random_words(2 * reports).view(np.uint8).reshape(reports, 16)


def _answer_part(question: Question, part: Part, places: Places) -> Bytes:
    vectors = _numbers(part, places.ravel()) if part.encoding == "grr" else _bits(part, places.ravel())
    if question.combine == "separate":
        return vectors
    return _sum_vectors(vectors.reshape(*places.shape, part.vector_bytes), question.planes)


def chance_of(part: Part) -> Chance:
    """The probability that a 0 is sent as 1; under grr, that another number than the true one is sent."""
    if part.encoding == "grr":
        return Chance(part.intervals, part.epsilon)
    return Chance(1, part.epsilon / 2 if part.encoding == "symmetric" else part.epsilon)


def _bits(part: Part, places: Places) -> Bytes:
    """A packed vector for each place; bits beyond the last interval are 0."""
    vectors = coins(chance_of(part), places.size * part.vector_bytes).reshape(places.size, part.vector_bytes)
    vectors[:, -1] &= 0xFF << (-part.intervals % 8) & 0xFF
    true = _true_bits(part, places)
    if part.encoding == "symmetric":
        return vectors ^ true
    heads = _fair(places.size)[:, None] * np.uint8(0xFF)
    # The true bit becomes a fair coin: it is flipped where it differs from the coin.
    return vectors ^ (true & (vectors ^ heads))


def _true_bits(part: Part, places: Places) -> Bytes:
    """The packed vectors before perturbation: at most one bit each is 1."""
    if part.intervals <= FEW:
        return np.packbits(np.eye(part.intervals + 1, part.intervals, dtype=np.uint8), axis=1)[places]  # -1: the last
    vectors = np.zeros((places.size, part.vector_bytes), dtype=np.uint8)
    rows = np.flatnonzero(places != NONE)
    vectors[rows, places[rows] >> 3] = 128 >> (places[rows] & 7)
    return vectors


def _fair(size: int) -> Bytes:
    """Fair coins as 0 and 1, shape (size,)."""
    return np.unpackbits(random_words(-(-size // 64)).view(np.uint8))[:size]


def _numbers(part: Part, places: Places) -> Bytes:
    """A perturbed number for each place, big-endian: that of an interval, or K for none."""
    numbers = np.where(places == NONE, part.intervals, places)
    lies = np.flatnonzero(np.unpackbits(coins(chance_of(part), -(-places.size // 8)))[: places.size])
    draws = uniform_below(part.intervals, lies.size)
    numbers[lies] = draws + (draws >= numbers[lies])
    return numbers.astype(">u4").view(np.uint8).reshape(places.size, 4)[:, 4 - part.vector_bytes :]


def _sum_vectors(vectors: Bytes, planes: int) -> Bytes:
    """Adds up the vectors of each contributor: shape (contributors, c, bytes) to (contributors, planes · bytes).

    The binary digits of an entry lie in one plane each, the lowest digit first.
    """
    sums = np.zeros((planes, vectors.shape[0], vectors.shape[2]), dtype=np.uint8)
    for carry in np.moveaxis(vectors, 1, 0):
        for plane in sums:
            plane[:], carry = plane ^ carry, plane & carry
    return np.moveaxis(sums, 0, 1).reshape(vectors.shape[0], planes * vectors.shape[2])
