"""A published release, read back as far as its pages show it: to render them anew, so that a correction reaches them.

Values, Parquet files and audits stay as they are. The list of pages is written before them; see `published_pages`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate
from dphist_pipeline.files import replace_public
from dphist_pipeline.publishing._card import release_card, smoothed
from dphist_pipeline.publishing._deployment import deployment_yaml
from dphist_pipeline.publishing._family_card import family_card, pages_of_tables
from dphist_pipeline.publishing._published_estimate import published_estimate, published_family
from dphist_pipeline.publishing._published_pages import (
    CARD,
    RENDERED,
    Rendering,
    content_of,
    marked_withdrawn,
    renderings,
    without_marks,
)
from dphist_pipeline.publishing.published_files import TABLES_OF_FAMILY, PublishedFolder, read_audit
from dphist_pipeline.publishing.surroundings import surroundings_of


@dataclass(frozen=True)
class RenderedPages:
    """The pages of a publication as they shall be: text without marks, by path in its folder.

    `content`: of the list of pages, with this rendering as the last one.
    """

    published: PublishedRelease
    pages: Mapping[str, str]
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the list of pages, which the ledger records before anything is written."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, scratch: Path) -> None:
        """Replaces the list of pages, and then the pages one by one."""
        folder, audit = self.published.folder, self.published.audit
        replace_public(folder / RENDERED, self.content, scratch)
        for path, page in self.pages.items():
            file = folder / path
            # A mark of a later revision follows when the catalogue is built.
            is_marked = "withdrawn" in audit and file.name == CARD
            replace_public(file, marked_withdrawn(page, read_audit(file.parent)) if is_marked else page, scratch)


@dataclass(frozen=True)
class PublishedRelease:
    """What the pages of a publication are made from; beside it, the publisher and the period before are read.

    Its files were checked; see `read_audit`. `rows` are those of its quality table, which the estimate lacks.
    """

    folder: Path
    audit: Mapping[str, Any]
    estimate: Estimate | FamilyEstimate
    rows: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, audit: Mapping[str, Any]) -> PublishedRelease:
        """Reads the Parquet files of a publication.

        Raises:
            KeyError: the version that published it wrote less than pages need.
        """
        read, file = published_family if "tables" in audit else published_estimate, PublishedFolder(folder).quality
        return cls(folder, audit, read(folder, audit), pq.ParquetFile(file).read().to_pylist() if file.exists() else [])

    def rendered_anew(self, version: str, day: str) -> RenderedPages | None:
        """The pages as this version writes them; None if the last rendering, or the first, differs in its day alone."""
        before = renderings(self.folder)
        if self._has(self._pages(before[-1] if before and before[-1].version == version else None)):
            return None
        pages = self._pages(Rendering(version, day, {}))
        digests = {path: hashlib.sha256(page.encode()).hexdigest() for path, page in pages.items()}
        return RenderedPages(self, pages, content_of((*before, Rendering(version, day, digests))))

    def _has(self, pages: Mapping[str, str]) -> bool:
        for path, page in pages.items():
            file = self.folder / path
            if not file.is_file():
                return False
            content = file.read_text(encoding="utf-8")
            if (without_marks(content, read_audit(file.parent), file.parent) if file.name == CARD else content) != page:
                return False
        return True

    def _pages(self, last: Rendering | None) -> dict[str, str]:
        """The pages by their path in the folder; they name a rendering, unless they are as first made."""
        audit, estimate = self.audit, self.estimate
        around = surroundings_of(self.folder.parents[1], audit)
        rendered = last.in_words(around.about.language_of(audit)) if last is not None else ""
        if isinstance(estimate, Estimate):
            card = release_card(estimate, audit, self.rows, rendered, around)
            return {CARD: card, "deployment.yaml": deployment_yaml(audit, smoothed(estimate))}
        pages = {
            CARD: family_card(estimate, audit, self.rows, rendered, around),
            "deployment.yaml": deployment_yaml(audit, smoothed=False),
        }
        of_tables = pages_of_tables(estimate, audit, rendered, around)
        return pages | {f"{TABLES_OF_FAMILY}/{name}/{CARD}": page for name, page in of_tables.items()}
