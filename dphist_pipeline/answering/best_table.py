"""Which table of a family answers a question with the least noise: all agree, but coarser levels are better known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dphist_pipeline.answering.asking import Box, Publication
from dphist_pipeline.answering.chosen_cells import overlapped_cells
from dphist_pipeline.answering.published import FamilyNamed, audit_in_force, is_family
from dphist_pipeline.domain import CategoricalAxis, Domain, texts_at
from dphist_pipeline.publishing.release_files import TABLES_OF_FAMILY, published_unbiased
from dphist_pipeline.spec.axes import domain_of

MOST_COMPARED = 16  # tables, the smallest
_BETTER = 1 - 1e-6  # of the variance; sums that have the same one differ by rounding errors


def best_publication(named: Publication, by: Sequence[str] = (), boxes: Sequence[Box] = ({},)) -> Publication:
    """The table that answers a question with the smallest variance: the named one, or another one of its family.

    Args:
        named: any publication.
        by: axes or levels whose combinations are asked for.
        boxes: all that are asked about; see `boxes.answer_box`.

    Raises:
        QuestionRefused: a box does not fit the named table.
    """
    if "family" not in named.audit:
        return named
    folder = named.folder.resolve().parents[1]
    others = _tables(folder, audit_in_force(folder))
    # Without levels, every table gives every sum the same variance.
    if not any(_is_level(domain, others) for domain in others.values()):
        return named
    best, least = named, _variance(named.domain, named.audit, by, boxes)
    for path in _holding(others, {*by, *(name for box in boxes for name in box)}):
        if path.name == named.audit["table"]:
            continue
        other = Publication.read(path)
        variance = _variance(other.domain, other.audit, by, boxes)
        if variance < least * _BETTER:
            best, least = other, variance
    return best


def best_of_folder(folder: Path, by: Sequence[str], box: Box) -> Publication:
    """The same for a folder, which may be that of a family: then any of its tables may answer.

    Args:
        folder: of a publication.
        by: see `best_publication`.
        box: see `best_publication`.

    Raises:
        FamilyNamed: no table of the family has all axes of the question.
    """
    if not is_family(folder):
        return best_publication(Publication.read(folder), by, [box])
    audit = audit_in_force(folder)
    tables = _tables(folder, audit)
    for path in _holding(tables, {*by, *box}):
        return best_publication(Publication.read(path), by, [box])
    raise FamilyNamed(audit["release"], list(audit["tables"]))


def _tables(folder: Path, audit: Mapping[str, Any]) -> dict[Path, Domain]:
    return {folder / TABLES_OF_FAMILY / name: domain_of(table["axes"]) for name, table in audit["tables"].items()}


def _names(domain: Domain) -> set[str]:
    """The axes of a table, and their levels."""
    levels = (name for axis in domain.axes if isinstance(axis, CategoricalAxis) for name in axis.levels)
    return {axis.name for axis in domain.axes} | set(levels)


def _is_level(domain: Domain, tables: Mapping[Path, Domain]) -> bool:
    """Whether some axis of a table is a level in another one."""
    names = {axis.name for axis in domain.axes}
    return any(names & (_names(other) - {axis.name for axis in other.axes}) for other in tables.values())


def _holding(tables: Mapping[Path, Domain], wanted: set[str]) -> Iterator[Path]:
    """The smallest tables that have all these axes or levels."""
    found = [path for path in tables if wanted <= _names(tables[path])]
    yield from sorted(found, key=lambda path: tables[path].cells)[:MOST_COMPARED]


def _variance(domain: Domain, audit: Mapping[str, Any], by: Sequence[str], boxes: Sequence[Box]) -> float:
    """The variance that a table tells of a question, of the first of its combinations."""
    unbiased = published_unbiased(audit, np.broadcast_to(0.0, domain.shape))
    total = 0.0
    for box in boxes:
        positions = overlapped_cells(domain, box)[0]
        for number, axis in enumerate(domain.axes):
            for name in by:
                if name == axis.name:
                    positions[number] = positions[number][:1]
                elif texts := texts_at(axis, name):
                    first = texts[int(positions[number][0])]
                    same = np.array([text == first for text in texts])
                    positions[number] = positions[number][same[positions[number]]]
        total += 0.0 if unbiased is None else unbiased.variance_of_sum(positions)
    return total
