"""What was charged for a release, whatever account paid, and which of its periods never come."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from dphist_pipeline.ledger.books import OPEN_STATES
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.ledger.ledger import Ledger

LATER = "+"  # behind a waived period: all later ones, too


def charges_of(ledger: Ledger, release: str) -> list[tuple[Charge, str]]:
    """Every charge of a release, whatever account paid, in the order of the ledger, with what became of it.

    Args:
        ledger: open and verified.
        release: its name; one that was never charged gives none.
    """
    books = ledger.books()
    return [(charge, books.state(charge)) for charge in books.every_charge() if charge.release == release]


@dataclass(frozen=True)
class Waived:
    """The periods of a release of which an operator said that they never come.

    Attributes:
        periods: their keys.
        ended: the first period of a release that has ended; empty for one that goes on.
    """

    periods: frozenset[str]
    ended: str = ""

    def __contains__(self, period: str) -> bool:
        return period in self.periods or bool(self.ended and self.ended <= period)


def waived_periods(ledger: Ledger, release: str) -> Waived:
    """The periods of a release of which an operator said that they never come.

    Args:
        ledger: open and verified.
    """
    named = (made.name.partition("/") for made in ledger.decisions(EVERYWHERE) if made.kind == "waiver")
    periods = {period for name, _, period in named if name == release}
    ended = min((period.removesuffix(LATER) for period in periods if period.endswith(LATER)), default="")
    return Waived(frozenset(periods), ended)


def unpublished(ledger: Ledger, release: str) -> list[Charge]:
    """What was charged for a release and is neither published nor rejected, by period and revision.

    Args:
        ledger: open and verified.
        release: its name; one that was never charged gives none.
    """
    books = ledger.books()
    made = [charge for charge in books.every_charge() if charge.release == release]
    made.sort(key=attrgetter("period", "revision"))
    return [charge for charge in made if books.state(charge) in OPEN_STATES]
