"""A release may be killed anywhere: the same call then finishes it, from the same draw, for the same one charge."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from system.small_release import EPSILON, FILES, NAME, WEEK, Project, assert_whole, charges, start

from dphist_pipeline.publishing.published_files import CARD
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing.store import FOLDER
from examples import SOAKING

REASON = "the source was corrected"
MUST_BE_CROSSED = {
    "os.mkdir",
    "open",
    "os.fsync",
    "os.link",
    "os.rename",
    "os.chmod",
    "os.remove",
    "os.rmdir",
    "commit",
}


@pytest.fixture(scope="module", params=["file", pytest.param("on_server", marks=pytest.mark.outside)])
def fresh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose ledger and witness are files, or lie on a server."""
    server = request.getfixturevalue("database_server") if request.param == "on_server" else None
    return Project.make(tmp_path_factory.mktemp("kills") / "fresh", server=server, catalogued=SOAKING)


@pytest.fixture(scope="module")
def released(fresh: Project) -> Project:
    """A project whose week was released once."""
    project = fresh.copy(fresh.folder.with_name("released"))
    project.release()
    return project


def finish(project: Project, revision: int, reason: str) -> None:
    """Runs the same call again after a kill, and holds what it finds against what the kill left."""
    published = project.published(revision=revision)
    before = charges(project)
    assert before in ([*range(1, revision)], [*range(1, revision + 1)])
    drawn = project.files("confidential/journal")
    assert before == [*range(1, revision + 1)] or len(drawn) == revision - 1, "drawn before it was charged"
    shown = project.files("public")
    if published.exists():
        assert_whole(published)
        assert len(drawn) == revision, "published without a journal"

    again = start(project, reason=reason)

    assert (again.killed, again.refusal, again.revision) == (False, "", revision)
    assert charges(project) == [*range(1, revision + 1)]
    assert project.spent() == revision * EPSILON
    assert_whole(published)
    now = project.files("confidential/journal")
    assert len(now) == revision and drawn.items() <= now.items(), "drawn twice"
    # The card of an earlier revision is given its notice, which no seal holds.
    sealed = {name: of for name, of in shown.items() if not name.endswith(CARD)}
    assert sealed.items() <= project.files("public").items(), "published twice"
    assert len(project.files("public")) == len(FILES) * revision
    left = [name for name in project.files("confidential") if not name.startswith(("journal/", FOLDER))]
    assert not left, "left in the confidential store"
    assert start(project, reason=reason).replayed


def killed_at(start_from: Project, folder: Path, revision: int, reason: str, boundary: tuple[int, str]) -> None:
    number, name = boundary
    project = start_from.copy(folder / f"{number}")
    try:
        assert start(project, reason=reason, kill_at=number).killed
        finish(project, revision, reason)
    except AssertionError as error:
        raise AssertionError(f"killed right before boundary {number}, {name}: {error}") from error


def kill_at_each(
    start_from: Project,
    folder: Path,
    revision: int = 1,
    reason: str = "",
    chosen: Callable[[int, str], bool] = lambda number, name: True,
) -> None:
    whole = start(start_from.copy(folder / "whole"), reason=reason)
    assert not whole.killed and set(whole.boundaries) >= MUST_BE_CROSSED
    boundaries = [(number, name) for number, name in enumerate(whole.boundaries, 1) if chosen(number, name)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(killed_at, start_from, folder, revision, reason), boundaries))


@pytest.mark.slow
def test_a_release_killed_at_a_boundary_is_finished_by_the_same_call(fresh: Project, tmp_path: Path) -> None:
    # What lies in the store is the same on a server: there, before the commits.
    kill_at_each(fresh, tmp_path, chosen=lambda number, name: name == "commit" if fresh.server else number % 20 == 0)


@pytest.mark.soak
def test_a_release_killed_at_any_boundary_is_finished_by_the_same_call(fresh: Project, tmp_path: Path) -> None:
    kill_at_each(fresh, tmp_path)


@pytest.mark.soak
def test_a_revision_killed_at_any_boundary_is_finished_by_the_same_call(released: Project, tmp_path: Path) -> None:
    kill_at_each(released, tmp_path, revision=2, reason=REASON)


def drawn(project: Project) -> dict[str, str]:
    """What the confidential store holds, but for its id and the witnesses of rejections."""
    found = project.files("confidential").items()
    return {name: of for name, of in found if not name.startswith(("rejected/", FOLDER))}


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.soak)])
def test_a_rejection_killed_at_a_boundary_leaves_what_waits_or_what_is_rejected(
    fresh: Project, tmp_path: Path, every: int
) -> None:
    waiting = fresh.copy(tmp_path / "waiting")
    waiting.write_spec(publish="manual")
    assert start(waiting).refusal == "awaits_approval"
    whole = start(waiting.copy(tmp_path / "whole"), reason=REASON, reject=True)
    assert not whole.killed and set(whole.boundaries) >= {"commit", "os.rename", "os.remove", "os.rmdir"}

    def killed_rejecting(number: int) -> str:
        project = waiting.copy(tmp_path / f"{number}")
        assert start(project, reason=REASON, kill_at=number, reject=True).killed
        # Either way the next command says which it is, and leaves what waits whole or nothing at all.
        # In processes of their own: each project has its own witness, which the environment names.
        state = start(project).refusal
        left = drawn(project)
        assert left == (drawn(waiting) if state == "awaits_approval" else {}), f"boundary {number}"
        assert approvals.reject(project.store(), NAME, WEEK, REASON).revision == 1
        assert start(project).refusal == "rejected" and not drawn(project)
        assert charges(project) == [1] and not project.files("public")
        return state

    with ThreadPoolExecutor(2) as pool:
        numbers = range(1, len(whole.boundaries) + 1, 2 * every if fresh.server and every > 1 else every)
        states = list(pool.map(killed_rejecting, numbers))
    committed = whole.boundaries.index("commit") + 1
    assert states == ["awaits_approval" if number <= committed else "rejected" for number in numbers]
    assert len(set(states)) == 2


@pytest.mark.many_examples
def test_a_release_whose_finish_is_killed_too_is_finished_by_the_next(fresh: Project, tmp_path: Path) -> None:
    def killed_twice(seed: int) -> None:
        project, chance = fresh.copy(tmp_path / f"{seed}"), random.Random(seed)
        for _ in range(3):
            start(project, kill_at=chance.randrange(10, 50))
        finish(project, 1, "")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(killed_twice, range(20 if SOAKING else 1)))


@pytest.mark.soak
def test_a_command_killed_at_random_times_is_finished_by_the_same_command(fresh: Project, tmp_path: Path) -> None:
    chance, states, seconds = random.Random(2), Counter[str](), run_command(fresh.copy(tmp_path / "whole"), 60)
    assert seconds, "it did not end within a minute"
    for number in range(500):
        project = fresh.copy(tmp_path / f"{number}")
        if not run_command(project, chance.uniform(0.2, 1) * seconds):
            drawn = bool(project.files("confidential/journal"))
            states["drawn" if drawn else "charged" if charges(project) else "not charged"] += 1
        finish(project, 1, "")
        shutil.rmtree(project.folder)
        if states.total() == 50:
            break
    assert states.total() == 50 and states["not charged"] and states["drawn"], states


def run_command(project: Project, seconds: float) -> float | None:
    """Seconds that `dphist release` took; None when it was killed because it would have taken more."""
    command = [str(Path(sys.executable).with_name("dphist")), "release", str(project.spec)]
    begun = time.monotonic()
    try:  # kills the child with SIGKILL
        subprocess.run(
            [*command, "--period", WEEK, "--store", str(project.root)],
            timeout=seconds,
            check=True,
            capture_output=True,
            env={**os.environ, **project.environment()},
        )
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - begun
