"""A release of the central model in two parts, for an orchestrator that shows what lies between: drawn, published.

What was drawn lies in the journal, so the second part may run in another process, or a month later. A part that is
repeated changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from dphist_pipeline.publishing.release_files import values_digest
from dphist_pipeline.releasing import stages
from dphist_pipeline.releasing.approvals import AwaitsApproval, approval
from dphist_pipeline.releasing.errors import CubeMissing
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.stages import Attempt, Paid


def draw(attempt: Attempt, before: Callable[[], None]) -> str:
    """Counts, charges and asks the doors, unless all that was done; gives the digest of the values.

    Args:
        attempt: see `stages.begin`.
        before: called before a first charge; refuses what must not be charged.
    """
    made = stages.replayed(attempt)
    if made is not None:
        return str(made.audit["values_digest"])
    if attempt.charge is None:
        before()
    with attempt.store.run(attempt.key) as folder:
        paid = stages.estimate(attempt, lambda: stages.read_cube(stages.write_cube(attempt, folder)), folder)
    return values_digest(paid.estimate)


def what_it_waits_for(attempt: Attempt) -> str | None:
    """What a person must do before the release is published; None if nothing."""
    if attempt.charge is not None and stages.replayed(attempt) is None:
        with attempt.store.run(attempt.key) as scratch:
            paid = stages.answered(attempt, scratch)
        try:
            approval(attempt.spec, attempt.ledger, attempt.charge, attempt.key, paid.remark if paid else "")
        except AwaitsApproval as waiting:
            return str(waiting)
    return None


def releasable(attempt: Attempt, digest: str) -> dict[str, bool]:
    """The conditions for publishing, by name."""
    cells = attempt.spec.cells
    published = stages.replayed(attempt)
    if published is not None:
        complete, found = published.audit["cells"] == cells, published.audit["values_digest"]
    else:
        paid = _from_journal(attempt)
        complete, found = paid.estimate.cells == cells, values_digest(paid.estimate)
    return {"cells complete": complete, "charged": attempt.charge is not None, "digest matches": found == digest}


def publish_answers(attempt: Attempt) -> Release:
    """Publishes what the journal holds, or gives back what was published."""
    made = stages.replayed(attempt)
    if made is None:
        made = stages.publish(attempt, _from_journal(attempt))
    stages.refresh_catalogue(attempt)
    return made


def _from_journal(attempt: Attempt) -> Paid:
    with attempt.store.run(attempt.key) as scratch:
        found = stages.answered(attempt, scratch)
    if found is None:
        raise CubeMissing(attempt.key)
    return found
