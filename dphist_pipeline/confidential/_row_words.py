"""How a row's positions along all axes are packed into 64-bit words, where the grid has too many cells to number."""

from __future__ import annotations

from collections.abc import Sequence

from dphist_pipeline.base.domain import Domain

LARGEST_WORD = 1 << 62


def words_of(domain: Domain) -> list[list[tuple[int, int]]]:
    """The packing of rows: for each word its axes, each with the difference of the word for one position.

    Args:
        domain: of any number of cells. Consecutive axes share a word while it has at most `LARGEST_WORD` values.
    """
    words: list[list[tuple[int, int]]] = [[]]
    room = 1
    for axis, size in enumerate(domain.shape):
        if room * size > LARGEST_WORD:
            words.append([])
            room = 1
        words[-1].append((axis, room))
        room *= size
    return words


def names_of(words: Sequence[object]) -> list[str]:
    """The columns of staged words, of which only the number counts."""
    return [f"word_{number}" for number in range(len(words))]
