"""What a card says in its own way for each model of privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dphist_pipeline.domain import Axis
from dphist_pipeline.publishing.card_pieces.facts import Facts

Section = Callable[[Facts], str]
Entries = Callable[[Facts], dict[str, str]]


@dataclass(frozen=True)
class Pieces:
    """The parts of a card that differ; all of them give HTML.

    Attributes:
        kind: what the counts are, below the title.
        when: the stretch of time, or the round; empty where there is none.
        key: what to know first.
        counted: what was counted, by name.
        after_axes: what follows the table of axes.
        axis: what the cells along an axis are.
        axis_header: what that table calls them.
        promise: who is protected, and how.
        cost: what it cost.
        errors: what error to expect.
        warnings: what not to conclude.
        method: how it was made.
        record: what stands first in the record.
        files: what each file beside the card holds.
    """

    kind: str
    when: Section
    key: Entries
    counted: Entries
    after_axes: Section
    axis: Callable[[Axis], str]
    axis_header: tuple[str, str, str]
    promise: Section
    cost: Section
    errors: Section
    warnings: Section
    method: Section
    record: Entries
    files: Mapping[str, str]
