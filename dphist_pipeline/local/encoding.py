"""What a contributor sends: for each value, in which interval it lies, said so that no answer gives it away.

Each part of a question is answered by a vector of one entry for each of its K intervals, of which at most one is 1 (a
value in no interval has none), or by the number of the interval:

    symmetric   every bit is turned round with probability 1 / (1 + e^(epsilon/2))       (Basic RAPPOR; the paper's)
    optimized   a 1 is kept with probability 1/2, a 0 becomes 1 with probability 1 / (1 + e^epsilon)
                                                                    (optimized unary encoding, Wang et al. 2017)
    grr         the number is kept with probability e^epsilon / (e^epsilon + K), else it is any of the K others, which
                are the other intervals and `none`, each as likely               (generalized randomized response)

Privacy. Two values in different intervals have vectors that differ in two bits, and a value in none differs from any
other in one. Probabilities of any report differ at most by: symmetric, e^(epsilon/2) a bit; optimized, (1/2 over
1/(1 + e^epsilon)) · (e^epsilon/(1 + e^epsilon) over 1/2) = e^epsilon for the two bits, less for one; grr, e^epsilon.
Intervals are half-open and the last is closed: closed at both ends, a value on an edge would set two bits, and two such
values would differ in four. A value outside the range, or that is no number, lies in no interval and is reported as
well: nothing about a value decides whether, or how long, a report is.

A contributor of c values makes c vectors, each with fresh coins, and so spends c times epsilon; fewer values are filled
up with `none`, of more values c are chosen at random. `summed` sends the c vectors added up entry by entry, which is
computed from them alone. Paper: Zheng, Yan, Duan, Tang, Tian 2021, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.local.coins import Bytes, Chance, coins, uniform_below
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.random_words import random_words

Places = NDArray[np.int64]
NONE = -1
FEW = 64  # intervals, up to which a table or a look at each of them is fastest


def places_of(part: Part, values: NDArray[np.float64]) -> Places:
    """The interval of each value, from 0, and -1 for a value in none; any shape."""
    edges = np.array(part.doubles)
    if edges.size <= FEW and values.size > edges.size:  # a search guesses wrong at every other edge
        passed = np.zeros(values.shape, dtype=np.uint8)
        for edge in edges:
            passed += (values >= edge).view(np.uint8)
        places = passed.astype(np.int64) - 1
    else:
        places = np.searchsorted(edges, values, side="right") - 1
    places[values == edges[-1]] = part.intervals - 1
    places[~((values >= edges[0]) & (values <= edges[-1]))] = NONE
    return places


def encode(question: Question, values: NDArray[np.float64]) -> Bytes:
    """One report for each row of values, or one for each value where they are separate.

    Args:
        question: what is asked.
        values: shape (contributors, values of the question), nan for one that a contributor does not have.

    Returns:
        Packed reports, uint8, shape (contributors · question.reports, question.report_bytes), in order.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != question.values:
        raise ValueError("values must have a row for each contributor and a column for each value asked")
    return np.hstack([_answered(question, part, places_of(part, values)) for part in question.parts])


def chosen(values: Sequence[object], wanted: int) -> NDArray[np.float64]:
    """Exactly so many of a contributor's values: all and nan for the missing ones, or some chosen at random.

    What is no number counts as missing.
    """
    own = np.array([_double(value) for value in values], dtype=np.float64)
    own = own[~np.isnan(own)]
    if own.size > wanted:
        own = own[np.argsort(random_words(own.size), kind="stable")[:wanted]]
    return np.concatenate([own, np.full(wanted - own.size, np.nan)])


def _double(value: object) -> float:
    """The double nearest to a value, nan for one that is no number: an error would tell that it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(value)  # type: ignore[arg-type]
        except Exception:
            return math.nan


def sent(question: Question, reports: int) -> NDArray[np.bool_]:
    """Which of so many reports are sent: each with the probability `participation`, exactly; shape (reports,)."""
    share = question.participation
    if share == 1:
        return np.ones(reports, dtype=np.bool_)
    drawn: NDArray[np.bool_] = uniform_below(share.denominator, reports) < share.numerator
    return drawn


def report_ids(reports: int) -> Bytes:
    """Random 16 bytes for each report, by which a curator knows one that comes twice; uint8, shape (reports, 16)."""
    return random_words(2 * reports).view(np.uint8).reshape(reports, 16)


def _answered(question: Question, part: Part, places: Places) -> Bytes:
    vectors = _numbers(part, places.ravel()) if part.encoding == "grr" else _bits(part, places.ravel())
    if question.combine == "separate":
        return vectors
    return _summed(vectors.reshape(*places.shape, part.vector_bytes), question.planes)


def chance_of(part: Part) -> Chance:
    """How likely a bit that is 0 is sent as 1, or under grr, how likely another number is sent than the true one."""
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
    # Replaced by a fair coin: turned round where it is not what the coin says.
    return vectors ^ (true & (vectors ^ heads))


def _true_bits(part: Part, places: Places) -> Bytes:
    """The packed vectors that say the places as they are: at most a single bit each is 1."""
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
    """A number for each place, big-endian: of an interval, or K for none."""
    numbers = np.where(places == NONE, part.intervals, places)
    lies = np.flatnonzero(np.unpackbits(coins(chance_of(part), -(-places.size // 8)))[: places.size])
    others = uniform_below(part.intervals, lies.size)
    numbers[lies] = others + (others >= numbers[lies])
    return numbers.astype(">u4").view(np.uint8).reshape(places.size, 4)[:, 4 - part.vector_bytes :]


def _summed(vectors: Bytes, planes: int) -> Bytes:
    """Adds up the vectors of each contributor: shape (contributors, c, bytes) to (contributors, planes · bytes).

    An entry's digits lie in as many planes, the ones first.
    """
    sums = np.zeros((planes, vectors.shape[0], vectors.shape[2]), dtype=np.uint8)
    for carry in np.moveaxis(vectors, 1, 0):
        for plane in sums:
            plane[:], carry = plane ^ carry, plane & carry
    return np.moveaxis(sums, 0, 1).reshape(vectors.shape[0], planes * vectors.shape[2])
