"""Which table of a family answers a question with the least noise: all agree, but coarser levels are better known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.asking import Box, Publication
from dphist_pipeline.answering.published import audit_in_force, family_named, is_family
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.family_choice import FamilyChoice, names_of_table
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.spec.axes import domain_of


def best_publication(named: Publication, by: Sequence[str] = (), boxes: Sequence[Box] = ({},)) -> Publication:
    """The table that answers a question: the named one, or another of its family that knows it better.

    The axes and levels that the question names decide, not the values in boxes; see `family_choice`.
    """
    if "family" not in named.audit:
        return named
    folder = named.folder.resolve().parents[1]
    read = {named.audit["table"]: named}

    def publication(table: str) -> Publication:
        if table not in read:
            read[table] = Publication.read(PublishedFolder(folder).table(table))
        return read[table]

    choice = FamilyChoice(_domains(audit_in_force(folder)), lambda table: publication(table).audit)
    return publication(choice.best(named.audit["table"], by, [name for box in boxes for name in box]))


def best_of_folder(folder: Path, by: Sequence[str], boxes: Sequence[Box]) -> Publication:
    """The same for a folder, which may be that of a family: then any of its tables may answer.

    Raises:
        Refused: no table of the family has all axes of the question.
    """
    if not is_family(folder):
        return best_publication(Publication.read(folder), by, boxes)
    audit = audit_in_force(folder)
    domains = _domains(audit)
    wanted = {*by, *(name for box in boxes for name in box)}
    having = [table for table, domain in domains.items() if wanted <= names_of_table(domain)]
    if not having:
        raise family_named(audit["release"], list(audit["tables"]), sorted(wanted))
    smallest = min(having, key=lambda table: domains[table].cells)
    return best_publication(Publication.read(PublishedFolder(folder).table(smallest)), by, boxes)


def _domains(audit: Mapping[str, Any]) -> dict[str, Domain]:
    return {name: domain_of(table["axes"]) for name, table in audit["tables"].items()}
