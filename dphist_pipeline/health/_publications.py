"""Checks of what is published: files as the ledger recorded them, pages as they are made, no doubts, a copy of all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dphist_pipeline.base.files import read_regular
from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import CheckResult, Examined, fault, first_names, not_looked_at, ok, warning
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import (
    AUDIT,
    DAMAGED,
    PublishedFilesDamaged,
    PublishedFolder,
    read_audit,
)
from dphist_pipeline.releasing.store import Key

MOST = 100  # publications that are read; `dphist ledger verify` reads all
LATEST = 10  # periods of a release, or publications whose pages are made again


def publications(subject: Examined) -> CheckResult:
    """The newest publications of every account: whole, and with the values and costs that the ledger recorded."""
    check = "publications"
    if subject.store is None or subject.ledger is None:
        return not_looked_at(check, "the ledger could not be opened")
    read, damaged, problem, books = 0, list[str](), "", subject.ledger.books()
    charges = [charge for charge in books.every_charge() if charge.number in books.published]
    for charge in sorted(charges, key=lambda charge: charge.number, reverse=True)[:MOST]:
        key, recorded = Key.of(charge), books.published[charge.number]
        folder = subject.store.published(key)
        if charge.lost or not folder.exists():
            aside = not charge.lost and "withdrawn" not in books.notes.get(charge.number, {})
            if aside and any(folder.parent.glob(f"{DAMAGED}_{folder.name}_*")):
                damaged.append(str(key.public_place))
                problem = (
                    problem or "Its folder was set aside. The same dphist release makes its files anew, at no cost."
                )
            continue
        try:
            subject.store.read_vouched_audit(charge, recorded)
            read += 1
        except DphistError as error:
            damaged.append(str(key.public_place))
            problem = problem or str(error)
    if damaged:
        return fault(check, f"not what the ledger recorded: {first_names(damaged)}", problem)
    return ok(check, f"the newest {read} are whole, with the values that the ledger recorded (ledger verify reads all)")


def pages(subject: Examined) -> CheckResult:
    """Whether the pages of the newest publications of this version are those that it makes again from their files.

    Those of an earlier version may be as they were published, too, if their audit has their digests.
    """
    from jinja2 import UndefinedError

    from dphist_pipeline.publishing.published_pages import PublishedPages, unlike_their_digests

    check, compared, others, unlike = "pages", 0, 0, list[str]()
    if subject.store is None:
        return not_looked_at(check, "the store could not be opened")
    folders = PublishedFolder.all_in(subject.store.public)
    newest = sorted(folders, key=lambda found: (found[1] / AUDIT).stat().st_mtime_ns, reverse=True)
    for place, folder in newest[:MOST]:
        with suppress(PublishedFilesDamaged):  # another check's matter
            PublishedFolder(folder).refuse_links(subject.store.public)
            audit = read_audit(folder)
            try:
                paths = PublishedPages.read(folder, audit).altered_pages()
                if paths and (audit.get("versions") or {}).get("dphist-pipeline") != version("dphist-pipeline"):
                    others, paths = others + 1, paths & unlike_their_digests(folder, audit)
                else:
                    compared += 1
            except (KeyError, UndefinedError):
                paths = unlike_their_digests(folder, audit)
            unlike += [f"{place}/{path}" for path in sorted(paths)]
        if compared == LATEST:
            break
    if unlike:
        mend = "dphist store pages makes them anew, and spends nothing. It is due after a change of about.json, too."
        return warning(check, f"not what this version makes of the published files: {first_names(unlike)}", mend)
    text = f"those of the newest {compared} are what this version makes of the published files"
    return ok(check, f"{text}; {others} are by another version: see dphist store pages" if others else text)


def doubtful(subject: Examined) -> CheckResult:
    """Whether the latest revision of a period, among the last ones, may be wrong: empty, or suddenly another."""
    check = "doubtful"
    if subject.store is None:
        return not_looked_at(check, "the store could not be opened")
    doubts = {
        f"{audit['release']} {audit['period']}": why
        for current in sorted(subject.store.public.glob(f"*/{DerivedFiles.current}"))
        for audit in _latest_audits(current)
        if (why := _reason_for_doubt(audit))
    }
    if not doubts:
        return ok(check, f"none of the last {LATEST} published periods of a release says that it may be wrong")
    first, why = next(iter(doubts.items()))
    return warning(
        check,
        f"published, and may be wrong: {first_names(list(doubts))}; {first}: {why}",
        "Look at its card. Revise it with the right records, or take it back: dphist withdraw RELEASE PERIOD --reason "
        "TEXT. Such periods can wait for a person: `publish: if_plausible` in the spec.",
    )


def _latest_audits(current: Path) -> Iterator[Mapping[str, Any]]:
    """The audits of the latest revisions of the last periods; whether they are whole is another check's matter."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        for entry in json.loads(read_regular(current))["periods"][-LATEST:]:
            folder = current.parent / f"period={entry['period']}" / f"revision={entry['revision']}"
            yield json.loads(read_regular(folder / "audit.json"))


def _reason_for_doubt(audit: Mapping[str, Any]) -> str:
    """Why it may be wrong; empty if nothing is odd, or a person approved it."""
    if "approved" in audit:
        return ""
    empty = "the interval of its total holds 0" if audit.get("total_holds_zero") else ""
    return empty or str((audit.get("compared") or {}).get("says") or "")


def bucket(subject: Examined) -> CheckResult:
    """Whether all that is published was sent to the bucket as it is now, by what this host remembers of it."""
    check = "bucket"
    if subject.store is None:
        return not_looked_at(check, "the store could not be opened")
    copy = subject.store.bucket()
    if copy is None:
        return ok(check, "what is published is copied to no bucket")
    if not subject.releases_here:
        return ok(check, f"releases are copied to {copy.address}; only the user who releases can tell how far")
    late = copy.behind()
    if late:
        mend = "dphist store publish, as the user who releases; it spends nothing."
        return warning(check, f"not sent to {copy.address} as it is now: {first_names(late)}", mend)
    return ok(check, f"all that is published was sent to {copy.address}; nobody looked there")
