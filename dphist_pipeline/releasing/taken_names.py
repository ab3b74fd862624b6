"""Names of releases that the catalogue would need twice."""

from __future__ import annotations

from dphist_pipeline.releasing.errors import ViewTaken
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.words import EVERY_REVISION


def refuse_taken_view(store: Store, release: str) -> None:
    """Refuses a name that the catalogue would need twice; a release that is there already keeps its name.

    Args:
        store: where to publish.
        release: the name.

    Raises:
        ViewTaken: with the other release.
    """
    others = [release + EVERY_REVISION, release.removesuffix(EVERY_REVISION)]
    there = [name for name in others if name != release and _is_used(store, name)]
    if there and not _is_used(store, release):
        raise ViewTaken(release, there[0])


def _is_used(store: Store, release: str) -> bool:
    """Whether a release of that name was published, or charged and drawn for."""
    published = any(store.public.glob(f"{release}/period=*/revision=*/audit.json"))
    return published or (store.confidential / "journal" / release).exists()
