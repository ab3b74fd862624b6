"""A call for one release and period, and what it has once it is paid and drawn: the steps of `release` hand them on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.ledger.ledger import Charge, ChargeRequest, Ledger
from dphist_pipeline.releasing._approvals import PublicationRule
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.periods import Period


@dataclass(frozen=True)
class Attempt:
    """One call for one release and period, as `begin` froze it: equal in every process that joins the same release.

    Attributes:
        charge: the charge that pays, if it was made before.
        request: what to ask the ledger for if not.
        run: the mechanism, with what its doors count.
        rule: when drawn numbers are published.
        progress: told the name of each step as it begins.
    """

    spec: ReleaseSpec
    store: Store
    ledger: Ledger
    period: Period
    key: Key
    charge: Charge | None
    request: ChargeRequest
    run: MechanismRun
    rule: PublicationRule
    progress: Progress = lambda step: None

    @property
    def path(self) -> Path:
        """Where the release is, or will be, published."""
        return self.store.published(self.key)


@dataclass(frozen=True)
class Paid:
    """An estimate, the charge that paid for it, each step's noise, and whether it had been published before."""

    charge: Charge
    estimate: AnyEstimate
    scales: dict[str, Fraction]
    published: bool

    @property
    def remark(self) -> str:
        """What whoever approves it should know; mostly nothing."""
        return QualityTable.of(self.estimate.quality).failed_nearly_all
