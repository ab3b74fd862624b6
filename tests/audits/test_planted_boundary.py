"""Attacks succeed where a wall is taken down, fail where it stands, and a test of the suite notices which."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from office import Office
from planted_boundary import WALLS, Wall

TESTS = Path(__file__).resolve().parents[1]
RUN_UNDER = """
import sys, pytest
sys.path[:0] = sys.argv[1].split()
from planted_boundary import WALLS
(wall,) = (wall for wall in WALLS if wall.name == sys.argv[2])
with wall.planted():
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "slow or not slow", sys.argv[3]]))
"""

each_boundary = pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)


@pytest.mark.audit
@each_boundary
def test_an_attack_succeeds_where_its_wall_is_down(office: Office, wall: Wall) -> None:
    office.opened()
    with wall.planted():
        assert wall.attack(office)


@pytest.mark.audit
@each_boundary
def test_the_same_attack_fails_where_the_wall_stands(office: Office, wall: Wall) -> None:
    assert not wall.attack(office.opened())


@pytest.mark.audit
@each_boundary
def test_a_test_of_the_suite_fails_where_the_wall_is_down(wall: Wall) -> None:
    folders = f"{TESTS} {TESTS / 'audits'}"
    done = subprocess.run(
        [sys.executable, "-c", RUN_UNDER, folders, wall.name, str(TESTS / wall.test)],
        cwd=TESTS.parent,
        capture_output=True,
        env=os.environ,
    )
    assert done.returncode == 1, done.stdout.decode()[-2000:]


@each_boundary
def test_every_wall_names_a_test_that_is_there(wall: Wall) -> None:
    file, _, name = wall.test.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text()


@each_boundary
def test_a_fault_takes_all_that_its_wall_takes(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its attack is stopped by a TypeError, and seems to be stopped by another wall."""
    planted = patch.object

    def compared(target: object, name: str, fault: object) -> object:
        there = getattr(target, name)
        if callable(there) and callable(fault):
            taken = inspect.signature(there).parameters.values()
            inspect.signature(fault).bind(*[part.name for part in taken if part.kind is not part.KEYWORD_ONLY])
            inspect.signature(fault).bind_partial(**{part.name: 0 for part in taken if part.kind is part.KEYWORD_ONLY})
        return planted(target, name, fault)

    monkeypatch.setattr(patch, "object", compared)
    with wall.planted():
        pass
