"""Every table, figure and theorem of the five papers, and what became of it here; printed by `reproduce.py --list`.

`listed.json` holds what `reproduce.py --keep` writes from the claims of the studies, and the reasons, written by hand.
Each reason notes which verdicts it was written for: where a claim comes to hold, or no longer does, a test asks for the
reason to be read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from public_data import PROJECT
from report import Verdict, in_words, rewrite

REPRODUCED, HELD, PART, NOT_HELD, NOT = "reproduced", "held", "held in part", "not held", "not reproduced"
UNJUDGED = "cannot be judged"
STATUSES = (REPRODUCED, HELD, PART, NOT_HELD, NOT, UNJUDGED)
MOST_FIGURES = 80  # characters of figures that a card repeats
LIST = Path(__file__).with_suffix(".json")
CARDS = PROJECT / "dphist_pipeline" / "mechanisms" / "claims.json"  # what cards repeat
PAPERS = {"cnfg": "CNFG", "dpcube": "DPCube", "dphr": "DPHR", "sreb_gca": "SReB_GCA"}


@dataclass(frozen=True)
class Found:
    """What became of one claim, of its private form.

    Attributes:
        says: the claim.
        verdict: in how many settings it holds; or why it cannot be judged, and in how many it holds here.
        figures: what was measured of the private form, and what is to be known of it.
        beside: not a claim of the paper, but measured beside it.
        printed: how the printed form does, where that is another and not private, or words of it.
        where: as the paper calls the part of the item: `Figure 18 (a)`; empty for the whole item.
        printed_figures: what was measured of the printed form.
    """

    says: str
    verdict: str
    figures: str = ""
    beside: bool = False
    printed: str = ""
    where: str = ""
    printed_figures: str = ""


@dataclass(frozen=True)
class Item:
    """A table, figure or theorem.

    Attributes:
        paper: short name of the paper.
        name: as the paper calls it.
        status: of `STATUSES`; for a claim it is that of the private form.
        why: where it is reproduced or shown, and the reason for what does not hold or is not there.
        study: of `reproduce.py`, if one measures it.
        measured: the day of the study.
        data: what was counted.
        claims: what the study found; empty without one.
        read_for: the verdicts that the reason was written for; see `verdicts_of`.
    """

    paper: str
    name: str
    status: str
    why: str
    study: str = ""
    measured: str = ""
    data: str = ""
    claims: tuple[Found, ...] = ()
    read_for: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"{self.name} of {self.paper}: {self.status!r} is none of {STATUSES}")


def items() -> list[Item]:
    """All items, from `listed.json` beside this file."""
    listed = json.loads(LIST.read_text(encoding="utf-8"))
    return [Item(**{**item, "claims": tuple(Found(**one) for one in item.get("claims", ()))}) for item in listed]


def lines() -> Iterator[str]:
    """A line for every item, below the name of its paper."""
    paper = ""
    for item in items():
        if item.paper != paper:
            yield from ([""] if paper else []) + [item.paper]
            paper = item.paper
        study = f" [{item.study}]" if item.study else ""
        yield f"  {item.name:<12} {item.status:<16} {item.why}{study}"


def judged(listed: Sequence[Item], studies: Mapping[str, Mapping[str, Any]]) -> list[Item]:
    """The items as kept studies judge them; one that no study has a claim about stays as it is.

    Args:
        listed: items, in any state.
        studies: by name, as `docs/measured/papers.json` keeps them.
    """
    return [_judged(item, studies[item.study]) if item.study in studies else item for item in listed]


def verdicts_of(item: Item) -> str:
    """A short digest of which claims hold, hold in part or fail; empty without claims. Figures play no part."""
    told = [f"{claim.where} {claim.says}: {claim.verdict.partition(':')[0]}" for claim in item.claims]
    return sha256("\n".join(told).encode()).hexdigest()[:8] if told else ""


def unread(listed: Sequence[Item]) -> list[str]:
    """Names of the items whose reason was written for other verdicts than the study's.

    Args:
        listed: items, as studies judge them.
    """
    return [f"{item.name} of {item.paper}" for item in listed if item.read_for != verdicts_of(item)]


def reread(listed: Sequence[Item], names: Sequence[str]) -> list[Item]:
    """The items; those of these names, as `unread` gives them, with the note that their reasons fit today's verdicts.

    Args:
        listed: items, as studies judge them.
        names: of items whose reason somebody has read again, and written anew where it no longer fits.
    """
    return [
        replace(item, read_for=verdicts_of(item)) if f"{item.name} of {item.paper}" in names else item
        for item in listed
    ]


def _judged(item: Item, study: Mapping[str, Any]) -> Item:
    found, verdicts = [], list[Verdict]()
    for claim in study["claims"]:
        place = claim["where"]
        if beside := place.startswith("("):
            place = place[1:-1]
        verdict = Verdict(**claim["private"])
        if _about(place, item):
            figures = "; ".join(filter(None, (claim["figures"], claim["note"])))
            printed = claim.get("printed") or ""
            reason = claim.get("unjudged", "")
            if isinstance(printed, dict):
                printed = ("cannot be judged; here " if reason else "") + _told(Verdict(**printed))
            where = "" if place == item.name else place
            measured = claim.get("printed_figures", "")
            told = in_words(_told(verdict), reason)
            found.append(Found(claim["says"], told, figures, beside, printed, where, measured))
            verdicts += [] if beside or reason else [verdict]
    judged = [verdict for verdict in verdicts if verdict != Verdict()]
    status = _status(judged) if judged else item.status
    return replace(item, status=status, measured=study["measured"], data=study["data"], claims=tuple(found))


def _told(verdict: Verdict) -> str:
    return str(verdict).replace("**", "")


def _status(verdicts: Sequence[Verdict]) -> str:
    """The status of all claims: held if none fails anywhere, and each holds in half of its settings at least."""
    if not any(verdict.holds for verdict in verdicts):
        return UNJUDGED if any(verdict.turns for verdict in verdicts) else NOT_HELD
    clear = all(not verdict.fails and verdict.holds >= verdict.open + verdict.turns for verdict in verdicts)
    return HELD if clear else PART


def _about(where: str, item: Item) -> bool:
    """Whether a claim is about an item or a part of it, e.g. Figure 9 (a)."""
    return where == item.name or where.startswith(f"{item.name} (")


def cards() -> dict[str, str]:
    """What the card of each mechanism of a paper says of its claims."""
    return {mechanism: sentence(paper) for mechanism, paper in PAPERS.items()}


def sentence(paper: str) -> str:
    """What became of a paper's tables and figures, and which claims hold nowhere, for a mechanism's card.

    Short figures stand beside such a claim, since a claim may fail by too much as well as by too little.

    Args:
        paper: how its name begins.
    """
    parts = []
    ours = [item for item in items() if item.paper.startswith(paper) and item.claims]
    for status in (HELD, PART, NOT_HELD, UNJUDGED):
        names = [item.name for item in ours if item.status == status]
        named = [_named(kind, names) for kind in ("Table", "Figure")]
        if told := ", ".join(part for part in named if part):
            parts.append(f"{status}: {told}")
    failed: dict[str, list[str]] = {}
    for item in ours:
        for claim in item.claims if item.name.startswith(("Table", "Figure")) else ():
            if claim.verdict.startswith("fails") and not claim.beside:
                place = claim.where or item.name
                figures = f": {claim.figures}" if 0 < len(claim.figures) <= MOST_FIGURES else ""
                failed.setdefault(claim.says, []).append(f"{place[0].lower()}{place[1:]}{figures}")
    said = [f"{says} ({', '.join(places)})" for says, places in failed.items()]
    parts += [f"in no setting: {'; '.join(said)}"] if said else []
    return f"Of its claims, {'; '.join(parts)} (docs/explanation/measured.md)."


def _named(kind: str, names: Sequence[str]) -> str:
    numbers = [name.removeprefix(f"{kind} ") for name in names if name.startswith(f"{kind} ")]
    return f"{kind.lower()}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else ""


def write(listed: Sequence[Item]) -> None:
    """Writes the list, a line for an item and for each of its claims, and what cards say of it."""
    written = []
    for item in listed:
        facts = {name: value for name, value in asdict(item).items() if value}
        claims = [{name: value for name, value in claim.items() if value} for claim in facts.pop("claims", ())]
        line = json.dumps(facts, ensure_ascii=False)
        if claims:
            inner = ",\n  ".join(json.dumps(claim, ensure_ascii=False) for claim in claims)
            line = f'{line[:-1]}, "claims": [\n  {inner}]}}'
        written.append(line)
    rewrite(LIST, "[\n" + ",\n".join(written) + "\n]\n")
    rewrite(CARDS, json.dumps(cards(), indent=1, ensure_ascii=False) + "\n")
