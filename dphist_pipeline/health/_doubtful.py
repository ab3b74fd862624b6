"""The check of published periods that may be wrong, by what their audits say of them: public numbers alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphist_pipeline.health.finding import Examined, Finding, listed, not_looked_at, ok, warning
from dphist_pipeline.publishing.derived_files import DerivedFiles

MOST = 10  # of the latest periods of a release


def doubtful(seen: Examined) -> Finding:
    """Whether the latest revision of a period, among the last ones, may be wrong: empty, or suddenly another.

    Args:
        seen: without its store, nothing is looked at.
    """
    check = "doubtful"
    if seen.store is None:
        return not_looked_at(check, "the store could not be opened")
    found = {
        f"{audit['release']} {audit['period']}": why
        for current in sorted(seen.store.public.glob(f"*/{DerivedFiles.current}"))
        for audit in _last(current)
        if (why := _why(audit))
    }
    if not found:
        return ok(check, f"none of the last {MOST} published periods of a release says that it may be wrong")
    first, why = next(iter(found.items()))
    return warning(
        check,
        f"published, and may be wrong: {listed(list(found))}; {first}: {why}",
        "Look at its card. Revise it with the right records, or take it back: dphist withdraw RELEASE PERIOD --reason "
        "TEXT. Such periods can wait for a person: `publish: if_plausible` in the spec.",
    )


def _last(current: Path) -> Iterator[Mapping[str, Any]]:
    """The audits of the latest revisions of the last periods; whether they are whole is another check's matter."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        for entry in json.loads(current.read_bytes())["periods"][-MOST:]:
            folder = current.parent / f"period={entry['period']}" / f"revision={entry['revision']}"
            yield json.loads((folder / "audit.json").read_bytes())


def _why(audit: Mapping[str, Any]) -> str:
    """Why it may be wrong; empty if nothing is odd, or a person approved it."""
    if "approved" in audit:
        return ""
    empty = "the interval of its total holds 0" if audit.get("total_holds_zero") else ""
    return empty or str((audit.get("compared") or {}).get("says") or "")
