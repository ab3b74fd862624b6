"""Names that a release may not take: those that the catalogue would need twice, and those of periods of another length.

Names are of releases, of their views, and of the tables of families. A release is a series of periods of one length:
others would overlap, and sums over periods count rows twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from dphist_pipeline.answering.published import NotPublished, latest_revision
from dphist_pipeline.base.files import read_regular
from dphist_pipeline.errors import Halted
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.fields import EVERY_REVISION, FIGURES

# By the days of the longest period of each length.
_LONGEST = {7: "week", 31: "month", 92: "quarter", 366: "year"}


def view_taken(release: str, other: str) -> Halted:
    """A name that a release and a view of another release would share in the catalogue."""
    name = max(release, other, key=len)
    what = "figures" if name.endswith(FIGURES) else "every revision"
    return Halted(
        f"'{release}' and '{other}' cannot both be releases of one store: in the catalogue, {name} is the view of "
        f"{what} of {min(release, other, key=len)}. This call published and spent nothing; rename "
        f"'{release}'.",
        code="view_taken",
    )


def table_taken(release: str, name: str, other: str) -> Halted:
    """A name in the catalogue that a table of a family and another release would share."""
    return Halted(
        f"'{release}' would need the name {name} in the catalogue, which belongs to '{other}'. This call published "
        f"and spent nothing; rename '{release}'.",
        code="table_taken",
    )


def refuse_taken_view(store: Store, release: str, tables: Sequence[str] = (), charged: bool = False) -> None:
    """Refuses a name that the catalogue would need twice; a release that is there already keeps its names.

    `charged`: they are paid for already, so that a family that is there is finished with all of them.

    Raises:
        Halted: with the other release, or with the name in the catalogue and the other release.
    """
    if _is_used(store, release):
        own_tables = _tables(store, release)
        if own_tables and not charged:
            _refuse_taken_tables(store, release, set(_views(release, tables)) - set(_views(release, own_tables)))
        return
    endings = (EVERY_REVISION, FIGURES)
    others = [name for end in endings for name in (release + end, release.removesuffix(end))]
    clashes = [name for name in others if name != release and _is_used(store, name)]
    if clashes:
        raise view_taken(release, clashes[0])
    _refuse_taken_tables(store, release, _views(release, tables), bool(tables))


def _refuse_taken_tables(store: Store, release: str, names: Iterable[str], is_family: bool = True) -> None:
    """Refuses names of views that another release, or a table of another family, has."""
    first = (next(folder.glob("period=*/revision=*"), None) for folder in store.public.glob("*/"))
    families = [
        publication.parents[1].name
        for publication in first
        if publication is not None and PublishedFolder(publication).is_family
    ]
    others = [family for family in families if family != release]
    family_of = {name: family for family in others for name in _views(family, _tables(store, family))}
    for name in sorted(names):
        if is_family and _is_used(store, name):
            raise table_taken(release, name, name)
        if name in family_of:
            raise table_taken(release, name, family_of[name])


def _views(release: str, tables: Sequence[str]) -> list[str]:
    """The names of views of a release, or of the tables of a family."""
    names = [f"{release}_{table}" for table in tables] or [release]
    return [*names, *(name + EVERY_REVISION for name in names), release + FIGURES]


def _tables(store: Store, family: str) -> list[str]:
    """Every table that a family ever had."""
    return sorted(
        {
            table.name
            for folder in store.public.glob(f"{family}/period=*/revision=*")
            for table in PublishedFolder(folder).tables
        }
    )


def _is_used(store: Store, release: str) -> bool:
    """Whether a release of that name was published, or charged and drawn for."""
    published = any(store.public.glob(f"{release}/period=*/revision=*/audit.json"))
    return published or (store.confidential / "journal" / release).exists()


def refuse_other_length(store: Store, spec: ReleaseSpec) -> None:
    """Refuses a spec whose periods are longer or shorter than those that were published under its name.

    Raises:
        Halted: with both lengths; nothing was spent.
    """
    with suppress(NotPublished, OSError, ValueError, KeyError, TypeError):
        folder = latest_revision(store.public, spec.release, None, family=True)
        published = _length_of(json.loads(read_regular(folder / "audit.json")))
        if published != spec.period:
            raise Halted(
                f"'{spec.release}' has published {_in_words(published)}, and this spec has {_in_words(spec.period)}. A "
                "release holds periods of one length: sums over others would count rows twice. This call published and "
                f"spent nothing; write `period: {published}` again, or name the new release otherwise.",
                code="other_length",
            )


def _length_of(audit: Mapping[str, Any]) -> str:
    if audit["period"] == "all":
        return "none"
    start, end = (datetime.fromisoformat(audit[name]).date() for name in ("period_start", "period_end"))
    return next(name for most, name in _LONGEST.items() if (end - start).days <= most)


def _in_words(length: str) -> str:
    return "one table without periods" if length == "none" else f"{length}s"
