"""Every table, figure and theorem of the five papers, and what became of it here; printed by `reproduce.py --list`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from report import Claim

REPRODUCED, HELD, PART, NOT_HELD, NOT = "reproduced", "held", "held in part", "not held", "not reproduced"
STATUSES = (REPRODUCED, HELD, PART, NOT_HELD, NOT)


@dataclass(frozen=True)
class Item:
    """A table, figure or theorem.

    Attributes:
        paper: short name of the paper.
        name: as the paper calls it.
        status: of `STATUSES`; for a claim it is that of the private form.
        why: where it is reproduced or shown, and the reason for what does not hold or is not there.
        study: of `reproduce.py`, if one measures it.
    """

    paper: str
    name: str
    status: str
    why: str
    study: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"{self.name} of {self.paper}: {self.status!r} is none of {STATUSES}")


def items() -> list[Item]:
    """All items, from `listed.json` beside this file."""
    listed = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return [Item(**item) for item in listed]


def lines() -> Iterator[str]:
    """A line for every item, below the name of its paper."""
    paper = ""
    for item in items():
        if item.paper != paper:
            yield from ([""] if paper else []) + [item.paper]
            paper = item.paper
        study = f" [{item.study}]" if item.study else ""
        yield f"  {item.name:<12} {item.status:<15} {item.why}{study}"


def disagreements(study: str, claims: Sequence[Claim]) -> Iterator[str]:
    """Items whose status is not what the claims of a study say: all hold, none does, or some do."""
    for item in (one for one in items() if one.study == study and one.status in (HELD, PART, NOT_HELD)):
        found = [claim.private for claim in claims if _about(claim, item)]
        held, failed = sum(one.holds for one in found), sum(one.fails for one in found)
        if held + failed == 0:
            continue
        settled = sum(one.open for one in found) == 0
        fitting = (NOT_HELD,) if held == 0 else (PART,) if failed else (HELD,) if settled else (HELD, PART)
        if item.status not in fitting:
            yield f"{item.name} of {item.paper} is listed as {item.status}; these {len(found)} claims: {fitting[0]}"


def _about(claim: Claim, item: Item) -> bool:
    """Whether a claim is about an item or a part of it, e.g. Figure 9 (a)."""
    return claim.where == item.name or claim.where.startswith(f"{item.name} (")
