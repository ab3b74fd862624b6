"""The one way to publish, for releases of the central and of the local model.

All files of a release appear by one rename. Whoever finds them there gives them back, after checking that nobody
withdrew them and that they say what this call would publish. The catalogue is built afterwards; see `public_folder`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dphist_pipeline.base.files import read_regular
from dphist_pipeline.errors import DphistError, Halted
from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import move_into_place, write_release
from dphist_pipeline.publishing.surroundings import surroundings_of
from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing._taken_names import refuse_taken_view
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store

if TYPE_CHECKING:
    pass

Progress = Callable[[str], None]


class Withdrawn(Halted):
    """A publication that was taken back."""

    def __init__(self, key: Key, at: str, reason: str, local: bool = False) -> None:
        self.key, self.at, self.reason = key, at, reason
        again = (
            "To publish that period anew costs nothing more: dphist local publish SPEC --revise --reason TEXT, with a "
            "TEXT that was not given before."
            if local
            else "What it spent stays spent. To publish that period anew, at its price: dphist release with --revise "
            "--reason TEXT."
        )
        super().__init__(
            f"release '{key.release}', period {key.period}, revision {key.revision} was withdrawn on {at[:10]}: "
            f"{reason}. {again}"
        )


def name_taken(release: str) -> Halted:
    """A name that belongs to another release of the store: of another collection, or of the other model."""
    return Halted(
        f"'{release}' belongs to something else in this store already: to a release of the central model, or to a "
        "consumer of a collection of the local model. This call published and spent nothing; rename the release, "
        "the consumer or the collection.",
        code="name_taken",
    )


class Revision(Protocol):
    """A revision that was made before: a charge in the ledger, or what an audit says."""

    @property
    def reason(self) -> str:
        """Why it was made; empty for the first."""

    @property
    def digest(self) -> str:
        """The digest of its spec."""


Made = TypeVar("Made", bound=Revision)


def matching_revisions(publications: Sequence[Made], reason: str, digest: str) -> list[Made]:
    """The revisions that a call may give back: all, or those that were made for the same reason by the same spec.

    The digest of the spec is compared only together with a reason.
    """
    return [
        revision for revision in publications if not reason or (revision.reason, revision.digest) == (reason, digest)
    ]


def published_release(store: Store, key: Key, expected: Mapping[str, object], differs: DphistError) -> Release | None:
    """A release as it was published, None where it is not there.

    `expected`: facts that its audit must state, else `differs` is raised.

    Raises:
        Withdrawn: it was taken back.
    """
    return _read_confirmed(store, key, expected, differs) if store.published(key).exists() else None


def publish(
    store: Store,
    key: Key,
    estimate: AnyEstimate,
    scales: Mapping[str, Fraction],
    facts: dict[str, Any],
    differs: DphistError,
    record: Callable[[], None] = lambda: None,
) -> Release:
    """Writes all files of a release and moves them into place, or gives back those of whoever was first.

    `differs` is raised where somebody else published other values. `record` is called once the files are written,
    before anybody can read them.

    Raises:
        Withdrawn: somebody else published it meanwhile, and it was taken back.
        Halted: the store was not upgraded.
    """
    store.refuse_old_layout()
    # The day alone: a time would tell how long the run took, which may depend on records.
    facts = {**facts, "published_on": datetime.now(UTC).date().isoformat()}
    with store.run(key) as scratch:
        staging = scratch / "published"
        staging.mkdir()
        around = surroundings_of(store.published(key).parents[1], facts)
        audit = write_release(estimate, scales, facts, staging, around)
        record()
        if move_into_place(staging, store.published(key)):
            return Release(store.published(key), audit, replayed=False)
    expected = {"values_digest": values_digest(estimate), "spec_digest": facts["spec_digest"]}
    return _read_confirmed(store, key, expected, differs)


def _read_confirmed(store: Store, key: Key, expected: Mapping[str, object], differs: DphistError) -> Release:
    audit = read_audit(store.published(key))
    if "withdrawn" in audit:
        raise Withdrawn(key, audit["withdrawn"]["at"], audit["withdrawn"]["reason"], audit.get("model") == "local")
    if any(audit[name] != fact for name, fact in expected.items()):
        raise differs
    return Release(store.published(key), audit, replayed=True)


def refuse_taken_name(
    store: Store, release: str, collection: str | None = None, tables: Sequence[str] = (), charged: bool = False
) -> None:
    """Refuses a name that belongs to something else in the store, in any period.

    `collection` wants the name; None for a release of the central model.

    Raises:
        Halted: anything else was published under it, or charged and drawn for; or a view in the store has that name, or
            that of a view of this release.
    """
    refuse_taken_view(store, release, tables, charged)
    is_taken = collection is not None and (store.confidential / "journal" / release).exists()
    for audit in store.public.glob(f"{release}/period=*/revision=*/audit.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):  # a damaged audit names no owner
            is_taken |= json.loads(read_regular(audit)).get("collection") != collection
            break  # whoever published first was compared with by all others
    if is_taken:
        raise name_taken(release)
