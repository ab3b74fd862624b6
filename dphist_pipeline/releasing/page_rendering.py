"""Renders the pages of publications anew, from public files: what a later version corrects need not stay online.

Values, Parquet files and audits stay as they are. For each publication, what its pages will be is entered in the
ledger, then in `pages.json`, and then the pages are replaced one by one; see `publishing.published_release`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from dphist_pipeline.publishing.public_files import publications
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged
from dphist_pipeline.publishing.published_release import PublishedRelease
from dphist_pipeline.releasing._vouching import vouching_reader
from dphist_pipeline.releasing.approvals import note_if_out
from dphist_pipeline.releasing.publisher import refresh_catalogue
from dphist_pipeline.releasing.store import Key, Store

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
    day = datetime.now(UTC).date().isoformat()
    rendered = PublishedRelease.read(folder, audit).rendered_anew(version("dphist-pipeline"), day)
    if rendered is None:
        return False
    if audit.get("model") != "local":
        ledger = store.ledger()
        charge = next(made for made in ledger.charges(key.release, key.period) if made.revision == key.revision)
        if not charge.lost and note_if_out(store, ledger, charge):
            ledger.record_rendered(charge, rendered.digest)
    rendered.write(scratch)
    return True
