"""The pages of a publication, made again from its audit, its Parquet files and what stands around it.

They are a function of these and of the version of the program: whoever doubts a page makes it again and compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate
from dphist_pipeline.publishing._card import is_smoothed, release_card
from dphist_pipeline.publishing._card_cover import PublicationNeighbours
from dphist_pipeline.publishing._deployment import deployment_yaml
from dphist_pipeline.publishing._family_card import family_card, pages_of_tables
from dphist_pipeline.publishing.derived_files import later_revision, page_in
from dphist_pipeline.publishing.notices import with_notice
from dphist_pipeline.publishing.published_estimate import published_estimate, published_family
from dphist_pipeline.publishing.published_files import (
    CARD,
    PAGES,
    TABLES_OF_FAMILY,
    PublishedFolder,
    read_audit,
)
from dphist_pipeline.publishing.surroundings import surroundings_at_any_time, surroundings_of

Pages = dict[str, str]  # text by path in the folder of the publication


@dataclass(frozen=True)
class PublishedPages:
    """What the pages of a publication are made from. `rows`: of its quality table, which the estimate lacks."""

    folder: Path
    audit: Mapping[str, Any]
    estimate: Estimate | FamilyEstimate
    rows: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, audit: Mapping[str, Any]) -> PublishedPages:
        """Reads the Parquet files of a publication, which were checked.

        Raises:
            KeyError: the version that published it wrote less than pages need. (UndefinedError comes from templates.)
        """
        read, file = published_family if "tables" in audit else published_estimate, PublishedFolder(folder).quality
        return cls(folder, audit, read(folder, audit), pq.ParquetFile(file).read().to_pylist() if file.exists() else [])

    def outdated_pages(self) -> Pages:
        """The pages that are not as this version writes them now, as they shall be."""
        return self._unlike(surroundings_of(self.folder.parents[1], self.audit))

    def altered_pages(self) -> set[str]:
        """The paths of pages that this version did not write, whatever stood around the publication then."""
        unlike = (set(self._unlike(around)) for around in surroundings_at_any_time(self.folder.parents[1], self.audit))
        altered = next(unlike)
        while altered and (others := next(unlike, None)) is not None:
            altered &= others
        return altered

    def _unlike(self, around: PublicationNeighbours) -> Pages:
        noticed = _with_notices(self.folder, self.audit, self._render(around))
        return {path: page for path, page in noticed.items() if _there(self.folder, path) != page}

    def _render(self, around: PublicationNeighbours) -> Pages:
        """The pages without notices."""
        audit, estimate = self.audit, self.estimate
        if isinstance(estimate, Estimate):
            card, deployment = release_card(estimate, audit, self.rows, around), is_smoothed(estimate)
            return {CARD: card, "deployment.yaml": deployment_yaml(audit, deployment)}
        pages = {
            CARD: family_card(estimate, audit, self.rows, around),
            "deployment.yaml": deployment_yaml(audit, smoothed=False),
        }
        of_tables = pages_of_tables(estimate, audit, around)
        return pages | {f"{TABLES_OF_FAMILY}/{name}/{CARD}": page for name, page in of_tables.items()}


def unlike_their_digests(folder: Path, audit: Mapping[str, Any]) -> set[str]:
    """The paths of pages that, notices aside, differ from their digests in an audit of form 1."""
    places = {"": audit} | {
        f"{TABLES_OF_FAMILY}/{name}/": read_audit(PublishedFolder(folder).table(name))
        for name in audit.get("tables", {})
    }
    digests = {
        place + name: one["files"][name] for place, one in places.items() for name in PAGES if name in one["files"]
    }
    pages = {path: _there(folder, path) or "" for path in digests}
    noticed = _with_notices(folder, audit, pages)
    return {
        path
        for path, page in pages.items()
        if page != noticed[path] or digests[path] != hashlib.sha256(with_notice(page, {}).encode()).hexdigest()
    }


def _with_notices(folder: Path, audit: Mapping[str, Any], pages: Pages) -> Pages:
    """The pages with the notices that they need."""
    later, cards = later_revision(folder), dict(PublishedFolder(folder).cards())
    return {
        path: with_notice(page, audit, later, cards[path]) if path in cards else page for path, page in pages.items()
    }


def _there(folder: Path, path: str) -> str | None:
    return page_in(folder.parents[2], folder / path)
