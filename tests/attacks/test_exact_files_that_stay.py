"""Exact counts that killed runs left behind: gone once anybody finishes or rejects their period, at any revision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempts import Attempt
from office import Office, left_by_older_version
from system.orchestrated import leftovers

from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential.cube import load_cube
from dphist_pipeline.confidential.measurements import PrivateCounts


def by_command(attempt: Attempt) -> None:
    ran = attempt.by_command()
    assert ran.code == 0, ran.err


def by_dagster(attempt: Attempt) -> None:
    success, told = attempt.by_dagster()
    assert success, told


def by_rejecting(attempt: Attempt) -> None:
    by_command(attempt.write(publish="manual"))
    # Left by a run that began before: the draw deleted those of its own period.
    planted(attempt.office, 1)
    assert attempt.office.run("reject", "wards", "all", "--reason", "wrong codes").code == 0


def planted(office: Office, revision: int, release: str = "wards") -> Path:
    """What a killed run of version 0.2 leaves under Dagster, beside the mark that it is kept."""
    return left_by_older_version(office.store, release, "all", revision, f"killed{revision}")


@pytest.mark.slow
@pytest.mark.parametrize("finish", [by_command, by_dagster, by_rejecting])
def test_a_killed_runs_cube_is_gone_once_its_period_is_finished_or_rejected(
    office: Office, finish: Callable[[Attempt], None]
) -> None:
    attempt = Attempt(office.opened()).write()
    cube = planted(office, 1)
    finish(attempt)
    assert not cube.exists()
    assert [path for path in leftovers(office) if not path.startswith("rejected/")] == []


@pytest.mark.slow
def test_no_exact_count_lies_on_the_disk_while_a_measurement_draws(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying: list[Path] = []
    draw = PrivateCounts.noisy_cells
    runs = office.store / "confidential" / "runs"
    monkeypatch.setattr(PrivateCounts, "noisy_cells", lambda *given: lying.extend(runs.rglob("*.npy")) or draw(*given))
    by_command(Attempt(office.opened()).write())
    assert lying == []


@pytest.mark.slow
def test_a_periods_older_cubes_are_gone_and_those_of_other_periods_stay(office: Office) -> None:
    attempt = Attempt(office.opened()).write()
    cubes = [planted(office, revision) for revision in (1, 2, 3)]
    other = planted(office, 1, "other_wards")
    by_command(attempt)
    assert not any(cube.exists() for cube in cubes) and other.exists()
    cubes = [planted(office, revision) for revision in (1, 2, 3)]
    ran = attempt.by_command("--revise", "--reason", "wrong codes")
    assert ran.code == 0, ran.err
    assert not any(cube.exists() for cube in cubes)


def test_a_cube_written_after_its_period_was_published_is_gone_after_a_replay(office: Office) -> None:
    attempt = Attempt(office.opened()).write()
    by_command(attempt)
    cube = planted(office, 1)
    by_command(attempt)
    assert not cube.exists()


class Planted:
    """An object whose unpickling runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("planted"),)


def test_a_cube_that_holds_code_is_not_run(office: Office) -> None:
    np.save("cube.npy", np.array([Planted()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        load_cube(Path("cube.npy"))
    assert not Path("planted").exists()


def test_numbers_about_rows_that_hold_code_are_not_run(office: Office) -> None:
    np.savez("quality.npz", units=np.array([Planted()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        row_tables.load(Path())
    assert not Path("planted").exists()
