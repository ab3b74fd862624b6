"""A release of the central model in steps that may run in different processes, as an orchestrator runs them.

Each step leaves files in the store for the next one: the cube in a private folder of this run, kept until the doors
have answered (or for a day, after a crash), then only the journal. A step that is repeated changes nothing.
"""

from __future__ import annotations

from dphist_pipeline.publishing.release_files import values_digest
from dphist_pipeline.releasing import stages
from dphist_pipeline.releasing.approvals import AwaitsApproval, approval
from dphist_pipeline.releasing.errors import CubeMissing
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.stages import Attempt, Paid


def count_records(attempt: Attempt, run: str) -> None:
    """Leaves a cube for `sanitize_cube`, unless the release can be had without reading a record."""
    if stages.replayed(attempt) is not None:
        return
    with attempt.store.run(attempt.key) as scratch:
        if stages.answered(attempt, scratch) is not None:
            return
    folder = attempt.store.kept_run(attempt.key, run)
    counted = False
    try:
        stages.write_cube(attempt, folder)
        counted = True
    finally:
        if not counted:
            attempt.store.forget(folder)


def sanitize_cube(attempt: Attempt, run: str) -> str:
    """Charges and asks the doors; gives the digest of the values, and deletes the cube whatever happens.

    Raises:
        CubeMissing: when neither a cube of this run nor a journal is there.
    """
    made = stages.replayed(attempt)
    if made is not None:
        return str(made.audit["values_digest"])
    folder = attempt.store.kept_run(attempt.key, run)
    cube = folder / "cube.npy"

    def load() -> stages.Counts:
        if not cube.exists():
            raise CubeMissing(attempt.key)
        return stages.read_cube(cube)

    try:
        return values_digest(stages.estimate(attempt, load, folder).estimate)
    finally:
        attempt.store.forget(folder)


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
    cells = attempt.spec.domain.cells
    published = stages.replayed(attempt)
    if published is not None:
        complete, found = published.audit["cells"] == cells, published.audit["values_digest"]
    else:
        paid = _from_journal(attempt)
        complete, found = paid.estimate.values.size == cells, values_digest(paid.estimate)
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
