"""Noise that can be drawn a second time, word for word: for tests of what comes out of the measurements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential import noise


class RecordedWords:
    """Stands in for `random_words`: the same words for every one who starts at the beginning."""

    def __init__(self) -> None:
        noise._self_test()
        self.rewind()

    def rewind(self) -> None:
        self._source, self.given = np.random.default_rng(1), 0

    def __call__(self, size: int) -> NDArray[np.uint64]:
        self.given += size
        return self._source.integers(0, 2**64, size, dtype=np.uint64)
