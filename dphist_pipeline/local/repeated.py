"""Which ids come twice among any number of them, in bounded memory.

Ids are told apart by 64-bit fingerprints under a random key, sorted one share of them at a time; those whose
fingerprint repeats are then looked at whole, so ids that differ are never taken for the same. Whoever chooses ids, and
does not know the key, makes two of them share a fingerprint with probability 2^-64, and no share large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.random_words import random_words

Ids = NDArray[np.uint8]
Prints = NDArray[np.uint64]

AT_ONCE = 1 << 24  # fingerprints that are sorted together: 128 megabytes


@dataclass(eq=False)
class Repeated:
    """Ids that come more than once, and which of them were seen.

    Attributes:
        key: ten random words.
        prints: rising fingerprints of ids that may come more than once.
    """

    key: Prints
    prints: Prints
    _seen: NDArray[np.bool_] = field(init=False)
    _firsts: Ids = field(init=False)  # the first id of each fingerprint that was seen
    _others: set[bytes] = field(default_factory=set, init=False)  # further ids of the same fingerprint

    def __post_init__(self) -> None:
        self._seen = np.zeros(self.prints.size, dtype=np.bool_)
        self._firsts = np.zeros((self.prints.size, 16), dtype=np.uint8)

    @classmethod
    def of(cls, read: Callable[[], Iterable[Ids]], most: int) -> Repeated:
        """Reads all ids, once for each share of them.

        Args:
            read: gives ids, uint8, shapes (any, 16), each time from the first.
            most: at most so many.
        """
        key = random_words(10)
        bits = max(0, math.ceil(math.log2(max(1, most) / AT_ONCE)))
        found = [_repeated(read(), key, share, bits) for share in range(1 << bits)]
        return cls(key, np.concatenate(found))

    def again(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids came before, in earlier calls or earlier in this one; shape (ids,)."""
        came = np.zeros(len(ids), dtype=np.bool_)
        if not self.prints.size:
            return came
        prints = _prints(ids, self.key)
        near = np.minimum(np.searchsorted(self.prints, prints), self.prints.size - 1)
        rows = np.flatnonzero(self.prints[near] == prints)
        places, first = np.unique(near[rows], return_index=True)
        unseen = ~self._seen[places]
        beginning = rows[first[unseen]]
        self._seen[places] = True
        self._firsts[places[unseen]] = ids[beginning]
        came[rows] = True
        came[beginning] = False
        for row in rows[np.any(self._firsts[near[rows]] != ids[rows], axis=1)]:
            name = ids[row].tobytes()
            came[row] = name in self._others
            self._others.add(name)
        return came


def _repeated(read: Iterable[Ids], key: Prints, share: int, bits: int) -> Prints:
    """The fingerprints that begin with a share's bits and come more than once, rising."""
    parts = [np.empty(0, dtype=np.uint64)]
    for ids in read:
        prints = _prints(ids, key)
        parts.append(prints[prints >> np.uint64(64 - bits) == share] if bits else prints)
    rising = np.concatenate(parts)
    parts.clear()
    rising.sort()
    return np.unique(rising[1:][rising[1:] == rising[:-1]])


def _prints(ids: Ids, key: Prints) -> Prints:
    """Fingerprints, each bit of which comes from the high half of a sum: strongly universal (Thorup 2015)."""
    quarters = np.ascontiguousarray(ids).view(np.uint32).astype(np.uint64)
    high, low = quarters @ key[:4] + key[4], quarters @ key[5:9] + key[9]
    prints: Prints = high & np.uint64(0xFFFFFFFF << 32) | low >> np.uint64(32)
    return prints
