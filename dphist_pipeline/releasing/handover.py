"""A release of the central model in two parts, for an orchestrator that shows what lies between: drawn, published.

What was drawn lies in the journal, so the second part may run in another process, or a month later. A part that is
repeated changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from dphist_pipeline.publishing.values_digests import values_digest
from dphist_pipeline.releasing import stages
from dphist_pipeline.releasing.approvals import AwaitsApproval
from dphist_pipeline.releasing.charge_marks import marking_charges
from dphist_pipeline.releasing.errors import CubeMissing
from dphist_pipeline.releasing.plausibility import facts_if_approved
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.stages import Attempt, Paid


@dataclass(frozen=True)
class Drawn:
    """An attempt whose doors have answered.

    Attributes:
        attempt: with the charge that paid.
        digest: of the values, as they were drawn.
        replayed: whether they had been published before.
    """

    attempt: Attempt
    digest: str
    replayed: bool = False

    @cached_property
    def paid(self) -> Paid:
        """What the journal says, made anew from its answers alone.

        Raises:
            CubeMissing: a door's answer is not there.
        """
        return _from_journal(self.attempt)


def draw(attempt: Attempt, before: Callable[[], None]) -> Drawn:
    """Counts, charges and asks the doors, unless all that was done.

    Args:
        attempt: see `stages.begin`.
        before: called before a first charge; refuses what must not be charged.
    """
    with marking_charges(attempt):
        made = stages.replayed(attempt)
        if made is not None:
            return Drawn(attempt, str(made.audit["values_digest"]), replayed=True)
        if attempt.charge is None:
            before()
        with attempt.store.run(attempt.key) as folder:
            paid = stages.estimate(attempt, lambda: stages.read_cube(stages.write_cube(attempt, folder)), folder)
    return Drawn(replace(attempt, charge=paid.charge), values_digest(paid.estimate))


def what_it_waits_for(drawn: Drawn) -> str | None:
    """What a person must do before the release is published; None if nothing.

    Args:
        drawn: see `draw`; of a spec under `publish: manual`, or charged under it.
    """
    attempt = drawn.attempt
    if attempt.charge is not None and stages.replayed(attempt) is None:
        try:
            facts_if_approved(attempt, drawn.paid)
        except AwaitsApproval as waiting:
            return str(waiting)
    return None


def doors_of(drawn: Drawn) -> list[dict[str, str]]:
    """What was asked of the exact counts: a row a door, with its epsilon and the scale of its noise; no answer.

    Args:
        drawn: see `draw`; published already or not.
    """
    published = stages.replayed(drawn.attempt)
    if published is not None:
        told = ("step", "epsilon", "noise_scale")
        return [{name: str(row[name]) for name in told} for row in published.audit["charges"]]
    paid = drawn.paid
    return [
        {"step": step, "epsilon": str(epsilon), "noise_scale": str(paid.scales.get(step, "-"))}
        for step, epsilon in paid.estimate.charges
    ]


def releasable(drawn: Drawn) -> dict[str, bool]:
    """The conditions for publishing, by name.

    Args:
        drawn: see `draw`; published already or not.
    """
    attempt = drawn.attempt
    cells = attempt.spec.cells
    published = stages.replayed(attempt)
    if published is not None:
        complete, found = published.audit["cells"] == cells, published.audit["values_digest"]
    else:
        complete, found = drawn.paid.estimate.cells == cells, values_digest(drawn.paid.estimate)
    return {"cells complete": complete, "charged": attempt.charge is not None, "digest matches": found == drawn.digest}


def publish_answers(attempt: Attempt, drawn: Drawn | None = None) -> Release:
    """Publishes what the journal holds, or gives back what was published.

    Args:
        attempt: see `stages.begin`.
        drawn: the same attempt, where this process drew for it.
    """
    made = make_public(attempt, drawn)
    stages.refresh_catalogue(attempt)
    return made


def make_public(attempt: Attempt, drawn: Drawn | None = None) -> Release:
    """As `publish_answers`, before the catalogue and the copy in a bucket; see `stages.refresh_catalogue`.

    Args:
        attempt: see `stages.begin`.
        drawn: the same attempt, where this process drew for it.
    """
    with marking_charges(attempt):
        made = stages.replayed(attempt)
        if made is None:
            made = stages.publish(attempt, _from_journal(attempt) if drawn is None else drawn.paid)
    return made


def _from_journal(attempt: Attempt) -> Paid:
    with attempt.store.run(attempt.key) as scratch:
        found = stages.answered(attempt, scratch)
    if found is None:
        raise CubeMissing(attempt.key)
    return found
