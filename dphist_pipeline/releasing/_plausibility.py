"""Whether a period can be right, by noisy numbers that are paid for: its total, and the published periods before it.

Under `publish: if_plausible` a period that is in doubt waits for a person. Why it waits is told without numbers, since
it may be rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline.answering.doubts import doubt_of_estimate
from dphist_pipeline.answering.past_periods import Compared
from dphist_pipeline.estimates.estimate import AnyEstimate, FamilyEstimate, answer_box
from dphist_pipeline.releasing._approvals import AwaitsApproval, approval
from dphist_pipeline.releasing._attempts import Attempt, Paid
from dphist_pipeline.releasing._audit_facts import audit_facts

HOLDS_ZERO = "total_holds_zero"
MAY_BE_EMPTY = "the interval of the total holds 0, as it would without any record"


@dataclass(frozen=True)
class Judgement:
    """What published and drawn numbers say of a period.

    Attributes:
        holds_zero: whether the interval of the total holds 0.
        compared: with the periods before.
        undeclared: which axes are nearly all `other`, in words; empty for none.
    """

    holds_zero: bool
    compared: Compared
    undeclared: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What its audit says."""
        facts: dict[str, Any] = {"compared": self.compared.facts} if self.compared.periods else {}
        return facts | ({HOLDS_ZERO: True} if self.holds_zero else {})

    @property
    def doubt(self) -> str:
        """Why a person should look, without numbers; empty if nothing is odd."""
        empty = MAY_BE_EMPTY if self.holds_zero else self.undeclared
        return "; ".join(filter(None, [empty, self.compared.hint]))


def judge(public: Path, facts: Mapping[str, Any], made: AnyEstimate) -> Judgement:
    """Judges a period that was drawn and may be published.

    Args:
        public: the store's public folder.
        made: what the mechanism returned.
    """
    first = next(iter(made.tables.values())) if isinstance(made, FamilyEstimate) else made
    total = answer_box(first, {})
    # False where no interval is known, whose ends are nan.
    return Judgement(total.ci_lower <= 0, Compared.of_estimate(public, facts, made), doubt_of_estimate(made))


def facts_if_approved(attempt: Attempt, paid: Paid) -> dict[str, Any]:
    """What the audit of a release will say, beside its charges.

    Args:
        paid: as `release.draw` gave it for that attempt.

    Raises:
        AwaitsApproval: `publish` holds it back, and nobody approved yet.
    """
    facts = audit_facts(attempt, paid.charge)
    judged = judge(attempt.store.public, facts, paid.estimate)
    try:
        approved = approval(attempt.rule, attempt.ledger, paid.charge, attempt.key, paid.remark, judged.doubt)
    except AwaitsApproval:
        if attempt.rule.judges:
            attempt.store.keep_doubted(paid.charge)
        raise
    return facts | approved | judged.facts
