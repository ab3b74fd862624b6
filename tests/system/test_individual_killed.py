"""A release to an individual account may be killed anywhere: the same call finishes it, and each patient pays once."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from system.small_release import ACCOUNT, WEEKS, Project, start

from dphist_pipeline.ledger.individual import PARTS

INDIVIDUAL = {"accounting": "individual", "renews": "yearly", "left_out": Fraction(1, 20)}


def paid(project: Project) -> list[Fraction]:
    """What each patient has paid, by the state of the latest charge."""
    granted = project.ledger().books().every_charge()[-1].granted
    assert granted is not None
    state = project.root / "confidential" / "years" / ACCOUNT / f"{granted.state}.parquet"
    return sorted(Fraction(one, PARTS) for one in pq.read_table(state)["paid"].to_pylist())


@pytest.mark.parametrize("every", [pytest.param(24, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak)])
def test_a_release_killed_at_a_boundary_is_finished_by_the_same_call(tmp_path: Path, every: int) -> None:
    # In its own place each time: another folder would be another source.
    project = Project.make(tmp_path / "project", Fraction(2), terms=INDIVIDUAL, epsilon="1/2")
    assert not start(project, WEEKS[0]).refusal
    before = shutil.copytree(project.folder, tmp_path / "before")
    whole = start(project, WEEKS[1])
    once = paid(project)
    assert not whole.refusal and len(once) == 10 and set(once) == {Fraction(1, 4)}
    chosen = [n for n, name in enumerate(whole.boundaries, 1) if n % every == 0 or (name == "commit" and every > 1)]
    for number in chosen:
        shutil.rmtree(project.folder)
        shutil.copytree(before, project.folder)
        assert start(project, WEEKS[1], kill_at=number).killed
        again = start(project, WEEKS[1])
        assert (again.killed, again.refusal) == (False, ""), f"boundary {number}"
        assert paid(project) == once and len(project.ledger().books().every_charge()) == 2, f"boundary {number}"
        assert start(project, WEEKS[1]).replayed
