"""The mark on the card of a revision that a later one has replaced; without it, the card is as it was published.

The mark holds the number of that revision and its reason, as in its audit, and nothing else: the digest of a card is
computed without it. Marks follow `current.json`: they are set, changed or taken off whenever the catalogue is built.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from dphist_pipeline.publishing._superseded import superseded, unmarked
from dphist_pipeline.publishing.current_files import NAME as CURRENT
from dphist_pipeline.publishing.published_files import CARD, replace_public


def mark_cards(public: Path, scratch: Path) -> None:
    """Marks the cards of revisions that are not the latest of their period, and no others.

    Args:
        public: the store's public folder, with `current.json` as it shall be; one process at a time.
        scratch: a private folder on the same file system.
    """
    for current in sorted(public.glob(f"*/{CURRENT}")):
        latest = {entry["period"]: int(entry["revision"]) for entry in json.loads(current.read_bytes())["periods"]}
        for period in current.parent.glob("period=*"):
            cards = [card for card in period.glob(f"revision=*/{CARD}") if re.fullmatch(r"[0-9]+", _number(card))]
            newest = latest.get(period.name.removeprefix("period="), 0)
            for card in cards if len(cards) > 1 else []:
                text = card.read_text(encoding="utf-8")
                older = int(_number(card)) < newest
                wanted = superseded(text, newest, card.parent) if older else unmarked(text, card.parent)
                if wanted != text:
                    replace_public(card, wanted, scratch)


def _number(card: Path) -> str:
    return card.parent.name.removeprefix("revision=")
