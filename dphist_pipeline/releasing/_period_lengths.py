"""A release is a series of periods of one length: others would overlap, and sums over periods count rows twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from dphist_pipeline.answering.published import NotPublished, latest_revision
from dphist_pipeline.errors import Halted
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store

# By the days of the longest period of each length.
_LONGEST = {7: "week", 31: "month", 92: "quarter", 366: "year"}


def refuse_other_length(store: Store, spec: ReleaseSpec) -> None:
    """Refuses a spec whose periods are longer or shorter than those that were published under its name.

    Raises:
        Halted: with both lengths; nothing was spent.
    """
    with suppress(NotPublished, OSError, ValueError, KeyError, TypeError):
        folder = latest_revision(store.public, spec.release, None, family=True)
        published = _length_of(json.loads((folder / "audit.json").read_bytes()))
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
