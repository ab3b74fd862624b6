"""Renders the pages of publications anew, from public files: what a later version corrects need not stay online.

Values, Parquet files and audits stay as they are. For each publication, what its pages will be is entered in the
ledger, then in `pages.json`, and then the pages are replaced one by one; see `publishing.published_pages`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate
from dphist_pipeline.files import replace_public
from dphist_pipeline.publishing.card import release_card, smoothed
from dphist_pipeline.publishing.deployment import deployment_yaml
from dphist_pipeline.publishing.family_card import family_card, pages_of_tables
from dphist_pipeline.publishing.public_files import publications
from dphist_pipeline.publishing.published_estimate import published_estimate, published_family
from dphist_pipeline.publishing.published_files import (
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    read_audit,
)
from dphist_pipeline.publishing.published_pages import (
    CARD,
    RENDERED,
    Rendering,
    content_of,
    marked_withdrawn,
    renderings,
    without_marks,
)
from dphist_pipeline.publishing.surroundings import surroundings_of
from dphist_pipeline.releasing.approvals import note_if_out
from dphist_pipeline.releasing.publisher import refresh_catalogue
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.releasing.vouching import vouching_reader

Progress = Callable[[str], None]


@dataclass
class Rendered:
    """What a run did, by place of the publication, such as `wards/period=all/revision=1`.

    Attributes:
        anew: pages were replaced.
        same: this version would write the same pages.
        left: and why: an old audit lacks what a page needs.
    """

    anew: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def render_pages(store: Store, release: str | None = None, progress: Progress = lambda step: None) -> Rendered:
    """Renders the pages of all publications anew, or of one release, then the catalogue and every `index.html`.

    Spends nothing.

    Args:
        store: whose public folder it is.
        release: its name; all by default.
        progress: told the name of each step.

    Raises:
        PublishedFilesDamaged: after all others were rendered.
        NotCopied: the bucket could not be written; all else is done.
    """
    done, read = Rendered(), vouching_reader(store)
    for place, folder in publications(store.public):
        key = store.key_of(folder)
        if key is not None and release in (None, key.release):
            progress(place)
            try:
                with store.building(), store.run(key) as scratch:
                    is_new = _render(store, key, folder, read(folder), scratch)
            except PublishedFilesDamaged:
                continue  # the others come first; building the catalogue raises it again
            except (KeyError, UndefinedError) as error:
                done.left[place] = f"its audit, written by an earlier version, does not say what pages need: {error}"
            else:
                (done.anew if is_new else done.same).append(place)
    refresh_catalogue(store, Key("rendered", "all", 1), progress=progress, anew=True)
    return done


def _render(store: Store, key: Key, folder: Path, audit: Mapping[str, Any], scratch: Path) -> bool:
    """Whether pages of a publication were replaced; those that this version would write again stay."""
    this, before, published = version("dphist-pipeline"), renderings(folder), _Published.read(folder, audit)
    # The day of the last rendering: if nothing but the day changed, nothing did.
    last = before[-1] if before and before[-1].version == this else None
    if _as_they_are(folder, published.pages(last)):
        return False
    today = Rendering(this, datetime.now(UTC).date().isoformat(), {})
    pages = published.pages(today)
    digests = {path: hashlib.sha256(page.encode()).hexdigest() for path, page in pages.items()}
    content = content_of((*before, Rendering(today.version, today.day, digests)))
    if audit.get("model") != "local":
        ledger = store.ledger()
        charge = next(made for made in ledger.charges(key.release, key.period) if made.revision == key.revision)
        if not charge.lost and note_if_out(store, ledger, charge):
            ledger.record_rendered(charge, hashlib.sha256(content).hexdigest())
    replace_public(folder / RENDERED, content, scratch)
    for path, page in pages.items():
        file = folder / path
        # A mark of a later revision follows when the catalogue is built.
        marked = marked_withdrawn(page, read_audit(file.parent)) if "withdrawn" in audit and file.name == CARD else page
        replace_public(file, marked, scratch)
    return True


def _as_they_are(folder: Path, pages: Mapping[str, str]) -> bool:
    """Whether the pages in a folder are these."""
    for path, page in pages.items():
        file = folder / path
        if not file.is_file():
            return False
        there = file.read_text(encoding="utf-8")
        if (without_marks(there, read_audit(file.parent), file.parent) if file.name == CARD else there) != page:
            return False
    return True


@dataclass(frozen=True)
class _Published:
    """What the pages of a publication are made from, with the publisher and the period before."""

    audit: Mapping[str, Any]
    estimate: Estimate | FamilyEstimate
    rows: list[dict[str, Any]]
    folder: Path

    @classmethod
    def read(cls, folder: Path, audit: Mapping[str, Any]) -> _Published:
        """Reads the Parquet files of a publication."""
        read = published_family if "tables" in audit else published_estimate
        return cls(audit, read(folder, audit), PublishedQuality(folder, audit).rows, folder)

    def pages(self, last: Rendering | None) -> dict[str, str]:
        """The pages by their path in the folder; they name a rendering, unless they are as first made."""
        audit, made = self.audit, self.estimate
        around = surroundings_of(self.folder.parents[1], audit)
        rendered = last.in_words(around.about.language_of(audit)) if last is not None else ""
        if isinstance(made, Estimate):
            card = release_card(made, audit, self.rows, rendered, around)
            return {CARD: card, "deployment.yaml": deployment_yaml(audit, smoothed(made))}
        pages = {
            CARD: family_card(made, audit, self.rows, rendered, around),
            "deployment.yaml": deployment_yaml(audit, smoothed=False),
        }
        of_tables = pages_of_tables(made, audit, rendered, around)
        return pages | {f"{TABLES_OF_FAMILY}/{name}/{CARD}": page for name, page in of_tables.items()}
