"""A plan that follows from what is declared alone is computed once on a machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from dphist_pipeline.base import kept_numbers as module
from dphist_pipeline.base.kept_numbers import kept_numbers

PLAN = np.array([[1, 0, 255], [7, 300, 2]], dtype=np.int64)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(module, "cache_from_source", lambda path: str(tmp_path / "planner.pyc"))
    file = tmp_path / "planner.py"
    file.write_text("first")
    return file


@pytest.mark.parametrize("plan", [PLAN, PLAN << 40, -PLAN])
def test_a_plan_is_computed_once_and_read_with_the_same_numbers(source: Path, plan: np.ndarray) -> None:
    compute = mock.Mock(return_value=plan)
    for _ in range(2):
        given = kept_numbers(str(source), ("ranges", 3), compute)
        assert given.dtype == np.int64 and np.array_equal(given, plan)
    assert compute.call_count == 1


def test_another_declaration_and_another_program_are_planned_anew(source: Path) -> None:
    compute = mock.Mock(return_value=PLAN)
    kept_numbers(str(source), ("ranges", 3), compute)
    kept_numbers(str(source), ("ranges", 4), compute)
    source.write_text("second")
    kept_numbers(str(source), ("ranges", 3), compute)
    assert compute.call_count == 3


def test_a_damaged_file_is_made_anew_and_old_ones_go(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = mock.Mock(return_value=PLAN)
    kept_numbers(str(source), 0, compute)
    (file,) = source.parent.glob("*.npy")
    for damage in (b"", b"garbage", file.read_bytes()[:-3]):
        file.write_bytes(damage)
        assert np.array_equal(kept_numbers(str(source), 0, compute), PLAN)
    assert compute.call_count == 4
    monkeypatch.setattr(module, "MOST", 2)
    os.utime(file, (1, 1))
    kept_numbers(str(source), 1, compute)
    kept_numbers(str(source), 2, compute)
    assert not file.exists() and len(list(source.parent.iterdir())) == 3


def test_nothing_is_kept_where_python_keeps_no_compiled_files(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compute = mock.Mock(return_value=PLAN)
    for _ in range(2):
        kept_numbers(str(source), 0, compute)
    assert compute.call_count == 2 and not list(source.parent.glob("*.npy"))
