"""An operator's decision that a period of a release never comes, so that nothing is due for it."""

from __future__ import annotations

from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision
from dphist_pipeline.releasing.deciding import deciding
from dphist_pipeline.releasing.due import LATER, Cadence, charges_of
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.periods import EVERYTHING


def nothing_to_waive(release: str, period: str, problem: str) -> Refused:
    """A period that is not due, and will not be."""
    return Refused(f"release '{release}', period {period}: {problem}. Nothing was decided.", code="nothing_to_waive")


def waive(store: Store, release: str, period: str, reason: str, and_later: bool = False) -> Decision:
    """Enters the decision; the same again changes nothing.

    Args:
        release: its name; it was charged before.
        reason: 1 to 2000 characters.
        and_later: whether every later period is waived, too: the release has ended.

    Raises:
        Refused: the release is unknown here, or the period was charged, or is none of the release's.
    """
    ledger = store.ledger()
    charged = {charge.period for charge, _ in charges_of(ledger, release)}
    if not charged:
        raise nothing_to_waive(release, period, "nothing was ever charged for this release, so nothing of it is due")
    if EVERYTHING in charged:
        raise nothing_to_waive(release, period, "this release has no periods")
    if period in charged:
        raise nothing_to_waive(release, period, "it was charged already, so it is not due")
    cadence = Cadence.kept(store, release)
    if cadence is not None:
        cadence.rule.named(period)
    with deciding(store, ledger) as operator:
        made = ledger.allow(
            EVERYWHERE, {"waiver": {"name": f"{release}/{period}{LATER if and_later else ''}"}}, operator, reason
        )
    assert made is not None  # a waiver waits for no second signature
    return made
